//! TEMP
use crate::sequence::Sequence;
use crate::tokens::Tokenizer;
use crate::value::Value;
/// T
pub struct SystemFold;
/// T
pub fn fold_of(_s: &Sequence<'_>) -> Option<SystemFold> {
    None
}
impl SystemFold {
    /// T
    pub fn estimate(&self, _t: Tokenizer) -> u64 {
        0
    }
    /// T
    pub fn to_message(&self, _t: i64) -> Value<'static> {
        Value::Null
    }
}

//! TEMP
use session_model::value::Value;
/// t
#[derive(Clone, Copy)]
pub enum Kind {
    /// t
    History,
    /// t
    TurnPrefix,
    /// t
    Branch,
}
/// t
pub struct EmbeddedInput<'a> {
    /// t
    pub kind: Kind,
    /// t
    pub messages: &'a [Value<'a>],
    /// t
    pub kept: &'a [Value<'a>],
    /// t
    pub previous_summary: Option<&'a str>,
    /// t
    pub instructions: Option<&'a str>,
    /// t
    pub limit_tokens: u64,
}
/// t
pub fn summarize(i: &EmbeddedInput<'_>) -> String {
    format!("## Goal\n{} messages", i.messages.len())
}
/// t
pub fn short_summary(_m: &[Value<'_>], _k: &[Value<'_>], _l: u64) -> String {
    "short".into()
}
/// t
pub fn facts_index(_m: &[Value<'_>], _l: u64, _s: &str) -> String {
    String::new()
}

//! TEMP
/// t
pub struct State;
impl State {
    /// t
    pub fn of(_b: &crate::branch::Branch<'_>) -> State {
        State
    }
    /// t
    pub fn to_value(&self) -> crate::value::Value<'static> {
        crate::value::Value::Null
    }
}

//! TEMP
use super::*;
pub(super) fn format(_f: Format) -> Option<()> {
    None
}
pub(super) fn write(
    _a: &App,
    _g: &ContextArgs,
    _f: Format,
    _c: &Context<'_>,
    _o: &mut Vec<u8>,
) -> Vec<String> {
    Vec::new()
}

//! The start of a message on one line, for lists.

use crate::text::{code_points, take_units};

/// Characters of a user message that lists show.
const PREVIEW_CHARS: usize = 120;

/// The start of a text on one line, from its escaped form.
pub(crate) fn preview(raw: &str) -> Box<str> {
    // However much of it is blank, no more than this is looked at.
    let start = take_units(raw, 6 * PREVIEW_CHARS as u64);
    let mut preview = String::with_capacity(PREVIEW_CHARS);
    let (mut n_chars, mut is_behind_blank) = (0, false);
    for point in code_points(start) {
        let character = point.shown();
        if character.is_whitespace() {
            is_behind_blank = n_chars > 0;
            continue;
        }
        for character in
            [std::mem::take(&mut is_behind_blank).then_some(' '), Some(character)].into_iter().flatten()
        {
            if n_chars == PREVIEW_CHARS {
                return preview.into();
            }
            preview.push(character);
            n_chars += 1;
        }
    }
    preview.into()
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_that_ends_within_an_escape_does_no_harm() {
        for escape in [r"\n", r"\u0041", r"\ud83d\ude00", "é"] {
            for offset in 0..12 {
                let raw = format!("{}{}", "x".repeat(offset), escape.repeat(800));
                assert!(preview(&raw).chars().count() <= PREVIEW_CHARS);
            }
        }
    }
}

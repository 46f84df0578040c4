//! The start of a message on one line, for lists.

use crate::text::{code_points, take_units};

/// Characters of a user message that lists show.
const PREVIEW_CHARS: usize = 120;

/// Appends the start of a text on one line, from its escaped form, to `preview`.
pub(crate) fn put_preview(raw: &str, preview: &mut String) {
    let plain = &raw[..plain_start(raw.as_bytes())];
    preview.push_str(plain);
    let mut n_chars = plain.len();
    if n_chars == PREVIEW_CHARS || n_chars == raw.len() {
        return;
    }
    // However much of the rest is blank, no more than this is looked at.
    let start = take_units(raw, 6 * PREVIEW_CHARS as u64);
    let mut is_behind_blank = false;
    for point in code_points(&start[plain.len()..]) {
        let character = point.shown();
        if character.is_whitespace() {
            is_behind_blank = n_chars > 0;
            continue;
        }
        for character in
            [std::mem::take(&mut is_behind_blank).then_some(' '), Some(character)].into_iter().flatten()
        {
            if n_chars == PREVIEW_CHARS {
                return;
            }
            preview.push(character);
            n_chars += 1;
        }
    }
}

/// How many bytes at the start are shown as they are: plain characters, and lone blanks between them.
fn plain_start(raw: &[u8]) -> usize {
    let mut n_plain = 0;
    for (at, byte) in raw.iter().take(PREVIEW_CHARS).enumerate() {
        match byte {
            b'\\' => break,
            b'!'..=b'~' => n_plain = at + 1,
            b' ' if n_plain == at && at > 0 => {}
            _ => break,
        }
    }
    n_plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn preview(raw: &str) -> String {
        let mut preview = String::new();
        put_preview(raw, &mut preview);
        preview
    }

    #[test]
    fn blanks_are_one_and_none_at_the_ends() {
        let long = "x".repeat(PREVIEW_CHARS - 1);
        for (raw, shown) in [
            ("", ""),
            ("a b", "a b"),
            (" a  b ", "a b"),
            (r"a\n b", "a b"),
            ("a \u{a0}b", "a b"),
            (r"\u0041 \\ é", r"A \ é"),
            (&format!("{long} "), &long),
            (&format!("{long} y"), &format!("{long} ")),
            (&format!("{long}\\n"), &long),
            (&format!("{long}yz"), &format!("{long}y")),
        ] {
            assert_eq!(preview(raw), shown, "{raw:?}");
        }
    }

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

//! JSON text, timestamps and invented prose.

use crate::random::Random;

/// Stands in prose for a high surrogate without its partner, which Rust's strings cannot hold.
const LONE_HIGH: char = '\u{e000}';
/// The same for a low surrogate.
const LONE_LOW: char = '\u{e001}';

/// Appends `text` as a JSON string.
pub(crate) fn push_string(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            LONE_HIGH => out.push_str("\\ud83d"),
            LONE_LOW => out.push_str("\\ude00"),
            c if c < ' ' => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
}

/// `text` as a JSON string.
pub(crate) fn string(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    push_string(&mut out, text);
    out
}

/// The JSON array of these JSON texts.
pub(crate) fn array(items: &[String]) -> String {
    format!("[{}]", items.join(","))
}

/// The JSON array of strings.
pub(crate) fn strings(items: &[String]) -> String {
    array(&items.iter().map(|item| string(item)).collect::<Vec<_>>())
}

/// Milliseconds since 1970 as `2026-01-02T03:04:05.678Z`.
pub(crate) fn timestamp(ms: u64) -> String {
    let (days, rest) = (ms / 86_400_000, ms % 86_400_000);
    // Days are counted from 1 March of the year 0, so that leap days come last in a year.
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let (hour, minute, second, ms) = (rest / 3_600_000, rest / 60_000 % 60, rest / 1000 % 60, rest % 1000);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z")
}

const PLAIN: &[&str] = &[
    "the",
    "parser",
    "fails",
    "on",
    "line",
    "12",
    "because",
    "src/main.rs",
    "returns",
    "early",
    "when",
    "`token`",
    "is",
    "empty;",
    "run",
    "cargo",
    "test",
    "again",
    "and",
    "check",
    "https://example.org/a?b=1",
    "error[E0382]:",
    "use",
    "of",
    "moved",
    "value",
    "port",
    "8080",
    "we",
    "should",
    "not",
    "touch",
    "the",
    "cache",
    "\n",
    "\n\n",
    "\t",
    "- item",
    "\n## Heading\n",
    "|a|b|",
    "\n```\ncode\n```\n",
    "\"quoted\"",
    "back\\slash",
];
const UNUSUAL: &[&str] = &[
    "漢字",
    "かな",
    "한국어",
    "😀",
    "👩\u{200d}💻",
    "é",
    "e\u{301}",
    "\u{feff}",
    "\u{2028}",
    "\u{85}",
    "\u{a0}",
    "\u{1}",
    "\u{1b}[31m",
    "\u{7f}",
    "</conversation>",
    "<previous-summary>",
    "<read-files>\na\n</read-files>",
    "\r\n",
    "\u{202e}",
    "ß",
    "İ",
];

/// Invented prose of exactly `units` UTF-16 units; a share of the words is unusual, some of them lone surrogates.
pub(crate) fn prose(random: &mut Random, units: usize, unusual: f64, lone: f64) -> String {
    let mut text = String::with_capacity(units + units / 4);
    let mut left = units;
    while left > 0 {
        let word =
            if unusual > 0.0 && random.chance(unusual) { random.pick(UNUSUAL) } else { random.pick(PLAIN) };
        let length = word.encode_utf16().count();
        if lone > 0.0 && random.chance(lone) {
            text.push(if random.chance(0.5) { LONE_HIGH } else { LONE_LOW });
            left -= 1;
        } else if length < left {
            text.push_str(word);
            text.push(' ');
            left -= length + 1;
        } else {
            text.push('x');
            left -= 1;
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_times_as_the_agents_do() {
        assert_eq!(timestamp(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(timestamp(1_709_210_096_007), "2024-02-29T12:34:56.007Z");
        assert_eq!(timestamp(1_767_225_599_999), "2025-12-31T23:59:59.999Z");
    }

    #[test]
    fn prose_has_the_wanted_length() {
        let mut random = Random::new(3);
        for units in [0, 1, 2, 7, 400, 4001] {
            assert_eq!(prose(&mut random, units, 0.3, 0.1).encode_utf16().count(), units);
        }
    }

    #[test]
    fn a_lone_surrogate_is_written_as_an_escape() {
        assert_eq!(string("a\u{e000}\"\u{e001}"), r#""a\ud83d\"\ude00""#);
    }
}

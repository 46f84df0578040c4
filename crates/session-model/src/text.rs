//! JSON strings as they stand in a file: measured without decoding, decoded without loss, spelled as JavaScript spells them.

use std::borrow::Cow;
use std::cell::RefCell;
use std::fmt::Write as _;

use crate::marks::Marks;
use crate::printed::is_printed_escape;

thread_local! {
    /// For measuring strings that are no part of a marked text.
    static MARKS: RefCell<Marks> = RefCell::default();
}

/// Strings are marked from this length on; the marks of shorter ones cost more than they save.
const MARKED: usize = 64;

/// A string of a JSON value: either the characters between the quotes as the file has them, or text that was made in memory.
#[derive(Clone, Debug)]
pub enum Str<'a> {
    /// Still escaped, without the quotes. Was accepted by [`crate::scan::Walker`], so its escapes are valid.
    Raw(&'a str),
    /// Plain text.
    Text(Cow<'a, str>),
}

impl<'a> Str<'a> {
    /// The text; a lone surrogate becomes U+FFFD (spec 1.1).
    pub fn text(&self) -> Cow<'_, str> {
        match self {
            Str::Raw(raw) => decode(raw),
            Str::Text(text) => Cow::Borrowed(text),
        }
    }

    /// The text, borrowed from the file where nothing is escaped.
    pub fn into_text(self) -> Cow<'a, str> {
        match self {
            Str::Raw(raw) => decode(raw),
            Str::Text(text) => text,
        }
    }

    /// Length in UTF-16 units, as JavaScript's `length` says it: a lone surrogate counts one.
    pub fn units(&self) -> u64 {
        match self {
            Str::Raw(raw) if raw.len() < MARKED => code_points(raw).map(CodePoint::units).sum(),
            Str::Raw(raw) => MARKS.with_borrow_mut(|marks| {
                marks.take(raw);
                let units = marks.units(0, raw.len());
                // One huge string must not be paid for until the end.
                marks.shrink(1 << 20);
                units
            }),
            Str::Text(text) => units(text),
        }
    }

    /// Whether the string has no character at all.
    pub fn is_empty(&self) -> bool {
        match self {
            Str::Raw(raw) => raw.is_empty(),
            Str::Text(text) => text.is_empty(),
        }
    }

    /// Whether the text equals `other`.
    pub fn is(&self, other: &str) -> bool {
        match self {
            // An escape is longer than what it stands for.
            Str::Raw(raw) if raw.len() <= other.len() => *raw == other && !has_backslash(raw.as_bytes()),
            Str::Raw(raw) if !has_backslash(raw.as_bytes()) => false,
            Str::Raw(_) | Str::Text(_) => self.text() == other,
        }
    }

    /// Appends the string, quoted, as `JSON.stringify` prints it.
    pub fn write_json(&self, out: &mut String) {
        match self {
            Str::Raw(raw) => {
                out.push('"');
                if is_canonical(raw) {
                    out.push_str(raw);
                } else {
                    code_points(raw).for_each(|point| write_escaped(point, out));
                }
                out.push('"');
            }
            Str::Text(text) => write_json_string(text, out),
        }
    }

    /// The same string with no borrow from the file.
    pub fn into_owned(self) -> Str<'static> {
        // Decoding would lose lone surrogates, which JSON.stringify spells out: keep them apart.
        match self {
            Str::Raw(raw) => Str::Text(Cow::Owned(decode(raw).into_owned())),
            Str::Text(text) => Str::Text(Cow::Owned(text.into_owned())),
        }
    }
}

impl PartialEq for Str<'_> {
    fn eq(&self, other: &Self) -> bool {
        if let (Str::Raw(raw), Str::Raw(other)) = (self, other)
            && (raw == other || ![raw, other].iter().any(|raw| has_backslash(raw.as_bytes())))
        {
            return raw == other;
        }
        self.text() == other.text()
    }
}

impl<'a> From<&'a str> for Str<'a> {
    fn from(text: &'a str) -> Self {
        Str::Text(Cow::Borrowed(text))
    }
}

impl From<String> for Str<'_> {
    fn from(text: String) -> Self {
        Str::Text(Cow::Owned(text))
    }
}

/// One element of a string: a character, or half of a surrogate pair that has lost its other half.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodePoint {
    /// A character.
    Char(char),
    /// A lone surrogate, U+D800 to U+DFFF.
    Lone(u16),
}

impl CodePoint {
    /// The character; U+FFFD for a lone surrogate.
    pub(crate) fn shown(self) -> char {
        match self {
            CodePoint::Char(character) => character,
            CodePoint::Lone(_) => char::REPLACEMENT_CHARACTER,
        }
    }

    fn units(self) -> u64 {
        match self {
            CodePoint::Char(character) => character.len_utf16() as u64,
            CodePoint::Lone(_) => 1,
        }
    }
}

/// The elements of an escaped string.
pub fn code_points(raw: &str) -> impl Iterator<Item = CodePoint> + '_ {
    let mut rest = raw;
    std::iter::from_fn(move || {
        let mut chars = rest.chars();
        let first = chars.next()?;
        if first != '\\' {
            rest = chars.as_str();
            return Some(CodePoint::Char(first));
        }
        let escape = chars.next().unwrap_or('\\');
        rest = chars.as_str();
        Some(match escape {
            'b' => CodePoint::Char('\u{8}'),
            'f' => CodePoint::Char('\u{c}'),
            'n' => CodePoint::Char('\n'),
            'r' => CodePoint::Char('\r'),
            't' => CodePoint::Char('\t'),
            'u' => {
                let unit = hex4(rest);
                rest = rest.get(4..).unwrap_or("");
                match unit {
                    0xD800..=0xDBFF => match rest.strip_prefix("\\u").map(hex4) {
                        Some(low @ 0xDC00..=0xDFFF) => {
                            rest = rest.get(6..).unwrap_or("");
                            let scalar =
                                0x10000 + ((u32::from(unit) - 0xD800) << 10) + (u32::from(low) - 0xDC00);
                            CodePoint::Char(char::from_u32(scalar).unwrap_or('\u{FFFD}'))
                        }
                        _ => CodePoint::Lone(unit),
                    },
                    0xDC00..=0xDFFF => CodePoint::Lone(unit),
                    _ => CodePoint::Char(char::from_u32(u32::from(unit)).unwrap_or('\u{FFFD}')),
                }
            }
            other => CodePoint::Char(other),
        })
    })
}

fn hex4(text: &str) -> u16 {
    text.get(..4).and_then(|digits| u16::from_str_radix(digits, 16).ok()).unwrap_or(0xFFFD)
}

/// Plain text of an escaped string; a lone surrogate becomes U+FFFD.
pub fn decode(raw: &str) -> Cow<'_, str> {
    if raw.len() <= SHORT && !has_backslash(raw.as_bytes()) {
        return Cow::Borrowed(raw);
    }
    let Some(first) = memchr::memchr(b'\\', raw.as_bytes()) else { return Cow::Borrowed(raw) };
    // Every piece is whole characters of `raw` or those that an escape stands for.
    Cow::Owned(String::from_utf8(decoded(raw, first)).expect("whole characters behind whole characters"))
}

/// Names are looked at by the hundred thousand: up to this length the search for long texts would be most of the work.
const SHORT: usize = 32;

/// Whether a backslash is among the bytes.
#[inline]
fn has_backslash(bytes: &[u8]) -> bool {
    if bytes.len() > SHORT {
        return memchr::memchr(b'\\', bytes).is_some();
    }
    const ONES: u64 = u64::MAX / 255;
    let (words, rest) = bytes.as_chunks::<8>();
    let is_in = |word: &[u8; 8]| {
        // Zero where a backslash is; then subtracting a one from each byte sets the high bit of one that did not have it.
        let difference = u64::from_ne_bytes(*word) ^ (ONES * u64::from(b'\\'));
        difference.wrapping_sub(ONES) & !difference & (ONES << 7) != 0
    };
    words.iter().any(is_in) || rest.contains(&b'\\')
}

/// Bytes that are copied at once.
const STEP: usize = 32;

/// What the letter of an escape stands for; 0 for `u` and all that is no such letter.
const SIMPLE: [u8; 256] = {
    let mut simple = [0; 256];
    simple[b'n' as usize] = b'\n';
    simple[b'"' as usize] = b'"';
    simple[b'\\' as usize] = b'\\';
    simple[b'/' as usize] = b'/';
    simple[b't' as usize] = b'\t';
    simple[b'r' as usize] = b'\r';
    simple[b'b' as usize] = 8;
    simple[b'f' as usize] = 12;
    simple
};

/// The text of `raw`, whose first backslash is at byte `at`.
fn decoded(raw: &str, mut at: usize) -> Vec<u8> {
    let bytes = raw.as_bytes();
    // Nothing that is decoded is longer than it was.
    let mut text = vec![0; bytes.len() + STEP];
    let mut end = at;
    text[..end].copy_from_slice(&bytes[..at]);
    while at < bytes.len() {
        // A step is copied whole, and what comes next goes over all that is behind the backslash: escapes are mostly nearer to
        // each other than a copy of the right length is worth.
        let plain = match bytes[at..].first_chunk::<STEP>() {
            Some(step) => {
                text[end..end + STEP].copy_from_slice(step);
                first_backslash(step)
            }
            None => {
                let rest = &bytes[at..];
                text[end..end + rest.len()].copy_from_slice(rest);
                rest.iter().position(|byte| *byte == b'\\').unwrap_or(rest.len())
            }
        };
        (at, end) = (at + plain, end + plain);
        let Some([b'\\', escape]) = bytes.get(at..at + 2) else {
            // No backslash in this step; or one that ends the text, which no valid string has.
            if bytes.get(at) == Some(&b'\\') {
                break;
            }
            continue;
        };
        let simple = SIMPLE[usize::from(*escape)];
        text[end] = simple;
        if simple != 0 {
            (at, end) = (at + 2, end + 1);
            continue;
        }
        // `\u` goes the careful way, for it may take its neighbour with it.
        let stretch = unicode_escapes(&raw[at..]);
        for point in code_points(&raw[at..at + stretch]) {
            end += point.shown().encode_utf8(&mut text[end..]).len();
        }
        at += stretch;
    }
    text.truncate(end);
    text
}

/// Bytes before the first backslash.
#[inline]
fn first_backslash(step: &[u8; 32]) -> usize {
    use fearless_simd::{Level, dispatch, prelude::*, u8x32};
    let mask = dispatch!(Level::baseline(), simd => {
        u8x32::from_slice(simd, step).simd_eq(b'\\').to_bitmask()
    });
    (mask.trailing_zeros() as usize).min(32)
}

/// Length in bytes of the run of `\uXXXX` that `rest` starts with.
fn unicode_escapes(rest: &str) -> usize {
    let mut end = 0;
    while rest[end..].starts_with("\\u") && rest.len() >= end + 6 {
        end += 6;
    }
    if end == 0 { rest.len().min(2) } else { end }
}

/// Length of plain text in UTF-16 units.
pub fn units(text: &str) -> u64 {
    if text.is_ascii() {
        return text.len() as u64;
    }
    // Sums of bytes are counted in lanes as narrow as the bytes, for as long as they cannot overflow.
    let surplus = |bytes: &[u8]| -> i64 {
        let continuation = bytes.iter().map(|byte| u8::from(byte & 0xC0 == 0x80)).sum::<u8>();
        let four = bytes.iter().map(|byte| u8::from(*byte >= 0xF0)).sum::<u8>();
        i64::from(continuation) - i64::from(four)
    };
    let surplus: i64 = text.as_bytes().chunks(192).map(surplus).sum();
    text.len() as u64 - surplus as u64
}

/// The longest start of `text` with at most `limit` UTF-16 units; never half of a surrogate pair (spec D18).
pub fn take_units(text: &str, limit: u64) -> &str {
    if text.len() as u64 <= limit {
        return text;
    }
    // Of plain text a byte is a unit.
    if let Some(start) = text.get(..limit as usize).filter(|start| start.is_ascii()) {
        return start;
    }
    let mut seen = 0;
    for (at, character) in text.char_indices() {
        seen += character.len_utf16() as u64;
        if seen > limit {
            return &text[..at];
        }
    }
    text
}

/// The longest end of `text` with at most `limit` UTF-16 units.
pub fn take_last_units(text: &str, limit: u64) -> &str {
    let mut seen = 0;
    for (at, character) in text.char_indices().rev() {
        seen += character.len_utf16() as u64;
        if seen > limit {
            return &text[at + character.len_utf8()..];
        }
    }
    text
}

/// Whether the escaped string is surely what `JSON.stringify` would print already.
fn is_canonical(raw: &str) -> bool {
    let bytes = raw.as_bytes();
    let mut at = 0;
    while let Some(found) = memchr::memchr(b'\\', &bytes[at..]) {
        at += found + 1;
        if matches!(bytes.get(at), Some(b'/' | b'u')) && !is_printed_escape(&bytes[at..]) {
            return false;
        }
        at += 1;
    }
    // U+007F and the like are printed as they are, so only the escapes matter.
    true
}

/// Appends plain text as a JSON string, as `JSON.stringify` prints it.
pub fn write_json_string(text: &str, out: &mut String) {
    out.push('"');
    let mut plain = 0;
    for (at, byte) in text.bytes().enumerate() {
        if byte == b'"' || byte == b'\\' || byte < 0x20 {
            out.push_str(&text[plain..at]);
            write_escaped(CodePoint::Char(char::from(byte)), out);
            plain = at + 1;
        }
    }
    out.push_str(&text[plain..]);
    out.push('"');
}

fn write_escaped(point: CodePoint, out: &mut String) {
    match point {
        CodePoint::Char('"') => out.push_str("\\\""),
        CodePoint::Char('\\') => out.push_str("\\\\"),
        CodePoint::Char('\u{8}') => out.push_str("\\b"),
        CodePoint::Char('\u{c}') => out.push_str("\\f"),
        CodePoint::Char('\n') => out.push_str("\\n"),
        CodePoint::Char('\r') => out.push_str("\\r"),
        CodePoint::Char('\t') => out.push_str("\\t"),
        CodePoint::Char(control) if control < ' ' => {
            write!(out, "\\u{:04x}", u32::from(control)).expect("a String takes everything");
        }
        CodePoint::Char(character) => out.push(character),
        CodePoint::Lone(unit) => write!(out, "\\u{unit:04x}").expect("a String takes everything"),
    }
}

/// A number as JavaScript prints it in JSON: `1e400` is `null`, `-0` is `0`, `1.0` is `1`.
pub fn js_number(number: f64) -> String {
    if !number.is_finite() {
        return "null".to_owned();
    }
    if number == 0.0 {
        return "0".to_owned();
    }
    let scientific = format!("{:e}", number.abs());
    let (mantissa, exponent) = scientific.split_once('e').expect("{:e} prints an exponent");
    let exponent: i32 = exponent.parse().expect("{:e} prints a decimal exponent");
    let digits: String = mantissa.chars().filter(|character| *character != '.').collect();
    let n_digits = digits.len() as i32;
    let point = exponent + 1;
    let body = if (n_digits..=21).contains(&point) {
        format!("{digits}{}", "0".repeat((point - n_digits) as usize))
    } else if (1..=21).contains(&point) {
        format!("{}.{}", &digits[..point as usize], &digits[point as usize..])
    } else if (-5..=0).contains(&point) {
        format!("0.{}{digits}", "0".repeat(-point as usize))
    } else {
        let sign = if exponent < 0 { '-' } else { '+' };
        let fraction = if n_digits > 1 { format!(".{}", &digits[1..]) } else { String::new() };
        format!("{}{fraction}e{sign}{}", &digits[..1], exponent.abs())
    };
    if number < 0.0 { format!("-{body}") } else { body }
}

/// Text for a person's terminal: control characters and terminal escapes are spelled out (spec 8.2).
pub fn shown(text: &str) -> Cow<'_, str> {
    let harmless = |character: char| {
        !character.is_control() && !matches!(character, '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
    };
    if text.chars().all(harmless) {
        return Cow::Borrowed(text);
    }
    let spell = |character: char| {
        if harmless(character) { character.to_string() } else { character.escape_default().to_string() }
    };
    Cow::Owned(text.chars().map(spell).collect())
}

/// The number that a property name stands for when JavaScript would sort it before all others: an integer from 0 to 2³² − 2,
/// in its only spelling.
pub fn index_key(key: &str) -> Option<u32> {
    if key.is_empty() || key.len() > 10 || !key.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    if key.len() > 1 && key.starts_with('0') {
        return None;
    }
    key.parse::<u32>().ok().filter(|index| *index != u32::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_backslash_is_found_at_every_place_among_all_bytes() {
        for length in 0..80 {
            for other in [0, 1, b'[', b']', 0x5D, 0x7F, 0x80, 0xDC, 0xFF] {
                let mut bytes = vec![other; length];
                assert!(!has_backslash(&bytes), "{other} {length}");
                for at in 0..length {
                    bytes[at] = b'\\';
                    assert!(has_backslash(&bytes), "{other} {length} {at}");
                    bytes[at] = other;
                }
            }
        }
    }

    #[test]
    fn a_string_is_the_text_that_it_stands_for() {
        for (raw, text, is) in [
            ("abc", "abc", true),
            ("abc", "ab", false),
            (r"a\\b", r"a\b", true),
            (r"a\nb", r"a\nb", false),
            (r"\u0061", "a", true),
        ] {
            assert_eq!((Str::Raw(raw).is(text), decode(raw) == text), (is, is), "{raw} {text}");
        }
    }

    #[track_caller]
    fn check(raw: &str, text: &str, n_units: u64, json: &str) {
        let string = Str::Raw(raw);
        let mut printed = String::new();
        string.write_json(&mut printed);
        assert_eq!((string.text().as_ref(), string.units(), printed.as_str()), (text, n_units, json));
    }

    #[test]
    fn plain_text_is_itself() {
        check("abc", "abc", 3, "\"abc\"");
        check("", "", 0, "\"\"");
        check("日本語", "日本語", 3, "\"日本語\"");
        check("😀", "😀", 2, "\"😀\"");
    }

    #[test]
    fn escapes_are_decoded_and_respelled_as_javascript_does() {
        check(r#"a\n\t\"\\\/\b\f\r"#, "a\n\t\"\\/\u{8}\u{c}\r", 9, r#""a\n\t\"\\/\b\f\r""#);
        check(r"\u0041\u00e9\u001b", "Aé\u{1b}", 3, "\"Aé\\u001b\"");
        check(r"\ud83d\ude00x", "😀x", 3, "\"😀x\"");
    }

    #[test]
    fn a_lone_surrogate_is_one_unit_and_shown_as_a_replacement() {
        check(r"a\ud83d", "a\u{FFFD}", 2, "\"a\\ud83d\"");
        check(r"\ude00\ud83d\ud83d\ude00", "\u{FFFD}\u{FFFD}😀", 4, "\"\\ude00\\ud83d😀\"");
        check(r"\uD83D", "\u{FFFD}", 1, "\"\\ud83d\"");
    }

    #[test]
    fn numbers_print_as_in_javascript() {
        for (number, printed) in [
            (1.0, "1"),
            (-0.0, "0"),
            (0.1, "0.1"),
            (1e21, "1e+21"),
            (1e20, "100000000000000000000"),
            (123456789012345680000.0, "123456789012345680000"),
            (1.5e-7, "1.5e-7"),
            (0.000001, "0.000001"),
            (-12.5, "-12.5"),
            (5e-324, "5e-324"),
            (f64::INFINITY, "null"),
        ] {
            assert_eq!(js_number(number), printed);
        }
    }

    #[test]
    fn taking_units_never_halves_a_pair() {
        assert_eq!(take_units("ab😀c", 3), "ab");
        assert_eq!(take_units("ab😀c", 4), "ab😀");
        assert_eq!(take_last_units("c😀ab", 3), "ab");
    }

    #[test]
    fn only_array_indexes_sort_first() {
        assert_eq!(index_key("0"), Some(0));
        assert_eq!(index_key("4294967294"), Some(4_294_967_294));
        assert_eq!(["", "01", "-1", "4294967295", "1.0"].map(index_key), [None; 5]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]

        #[test]
        fn long_strings_are_read_as_one_character_after_the_other(
            raw in r#"([a-z é日😀]{0,45}(\\["\\/bfnrt]|\\u[0d][08-9][0-2][0-9a-f]|\\ud8[0-9a-f]{2}\\udc[0-9a-f]{2}){0,3}){0,9}"#
        ) {
            let text: String = code_points(&raw).map(CodePoint::shown).collect();
            let n_units: u64 = code_points(&raw).map(CodePoint::units).sum();
            prop_assert_eq!(decode(&raw), text.clone());
            prop_assert_eq!(Str::Raw(&raw).units(), n_units);
            prop_assert_eq!(units(&text), text.encode_utf16().count() as u64);
            let mut respelled = String::from('"');
            code_points(&raw).for_each(|point| write_escaped(point, &mut respelled));
            respelled.push('"');
            let mut printed = String::new();
            Str::Raw(&raw).write_json(&mut printed);
            prop_assert_eq!(printed, respelled);
        }
    }
}

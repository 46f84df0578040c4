//! How a walker finds the end of a string: by the marks of its text, or by a look at the bytes.

use fearless_simd::{Level, Simd, dispatch, prelude::*, u8x64};

use crate::marks::{Marks, escaped_bytes, has_digits};
use crate::scan::{ScanError, StringScan, Walker};

/// How a walker finds the ends of strings.
pub trait Strings {
    /// Offset of the closing quote of the string whose first byte behind the quote is at `start`.
    ///
    /// # Errors
    /// No closing quote, a control character, or an escape that JSON does not have.
    fn end_of_string(&mut self, bytes: &[u8], start: usize) -> Result<usize, ScanError>;
}

/// Looks at the bytes themselves: for text that is walked once and has no marks.
#[derive(Clone, Copy, Debug)]
pub struct Unmarked;

/// Looks at the marks of the text, or of a longer text that it is a part of.
#[derive(Clone, Copy, Debug)]
pub struct Marked<'m> {
    marks: &'m Marks,
    /// Where the walked text starts in the marked one.
    base: usize,
    /// Of the odd places, how many the walk has left behind.
    n_passed: usize,
    /// Whether the last string has odd places.
    pub(crate) was_odd: bool,
}

impl<'a, 'm> Walker<'a, Marked<'m>> {
    /// Starts at byte `at` of `text`, which starts at byte `base` of the text of the marks.
    pub fn marked(text: &'a str, at: usize, marks: &'m Marks, base: usize) -> Self {
        let n_passed = marks.odd().partition_point(|&place| place < base + at);
        Walker { text, at, strings: Marked { marks, base, n_passed, was_odd: false } }
    }

    /// Length of a string in UTF-16 units.
    pub fn units(&self, scan: &StringScan) -> u64 {
        let base = self.strings.base;
        self.strings.marks.units(base + scan.start, base + scan.end)
    }
}

impl Marked<'_> {
    /// The odd places of the string that was walked last.
    pub(crate) fn odd(&self, scan: &StringScan) -> impl Iterator<Item = usize> {
        let (base, first) = (self.base, self.base + scan.start);
        let passed = &self.marks.odd()[..self.n_passed];
        passed.iter().rev().take_while(move |place| **place >= first).map(move |place| place - base)
    }
}

impl Strings for Marked<'_> {
    #[inline]
    fn end_of_string(&mut self, bytes: &[u8], start: usize) -> Result<usize, ScanError> {
        let first = self.base + start;
        // Where the string does not end, the next quote is that of another line, or there is none.
        let quote = self.marks.next_quote(first).unwrap_or(usize::MAX);
        let end = quote.min(self.base + bytes.len());
        let odd = self.marks.odd();
        self.was_odd = false;
        while let Some(&place) = odd.get(self.n_passed).filter(|place| **place < end) {
            self.n_passed += 1;
            if place >= first {
                self.was_odd = true;
                check_odd(bytes, place - self.base, first - self.base)?;
            }
        }
        if end < quote { Err(ScanError { at: bytes.len() }) } else { Ok(quote - self.base) }
    }
}

/// Looks at an odd place of a string that starts at `start`.
#[cold]
fn check_odd(bytes: &[u8], at: usize, start: usize) -> Result<(), ScanError> {
    let is_escaped = bytes[start..at].iter().rev().take_while(|byte| **byte == b'\\').count() % 2 == 1;
    if is_escaped && is_escape(bytes, at) { Ok(()) } else { Err(ScanError { at }) }
}

/// Whether the character at `at` may stand behind a backslash, with what follows it.
fn is_escape(bytes: &[u8], at: usize) -> bool {
    match bytes.get(at) {
        Some(b'n' | b'"' | b'\\' | b't' | b'r' | b'b' | b'f' | b'/') => true,
        Some(b'u') => has_digits(bytes, at),
        _ => false,
    }
}

impl Strings for Unmarked {
    #[inline]
    fn end_of_string(&mut self, bytes: &[u8], start: usize) -> Result<usize, ScanError> {
        // What every processor of the kind has: choosing by string would cost more than it brings.
        dispatch!(Level::baseline(), simd => end_of_string(simd, bytes, start))
    }
}

#[inline(always)]
fn end_of_string<S: Simd>(simd: S, bytes: &[u8], start: usize) -> Result<usize, ScanError> {
    // Whether the byte before this block is a backslash that escapes its first byte.
    let mut carry = 0u64;
    let mut at = start;
    loop {
        let mut padded = [b' '; 64];
        let rest = bytes.get(at..).unwrap_or(&[]);
        let block = rest.first_chunk().unwrap_or_else(|| {
            padded[..rest.len()].copy_from_slice(rest);
            &padded
        });
        let vector = u8x64::from_slice(simd, block);
        let quotes = vector.simd_eq(b'"').to_bitmask();
        let backslashes = vector.simd_eq(b'\\').to_bitmask();
        let controls = vector.simd_lt(b' ').to_bitmask();
        let escaped = escaped_bytes(backslashes, &mut carry);
        let closing = quotes & !escaped;
        // All bits below the closing quote; all bits if it is not in this block.
        let inside = if closing == 0 { u64::MAX } else { (1u64 << closing.trailing_zeros()) - 1 };
        if controls & inside != 0 {
            return Err(ScanError { at: at + (controls & inside).trailing_zeros() as usize });
        }
        let mut escapes = escaped & inside;
        while escapes != 0 {
            let place = at + escapes.trailing_zeros() as usize;
            escapes &= escapes - 1;
            if !is_escape(bytes, place) {
                return Err(ScanError { at: place });
            }
        }
        if closing != 0 {
            return Ok(at + closing.trailing_zeros() as usize);
        }
        if rest.len() < 64 {
            return Err(ScanError { at: bytes.len() });
        }
        at += 64;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::text::Str;

    #[track_caller]
    fn check(json: &str, n_units: u64) {
        let marks = Marks::of(json);
        let mut walker = Walker::marked(json, 0, &marks, 0);
        let scan = walker.string().expect("a valid string");
        assert_eq!((walker.units(&scan), scan.start, scan.end), (n_units, 1, json.len() - 1));
        assert_eq!(Walker::new(json).string(), Ok(scan));
    }

    #[test]
    fn units_are_those_of_the_decoded_string() {
        check(r#""""#, 0);
        check(r#""abc""#, 3);
        check(r#""a\\""#, 2);
        check(r#""\"\\\\\"""#, 4);
        check(r#""日本😀\n""#, 5);
        check(r#""\ud83d\ude00""#, 2);
        check(r#""\ud83d""#, 1);
    }

    #[test]
    fn every_offset_of_a_block_border_measures_the_same() {
        for before in 0..140 {
            for piece in [r"\\", r"\n", r"\/", r"\u00e9", "é", "日", "😀", r#"\\\""#] {
                let content = format!("{}{piece}{}", "x".repeat(before), "y".repeat(70));
                check(&format!("\"{content}\""), Str::Raw(&content).units());
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]

        #[test]
        fn marks_and_bytes_tell_the_same(text in r#"[x"]{0,70}([a\\"u0/é😀\n\x01]|\\u[0-9d][0-9a-fg]{3}){0,90}"#, base in 0..80usize) {
            let whole = format!("{}{text}", " ".repeat(base));
            let marks = Marks::of(&whole);
            let mut start = 0;
            for line in text.split('\n') {
                for quote in line.match_indices('"').map(|(at, _)| at) {
                    // A quote in the middle of a run of backslashes is not where a walk can start.
                    if line[..quote].ends_with('\\') {
                        continue;
                    }
                    let mut walker = Walker::marked(line, quote, &marks, base + start);
                    let scan = walker.string();
                    prop_assert_eq!(scan.ok(), Walker::starting_at(line, quote).string().ok());
                    if let Ok(scan) = scan {
                        prop_assert_eq!(walker.units(&scan), Str::Raw(walker.raw(&scan)).units());
                    }
                }
                start += line.len() + 1;
            }
        }
    }
}

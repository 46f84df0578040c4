//! Walks over the bytes of one JSON object: finds fields, their ranges and UTF-16 lengths, and decodes nothing.
//!
//! Everything that `JSON.parse` refuses is refused here too, so that a record that sesstool reads is one that the agent reads.

use memchr::memchr;

use crate::strings::{Strings, Unmarked};

/// Where a walk could not go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScanError {
    /// Byte offset from the start of the walked text.
    pub at: usize,
}

/// Where a string stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StringScan {
    /// Offset of the first byte behind the opening quote.
    pub start: usize,
    /// Offset of the closing quote.
    pub end: usize,
}

/// Walks forward over JSON text. Nothing recurses, so no depth of nesting can exhaust the stack.
#[derive(Clone, Debug)]
pub struct Walker<'a, S = Unmarked> {
    pub(crate) text: &'a str,
    pub(crate) at: usize,
    pub(crate) strings: S,
}

impl<'a> Walker<'a> {
    /// Starts at the first byte of `text`.
    pub fn new(text: &'a str) -> Self {
        Walker::starting_at(text, 0)
    }

    /// Starts at byte `at`, which must be a character border.
    pub fn starting_at(text: &'a str, at: usize) -> Self {
        Walker { text, at, strings: Unmarked }
    }
}

impl<'a, S: Strings> Walker<'a, S> {
    /// Byte offset of what comes next.
    pub fn position(&self) -> usize {
        self.at
    }

    /// The text between two offsets that this walker returned.
    pub fn slice(&self, start: usize, end: usize) -> &'a str {
        self.text.get(start..end).unwrap_or("")
    }

    #[inline]
    pub(crate) fn bytes(&self) -> &'a [u8] {
        self.text.as_bytes()
    }

    fn error<T>(&self) -> Result<T, ScanError> {
        Err(ScanError { at: self.at })
    }

    /// Passes over white space and returns the byte behind it, 0 at the end.
    #[inline]
    pub fn peek(&mut self) -> u8 {
        let bytes = self.bytes();
        while let Some(&byte) = bytes.get(self.at) {
            if !matches!(byte, b' ' | b'\t' | b'\n' | b'\r') {
                return byte;
            }
            self.at += 1;
        }
        0
    }

    #[inline]
    fn expect(&mut self, byte: u8) -> Result<(), ScanError> {
        if self.peek() != byte || self.at >= self.bytes().len() {
            return self.error();
        }
        self.at += 1;
        Ok(())
    }

    /// Reads a string, quotes included.
    ///
    /// # Errors
    /// No string, or one that JSON does not allow.
    #[inline]
    pub fn string(&mut self) -> Result<StringScan, ScanError> {
        self.expect(b'"')?;
        let start = self.at;
        let end = self.strings.end_of_string(self.text.as_bytes(), start)?;
        self.at = end + 1;
        Ok(StringScan { start, end })
    }

    /// The raw text of a string that was scanned here.
    pub fn raw(&self, scan: &StringScan) -> &'a str {
        self.slice(scan.start, scan.end)
    }

    /// Goes through an object: `field` gets the raw key and must consume the value.
    ///
    /// # Errors
    /// The first byte that is not JSON, or what `field` returns.
    #[inline]
    pub fn object(
        &mut self,
        mut field: impl FnMut(&mut Self, &'a str) -> Result<(), ScanError>,
    ) -> Result<(), ScanError> {
        self.expect(b'{')?;
        if self.peek() == b'}' {
            self.at += 1;
            return Ok(());
        }
        loop {
            let key = self.string()?;
            self.expect(b':')?;
            let raw = self.raw(&key);
            field(self, raw)?;
            match self.peek() {
                b',' => self.at += 1,
                b'}' => {
                    self.at += 1;
                    return Ok(());
                }
                _ => return self.error(),
            }
        }
    }

    /// Goes through an array: `item` must consume each value.
    ///
    /// # Errors
    /// The first byte that is not JSON, or what `item` returns.
    #[inline]
    pub fn array(
        &mut self,
        mut item: impl FnMut(&mut Self) -> Result<(), ScanError>,
    ) -> Result<(), ScanError> {
        self.expect(b'[')?;
        if self.peek() == b']' {
            self.at += 1;
            return Ok(());
        }
        loop {
            item(self)?;
            match self.peek() {
                b',' => self.at += 1,
                b']' => {
                    self.at += 1;
                    return Ok(());
                }
                _ => return self.error(),
            }
        }
    }

    /// Passes over one value of any kind and returns its range.
    ///
    /// # Errors
    /// The first byte that is not JSON.
    pub fn skip(&mut self) -> Result<(usize, usize), ScanError> {
        self.peek();
        let start = self.at;
        let mut levels = Levels::default();
        loop {
            match self.peek() {
                b'{' => {
                    self.at += 1;
                    if self.peek() != b'}' {
                        levels.push(true);
                        self.key()?;
                        continue;
                    }
                    self.at += 1;
                }
                b'[' => {
                    self.at += 1;
                    if self.peek() != b']' {
                        levels.push(false);
                        continue;
                    }
                    self.at += 1;
                }
                b'"' => {
                    self.string()?;
                }
                _ => self.scalar()?,
            }
            loop {
                let Some(in_object) = levels.last() else { return Ok((start, self.at)) };
                match (self.peek(), in_object) {
                    (b',', true) => {
                        self.at += 1;
                        self.key()?;
                        break;
                    }
                    (b',', false) => {
                        self.at += 1;
                        break;
                    }
                    (b'}', true) | (b']', false) => {
                        self.at += 1;
                        levels.pop();
                    }
                    _ => return self.error(),
                }
            }
        }
    }

    fn key(&mut self) -> Result<(), ScanError> {
        self.string()?;
        self.expect(b':')
    }

    /// Passes over a number, `true`, `false` or `null`.
    fn scalar(&mut self) -> Result<(), ScanError> {
        let rest = &self.bytes()[self.at..];
        for word in [&b"true"[..], b"false", b"null"] {
            if rest.starts_with(word) {
                self.at += word.len();
                return Ok(());
            }
        }
        let length = number_length(rest);
        if length == 0 {
            return self.error();
        }
        self.at += length;
        Ok(())
    }

    /// Reads a number; any other value is passed over and gives `None`.
    ///
    /// # Errors
    /// The first byte that is not JSON.
    pub fn number(&mut self) -> Result<Option<f64>, ScanError> {
        let is_number = matches!(self.peek(), b'-' | b'0'..=b'9');
        let (start, end) = self.skip()?;
        // Nearly all of them are small counts, which need no float parser.
        let digits = self.slice(start, end).as_bytes();
        if digits.len() <= 15 && digits.iter().all(u8::is_ascii_digit) {
            let whole = digits.iter().fold(0u64, |sum, digit| sum * 10 + u64::from(digit - b'0'));
            return Ok(Some(whole as f64));
        }
        Ok(if is_number { self.slice(start, end).parse().ok() } else { None })
    }

    /// Reads a string; any other value is passed over and gives `None`.
    ///
    /// # Errors
    /// The first byte that is not JSON.
    #[inline]
    pub fn string_or_skip(&mut self) -> Result<Option<StringScan>, ScanError> {
        if self.peek() == b'"' {
            return self.string().map(Some);
        }
        self.skip().map(|_| None)
    }

    /// Reads `true` or `false`; any other value is passed over and gives `false`.
    ///
    /// # Errors
    /// The first byte that is not JSON.
    pub fn is_true(&mut self) -> Result<bool, ScanError> {
        let (start, end) = self.skip()?;
        Ok(self.slice(start, end) == "true")
    }
}

/// The open containers around a place: one bit each, set for an object.
#[derive(Default)]
struct Levels {
    words: Vec<u64>,
    depth: usize,
}

impl Levels {
    fn push(&mut self, in_object: bool) {
        let (word, bit) = (self.depth / 64, self.depth % 64);
        if word == self.words.len() {
            self.words.push(0);
        }
        self.words[word] = self.words[word] & !(1 << bit) | u64::from(in_object) << bit;
        self.depth += 1;
    }

    fn pop(&mut self) {
        self.depth -= 1;
    }

    fn last(&self) -> Option<bool> {
        let at = self.depth.checked_sub(1)?;
        Some(self.words[at / 64] >> (at % 64) & 1 == 1)
    }
}

/// Length of the JSON number that `bytes` starts with, 0 if none.
fn number_length(bytes: &[u8]) -> usize {
    let digits = |from: usize| {
        bytes.get(from..).unwrap_or(&[]).iter().take_while(|byte| byte.is_ascii_digit()).count()
    };
    let mut at = usize::from(bytes.first() == Some(&b'-'));
    let whole = digits(at);
    if whole == 0 || (whole > 1 && bytes[at] == b'0') {
        return 0;
    }
    at += whole;
    if bytes.get(at) == Some(&b'.') {
        let fraction = digits(at + 1);
        if fraction == 0 {
            return 0;
        }
        at += 1 + fraction;
    }
    if matches!(bytes.get(at), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(at + 1), Some(b'+' | b'-')));
        let exponent = digits(at + 1 + sign);
        if exponent == 0 {
            return 0;
        }
        at += 1 + sign + exponent;
    }
    at
}

/// Offset of the next `{"` at or behind `from`.
pub fn next_object(bytes: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    while let Some(found) = memchr(b'{', bytes.get(at..)?) {
        if bytes.get(at + found + 1) == Some(&b'"') {
            return Some(at + found);
        }
        at += found + 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::marks::Marks;

    #[test]
    fn refuses_what_json_parse_refuses() {
        let control = "\"\u{1}\"";
        for json in [
            r#""abc"#,
            r#""a\q""#,
            r#""\u12g4""#,
            control,
            r#""\"#,
            "{",
            r#"{"a"}"#,
            r#"{"a":}"#,
            r#"{"a":1,}"#,
            "[1,]",
            "[1 2]",
            "01",
            "-",
            "1.",
            "1e",
            "tru",
            "nul",
            "{]",
            "[}",
            "",
        ] {
            let mut walker = Walker::new(json);
            let skipped = walker.skip();
            assert!(skipped.is_err() || walker.position() < json.len(), "{json}");
            let marks = Marks::of(json);
            assert_eq!(Walker::marked(json, 0, &marks, 0).skip(), skipped, "{json}");
        }
    }

    #[test]
    fn passes_over_any_value() {
        for json in
            ["1", "-0.5e+10", "true", "null", "{}", "[]", "[[],{}]", r#"{"a":[1,{"b":null}],"c":"}"}"#]
        {
            assert_eq!(Walker::new(json).skip(), Ok((0, json.len())));
        }
    }

    #[test]
    fn depth_is_no_matter() {
        let json = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(Walker::new(&json).skip(), Ok((0, 200_000)));
        let json = format!("{}1{}", r#"{"a":"#.repeat(100_000), "}".repeat(100_000));
        assert_eq!(Walker::new(&json).skip(), Ok((0, json.len())));
    }
}

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
            // Nearly always: agents print no white space.
            if byte > b' ' || !matches!(byte, b' ' | b'\t' | b'\n' | b'\r') {
                return byte;
            }
            self.at += 1;
        }
        0
    }

    #[inline]
    fn expect(&mut self, byte: u8) -> Result<(), ScanError> {
        if self.bytes().get(self.at) == Some(&byte) {
            self.at += 1;
            return Ok(());
        }
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
        let first = self.peek();
        let start = self.at;
        if first == b'"' {
            self.string()?;
            return Ok((start, self.at));
        }
        if first != b'{' && first != b'[' {
            self.scalar()?;
            return Ok((start, self.at));
        }
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
        let word = match rest.first() {
            Some(b't') => &b"true"[..],
            Some(b'f') => b"false",
            Some(b'n') => b"null",
            _ => b"",
        };
        if !word.is_empty() && rest.starts_with(word) {
            self.at += word.len();
            return Ok(());
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
        // Nearly all of them are small counts, which need no float parser.
        let (mut at, mut whole) = (self.at, 0u64);
        while let Some(digit @ b'0'..=b'9') = self.bytes().get(at) {
            whole = whole.wrapping_mul(10).wrapping_add(u64::from(digit - b'0'));
            at += 1;
        }
        let n_digits = at - self.at;
        let is_small = (1..=15).contains(&n_digits)
            && (n_digits == 1 || self.bytes()[self.at] != b'0')
            && !matches!(self.bytes().get(at), Some(b'.' | b'e' | b'E'));
        if is_small {
            self.at = at;
            return Ok(Some(whole as f64));
        }
        let (start, end) = self.skip()?;
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
    /// The innermost ones.
    innermost: u64,
    /// Those around them, 64 to a word.
    outer: Vec<u64>,
    depth: usize,
}

impl Levels {
    fn push(&mut self, in_object: bool) {
        if self.depth > 0 && self.depth.is_multiple_of(64) {
            self.outer.push(std::mem::take(&mut self.innermost));
        }
        self.innermost = self.innermost << 1 | u64::from(in_object);
        self.depth += 1;
    }

    fn pop(&mut self) {
        self.innermost >>= 1;
        self.depth -= 1;
        if self.depth > 0 && self.depth.is_multiple_of(64) {
            self.innermost = self.outer.pop().unwrap_or(0);
        }
    }

    fn last(&self) -> Option<bool> {
        (self.depth > 0).then_some(self.innermost & 1 == 1)
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
    fn small_numbers_are_read_as_others_are() {
        for (json, number) in [
            ("0", Some(0.0)),
            ("7,", Some(7.0)),
            ("123456789012345", Some(123_456_789_012_345.0)),
            ("1234567890123456789", Some(1_234_567_890_123_456_789.0)),
            ("-5", Some(-5.0)),
            ("1.5", Some(1.5)),
            ("1e3", Some(1000.0)),
            ("\"1\"", None),
            ("null", None),
        ] {
            assert_eq!(Walker::new(json).number(), Ok(number), "{json}");
        }
        for json in ["", "-", "1.", "x"] {
            assert!(Walker::new(json).number().is_err(), "{json}");
        }
        // Two values side by side: the second is for whoever reads on.
        let mut walker = Walker::new("01");
        assert_eq!((walker.number().is_err(), walker.position()), (true, 0));
    }

    #[test]
    fn containers_of_both_kinds_close_in_their_order_at_any_depth() {
        for depth in [1, 63, 64, 65, 127, 128, 129, 200] {
            let open = |n: usize| if n.is_multiple_of(3) { "{\"a\":" } else { "[" };
            let close = |n: usize| if n.is_multiple_of(3) { "}" } else { "]" };
            let opened: String = (0..depth).map(open).collect();
            let closed: String = (0..depth).rev().map(close).collect();
            let json = format!("{opened}1{closed}");
            assert_eq!(Walker::new(&json).skip(), Ok((0, json.len())), "{depth}");
            let wrong = json.replacen("1}", "1]", 1).replacen("1]", "1}", usize::from(!json.contains("1}")));
            assert!(Walker::new(&wrong).skip().is_err(), "{depth}");
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

//! Walks over the bytes of one JSON object: finds fields, their ranges and UTF-16 lengths, and decodes nothing.
//!
//! Everything that `JSON.parse` refuses is refused here too, so that a record that sesstool reads is one that the agent reads.

use memchr::memchr;
use wide::u8x64;

use crate::text;

/// Where a walk could not go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScanError {
    /// Byte offset from the start of the walked text.
    pub at: usize,
}

/// What one pass over a string learns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StringScan {
    /// Offset of the first byte behind the opening quote.
    pub start: usize,
    /// Offset of the closing quote.
    pub end: usize,
    /// Length of the decoded string in UTF-16 units.
    pub units: u64,
    /// Number of escapes.
    pub escapes: u64,
    /// Whether one of the escapes is `\u` or `\/`, which JavaScript may print in another way.
    pub respelled: bool,
}

/// Walks forward over JSON text. Nothing recurses, so no depth of nesting can exhaust the stack.
#[derive(Clone, Debug)]
pub struct Walker<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Walker<'a> {
    /// Starts at the first byte of `text`.
    pub fn new(text: &'a str) -> Self {
        Walker { text, at: 0 }
    }

    /// Starts at byte `at`, which must be a character border.
    pub fn starting_at(text: &'a str, at: usize) -> Self {
        Walker { text, at }
    }

    /// Byte offset of what comes next.
    pub fn position(&self) -> usize {
        self.at
    }

    /// The text between two offsets that this walker returned.
    pub fn slice(&self, start: usize, end: usize) -> &'a str {
        self.text.get(start..end).unwrap_or("")
    }

    fn bytes(&self) -> &'a [u8] {
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
        let scan = scan_string(self.bytes(), self.at)?;
        self.at = scan.end + 1;
        Ok(scan)
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

    /// UTF-16 length of what `JSON.stringify` prints for the value that comes next, or `None` where only building the value
    /// can tell (numbers in odd spellings, keys that JavaScript sorts, repeated keys, `\u` escapes, nested values). The value
    /// is consumed.
    ///
    /// # Errors
    /// The first byte that is not JSON.
    pub fn stringified_units(&mut self) -> Result<Option<u64>, ScanError> {
        if self.peek() != b'{' {
            return self.skip().map(|_| None);
        }
        let mut total = Some(1u64);
        let mut keys: Vec<&str> = Vec::new();
        self.object(|walker, key| {
            if keys.contains(&key) || keys.len() > 32 || key.contains('\\') || text::index_key(key).is_some()
            {
                total = None;
            }
            if keys.len() <= 32 {
                keys.push(key);
            }
            let value = match walker.peek() {
                b'"' => {
                    let scan = walker.string()?;
                    (!scan.respelled).then_some(scan.units + scan.escapes + 2)
                }
                b't' | b'f' | b'n' => walker.skip().map(|(start, end)| Some((end - start) as u64))?,
                b'0'..=b'9' => {
                    let (start, end) = walker.skip()?;
                    let digits = walker.slice(start, end).as_bytes();
                    (digits.len() <= 15 && digits.iter().all(u8::is_ascii_digit))
                        .then_some(digits.len() as u64)
                }
                _ => walker.skip().map(|_| None)?,
            };
            // Key, its quotes, the colon, and the comma or brace behind the value.
            total = total.zip(value).map(|(sum, value)| sum + text::units(key) + 4 + value);
            Ok(())
        })?;
        Ok(if keys.is_empty() { Some(2) } else { total })
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

/// Finds the end of the string whose first byte behind the quote is at `start`, and measures it, in one pass of 64-byte steps.
///
/// # Errors
/// No closing quote, a control character, or an escape that JSON does not have.
pub fn scan_string(bytes: &[u8], start: usize) -> Result<StringScan, ScanError> {
    let mut scan = StringScan { start, ..StringScan::default() };
    // Bytes that add no unit, less those that stand for two: continuation bytes, lead bytes of four.
    let mut surplus = 0u64;
    let mut n_unicode = 0u64;
    // Whether the byte before this block is a backslash that escapes its first byte.
    let mut carry = 0u64;
    let mut at = start;
    loop {
        let mut padded = [0x20u8; 64];
        let (block, length): ([u8; 64], usize) = match bytes.get(at..at + 64) {
            Some(block) => (block.try_into().expect("the slice has 64 bytes"), 64),
            None => {
                let rest = bytes.get(at..).unwrap_or(&[]);
                padded[..rest.len()].copy_from_slice(rest);
                (padded, rest.len())
            }
        };
        let vector = u8x64::new(block);
        let quotes = vector.simd_eq(u8x64::splat(b'"')).to_bitmask();
        let backslashes = vector.simd_eq(u8x64::splat(b'\\')).to_bitmask();
        let controls = vector.min(u8x64::splat(0x1F)).simd_eq(vector).to_bitmask();
        let high = vector.to_bitmask();
        let escaped = if backslashes == 0 {
            std::mem::take(&mut carry)
        } else {
            escaped_bytes(backslashes, &mut carry)
        };
        let closing = quotes & !escaped;
        // All bits below the closing quote; all bits if it is not in this block.
        let inside = if closing == 0 { u64::MAX } else { (1u64 << closing.trailing_zeros()) - 1 };
        if controls & inside != 0 {
            return Err(ScanError { at: at + (controls & inside).trailing_zeros() as usize });
        }
        let mut escapes = escaped & inside;
        scan.escapes += u64::from(escapes.count_ones());
        while escapes != 0 {
            let offset = escapes.trailing_zeros() as usize;
            match block[offset] {
                b'n' | b'"' | b'\\' | b't' | b'r' | b'b' | b'f' => {}
                b'/' => scan.respelled = true,
                b'u' => {
                    scan.respelled = true;
                    n_unicode += 1;
                    let hex = bytes.get(at + offset + 1..at + offset + 5).unwrap_or(&[]);
                    if hex.len() < 4 || !hex.iter().all(u8::is_ascii_hexdigit) {
                        return Err(ScanError { at: at + offset });
                    }
                }
                _ => return Err(ScanError { at: at + offset }),
            }
            escapes &= escapes - 1;
        }
        if high & inside != 0 {
            let lead = vector.max(u8x64::splat(0xC0)).simd_eq(vector).to_bitmask();
            let four = vector.max(u8x64::splat(0xF0)).simd_eq(vector).to_bitmask();
            surplus = surplus
                .wrapping_add(u64::from((high & !lead & inside).count_ones()))
                .wrapping_sub(u64::from((four & inside).count_ones()));
        }
        if closing != 0 {
            scan.end = at + closing.trailing_zeros() as usize;
            let n_bytes = (scan.end - start) as u64;
            scan.units = n_bytes.wrapping_sub(surplus) - scan.escapes - 4 * n_unicode;
            return Ok(scan);
        }
        if length < 64 {
            return Err(ScanError { at: bytes.len() });
        }
        at += 64;
    }
}

/// Bits of the bytes that a backslash before them escapes; `carry` goes from block to block.
#[inline]
fn escaped_bytes(backslashes: u64, carry: &mut u64) -> u64 {
    const ODD: u64 = 0xAAAA_AAAA_AAAA_AAAA;
    let starts = backslashes & !*carry;
    // Subtracting runs of backslashes from the odd positions behind them leaves a bit where a run has an odd length.
    let runs = ((starts << 1) | ODD).wrapping_sub(starts) ^ ODD;
    let escaped = runs ^ (backslashes | *carry);
    *carry = (runs & backslashes) >> 63;
    escaped
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

    #[track_caller]
    fn check(json: &str, n_units: u64, escapes: u64) {
        let scan = Walker::new(json).string().expect("a valid string");
        assert_eq!((scan.units, scan.escapes, scan.end), (n_units, escapes, json.len() - 1));
    }

    #[test]
    fn units_are_those_of_the_decoded_string() {
        check(r#""""#, 0, 0);
        check(r#""abc""#, 3, 0);
        check(r#""a\\""#, 2, 1);
        check(r#""\"\\\\\"""#, 4, 4);
        check(r#""日本😀\n""#, 5, 1);
        check(r#""\ud83d\ude00""#, 2, 2);
        check(r#""\ud83d""#, 1, 1);
    }

    #[test]
    fn every_offset_of_a_block_border_measures_the_same() {
        for before in 0..140 {
            for piece in [r"\\", r"\n", r"\u00e9", "é", "😀", r#"\\\""#] {
                let content = format!("{}{piece}{}", "x".repeat(before), "y".repeat(70));
                let expected = crate::text::Str::Raw(&content).units();
                let json = format!("\"{content}\"");
                let scan = Walker::new(&json).string().expect("a valid string");
                assert_eq!((scan.units, scan.end), (expected, json.len() - 1), "{before} {piece}");
            }
        }
    }

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
            assert!(walker.skip().is_err() || walker.position() < json.len(), "{json}");
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

    #[test]
    fn arguments_measure_as_javascript_prints_them() {
        for (json, expected) in [
            ("{}", Some(2)),
            (r#"{ "a" : 1 }"#, Some(7)),
            (r#"{"a":"x\n","b":true}"#, Some(20)),
            (r#"{"1":1}"#, None),
            (r#"{"a":1.0}"#, None),
            (r#"{"a":{}}"#, None),
            (r#"{"a":1,"a":2}"#, None),
        ] {
            assert_eq!(Walker::new(json).stringified_units(), Ok(expected), "{json}");
        }
    }
}

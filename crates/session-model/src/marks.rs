//! One pass over text in 64-byte steps, before anything is walked: where quotes and line ends are, and which bytes of a string
//! add no UTF-16 unit.
//!
//! The pass takes the widest instructions that the processor has, chosen when the program starts; `fearless_simd` holds the code
//! for each kind behind a safe interface, with plain code where there are none. All kinds give the same marks.

use std::sync::LazyLock;

use fearless_simd::{Level, Simd, dispatch, prelude::*, u8x16, u8x64};

static LEVEL: LazyLock<Level> = LazyLock::new(Level::new);

/// What is known of some text.
#[derive(Clone, Debug, Default)]
#[cfg_attr(test, derive(PartialEq, Eq))]
pub struct Marks {
    /// Quotes that no backslash escapes: a bit for each byte, a word for 64.
    quotes: Vec<u64>,
    /// Bytes that add no unit to a string: the character behind a backslash, the digits of `\u`, what follows the first byte of
    /// a character (but one of the bytes of those that are a surrogate pair in UTF-16).
    silent: Vec<u64>,
    /// Number of silent bytes before each word.
    silent_before: Vec<u64>,
    /// Places of LF.
    line_ends: Vec<usize>,
    /// Places that must be looked at when a string covers them: control characters, and the character behind the backslash of
    /// all escapes but the common ones.
    odd: Vec<usize>,
    /// How many of the words are of this text; those behind are of an earlier, longer one.
    n_words: usize,
}

/// What goes from one step to the next.
#[derive(Default)]
struct Carry {
    /// Whether the byte before is a backslash that escapes the first one: 0 or 1.
    escape: u64,
    /// Whether the byte before starts a character of four bytes: 0 or 1.
    four: u64,
    /// Digits of a `\u` that began before.
    digits: u64,
    n_silent: u64,
}

impl Marks {
    /// The marks of `text`.
    pub fn of(text: &str) -> Marks {
        let mut marks = Marks::default();
        marks.take(text);
        marks
    }

    /// Forgets the last text and marks this one; the memory is used again.
    pub fn take(&mut self, text: &str) {
        self.take_with(*LEVEL, text);
    }

    /// [`Marks::take`] with the instructions of a certain kind of processor.
    fn take_with(&mut self, level: Level, text: &str) {
        self.n_words = text.len().div_ceil(64);
        for words in [&mut self.quotes, &mut self.silent, &mut self.silent_before] {
            if words.len() < self.n_words {
                words.resize(self.n_words, 0);
            }
        }
        self.line_ends.clear();
        self.odd.clear();
        dispatch!(level, simd => self.pass(simd, text.as_bytes()));
    }

    /// Gives back memory that only an uncommonly long text has needed.
    pub fn shrink(&mut self, n_bytes: usize) {
        let n_words = n_bytes.div_ceil(64);
        for words in [&mut self.quotes, &mut self.silent, &mut self.silent_before] {
            words.truncate(n_words);
            words.shrink_to(n_words);
        }
        self.n_words = self.n_words.min(n_words);
    }

    /// Places of LF, in order.
    pub fn line_ends(&self) -> &[usize] {
        &self.line_ends
    }

    /// Place of the next quote that nothing escapes, at or behind `from`.
    #[inline]
    pub fn next_quote(&self, from: usize) -> Option<usize> {
        let words = self.quotes.get(..self.n_words)?;
        let mut at = from / 64;
        let mut word = words.get(at)? & (u64::MAX << (from % 64));
        while word == 0 {
            at += 1;
            word = *words.get(at)?;
        }
        Some(at * 64 + word.trailing_zeros() as usize)
    }

    /// UTF-16 units of the string whose characters stand from `start` to `end`.
    pub fn units(&self, start: usize, end: usize) -> u64 {
        (end - start) as u64 - (self.n_silent(end) - self.n_silent(start))
    }

    /// Silent bytes before `at`.
    fn n_silent(&self, at: usize) -> u64 {
        let word = at / 64;
        if word >= self.n_words {
            let Some(last) = self.n_words.checked_sub(1) else { return 0 };
            return self.silent_before[last] + u64::from(self.silent[last].count_ones());
        }
        self.silent_before[word] + u64::from((self.silent[word] & !(u64::MAX << (at % 64))).count_ones())
    }

    /// Places that need a look, in order.
    #[inline]
    pub fn odd(&self) -> &[usize] {
        &self.odd
    }

    #[inline(always)]
    fn pass<S: Simd>(&mut self, simd: S, text: &[u8]) {
        let kernel = Kernel::new(simd);
        let mut carry = Carry::default();
        let (blocks, rest) = text.as_chunks::<64>();
        let mut found = Found { text, line_ends: &mut self.line_ends, odd: &mut self.odd };
        let places = self.quotes.iter_mut().zip(&mut self.silent).zip(&mut self.silent_before);
        for ((n, block), ((quotes, silent), before)) in blocks.iter().enumerate().zip(places) {
            *before = carry.n_silent;
            (*quotes, *silent) = kernel.block(block, n * 64, &mut carry, &mut found);
        }
        if !rest.is_empty() {
            // Blanks behind the end mark nothing.
            let mut block = [b' '; 64];
            block[..rest.len()].copy_from_slice(rest);
            let last = blocks.len();
            self.silent_before[last] = carry.n_silent;
            (self.quotes[last], self.silent[last]) = kernel.block(&block, last * 64, &mut carry, &mut found);
        }
    }
}

/// The lists that a pass fills.
struct Found<'m> {
    text: &'m [u8],
    line_ends: &'m mut Vec<usize>,
    odd: &'m mut Vec<usize>,
}

impl Found<'_> {
    /// Takes the places of a block that are no common text; gives the bits of the digits of `\u`, and of those in the next
    /// block.
    #[inline(never)]
    fn take(&mut self, block: &[u8; 64], at: usize, mut places: u64, unusual_escapes: u64) -> (u64, u64) {
        let (mut digits, mut digits_behind) = (0, 0);
        while places != 0 {
            let offset = places.trailing_zeros();
            places &= places - 1;
            let place = at + offset as usize;
            let byte = block[offset as usize];
            if byte == b'\n' {
                self.line_ends.push(place);
                continue;
            }
            self.odd.push(place);
            if byte == b'u' && unusual_escapes >> offset & 1 == 1 && has_digits(self.text, place) {
                let behind = u128::from(0b1111u8) << (offset + 1);
                digits |= behind as u64;
                digits_behind |= (behind >> 64) as u64;
            }
        }
        (digits, digits_behind)
    }
}

/// Whether four hexadecimal digits follow the `u` at `at`.
pub(crate) fn has_digits(text: &[u8], at: usize) -> bool {
    text.get(at + 1..at + 5).is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
}

/// The constants of the pass, in registers.
struct Kernel<S: Simd> {
    simd: S,
    quote: u8x64<S>,
    backslash: u8x64<S>,
    /// For each low half of a byte: which high halves make it the letter of a common escape, as a bit.
    low_halves: u8x64<S>,
    /// For each high half its bit.
    high_halves: u8x64<S>,
    half: u8x64<S>,
    zero: u8x64<S>,
}

impl<S: Simd> Kernel<S> {
    #[inline(always)]
    fn new(simd: S) -> Self {
        // The letters are " \ b f n r t: 22 5C 62 66 6E 72 74.
        let (mut low, mut high) = ([0u8; 16], [0u8; 16]);
        (high[0x2], high[0x5], high[0x6], high[0x7]) = (1, 2, 4, 8);
        (low[0x2], low[0xC], low[0x6], low[0xE], low[0x4]) = (1 | 4 | 8, 2, 4, 4, 8);
        Kernel {
            simd,
            quote: u8x64::splat(simd, b'"'),
            backslash: u8x64::splat(simd, b'\\'),
            low_halves: u8x64::block_splat(u8x16::from_slice(simd, &low)),
            high_halves: u8x64::block_splat(u8x16::from_slice(simd, &high)),
            half: u8x64::splat(simd, 0x0F),
            zero: u8x64::splat(simd, 0),
        }
    }

    /// Quotes and silent bytes of the block that starts at `at`.
    #[inline(always)]
    fn block(&self, block: &[u8; 64], at: usize, carry: &mut Carry, found: &mut Found<'_>) -> (u64, u64) {
        let simd = self.simd;
        let bytes = u8x64::from_slice(simd, block);
        let signed: fearless_simd::i8x64<S> = bytes.bitcast();
        let quotes = bytes.simd_eq(self.quote).to_bitmask();
        let backslashes = bytes.simd_eq(self.backslash).to_bitmask();
        // Bytes from 80 on are negative: one comparison finds them and the control characters.
        let rare = signed.simd_lt(0x20).to_bitmask();
        let low = self.low_halves.swizzle_dyn_within_blocks(bytes & self.half);
        let high = self.high_halves.swizzle_dyn_within_blocks((bytes >> 4) & self.half);
        let common = (low & high).simd_gt(self.zero).to_bitmask();

        let escaped = escaped_bytes(backslashes, &mut carry.escape);
        let unusual = escaped & !common;
        let mut silent = escaped | carry.digits;
        carry.digits = 0;
        if rare | unusual != 0 {
            let high = signed.simd_lt(0).to_bitmask();
            if high != 0 {
                let continuation = signed.simd_lt(-0x40).to_bitmask();
                let four = bytes.simd_ge(0xF0).to_bitmask();
                silent |= continuation & !(four << 1 | carry.four);
                carry.four = four >> 63;
            }
            let places = rare & !high | unusual;
            if places != 0 {
                let (digits, behind) = found.take(block, at, places, unusual);
                silent |= digits;
                carry.digits = behind;
            }
        }
        carry.n_silent += u64::from(silent.count_ones());
        (quotes & !escaped, silent)
    }
}

/// Bits of the bytes that a backslash before them escapes; `carry` goes from block to block.
#[inline(always)]
pub(crate) fn escaped_bytes(backslashes: u64, carry: &mut u64) -> u64 {
    const ODD: u64 = 0xAAAA_AAAA_AAAA_AAAA;
    let starts = backslashes & !*carry;
    // Subtracting runs of backslashes from the odd positions behind them leaves a bit where a run has an odd length.
    let runs = ((starts << 1) | ODD).wrapping_sub(starts) ^ ODD;
    let escaped = runs ^ (backslashes | *carry);
    *carry = (runs & backslashes) >> 63;
    escaped
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Every kind of instructions that this processor has, and the plain code.
    fn levels() -> Vec<(&'static str, Level)> {
        let mut levels = vec![("baseline", Level::baseline()), ("best", *LEVEL)];
        #[cfg(target_arch = "x86_64")]
        {
            let best = *LEVEL;
            levels.extend(best.as_sse2().map(|it| ("sse2", Level::Sse2(it))));
            levels.extend(best.as_sse4_2().map(|it| ("sse4.2", Level::Sse4_2(it))));
            levels.extend(best.as_avx2().map(|it| ("avx2", Level::Avx2(it))));
            levels.extend(best.as_avx512().map(|it| ("avx512", Level::Avx512(it))));
        }
        levels
    }

    /// The marks, byte by byte: what the pass must give. It takes blanks behind the end, up to the next whole word.
    fn plain(text: &str) -> Marks {
        let padded = format!("{text}{}", " ".repeat(text.len().next_multiple_of(64) - text.len()));
        let bytes = padded.as_bytes();
        let n_words = bytes.len().div_ceil(64);
        let mut marks = Marks { n_words, ..Marks::default() };
        marks.quotes.resize(n_words, 0);
        marks.silent.resize(n_words, 0);
        let set = |words: &mut Vec<u64>, at: usize| words[at / 64] |= 1 << (at % 64);
        let mut escaped = false;
        for (at, &byte) in bytes.iter().enumerate() {
            let is_escaped = escaped;
            escaped = byte == b'\\' && !is_escaped;
            if byte == b'\n' {
                marks.line_ends.push(at);
            } else if byte < b' ' || is_escaped && !b"\"\\bfnrt".contains(&byte) {
                marks.odd.push(at);
            }
            if byte == b'"' && !is_escaped {
                set(&mut marks.quotes, at);
            }
            let follows_four = at > 0 && bytes[at - 1] >= 0xF0;
            if is_escaped || byte & 0xC0 == 0x80 && !follows_four {
                set(&mut marks.silent, at);
            }
            if is_escaped && byte == b'u' && has_digits(text.as_bytes(), at) {
                (at + 1..at + 5).for_each(|digit| set(&mut marks.silent, digit));
            }
        }
        let counts = marks.silent.iter().map(|word| u64::from(word.count_ones()));
        marks.silent_before =
            counts.scan(0, |sum, count| Some(std::mem::replace(sum, *sum + count))).collect();
        marks
    }

    #[track_caller]
    fn check(text: &str) {
        let expected = plain(text);
        for (name, level) in levels() {
            let mut marks = Marks::default();
            marks.take_with(level, text);
            assert_eq!(marks, expected, "{name}: {text:?}");
        }
    }

    #[test]
    fn all_kinds_of_instructions_mark_alike_at_every_offset() {
        for piece in [
            "\"", "\\\\", "\\\"", "\\\\\"", "\\n", "\\u12ab", "\\q", "é", "日", "😀", "\n", "\u{1}", "\u{7f}",
        ] {
            for before in 0..70 {
                check(&format!("{}{piece}{}", " ".repeat(before), "x".repeat(before)));
            }
            check(&piece.repeat(100));
        }
        check("");
    }

    #[test]
    fn a_text_behind_a_longer_one_is_marked_as_if_it_were_the_first() {
        let mut marks = Marks::of(&"\"\\u1234é\n".repeat(100));
        marks.take("\"a\"");
        assert_eq!((marks.next_quote(1), marks.next_quote(3), marks.units(1, 2)), (Some(2), None, 1));
        assert_eq!((marks.line_ends(), marks.odd()), (&[][..], &[][..]));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]

        #[test]
        fn all_kinds_of_instructions_mark_alike(text in r#"([ -~]{0,40}|[\\"u/nté日😀\n\x01-\x1f]{0,40}){0,8}"#) {
            check(&text);
        }
    }

    #[test]
    fn millions_of_random_texts_are_marked_alike() {
        const PIECES: [&str; 16] = [
            "\"",
            "\\",
            "\\\\",
            "\\\"",
            "\\n",
            "\\u",
            "00e9",
            "a",
            "plain text ",
            "é",
            "日",
            "😀",
            "\n",
            "\u{1}",
            "/",
            "\\q",
        ];
        let levels = levels();
        let mut marks: Vec<Marks> = vec![Marks::default(); levels.len()];
        let mut state = 0x2545_F491_4F6C_DD1D_u64;
        let mut text = String::new();
        for _ in 0..2_000_000 / levels.len() {
            text.clear();
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let mut bits = state;
            while bits != 0 {
                text.push_str(PIECES[(bits & 15) as usize]);
                bits >>= 4;
            }
            for ((_, level), marks) in levels.iter().zip(&mut marks) {
                marks.take_with(*level, &text);
            }
            let seen = |marks: &Marks| {
                let n = marks.n_words;
                let words = [&marks.quotes[..n], &marks.silent[..n], &marks.silent_before[..n]].concat();
                (words, marks.line_ends.clone(), marks.odd.clone())
            };
            let first = seen(&marks[0]);
            assert!(marks.iter().all(|marks| seen(marks) == first), "{text:?}");
        }
    }
}

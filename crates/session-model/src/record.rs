//! Bytes → lines → records: splits on LF, finds several records on one line, and the next whole one behind a torn one (spec 1.1).

use memchr::{memchr, memrchr};

use crate::error::{Problem, ProblemKind};
use crate::marks::Marks;
use crate::scan::{ScanError, Walker, next_object};
use crate::strings::Marked;

/// Where a record stands in its file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// Line, from 1.
    pub line: u64,
    /// Offset of the first byte.
    pub offset: u64,
    /// Length in bytes, without line end.
    pub len: u64,
}

/// A line of text with its marks.
#[derive(Clone, Copy, Debug)]
pub struct Line<'a> {
    /// The line, without its end.
    pub text: &'a str,
    /// Marks of the line, or of a text that it is a part of.
    marks: &'a Marks,
    /// Where the line starts in that text.
    base: usize,
}

impl<'a> Line<'a> {
    /// A line that is all of the text that was marked.
    pub fn new(text: &'a str, marks: &'a Marks) -> Self {
        Line { text, marks, base: 0 }
    }

    /// Walks over the line from byte `at` on.
    pub fn walker(&self, at: usize) -> Walker<'a, Marked<'a>> {
        Walker::marked(self.text, at, self.marks, self.base)
    }
}

/// Takes the records of a file, one after the other.
pub trait RecordSink {
    /// Reads one object of `line` from byte `at` on and returns the offset behind it. With `recovered`, only an object that
    /// can be an entry is taken. `locate` turns offsets of the line into the place in the file.
    ///
    /// # Errors
    /// Where the object stops being one.
    fn record(
        &mut self,
        line: Line<'_>,
        at: usize,
        recovered: bool,
        locate: &dyn Fn(usize, usize) -> Span,
    ) -> Result<usize, ScanError>;

    /// Takes a problem of the line.
    fn problem(&mut self, problem: Problem);
}

/// Cuts chunks of a file into lines and hands their records on.
#[derive(Debug, Default)]
pub struct LineReader {
    /// The start of a line whose end has not come yet.
    carry: Vec<u8>,
    /// Offset of the next byte that is not in `carry`.
    offset: u64,
    /// Lines that are finished.
    n_lines: u64,
    marks: Marks,
}

/// How many bytes of whole lines are marked at once: they and their marks shall stay in the nearest caches until they are walked.
const REGION: usize = 128 << 10;

/// Bytes that are kept for the next long line.
const KEPT: usize = 1 << 20;

impl LineReader {
    /// Takes the next chunk of the file.
    pub fn push(&mut self, chunk: &[u8], sink: &mut impl RecordSink) {
        let mut rest = chunk;
        if !self.carry.is_empty() {
            let Some(end) = memchr(b'\n', rest) else { return self.carry(rest) };
            self.carry(&rest[..=end]);
            rest = &rest[end + 1..];
            let mut carry = std::mem::take(&mut self.carry);
            self.region(&carry, self.offset - carry.len() as u64, sink);
            carry.clear();
            // One huge line must not be paid for until the end.
            carry.shrink_to(KEPT);
            self.marks.shrink(KEPT);
            self.carry = carry;
        }
        while !rest.is_empty() {
            let last = match memrchr(b'\n', &rest[..rest.len().min(REGION)]) {
                Some(last) => last,
                None => match memchr(b'\n', rest) {
                    Some(end) => end,
                    None => return self.carry(rest),
                },
            };
            let (region, behind) = rest.split_at(last + 1);
            self.region(region, self.offset, sink);
            self.offset += region.len() as u64;
            rest = behind;
        }
    }

    fn carry(&mut self, bytes: &[u8]) {
        self.carry.extend_from_slice(bytes);
        self.offset += bytes.len() as u64;
    }

    /// Takes whole lines that start at `offset` of the file; the last byte is an LF.
    fn region(&mut self, region: &[u8], offset: u64, sink: &mut impl RecordSink) {
        let mut start = 0;
        if let Ok(text) = simdutf8::basic::from_utf8(region) {
            self.marks.take(text);
            for &end in self.marks.line_ends() {
                self.n_lines += 1;
                let place = Place { line: self.n_lines, offset: offset + start as u64, is_last: false };
                read_line(Line { text: &text[start..end], marks: &self.marks, base: start }, place, sink);
                start = end + 1;
            }
            return;
        }
        for end in memchr::memchr_iter(b'\n', region) {
            self.n_lines += 1;
            let place = Place { line: self.n_lines, offset: offset + start as u64, is_last: false };
            self.lone_line(&region[start..end], place, sink);
            start = end + 1;
        }
    }

    /// Takes a line that is in no text of several lines.
    fn lone_line(&mut self, bytes: &[u8], place: Place, sink: &mut impl RecordSink) {
        match simdutf8::basic::from_utf8(bytes) {
            Ok(text) => {
                self.marks.take(text);
                read_line(Line::new(text, &self.marks), place, sink);
            }
            Err(_) => self.lossy_line(bytes, place, sink),
        }
    }

    /// Takes what stands behind the last LF.
    pub fn finish(&mut self, sink: &mut impl RecordSink) {
        if !self.carry.is_empty() {
            let carry = std::mem::take(&mut self.carry);
            self.n_lines += 1;
            let place = Place { line: self.n_lines, offset: self.offset - carry.len() as u64, is_last: true };
            self.lone_line(&carry, place, sink);
        }
    }

    /// Lines seen so far.
    pub fn n_lines(&self) -> u64 {
        self.n_lines
    }

    /// Bytes seen so far.
    pub fn n_bytes(&self) -> u64 {
        self.offset
    }
}

/// How many times the length of a line may be walked in search of whole records behind torn ones. Torn lines are short of
/// candidates in practice; a hostile one must not cost the square of its length.
const SEARCH_FACTOR: usize = 16;

/// Where a line stands in its file.
#[derive(Clone, Copy)]
struct Place {
    /// Its number, from 1.
    line: u64,
    /// Offset of its first byte.
    offset: u64,
    /// Whether no LF ends it.
    is_last: bool,
}

const BOM: &str = "\u{FEFF}";

impl LineReader {
    /// Takes a line with bytes that are no UTF-8: they are read as U+FFFD, and places are found again in the bytes.
    fn lossy_line(&mut self, bytes: &[u8], place: Place, sink: &mut impl RecordSink) {
        let has_bom = place.line == 1 && bytes.starts_with(BOM.as_bytes());
        let (bytes, offset) = match has_bom {
            true => (&bytes[BOM.len()..], place.offset + BOM.len() as u64),
            false => (bytes, place.offset),
        };
        let at = std::str::from_utf8(bytes).map_or_else(|error| error.valid_up_to(), str::len) as u64;
        let kind = ProblemKind::InvalidUtf8;
        sink.problem(Problem { kind, line: place.line, offset: offset + at, entry: None, unreachable: 0 });
        let text = String::from_utf8_lossy(bytes);
        self.marks.take(&text);
        let original = |at: usize| original_offset(bytes, at);
        read_records(Line::new(&text, &self.marks), Place { offset, ..place }, &original, sink);
    }
}

fn read_line(line: Line<'_>, place: Place, sink: &mut impl RecordSink) {
    let n_passed = if place.line == 1 && line.text.starts_with(BOM) { BOM.len() } else { 0 };
    let line = Line { text: &line.text[n_passed..], base: line.base + n_passed, ..line };
    let place = Place { offset: place.offset + n_passed as u64, ..place };
    read_records(line, place, &|at| at, sink);
}

/// Takes the records of a line; `original` turns offsets of its text into those of its bytes.
#[inline]
fn read_records(
    line: Line<'_>,
    place: Place,
    original: &impl Fn(usize) -> usize,
    sink: &mut impl RecordSink,
) {
    let Place { line: number, offset, is_last } = place;
    let text = line.text;
    let problem =
        |kind, at: u64| Problem { kind, line: number, offset: offset + at, entry: None, unreachable: 0 };
    let locate = |start: usize, end: usize| {
        let (start, end) = (original(start), original(end));
        Span { line: number, offset: offset + start as u64, len: (end - start) as u64 }
    };

    let mut at = 0;
    let mut n_records = 0;
    let mut budget = text.len().saturating_mul(SEARCH_FACTOR) + (1 << 16);
    let mut glued = false;
    loop {
        at += blank(&text[at..]);
        if at == text.len() {
            return;
        }
        if n_records > 0 && !glued {
            glued = true;
            sink.problem(problem(ProblemKind::GluedRecords, original(at) as u64));
        }
        let failure = if text.as_bytes()[at] == b'{' {
            match sink.record(line, at, false, &locate) {
                Ok(end) => {
                    n_records += 1;
                    at = end;
                    continue;
                }
                Err(error) => error,
            }
        } else {
            ScanError { at }
        };
        // Broken from here on: look for the next object that is a record.
        let torn = at;
        let mut candidate = at;
        let found = loop {
            let Some(next) = next_object(text.as_bytes(), candidate + 1) else { break None };
            candidate = next;
            match sink.record(line, candidate, true, &locate) {
                Ok(end) => break Some(end),
                Err(error) => {
                    let cost = error.at.saturating_sub(candidate) + 1;
                    if cost > budget {
                        break None;
                    }
                    budget -= cost;
                }
            }
        };
        let kind = match found {
            _ if text[torn..].starts_with('\0') => ProblemKind::NulRun,
            Some(_) => ProblemKind::TornRecord,
            None if is_last && failure.at >= text.len() && text.as_bytes()[torn] == b'{' => {
                ProblemKind::TornTail
            }
            None => ProblemKind::Junk,
        };
        sink.problem(problem(kind, original(torn) as u64));
        match found {
            Some(end) => {
                n_records += 1;
                glued = true;
                at = end;
            }
            None => return,
        }
    }
}

/// Length of the white space, carriage returns included, at the start of `text`.
fn blank(text: &str) -> usize {
    text.bytes().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\r')).count()
}

/// The offset in `bytes` of what stands at `lossy` in their lossy decoding.
pub(crate) fn original_offset(bytes: &[u8], lossy: usize) -> usize {
    let (mut seen, mut original) = (0, 0);
    for chunk in bytes.utf8_chunks() {
        if lossy <= seen + chunk.valid().len() {
            return original + lossy - seen;
        }
        seen += chunk.valid().len();
        original += chunk.valid().len();
        if !chunk.invalid().is_empty() {
            seen += '\u{FFFD}'.len_utf8();
            original += chunk.invalid().len();
        }
    }
    original
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Seen(Vec<String>);

    impl RecordSink for Seen {
        fn record(
            &mut self,
            line: Line<'_>,
            at: usize,
            recovered: bool,
            locate: &dyn Fn(usize, usize) -> Span,
        ) -> Result<usize, ScanError> {
            let (text, mut walker) = (line.text, line.walker(at));
            let (start, end) = walker.skip()?;
            if recovered && !text[start..end].contains("\"type\"") {
                return Err(ScanError { at: end });
            }
            let span = locate(start, end);
            self.0.push(format!("{}@{}+{} {}", span.line, span.offset, span.len, &text[start..end]));
            Ok(end)
        }

        fn problem(&mut self, problem: Problem) {
            self.0.push(format!("{}@{} {}", problem.line, problem.offset, problem.kind.name()));
        }
    }

    #[track_caller]
    fn check(file: &[u8], expected: &[&str]) {
        for size in [1, 3, 7, file.len().max(1)] {
            let (mut reader, mut seen) = (LineReader::default(), Seen::default());
            file.chunks(size).for_each(|chunk| reader.push(chunk, &mut seen));
            reader.finish(&mut seen);
            assert_eq!(seen.0, expected, "chunks of {size}");
            assert_eq!(reader.n_bytes(), file.len() as u64);
        }
    }

    #[test]
    fn lines_end_at_lf_only() {
        check(
            b"\xEF\xBB\xBF{\"a\":1}\r\n\r\n  \n{\"b\":\"\xE2\x80\xA8\"}",
            &["1@3+7 {\"a\":1}", "4@17+11 {\"b\":\"\u{2028}\"}"],
        );
    }

    #[test]
    fn several_records_on_a_line_are_all_read() {
        check(
            b"{\"type\":\"a}{\"}{\"type\":2}  {\"type\":3}\n{}",
            &[
                "1@0+14 {\"type\":\"a}{\"}",
                "1@14 glued_records",
                "1@14+10 {\"type\":2}",
                "1@26+10 {\"type\":3}",
                "2@37+2 {}",
            ],
        );
    }

    #[test]
    fn a_record_behind_a_torn_one_is_read() {
        check(
            b"{\"type\":\"x\",\"t\":\"ab{\"type\":\"y\"}\n",
            &["1@19+12 {\"type\":\"y\"}", "1@0 torn_record"],
        );
        check(b"{\"c\":[{\"q\":1},{\"type\":\"y\"}\n", &["1@14+12 {\"type\":\"y\"}", "1@0 torn_record"]);
    }

    #[test]
    fn what_cannot_be_read_is_a_problem_and_no_more() {
        check(
            b"\0\0\0\n{\"a\":1}\nnonsense\n{\"a\"",
            &["1@0 nul_run", "2@4+7 {\"a\":1}", "3@12 junk", "4@21 torn_tail"],
        );
        check(b"\0\0{\"type\":1}\n", &["1@2+10 {\"type\":1}", "1@0 nul_run"]);
    }

    #[test]
    fn invalid_utf8_is_read_as_replacements_and_located_in_the_file() {
        check(
            b"{\"type\":\"\xFF\xFE\"}{\"type\":1}\n",
            &[
                "1@9 invalid_utf8",
                "1@0+13 {\"type\":\"\u{FFFD}\u{FFFD}\"}",
                "1@13 glued_records",
                "1@13+10 {\"type\":1}",
            ],
        );
    }

    #[test]
    fn a_hostile_line_costs_no_square() {
        let line = "{\"type\":".repeat(100_000);
        check_quickly(line.as_bytes());
        let line = "{\"a\":\"{\"".repeat(100_000);
        check_quickly(line.as_bytes());
    }

    fn check_quickly(file: &[u8]) {
        let (mut reader, mut seen) = (LineReader::default(), Seen::default());
        reader.push(file, &mut seen);
        reader.finish(&mut seen);
        assert_eq!(seen.0.len(), 1);
    }
}

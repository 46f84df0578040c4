//! One record a line, and nothing else: torn pieces, junk and second headers go aside (spec 1.1).

use std::borrow::Cow;
use std::ops::Range;

use super::header::quoted;
use super::{Draft, StepKind};
use crate::edit::{FieldChange, change_bytes};
use crate::entry::Stamp;
use crate::error::{NotASession, Problem};
use crate::reader::TITLE_SLOT_BYTES;
use crate::record::{Line, LineReader, RecordSink, Span};
use crate::scan::{ScanError, Walker};
use crate::text::Str;
use crate::value::Value;

/// A record, and what says whether it may stay.
pub(super) struct Listed {
    pub(super) span: Span,
    /// Its type; empty without one.
    pub(super) kind: String,
    pub(super) has_id: bool,
    pub(super) has_time: bool,
    has_parent: bool,
}

impl Listed {
    pub(super) fn range(&self) -> Range<usize> {
        self.span.offset as usize..(self.span.offset + self.span.len) as usize
    }
}

/// All records of a file, as reading finds them.
pub(super) fn listed(bytes: &[u8]) -> Vec<Listed> {
    let (mut reader, mut list) = (LineReader::default(), List(Vec::new()));
    for chunk in bytes.chunks(1 << 20) {
        reader.push(chunk, &mut list);
    }
    reader.finish(&mut list);
    list.0
}

struct List(Vec<Listed>);

impl RecordSink for List {
    fn record(
        &mut self,
        line: Line<'_>,
        at: usize,
        recovered: bool,
        locate: &dyn Fn(usize, usize) -> Span,
    ) -> Result<usize, ScanError> {
        let mut walker = line.walker(at);
        let (mut kind, mut has_id, mut has_time, mut has_parent) = (None, false, false, false);
        walker.object(|walker, key| {
            match key {
                "type" => kind = walker.string_or_skip()?.map(|scan| walker.raw(&scan)),
                "id" => has_id = walker.string_or_skip()?.is_some(),
                "timestamp" => has_time = walker.string_or_skip()?.is_some(),
                "parentId" => {
                    walker.skip()?;
                    has_parent = true;
                }
                _ => {
                    walker.skip()?;
                }
            }
            Ok(())
        })?;
        let end = walker.position();
        if recovered && (kind.is_none() || !has_time && !has_parent) {
            return Err(ScanError { at: end });
        }
        let kind = kind.map_or(String::new(), |kind| Str::Raw(kind).text().into_owned());
        self.0.push(Listed { span: locate(at, end), kind, has_id, has_time, has_parent });
        Ok(end)
    }

    fn problem(&mut self, _: Problem) {
        // What is between the records is what is wrong.
    }
}

/// Writes the lines of a draft anew, if one of them needs it.
pub(super) fn repair(draft: &mut Draft<'_>) -> Result<(), NotASession> {
    let session = draft.session()?;
    let bytes = std::mem::take(&mut draft.bytes);
    let records = listed(&bytes);
    let mut out = Lines {
        draft,
        bytes: &bytes,
        made: None,
        made_origins: Vec::new(),
        header: session.header.span,
        slot_is_late: records.first().is_some_and(|it| it.kind == "title" && it.span.offset > 0),
        has_header: false,
        last_id: None,
        taken: |id: &str| session.has_id(id),
    };
    let mut start = 0;
    let mut rest = &records[..];
    let mut line = 0;
    while start < bytes.len() {
        line += 1;
        let end = memchr::memchr(b'\n', &bytes[start..]).map_or(bytes.len(), |lf| start + lf + 1);
        let n_here = rest.iter().take_while(|record| (record.span.offset as usize) < end).count();
        let (here, later) = rest.split_at(n_here);
        out.line(line, start..end, here);
        (start, rest) = (end, later);
    }
    if let Some(made) = out.made.take() {
        let origins = std::mem::take(&mut out.made_origins);
        draft.bytes = Cow::Owned(made);
        draft.origins = Some(origins);
    } else {
        draft.bytes = bytes;
    }
    Ok(())
}

struct Lines<'d, 'a, 'b, F> {
    draft: &'d mut Draft<'b>,
    bytes: &'a [u8],
    /// The new bytes, as soon as a line differs.
    made: Option<Vec<u8>>,
    made_origins: Vec<u64>,
    header: Span,
    has_header: bool,
    /// Whether blank lines stand before the title slot.
    slot_is_late: bool,
    /// The id of the last entry that stays.
    last_id: Option<String>,
    taken: F,
}

/// What becomes of a record.
enum Fate {
    Stays,
    Becomes(Vec<u8>),
    GoesAside,
}

impl<F: Fn(&str) -> bool> Lines<'_, '_, '_, F> {
    fn line(&mut self, line: u64, range: Range<usize>, records: &[Listed]) {
        let bytes = self.bytes;
        let mut gaps = Vec::new();
        let mut at = range.start;
        for record in records {
            gaps.push(at..record.range().start);
            at = record.range().end;
        }
        gaps.push(at..range.end);
        let is_clean = records.len() <= 1 && gaps.iter().all(|gap| is_blank(&bytes[gap.clone()]));
        match records {
            // The slot must be the very first.
            [] if is_clean && self.slot_is_late && !self.has_header => return self.begin(line, range.start),
            [] if is_clean => return self.keep(line, range),
            [record] if is_clean => return self.alone(line, range, record),
            _ => {}
        }
        self.begin(line, range.start);
        for (gap, record) in gaps.iter().zip(records.iter().map(Some).chain([None])) {
            if !is_blank(&bytes[gap.clone()]) {
                let piece = bytes[gap.clone()].trim_ascii();
                self.draft.set_aside(piece);
                self.draft.step(StepKind::SetAside, line, None);
            }
            let Some(record) = record else { continue };
            match self.fate(line, record) {
                Fate::GoesAside => {
                    self.draft.set_aside(&bytes[record.range()]);
                    self.draft.step(StepKind::SetAside, line, None);
                }
                fate => {
                    let text = match fate {
                        Fate::Becomes(text) => Cow::Owned(text),
                        _ => Cow::Borrowed(&bytes[record.range()]),
                    };
                    self.draft.step(StepKind::OwnLine, line, id_of(&text).as_deref());
                    let origin = self.draft.origin(line);
                    let made = self.made.as_mut().expect("begun above");
                    made.extend_from_slice(&text);
                    made.push(b'\n');
                    self.made_origins.push(origin);
                }
            }
        }
    }

    /// A record that has its line for itself already.
    fn alone(&mut self, line: u64, range: Range<usize>, record: &Listed) {
        let fate = self.fate(line, record);
        let origin = self.draft.origin(line);
        match fate {
            Fate::Stays => self.keep(line, range),
            Fate::Becomes(text) => {
                self.begin(line, range.start);
                let made = self.made.as_mut().expect("begun above");
                made.extend_from_slice(&self.bytes[range.start..record.range().start]);
                made.extend_from_slice(&text);
                made.extend_from_slice(&self.bytes[record.range().end..range.end]);
                self.made_origins.push(origin);
            }
            Fate::GoesAside => {
                self.begin(line, range.start);
                self.draft.set_aside(&self.bytes[record.range()]);
                self.draft.step(StepKind::SetAside, line, None);
            }
        }
    }

    /// Copies a line as it is.
    fn keep(&mut self, line: u64, range: Range<usize>) {
        if let Some(made) = &mut self.made {
            made.extend_from_slice(&self.bytes[range]);
            self.made_origins.push(self.draft.origin(line));
        }
    }

    /// From here on the bytes differ.
    fn begin(&mut self, line: u64, start: usize) {
        if self.made.is_none() {
            let mut made = Vec::with_capacity(self.bytes.len() + 256);
            made.extend_from_slice(&self.bytes[..start]);
            self.made = Some(made);
            self.made_origins = (1..line).map(|line| self.draft.origin(line)).collect();
        }
    }

    /// What becomes of a record. A change of it is noted, its going aside is not.
    fn fate(&mut self, line: u64, record: &Listed) -> Fate {
        let bytes = &self.bytes[record.range()];
        if record.span.offset == self.header.offset {
            self.has_header = true;
            return self.made_utf8(line, bytes);
        }
        if !self.has_header {
            // Before the header only the slot may stand.
            return if record.kind == "title" { self.slot(line, record) } else { Fate::GoesAside };
        }
        if matches!(record.kind.as_str(), "session" | "title") || record.kind.is_empty() && !record.has_id {
            return Fate::GoesAside;
        }
        if record.has_id {
            self.last_id = id_of(bytes);
            return self.made_utf8(line, bytes);
        }
        let stamp = Stamp::new(bytes, 0, &self.taken);
        let (id, parent) = (quoted(&stamp.id), self.last_id.as_deref().map_or("null".to_owned(), quoted));
        let mut edits = vec![(&["id"][..], FieldChange::Set(id.as_str()))];
        if !record.has_parent {
            edits.push((&["parentId"], FieldChange::Set(&parent)));
        }
        let Ok(changed) = change_bytes(bytes, &edits) else { return Fate::GoesAside };
        self.draft.step(StepKind::IdGiven, line, Some(&stamp.id));
        self.last_id = Some(stamp.id);
        match self.made_utf8(line, &changed) {
            Fate::Stays => Fate::Becomes(changed),
            other => other,
        }
    }

    fn made_utf8(&mut self, line: u64, bytes: &[u8]) -> Fate {
        if simdutf8::basic::from_utf8(bytes).is_ok() {
            return Fate::Stays;
        }
        self.draft.set_aside(bytes);
        self.draft.step(StepKind::MadeUtf8, line, id_of(bytes).as_deref());
        Fate::Becomes(String::from_utf8_lossy(bytes).into_owned().into_bytes())
    }

    /// The title slot with the width that it must have; one whose title is too long is cut.
    fn slot(&mut self, line: u64, record: &Listed) -> Fate {
        let width = TITLE_SLOT_BYTES as usize - 1;
        let bytes = &self.bytes[record.range()];
        let text = String::from_utf8_lossy(bytes);
        if text.len() == width && matches!(text, Cow::Borrowed(_)) && record.span.offset == 0 {
            return Fate::Stays;
        }
        let Ok(value) = Value::parse(&text) else { return Fate::GoesAside };
        let mut title = value.text("title").unwrap_or_default().into_owned();
        loop {
            let title_json = quoted(&title);
            let fields =
                [(&["title"][..], FieldChange::Set(&title_json)), (&["pad"][..], FieldChange::Set("\"\""))];
            let Ok(bare) = change_bytes(text.as_bytes(), &fields) else { return Fate::GoesAside };
            if let Some(missing) = width.checked_sub(bare.len()) {
                let pad = quoted(&" ".repeat(missing));
                let padded = change_bytes(&bare, &[(&["pad"], FieldChange::Set(&pad))]);
                self.draft.step(StepKind::SlotPadded, line, None);
                return padded.map_or(Fate::GoesAside, Fate::Becomes);
            }
            if title.pop().is_none() {
                return Fate::GoesAside;
            }
        }
    }
}

fn is_blank(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n'))
}

/// The id of a record, decoded.
fn id_of(record: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(record);
    let mut id = None;
    let walk = Walker::new(&text).object(|walker, key| {
        if key == "id" {
            id = walker.string_or_skip()?.map(|scan| Str::Raw(walker.raw(&scan)).text().into_owned());
        } else {
            walker.skip()?;
        }
        Ok(())
    });
    walk.ok().and(id)
}

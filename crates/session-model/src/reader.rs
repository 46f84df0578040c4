//! The reading pass: takes a file in chunks and keeps what planning needs, no content.

use std::sync::Arc;

use crate::dialect::Dialect;
use crate::entry::{
    CompactionFacts, ContextEditFacts, Entry, EntryKind, EntryNo, Facts, Header, Parent, SummaryFacts,
};
use crate::error::{NotASession, Problem, ProblemKind, RecordError};
use crate::marks::Marks;
use crate::message::Role;
use crate::message_scan::{MessageScan, calls_in, scan_message};
use crate::migrate;
use crate::names::NameSet;
use crate::pieces::content_pieces;
use crate::record::{Line, LineReader, RecordSink, Span};
use crate::scan::ScanError;
use crate::session::{NO_ENTRY, Session};
use crate::text::Str;
use crate::time::parse_iso;
use crate::tokens::Tokenizer;
use crate::value::Value;

/// Width of a title slot with its LF (spec 1.2).
pub const TITLE_SLOT_BYTES: u64 = 256;

/// Reads a session from chunks of its file, however they are cut.
#[derive(Debug)]
pub struct SessionReader {
    lines: LineReader,
    records: RecordReader,
}

#[derive(Debug, Default)]
struct RecordReader {
    tokenizer: Tokenizer,
    header: Option<Header>,
    title_slot: Option<String>,
    n_objects: u64,
    refused: Option<String>,
    dialect: Option<Dialect>,
    /// Their parents are given by name, until all entries are known.
    entries: Vec<Entry>,
    /// For files of version 1: the kept index of each compaction.
    kept_indexes: Vec<(EntryNo, Option<f64>)>,
    /// For files of version 1: the indexes of the objects that are no entries, in order.
    no_entries: Vec<usize>,
    names: NameSet,
    problems: Vec<Problem>,
    recovered: Vec<Span>,
    last_on_line: Span,
}

impl SessionReader {
    /// Starts at the first byte of a file.
    pub fn new(tokenizer: Tokenizer) -> Self {
        SessionReader {
            lines: LineReader::default(),
            records: RecordReader { tokenizer, ..RecordReader::default() },
        }
    }

    /// Takes the next chunk.
    pub fn push(&mut self, chunk: &[u8]) {
        if !self.is_refused() {
            self.lines.push(chunk, &mut self.records);
        }
    }

    /// Whether it is clear already that this is no session, so that the rest of the file need not be read.
    pub fn is_refused(&self) -> bool {
        self.records.refused.is_some()
    }

    /// Ends the file and links the entries.
    ///
    /// # Errors
    /// [`NotASession`] if there was no valid header among the first two objects.
    pub fn finish(mut self) -> Result<(Session, Vec<Problem>), NotASession> {
        if !self.is_refused() {
            self.lines.finish(&mut self.records);
        }
        let n_bytes = self.lines.n_bytes();
        self.records.finish(n_bytes, self.lines.n_lines())
    }
}

/// `session` with more records (see [`Session::with_records`]).
pub(crate) fn continued(session: &Session, records: &[&str]) -> Result<Session, RecordError> {
    let mut reader = RecordReader {
        tokenizer: session.tokenizer,
        header: Some(Header { version: 3, ..session.header.clone() }),
        n_objects: 1,
        dialect: Some(session.dialect),
        entries: session.entries.clone(),
        no_entries: vec![0],
        names: session.names.clone(),
        recovered: session.recovered.clone(),
        ..RecordReader::default()
    };
    for entry in &mut reader.entries {
        entry.parent = session.parent_name(entry).map_or(Parent::Root, Parent::Missing);
    }
    let (mut offset, mut line) = (session.n_bytes, session.n_lines);
    for record in records {
        line += 1;
        let span = |start: usize, end: usize| Span {
            line,
            offset: offset + start as u64,
            len: (end - start) as u64,
        };
        let unreadable =
            |error: ScanError| RecordError { line, reason: format!("no JSON at byte {}", error.at) };
        reader.record(Line::new(record, &Marks::of(record)), 0, false, &span).map_err(unreadable)?;
        offset += record.len() as u64 + 1;
    }
    let (mut continued, _) = reader
        .finish(offset, line)
        .map_err(|error| RecordError { line: session.header.span.line, reason: error.reason })?;
    continued.dialect = session.dialect;
    Ok(continued)
}

/// What stands at the top of a record.
#[derive(Default)]
struct Top<'a> {
    kind: Option<&'a str>,
    id: Option<&'a str>,
    parent: Option<&'a str>,
    has_parent_key: bool,
    timestamp: Option<&'a str>,
    message: Option<MessageScan>,
}

impl RecordSink for RecordReader {
    fn record(
        &mut self,
        line: Line<'_>,
        at: usize,
        recovered: bool,
        locate: &dyn Fn(usize, usize) -> Span,
    ) -> Result<usize, ScanError> {
        let text = line.text;
        let mut walker = line.walker(at);
        let mut top = Top::default();
        walker.object(|walker, key| {
            match key {
                "type" => top.kind = walker.string_or_skip()?.map(|scan| walker.raw(&scan)),
                "id" => top.id = walker.string_or_skip()?.map(|scan| walker.raw(&scan)),
                "parentId" => {
                    top.parent = walker.string_or_skip()?.map(|scan| walker.raw(&scan));
                    top.has_parent_key = true;
                }
                "timestamp" => top.timestamp = walker.string_or_skip()?.map(|scan| walker.raw(&scan)),
                "message" => top.message = Some(scan_message(walker, &mut self.names, self.tokenizer)?),
                _ => {
                    walker.skip()?;
                }
            }
            Ok(())
        })?;
        let end = walker.position();
        // A block of a torn message is an object with a type too. Entries alone have a time or name their parent.
        if recovered && (top.kind.is_none() || top.timestamp.is_none() && !top.has_parent_key) {
            return Err(ScanError { at: end });
        }
        let span = locate(at, end);
        if recovered || self.last_on_line.line == span.line {
            // Of two records on a line P1 reads neither, R13 the first alone.
            if self.last_on_line.line == span.line && self.recovered.last() != Some(&self.last_on_line) {
                self.recovered.push(self.last_on_line);
            }
            self.recovered.push(span);
        }
        self.last_on_line = span;
        self.n_objects += 1;
        if self.header.is_none() {
            self.start(text, at, end, span);
        } else {
            self.entry(text.get(at..end).unwrap_or(""), top, span);
        }
        Ok(end)
    }

    fn problem(&mut self, problem: Problem) {
        // P1 loses a whole record too if anything that is no record follows it on its line.
        let last = self.last_on_line;
        let is_behind = problem.line == last.line && problem.offset >= last.offset + last.len && last.len > 0;
        if is_behind && self.recovered.last() != Some(&last) {
            self.recovered.push(last);
        }
        self.problems.push(problem);
    }
}

impl RecordReader {
    /// Takes one of the first two objects: a title slot or the header.
    fn start(&mut self, text: &str, at: usize, end: usize, span: Span) {
        let value = text.get(at..end).and_then(|record| Value::parse(record).ok()).unwrap_or(Value::Null);
        let kind = value.text("type");
        if kind.as_deref() == Some("title") && self.n_objects == 1 {
            self.title_slot = Some(value.text("title").unwrap_or_default().into_owned());
            if span.len + 1 != TITLE_SLOT_BYTES || span.offset != 0 {
                self.problems.push(Problem {
                    kind: ProblemKind::TitleSlotWidth,
                    line: span.line,
                    offset: span.offset,
                    entry: None,
                    unreachable: 0,
                });
            }
            self.dialect = Some(Dialect::OhMyPi);
            return;
        }
        let owned = |key: &str| value.text(key).map(std::borrow::Cow::into_owned);
        match (kind.as_deref(), owned("id")) {
            (Some("session"), Some(id)) => {
                let version = value.get("version").and_then(Value::as_number).unwrap_or(1.0);
                if !(1.0..=3.0).contains(&version) {
                    self.problems.push(Problem {
                        kind: ProblemKind::UnknownVersion,
                        line: span.line,
                        offset: span.offset,
                        entry: None,
                        unreachable: 0,
                    });
                }
                let object = value.as_object();
                let mark = Dialect::of_entry("session", |key| {
                    object.is_some_and(|object| object.get(key).is_some())
                });
                self.dialect = mark.or(self.dialect);
                self.is_no_entry();
                self.header = Some(Header {
                    version: version.clamp(1.0, 3.0) as u32,
                    id,
                    timestamp: owned("timestamp"),
                    cwd: owned("cwd"),
                    title: self
                        .title_slot
                        .clone()
                        .filter(|title| !title.is_empty())
                        .or_else(|| owned("title")),
                    parent_session: owned("parentSession").or_else(|| owned("branchedFrom")),
                    has_title_slot: self.title_slot.is_some(),
                    span,
                });
            }
            (Some("session"), None) => self.refuse(format!("line {}: the header has no id", span.line)),
            (Some(other), _) if self.n_objects == 1 || self.title_slot.is_some() => {
                self.refuse(format!(
                    "line {}: type \"{}\" stands where the header should be",
                    span.line,
                    crate::text::shown(other)
                ));
            }
            _ => self.refuse(format!("line {}: no header", span.line)),
        }
    }

    fn refuse(&mut self, reason: String) {
        // A first object that is neither slot nor header may still be followed by the header.
        if self.n_objects >= 2 {
            self.refused.get_or_insert(reason);
        } else {
            self.title_slot = None;
        }
    }

    fn entry(&mut self, record: &str, top: Top<'_>, span: Span) {
        let version = self.header.as_ref().map_or(3, |header| header.version);
        let kind_name = top.kind.map(|kind| Str::Raw(kind).into_text());
        let kind_name = kind_name.as_deref().unwrap_or("");
        let problem =
            |kind| Problem { kind, line: span.line, offset: span.offset, entry: None, unreachable: 0 };
        if matches!(kind_name, "session" | "title") {
            self.problems.push(problem(ProblemKind::ExtraHeader));
            self.is_no_entry();
            return;
        }
        let kind = EntryKind::from_wire(kind_name);
        let number = self.entries.len() as EntryNo;
        let (id, parent) = if version < 2 {
            let id = migrate::made_id(number, record, |id| self.names.number(id).is_some());
            let parent = number.checked_sub(1).map(|before| self.entries[before as usize].id);
            (self.names.insert(&id), parent)
        } else {
            let Some(id) = top.id else {
                self.problems.push(problem(ProblemKind::MissingId));
                return;
            };
            let parent = top.parent.map(|parent| self.names.insert(&Str::Raw(parent).text()));
            (self.names.insert(&Str::Raw(id).text()), parent)
        };
        let parent = parent.map_or(Parent::Root, Parent::Missing);
        let time_ms = top.timestamp.and_then(|time| parse_iso(&Str::Raw(time).text()));
        let mut entry = Entry::new(kind, id, parent, time_ms, span);
        (entry.facts, entry.estimate) = match (kind, top.message) {
            (EntryKind::Message, Some(message)) => {
                if message.facts.role == Role::System {
                    self.dialect = Some(Dialect::Pi);
                }
                (Facts::Message(message.facts), message.estimate)
            }
            (EntryKind::Message | EntryKind::Custom | EntryKind::Unknown | EntryKind::ResetBoundary, _) => {
                self.mark(kind_name, |_| false);
                (Facts::None, 0)
            }
            _ => self.other(kind, record, number),
        };
        self.entries.push(entry);
    }

    fn is_no_entry(&mut self) {
        self.no_entries.push(self.entries.len() + self.no_entries.len());
    }

    fn mark(&mut self, kind: &str, has: impl Fn(&str) -> bool) {
        self.dialect = Dialect::of_entry(kind, has).or(self.dialect);
    }

    /// The facts of an entry that is no message: they are few, so their records are built as values.
    fn other(&mut self, kind: EntryKind, record: &str, number: EntryNo) -> (Facts, u64) {
        let value = Value::parse(record).expect("the walker has been over it");
        let object = value.as_object().expect("the walker has seen an object");
        self.mark(kind.wire(), |key| object.get(key).is_some());
        match kind {
            EntryKind::Compaction => {
                let summary = summary_facts(&value);
                let estimate = self.summary_estimate(&value);
                if value.get("firstKeptEntryIndex").is_some() {
                    self.kept_indexes
                        .push((number, value.get("firstKeptEntryIndex").and_then(Value::as_number)));
                }
                let remote = value.get("preserveData").and_then(|data| data.get("openaiRemoteCompaction"));
                let facts = CompactionFacts {
                    summary,
                    first_kept: value.text("firstKeptEntryId").map(|id| self.names.insert(&id)),
                    tokens_before: value.get("tokensBefore").and_then(Value::as_number),
                    has_remote_history: remote.is_some_and(|remote| {
                        remote.text("provider").is_some_and(|provider| !provider.is_empty())
                            && matches!(remote.get("replacementHistory"), Some(Value::Array(_)))
                    }),
                    system_message: value
                        .get("systemMessage")
                        .filter(|message| message.as_object().is_some())
                        .map(|message| message.to_json().into()),
                };
                (Facts::Compaction(Box::new(facts)), estimate)
            }
            EntryKind::BranchSummary => {
                (Facts::BranchSummary(Box::new(summary_facts(&value))), self.summary_estimate(&value))
            }
            EntryKind::CustomMessage => {
                (Facts::None, value.get("content").map_or(0, |content| self.content_estimate(content)))
            }
            EntryKind::ContextEdit => {
                let replacement = value.get("replacement");
                let content = replacement.and_then(|replacement| replacement.get("content"));
                let facts = ContextEditFacts {
                    target: value.text("targetId").map(|id| self.names.insert(&id)),
                    omits: replacement.is_none_or(Value::is_null),
                    calls: content.map_or(Box::default(), |content| calls_in(content, &mut self.names)),
                };
                (
                    Facts::ContextEdit(Box::new(facts)),
                    content.map_or(0, |content| self.content_estimate(content)),
                )
            }
            EntryKind::ModelChange
            | EntryKind::ThinkingLevelChange
            | EntryKind::ServiceTierChange
            | EntryKind::ModeChange
            | EntryKind::McpToolSelection
            | EntryKind::TtsrInjection
            | EntryKind::SessionInfo
            | EntryKind::TitleChange
            | EntryKind::Label => (Facts::State(Arc::new(value.into_owned())), 0),
            EntryKind::Message
            | EntryKind::ResetBoundary
            | EntryKind::SessionInit
            | EntryKind::Custom
            | EntryKind::Usage
            | EntryKind::ModelUsage
            | EntryKind::CredentialPin
            | EntryKind::Unknown => (Facts::None, 0),
        }
    }

    fn summary_estimate(&self, value: &Value<'_>) -> u64 {
        match value.get("summary") {
            Some(Value::String(summary)) if self.tokenizer.needs_text() => {
                self.tokenizer.count(&summary.text())
            }
            Some(Value::String(summary)) => crate::tokens::from_units(summary.units()),
            _ => 0,
        }
    }

    fn content_estimate(&self, content: &Value<'_>) -> u64 {
        self.tokenizer.tally(|take| content_pieces(content, take))
    }

    fn finish(mut self, n_bytes: u64, n_lines: u64) -> Result<(Session, Vec<Problem>), NotASession> {
        if let Some(reason) = self.refused {
            return Err(NotASession { reason });
        }
        let Some(header) = self.header else {
            let reason =
                if self.n_objects == 0 { "there is no JSON object in it" } else { "there is no header" };
            return Err(NotASession { reason: reason.to_owned() });
        };
        migrate::kept_by_index(&mut self.entries, &self.kept_indexes, &self.no_entries);
        let mut session = Session {
            header,
            dialect: self.dialect.unwrap_or_default(),
            entries: self.entries,
            tokenizer: self.tokenizer,
            n_bytes,
            n_lines,
            recovered: self.recovered,
            by_id: vec![NO_ENTRY; self.names.len()],
            names: self.names,
        };
        crate::links::link(&mut session, &mut self.problems);
        self.problems.sort_by_key(|problem| (problem.offset, problem.kind));
        Ok((session, self.problems))
    }
}

fn summary_facts(value: &Value<'_>) -> SummaryFacts {
    let flag = |name| value.get(name).and_then(Value::as_bool) == Some(true);
    let files = |name: &str| {
        let list = value.get("details").and_then(|details| details.get(name)).map_or(&[][..], Value::items);
        list.iter().filter_map(|file| file.as_str().map(std::borrow::Cow::into_owned)).collect()
    };
    SummaryFacts {
        units: value.get("summary").and_then(Value::as_string).map_or(0, Str::units),
        from_extension: flag("fromExtension") || flag("fromHook"),
        read_files: files("readFiles"),
        modified_files: files("modifiedFiles"),
    }
}

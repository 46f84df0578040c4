//! A session as an index: header, entries in the order of the file, links, leaves. Contents stay in the file.

use std::borrow::Cow;

use crate::branch::Branch;
use crate::dialect::Dialect;
use crate::entry::{Entry, EntryKind, EntryNo, Header, NameNo, Parent};
use crate::error::{NotASession, Problem, RecordError};
use crate::names::NameSet;
use crate::reader::SessionReader;
use crate::record::Span;
use crate::tokens::Tokenizer;
use crate::value::Value;

/// A session file, read.
#[derive(Clone, Debug)]
pub struct Session {
    /// The header.
    pub header: Header,
    /// The form that the file has by its marks.
    pub dialect: Dialect,
    /// All entries, in the order of the file.
    pub entries: Vec<Entry>,
    /// How estimates were counted.
    pub tokenizer: Tokenizer,
    /// Bytes of the whole file.
    pub n_bytes: u64,
    /// Lines of the whole file.
    pub n_lines: u64,
    /// Spans of records that the agents would not read: glued to others or behind torn ones.
    pub recovered: Vec<Span>,
    pub(crate) names: NameSet,
    /// For each name: the last entry with this id, or [`NO_ENTRY`].
    pub(crate) by_id: Vec<EntryNo>,
}

/// What stands for an entry where there is none.
pub(crate) const NO_ENTRY: EntryNo = EntryNo::MAX;

/// Fetches the text of records again.
pub trait Records: Sync {
    /// The text at `span`; bytes that are no UTF-8 come as U+FFFD.
    ///
    /// # Errors
    /// The text cannot be had any more.
    fn text(&self, span: Span) -> Result<Cow<'_, str>, RecordError>;

    /// The record at `span` as a value, borrowed where its text is.
    ///
    /// # Errors
    /// The text cannot be had any more, or is no JSON any more.
    fn value(&self, span: Span) -> Result<Value<'_>, RecordError> {
        let unreadable =
            |_| RecordError { line: span.line, reason: "the record is no longer JSON".to_owned() };
        match self.text(span)? {
            Cow::Borrowed(text) => Value::parse(text).map_err(unreadable),
            Cow::Owned(text) => Ok(Value::parse(&text).map_err(unreadable)?.into_owned()),
        }
    }
}

impl Records for [u8] {
    fn text(&self, span: Span) -> Result<Cow<'_, str>, RecordError> {
        let bytes = usize::try_from(span.offset)
            .ok()
            .zip(usize::try_from(span.offset + span.len).ok())
            .and_then(|(start, end)| self.get(start..end))
            .ok_or_else(|| RecordError {
                line: span.line,
                reason: "the record is not in these bytes".to_owned(),
            })?;
        Ok(lossy(bytes))
    }
}

/// Records that were fetched one by one, each with its span.
#[derive(Clone, Copy, Debug)]
pub struct Fetched<'b>(pub &'b [(Span, &'b [u8])]);

impl Records for Fetched<'_> {
    fn text(&self, span: Span) -> Result<Cow<'_, str>, RecordError> {
        let found = self.0.iter().find(|(fetched, _)| *fetched == span);
        found
            .map(|(_, bytes)| lossy(bytes))
            .ok_or_else(|| RecordError { line: span.line, reason: "the record was not fetched".to_owned() })
    }
}

fn lossy(bytes: &[u8]) -> Cow<'_, str> {
    match simdutf8::basic::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => String::from_utf8_lossy(bytes),
    }
}

impl Session {
    /// Reads a whole session file.
    ///
    /// # Errors
    /// [`NotASession`] if there is no valid header among the first two objects.
    pub fn read(bytes: &[u8]) -> Result<(Session, Vec<Problem>), NotASession> {
        let mut reader = SessionReader::new(Tokenizer::Units);
        reader.push(bytes);
        reader.finish()
    }

    /// The session as it would be with these records behind its last one, in the current version: what a writing command looks
    /// at before it writes. Contents of the new entries are in no file yet.
    ///
    /// # Errors
    /// A record that is no JSON object.
    pub fn with_records(&self, records: &[&str]) -> Result<Session, RecordError> {
        crate::reader::continued(self, records)
    }

    /// The text of a name.
    pub fn name(&self, name: NameNo) -> &str {
        self.names.text(name)
    }

    /// The number of a name, if the session has it.
    pub fn name_no(&self, text: &str) -> Option<NameNo> {
        self.names.number(text)
    }

    /// The entry with this number.
    pub fn entry(&self, entry: EntryNo) -> &Entry {
        &self.entries[entry as usize]
    }

    /// The id of an entry.
    pub fn id(&self, entry: EntryNo) -> &str {
        self.name(self.entry(entry).id)
    }

    /// The entry with this id; of several the last.
    pub fn find(&self, id: &str) -> Option<EntryNo> {
        self.by_name(self.name_no(id)?)
    }

    /// The id that an entry names as its parent.
    pub(crate) fn parent_name(&self, entry: &Entry) -> Option<NameNo> {
        match entry.parent {
            Parent::Root => None,
            Parent::Entry(parent) => Some(self.entry(parent).id),
            Parent::Missing(name) => Some(name),
        }
    }

    pub(crate) fn by_name(&self, name: NameNo) -> Option<EntryNo> {
        self.by_id.get(name.place()).copied().filter(|entry| *entry != NO_ENTRY)
    }

    /// Whether an entry with this id exists.
    pub fn has_id(&self, id: &str) -> bool {
        self.find(id).is_some()
    }

    /// The default leaf: the last entry of the file (spec 1.5).
    pub fn last_entry(&self) -> Option<EntryNo> {
        (self.entries.len() as EntryNo).checked_sub(1)
    }

    /// The branch that ends at `leaf`, or at the default leaf. Empty only for a session without entries.
    pub fn branch(&self, leaf: Option<EntryNo>) -> Branch<'_> {
        Branch::new(self, leaf.or_else(|| self.last_entry()))
    }

    /// Entries that no other entry hangs on, in the order of the file.
    pub fn leaves(&self) -> Vec<EntryNo> {
        let mut has_child = vec![false; self.entries.len()];
        for entry in &self.entries {
            if let Parent::Entry(parent) = entry.parent {
                has_child[parent as usize] = true;
            }
        }
        (0..self.entries.len() as EntryNo).filter(|&entry| !has_child[entry as usize]).collect()
    }

    /// The newest message of the file, by time and then by place.
    pub fn newest_message(&self) -> Option<EntryNo> {
        let messages =
            (0..self.entries.len() as EntryNo).filter(|&entry| self.entry(entry).kind == EntryKind::Message);
        messages.max_by_key(|&entry| (self.entry(entry).time_ms(), entry))
    }

    /// The last label of each labelled entry; an empty label takes it away.
    pub fn labels(&self) -> std::collections::BTreeMap<EntryNo, String> {
        let mut labels = std::collections::BTreeMap::new();
        for entry in &self.entries {
            let (EntryKind::Label, Some(state)) = (entry.kind, entry.state()) else { continue };
            let Some(target) = state.text("targetId").and_then(|id| self.find(&id)) else { continue };
            match state.text("label").filter(|label| !label.is_empty()) {
                Some(label) => labels.insert(target, label.into_owned()),
                None => labels.remove(&target),
            };
        }
        labels
    }

    /// The session's name: the last `session_info` or `title_change`, else the title.
    pub fn title(&self) -> Option<Cow<'_, str>> {
        let named = self.entries.iter().rev().find_map(|entry| match entry.kind {
            EntryKind::SessionInfo => entry.state()?.text("name"),
            EntryKind::TitleChange => entry.state()?.text("title"),
            _ => None,
        });
        named.or_else(|| self.header.title.as_deref().map(Cow::Borrowed)).filter(|title| !title.is_empty())
    }

    /// The newest time of any entry, in milliseconds.
    pub fn newest_time_ms(&self) -> Option<i64> {
        self.entries.iter().filter_map(Entry::time_ms).max()
    }

    /// Whether the file must be rewritten as version 3 before anything is appended (spec 1.2).
    pub fn needs_migration(&self) -> bool {
        self.header.version < 3
    }
}

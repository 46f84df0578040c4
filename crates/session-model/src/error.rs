//! What can be wrong with a session file: [`NotASession`] stops the reading, a [`Problem`] is reported and the reading goes on.

use std::fmt;

/// The file has no valid header among its first two objects (spec 1.2). It must never be written to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a session: {reason}")]
pub struct NotASession {
    /// What was found in place of the header.
    pub reason: String,
}

/// A record that could not be fetched again from its file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {reason}")]
pub struct RecordError {
    /// Line of the record, from 1.
    pub line: u64,
    /// What went wrong.
    pub reason: String,
}

/// Something in the file that could not be taken as it stands. The bytes stay as they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// What kind of damage.
    pub kind: ProblemKind,
    /// Line, from 1.
    pub line: u64,
    /// Offset of the first byte concerned, from the start of the file.
    pub offset: u64,
    /// Id of the entry concerned, if one could be read.
    pub entry: Option<String>,
    /// Entries that no branch reaches any more because of this.
    pub unreachable: u64,
}

/// The kinds of damage that reading can meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ProblemKind {
    /// Several records stand on one line.
    GluedRecords,
    /// A record breaks off and another follows on the same line.
    TornRecord,
    /// The last line breaks off.
    TornTail,
    /// A run of NUL bytes.
    NulRun,
    /// A line that is no JSON object.
    Junk,
    /// Bytes that are no UTF-8, read as U+FFFD.
    InvalidUtf8,
    /// An entry without a string id.
    MissingId,
    /// An entry whose id a later entry has too.
    DuplicateId,
    /// An entry whose parent is not in the file.
    MissingParent,
    /// An entry that is its own ancestor.
    Cycle,
    /// A second header, or a title slot behind the header.
    ExtraHeader,
    /// The title slot is not 256 bytes wide.
    TitleSlotWidth,
    /// A compaction that keeps from an entry that is not on the branch before it.
    KeptEntryMissing,
    /// A session version that is newer than any known.
    UnknownVersion,
}

impl ProblemKind {
    /// The name in machine-readable output.
    pub fn name(self) -> &'static str {
        match self {
            ProblemKind::GluedRecords => "glued_records",
            ProblemKind::TornRecord => "torn_record",
            ProblemKind::TornTail => "torn_tail",
            ProblemKind::NulRun => "nul_run",
            ProblemKind::Junk => "junk",
            ProblemKind::InvalidUtf8 => "invalid_utf8",
            ProblemKind::MissingId => "missing_id",
            ProblemKind::DuplicateId => "duplicate_id",
            ProblemKind::MissingParent => "missing_parent",
            ProblemKind::Cycle => "cycle",
            ProblemKind::ExtraHeader => "extra_header",
            ProblemKind::TitleSlotWidth => "title_slot_width",
            ProblemKind::KeptEntryMissing => "kept_entry_missing",
            ProblemKind::UnknownVersion => "unknown_version",
        }
    }

    fn words(self) -> &'static str {
        match self {
            ProblemKind::GluedRecords => "several records on one line",
            ProblemKind::TornRecord => "a record breaks off in the middle of the line",
            ProblemKind::TornTail => "the last line breaks off",
            ProblemKind::NulRun => "a run of NUL bytes",
            ProblemKind::Junk => "no JSON object",
            ProblemKind::InvalidUtf8 => "bytes that are not UTF-8",
            ProblemKind::MissingId => "an entry without an id",
            ProblemKind::DuplicateId => "the id occurs again later, and the later entry wins",
            ProblemKind::MissingParent => "the parent entry is not in the file",
            ProblemKind::Cycle => "the entry is its own ancestor",
            ProblemKind::ExtraHeader => "a second header",
            ProblemKind::TitleSlotWidth => "the title slot is not 256 bytes wide",
            ProblemKind::KeptEntryMissing => {
                "the compaction keeps from an entry that is not on the branch before it"
            }
            ProblemKind::UnknownVersion => "a session version that is not known",
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "line {}: {}", self.line, self.kind.words())?;
        if let Some(entry) = &self.entry {
            write!(formatter, " (entry {})", crate::text::shown(entry))?;
        }
        match self.unreachable {
            0 => Ok(()),
            1 => write!(formatter, "; 1 entry is unreachable"),
            n => write!(formatter, "; {n} entries are unreachable"),
        }
    }
}

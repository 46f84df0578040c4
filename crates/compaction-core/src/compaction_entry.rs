//! From a preparation and its summaries to the entry that is written, checked before anyone writes it (spec 3.7).

use session_model::dialect::Dialect;
use session_model::entry::{EntryKind, Stamp};
use session_model::error::RecordError;
use session_model::prompts::Prompts;
use session_model::sequence::{Part, Sequence};
use session_model::session::{Records, Session};
use session_model::system;
use session_model::text::units;
use session_model::validate::{Finding, new_faults};
use session_model::value::{Object, Value};

use crate::file_ops::{FileLists, with_file_blocks};
use crate::preparation::Preparation;
use crate::turn::is_message;

/// Longest string that an agent leaves alone when it rewrites a file, in UTF-16 units (spec 1.1).
const LONGEST_STRING: u64 = 500_000;

/// What the previous compaction hands on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Previous {
    /// Its summary, file blocks included.
    pub summary: String,
    /// Its `preserveData`.
    pub preserve_data: Option<Value<'static>>,
}

/// What the new entry says.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    /// Summaries that were made.
    Made {
        /// The summary without file blocks.
        summary: String,
        /// A few sentences.
        short_summary: Option<String>,
        /// What a `session.compacting` hook wants kept.
        preserve_data: Option<Value<'static>>,
    },
    /// A whole compaction that a hook gave.
    Given(GivenCompaction),
}

/// A compaction that a `session_before_compact` hook gave (spec 6.3).
#[derive(Clone, Debug, PartialEq)]
pub struct GivenCompaction {
    /// The summary, taken as it is.
    pub summary: String,
    /// A few sentences.
    pub short_summary: Option<String>,
    /// Id of the first kept entry.
    pub first_kept_entry_id: String,
    /// Tokens of the context before.
    pub tokens_before: f64,
    /// Whatever the hook wants to store.
    pub details: Option<Value<'static>>,
    /// What it wants kept over compactions.
    pub preserve_data: Option<Value<'static>>,
}

/// An entry that may be written.
#[derive(Clone, Debug)]
pub struct CompactionEntry {
    /// Its id and time.
    pub stamp: Stamp,
    /// The record, without line end.
    pub record: String,
    /// The entry as a value.
    pub value: Value<'static>,
    /// The session with the entry in it.
    pub session: Session,
    /// Estimated tokens of the context before; the whole window counts.
    pub estimate_before: u64,
    /// Estimated tokens of the context after.
    pub estimate_after: u64,
}

/// Why an entry may not be written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FinishError {
    /// The summary has no text (spec D7).
    #[error("the summary is empty")]
    EmptySummary,
    /// The summary is longer than any string in a session may be.
    #[error("the summary has {units} UTF-16 units, {LONGEST_STRING} are the most")]
    TooLong {
        /// Its length.
        units: u64,
    },
    /// The context would not shrink (spec D7).
    #[error("the context would not shrink: {before} tokens before, {after} after")]
    NoGain {
        /// Estimated tokens before.
        before: u64,
        /// Estimated tokens after.
        after: u64,
    },
    /// A hook named an entry that is not on the branch.
    #[error("first kept entry \"{id}\" is not on the branch")]
    NotOnBranch {
        /// The id that it named.
        id: String,
    },
    /// The new context would have faults that the old one has not (spec 2.4).
    #[error("the new context would have {} that the old one has not, first {} at entry {entry}", count(.faults), .faults[0].kind)]
    NewFaults {
        /// Never empty.
        faults: Vec<Finding>,
        /// Id of the entry of the first one.
        entry: String,
    },
    /// The new context would not hold the messages that were to be kept.
    #[error("the new context would not hold exactly the kept messages")]
    WrongTail,
    /// The record that was made cannot be read: a fault of this library.
    #[error("the new entry cannot be read: {0}")]
    Unreadable(String),
}

fn count(faults: &[Finding]) -> String {
    if faults.len() == 1 { "a fault".to_owned() } else { format!("{} faults", faults.len()) }
}

/// Reads what the previous compaction hands on; `None` if there is none.
///
/// # Errors
/// Its record cannot be read again.
pub fn previous<R: Records + ?Sized>(
    sequence: &Sequence<'_>,
    records: &R,
) -> Result<Option<Previous>, RecordError> {
    let Some(compaction) = sequence.compaction else { return Ok(None) };
    let value = records.value(sequence.session.entry(compaction).span)?;
    Ok(Some(Previous {
        summary: value.text("summary").unwrap_or_default().into_owned(),
        preserve_data: value
            .get("preserveData")
            .filter(|data| data.as_object().is_some())
            .map(|data| data.clone().into_owned()),
    }))
}

/// Makes the entry and checks it: the new context has no new fault, holds exactly the kept messages, and is smaller.
///
/// # Errors
/// [`FinishError`]; nothing may be written then.
pub fn finish(
    preparation: &Preparation<'_>,
    previous: Option<&Previous>,
    content: &Content,
    prompts: &Prompts,
    time_ms: i64,
) -> Result<CompactionEntry, FinishError> {
    let session = preparation.sequence.session;
    let parts = Parts::of(preparation, previous, content, prompts)?;
    if parts.summary.trim().is_empty() {
        return Err(FinishError::EmptySummary);
    }
    let length = units(&parts.summary);
    if length > LONGEST_STRING {
        return Err(FinishError::TooLong { units: length });
    }
    let (stamp, value) =
        Stamp::entry(time_ms, |id| session.has_id(id), |stamp| entry(preparation, &parts, stamp));
    let record = value.to_json();
    let after_session =
        session.with_records(&[&record]).map_err(|error| FinishError::Unreadable(error.reason))?;
    let after = after_session.branch(None).effective();
    let estimate_before = window_estimate(&preparation.sequence);
    let estimate_after = window_estimate(&after);
    check(preparation, &after, content)?;
    if estimate_after >= estimate_before {
        return Err(FinishError::NoGain { before: estimate_before, after: estimate_after });
    }
    Ok(CompactionEntry { stamp, record, value, session: after_session, estimate_before, estimate_after })
}

/// What the context and everything that waits to be summarised costs, by estimate.
fn window_estimate(sequence: &Sequence<'_>) -> u64 {
    let items = sequence.items.iter().filter(|item| is_message(sequence, item));
    let fold = system::fold_of(sequence).map_or(0, |fold| fold.estimate(sequence.session.tokenizer));
    items.map(|item| item.estimate).sum::<u64>() + fold
}

fn check(preparation: &Preparation<'_>, after: &Sequence<'_>, content: &Content) -> Result<(), FinishError> {
    let faults = new_faults(&preparation.sequence, after);
    if let Some(first) = faults.first() {
        let entry = after.session.id(first.entry).to_owned();
        return Err(FinishError::NewFaults { faults, entry });
    }
    if matches!(content, Content::Made { .. }) {
        let tail = after.items.iter().filter(|item| item.part != Part::Summary && is_message(after, item));
        let kept = preparation.recent.iter().map(|item| (item.entry, item.share));
        if !tail.map(|item| (item.entry, item.share)).eq(kept) {
            return Err(FinishError::WrongTail);
        }
    }
    Ok(())
}

/// The fields of the entry that depend on where the summary comes from.
struct Parts {
    summary: String,
    short_summary: Option<String>,
    first_kept: String,
    tokens_before: f64,
    details: Option<Value<'static>>,
    preserve_data: Option<Value<'static>>,
    from_extension: bool,
}

impl Parts {
    fn of(
        preparation: &Preparation<'_>,
        previous: Option<&Previous>,
        content: &Content,
        prompts: &Prompts,
    ) -> Result<Parts, FinishError> {
        let session = preparation.sequence.session;
        match content {
            Content::Made { summary, short_summary, preserve_data } => {
                let files = preparation.file_ops.lists();
                // Without this an empty summary would pass for one that has file names in it.
                let is_empty = summary.trim().is_empty();
                let inherited = previous.and_then(|previous| previous.preserve_data.as_ref());
                Ok(Parts {
                    summary: if is_empty {
                        String::new()
                    } else {
                        with_file_blocks(summary, &files, prompts)
                    },
                    short_summary: short_summary.clone().filter(|short| !short.is_empty()),
                    first_kept: session.id(preparation.first_kept).to_owned(),
                    tokens_before: preparation.tokens_before as f64,
                    details: Some(details(&files)),
                    preserve_data: preserved(inherited, preserve_data.as_ref()),
                    from_extension: false,
                })
            }
            Content::Given(given) => {
                let kept = session.find(&given.first_kept_entry_id);
                if !kept.is_some_and(|entry| preparation.sequence.branch.contains(&entry)) {
                    return Err(FinishError::NotOnBranch { id: given.first_kept_entry_id.clone() });
                }
                Ok(Parts {
                    summary: given.summary.clone(),
                    short_summary: given.short_summary.clone(),
                    first_kept: given.first_kept_entry_id.clone(),
                    tokens_before: given.tokens_before,
                    details: given.details.clone(),
                    preserve_data: given.preserve_data.clone(),
                    from_extension: true,
                })
            }
        }
    }
}

/// `details` of compactions and branch summaries (spec 1.3).
pub(crate) fn details(files: &FileLists) -> Value<'static> {
    let list = |paths: &[String]| Value::Array(paths.iter().map(|path| Value::from(path.clone())).collect());
    let mut details = Object::new();
    details.set("readFiles", list(&files.read));
    details.set("modifiedFiles", list(&files.modified));
    Value::Object(details)
}

/// The previous `preserveData` without the provider's history, a hook's data over it (spec D14).
fn preserved(inherited: Option<&Value<'static>>, given: Option<&Value<'static>>) -> Option<Value<'static>> {
    let mut data = inherited.and_then(Value::as_object).cloned().unwrap_or_default();
    data.remove("openaiRemoteCompaction");
    for (key, value) in given.and_then(Value::as_object).into_iter().flat_map(Object::iter) {
        data.set(key.clone(), value.clone());
    }
    (!data.is_empty()).then_some(Value::Object(data))
}

fn entry(preparation: &Preparation<'_>, parts: &Parts, stamp: &Stamp) -> Value<'static> {
    let session = preparation.sequence.session;
    let leaf = preparation.sequence.branch.last().map(|&leaf| session.id(leaf));
    let mut entry = stamp.head(EntryKind::Compaction, leaf);
    entry.set("summary", parts.summary.clone());
    if session.dialect == Dialect::OhMyPi {
        // pi does not know it, and a file of pi that has one would pass for one of oh-my-pi (spec 1.6).
        entry.set_some("shortSummary", parts.short_summary.clone());
    }
    entry.set("firstKeptEntryId", parts.first_kept.clone());
    entry.set("tokensBefore", parts.tokens_before);
    entry.set_some("details", parts.details.clone());
    if parts.from_extension {
        entry.set(session.dialect.extension_flag(), true);
    }
    entry.set_some("preserveData", parts.preserve_data.clone());
    if session.dialect == Dialect::Pi {
        let fold = system::fold_of(&preparation.sequence).map(|fold| fold.to_message(stamp.time_ms));
        entry.set_some("systemMessage", fold);
    }
    Value::Object(entry)
}

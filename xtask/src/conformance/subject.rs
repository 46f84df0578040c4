//! A session that is compared, and how sesstool reads it.

use std::path::PathBuf;

use anyhow::{Context, Result};
use compaction_core::preparation::{Preparation, Skip, prepare};
use compaction_core::settings::CompactionSettings;
use pruning::settings::PruneSettings;
use session_model::dialect::Dialect;
use session_model::entry::{EntryKind, EntryNo};
use session_model::error::ProblemKind;
use session_model::message::Role;
use session_model::prompts::Prompts;
use session_model::sequence::Sequence;
use session_model::session::{Records, Session};
use session_model::value::Value;

use super::verdict::Topic;

/// A session file and what it is asked about.
#[derive(Clone, Debug)]
pub(crate) struct Subject {
    /// What reports call it.
    pub(crate) name: String,
    /// Where the programs find it.
    pub(crate) path: PathBuf,
    /// Its bytes.
    pub(crate) bytes: Vec<u8>,
    /// The settings of compactions.
    pub(crate) compaction: CompactionSettings,
    /// The settings of pruning.
    pub(crate) pruning: PruneSettings,
    /// The last entry of the branch, by its place in the file.
    pub(crate) leaf: Option<EntryNo>,
    /// Where the user goes when the branch is left.
    pub(crate) target: Option<EntryNo>,
    /// Whether the file was damaged on purpose: then only the reading of it is compared.
    pub(crate) is_damaged: bool,
    /// A file that sesstool has written: the agent is only asked to open it.
    pub(crate) written: Option<Topic>,
}

/// A subject as sesstool reads it.
#[derive(Debug)]
pub(crate) struct Reading<'s> {
    /// The subject.
    pub(crate) subject: &'s Subject,
    /// Its index.
    pub(crate) session: Session,
    /// Whether an entry is its own ancestor.
    pub(crate) has_cycle: bool,
    /// The prompts.
    pub(crate) prompts: Prompts,
}

impl<'s> Reading<'s> {
    /// Reads a subject; `None` if it is no session.
    pub(crate) fn of(subject: &'s Subject) -> Option<Reading<'s>> {
        let (session, problems) = Session::read(&subject.bytes).ok()?;
        let has_cycle = problems.iter().any(|problem| problem.kind == ProblemKind::Cycle);
        Some(Reading { subject, session, has_cycle, prompts: Prompts::default() })
    }

    /// The file's records.
    pub(crate) fn records(&self) -> &'s [u8] {
        &self.subject.bytes
    }

    /// What the model sees of the branch.
    pub(crate) fn sequence(&self) -> Sequence<'_> {
        self.session.branch(self.subject.leaf).effective()
    }

    /// What a compaction would do.
    pub(crate) fn preparation(&self) -> Result<Preparation<'_>, Skip> {
        prepare(&self.sequence(), &self.subject.compaction)
    }

    /// An entry's record.
    ///
    /// # Errors
    /// It cannot be read again.
    pub(crate) fn record(&self, entry: EntryNo) -> Result<Value<'s>> {
        let text = self.records().text(self.session.entry(entry).span)?;
        match text {
            std::borrow::Cow::Borrowed(text) => Value::parse(text).ok(),
            std::borrow::Cow::Owned(text) => Value::parse(&text).ok().map(Value::into_owned),
        }
        .context("a record that was read before is no JSON")
    }

    /// Whether R13 knows everything that is in the file (spec 2.1).
    pub(crate) fn is_known_to_r13(&self) -> bool {
        let entries = 0..self.session.entries.len() as EntryNo;
        !entries.into_iter().any(|number| {
            let entry = self.session.entry(number);
            match entry.kind {
                EntryKind::ResetBoundary | EntryKind::ContextEdit => true,
                EntryKind::Compaction => entry.compaction().is_some_and(|it| it.system_message.is_some()),
                EntryKind::Message => entry.message().is_some_and(|message| match message.role {
                    Role::System => true,
                    Role::BashExecution => self.record(number).is_ok_and(|record| {
                        record.get("message").is_some_and(|message| message.get("fullOutputPath").is_some())
                    }),
                    _ => false,
                }),
                _ => false,
            }
        })
    }

    /// Whether only the reading of the file can be compared: records that the programs do not see change all places behind them
    /// (D15).
    pub(crate) fn is_read_otherwise(&self) -> bool {
        self.subject.is_damaged || !self.session.recovered.is_empty()
    }

    /// Whether there is a branch summary without words.
    pub(crate) fn has_empty_branch_summary(&self) -> bool {
        self.session.entries.iter().any(|entry| entry.branch_summary().is_some_and(|it| it.units == 0))
    }

    /// Whether oh-my-pi's session manager opens the file: it adds up the cost of every assistant message.
    pub(crate) fn has_costs(&self) -> bool {
        (0..self.session.entries.len() as EntryNo).all(|number| {
            let entry = self.session.entry(number);
            let is_assistant = entry.message().is_some_and(|message| message.role == Role::Assistant);
            !is_assistant
                || self.record(number).is_ok_and(|record| {
                    let usage = record.get("message").and_then(|message| message.get("usage"));
                    let cost = usage.and_then(|usage| usage.get("cost"));
                    cost.and_then(|cost| cost.get("total")).and_then(Value::as_number).is_some()
                })
        })
    }

    /// The program that wrote the file would open it.
    pub(crate) fn is_pi(&self) -> bool {
        self.session.dialect == Dialect::Pi
    }
}

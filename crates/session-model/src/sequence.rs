//! The effective sequence: the one thing that compaction, pruning, inspection and printing all work on (spec 2.1).

use std::collections::HashMap;

use crate::branch::Branch;
use crate::entry::{Entry, EntryKind, EntryNo};
use crate::error::{Problem, ProblemKind};
use crate::message::{Call, MessageFacts, Role};
use crate::session::Session;

/// What the model sees of a branch, in this order, with the entries between that it does not see.
#[derive(Clone, Debug)]
pub struct Sequence<'s> {
    /// The session that it is in.
    pub session: &'s Session,
    /// The branch that it is of, root first.
    pub branch: Vec<EntryNo>,
    /// The compaction that heads it, if one does.
    pub compaction: Option<EntryNo>,
    /// The summary of that compaction first, then what it kept, then what followed it.
    pub items: Vec<Item>,
    /// What is wrong with the compaction's link.
    pub problem: Option<Problem>,
}

/// An entry's place in the effective sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item {
    /// The entry.
    pub entry: EntryNo,
    /// Its part of the sequence.
    pub part: Part,
    /// What it gives.
    pub share: Share,
    /// Estimated tokens of what it gives the model.
    pub estimate: u64,
}

/// The parts of a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The compaction that heads the sequence.
    Summary,
    /// Before the compaction, and kept by it.
    Kept,
    /// Kept by the compaction, but in the context the provider's own history stands for it.
    KeptElsewhere,
    /// After the compaction; without one, everything.
    After,
}

/// What an entry gives the context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// No message.
    Nothing,
    /// Its own message.
    Own,
    /// Its message with the content of this context edit.
    Edited(EntryNo),
}

impl<'s> Sequence<'s> {
    pub(crate) fn new(branch: &Branch<'s>) -> Self {
        let session = branch.session;
        let entries = &branch.entries;
        let last = |kind| entries.iter().rposition(|&entry| session.entry(entry).kind == kind);
        let reset = last(EntryKind::ResetBoundary);
        let compaction = last(EntryKind::Compaction).filter(|at| reset.is_none_or(|reset| reset < *at));
        let mut sequence = Sequence {
            session,
            branch: entries.clone(),
            compaction: compaction.map(|at| entries[at]),
            items: Vec::with_capacity(entries.len()),
            problem: None,
        };
        match compaction {
            None => {
                let start = reset.map_or(0, |at| at + 1);
                sequence.extend(&entries[start..], Part::After);
            }
            Some(at) => {
                let kept = sequence.kept_start(at);
                let has_remote_history =
                    session.entry(entries[at]).compaction().is_some_and(|facts| facts.has_remote_history);
                sequence.extend(&entries[at..=at], Part::Summary);
                sequence.extend(
                    &entries[kept..at],
                    if has_remote_history { Part::KeptElsewhere } else { Part::Kept },
                );
                sequence.extend(&entries[at + 1..], Part::After);
            }
        }
        sequence.apply_edits();
        sequence
    }

    /// These entries as they are, edits and compactions among them not applied: what an abandoned branch was (spec 6.2).
    pub fn of_entries(session: &'s Session, entries: Vec<EntryNo>) -> Self {
        let mut sequence = Sequence {
            session,
            branch: entries.clone(),
            compaction: None,
            items: Vec::with_capacity(entries.len()),
            problem: None,
        };
        for entry in entries {
            let part = match session.entry(entry).kind {
                EntryKind::Compaction => Part::Summary,
                _ => Part::After,
            };
            sequence.extend(&[entry], part);
        }
        sequence
    }

    /// Where on the branch the kept region of the compaction at `at` starts; `at` itself if nothing is kept.
    fn kept_start(&mut self, at: usize) -> usize {
        let session = self.session;
        let compaction = session.entry(self.branch[at]);
        let Some(first_kept) = compaction.compaction().and_then(|facts| facts.first_kept) else {
            // Only version 1 has compactions that rightly name nothing.
            return at;
        };
        if first_kept == compaction.id {
            return at;
        }
        let found = self.branch[..at].iter().position(|&entry| session.entry(entry).id == first_kept);
        found.unwrap_or_else(|| {
            self.problem = Some(Problem {
                kind: ProblemKind::KeptEntryMissing,
                line: compaction.span.line,
                offset: compaction.span.offset,
                entry: Some(session.id(self.branch[at]).to_owned()),
                unreachable: 0,
            });
            at
        })
    }

    fn extend(&mut self, entries: &[EntryNo], part: Part) {
        let session = self.session;
        self.items.extend(entries.iter().map(|&number| {
            let entry = session.entry(number);
            let share = own_share(entry, part);
            let estimate = if share == Share::Nothing { 0 } else { entry.estimate };
            Item { entry: number, part, share, estimate }
        }));
    }

    /// Rule 4 of spec 2.1: of the edits in the sequence the newest of each target wins.
    fn apply_edits(&mut self) {
        let session = self.session;
        let mut edits = HashMap::new();
        for item in &self.items {
            if let Some(edit) = session.entry(item.entry).context_edit()
                && let Some(target) = edit.target
            {
                edits.insert(target, (item.entry, edit.omits));
            }
        }
        if edits.is_empty() {
            return;
        }
        for item in &mut self.items {
            let entry = session.entry(item.entry);
            let Some(&(edit, omits)) = edits.get(&entry.id) else { continue };
            if item.share == Share::Nothing || item.part == Part::Summary {
                continue;
            }
            if omits {
                (item.share, item.estimate) = (Share::Nothing, 0);
            } else if takes_content(entry) {
                (item.share, item.estimate) = (Share::Edited(edit), session.entry(edit).estimate);
            }
        }
    }

    /// The entry of an item.
    pub fn entry(&self, item: &Item) -> &'s Entry {
        self.session.entry(item.entry)
    }

    /// The facts of an item's message, if it is a message entry that gives one.
    pub fn message(&self, item: &Item) -> Option<&'s MessageFacts> {
        if item.share == Share::Nothing { None } else { self.entry(item).message() }
    }

    /// The role under which an item reaches the agent's context; `None` if it gives no message.
    pub fn role(&self, item: &Item) -> Option<Role> {
        if item.share == Share::Nothing {
            return None;
        }
        Some(match self.entry(item).kind {
            EntryKind::Message => self.entry(item).message()?.role,
            EntryKind::CustomMessage => Role::Custom,
            EntryKind::BranchSummary => Role::BranchSummary,
            EntryKind::Compaction => Role::CompactionSummary,
            _ => return None,
        })
    }

    /// Whether the model gets something of an item.
    pub fn reaches_model(&self, item: &Item) -> bool {
        item.part != Part::KeptElsewhere && self.counts(item)
    }

    /// Whether an item counts in the window: it gives a message that the model gets now or got before the provider's own
    /// history took its place.
    pub fn counts(&self, item: &Item) -> bool {
        item.share != Share::Nothing && self.entry(item).message().is_none_or(MessageFacts::reaches_model)
    }

    /// The tool calls that an item makes.
    pub fn calls(&self, item: &Item) -> &'s [Call] {
        let Some(message) = self.message(item).filter(|message| message.role == Role::Assistant) else {
            return &[];
        };
        match item.share {
            Share::Edited(edit) => self.session.entry(edit).context_edit().map_or(&[], |edit| &edit.calls),
            Share::Own | Share::Nothing => message.calls(),
        }
    }

    /// The window of the next preparation: all items after the summary.
    pub fn window(&self) -> &[Item] {
        match self.items.first() {
            Some(first) if first.part == Part::Summary => &self.items[1..],
            _ => &self.items,
        }
    }

    /// What the items of the context are estimated to cost, without system messages.
    pub fn estimate(&self) -> u64 {
        let counted =
            self.items.iter().filter(|item| item.part != Part::KeptElsewhere && !self.is_system(item));
        counted.map(|item| item.estimate).sum()
    }

    /// Whether an item is a system message.
    pub fn is_system(&self, item: &Item) -> bool {
        self.entry(item).message().is_some_and(|message| message.role == Role::System)
    }
}

fn own_share(entry: &Entry, part: Part) -> Share {
    let gives = match entry.kind {
        EntryKind::Message => {
            let is_system = entry.message().is_some_and(|message| message.role == Role::System);
            entry.message().is_some() && !(is_system && part != Part::After)
        }
        EntryKind::CustomMessage => true,
        EntryKind::BranchSummary => entry.branch_summary().is_some_and(|facts| facts.units > 0),
        EntryKind::Compaction => part == Part::Summary,
        EntryKind::ContextEdit
        | EntryKind::ResetBoundary
        | EntryKind::ModelChange
        | EntryKind::ThinkingLevelChange
        | EntryKind::ServiceTierChange
        | EntryKind::ModeChange
        | EntryKind::McpToolSelection
        | EntryKind::TtsrInjection
        | EntryKind::SessionInit
        | EntryKind::SessionInfo
        | EntryKind::TitleChange
        | EntryKind::Label
        | EntryKind::Custom
        | EntryKind::Usage
        | EntryKind::ModelUsage
        | EntryKind::CredentialPin
        | EntryKind::Unknown => false,
    };
    if gives { Share::Own } else { Share::Nothing }
}

/// Whether an edit may put other content into what the entry gives.
fn takes_content(entry: &Entry) -> bool {
    match entry.kind {
        EntryKind::CustomMessage => true,
        EntryKind::Message => entry.message().is_some_and(|message| {
            matches!(message.role, Role::User | Role::Assistant | Role::ToolResult | Role::Custom)
        }),
        _ => false,
    }
}

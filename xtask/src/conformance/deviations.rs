//! Which deviations of the specification a session has the shape of: one function for each, from facts of the session alone.

use std::collections::HashMap;

use compaction_core::settings::CompactionSettings;
use compaction_core::usage::{self, Measured};
use session_model::entry::{Entry, EntryKind, EntryNo};
use session_model::message::{Role, pruned_notice};
use session_model::sequence::{Item, Part, Sequence};
use session_model::session::Session;

use super::verdict::Deviation;
use crate::reference::Program;

/// Shape of D1: the previous compaction kept messages, and R13 leaves them out of the next preparation.
pub(crate) fn d1(sequence: &Sequence<'_>) -> bool {
    sequence.items.iter().any(|item| is_kept(item) && gives_message(sequence, item))
}

/// Whether an item was kept by the previous compaction.
pub(crate) fn is_kept(item: &Item) -> bool {
    matches!(item.part, Part::Kept | Part::KeptElsewhere)
}

fn gives_message(sequence: &Sequence<'_>, item: &Item) -> bool {
    sequence.role(item).is_some_and(|role| role != Role::System)
}

/// Shape of D2: the keep budget is reached, and there is no legal cut from there on.
pub(crate) fn d2(walk: &Walk) -> bool {
    walk.reached.is_some_and(|reached| !walk.legal[reached..].contains(&true))
}

/// Shape of D3: metadata stand before the message that the kept tail begins with; or that message starts a turn and is not the
/// user's own; or one before it starts a turn in our sense and not in theirs: python, custom and hook messages.
pub(crate) fn d3(sequence: &Sequence<'_>, first_kept: usize) -> bool {
    let window = sequence.window();
    let begins_with_metadata = !gives_message(sequence, &window[first_kept]);
    let first_message = window[first_kept..].iter().position(|item| gives_message(sequence, item));
    let up_to = first_message.map_or(first_kept, |at| first_kept + at + 1);
    let other_starts = window[..up_to].iter().any(|item| {
        matches!(sequence.role(item), Some(Role::PythonExecution | Role::Custom | Role::BranchSummary))
            || sequence.role(item).is_some() && !sequence.counts(item)
    });
    let begins_with_execution =
        first_message.is_some_and(|at| sequence.role(&window[first_kept + at]) == Some(Role::BashExecution));
    begins_with_metadata || begins_with_execution || other_starts
}

/// Whether an item costs something else in R13's walk: custom, developer, python and file mention messages, custom messages and
/// branch summaries cost nothing there, nor do images of a user's, and excluded executions cost what they hold (D4).
pub(crate) fn costs_otherwise(sequence: &Sequence<'_>, item: &Item) -> bool {
    match sequence.role(item) {
        Some(
            Role::Custom | Role::Developer | Role::PythonExecution | Role::FileMention | Role::BranchSummary,
        ) => true,
        Some(Role::User) => sequence.message(item).is_some_and(|message| message.n_images > 0),
        Some(_) => !sequence.counts(item),
        None => false,
    }
}

/// The same for P1, which counts all but what never reaches the model as we do.
pub(crate) fn costs_otherwise_in_p1(sequence: &Sequence<'_>, item: &Item) -> bool {
    sequence.role(item).is_some() && !sequence.counts(item)
}

/// Shape of D4: an item that costs something else is met in the walk for the keep budget, or anywhere if the budget was scaled by
/// an estimate.
pub(crate) fn d4(sequence: &Sequence<'_>, walk: &Walk, program: Program) -> bool {
    let from = if walk.is_scaled { 0 } else { walk.reached.unwrap_or(0) };
    sequence.window()[from..].iter().any(|item| match program {
        Program::R13 => costs_otherwise(sequence, item),
        Program::P1 => costs_otherwise_in_p1(sequence, item),
    })
}

/// Shape of D5: where the budget is reached, the next place that the agents would cut at is not the next one that is legal for us:
/// a call is waiting there, or we cut at a message that they do not cut at. Or messages without an entry of their own stand
/// directly before the cut, which they pull in.
pub(crate) fn d5(sequence: &Sequence<'_>, walk: &Walk) -> bool {
    let pulled_in = walk.cut.is_some_and(|cut| {
        sequence.window()[..cut]
            .iter()
            .rev()
            .take_while(|item| sequence.entry(item).kind != EntryKind::Message)
            .any(|item| {
                matches!(sequence.entry(item).kind, EntryKind::CustomMessage | EntryKind::BranchSummary)
            })
    });
    walk.cut != cut_at(walk.reached, &walk.theirs) || pulled_in
}

/// Shape of D6: tool results of the branch that the model no longer sees, or results not larger than their notice.
pub(crate) fn d6(sequence: &Sequence<'_>) -> bool {
    let seen: std::collections::HashSet<EntryNo> =
        sequence.items.iter().filter(|item| sequence.reaches_model(item)).map(|item| item.entry).collect();
    let session = sequence.session;
    sequence.branch.iter().any(|&number| {
        let entry = session.entry(number);
        is_result(entry) && (!seen.contains(&number) || is_small(session, entry))
    })
}

fn is_result(entry: &Entry) -> bool {
    entry.message().is_some_and(|message| message.role == Role::ToolResult)
}

/// Whether the notice would be no smaller than the result.
pub(crate) fn is_small(session: &Session, entry: &Entry) -> bool {
    session.tokenizer.count(&pruned_notice(entry.estimate)) >= entry.estimate
}

/// Shape of D9: the newest usage of an answer that did not fail is none that we trust: it is all zero, something later changed
/// the context, results were pruned since, or there is none at all.
pub(crate) fn d9(sequence: &Sequence<'_>) -> bool {
    let session = sequence.session;
    let newest = sequence.branch.iter().rev().find_map(|&number| {
        let message = session.entry(number).message()?;
        let usage = message.usage().filter(|_| message.role == Role::Assistant && !message.is_failed())?;
        Some((number, usage))
    });
    match (newest, usage::measured(sequence)) {
        (Some((number, usage)), Some(Measured { entry, context_tokens, .. })) => {
            number != entry || usage.context_tokens() != context_tokens
        }
        (None, Some(_)) => true,
        (_, None) => true,
    }
}

/// Shape of D12: tool results among the abandoned entries, or compactions with file lists; always for the preamble and the limit.
pub(crate) fn d12(session: &Session, abandoned: &[EntryNo]) -> bool {
    abandoned.iter().any(|&number| {
        let entry = session.entry(number);
        is_result(entry)
            || entry.compaction().is_some_and(|compaction| {
                let summary = &compaction.summary;
                !summary.read_files.is_empty() || !summary.modified_files.is_empty()
            })
    })
}

/// Shape of D13: a split turn with nothing before it that a model gets, where R13 says that there was no history although a
/// previous compaction tells it, or asks for a summary of no conversation.
pub(crate) fn d13(n_history: usize, is_split_turn: bool, says_otherwise: bool) -> bool {
    n_history == 0 && is_split_turn && says_otherwise
}

/// Shape of D15: records that share a line with others, or follow a torn one.
pub(crate) fn d15(session: &Session) -> bool {
    !session.recovered.is_empty()
}

/// Shape of D21: a summary on the branch that is marked by one of the two flags, or nested calls in a result.
pub(crate) fn d21(session: &Session, entries: &[EntryNo]) -> bool {
    entries.iter().any(|&number| {
        let entry = session.entry(number);
        let summary = entry.compaction().map(|it| &it.summary).or_else(|| entry.branch_summary());
        summary.is_some_and(|summary| summary.from_extension)
            || entry.message().is_some_and(|message| !message.nested_files.is_empty())
    })
}

/// Shape of D22: only entries that the model does not see follow the newest compaction.
pub(crate) fn d22(sequence: &Sequence<'_>) -> bool {
    sequence.compaction.is_some()
        && !sequence
            .items
            .iter()
            .any(|item| item.part == Part::After && gives_message(sequence, item) && sequence.counts(item))
}

/// The walk from the newest entry back, made anew from the rules of spec 3.3 and 3.4 so that it can tell which of them matter.
#[derive(Clone, Debug)]
pub(crate) struct Walk {
    /// Where the budget is reached.
    pub(crate) reached: Option<usize>,
    /// Whether the budget is scaled by measured over estimated tokens, by us or by R13.
    pub(crate) is_scaled: bool,
    /// Where we may cut.
    pub(crate) legal: Vec<bool>,
    /// Where the agents may cut.
    pub(crate) theirs: Vec<bool>,
    /// The message that we cut at.
    pub(crate) cut: Option<usize>,
}

impl Walk {
    /// Walks the window of a sequence.
    pub(crate) fn of(sequence: &Sequence<'_>, settings: &CompactionSettings) -> Walk {
        let window = sequence.window();
        let total: u64 =
            window.iter().filter(|item| gives_message(sequence, item)).map(|item| item.estimate).sum();
        let keep = settings.keep_recent_tokens as f64;
        // What R13 estimates of the same window: without what it leaves out by D1 and D4.
        let their_total: u64 = window
            .iter()
            .filter(|item| {
                gives_message(sequence, item) && !is_kept(item) && !costs_otherwise(sequence, item)
            })
            .map(|item| item.estimate)
            .sum();
        let ratio = |total: u64| {
            let ratio =
                usage::measured(sequence).map_or(1.0, |measured| measured.prompt_tokens / total as f64);
            if ratio.is_finite() && ratio > 1.0 { ratio } else { 1.0 }
        };
        let budget = (keep / ratio(total)).floor().max(1.0);
        let is_scaled = ratio(total) > 1.0 || ratio(their_total) > 1.0;
        let mut sum = 0;
        let reached =
            (0..window.len()).rev().filter(|&at| sequence.role(&window[at]).is_some()).find(|&at| {
                sum += window[at].estimate;
                sum as f64 >= budget
            });
        let legal = legal_cuts(sequence, window);
        let theirs = window.iter().map(|item| is_their_cut(sequence.entry(item))).collect();
        let cut = cut_at(reached, &legal);
        Walk { reached, is_scaled, legal, theirs, cut }
    }
}

/// The first place to cut at where the budget is reached or behind it, else the last one before.
fn cut_at(reached: Option<usize>, legal: &[bool]) -> Option<usize> {
    let from = reached.unwrap_or(0);
    let after = legal[from..].iter().position(|legal| *legal).map(|at| from + at);
    after.or_else(|| legal[..from].iter().rposition(|legal| *legal))
}

/// For each item whether we may cut there: its kind allows it, and it lies in no stretch from behind a call to its result.
fn legal_cuts(sequence: &Sequence<'_>, window: &[Item]) -> Vec<bool> {
    let mut calls = HashMap::new();
    let mut n_open = vec![0_i64; window.len() + 1];
    for (at, item) in window.iter().enumerate() {
        for call in sequence.calls(item) {
            calls.insert(call.id, at);
        }
        let answers = sequence
            .message(item)
            .filter(|message| message.role == Role::ToolResult)
            .and_then(|message| message.answers);
        // The newest call with this id before the result is the one that it answers.
        if let Some(&call) = answers.and_then(|id| calls.get(&id)) {
            n_open[call + 1] += 1;
            n_open[at + 1] -= 1;
        }
    }
    let mut open = 0;
    let is_free = n_open.iter().map(|change| {
        open += change;
        open == 0
    });
    let begins = |item: &Item| {
        sequence.counts(item)
            && !matches!(sequence.role(item), Some(Role::ToolResult | Role::System | Role::Unknown) | None)
    };
    window.iter().zip(is_free).map(|(item, is_free)| is_free && begins(item)).collect()
}

/// Where the agents cut: they look at the kind of an entry alone.
fn is_their_cut(entry: &Entry) -> bool {
    match entry.kind {
        EntryKind::CustomMessage | EntryKind::BranchSummary => true,
        EntryKind::Message => entry.message().is_some_and(|message| {
            matches!(
                message.role,
                Role::User
                    | Role::Assistant
                    | Role::BashExecution
                    | Role::BranchSummary
                    | Role::CompactionSummary
            )
        }),
        _ => false,
    }
}

/// The deviations that can move the cut.
pub(crate) fn cut_excuses(sequence: &Sequence<'_>, walk: &Walk, program: Program) -> Vec<Deviation> {
    let mut excuses = Vec::new();
    let in_kept = |at: Option<usize>| at.is_none_or(|at| is_kept(&sequence.window()[at]));
    if d1(sequence) && (walk.is_scaled || in_kept(walk.reached) || in_kept(walk.cut)) {
        excuses.push(Deviation::D1);
    }
    if d2(walk) {
        excuses.push(Deviation::D2);
    }
    if d4(sequence, walk, program) {
        excuses.push(Deviation::D4);
    }
    if d5(sequence, walk) {
        excuses.push(Deviation::D5);
    }
    if has_untrusted_usage(sequence) {
        excuses.push(Deviation::D9);
    }
    excuses
}

/// D9 moves the cut only if there is some usage that R13 scales the budget by.
fn has_untrusted_usage(sequence: &Sequence<'_>) -> bool {
    let session = sequence.session;
    let has_usage = sequence
        .branch
        .iter()
        .any(|&number| session.entry(number).message().is_some_and(|message| message.usage().is_some()));
    has_usage && d9(sequence)
}

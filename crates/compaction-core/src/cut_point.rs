//! Where the kept tail begins: never between a tool call and its result (spec 3.4, 3.5).

use std::collections::HashMap;

use session_model::dialect::Dialect;
use session_model::entry::EntryKind;
use session_model::message::Role;
use session_model::sequence::{Item, Sequence, Share};

use crate::turn::{is_message, starts_turn};

/// A cut of the window, by indexes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CutPoint {
    /// The first kept item.
    pub first_kept: usize,
    /// Where the turn starts that the cut splits, if it splits one.
    pub turn_start: Option<usize>,
}

/// Finds the cut that keeps about `budget` tokens of the window; `None` if there is no place to cut at.
pub fn find_cut_point(sequence: &Sequence<'_>, budget: u64) -> Option<CutPoint> {
    let window = sequence.window();
    let legal = legal_cuts(sequence, window);
    let reached = reached(sequence, window, budget);
    let cut = match reached {
        None => legal.iter().position(|legal| *legal)?,
        Some(reached) => {
            let after = legal[reached..].iter().position(|legal| *legal).map(|at| reached + at);
            after.or_else(|| legal[..reached].iter().rposition(|legal| *legal))?
        }
    };
    let cut = if reached.is_some() { behind_omitted_attempt(sequence, window, cut) } else { cut };
    let first_kept = with_metadata_before(window, sequence, cut);
    Some(CutPoint { first_kept, turn_start: split_turn(sequence, window, first_kept) })
}

/// The newest item from which on the items together have `budget` tokens; system messages count too.
fn reached(sequence: &Sequence<'_>, window: &[Item], budget: u64) -> Option<usize> {
    let mut sum = 0;
    let gives_message = |item: &Item| sequence.role(item).is_some();
    window.iter().enumerate().rev().filter(|(_, item)| gives_message(item)).find_map(|(at, item)| {
        sum += item.estimate;
        (sum >= budget).then_some(at)
    })
}

/// For each item whether the kept tail may begin with it.
fn legal_cuts(sequence: &Sequence<'_>, window: &[Item]) -> Vec<bool> {
    // A call's newest place, and for each place how many calls begin or cease to wait there.
    let mut calls = HashMap::new();
    let mut waiting_until: Vec<usize> = vec![0; window.len()];
    for (at, item) in window.iter().enumerate() {
        for call in sequence.calls(item) {
            calls.insert(call.id, at);
        }
        let Some(message) = sequence.message(item).filter(|message| message.role == Role::ToolResult) else {
            continue;
        };
        if let Some(&call) = message.answers.and_then(|id| calls.get(&id)) {
            waiting_until[call] = waiting_until[call].max(at);
        }
    }
    let mut until = 0;
    window
        .iter()
        .enumerate()
        .map(|(at, item)| {
            let is_free = until < at || until == 0;
            until = until.max(waiting_until[at]);
            is_free && may_begin(sequence, item)
        })
        .collect()
}

/// Whether the kind of an item lets the kept tail begin with it.
fn may_begin(sequence: &Sequence<'_>, item: &Item) -> bool {
    sequence.counts(item)
        && match sequence.role(item) {
            Some(
                Role::User
                | Role::Developer
                | Role::Assistant
                | Role::BashExecution
                | Role::PythonExecution
                | Role::Custom
                | Role::FileMention
                | Role::BranchSummary
                | Role::CompactionSummary,
            ) => true,
            Some(Role::ToolResult | Role::System | Role::Unknown) | None => false,
        }
}

/// In pi files a recovered request can be too large to keep: if nothing that gives a message follows the cut, and an answer that
/// an edit omits is there, the cut goes behind the request, as pi does it.
fn behind_omitted_attempt(sequence: &Sequence<'_>, window: &[Item], cut: usize) -> usize {
    if sequence.session.dialect != Dialect::Pi {
        return cut;
    }
    let behind = &window[cut + 1..];
    let is_omitted_attempt =
        |item: &Item| sequence.entry(item).message().is_some_and(|message| message.role == Role::Assistant);
    if behind.iter().any(is_omitted_attempt) && behind.iter().all(|item| item.share == Share::Nothing) {
        cut + 1
    } else {
        cut
    }
}

/// Entries without a message directly before the cut stay with what follows them.
fn with_metadata_before(window: &[Item], sequence: &Sequence<'_>, cut: usize) -> usize {
    let joins =
        |item: &Item| item.share == Share::Nothing && sequence.entry(item).kind != EntryKind::Compaction;
    cut - window[..cut].iter().rev().take_while(|item| joins(item)).count()
}

/// The start of the turn that the cut splits: the kept tail does not begin with a turn, and one starts before it. A tail without
/// messages, behind an omitted attempt, begins with none.
fn split_turn(sequence: &Sequence<'_>, window: &[Item], first_kept: usize) -> Option<usize> {
    let first = window[first_kept..].iter().find(|item| is_message(sequence, item));
    if first.is_some_and(|first| starts_turn(sequence, first)) {
        return None;
    }
    window[..first_kept].iter().rposition(|item| starts_turn(sequence, item))
}

//! Would a provider take the context? Faults and notes, with the entries concerned (spec 2.4).

use std::collections::HashMap;
use std::fmt;

use crate::entry::{EntryNo, NameNo};
use crate::message::Role;
use crate::sequence::Sequence;

/// Something in a context that a provider refuses (a fault), or only may find odd (a note).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Finding {
    /// What is wrong.
    pub kind: FindingKind,
    /// The entry concerned.
    pub entry: EntryNo,
    /// The tool call concerned.
    pub call: NameNo,
}

/// The kinds of findings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FindingKind {
    /// A tool result that no earlier call asked for.
    ResultWithoutCall,
    /// A call that has no result, and is not in the last assistant message.
    CallWithoutResult,
    /// A second result of one call.
    SecondResult,
    /// A result behind a later assistant message than the one that made the call.
    SeparatedResult,
    /// An assistant message that failed or was aborted, with calls that have no result.
    FailedWithCalls,
    /// Note: results in another order than their calls.
    ResultOrder,
    /// Note: a user-role message between a call and its result.
    UserBetween,
}

impl FindingKind {
    /// Whether a provider refuses the context for it.
    pub fn is_fault(self) -> bool {
        !matches!(self, FindingKind::ResultOrder | FindingKind::UserBetween)
    }

    /// The name in machine-readable output.
    pub fn name(self) -> &'static str {
        match self {
            FindingKind::ResultWithoutCall => "result_without_call",
            FindingKind::CallWithoutResult => "call_without_result",
            FindingKind::SecondResult => "second_result",
            FindingKind::SeparatedResult => "separated_result",
            FindingKind::FailedWithCalls => "failed_with_calls",
            FindingKind::ResultOrder => "result_order",
            FindingKind::UserBetween => "user_between",
        }
    }
}

impl fmt::Display for FindingKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            FindingKind::ResultWithoutCall => "a tool result without an earlier call",
            FindingKind::CallWithoutResult => "a tool call without a result",
            FindingKind::SecondResult => "a second result for one tool call",
            FindingKind::SeparatedResult => "a tool result behind a later assistant message than its call",
            FindingKind::FailedWithCalls => "a failed assistant message with unanswered tool calls",
            FindingKind::ResultOrder => "tool results in another order than their calls",
            FindingKind::UserBetween => "a user message between a tool call and its result",
        })
    }
}

/// A call on its way to its result.
struct OpenCall {
    entry: EntryNo,
    /// Which assistant message made it, counted from 0.
    assistant: usize,
    /// Its place among all calls.
    order: usize,
    n_results: usize,
    failed: bool,
    user_since: bool,
}

/// All findings of a context, in its order. Linear in the length of the sequence.
pub fn validate(sequence: &Sequence<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut calls: Vec<(NameNo, OpenCall)> = Vec::new();
    let mut newest: HashMap<NameNo, usize> = HashMap::new();
    let mut n_assistants = 0;
    // For the notes: the calls that wait, and the highest call that has been answered since the last assistant message.
    let mut waiting: Vec<usize> = Vec::new();
    let mut answered_up_to = None;
    for item in sequence.items.iter().filter(|item| sequence.reaches_model(item)) {
        match sequence.role(item) {
            Some(Role::Assistant) => {
                n_assistants += 1;
                waiting.clear();
                answered_up_to = None;
                let failed = sequence.message(item).is_some_and(|message| message.is_failed());
                for call in sequence.calls(item) {
                    newest.insert(call.id, calls.len());
                    waiting.push(calls.len());
                    let open = OpenCall {
                        entry: item.entry,
                        assistant: n_assistants,
                        order: calls.len(),
                        n_results: 0,
                        failed,
                        user_since: false,
                    };
                    calls.push((call.id, open));
                }
            }
            Some(Role::ToolResult) => {
                let Some(id) = sequence.message(item).and_then(|message| message.answers) else { continue };
                let mut find = |kind| findings.push(Finding { kind, entry: item.entry, call: id });
                let Some(&at) = newest.get(&id) else {
                    find(FindingKind::ResultWithoutCall);
                    continue;
                };
                let call = &mut calls[at].1;
                call.n_results += 1;
                if call.n_results > 1 {
                    find(FindingKind::SecondResult);
                } else if call.assistant != n_assistants {
                    find(FindingKind::SeparatedResult);
                } else {
                    if answered_up_to.is_some_and(|order| order > call.order) {
                        find(FindingKind::ResultOrder);
                    }
                    if call.user_since {
                        find(FindingKind::UserBetween);
                    }
                    answered_up_to = answered_up_to.max(Some(call.order));
                }
            }
            Some(_) => waiting.drain(..).for_each(|at| calls[at].1.user_since = true),
            None => {}
        }
    }
    for (id, call) in calls.iter().filter(|(_, call)| call.n_results == 0) {
        let kind = if call.failed {
            FindingKind::FailedWithCalls
        } else if call.assistant < n_assistants {
            FindingKind::CallWithoutResult
        } else {
            continue;
        };
        findings.push(Finding { kind, entry: call.entry, call: *id });
    }
    findings
}

/// Faults of `after` that `before` does not have, by entry id and call: what a writing command must not bring about.
pub fn new_faults(before: &Sequence<'_>, after: &Sequence<'_>) -> Vec<Finding> {
    let key = |sequence: &Sequence<'_>, finding: &Finding| {
        let session = sequence.session;
        (finding.kind, session.id(finding.entry).to_owned(), session.name(finding.call).to_owned())
    };
    let old: std::collections::HashSet<_> =
        validate(before).iter().map(|finding| key(before, finding)).collect();
    validate(after)
        .into_iter()
        .filter(|finding| finding.kind.is_fault() && !old.contains(&key(after, finding)))
        .collect()
}

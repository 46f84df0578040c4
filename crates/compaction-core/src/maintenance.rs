//! What automatic maintenance decides after a turn (spec 6.4).

use session_model::dialect::Dialect;
use session_model::entry::{EntryKind, EntryNo, Stamp};
use session_model::message::{MessageFacts, Role, StopReason};
use session_model::sequence::Sequence;
use session_model::state::changed_model;
use session_model::value::Value;

use crate::overflow::find_overflow;
use crate::settings::CompactionSettings;
use crate::trigger::is_due;
use crate::usage;

/// Why a compaction is made on its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// The context was too long for the model.
    Overflow,
    /// The threshold is passed.
    Threshold,
    /// The session rests and is large.
    Idle,
}

impl Reason {
    /// The name in events and reports.
    pub fn name(self) -> &'static str {
        match self {
            Reason::Overflow => "overflow",
            Reason::Threshold => "threshold",
            Reason::Idle => "idle",
        }
    }
}

/// What is to be done first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing.
    Nothing(Rest),
    /// Compact, because the context was too long.
    Recover(Overflow),
    /// Prune, then compact if what is left is due.
    PruneAndCheck,
}

/// Why nothing is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rest {
    /// Automatic compaction is turned off.
    Disabled,
    /// The user stopped the last answer.
    Aborted,
    /// The last answer failed for another reason than its length.
    Failed,
}

impl Rest {
    /// The name in machine-readable output.
    pub fn name(self) -> &'static str {
        match self {
            Rest::Disabled => "disabled",
            Rest::Aborted => "aborted",
            Rest::Failed => "failed",
        }
    }
}

/// An answer that the context was too long for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overflow {
    /// The assistant message.
    pub entry: EntryNo,
    /// Whether the message is a failed one, rather than one that silently used more than the window.
    pub is_error: bool,
    /// Whether it can leave the stored context: nothing but labels and an extension's data follows it.
    pub can_leave: bool,
}

/// What automatic maintenance does first, in a window of this many tokens.
pub fn first_step(sequence: &Sequence<'_>, settings: &CompactionSettings, window: Option<u64>) -> Step {
    if !settings.enabled {
        return Step::Nothing(Rest::Disabled);
    }
    let Some((_, last)) = last_assistant(sequence) else { return Step::PruneAndCheck };
    if last.stop_reason == Some(StopReason::Aborted) {
        return Step::Nothing(Rest::Aborted);
    }
    if let Some(overflow) = overflow(sequence, window) {
        return Step::Recover(overflow);
    }
    if last.stop_reason == Some(StopReason::Error) {
        return Step::Nothing(Rest::Failed);
    }
    Step::PruneAndCheck
}

/// Whether a compaction is due for what is left after pruning: the reason, if it is.
pub fn due(
    sequence: &Sequence<'_>,
    settings: &CompactionSettings,
    window: Option<u64>,
    idle: bool,
) -> Option<Reason> {
    let tokens = usage::context_tokens(sequence);
    if idle {
        return (tokens > settings.idle_threshold_tokens).then_some(Reason::Idle);
    }
    is_due(settings, tokens, window?).then_some(Reason::Threshold)
}

/// The overflow that the last assistant message shows, if it is of the branch's model and newer than the newest compaction.
pub fn overflow(sequence: &Sequence<'_>, window: Option<u64>) -> Option<Overflow> {
    let (entry, message) = last_assistant(sequence)?;
    if !is_of_current_model(sequence, entry, message) {
        return None;
    }
    let is_error = message.stop_reason == Some(StopReason::Error);
    let is_overflow = if is_error {
        message.error_message.as_deref().is_some_and(|text| find_overflow(text).is_some())
    } else {
        let usage = message.usage().filter(|usage| !usage.is_zero());
        usage.zip(window).is_some_and(|(usage, window)| usage.prompt_tokens() > window as f64)
    };
    is_overflow.then(|| Overflow { entry, is_error, can_leave: is_error && is_last(sequence, entry) })
}

/// The last assistant message of the branch that comes after the newest compaction and reset.
fn last_assistant<'s>(sequence: &Sequence<'s>) -> Option<(EntryNo, &'s MessageFacts)> {
    let session = sequence.session;
    let since_compaction = sequence.branch.iter().rev().take_while(|&&entry| {
        !matches!(session.entry(entry).kind, EntryKind::Compaction | EntryKind::ResetBoundary)
    });
    let mut messages = since_compaction.filter_map(|&entry| Some((entry, session.entry(entry).message()?)));
    let (entry, message) = messages.find(|(_, message)| message.role == Role::Assistant)?;
    // What an edit has taken out of the context is dealt with already.
    let item = sequence.items.iter().find(|item| item.entry == entry)?;
    sequence.role(item).map(|_| (entry, message))
}

/// Whether the branch's current model is the one that gave this message: a change of model makes an overflow history.
fn is_of_current_model(sequence: &Sequence<'_>, entry: EntryNo, message: &MessageFacts) -> bool {
    let session = sequence.session;
    let at = sequence.branch.iter().rposition(|&number| number == entry).unwrap_or(0);
    let mut changes = sequence.branch[at + 1..].iter().rev().map(|&number| session.entry(number));
    let Some((provider, id)) = changes.find_map(changed_model) else { return true };
    message.model.is_some_and(|(own_provider, own)| {
        (&*provider, &*id) == (session.name(own_provider), session.name(own))
    })
}

/// Whether nothing but labels and an extension's data follows an entry on its branch.
fn is_last(sequence: &Sequence<'_>, entry: EntryNo) -> bool {
    let session = sequence.session;
    let after = sequence.branch.iter().rev().take_while(|&&number| number != entry);
    after
        .into_iter()
        .all(|&number| matches!(session.entry(number).kind, EntryKind::Label | EntryKind::Custom))
}

/// How a failed message leaves the stored context, while the file keeps it (spec D16).
#[derive(Clone, Debug, PartialEq)]
pub enum Leave {
    /// The compaction hangs at the message's parent: oh-my-pi.
    AtParent,
    /// An edit omits the message, and the compaction follows it: pi.
    Omit {
        /// The edit.
        edit: Value<'static>,
    },
}

/// How a failed message leaves the context in the form of the agent that wrote the file.
pub fn leave(sequence: &Sequence<'_>, failed: EntryNo, time_ms: i64) -> Leave {
    let session = sequence.session;
    match session.dialect {
        Dialect::OhMyPi => Leave::AtParent,
        Dialect::Pi => {
            let leaf = sequence.branch.last().map(|&leaf| session.id(leaf));
            let make = |stamp: &Stamp| {
                let mut edit = stamp.head(EntryKind::ContextEdit, leaf);
                edit.set("targetId", session.id(failed).to_owned());
                edit.set("replacement", Value::Null);
                Value::Object(edit)
            };
            let (_, edit) = Stamp::entry(time_ms, |id| session.has_id(id), make);
            Leave::Omit { edit }
        }
    }
}

//! How large the context is: measured by the provider where that still holds, estimated for the rest (spec 3.2).

use session_model::entry::{EntryKind, EntryNo};
use session_model::message::{Role, pruned_notice};
use session_model::sequence::Sequence;
use session_model::system;

/// What the provider counted for the newest answer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// The assistant message that has the count.
    pub entry: EntryNo,
    /// Tokens of the context with the answer.
    pub context_tokens: f64,
    /// Tokens of the prompt alone.
    pub prompt_tokens: f64,
}

/// The newest usage on the branch that still says something about the context: none if a compaction, a context edit or a reset
/// came after it. Results that were pruned since are taken off it.
pub fn measured(sequence: &Sequence<'_>) -> Option<Measured> {
    let session = sequence.session;
    let (mut found, mut measured_at) = (None, 0);
    for (at, &number) in sequence.branch.iter().enumerate().rev() {
        let entry = session.entry(number);
        if matches!(entry.kind, EntryKind::Compaction | EntryKind::ContextEdit | EntryKind::ResetBoundary) {
            return None;
        }
        let Some(message) = entry.message() else { continue };
        let usage = message.usage().filter(|usage| !usage.is_zero());
        if message.role == Role::Assistant && !message.is_failed() && usage.is_some() {
            (found, measured_at) = (usage.map(|usage| (number, usage)), at);
            break;
        }
    }
    let (number, usage) = found?;
    let pruned = pruned_since(sequence, measured_at, session.entry(number).time_ms()) as f64;
    let less = |tokens: f64| if pruned > 0.0 { (tokens - pruned).max(0.0) } else { tokens };
    Some(Measured {
        entry: number,
        context_tokens: less(usage.context_tokens()),
        prompt_tokens: less(usage.prompt_tokens()),
    })
}

/// Tokens that results before the measured message have lost since. A result that was pruned at the very time of that message
/// was pruned after it: nothing is pruned while a request is under way.
fn pruned_since(sequence: &Sequence<'_>, measured_at: usize, time_ms: Option<i64>) -> u64 {
    let Some(time_ms) = time_ms else { return 0 };
    let before = &sequence.branch[..measured_at];
    before
        .iter()
        .filter_map(|&entry| sequence.session.entry(entry).message())
        .filter(|message| message.pruned_at.is_some_and(|pruned_at| pruned_at >= time_ms as f64))
        .filter_map(|message| message.pruned_tokens)
        .map(|tokens| tokens.saturating_sub(notice_estimate(sequence, tokens)))
        .fold(0, u64::saturating_add)
}

fn notice_estimate(sequence: &Sequence<'_>, tokens: u64) -> u64 {
    sequence.session.tokenizer.count(&pruned_notice(tokens))
}

/// Tokens of the context now: what was measured and the estimate of what follows, or the estimate of everything.
pub fn context_tokens(sequence: &Sequence<'_>) -> u64 {
    let Some(measured) = measured(sequence) else { return estimate(sequence) };
    let at = sequence.items.iter().position(|item| item.entry == measured.entry);
    let after = at.map_or(&[][..], |at| &sequence.items[at + 1..]);
    let after: u64 = after.iter().filter(|item| sequence.reaches_model(item)).map(|item| item.estimate).sum();
    // What a file says was measured can be any number.
    (measured.context_tokens as u64).saturating_add(after)
}

/// The estimate of the whole context, the summary included, system messages as their fold.
pub fn estimate(sequence: &Sequence<'_>) -> u64 {
    sequence.estimate() + system_estimate(sequence)
}

/// What the fold of the system messages costs.
fn system_estimate(sequence: &Sequence<'_>) -> u64 {
    system::fold_of(sequence).map_or(0, |fold| fold.estimate(sequence.session.tokenizer))
}

#[cfg(test)]
mod tests {
    use session_model::session::Session;

    use super::context_tokens;

    #[test]
    fn counts_beyond_all_measure_do_not_overflow() {
        let file = concat!(
            "{\"type\":\"session\",\"version\":3,\"id\":\"s\"}\n",
            "{\"type\":\"message\",\"id\":\"a\",\"parentId\":null,\"message\":{\"role\":\"assistant\",\"content\":[],",
            "\"stopReason\":\"stop\",\"usage\":{\"input\":1e300,\"output\":1}}}\n",
            "{\"type\":\"message\",\"id\":\"b\",\"parentId\":\"a\",\"message\":{\"role\":\"user\",\"content\":\"more than nothing\"}}\n",
        );
        let (session, _) = Session::read(file.as_bytes()).expect("a session");
        assert_eq!(context_tokens(&session.branch(None).effective()), u64::MAX);
    }
}

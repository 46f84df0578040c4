//! The summarizer without a model: the same sections, made of the messages themselves (spec 5.5). Deterministic and linear.
//!
//! ```text
//! messages → digest (calls, sentences, facts) → sections (layout, section), merged with the previous summary's (previous)
//!          → ranks of the facts (rank) → lines that fill the room (context) → text, then the index (index, fold)
//! ```

use std::collections::HashSet;

use session_model::error::RecordError;
use session_model::text::{take_units, units};
use session_model::value::Value;

use context::Filler;
use digest::{Digest, Voice};
use facts::each_fact;
use previous::{INDEX_LABEL, Previous};
use rank::Ranks;
pub use rank::{FEATURES, Weights};
use section::{STANDING, Section, fit};

use crate::material::Messages;
use crate::transcript::content_text;

mod calls;
mod context;
mod digest;
mod facts;
mod fold;
mod index;
mod layout;
mod previous;
mod rank;
mod section;
mod sentences;
#[cfg(test)]
mod tests;

/// What a summary is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The history before the kept messages.
    History,
    /// The first part of a split turn.
    TurnPrefix,
    /// An abandoned branch.
    Branch,
}

/// What a summary is made of.
#[derive(Clone, Copy)]
pub struct EmbeddedInput<'a> {
    /// What it is of.
    pub kind: Kind,
    /// The model messages that it stands for.
    pub messages: &'a dyn Messages,
    /// Messages that stay behind it: what they say need not be said.
    pub kept: &'a dyn Messages,
    /// The summary that it goes on from, without file blocks.
    pub previous_summary: Option<&'a str>,
    /// What the user wants it to attend to.
    pub instructions: Option<&'a str>,
    /// Most tokens of it, by estimate.
    pub limit_tokens: u64,
}

/// Share of the sections' room in which their own lines are chosen by rank; the rest goes to what carries most, in percent.
const FIXED_PERCENT: u64 = 80;

/// Makes the summary; never longer than its limit.
///
/// # Errors
/// A record that cannot be read again.
pub fn summarize(input: &EmbeddedInput<'_>) -> Result<String, RecordError> {
    summarize_by(input, &Weights::default())
}

/// Makes the summary with other weights for the ranking of facts, so that a choice of weights can be judged.
///
/// # Errors
/// As [`summarize`].
pub fn summarize_by(input: &EmbeddedInput<'_>, weights: &Weights) -> Result<String, RecordError> {
    let mut digest = Digest::of(input.messages)?;
    let previous = input.previous_summary.map(Previous::of).unwrap_or_default();
    previous.facts().for_each(|text| digest.take_facts(text, 0, Voice::Agent));
    let previous = digest.calls.go_on_from(previous);
    let mut sections = match input.kind {
        Kind::History => layout::history(&digest, &previous),
        Kind::TurnPrefix => layout::turn_prefix(&digest),
        Kind::Branch => layout::branch(&digest),
    };
    attend(&mut sections, input.instructions);
    let limit = input.limit_tokens * 4;
    let ranks = Ranks::of(&digest, &facts_of(input.kept)?, weights);
    let filler = Filler::of(&digest, &ranks, input.messages)?;
    let filled = |room: u64| {
        let mut fitted = sections.clone();
        fit(&mut fitted, room, FIXED_PERCENT);
        filler.filled(&fitted, room)
    };
    let mut text = filled(limit / 2);
    let mut index = index_behind(&ranks, &text, limit);
    // What the index does not need goes to the sections.
    let left = limit.saturating_sub(units(&text) + units(&index));
    if left > 0 {
        // An index that is as long as the sections grows with them.
        let is_full = units(&index) + 100 > units(&text);
        text = filled(limit / 2 + if is_full { left / 2 } else { left });
        index = index_behind(&ranks, &text, limit);
    }
    let whole = if index.is_empty() { text } else { place(&text, &index, input.kind) };
    Ok(take_units(&whole, limit).to_owned())
}

/// The index with its label, in what a text leaves of the limit and never longer than that text.
fn index_behind(ranks: &Ranks<'_>, text: &str, limit: u64) -> String {
    let label = format!("\n\n{INDEX_LABEL}\n");
    let used = units(text);
    let room = limit.saturating_sub(used).min(used).saturating_sub(units(&label));
    let index = index::index(ranks, text, room);
    if index.is_empty() { index } else { label + &index }
}

/// Two or three sentences: what was asked, what was changed, what is open.
///
/// # Errors
/// As [`summarize`].
pub fn short_summary(
    messages: &dyn Messages,
    kept: &dyn Messages,
    limit_tokens: u64,
) -> Result<String, RecordError> {
    let limit = limit_tokens * 4;
    let digest = Digest::without_facts(messages)?;
    let later = Digest::without_facts(kept)?;
    let mut parts = Vec::new();
    if let Some(request) = digest.requests.last().or(later.requests.last()) {
        let first = layout::telling_sentence(request);
        parts.push(format!("Asked: {}", ended(take_units(first, limit / 3))));
    }
    let changed: Vec<&str> = digest.calls.changes.iter().rev().map(|change| change.path.as_str()).collect();
    if let Some(first) = changed.first() {
        let more = match changed.len() {
            1 => String::new(),
            n => format!(" and {} more", n - 1),
        };
        parts.push(format!("Changed {}{more}.", take_units(first, limit / 4)));
    }
    let question = later.question.or(digest.question);
    let last = later.last_words.last().or(digest.last_words.last()).cloned();
    if let Some(last) = question.or(last) {
        parts.push(ended(take_units(&last, limit / 3)));
    }
    Ok(take_units(&parts.join(" "), limit).to_owned())
}

/// An index of facts as a block of its own, to be put behind a model's summary; empty if nothing fits.
/// What the kept messages hold is left out.
///
/// # Errors
/// As [`summarize`].
pub fn facts_index(
    messages: &dyn Messages,
    kept: &dyn Messages,
    limit_tokens: u64,
    summary: &str,
) -> Result<String, RecordError> {
    let digest = Digest::of(messages)?;
    let ranks = Ranks::of(&digest, &facts_of(kept)?, &Weights::default());
    let label = format!("{INDEX_LABEL}\n");
    let room = (limit_tokens * 4).saturating_sub(units(&label));
    let index = index::index(&ranks, summary, room);
    Ok(if index.is_empty() { index } else { format!("{label}{index}") })
}

/// All facts of the input, those of the kept messages left out, with their features: what weights are fitted to.
///
/// # Errors
/// As [`summarize`].
pub fn features(input: &EmbeddedInput<'_>) -> Result<Vec<(String, [f64; FEATURES.len()])>, RecordError> {
    let mut digest = Digest::of(input.messages)?;
    let previous = input.previous_summary.map(Previous::of).unwrap_or_default();
    previous.facts().for_each(|text| digest.take_facts(text, 0, Voice::Agent));
    let kept = facts_of(input.kept)?;
    let n_messages = digest.n_messages as f64;
    let facts = digest.facts.iter().filter(|(fact, _)| !kept.contains(fact.as_str()));
    Ok(facts.map(|(fact, weight)| (fact.clone(), rank::features(fact, weight, n_messages))).collect())
}

/// The index of exactly these facts, however long it gets: what a ranking that knew what will be needed would write.
pub fn index_of(facts: &[&str]) -> String {
    format!("{INDEX_LABEL}\n{}", index::index_of(facts))
}

/// A summary with its index and its folded paths written out, each on a line of its own behind the rest.
pub fn expanded(summary: &str) -> String {
    let mut whole = summary.to_owned();
    let previous = Previous::of(summary);
    for fact in previous.indexed.iter().chain(&previous.reads) {
        whole.push('\n');
        whole.push_str(fact);
    }
    whole
}

fn ended(sentence: &str) -> String {
    let sentence = sentence.trim();
    let is_ended = sentence.ends_with(['.', '!', '?', '。', '！', '？', '؟', '…', ':']);
    if is_ended { sentence.to_owned() } else { format!("{sentence}.") }
}

/// Facts that stay in the context anyway.
fn facts_of(messages: &dyn Messages) -> Result<HashSet<String>, RecordError> {
    let mut found = HashSet::new();
    messages.each(&mut |message| {
        each_fact(&content_text(message), |_, fact| {
            found.insert(fact.to_owned());
        });
        for block in message.get("content").map_or(&[][..], Value::items) {
            if let Some(arguments) = block.get("arguments") {
                each_fact(&arguments.to_json(), |_, fact| {
                    found.insert(fact.to_owned());
                });
            }
        }
    })?;
    Ok(found)
}

/// Puts the index where it belongs: at the end of the critical context.
fn place(text: &str, index: &str, kind: Kind) -> String {
    let next = match kind {
        Kind::History => "\n\n## Additional Notes",
        Kind::Branch => "\n\n## Next Steps",
        Kind::TurnPrefix => return format!("{text}{index}"),
    };
    match text.find(next) {
        Some(at) => format!("{}{index}{}", &text[..at], &text[at..]),
        None => format!("{text}{index}"),
    }
}

/// What the user asked to attend to goes first.
fn attend(sections: &mut [Section], instructions: Option<&str>) {
    let words: Vec<String> = instructions
        .unwrap_or_default()
        .split(|character: char| !character.is_alphanumeric())
        .filter(|word| word.chars().count() >= 4)
        .map(str::to_lowercase)
        .collect();
    if words.is_empty() {
        return;
    }
    for line in sections.iter_mut().flat_map(|section| &mut section.lines) {
        let low = line.text.to_lowercase();
        if words.iter().any(|word| low.contains(word.as_str())) {
            line.rank = line.rank.saturating_add(STANDING / 2);
        }
    }
}

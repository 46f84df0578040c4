//! What a compaction would summarise and what it would keep, decided from facts alone (spec 3.3).

use std::fmt;

use session_model::entry::EntryNo;
use session_model::sequence::{Item, Part, Sequence};

use crate::cut_point::{CutPoint, find_cut_point};
use crate::file_ops::FileOps;
use crate::settings::CompactionSettings;
use crate::turn::is_message;
use crate::usage::{self, Measured};

/// Why there is nothing to compact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Skip {
    /// The model has seen nothing new since the newest compaction.
    AlreadyCompacted,
    /// Everything is in the part that is kept.
    NothingToCompact,
}

impl Skip {
    /// The name in machine-readable output (spec part 7).
    pub fn name(self) -> &'static str {
        match self {
            Skip::AlreadyCompacted => "already_compacted",
            Skip::NothingToCompact => "nothing_to_compact",
        }
    }
}

impl fmt::Display for Skip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Skip::AlreadyCompacted => "already compacted: the model has got nothing new since",
            Skip::NothingToCompact => "nothing to compact: everything is in the part that is kept",
        })
    }
}

/// What a compaction of a sequence would do.
#[derive(Clone, Debug)]
pub struct Preparation<'s> {
    /// The sequence that it is of.
    pub sequence: Sequence<'s>,
    /// The entry that the kept tail begins with.
    pub first_kept: EntryNo,
    /// Index in the window of the item that the kept tail begins with.
    pub cut: usize,
    /// Messages that the summary of the history stands for.
    pub history: Vec<Item>,
    /// Messages of the first part of a split turn.
    pub turn_prefix: Vec<Item>,
    /// Messages that stay.
    pub recent: Vec<Item>,
    /// Whether the cut splits a turn.
    pub is_split_turn: bool,
    /// The compaction that the new one goes on from.
    pub previous: Option<EntryNo>,
    /// Tokens of the context now.
    pub tokens_before: u64,
    /// What the provider counted, if that still holds.
    pub measured: Option<Measured>,
    /// Tokens that the kept tail was cut for.
    pub keep_budget: u64,
    /// Files touched by what is summarised, and by what was summarised before.
    pub file_ops: FileOps,
    /// The settings that it was made with.
    pub settings: CompactionSettings,
}

/// Decides what a compaction of `sequence` would summarise and keep.
///
/// # Errors
/// [`Skip`] if there is nothing to do.
pub fn prepare<'s>(sequence: &Sequence<'s>, settings: &CompactionSettings) -> Result<Preparation<'s>, Skip> {
    if sequence.compaction.is_some() && !has_news(sequence) {
        return Err(Skip::AlreadyCompacted);
    }
    let measured = usage::measured(sequence);
    let keep_budget = keep_budget(sequence, settings, measured);
    let CutPoint { first_kept, turn_start } =
        find_cut_point(sequence, keep_budget).ok_or(Skip::NothingToCompact)?;
    let window = sequence.window();
    let messages = |items: &[Item]| -> Vec<Item> {
        items.iter().filter(|item| is_message(sequence, item)).copied().collect()
    };
    let history_end = turn_start.unwrap_or(first_kept);
    let history = messages(&window[..history_end]);
    let turn_prefix = messages(&window[history_end..first_kept]);
    if history.is_empty() && turn_prefix.is_empty() {
        return Err(Skip::NothingToCompact);
    }
    let mut file_ops = FileOps::default();
    let previous = sequence.compaction;
    if let Some(compaction) = previous.and_then(|entry| sequence.session.entry(entry).compaction()) {
        file_ops.inherit(&compaction.summary);
    }
    file_ops.collect(sequence, history.iter().chain(&turn_prefix));
    Ok(Preparation {
        first_kept: window[first_kept].entry,
        cut: first_kept,
        recent: messages(&window[first_kept..]),
        history,
        turn_prefix,
        is_split_turn: turn_start.is_some(),
        previous,
        tokens_before: usage::context_tokens(sequence),
        measured,
        keep_budget,
        file_ops: file_ops.sorted(),
        settings: settings.clone(),
        sequence: sequence.clone(),
    })
}

/// Whether the model has got anything since the newest compaction.
fn has_news(sequence: &Sequence<'_>) -> bool {
    sequence
        .items
        .iter()
        .any(|item| item.part == Part::After && is_message(sequence, item) && sequence.reaches_model(item))
}

/// The keep budget in estimated tokens: scaled down where the provider counts more than the estimate, as for Chinese text.
fn keep_budget(sequence: &Sequence<'_>, settings: &CompactionSettings, measured: Option<Measured>) -> u64 {
    let keep = settings.keep_recent_tokens;
    let Some(measured) = measured else { return keep };
    let estimate: u64 =
        sequence.window().iter().filter(|item| is_message(sequence, item)).map(|item| item.estimate).sum();
    let ratio = measured.prompt_tokens / estimate as f64;
    if ratio.is_finite() && ratio > 1.0 { ((keep as f64 / ratio).floor() as u64).max(1) } else { keep }
}

impl Preparation<'_> {
    /// Estimated tokens of the kept tail.
    pub fn recent_tokens(&self) -> u64 {
        self.recent.iter().map(|item| item.estimate).sum()
    }

    /// The largest message of the kept tail.
    pub fn largest_recent(&self) -> Option<&Item> {
        self.recent.iter().max_by_key(|item| item.estimate)
    }
}

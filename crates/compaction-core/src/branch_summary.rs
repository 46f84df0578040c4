//! Leaving a branch: what is abandoned, what of it fits a summary request, and the entry that is written (spec 6.1, 6.2).

use session_model::dialect::Dialect;
use session_model::entry::{EntryKind, EntryNo, Stamp};
use session_model::message::Role;
use session_model::prompts::{PromptName, Prompts};
use session_model::sequence::{Item, Sequence};
use session_model::session::Session;
use session_model::value::Value;

use crate::compaction_entry::details;
use crate::file_ops::{FileOps, with_file_blocks};
use crate::settings::BranchSummarySettings;
use crate::turn::is_message;

/// The model's window where it is not known, in tokens.
pub const UNKNOWN_WINDOW: u64 = 128_000;

/// UTF-16 units of a tool result that a transcript shows, with the line that says how much is missing.
const SHOWN_RESULT_UNITS: u64 = 2_050;

/// A move from one leaf to another place of the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Navigation {
    /// The leaf that is left; none in an empty session.
    pub old_leaf: Option<EntryNo>,
    /// Where the user goes.
    pub target: EntryNo,
    /// The entry that the session goes on from; none at the root.
    pub new_leaf: Option<EntryNo>,
    /// Whether the target is a message whose text is handed back for editing.
    pub gives_text_back: bool,
    /// The deepest entry on both branches.
    pub common_ancestor: Option<EntryNo>,
    /// What is left behind, oldest first.
    pub abandoned: Vec<EntryNo>,
}

/// Plans the move from `old_leaf` to `target`; `None` if that is where the session is.
pub fn navigate(session: &Session, old_leaf: Option<EntryNo>, target: EntryNo) -> Option<Navigation> {
    if old_leaf == Some(target) {
        return None;
    }
    let old_branch = old_leaf.map_or_else(Vec::new, |leaf| session.branch(Some(leaf)).entries);
    let target_branch = session.branch(Some(target)).entries;
    let n_common = old_branch.iter().zip(&target_branch).take_while(|(old, new)| old == new).count();
    let entry = session.entry(target);
    let gives_text_back = match entry.kind {
        EntryKind::CustomMessage => true,
        EntryKind::Message => entry.message().is_some_and(|message| message.role == Role::User),
        _ => false,
    };
    let before_target = target_branch.len().checked_sub(2).map(|at| target_branch[at]);
    Some(Navigation {
        old_leaf,
        target,
        new_leaf: if gives_text_back { before_target } else { Some(target) },
        gives_text_back,
        common_ancestor: n_common.checked_sub(1).map(|at| old_branch[at]),
        abandoned: old_branch[n_common..].to_vec(),
    })
}

/// What a summary of an abandoned branch is made of.
#[derive(Clone, Debug)]
pub struct BranchPreparation<'s> {
    /// All abandoned entries.
    pub sequence: Sequence<'s>,
    /// The messages that fit the budget, oldest first.
    pub messages: Vec<Item>,
    /// Whether the newest message alone is larger than the budget, so that it is cut to fit.
    pub cuts_newest: bool,
    /// Tokens that the messages may have.
    pub budget: u64,
    /// Files touched by all abandoned entries.
    pub file_ops: FileOps,
}

/// Why there is no branch summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BranchSkip {
    /// No abandoned entry gives a message.
    #[error("there is nothing to summarise")]
    NothingToSummarize,
    /// The reserve leaves no room in the window.
    #[error("branchSummary.reserveTokens ({reserve}) leaves no room in a window of {window} tokens")]
    NoBudget {
        /// The setting.
        reserve: u64,
        /// The model's window.
        window: u64,
    },
}

/// Chooses what of the abandoned entries goes into the request: newest first, until the budget is used.
///
/// # Errors
/// [`BranchSkip`] if there is no room or nothing to say.
pub fn prepare_branch<'s>(
    session: &'s Session,
    abandoned: &[EntryNo],
    settings: &BranchSummarySettings,
    window: Option<u64>,
) -> Result<BranchPreparation<'s>, BranchSkip> {
    let window = window.unwrap_or(UNKNOWN_WINDOW);
    let budget = window.saturating_sub(settings.reserve_tokens);
    if budget == 0 {
        return Err(BranchSkip::NoBudget { reserve: settings.reserve_tokens, window });
    }
    let sequence = Sequence::of_entries(session, abandoned.to_vec());
    let mut file_ops = FileOps::default();
    file_ops.collect(&sequence, &sequence.items);
    for &number in abandoned {
        let entry = session.entry(number);
        let summary =
            entry.compaction().map(|compaction| &compaction.summary).or_else(|| entry.branch_summary());
        if let Some(summary) = summary {
            file_ops.inherit(summary);
        }
    }
    let (messages, cuts_newest) = choose(&sequence, budget);
    if messages.is_empty() {
        return Err(BranchSkip::NothingToSummarize);
    }
    Ok(BranchPreparation { messages, cuts_newest, budget, file_ops: file_ops.sorted(), sequence })
}

/// The items that fit, oldest first, and whether the only one does not.
fn choose(sequence: &Sequence<'_>, budget: u64) -> (Vec<Item>, bool) {
    let mut used = 0;
    let mut chosen: Vec<Item> = Vec::new();
    let is_candidate = |item: &&Item| is_message(sequence, item) && sequence.counts(item);
    for item in sequence.items.iter().rev().filter(is_candidate) {
        let cost = shown_estimate(sequence, item);
        if used + cost > budget {
            let is_summary =
                matches!(sequence.role(item), Some(Role::BranchSummary | Role::CompactionSummary));
            if chosen.is_empty() {
                return (vec![*item], true);
            }
            if is_summary && used * 10 < budget * 9 {
                chosen.push(*item);
            }
            break;
        }
        used += cost;
        chosen.push(*item);
    }
    chosen.reverse();
    (chosen, false)
}

/// What an item costs in a transcript, where long tool results are cut.
fn shown_estimate(sequence: &Sequence<'_>, item: &Item) -> u64 {
    match sequence.role(item) {
        Some(Role::ToolResult) => item.estimate.min(SHOWN_RESULT_UNITS.div_ceil(4)),
        _ => item.estimate,
    }
}

/// What a branch summary entry says.
#[derive(Clone, Debug, PartialEq)]
pub enum BranchContent {
    /// A summary that was made, without preamble and file blocks.
    Made(String),
    /// What a hook gave, taken as it is.
    Given {
        /// The text.
        summary: String,
        /// Whatever the hook wants to store.
        details: Option<Value<'static>>,
    },
}

/// The record of a branch summary at the new leaf, with its id and time.
pub fn branch_summary_entry(
    session: &Session,
    navigation: &Navigation,
    file_ops: &FileOps,
    content: &BranchContent,
    prompts: &Prompts,
    time_ms: i64,
) -> (Stamp, Value<'static>) {
    let files = file_ops.lists();
    let (summary, details, from_extension) = match content {
        BranchContent::Made(summary) => {
            let text = format!("{}\n\n{summary}", prompts.text(PromptName::BranchPreamble));
            (with_file_blocks(&text, &files, prompts), Some(details(&files)), false)
        }
        BranchContent::Given { summary, details } => (summary.clone(), details.clone(), true),
    };
    let parent = navigation.new_leaf.map(|leaf| session.id(leaf));
    Stamp::entry(
        time_ms,
        |id| session.has_id(id),
        |stamp| {
            let mut entry = stamp.head(EntryKind::BranchSummary, parent);
            let from = match session.dialect {
                Dialect::Pi => navigation.old_leaf,
                Dialect::OhMyPi => navigation.new_leaf,
            };
            entry.set("fromId", from.map_or("root", |entry| session.id(entry)).to_owned());
            entry.set("summary", summary.clone());
            entry.set_some("details", details.clone());
            if from_extension {
                entry.set(session.dialect.extension_flag(), true);
            }
            Value::Object(entry)
        },
    )
}

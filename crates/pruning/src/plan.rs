//! Which tool results are blanked, and what that saves (spec part 4).

use session_model::entry::{EntryNo, NameNo};
use session_model::message::{MessageFacts, Role, pruned_notice};
use session_model::sequence::{Item, Sequence, Share};

use crate::settings::PruneSettings;

/// What pruning a sequence would do.
#[derive(Clone, Debug, PartialEq)]
pub struct PrunePlan {
    /// What became of each tool result of the context, newest first.
    pub results: Vec<ToolResult>,
    /// Tokens that blanking all candidates saves.
    pub savings: u64,
    /// Whether that is enough to do it.
    pub is_worth_it: bool,
}

/// A tool result and what is decided about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToolResult {
    /// The entry.
    pub entry: EntryNo,
    /// The tool that it comes from.
    pub tool: Option<NameNo>,
    /// Estimated tokens.
    pub estimate: u64,
    /// What is decided.
    pub verdict: Verdict,
}

/// What is decided about a tool result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Verdict {
    /// It may be blanked; this many tokens are saved.
    Candidate {
        /// Its estimate less the notice's.
        saves: u64,
    },
    /// Among the newest tokens of tool output.
    Recent,
    /// Its tool's results are never blanked.
    ProtectedTool,
    /// Blanked before.
    Pruned,
    /// A context edit has put something in its place already.
    Edited,
    /// The notice would be no smaller.
    Small,
}

impl Verdict {
    /// The name in machine-readable output.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Candidate { .. } => "candidate",
            Verdict::Recent => "recent",
            Verdict::ProtectedTool => "protected_tool",
            Verdict::Pruned => "pruned",
            Verdict::Edited => "edited",
            Verdict::Small => "small",
        }
    }

    /// Tokens that blanking saves; 0 of a result that stays.
    pub fn savings(self) -> u64 {
        match self {
            Verdict::Candidate { saves } => saves,
            Verdict::Recent | Verdict::ProtectedTool | Verdict::Pruned | Verdict::Edited | Verdict::Small => {
                0
            }
        }
    }
}

impl PrunePlan {
    /// The results that are blanked, oldest first; none if it is not worth it.
    pub fn candidates(&self) -> impl Iterator<Item = &ToolResult> {
        let n = if self.is_worth_it { self.results.len() } else { 0 };
        self.results[..n].iter().rev().filter(|result| matches!(result.verdict, Verdict::Candidate { .. }))
    }
}

/// Decides about every tool result of the context.
pub fn plan(sequence: &Sequence<'_>, settings: &PruneSettings) -> PrunePlan {
    let mut sum = 0;
    let mut results = Vec::new();
    for item in sequence.items.iter().rev().filter(|item| sequence.reaches_model(item)) {
        let Some(message) = sequence.message(item).filter(|message| message.role == Role::ToolResult) else {
            continue;
        };
        let verdict = verdict(sequence, item, message, sum, settings);
        results.push(ToolResult { entry: item.entry, tool: message.tool, estimate: item.estimate, verdict });
        sum += item.estimate;
    }
    let savings = results.iter().map(|result| result.verdict.savings()).sum();
    PrunePlan { is_worth_it: savings > 0 && savings >= settings.minimum_savings, savings, results }
}

fn verdict(
    sequence: &Sequence<'_>,
    item: &Item,
    message: &MessageFacts,
    sum: u64,
    settings: &PruneSettings,
) -> Verdict {
    let tool = message.tool.map_or("", |tool| sequence.session.name(tool));
    let notice = sequence.session.tokenizer.count(&pruned_notice(item.estimate));
    if message.pruned_at.is_some() {
        Verdict::Pruned
    } else if matches!(item.share, Share::Edited(_)) {
        Verdict::Edited
    } else if settings.protected_tools.iter().any(|name| name == tool) {
        Verdict::ProtectedTool
    } else if sum < settings.protect_tokens {
        Verdict::Recent
    } else if notice >= item.estimate {
        Verdict::Small
    } else {
        Verdict::Candidate { saves: item.estimate - notice }
    }
}

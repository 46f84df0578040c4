//! `Shape`: which features a generated session has, and how often.

/// The agent whose fields are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// pi
    Pi,
    /// oh-my-pi
    Omp,
}

/// How often each feature occurs: probabilities from 0 (never) to 1. Start from [`Shape::omp`] or [`Shape::pi`].
#[derive(Debug, Clone, PartialEq)]
pub struct Shape {
    /// The agent that seems to have written it.
    pub dialect: Dialect,
    /// The fewest and the most steps; a step is a turn or a single other entry.
    pub steps: (usize, usize),
    /// A keep budget in tokens: long texts end just before, at or just behind parts of it.
    pub budget: usize,
    /// The file has version 1 or 2.
    pub old_version: f64,
    /// A step goes on from an earlier entry instead of the leaf.
    pub branch: f64,
    /// Such a step begins with a branch summary.
    pub branch_summary: f64,
    /// A step is a compaction.
    pub compaction: f64,
    /// A compaction keeps nothing, names an unknown entry, or begins at a tool result.
    pub odd_kept: f64,
    /// A step is an entry that the model does not see: label, model or thinking level change, custom, session info.
    pub metadata: f64,
    /// A step is a `custom_message`.
    pub custom_message: f64,
    /// A step is a bash or python execution (python in oh-my-pi files only).
    pub execution: f64,
    /// An execution is excluded from the context; the same again for cancelled and for truncated.
    pub odd_execution: f64,
    /// A truncated bash execution has pi's `fullOutputPath`.
    pub full_output_path: f64,
    /// A user message is followed by a file mention (oh-my-pi).
    pub file_mention: f64,
    /// A step is a developer message.
    pub developer: f64,
    /// A user message or a tool result has an image.
    pub image: f64,
    /// An assistant message has a thinking block.
    pub thinking: f64,
    /// An assistant message calls one or more tools.
    pub calls: f64,
    /// A turn's results come in another order than its calls.
    pub unordered_results: f64,
    /// A call has no result.
    pub missing_result: f64,
    /// A result has no call.
    pub orphan_result: f64,
    /// A user message comes between a call and its result.
    pub interjection: f64,
    /// A tool result is pruned already.
    pub pruned: f64,
    /// An assistant message failed or was aborted.
    pub failed: f64,
    /// An assistant message has usage. oh-my-pi's own session manager opens only files in which every one has it (1.0).
    pub usage: f64,
    /// Usage is zero, partial, or has nothing to do with the context.
    pub odd_usage: f64,
    /// A text is long: near a part of `budget`.
    pub long_text: f64,
    /// A word is not plain ASCII.
    pub unusual_text: f64,
    /// A word is a lone surrogate.
    pub lone_surrogate: f64,
    /// A step is a `context_edit` (pi).
    pub context_edit: f64,
    /// A step is a `reset_boundary` (oh-my-pi from 16 on).
    pub reset_boundary: f64,
    /// A step is a system message (pi).
    pub system: f64,
    /// The file begins with a title slot (oh-my-pi from 16.3 on).
    pub title_slot: f64,
}

impl Shape {
    /// oh-my-pi sessions that its version 13.19 reads: all it knows, and nothing that is newer.
    pub fn omp() -> Self {
        Self {
            dialect: Dialect::Omp,
            steps: (1, 40),
            budget: 1000,
            old_version: 0.05,
            branch: 0.08,
            branch_summary: 0.5,
            compaction: 0.06,
            odd_kept: 0.1,
            metadata: 0.12,
            custom_message: 0.06,
            execution: 0.08,
            odd_execution: 0.2,
            full_output_path: 0.0,
            file_mention: 0.1,
            developer: 0.04,
            image: 0.08,
            thinking: 0.3,
            calls: 0.6,
            unordered_results: 0.15,
            missing_result: 0.05,
            orphan_result: 0.03,
            interjection: 0.04,
            pruned: 0.05,
            failed: 0.06,
            usage: 0.5,
            odd_usage: 0.15,
            long_text: 0.2,
            unusual_text: 0.05,
            lone_surrogate: 0.002,
            context_edit: 0.0,
            reset_boundary: 0.0,
            system: 0.0,
            title_slot: 0.0,
        }
    }

    /// pi sessions of version 1.6, with all that it knows.
    pub fn pi() -> Self {
        Self {
            dialect: Dialect::Pi,
            file_mention: 0.0,
            developer: 0.0,
            full_output_path: 0.5,
            context_edit: 0.05,
            system: 0.06,
            ..Self::omp()
        }
    }

    /// Everything at once, newer features too: for tests of our own rules that no reference is asked about.
    pub fn everything(dialect: Dialect) -> Self {
        Self {
            dialect,
            file_mention: 0.1,
            developer: 0.05,
            full_output_path: 0.5,
            context_edit: 0.06,
            reset_boundary: 0.03,
            system: 0.06,
            title_slot: if dialect == Dialect::Omp { 0.5 } else { 0.0 },
            lone_surrogate: 0.01,
            ..Self::omp()
        }
    }
}

//! What a user can set about compactions and branch summaries, and every default (spec 3.1).

/// Settings of compactions.
#[derive(Clone, Debug, PartialEq)]
pub struct CompactionSettings {
    /// Whether automatic compaction happens at all.
    pub enabled: bool,
    /// Tokens left free for the answer; also sizes the summaries.
    pub reserve_tokens: u64,
    /// Tokens of recent context that stay verbatim.
    pub keep_recent_tokens: u64,
    /// Whether the agent is asked to go on after a threshold compaction.
    pub auto_continue: bool,
    /// Compact when this part of the window is used; 1 to 99.
    pub threshold_percent: Option<f64>,
    /// Compact above this many tokens; wins over the percentage.
    pub threshold_tokens: Option<u64>,
    /// Above this many tokens `--idle` compacts.
    pub idle_threshold_tokens: u64,
}

/// Settings of branch summaries.
#[derive(Clone, Debug, PartialEq)]
pub struct BranchSummarySettings {
    /// Whether leaving a branch makes a summary without being asked.
    pub enabled: bool,
    /// Tokens of the model's window that the request leaves free; also sizes the summary.
    pub reserve_tokens: u64,
}

impl Default for CompactionSettings {
    fn default() -> Self {
        CompactionSettings {
            enabled: true,
            reserve_tokens: 16_384,
            keep_recent_tokens: 20_000,
            auto_continue: true,
            threshold_percent: None,
            threshold_tokens: None,
            idle_threshold_tokens: 200_000,
        }
    }
}

impl Default for BranchSummarySettings {
    fn default() -> Self {
        BranchSummarySettings { enabled: false, reserve_tokens: 16_384 }
    }
}

impl CompactionSettings {
    /// Most tokens that a history summary may have (spec 5.2).
    pub fn history_limit(&self) -> u64 {
        self.reserve_tokens * 8 / 10
    }

    /// Most tokens that the summary of a turn's prefix may have.
    pub fn turn_prefix_limit(&self) -> u64 {
        self.reserve_tokens / 2
    }

    /// Most tokens that a short summary may have.
    pub fn short_limit(&self) -> u64 {
        (self.reserve_tokens / 5).min(512)
    }
}

impl BranchSummarySettings {
    /// Most tokens that a branch summary may have (spec 5.2).
    pub fn summary_limit(&self) -> u64 {
        self.reserve_tokens / 2
    }
}

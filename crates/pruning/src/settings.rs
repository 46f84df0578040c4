//! What a user can set about pruning, and every default (spec part 4).

/// Settings of pruning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PruneSettings {
    /// Tokens of the newest tool output that stay.
    pub protect_tokens: u64,
    /// Tokens that pruning must save in all, or it does nothing.
    pub minimum_savings: u64,
    /// Tools whose results are never blanked.
    pub protected_tools: Vec<String>,
}

impl Default for PruneSettings {
    fn default() -> Self {
        PruneSettings {
            protect_tokens: 40_000,
            minimum_savings: 20_000,
            protected_tools: vec!["skill".to_owned(), "read".to_owned()],
        }
    }
}

//! Where turns start (spec 3.5).

use session_model::message::Role;
use session_model::sequence::{Item, Sequence};

/// Whether an item starts a turn: a message of the user's or an extension's that the model gets, or a branch summary. File
/// mentions belong to the message before them.
pub fn starts_turn(sequence: &Sequence<'_>, item: &Item) -> bool {
    sequence.counts(item)
        && match sequence.role(item) {
            Some(
                Role::User | Role::BashExecution | Role::PythonExecution | Role::Custom | Role::BranchSummary,
            ) => true,
            Some(
                Role::Developer
                | Role::System
                | Role::Assistant
                | Role::ToolResult
                | Role::FileMention
                | Role::CompactionSummary
                | Role::Unknown,
            )
            | None => false,
        }
}

/// Whether an item is a message that a compaction deals with: one that the agent has, system messages apart.
pub fn is_message(sequence: &Sequence<'_>, item: &Item) -> bool {
    sequence.role(item).is_some_and(|role| role != Role::System)
}

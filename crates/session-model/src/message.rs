//! Messages: roles, reasons to stop, usage, what file tools do, and the notice of a pruned result.

pub use crate::message_facts::{Call, FileOp, MessageFacts, RareFacts};

macro_rules! roles {
    ($($(#[$doc:meta])* $role:ident = $wire:literal,)*) => {
        /// Who speaks (spec 1.4).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Role {
            $($(#[$doc])* $role,)*
            /// A role that is not known; the model does not get it.
            Unknown,
        }

        impl Role {
            /// The role with this wire name. `hookMessage` is the older name of `custom`.
            pub fn from_wire(name: &str) -> Role {
                match name {
                    $($wire => Role::$role,)*
                    "hookMessage" => Role::Custom,
                    _ => Role::Unknown,
                }
            }

            /// The wire name; `unknown` for all that have none here.
            pub fn wire(self) -> &'static str {
                match self {
                    $(Role::$role => $wire,)*
                    Role::Unknown => "unknown",
                }
            }
        }
    };
}

roles! {
    /// The user.
    User = "user",
    /// The program that runs the agent.
    Developer = "developer",
    /// The system prompt and tools (pi).
    System = "system",
    /// The model.
    Assistant = "assistant",
    /// What a tool call gave.
    ToolResult = "toolResult",
    /// A shell command of the user's own.
    BashExecution = "bashExecution",
    /// Python code of the user's own.
    PythonExecution = "pythonExecution",
    /// An extension.
    Custom = "custom",
    /// Files that the user named.
    FileMention = "fileMention",
    /// A summary of an abandoned branch, made in memory.
    BranchSummary = "branchSummary",
    /// A compaction's summary, made in memory.
    CompactionSummary = "compactionSummary",
}

/// Why the model stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// It was done.
    Stop,
    /// It ran into the output limit.
    Length,
    /// It waits for tools.
    ToolUse,
    /// The request failed.
    Error,
    /// The user stopped it.
    Aborted,
    /// Anything else.
    Other,
}

impl StopReason {
    pub(crate) fn from_wire(name: &str) -> StopReason {
        match name {
            "stop" => StopReason::Stop,
            "length" => StopReason::Length,
            "toolUse" => StopReason::ToolUse,
            "error" => StopReason::Error,
            "aborted" => StopReason::Aborted,
            _ => StopReason::Other,
        }
    }

    /// Whether the message is no full answer.
    pub fn is_failure(self) -> bool {
        matches!(self, StopReason::Error | StopReason::Aborted)
    }
}

/// Tokens that the provider counted; a missing number is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Usage {
    /// Prompt tokens that were not cached.
    pub input: f64,
    /// Answer tokens.
    pub output: f64,
    /// Prompt tokens from the cache.
    pub cache_read: f64,
    /// Prompt tokens put into the cache.
    pub cache_write: f64,
    /// The provider's own sum.
    pub total: f64,
}

impl Usage {
    /// Whether every number is 0, as in messages that never reached a provider (spec D9).
    pub fn is_zero(&self) -> bool {
        *self == Usage::default()
    }

    /// Tokens of the context with the answer (spec 3.2).
    pub fn context_tokens(&self) -> f64 {
        if self.total > 0.0 {
            self.total
        } else {
            self.input + self.output + self.cache_read + self.cache_write
        }
    }

    /// Tokens of the prompt alone, or [`Usage::context_tokens`] if they are 0.
    pub fn prompt_tokens(&self) -> f64 {
        let prompt = self.input + self.cache_read + self.cache_write;
        if prompt > 0.0 { prompt } else { self.context_tokens() }
    }
}

/// What a call of a file tool does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FileAction {
    /// `read`.
    Read,
    /// `write`.
    Write,
    /// `edit`.
    Edit,
}

impl FileAction {
    pub(crate) fn of_tool(name: &str) -> Option<FileAction> {
        match name {
            "read" => Some(FileAction::Read),
            "write" => Some(FileAction::Write),
            "edit" => Some(FileAction::Edit),
            _ => None,
        }
    }
}

/// What a pruned tool result says in place of its content (spec part 4).
pub fn pruned_notice(tokens: u64) -> String {
    format!("{NOTICE_START}{tokens}{NOTICE_END}")
}

const NOTICE_START: &str = "[Output truncated - ";
const NOTICE_END: &str = " tokens]";

/// The number in such a notice.
pub(crate) fn tokens_in_notice(notice: &str) -> Option<u64> {
    notice.strip_prefix(NOTICE_START)?.strip_suffix(NOTICE_END)?.parse().ok()
}

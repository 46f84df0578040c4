//! The header, the kinds of entries with their wire names, and what is known of each entry.

use std::num::NonZeroU32;
use std::sync::Arc;

use crate::message::{Call, MessageFacts};
use crate::record::Span;
use crate::value::{Object, Value};

/// Place of an entry in the order of the file.
pub type EntryNo = u32;

/// A name (id, tool, model, path) that the session has seen; [`crate::session::Session::name`] gives its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NameNo(NonZeroU32);

impl NameNo {
    /// The name at this place in the order in which names came.
    pub(crate) fn of_place(place: usize) -> NameNo {
        let number = u32::try_from(place + 1).ok().and_then(NonZeroU32::new);
        NameNo(number.expect("a file has fewer than 2³² names"))
    }

    pub(crate) fn place(self) -> usize {
        self.0.get() as usize - 1
    }
}

/// The first object of a session (spec 1.2).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Header {
    /// Format version: 1 to 3.
    pub version: u32,
    /// Id of the session.
    pub id: String,
    /// When the session began, as written.
    pub timestamp: Option<String>,
    /// Working directory of the agent.
    pub cwd: Option<String>,
    /// Title, in the header or the title slot before it.
    pub title: Option<String>,
    /// The session that this one was forked from.
    pub parent_session: Option<String>,
    /// Whether a title slot stands before the header.
    pub has_title_slot: bool,
    /// Where the header stands.
    pub span: Span,
}

macro_rules! entry_kinds {
    ($($(#[$doc:meta])* $kind:ident = $wire:literal,)*) => {
        /// What an entry is for (spec 1.3).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum EntryKind {
            $($(#[$doc])* $kind,)*
            /// Kept and written back as it is; not seen by the model.
            Unknown,
        }

        impl EntryKind {
            /// The kind with this wire name.
            pub fn from_wire(name: &str) -> EntryKind {
                match name {
                    $($wire => EntryKind::$kind,)*
                    _ => EntryKind::Unknown,
                }
            }

            /// The wire name; `unknown` for all that have none here.
            pub fn wire(self) -> &'static str {
                match self {
                    $(EntryKind::$kind => $wire,)*
                    EntryKind::Unknown => "unknown",
                }
            }
        }
    };
}

entry_kinds! {
    /// A message of the conversation.
    Message = "message",
    /// A summary that stands for what came before.
    Compaction = "compaction",
    /// A summary of an abandoned branch.
    BranchSummary = "branch_summary",
    /// A message that an extension put into the conversation.
    CustomMessage = "custom_message",
    /// Changes what another entry gives the model (pi).
    ContextEdit = "context_edit",
    /// What precedes it on the branch is gone from the context (oh-my-pi).
    ResetBoundary = "reset_boundary",
    /// Another model.
    ModelChange = "model_change",
    /// Another thinking level.
    ThinkingLevelChange = "thinking_level_change",
    /// Another service tier.
    ServiceTierChange = "service_tier_change",
    /// Another mode.
    ModeChange = "mode_change",
    /// Which MCP tools are selected.
    McpToolSelection = "mcp_tool_selection",
    /// Which rules were injected.
    TtsrInjection = "ttsr_injection",
    /// What a session began with.
    SessionInit = "session_init",
    /// The session's name (pi).
    SessionInfo = "session_info",
    /// Another title.
    TitleChange = "title_change",
    /// A label on another entry.
    Label = "label",
    /// An extension's own data.
    Custom = "custom",
    /// Usage that belongs to no message.
    Usage = "usage",
    /// Usage by model.
    ModelUsage = "model_usage",
    /// Which credential is used.
    CredentialPin = "credential_pin",
}

/// What an entry hangs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parent {
    /// Nothing: the entry is a root.
    Root,
    /// Another entry of the file.
    Entry(EntryNo),
    /// An id that no entry has.
    Missing(NameNo),
}

/// What is known of an entry without its record at hand.
#[derive(Clone, Debug)]
pub struct Entry {
    /// What it is for.
    pub kind: EntryKind,
    /// Its id; made from position and content in files of version 1.
    pub id: NameNo,
    /// What it hangs on.
    pub parent: Parent,
    /// Its time; [`NO_TIME`] if it has none.
    time_ms: i64,
    /// Where its record stands.
    pub span: Span,
    /// Tokens of what it gives the model; for a context edit, of the content that it puts in another's place.
    pub estimate: u64,
    /// What its kind needs.
    pub facts: Facts,
}

/// Facts by kind of entry.
#[derive(Clone, Debug)]
pub enum Facts {
    /// Nothing else matters.
    None,
    /// A message.
    Message(MessageFacts),
    /// A compaction.
    Compaction(Box<CompactionFacts>),
    /// A branch summary.
    BranchSummary(Box<SummaryFacts>),
    /// A context edit.
    ContextEdit(Box<ContextEditFacts>),
    /// A small entry of state, whole. Shared, so that a session with more records costs no second copy.
    State(Arc<Value<'static>>),
}

/// What a compaction entry says.
#[derive(Clone, Debug, Default)]
pub struct CompactionFacts {
    /// The summary.
    pub summary: SummaryFacts,
    /// Entry from which on the old context is kept.
    pub first_kept: Option<NameNo>,
    /// Its token count before.
    pub tokens_before: Option<f64>,
    /// Whether the provider's own history stands for the kept entries (spec 2.1).
    pub has_remote_history: bool,
    /// The fold of the system messages, as JSON (pi).
    pub system_message: Option<Box<str>>,
}

/// What a compaction or branch summary says.
#[derive(Clone, Debug, Default)]
pub struct SummaryFacts {
    /// Length of the summary in UTF-16 units.
    pub units: u64,
    /// Whether an extension made it, by either dialect's mark (spec D21).
    pub from_extension: bool,
    /// `details.readFiles`.
    pub read_files: Vec<String>,
    /// `details.modifiedFiles`.
    pub modified_files: Vec<String>,
}

/// What a context edit says.
#[derive(Clone, Debug)]
pub struct ContextEditFacts {
    /// The entry that it changes.
    pub target: Option<NameNo>,
    /// Whether it takes the entry out of the context.
    pub omits: bool,
    /// Tool calls in the content that it puts in.
    pub calls: Box<[Call]>,
}

/// No time that can be written is as early.
const NO_TIME: i64 = i64::MIN;

impl Entry {
    pub(crate) fn new(
        kind: EntryKind,
        id: NameNo,
        parent: Parent,
        time_ms: Option<i64>,
        span: Span,
    ) -> Entry {
        let time_ms = time_ms.unwrap_or(NO_TIME);
        Entry { kind, id, parent, time_ms, span, estimate: 0, facts: Facts::None }
    }

    /// Its time, in milliseconds since 1970.
    pub fn time_ms(&self) -> Option<i64> {
        (self.time_ms != NO_TIME).then_some(self.time_ms)
    }

    /// The facts of a message entry.
    pub fn message(&self) -> Option<&MessageFacts> {
        match &self.facts {
            Facts::Message(message) => Some(message),
            _ => None,
        }
    }

    /// The facts of a compaction entry.
    pub fn compaction(&self) -> Option<&CompactionFacts> {
        match &self.facts {
            Facts::Compaction(compaction) => Some(compaction),
            _ => None,
        }
    }

    /// The facts of a branch summary.
    pub fn branch_summary(&self) -> Option<&SummaryFacts> {
        match &self.facts {
            Facts::BranchSummary(summary) => Some(summary),
            _ => None,
        }
    }

    /// The facts of a context edit.
    pub fn context_edit(&self) -> Option<&ContextEditFacts> {
        match &self.facts {
            Facts::ContextEdit(edit) => Some(edit),
            _ => None,
        }
    }

    /// The whole of a small state entry.
    pub fn state(&self) -> Option<&Value<'static>> {
        match &self.facts {
            Facts::State(value) => Some(value),
            _ => None,
        }
    }
}

/// Id and time of an entry that is about to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// Unique in the file, eight hex digits.
    pub id: String,
    /// Milliseconds since 1970.
    pub time_ms: i64,
}

impl Stamp {
    /// Derives an id from `content` that is not among the ids for which `taken` is true: equal input gives equal ids (spec 3.7).
    pub fn new(content: &[u8], time_ms: i64, taken: impl Fn(&str) -> bool) -> Stamp {
        let mut hasher = blake3::Hasher::new();
        hasher.update(content);
        loop {
            let id = hasher.finalize().to_hex()[..8].to_owned();
            if !taken(&id) {
                return Stamp { id, time_ms };
            }
            hasher.update(b"taken");
        }
    }

    /// An entry that `make` writes for a stamp, with an id that derives from all the rest of it; `taken` as for [`Stamp::new`].
    pub fn entry(
        time_ms: i64,
        taken: impl Fn(&str) -> bool,
        make: impl Fn(&Stamp) -> Value<'static>,
    ) -> (Stamp, Value<'static>) {
        let draft = make(&Stamp { id: String::new(), time_ms });
        let stamp = Stamp::new(draft.to_json().as_bytes(), time_ms, taken);
        let entry = make(&stamp);
        (stamp, entry)
    }

    /// The fields that every entry begins with (spec 1.3).
    pub fn head(&self, kind: EntryKind, parent_id: Option<&str>) -> Object<'static> {
        let mut entry = Object::new();
        entry.set("type", kind.wire());
        entry.set("id", self.id.clone());
        entry.set("parentId", parent_id.map_or(Value::Null, |parent| Value::from(parent.to_owned())));
        entry.set("timestamp", self.timestamp());
        entry
    }

    /// The time as entries have it: ISO-8601 with milliseconds, in UTC.
    pub fn timestamp(&self) -> String {
        crate::time::iso(self.time_ms)
    }
}

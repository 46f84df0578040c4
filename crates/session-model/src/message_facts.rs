//! What the reading pass keeps of each message. A large session has tens of thousands of messages, so the facts are small, and
//! stand in the entry itself: the fewer pages the index covers, the sooner it is built.

use std::ops::Deref;

use crate::entry::NameNo;
use crate::message::{FileAction, Role, StopReason, Usage};

/// A file that a tool call touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileOp {
    /// What was done.
    pub action: FileAction,
    /// The path as the call had it.
    pub path: NameNo,
}

/// A tool call of an assistant message.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    /// Id that its result names.
    pub id: NameNo,
    /// The tool.
    pub tool: NameNo,
    /// The file that it touches, for the file tools.
    pub file: Option<FileOp>,
}

/// Facts of a message. What few messages have is apart: [`RareFacts`], whose fields are reached as if they stood here.
#[derive(Clone, Debug)]
pub struct MessageFacts {
    /// Who speaks.
    pub role: Role,
    /// Why an assistant message ended.
    pub stop_reason: Option<StopReason>,
    /// Whether a tool result is an error.
    pub is_error: bool,
    /// Whether an execution is excluded from the context.
    pub is_excluded: bool,
    /// The call that a tool result answers.
    pub answers: Option<NameNo>,
    /// The tool that a tool result comes from.
    pub tool: Option<NameNo>,
    /// Provider and model of an assistant message.
    pub model: Option<(NameNo, NameNo)>,
    /// The start of a user message, for lists.
    pub preview: Option<NameNo>,
    pub(crate) calls: Calls,
    pub(crate) usage: UsageFacts,
    rare: Option<Box<RareFacts>>,
}

/// What the reading pass keeps of some messages only.
#[derive(Clone, Debug, Default)]
pub struct RareFacts {
    /// When a tool result was pruned, in milliseconds.
    pub pruned_at: Option<f64>,
    /// What a pruned tool result is said to have cost before: the number in the notice that took its place.
    pub pruned_tokens: Option<u64>,
    /// What a failed message says.
    pub error_message: Option<Box<str>>,
    /// Files touched by nested calls of a pi tool result (spec D21).
    pub nested_files: Vec<FileOp>,
    /// Number of images.
    pub n_images: u32,
    /// Bytes of image data, as base64.
    pub image_bytes: u64,
    /// A system message, whole, as JSON: it is folded with others.
    pub system: Option<Box<str>>,
}

static NOTHING_RARE: RareFacts = RareFacts {
    pruned_at: None,
    pruned_tokens: None,
    error_message: None,
    nested_files: Vec::new(),
    n_images: 0,
    image_bytes: 0,
    system: None,
};

impl Deref for MessageFacts {
    type Target = RareFacts;

    fn deref(&self) -> &RareFacts {
        self.rare.as_deref().unwrap_or(&NOTHING_RARE)
    }
}

impl MessageFacts {
    pub(crate) fn empty(role: Role) -> MessageFacts {
        MessageFacts {
            role,
            stop_reason: None,
            is_error: false,
            is_excluded: false,
            answers: None,
            tool: None,
            model: None,
            preview: None,
            calls: Calls::None,
            usage: UsageFacts::None,
            rare: None,
        }
    }

    pub(crate) fn rare(&mut self) -> &mut RareFacts {
        self.rare.get_or_insert_default()
    }

    /// Calls of an assistant message.
    pub fn calls(&self) -> &[Call] {
        self.calls.as_slice()
    }

    /// What the provider counted.
    pub fn usage(&self) -> Option<Usage> {
        self.usage.get()
    }

    /// Whether the message reaches the model, whatever an edit says.
    pub fn reaches_model(&self) -> bool {
        self.role != Role::Unknown && !self.is_excluded
    }

    /// Whether it is an assistant message that is no full answer.
    pub fn is_failed(&self) -> bool {
        self.role == Role::Assistant && self.stop_reason.is_some_and(StopReason::is_failure)
    }
}

/// The calls of a message: mostly none or one, which needs no memory of its own.
#[derive(Clone, Debug, Default)]
pub(crate) enum Calls {
    #[default]
    None,
    One(Call),
    Many(Box<CallList>),
}

/// Several calls: behind one pointer, so that a message without them is small.
#[derive(Clone, Debug)]
pub(crate) struct CallList(Vec<Call>);

impl Calls {
    pub(crate) fn push(&mut self, call: Call) {
        match self {
            Calls::None => *self = Calls::One(call),
            Calls::One(first) => *self = Calls::Many(Box::new(CallList(vec![*first, call]))),
            Calls::Many(list) => list.0.push(call),
        }
    }

    fn as_slice(&self) -> &[Call] {
        match self {
            Calls::None => &[],
            Calls::One(call) => std::slice::from_ref(call),
            Calls::Many(list) => &list.0,
        }
    }
}

/// What the provider counted: mostly small whole numbers.
#[derive(Clone, Debug, Default)]
pub(crate) enum UsageFacts {
    #[default]
    None,
    Counts([u32; 5]),
    Numbers(Box<Usage>),
}

impl UsageFacts {
    pub(crate) fn new(usage: Usage) -> UsageFacts {
        let numbers = [usage.input, usage.output, usage.cache_read, usage.cache_write, usage.total];
        let counts = numbers.map(|number| number as u32);
        if counts.map(f64::from) == numbers {
            UsageFacts::Counts(counts)
        } else {
            UsageFacts::Numbers(Box::new(usage))
        }
    }

    fn get(&self) -> Option<Usage> {
        match self {
            UsageFacts::None => None,
            UsageFacts::Counts(counts) => {
                let [input, output, cache_read, cache_write, total] = counts.map(f64::from);
                Some(Usage { input, output, cache_read, cache_write, total })
            }
            UsageFacts::Numbers(usage) => Some(**usage),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_small() {
        assert!(size_of::<MessageFacts>() <= 72, "{}", size_of::<MessageFacts>());
        assert!(size_of::<crate::entry::Entry>() <= 128, "{}", size_of::<crate::entry::Entry>());
    }

    #[test]
    fn usage_comes_back_as_it_was() {
        let usage =
            Usage { input: 1.0, output: 4_294_967_295.0, cache_read: 0.0, cache_write: 7.0, total: 9.0 };
        for numbers in [
            usage,
            Usage { total: 0.5, ..usage },
            Usage { input: -1.0, ..usage },
            Usage { output: 1e300, ..usage },
        ] {
            assert_eq!(UsageFacts::new(numbers).get(), Some(numbers));
        }
    }

    #[test]
    fn calls_stay_in_their_order() {
        let mut calls = Calls::default();
        for n in 0..5 {
            let name = NameNo::of_place(n);
            assert_eq!(calls.as_slice().len(), n);
            calls.push(Call { id: name, tool: name, file: None });
        }
        assert_eq!(calls.as_slice().iter().map(|call| call.id.place()).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
    }
}

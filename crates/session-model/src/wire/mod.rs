//! Model messages → request bodies of four APIs, ready to be posted (spec 2.5).

mod anthropic;
mod content;
mod exchange;
mod gemini;
mod openai;
mod responses;
#[cfg(test)]
mod tests;

use std::fmt;

use crate::value::{Object, Value};

/// An API that takes conversations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WireFormat {
    /// Anthropic, Messages.
    Anthropic,
    /// OpenAI, Chat Completions.
    OpenAi,
    /// OpenAI, Responses.
    Responses,
    /// Google, `generateContent`.
    Gemini,
}

/// What a body needs besides the messages.
#[derive(Clone, Copy)]
pub struct WireOptions<'o> {
    /// The model asked. Reasoning goes back only to the model that it came from. Gemini has it in its address, not in the body.
    pub model: &'o str,
    /// Most tokens of the answer.
    pub max_tokens: u64,
    /// The base64 data that a `blob:sha256:HEX` reference stands for, if it can be found.
    pub resolve: &'o dyn Fn(&str) -> Option<String>,
}

/// A request body, and what had to be done to the messages for it.
#[derive(Clone, Debug, PartialEq)]
pub struct WireBody {
    /// The body.
    pub json: Value<'static>,
    /// What was left out, added or moved.
    pub changes: Vec<WireChange>,
}

/// Something that the body has in another way than the messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WireChange {
    /// What was done.
    pub kind: WireChangeKind,
    /// Index of the message concerned.
    pub message: Option<usize>,
    /// The tool call, tool or image concerned.
    pub name: Option<String>,
}

/// The ways in which a body differs from its messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum WireChangeKind {
    /// A failed or aborted assistant message was left out.
    FailedMessage,
    /// The result of a call of such a message was left out.
    ResultOfFailed,
    /// A tool result without an earlier call was left out.
    OrphanResult,
    /// A second result for one call was left out.
    SecondResult,
    /// A tool result was moved to its call.
    MovedResult,
    /// An error result was added for a call that has none.
    MissingResult,
    /// A message in which nothing is left for this API was left out.
    EmptyMessage,
    /// Reasoning that the API does not take back was left out.
    Reasoning,
    /// An image that cannot be sent became text.
    Image,
    /// A user message was put first, for the API wants one there.
    FirstUserMessage,
    /// A tool that is called but nowhere defined was declared.
    DeclaredTool,
    /// The assistant has the last word: many models want a user message behind it.
    EndsWithAssistant,
}

impl WireChangeKind {
    /// The name in machine-readable output.
    pub fn name(self) -> &'static str {
        match self {
            WireChangeKind::FailedMessage => "failed_message",
            WireChangeKind::ResultOfFailed => "result_of_failed",
            WireChangeKind::OrphanResult => "orphan_result",
            WireChangeKind::SecondResult => "second_result",
            WireChangeKind::MovedResult => "moved_result",
            WireChangeKind::MissingResult => "missing_result",
            WireChangeKind::EmptyMessage => "empty_message",
            WireChangeKind::Reasoning => "reasoning",
            WireChangeKind::Image => "image",
            WireChangeKind::FirstUserMessage => "first_user_message",
            WireChangeKind::DeclaredTool => "declared_tool",
            WireChangeKind::EndsWithAssistant => "ends_with_assistant",
        }
    }

    fn words(self) -> &'static str {
        match self {
            WireChangeKind::FailedMessage => "left out a failed assistant message",
            WireChangeKind::ResultOfFailed => "left out a tool result of a failed assistant message",
            WireChangeKind::OrphanResult => "left out a tool result without an earlier call",
            WireChangeKind::SecondResult => "left out a second result for one tool call",
            WireChangeKind::MovedResult => "moved a tool result to its call",
            WireChangeKind::MissingResult => "added an error result for a tool call that has none",
            WireChangeKind::EmptyMessage => "left out a message that is empty for this format",
            WireChangeKind::Reasoning => "left out reasoning that this format does not take back",
            WireChangeKind::Image => "replaced an image that cannot be sent by text",
            WireChangeKind::FirstUserMessage => "put a user message first",
            WireChangeKind::DeclaredTool => "declared a tool that is called but not defined",
            WireChangeKind::EndsWithAssistant => {
                "the last message is the assistant's, and some models want a user message behind it"
            }
        }
    }
}

impl fmt::Display for WireChange {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(message) = self.message {
            write!(formatter, "message {}: ", message + 1)?;
        }
        formatter.write_str(self.kind.words())?;
        match &self.name {
            Some(name) => write!(formatter, " ({})", crate::text::shown(name)),
            None => Ok(()),
        }
    }
}

impl WireFormat {
    /// All formats.
    pub const ALL: [WireFormat; 4] =
        [WireFormat::Anthropic, WireFormat::OpenAi, WireFormat::Responses, WireFormat::Gemini];

    /// The name that `--format` takes.
    pub fn name(self) -> &'static str {
        match self {
            WireFormat::Anthropic => "anthropic",
            WireFormat::OpenAi => "openai",
            WireFormat::Responses => "responses",
            WireFormat::Gemini => "gemini",
        }
    }
}

/// The request body for a list of model messages (spec 2.3).
pub fn body(format: WireFormat, messages: &[Value<'_>], options: &WireOptions<'_>) -> WireBody {
    let mut changes = Vec::new();
    let json = match format {
        WireFormat::Anthropic => anthropic::body(messages, options, &mut changes),
        WireFormat::OpenAi => openai::body(messages, options, &mut changes),
        WireFormat::Responses => responses::body(messages, options, &mut changes),
        WireFormat::Gemini => gemini::body(messages, options, &mut changes),
    };
    WireBody { json, changes }
}

/// An object of these fields.
fn object<const N: usize>(fields: [(&'static str, Value<'static>); N]) -> Value<'static> {
    let mut object = Object::new();
    fields.into_iter().for_each(|(name, value)| object.set(name, value));
    Value::Object(object)
}

/// Adds `item` to the array `list`.
fn push(list: &mut Value<'static>, item: Value<'static>) {
    if let Value::Array(items) = list {
        items.push(item);
    }
}

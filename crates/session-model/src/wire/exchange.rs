//! Model messages as turns that every API takes: calls directly followed by their results, one each, in their order.

use std::collections::{HashMap, HashSet};

use super::content::{Part, parts};
use super::{WireChange, WireChangeKind, WireOptions};
use crate::message::Role;
use crate::system::{self, SystemFold};
use crate::value::{Object, Value};

/// What an API asks of names.
pub(super) struct NameRules {
    /// Longest id of a call.
    pub(super) id_length: usize,
    /// Longest name of a tool.
    pub(super) tool_length: usize,
    /// What the messages of this API are marked with: the start of their `api`, or a part of it.
    pub(super) is_own_api: fn(&str) -> bool,
}

/// A conversation that has been put in order.
pub(super) struct Exchange {
    pub(super) system: Option<SystemFold>,
    pub(super) turns: Vec<Turn>,
}

/// One turn.
pub(super) enum Turn {
    /// The user or the program around the agent speaks.
    User { is_developer: bool, parts: Vec<Part> },
    /// The model speaks; results of its calls are in the same order as the calls.
    Assistant { blocks: Vec<Block>, results: Vec<ToolResult> },
}

/// A block of an assistant message.
pub(super) enum Block {
    /// Text, never blank.
    Text { text: String, signature: Option<String> },
    /// Reasoning of the model that is asked now, with the signature that it was given.
    Reasoning { text: String, signature: String, is_redacted: bool },
    /// A tool call.
    Call { id: String, tool: String, arguments: Value<'static>, signature: Option<String> },
}

/// What a tool call gave.
pub(super) struct ToolResult {
    pub(super) id: String,
    pub(super) tool: String,
    pub(super) is_error: bool,
    pub(super) parts: Vec<Part>,
}

/// Text of a result that has none.
pub(super) const NO_OUTPUT: &str = "(no output)";

/// Text of the result that is added to a call without one.
const NO_RESULT: &str = "No result of this call was recorded.";

/// A call that is in the exchange.
struct OpenCall {
    turn: usize,
    place: usize,
    is_answered: bool,
}

impl Exchange {
    /// Puts messages in order and says what that took.
    pub(super) fn new(
        messages: &[Value<'_>],
        options: &WireOptions<'_>,
        rules: &NameRules,
        changes: &mut Vec<WireChange>,
    ) -> Exchange {
        let mut order = Order {
            options,
            rules,
            changes,
            turns: Vec::new(),
            waiting: Vec::new(),
            calls: HashMap::new(),
            failed: HashSet::new(),
            ids: HashSet::new(),
        };
        for (at, message) in messages.iter().enumerate() {
            match message.text("role").map_or(Role::Unknown, |role| Role::from_wire(&role)) {
                Role::User => order.user(message, at, false),
                Role::Developer => order.user(message, at, true),
                Role::Assistant => order.assistant(message, at),
                Role::ToolResult => order.result(message, at),
                // System messages are folded; the others are not model messages.
                Role::System
                | Role::BashExecution
                | Role::PythonExecution
                | Role::Custom
                | Role::FileMention
                | Role::BranchSummary
                | Role::CompactionSummary
                | Role::Unknown => {}
            }
        }
        let turns = order.finish();
        Exchange { system: system::fold(messages), turns }
    }

    /// The definitions of tools, each with its name in the form that the API takes.
    pub(super) fn tools(&self, rules: &NameRules) -> Vec<ToolDefinition<'_>> {
        let mut seen = HashSet::new();
        let tools = self.system.iter().flat_map(|system| system.tools.values());
        tools
            .map(|tool| ToolDefinition {
                name: valid_name(&tool.text("name").unwrap_or_default(), rules.tool_length),
                tool,
            })
            .filter(|definition| seen.insert(definition.name.clone()))
            .collect()
    }

    /// The system prompt, if it has any text.
    pub(super) fn system_text(&self) -> Option<String> {
        self.system.as_ref().map(SystemFold::text).filter(|text| !text.trim().is_empty())
    }
}

/// A tool that the model may call.
pub(super) struct ToolDefinition<'e> {
    pub(super) name: String,
    tool: &'e Value<'static>,
}

impl ToolDefinition<'_> {
    pub(super) fn description(&self) -> Value<'static> {
        Value::from(self.tool.text("description").unwrap_or_default().into_owned())
    }

    /// The JSON schema of its arguments.
    pub(super) fn parameters(&self) -> Value<'static> {
        match self.tool.get("parameters") {
            Some(Value::Object(schema)) if schema.get("type").is_some() => Value::Object(schema.clone()),
            Some(Value::Object(schema)) => {
                let mut schema = schema.clone();
                schema.set("type", "object");
                Value::Object(schema)
            }
            _ => any_arguments(),
        }
    }
}

/// The schema of a tool of which only the name is known.
pub(super) fn any_arguments() -> Value<'static> {
    super::object([("type", Value::from("object")), ("properties", Value::Object(Object::new()))])
}

struct Order<'o, 'c> {
    options: &'o WireOptions<'o>,
    rules: &'o NameRules,
    changes: &'c mut Vec<WireChange>,
    turns: Vec<Turn>,
    /// Results by turn and place, until all are known; with the message that made each call.
    waiting: Vec<Vec<(usize, Option<ToolResult>)>>,
    calls: HashMap<String, Vec<OpenCall>>,
    /// Ids of calls of failed messages.
    failed: HashSet<String>,
    ids: HashSet<String>,
}

impl Order<'_, '_> {
    fn change(&mut self, kind: WireChangeKind, at: usize, name: Option<&str>) {
        self.changes.push(WireChange { kind, message: Some(at), name: name.map(str::to_owned) });
    }

    fn user(&mut self, message: &Value<'_>, at: usize, is_developer: bool) {
        let parts = parts(message.get("content"), at, self.options, self.changes);
        if parts.is_empty() {
            self.change(WireChangeKind::EmptyMessage, at, None);
            return;
        }
        self.push(Turn::User { is_developer, parts }, Vec::new());
    }

    fn push(&mut self, turn: Turn, waiting: Vec<(usize, Option<ToolResult>)>) {
        self.turns.push(turn);
        self.waiting.push(waiting);
    }

    fn assistant(&mut self, message: &Value<'_>, at: usize) {
        let content = message.get("content");
        let is_failed = matches!(message.text("stopReason").as_deref(), Some("error" | "aborted"));
        if is_failed {
            for block in content.map_or(&[][..], Value::items) {
                if block.text("type").as_deref() == Some("toolCall") {
                    let id = block.text("id").unwrap_or_default().into_owned();
                    // A later result belongs to this call, not to an older one of the same id.
                    self.calls.remove(&id);
                    self.failed.insert(id);
                }
            }
            self.change(WireChangeKind::FailedMessage, at, None);
            return;
        }
        let is_own = message.text("model").as_deref() == Some(self.options.model)
            && message.text("api").is_some_and(|api| (self.rules.is_own_api)(&api));
        let mut blocks = Vec::new();
        let mut waiting = Vec::new();
        if let Some(Value::String(text)) = content {
            let text = text.text().into_owned();
            if !text.trim().is_empty() {
                blocks.push(Block::Text { text, signature: None });
            }
        }
        for block in content.map_or(&[][..], Value::items) {
            let signature = |key: &str| {
                let signature = block.text(key).filter(|signature| is_own && !signature.is_empty());
                signature.map(std::borrow::Cow::into_owned)
            };
            match block.text("type").as_deref() {
                Some("text") => {
                    let text = block.text("text").unwrap_or_default().into_owned();
                    if !text.trim().is_empty() {
                        blocks.push(Block::Text { text, signature: signature("textSignature") });
                    }
                }
                Some("thinking") => match signature("thinkingSignature") {
                    Some(signature) => blocks.push(Block::Reasoning {
                        text: block.text("thinking").unwrap_or_default().into_owned(),
                        signature,
                        is_redacted: block.get("redacted").and_then(Value::as_bool) == Some(true),
                    }),
                    None => self.change(WireChangeKind::Reasoning, at, None),
                },
                Some("toolCall") => {
                    let call = self.call(block, waiting.len(), signature("thoughtSignature"));
                    blocks.push(call);
                    waiting.push((at, None));
                }
                _ => {}
            }
        }
        if blocks.iter().all(|block| matches!(block, Block::Reasoning { .. })) {
            self.change(WireChangeKind::EmptyMessage, at, None);
            return;
        }
        self.push(Turn::Assistant { blocks, results: Vec::new() }, waiting);
    }

    fn call(&mut self, block: &Value<'_>, place: usize, signature: Option<String>) -> Block {
        let id = block.text("id").unwrap_or_default();
        self.failed.remove(id.as_ref());
        let open = OpenCall { turn: self.turns.len(), place, is_answered: false };
        self.calls.entry(id.clone().into_owned()).or_default().push(open);
        let arguments = match block.get("arguments") {
            // Owned strings have no lone surrogates, which no API takes.
            Some(arguments @ Value::Object(_)) => arguments.clone().into_owned(),
            _ => Value::Object(Object::new()),
        };
        Block::Call {
            id: self.unique_id(&id),
            tool: valid_name(&block.text("name").unwrap_or_default(), self.rules.tool_length),
            arguments,
            signature,
        }
    }

    /// The id as the API takes it, used by no other call. Ids of the Responses API are stored with the item's id behind a bar.
    fn unique_id(&mut self, stored: &str) -> String {
        let wanted = valid_name(stored.split('|').next().unwrap_or_default(), self.rules.id_length);
        let mut id = wanted.clone();
        let mut n = 1;
        while !self.ids.insert(id.clone()) {
            n += 1;
            let suffix = format!("_{n}");
            id = format!("{}{suffix}", &wanted[..wanted.len().min(self.rules.id_length - suffix.len())]);
        }
        id
    }

    fn result(&mut self, message: &Value<'_>, at: usize) {
        let id = message.text("toolCallId").unwrap_or_default().into_owned();
        let kind = match self.calls.get_mut(&id) {
            None if self.failed.contains(&id) => WireChangeKind::ResultOfFailed,
            None => WireChangeKind::OrphanResult,
            Some(calls) => {
                // Of calls with the same id the oldest of the newest message is meant, as long as it is open.
                let newest = calls.last().map(|call| call.turn);
                let open = calls.iter_mut().find(|call| Some(call.turn) == newest && !call.is_answered);
                match open {
                    None => WireChangeKind::SecondResult,
                    Some(call) => {
                        call.is_answered = true;
                        let (turn, place) = (call.turn, call.place);
                        self.answer(message, at, (turn, place), &id);
                        return;
                    }
                }
            }
        };
        self.change(kind, at, Some(&id));
    }

    fn answer(&mut self, message: &Value<'_>, at: usize, (turn, place): (usize, usize), id: &str) {
        if turn + 1 != self.turns.len() {
            self.change(WireChangeKind::MovedResult, at, Some(id));
        }
        let result = ToolResult {
            id: String::new(),
            tool: String::new(),
            is_error: message.get("isError").and_then(Value::as_bool) == Some(true),
            parts: parts(message.get("content"), at, self.options, self.changes),
        };
        self.waiting[turn][place].1 = Some(result);
    }

    /// Gives every call its result.
    fn finish(mut self) -> Vec<Turn> {
        let mut added = Vec::new();
        for (turn, waiting) in self.turns.iter_mut().zip(self.waiting.drain(..)) {
            let Turn::Assistant { blocks, results } = turn else { continue };
            let calls = blocks.iter().filter_map(|block| match block {
                Block::Call { id, tool, .. } => Some((id, tool)),
                Block::Text { .. } | Block::Reasoning { .. } => None,
            });
            for ((id, tool), (at, result)) in calls.zip(waiting) {
                let result = result.unwrap_or_else(|| {
                    added.push((at, id.clone()));
                    let parts = vec![Part::Text(NO_RESULT.to_owned())];
                    ToolResult { id: String::new(), tool: String::new(), is_error: true, parts }
                });
                results.push(ToolResult { id: id.clone(), tool: tool.clone(), ..result });
            }
        }
        for (at, id) in added {
            self.change(WireChangeKind::MissingResult, at, Some(&id));
        }
        self.changes.sort_by_key(|change| change.message);
        self.turns
    }
}

/// A name of letters, digits, `_` and `-` only, neither empty nor longer than `length`.
fn valid_name(name: &str, length: usize) -> String {
    let valid = |character: char| {
        if character.is_ascii_alphanumeric() || matches!(character, '_' | '-') { character } else { '_' }
    };
    let name: String = name.chars().map(valid).take(length).collect();
    if name.is_empty() { "unnamed".to_owned() } else { name }
}

/// What is said where an API wants the user to speak first and no user did.
pub(super) const FIRST_WORDS: &str = "(The beginning of this conversation is not part of the context.)";

/// Says so if the assistant has the last word.
pub(super) fn ends_with_assistant(turns: &[Turn], changes: &mut Vec<WireChange>) {
    if matches!(turns.last(), Some(Turn::Assistant { results, .. }) if results.is_empty()) {
        changes.push(WireChange { kind: WireChangeKind::EndsWithAssistant, message: None, name: None });
    }
}

/// For APIs that want the user to speak first: whether the user has to be put there. Also does [`ends_with_assistant`].
pub(super) fn ends(turns: &[Turn], changes: &mut Vec<WireChange>) -> bool {
    ends_with_assistant(turns, changes);
    let user_is_missing = !matches!(turns.first(), Some(Turn::User { .. }));
    if user_is_missing {
        changes.push(WireChange { kind: WireChangeKind::FirstUserMessage, message: None, name: None });
    }
    user_is_missing
}

//! One walk over the messages: what the user asked, what was done, what failed, which facts occur how often and how late.

use std::collections::{HashMap, HashSet};

use foldhash::fast::FixedState;
use session_model::error::RecordError;
use session_model::message::Role;
use session_model::value::Value;

use super::calls::{Calls, OpenCall, is_change, short, todos};
use super::facts::{FactKind, each_fact};
use super::sentences::{decision, is_rule, is_step, is_whole, is_wish, last_question, purpose, sentences};
use crate::material::Messages;
use crate::transcript::content_text;

/// Stands before a sentence of the user among those of the agent.
pub(super) const ASKED: &str = "The user said:";
/// Bytes at the start and at the end of what a user says that are searched for rules. What lies between was pasted.
const SEARCHED: usize = 16 << 10;

/// Facts that are held at most: many times what an index can name.
const MOST_FACTS: usize = 100_000;

/// What the messages say, in their order.
#[derive(Debug, Default)]
pub(super) struct Digest {
    /// The user's requests.
    pub(super) requests: Vec<String>,
    /// The user's sentences that forbid or require.
    pub(super) rules: Vec<String>,
    /// Those that prefer or limit.
    pub(super) wishes: Vec<String>,
    /// What calls did.
    pub(super) calls: Calls,
    /// Sentences that choose and say why.
    pub(super) decisions: Vec<(String, String)>,
    /// Sentences of the last answer that say what comes.
    pub(super) steps: Vec<String>,
    /// Sentences of the agent that hold facts.
    pub(super) telling: Vec<String>,
    /// What it says besides.
    pub(super) last_words: Vec<String>,
    /// Whether calls came with the last answer or after it, so that it tells of work and reports nothing.
    pub(super) is_under_way: bool,
    /// The last state of the todo list: text and whether it is done.
    pub(super) todos: Vec<(String, bool)>,
    /// The question at the end of the last answer.
    pub(super) question: Option<String>,
    /// Rules and wishes that are in the lists.
    said: HashSet<String>,
    /// Whether facts are not looked for.
    passes_facts_over: bool,
    /// All facts.
    pub(super) facts: HashMap<String, Weight, FixedState>,
    /// Messages, and calls by tool.
    pub(super) n_messages: usize,
    pub(super) tools: Vec<(String, usize)>,
}

/// Where and when a fact was said. Messages are counted from 1; 0 is before all of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Weight {
    pub(super) kind: FactKind,
    /// How often it occurs, each repetition in a message counted.
    pub(super) occurrences: u32,
    /// Results that hold it.
    pub(super) read: u32,
    /// Messages of the user that hold it.
    pub(super) by_user: u32,
    /// The first message that holds it.
    pub(super) first: u32,
    /// The last one.
    pub(super) last: u32,
    /// The last one that the user or the agent wrote.
    pub(super) last_written: u32,
}

/// Who says a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Voice {
    User,
    Agent,
    Tool,
}

impl Digest {
    /// Reads all messages.
    ///
    /// # Errors
    /// A record that cannot be read again.
    pub(super) fn of(messages: &dyn Messages) -> Result<Digest, RecordError> {
        Digest::read(messages, Digest::default())
    }

    /// Reads all messages and leaves the facts out.
    ///
    /// # Errors
    /// As [`Digest::of`].
    pub(super) fn without_facts(messages: &dyn Messages) -> Result<Digest, RecordError> {
        Digest::read(messages, Digest { passes_facts_over: true, ..Digest::default() })
    }

    fn read(messages: &dyn Messages, mut digest: Digest) -> Result<Digest, RecordError> {
        let mut open: HashMap<String, OpenCall> = HashMap::new();
        let mut answer = String::new();
        messages.each(&mut |message| {
            digest.n_messages += 1;
            let number = digest.n_messages as u32;
            match message.text("role").map_or(Role::Unknown, |role| Role::from_wire(&role)) {
                Role::User => digest.user(&content_text(message), number),
                Role::Developer => digest.take_facts(&content_text(message), number, Voice::User),
                Role::Assistant => {
                    let text = content_text(message);
                    digest.assistant(message, &text, number, &mut open);
                    if !text.trim().is_empty() {
                        answer = text.into_owned();
                    }
                }
                Role::ToolResult => digest.result(message, number, &mut open),
                _ => {}
            }
        })?;
        digest.calls.finish();
        digest.heed(&answer);
        Ok(digest)
    }

    /// Takes the last answer apart.
    fn heed(&mut self, answer: &str) {
        for sentence in sentences(answer) {
            let list = if is_step(sentence) { &mut self.steps } else { &mut self.last_words };
            list.push(sentence.to_owned());
        }
    }

    /// Drops what has occurred least often, so that a session of any size holds a bounded number of facts.
    fn drop_rare_facts(&mut self) {
        let mut least = 1;
        while self.facts.len() > MOST_FACTS / 2 {
            self.facts.retain(|_, weight| weight.occurrences > least);
            least *= 2;
        }
    }

    /// Counts the facts of a text that is said in a message.
    pub(super) fn take_facts(&mut self, text: &str, number: u32, voice: Voice) {
        if self.passes_facts_over {
            return;
        }
        if self.facts.len() > MOST_FACTS {
            self.drop_rare_facts();
        }
        let facts = &mut self.facts;
        each_fact(text, |kind, fact| {
            let weight = match facts.get_mut(fact) {
                Some(weight) => weight,
                None => facts.entry(fact.to_owned()).or_insert(Weight {
                    kind,
                    occurrences: 0,
                    read: 0,
                    by_user: 0,
                    first: number,
                    last: u32::MAX,
                    last_written: 0,
                }),
            };
            let is_new = weight.last != number;
            weight.occurrences += 1;
            weight.last = number;
            match voice {
                Voice::Tool => weight.read += u32::from(is_new),
                Voice::Agent => weight.last_written = number,
                Voice::User => {
                    weight.by_user += u32::from(is_new);
                    weight.last_written = number;
                }
            }
        });
    }

    fn user(&mut self, text: &str, number: u32) {
        self.take_facts(text, number, Voice::User);
        let is_machine = text.starts_with("<system-reminder>")
            || text.trim_start().starts_with('<')
            || is_wrapped_summary(text);
        if text.trim().is_empty() || is_machine {
            return;
        }
        if let Some(line) =
            text.strip_prefix("Ran `").and_then(|rest| rest.split_once("`\n")).map(|(line, _)| line)
        {
            let failed = text.contains("\n\nCommand exited with code ");
            self.calls.ran(line, failed);
            return;
        }
        self.requests.push(text.trim().to_owned());
        let (start, end) = both_ends(text);
        for sentence in sentences(start).into_iter().chain(sentences(end)) {
            if !self.passes_facts_over && is_whole(sentence) && holds_facts(sentence) {
                self.telling.push(format!("{ASKED} \"{sentence}\""));
            }
            let list = if is_rule(sentence) {
                &mut self.rules
            } else if is_wish(sentence) {
                &mut self.wishes
            } else {
                continue;
            };
            if self.said.insert(sentence.to_owned()) {
                list.push(sentence.to_owned());
            }
        }
        self.question = None;
    }

    fn assistant(
        &mut self,
        message: &Value<'_>,
        text: &str,
        number: u32,
        open: &mut HashMap<String, OpenCall>,
    ) {
        self.take_facts(text, number, Voice::Agent);
        let said = sentences(text);
        for sentence in &said {
            // Rows of tables are no sentences.
            if sentence.starts_with('|') {
                continue;
            }
            if !self.passes_facts_over && !sentence.ends_with(':') && holds_facts(sentence) {
                self.telling.push((*sentence).to_owned());
            }
            if let Some((what, why)) = decision(sentence) {
                self.decisions.push((what.to_owned(), why.to_owned()));
            }
        }
        self.question = last_question(text).map(str::to_owned);
        if !text.trim().is_empty() {
            self.is_under_way = false;
        }
        for block in message.get("content").map_or(&[][..], Value::items) {
            if block.text("type").as_deref() != Some("toolCall") {
                continue;
            }
            self.is_under_way = true;
            let tool = block.text("name").unwrap_or_default().into_owned();
            self.count_tool(&tool);
            let arguments = block.get("arguments");
            if let Some(arguments) = arguments {
                each_text(arguments, &mut |text| self.take_facts(text, number, Voice::Agent));
            }
            let field = |name: &str| arguments.and_then(|arguments| arguments.text(name));
            let path = field("path").or_else(|| field("file_path")).or_else(|| field("file"));
            let command = field("command").or_else(|| field("cmd"));
            if let (Some(path), true) = (&path, is_change(&tool)) {
                let why = said.last().and_then(|sentence| purpose(sentence));
                self.calls.change(path, tool == "write", why, number);
            }
            if let (Some(arguments), true) = (arguments, tool.contains("todo")) {
                let todos = todos(arguments);
                if !todos.is_empty() {
                    self.todos = todos;
                }
            }
            let about = command.as_deref().or(path.as_deref()).map(short);
            let about = about.or_else(|| arguments.and_then(first_text)).unwrap_or_default();
            let call = OpenCall { tool, about, is_command: command.is_some() };
            open.insert(block.text("id").unwrap_or_default().into_owned(), call);
        }
    }

    fn count_tool(&mut self, tool: &str) {
        match self.tools.iter_mut().find(|(name, _)| name == tool) {
            Some((_, n)) => *n += 1,
            None => self.tools.push((tool.to_owned(), 1)),
        }
    }

    fn result(&mut self, message: &Value<'_>, number: u32, open: &mut HashMap<String, OpenCall>) {
        let text = content_text(message);
        self.take_facts(&text, number, Voice::Tool);
        let id = message.text("toolCallId").unwrap_or_default();
        let Some(call) = open.remove(&*id) else { return };
        let failed = message.get("isError").and_then(Value::as_bool) == Some(true);
        self.calls.result(call, &text, failed, number as usize - 1);
    }
}

/// The wrapper that a summary has in the context.
fn is_wrapped_summary(text: &str) -> bool {
    text.contains("<summary>\n") && text.trim_end().ends_with("</summary>")
}

/// The start and the end of a text, the whole as the start if it is not long.
fn both_ends(text: &str) -> (&str, &str) {
    if text.len() <= 2 * SEARCHED {
        return (text, "");
    }
    (&text[..text.floor_char_boundary(SEARCHED)], &text[text.ceil_char_boundary(text.len() - SEARCHED)..])
}

fn holds_facts(sentence: &str) -> bool {
    let mut holds = false;
    each_fact(sentence, |_, _| holds = true);
    holds
}

/// The first argument that is a text, such as a query or an address.
fn first_text(arguments: &Value<'_>) -> Option<String> {
    let Value::Object(object) = arguments else { return None };
    object.iter().find_map(|(_, value)| value.as_str().map(short)).filter(|text| !text.is_empty())
}

/// All strings in a value.
fn each_text(value: &Value<'_>, take: &mut dyn FnMut(&str)) {
    match value {
        Value::String(text) => take(&text.text()),
        Value::Array(items) => items.iter().for_each(|item| each_text(item, take)),
        Value::Object(object) => object.iter().for_each(|(_, value)| each_text(value, take)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Deep(_) => {}
    }
}

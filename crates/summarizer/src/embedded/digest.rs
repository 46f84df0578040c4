//! One walk over the messages: what the user asked, what was done, what failed, which facts occur how often and how late.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use session_model::error::RecordError;
use session_model::message::Role;
use session_model::value::Value;

use super::facts::{FactKind, each_fact};
use super::sentences::{decision, is_rule, is_step, is_wish, last_question, sentences};
use crate::material::Messages;
use crate::transcript::content_text;

/// Longest line of a command or an error, in characters.
const LONGEST_LINE: usize = 200;

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
    /// Files that were changed.
    pub(super) changes: Vec<Change>,
    /// Commands that ran and what came of them.
    pub(super) commands: Vec<Command>,
    /// Calls of other tools that failed.
    pub(super) failures: Vec<Failure>,
    /// Sentences that choose and say why.
    pub(super) decisions: Vec<(String, String)>,
    /// Sentences of the last answers that say what comes.
    pub(super) steps: Vec<String>,
    /// Sentences of the agent that hold facts.
    pub(super) telling: Vec<String>,
    /// What the last answers say besides.
    pub(super) last_words: Vec<String>,
    /// The last state of the todo list: text and whether it is done.
    pub(super) todos: Vec<(String, bool)>,
    /// The question at the end of the last answer.
    pub(super) question: Option<String>,
    /// Whether facts are not looked for.
    passes_facts_over: bool,
    /// All facts.
    pub(super) facts: HashMap<String, Weight>,
    /// Messages, and calls by tool.
    pub(super) n_messages: usize,
    pub(super) tools: Vec<(String, usize)>,
}

/// How much a fact matters.
#[derive(Clone, Copy, Debug)]
pub(super) struct Weight {
    pub(super) kind: FactKind,
    /// Messages of the user and the agent, and calls, that hold it.
    pub(super) written: u32,
    /// Results that hold it.
    pub(super) read: u32,
    /// The last message that holds it in what was written.
    pub(super) last: u32,
    /// The last message that holds it at all; keeps one message from counting twice.
    pub(super) seen: u32,
}

/// A file that was changed.
#[derive(Clone, Debug)]
pub(super) struct Change {
    pub(super) path: String,
    pub(super) is_new: bool,
    pub(super) n: usize,
    /// What the agent said it was about to do, with the last change.
    pub(super) why: Option<String>,
}

/// A command that ran.
#[derive(Clone, Debug)]
pub(super) struct Command {
    pub(super) line: String,
    pub(super) failed: bool,
    /// A telling line of its output: an error, or what a commit said.
    pub(super) said: Option<String>,
}

/// A call that failed.
#[derive(Clone, Debug)]
pub(super) struct Failure {
    pub(super) tool: String,
    pub(super) about: String,
    pub(super) said: String,
}

struct OpenCall {
    tool: String,
    about: String,
    is_command: bool,
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
        let mut calls: HashMap<String, OpenCall> = HashMap::new();
        messages.each(&mut |message| {
            digest.n_messages += 1;
            let number = digest.n_messages as u32;
            match message.text("role").map_or(Role::Unknown, |role| Role::from_wire(&role)) {
                Role::User => digest.user(&content_text(message), number),
                Role::Developer => digest.take_facts(&content_text(message), number, true),
                Role::Assistant => digest.assistant(message, number, &mut calls),
                Role::ToolResult => digest.result(message, number, &mut calls),
                _ => {}
            }
        })?;
        digest.only_newest_commands();
        Ok(digest)
    }

    /// The same command again, however its output is passed on, replaces what came of it before.
    fn only_newest_commands(&mut self) {
        let mut seen = HashSet::new();
        let mut newest: Vec<Command> = std::mem::take(&mut self.commands)
            .into_iter()
            .rev()
            .filter(|it| seen.insert(base(&it.line).to_owned()))
            .collect();
        newest.reverse();
        self.commands = newest;
    }

    /// Drops what has occurred least often, so that a session of any size holds a bounded number of facts.
    fn drop_rare_facts(&mut self) {
        let mut least = 1;
        while self.facts.len() > MOST_FACTS / 2 {
            self.facts.retain(|_, weight| 2 * weight.written + weight.read > least);
            least *= 2;
        }
    }

    /// Counts the facts of a text; `written` if the user or the agent wrote it.
    pub(super) fn take_facts(&mut self, text: &str, number: u32, written: bool) {
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
                    written: 0,
                    read: 0,
                    last: 0,
                    seen: 0,
                }),
            };
            let is_new = weight.seen != number;
            weight.seen = number;
            if written {
                weight.written += u32::from(is_new);
                weight.last = number;
            } else {
                weight.read += u32::from(is_new);
            }
        });
    }

    /// Facts that were carried over count as seen before all messages.
    pub(super) fn forget_rounds(&mut self) {
        let last = self.n_messages as u32;
        for weight in self.facts.values_mut().filter(|weight| weight.last > last) {
            weight.last = 0;
        }
    }

    fn user(&mut self, text: &str, number: u32) {
        self.take_facts(text, number, true);
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
            self.commands.push(Command { line: short(line), failed, said: None });
            return;
        }
        self.requests.push(text.trim().to_owned());
        for sentence in sentences(text) {
            if is_rule(sentence) {
                push_new(&mut self.rules, sentence);
            } else if is_wish(sentence) {
                push_new(&mut self.wishes, sentence);
            }
        }
        self.question = None;
    }

    fn assistant(&mut self, message: &Value<'_>, number: u32, calls: &mut HashMap<String, OpenCall>) {
        let text = content_text(message);
        self.take_facts(&text, number, true);
        let said = sentences(&text);
        for sentence in &said {
            let mut holds_facts = false;
            each_fact(sentence, |_, _| holds_facts = true);
            // Rows of tables are no sentences.
            if holds_facts && !sentence.starts_with('|') {
                self.telling.push((*sentence).to_owned());
            }
            if let Some((what, why)) = decision(sentence) {
                self.decisions.push((what.to_owned(), why.to_owned()));
            }
        }
        if !said.is_empty() {
            self.steps = said.iter().filter(|it| is_step(it)).map(|it| (*it).to_owned()).collect();
            self.last_words = said.iter().filter(|it| !is_step(it)).map(|it| (*it).to_owned()).collect();
        }
        self.question = last_question(&text).map(str::to_owned);
        for block in message.get("content").map_or(&[][..], Value::items) {
            if block.text("type").as_deref() != Some("toolCall") {
                continue;
            }
            let tool = block.text("name").unwrap_or_default().into_owned();
            self.count_tool(&tool);
            let arguments = block.get("arguments");
            if let Some(arguments) = arguments {
                each_text(arguments, &mut |text| self.take_facts(text, number, true));
            }
            let field = |name: &str| arguments.and_then(|arguments| arguments.text(name));
            let path = field("path").or_else(|| field("file_path")).or_else(|| field("file"));
            let command = field("command").or_else(|| field("cmd"));
            if let (Some(path), true) =
                (&path, matches!(&*tool, "write" | "edit" | "multi_edit" | "apply_patch"))
            {
                self.change(path, tool == "write", said.last().copied());
            }
            if tool.contains("todo") {
                self.todos(arguments);
            }
            let about = command.as_deref().or(path.as_deref()).map_or_else(String::new, short);
            let call = OpenCall { tool, about, is_command: command.is_some() };
            calls.insert(block.text("id").unwrap_or_default().into_owned(), call);
        }
    }

    fn count_tool(&mut self, tool: &str) {
        match self.tools.iter_mut().find(|(name, _)| name == tool) {
            Some((_, n)) => *n += 1,
            None => self.tools.push((tool.to_owned(), 1)),
        }
    }

    fn change(&mut self, path: &str, is_new: bool, why: Option<&str>) {
        let why = why.map(str::to_owned);
        match self.changes.iter().position(|change| change.path == path) {
            Some(at) => {
                // The newest change comes last.
                let mut change = self.changes.remove(at);
                change.n += 1;
                change.why = why.or(change.why);
                self.changes.push(change);
            }
            None => self.changes.push(Change { path: path.to_owned(), is_new, n: 1, why }),
        }
    }

    fn todos(&mut self, arguments: Option<&Value<'_>>) {
        let mut todos = Vec::new();
        if let Some(arguments) = arguments {
            collect_todos(arguments, &mut todos);
        }
        if !todos.is_empty() {
            self.todos = todos;
        }
    }

    fn result(&mut self, message: &Value<'_>, number: u32, calls: &mut HashMap<String, OpenCall>) {
        let text = content_text(message);
        self.take_facts(&text, number, false);
        let id = message.text("toolCallId").unwrap_or_default();
        let Some(call) = calls.remove(&*id) else { return };
        let failed = message.get("isError").and_then(Value::as_bool) == Some(true);
        if call.is_command {
            let said = if failed { error_line(&text) } else { commit_line(&call.about, &text) };
            self.commands.push(Command { line: call.about, failed, said });
        } else if failed {
            let said = error_line(&text).unwrap_or_default();
            self.failures.retain(|failure| (&failure.tool, &failure.about) != (&call.tool, &call.about));
            self.failures.push(Failure { tool: call.tool, about: call.about, said });
        } else {
            // What worked later is no obstacle any more.
            self.failures.retain(|failure| failure.about != call.about || failure.tool != call.tool);
        }
    }
}

/// The wrapper that a summary has in the context.
fn is_wrapped_summary(text: &str) -> bool {
    text.contains("<summary>\n") && text.trim_end().ends_with("</summary>")
}

fn push_new(list: &mut Vec<String>, line: &str) {
    if !list.iter().any(|known| known == line) {
        list.push(line.to_owned());
    }
}

/// The first line, cut if it is long.
fn short(text: impl AsRef<str>) -> String {
    let line = text.as_ref().trim().lines().next().unwrap_or_default();
    match line.char_indices().nth(LONGEST_LINE) {
        None => line.to_owned(),
        Some((at, _)) => format!("{}…", &line[..at]),
    }
}

/// A command without what is done to its output.
fn base(line: &str) -> &str {
    let end = [" 2>", " |", " >", ";", " &&"].iter().filter_map(|mark| line.find(mark)).min();
    line[..end.unwrap_or(line.len())].trim()
}

/// The line of an output that says what is wrong.
fn error_line(text: &str) -> Option<String> {
    const WORDS: [&[&str]; 2] = [
        &[
            "error",
            "panicked",
            "assertion",
            "not found",
            "no such",
            "cannot",
            "denied",
            "exception",
            "fatal",
            "undefined",
        ],
        &["failed", "failure", "warning", "unexpected"],
    ];
    let lines = || text.lines().map(str::trim).filter(|line| line.len() > 10);
    let telling = |words: &[&str]| {
        lines().find(|line| {
            let low = line.to_lowercase();
            words.iter().any(|word| low.contains(word))
        })
    };
    WORDS.iter().find_map(|words| telling(words)).or_else(|| lines().next_back()).map(short)
}

/// What git says of a commit: `[branch hash] message`.
fn commit_line(command: &str, output: &str) -> Option<String> {
    if !command.contains("git commit") {
        return None;
    }
    output.lines().map(str::trim).find(|line| line.starts_with('[') && line.contains(']')).map(short)
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

/// Items of a todo list, wherever they are in the arguments.
fn collect_todos(value: &Value<'_>, found: &mut Vec<(String, bool)>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| collect_todos(item, found)),
        Value::Object(object) => {
            let field = |names: &[&str]| -> Option<Cow<'_, str>> {
                names.iter().find_map(|name| object.get(name).and_then(Value::as_str))
            };
            let status = field(&["status", "state"]);
            let text = field(&["content", "text", "title", "task"]);
            match (text, status) {
                (Some(text), Some(status)) => {
                    let done = matches!(&*status, "done" | "completed" | "complete");
                    found.push((short(&text), done));
                }
                _ => object.iter().for_each(|(_, value)| collect_todos(value, found)),
            }
        }
        _ => {}
    }
}

//! What calls did: files changed, commands that ran, calls that failed, items of the todo list.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::sync::LazyLock;

use regex::Regex;
use session_model::text::take_units;
use session_model::value::Value;

use super::previous::{Part, Previous};

/// Longest line of a command or an error, in characters.
const LONGEST_LINE: usize = 200;

/// Longest reason of a change, in UTF-16 units.
const LONGEST_WHY: u64 = 160;

/// Everything that calls did.
#[derive(Debug, Default)]
pub(super) struct Calls {
    /// Files that were changed, the newest change last.
    pub(super) changes: Vec<Change>,
    /// Places of `changes` by path.
    places: HashMap<String, usize>,
    /// Files that were read, the newest last.
    pub(super) reads: Vec<String>,
    /// Commands that ran and what came of them.
    pub(super) commands: Vec<Command>,
    /// Calls of other tools that failed and did not work later, with the number of the call.
    failures: HashMap<(String, String), (usize, Failure)>,
    /// Results that said something, in their order.
    pub(super) outputs: Vec<Output>,
    n_results: usize,
}

/// A file that was changed.
#[derive(Clone, Debug)]
pub(super) struct Change {
    pub(super) path: String,
    pub(super) is_new: bool,
    pub(super) n: usize,
    /// The message of the last change.
    last: u32,
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

/// A result that said something, or a text that a call put into a file.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Output {
    /// The command, or the path.
    pub(super) about: String,
    /// The place of its message.
    pub(super) at: usize,
    /// Whether the message is the call's, which put it into the file.
    pub(super) is_written: bool,
}

/// A call whose result has not come yet.
#[derive(Debug)]
pub(super) struct OpenCall {
    pub(super) tool: String,
    pub(super) about: String,
    pub(super) is_command: bool,
}

impl Change {
    /// The line of a summary.
    pub(super) fn line(&self) -> String {
        let verb = if self.is_new { "wrote" } else { "edited" };
        let times = if self.n > 1 { format!(", {} times", self.n) } else { String::new() };
        let why =
            self.why.as_deref().map_or(String::new(), |why| format!(": {}", take_units(why, LONGEST_WHY)));
        format!("{verb} {}{times}{why}", self.path)
    }

    /// The change that a line of a summary tells of.
    fn of_line(line: &str) -> Option<Change> {
        let (is_new, rest) = match line.strip_prefix("wrote ") {
            Some(rest) => (true, rest),
            None => (false, line.strip_prefix("edited ")?),
        };
        let (what, why) = match rest.split_once(": ") {
            Some((what, why)) => (what, Some(why.to_owned())),
            None => (rest, None),
        };
        let times = what
            .rsplit_once(", ")
            .and_then(|(path, times)| Some((path, times.strip_suffix(" times")?.parse::<usize>().ok()?)));
        let (path, n) = times.unwrap_or((what, 1));
        (!path.contains(' ')).then(|| Change { path: path.to_owned(), is_new, n, last: 0, why })
    }
}

impl Calls {
    /// A file is changed.
    pub(super) fn change(&mut self, path: &str, is_new: bool, why: Option<&str>, number: u32) {
        let why = why.map(str::to_owned);
        self.outputs.push(Output { about: path.to_owned(), at: number as usize - 1, is_written: true });
        match self.places.get(path) {
            Some(&place) => {
                let change = &mut self.changes[place];
                change.n += 1;
                change.last = number;
                change.why = why.or(change.why.take());
            }
            None => {
                self.places.insert(path.to_owned(), self.changes.len());
                self.changes.push(Change { path: path.to_owned(), is_new, n: 1, last: number, why });
            }
        }
    }

    /// A command that the user ran.
    pub(super) fn ran(&mut self, line: &str, failed: bool) {
        self.commands.push(Command { line: short(line), failed, said: None });
    }

    /// The result of a call has come as the message at a place.
    pub(super) fn result(&mut self, call: OpenCall, text: &str, failed: bool, at: usize) {
        self.n_results += 1;
        let (about, is_change) = (call.about.clone(), is_change(&call.tool));
        if call.is_command {
            let said = if failed { error_line(text) } else { commit_line(&call.about, text) };
            self.commands.push(Command { line: call.about.clone(), failed, said });
        } else if failed {
            let said = error_line(text).unwrap_or_default();
            let failure = Failure { tool: call.tool.clone(), about: call.about.clone(), said };
            self.failures.insert((call.tool, call.about.clone()), (self.n_results, failure));
        } else {
            // What worked later is no obstacle any more.
            let key = (call.tool, call.about.clone());
            self.failures.remove(&key);
            if key.0 == "read" && !call.about.is_empty() {
                self.reads.push(call.about.clone());
            }
        }
        if !about.is_empty() && !text.is_empty() && !is_change {
            self.outputs.push(Output { about, at, is_written: false });
        }
    }

    /// Adds what a previous summary says of files, and takes it out of there.
    pub(super) fn go_on_from(&mut self, mut previous: Previous) -> Previous {
        let before = previous.take(Part::Done, Change::of_line);
        let mut changes: Vec<Change> = Vec::new();
        for mut change in before {
            match self.changes.iter_mut().find(|later| later.path == change.path) {
                Some(later) => {
                    later.n += change.n;
                    later.is_new |= change.is_new;
                    later.why = later.why.take().or(change.why.take());
                }
                None => changes.push(change),
            }
        }
        changes.append(&mut self.changes);
        self.changes = changes;
        self.reads.splice(..0, previous.reads.iter().cloned());
        self.finish_reads();
        previous
    }

    /// Puts everything into its order once all messages are read.
    pub(super) fn finish(&mut self) {
        self.places.clear();
        self.changes.sort_by_key(|change| change.last);
        self.commands =
            only_newest(std::mem::take(&mut self.commands), |command| base(&command.line).to_owned());
        self.finish_reads();
        self.outputs = only_newest(std::mem::take(&mut self.outputs), |output| {
            (output.about.clone(), output.is_written)
        });
    }

    /// Leaves each file that was read once, and none that was changed.
    fn finish_reads(&mut self) {
        let changed: HashSet<&str> = self.changes.iter().map(|change| change.path.as_str()).collect();
        self.reads = only_newest(std::mem::take(&mut self.reads), String::clone);
        self.reads.retain(|path| !changed.contains(path.as_str()));
    }

    /// Calls that failed and did not work later, in their order.
    pub(super) fn failures(&self) -> Vec<&Failure> {
        let mut failures: Vec<&(usize, Failure)> = self.failures.values().collect();
        failures.sort_by_key(|(number, _)| *number);
        failures.into_iter().map(|(_, failure)| failure).collect()
    }
}

/// Whether a tool changes files. What it answers says nothing.
pub(super) fn is_change(tool: &str) -> bool {
    matches!(tool, "write" | "edit" | "multi_edit" | "apply_patch")
}

/// Of items with the same key only the last.
fn only_newest<T, K: Eq + Hash>(items: Vec<T>, key: impl Fn(&T) -> K) -> Vec<T> {
    let mut seen = HashSet::new();
    let mut newest: Vec<T> = items.into_iter().rev().filter(|item| seen.insert(key(item))).collect();
    newest.reverse();
    newest
}

/// The todo list that a call sets; empty if it sets none.
pub(super) fn todos(arguments: &Value<'_>) -> Vec<(String, bool)> {
    let mut found = Vec::new();
    collect_todos(arguments, &mut found);
    found
}

/// The first line, cut if it is long.
pub(super) fn short(text: impl AsRef<str>) -> String {
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

/// Words of lines that say what is wrong, the more telling ones first.
static TELLING: LazyLock<[Regex; 2]> = LazyLock::new(|| {
    [
        r"(?i)error|panicked|assertion|not found|no such|cannot|denied|exception|fatal|undefined",
        r"(?i)failed|failure|warning|unexpected",
    ]
    .map(|words| Regex::new(words).expect("the expressions are fixed and valid"))
});

/// The line of an output that says what is wrong.
fn error_line(text: &str) -> Option<String> {
    let is_long = |line: &&str| line.len() > 10;
    let telling = |words: &Regex| {
        let lines = words.find_iter(text).map(|found| line_at(text, found.start()).trim());
        lines.into_iter().find(is_long)
    };
    let last = || text.lines().map(str::trim).rfind(is_long);
    TELLING.iter().find_map(telling).or_else(last).map(short)
}

/// The line that holds a byte.
fn line_at(text: &str, at: usize) -> &str {
    let start = text[..at].rfind('\n').map_or(0, |end| end + 1);
    let end = text[at..].find('\n').map_or(text.len(), |end| at + end);
    &text[start..end]
}

/// What git says of a commit: `[branch hash] message`.
fn commit_line(command: &str, output: &str) -> Option<String> {
    if !command.contains("git commit") {
        return None;
    }
    output.lines().map(str::trim).find(|line| line.starts_with('[') && line.contains(']')).map(short)
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

//! A session's branch as messages with their facts, and the points at which it is or would be compacted.

use std::path::Path;

use anyhow::Result;
use compaction_core::file_ops::without_file_blocks;
use compaction_core::preparation::prepare;
use compaction_core::settings::CompactionSettings;
use session_model::agent_message::agent_message;
use session_model::entry::EntryKind;
use session_model::model_message::model_message;
use session_model::prompts::Prompts;
use session_model::sequence::Sequence;
use session_model::session::{Records, Session};
use session_model::value::Value;

use super::facts::{Facts, Finder};
use crate::files;

/// Tokens between two points.
const STEP: u64 = 40_000;

/// An entry of the branch.
pub(super) struct Step {
    /// What the model gets of it.
    pub(super) message: Option<Value<'static>>,
    /// What the user or the agent wrote or passed to a tool.
    pub(super) written: String,
    /// What tools gave.
    pub(super) read: String,
    /// Facts of both.
    pub(super) facts: Facts,
    /// Facts of what was written.
    pub(super) facts_written: Facts,
    /// Commands that ran.
    pub(super) commands: Vec<String>,
    /// The summary, if it is a compaction.
    summary: Option<String>,
    first_kept: Option<usize>,
    tokens: u64,
}

/// A branch that is scored.
pub(super) struct Trace {
    /// The file's name.
    pub(super) name: String,
    /// The times of its first messages: what copies have in common.
    pub(super) fingerprint: String,
    /// Its entries.
    pub(super) steps: Vec<Step>,
    /// Where it is cut.
    pub(super) points: Vec<Point>,
}

/// A compaction, recorded or assumed.
#[derive(Clone, Debug)]
pub(super) struct Point {
    /// Steps that are summarised.
    pub(super) summarised: std::ops::Range<usize>,
    /// Steps that stay.
    pub(super) kept: std::ops::Range<usize>,
    /// The summary that it goes on from.
    pub(super) previous: Option<String>,
    /// The summary that was recorded.
    pub(super) recorded: Option<String>,
}

impl Trace {
    /// Reads a session; `None` if the file holds none.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(super) fn read(path: &Path, finder: &Finder) -> Result<Option<Trace>> {
        let bytes = files::read_bytes(path)?;
        let Ok((session, _)) = Session::read(&bytes) else { return Ok(None) };
        let entries = session.branch(session.last_entry()).entries;
        let prompts = Prompts::default();
        let sequence = Sequence::of_entries(&session, entries.clone());
        let mut steps: Vec<Step> = entries.iter().map(|_| Step::empty()).collect();
        for item in &sequence.items {
            let Some(at) = entries.iter().position(|&entry| entry == item.entry) else { continue };
            if session.entry(item.entry).kind == EntryKind::Compaction {
                continue;
            }
            let message = agent_message(&sequence, item, &bytes[..]).ok().flatten();
            let message = message.and_then(|message| model_message(message.into_owned(), &prompts));
            steps[at] = message.map_or_else(Step::empty, |message| Step::of(message, item.estimate, finder));
        }
        for (at, &entry) in entries.iter().enumerate() {
            let Some(compaction) = session.entry(entry).compaction() else { continue };
            let place =
                |name| entries[..at].iter().position(|&other| session.id(other) == session.name(name));
            steps[at].first_kept = Some(compaction.first_kept.and_then(place).unwrap_or(at));
            let record = bytes[..].text(session.entry(entry).span).ok();
            let value = record.as_deref().and_then(|record| Value::parse(record).ok());
            steps[at].summary =
                Some(value.and_then(|value| Some(value.text("summary")?.into_owned())).unwrap_or_default());
        }
        let points = recorded(&steps).into_iter().chain(assumed(&session, &entries, &steps)).collect();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let times =
            steps.iter().filter_map(|step| step.message.as_ref()?.get("timestamp").map(Value::to_json));
        let fingerprint = times.take(4).collect::<Vec<_>>().join(" ");
        Ok(Some(Trace { name, fingerprint, steps, points }))
    }

    /// Copies of the messages of some steps.
    pub(super) fn messages(&self, steps: std::ops::Range<usize>) -> Vec<Value<'static>> {
        self.steps[steps].iter().filter_map(|step| step.message.clone()).collect()
    }
}

/// The compactions of the file, at their own cuts.
fn recorded(steps: &[Step]) -> Vec<Point> {
    let mut points = Vec::new();
    let mut before: Option<(usize, usize)> = None;
    for (at, step) in steps.iter().enumerate() {
        let (Some(summary), Some(first_kept)) = (&step.summary, step.first_kept) else { continue };
        let start = before.map_or(0, |(compaction, kept)| kept.min(compaction)).min(first_kept);
        points.push(Point {
            summarised: start..first_kept,
            kept: first_kept..at,
            previous: before
                .and_then(|(compaction, _)| steps[compaction].summary.as_deref())
                .map(without_file_blocks),
            recorded: Some(summary.clone()),
        });
        before = Some((at, first_kept));
    }
    points
}

/// Where sesstool would cut, each time that another 40 000 tokens have come.
fn assumed(session: &Session, entries: &[u32], steps: &[Step]) -> Vec<Point> {
    let settings = CompactionSettings::default();
    let mut points = Vec::new();
    let (mut tokens, mut next) = (0, STEP);
    for (at, step) in steps.iter().enumerate() {
        tokens += step.tokens;
        if tokens < next {
            continue;
        }
        next = (tokens / STEP + 1) * STEP;
        let sequence = session.branch(Some(entries[at])).effective();
        let Ok(preparation) = prepare(&sequence, &settings) else { continue };
        let place = |entry| entries.iter().position(|&other| other == entry);
        let Some(cut) = place(preparation.first_kept) else { continue };
        let first = preparation.history.iter().chain(&preparation.turn_prefix).next();
        let Some(start) = first.and_then(|item| place(item.entry)).filter(|&start| start < cut) else {
            continue;
        };
        let previous =
            preparation.previous.and_then(place).and_then(|previous| steps[previous].summary.as_deref());
        let previous = previous.map(without_file_blocks);
        points.push(Point { summarised: start..cut, kept: cut..at + 1, previous, recorded: None });
    }
    points
}

impl Step {
    fn empty() -> Step {
        Step {
            message: None,
            written: String::new(),
            read: String::new(),
            facts: Facts::new(),
            facts_written: Facts::new(),
            commands: Vec::new(),
            summary: None,
            first_kept: None,
            tokens: 0,
        }
    }

    fn of(message: Value<'static>, tokens: u64, finder: &Finder) -> Step {
        let mut step = Step { tokens, ..Step::empty() };
        let text = text_of(&message);
        if message.text("role").as_deref() == Some("toolResult") {
            step.read = text;
        } else {
            step.written = text;
        }
        for block in message.get("content").map_or(&[][..], Value::items) {
            let Some(arguments) = block.get("arguments") else { continue };
            leaves(arguments, &mut step.written);
            let command = arguments.text("command").or_else(|| arguments.text("cmd"));
            step.commands.extend(command.map(|command| command.trim().to_owned()));
        }
        finder.simple(&step.written, &mut step.facts_written);
        finder.quoted(&step.written, &mut step.facts_written);
        step.facts = step.facts_written.clone();
        finder.simple(&step.read, &mut step.facts);
        finder.quoted(&step.read, &mut step.facts);
        step.message = Some(message);
        step
    }
}

/// The text of a message's content.
fn text_of(message: &Value<'_>) -> String {
    let Some(content) = message.get("content") else { return String::new() };
    if let Some(text) = content.as_str() {
        return format!("{text}\n");
    }
    let texts = content.items().iter().filter(|block| block.text("type").as_deref() == Some("text"));
    texts.filter_map(|block| block.text("text")).fold(String::new(), |all, text| all + &text + "\n")
}

/// All strings of a value, one a line.
fn leaves(value: &Value<'_>, out: &mut String) {
    match value {
        Value::String(text) => {
            out.push_str(&text.text());
            out.push('\n');
        }
        Value::Array(items) => items.iter().for_each(|item| leaves(item, out)),
        Value::Object(object) => object.iter().for_each(|(_, value)| leaves(value, out)),
        Value::Number(_) => {
            value.write_json(out);
            out.push('\n');
        }
        Value::Null | Value::Bool(_) | Value::Deep(_) => {}
    }
}

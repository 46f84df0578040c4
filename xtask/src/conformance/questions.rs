//! What the reference programs are asked about a session.

use compaction_core::branch_summary::navigate;
use compaction_core::preparation::Preparation;
use compaction_core::usage;
use session_model::entry::{EntryKind, EntryNo};
use session_model::sequence::Item;
use session_model::value::{Object, Value};

use super::subject::Reading;
use crate::reference::{Program, Question};

/// A window in which every branch fits.
pub(crate) const WIDE_WINDOW: u64 = 1_000_000_000;

/// The questions to one program about a session; none if it would not understand the file.
pub(crate) fn questions(reading: &Reading<'_>, program: Program) -> Vec<Question> {
    // A byte order mark hides the header from them, and they then take the file for one of version 1; in a cycle they walk for
    // ever.
    if reading.subject.bytes.starts_with(b"\xef\xbb\xbf") || reading.has_cycle {
        return Vec::new();
    }
    match program {
        Program::R13 if reading.is_known_to_r13() => r13(reading),
        Program::P1 if reading.is_pi() => p1(reading),
        Program::R13 | Program::P1 => Vec::new(),
    }
}

fn r13(reading: &Reading<'_>) -> Vec<Question> {
    let subject = reading.subject;
    // It does not know the title slot of its later versions.
    let opens = !reading.is_pi()
        && reading.has_costs()
        && subject.leaf.is_none()
        && !subject.bytes.starts_with(b"{\"type\":\"title\"");
    if subject.written.is_some() {
        return if opens { vec![question(reading, "open", Object::new())] } else { Vec::new() };
    }
    let mut questions = vec![question(reading, "context", args(reading))];
    if reading.session.entries.is_empty() || reading.is_read_otherwise() {
        return questions;
    }
    // An empty branch summary is left out of the context by R13, and all the same part of what it prepares: no answer to be had.
    let is_consistent = !reading.has_empty_branch_summary();
    if is_consistent {
        questions.push(question(reading, "prepare", with_settings(reading)));
    }
    if let Ok(preparation) = reading.preparation() {
        let mut args = with_settings(reading);
        args.set("parts", parts(&preparation));
        args.set("instructions", "the tests");
        questions.push(question(reading, "requests", args));
    }
    let mut prune = args(reading);
    prune.set("protectTokens", subject.pruning.protect_tokens as f64);
    prune.set("minimumSavings", subject.pruning.minimum_savings as f64);
    questions.push(question(reading, "prune", prune));
    if let Some(mut args) = branch_args(reading).filter(|_| is_consistent) {
        for name in ["tokenBudget", "contextWindow"] {
            args.set(name, WIDE_WINDOW as f64);
        }
        questions.push(question(reading, "branch", args));
    }
    if opens {
        questions.push(question(reading, "open", Object::new()));
    }
    questions
}

fn p1(reading: &Reading<'_>) -> Vec<Question> {
    let subject = reading.subject;
    if subject.written.is_some() {
        return vec![question(reading, "open", Object::new())];
    }
    let mut questions = vec![question(reading, "context", args(reading))];
    if reading.session.entries.is_empty() || reading.is_read_otherwise() {
        return questions;
    }
    let sequence = reading.sequence();
    let has_usage = sequence.branch.iter().any(|&entry| {
        reading.session.entry(entry).message().is_some_and(|message| message.usage().is_some())
    });
    if usage::measured(&sequence).is_none() && !has_usage {
        questions.push(question(reading, "prepare", with_settings(reading)));
    }
    if let Some(args) = branch_args(reading) {
        questions.push(question(reading, "branch", args));
    }
    if subject.leaf.is_none() {
        questions.push(question(reading, "open", Object::new()));
    }
    questions
}

fn question(reading: &Reading<'_>, kind: &'static str, args: Object<'_>) -> Question {
    Question { kind, file: reading.subject.path.clone(), args: Value::Object(args).to_json() }
}

fn args(reading: &Reading<'_>) -> Object<'static> {
    let mut args = Object::new();
    args.set_some("leaf", reading.subject.leaf.map(f64::from));
    args
}

fn with_settings(reading: &Reading<'_>) -> Object<'static> {
    let mut settings = Object::new();
    settings.set("keepRecentTokens", reading.subject.compaction.keep_recent_tokens as f64);
    settings.set("reserveTokens", reading.subject.compaction.reserve_tokens as f64);
    let mut args = args(reading);
    args.set("settings", settings);
    args
}

fn branch_args(reading: &Reading<'_>) -> Option<Object<'static>> {
    let target = reading.subject.target?;
    navigate(&reading.session, reading.session.branch(reading.subject.leaf).leaf(), target)?;
    let mut args = args(reading);
    args.set("target", f64::from(target));
    Some(args)
}

/// Our preparation, for R13 to make the requests of.
fn parts(preparation: &Preparation<'_>) -> Object<'static> {
    let places = |items: &[Item]| Value::Array(items.iter().map(|item| place(item.entry)).collect());
    let names = |paths: &[String]| Value::Array(paths.iter().cloned().map(Value::from).collect());
    let mut file_ops = Object::new();
    file_ops.set("read", names(&preparation.file_ops.read));
    file_ops.set("written", names(&preparation.file_ops.written));
    file_ops.set("edited", names(&preparation.file_ops.edited));
    let mut parts = Object::new();
    parts.set("history", places(&preparation.history));
    parts.set("prefix", places(&preparation.turn_prefix));
    parts.set("recent", places(&preparation.recent));
    parts.set("previous", preparation.previous.map_or(Value::Null, place));
    parts.set("firstKept", place(preparation.first_kept));
    parts.set("isSplitTurn", preparation.is_split_turn);
    parts.set("tokensBefore", preparation.tokens_before as f64);
    parts.set("fileOps", file_ops);
    parts
}

/// An entry by its place in the file.
pub(crate) fn place(entry: EntryNo) -> Value<'static> {
    Value::Number(f64::from(entry))
}

/// The items' places, null for those that are no message entries: the programs make these messages anew.
pub(crate) fn message_places(reading: &Reading<'_>, items: &[Item]) -> Value<'static> {
    let place_of = |item: &Item| match reading.session.entry(item.entry).kind {
        EntryKind::Message => place(item.entry),
        _ => Value::Null,
    };
    Value::Array(items.iter().map(place_of).collect())
}

//! sesstool's answers against those of a reference program, question by question.

use compaction_core::file_ops::FileLists;
use compaction_core::preparation::Preparation;
use session_model::agent_message::{agent_message, agent_messages};
use session_model::dialect::Dialect;
use session_model::model_message::model_message;
use session_model::sequence::{Item, Sequence};
use session_model::state::State;
use session_model::value::{Object, Value};

use super::canonical::{canonical, lines};
use super::deviations::{self, Walk};
use super::questions::{message_places, place};
use super::subject::Reading;
use super::verdict::{Deviation, Sheet, Topic, Verdict};
use super::{branches, requests};
use crate::reference::{Answer, Program, Question};

/// Compares one answer.
pub(crate) fn compare(
    reading: &Reading<'_>,
    program: Program,
    question: &Question,
    answer: &Answer,
    sheet: &mut Sheet,
) {
    let topic = match question.kind {
        "context" => Topic::AgentMessages,
        "prepare" => Topic::CutPoint,
        "requests" => Topic::Requests,
        "prune" => Topic::Pruning,
        "branch" => Topic::Abandoned,
        _ => reading.subject.written.unwrap_or(Topic::Opened),
    };
    let value = match answer {
        Answer::Said(line) => Value::parse(line).ok(),
        Answer::Failed(error) => {
            sheet.add(program, topic, Verdict::Different(format!("{}: {error}", program.name())));
            return;
        }
        Answer::Lost => None,
    };
    let Some(theirs) = value.as_ref().and_then(|value| value.get("ok")) else {
        sheet.add(program, topic, Verdict::Different(format!("{} gave no answer", program.name())));
        return;
    };
    match question.kind {
        "context" => context(reading, program, theirs, sheet),
        "prepare" => preparation(reading, program, theirs, sheet),
        "requests" => requests::requests(reading, theirs, sheet),
        "prune" => pruning(reading, theirs, sheet),
        "branch" => branches::branch(reading, program, theirs, sheet),
        _ => opened(reading, (program, topic), theirs, sheet),
    }
}

/// Deviations that excuse everything about a file that the programs read otherwise.
fn reading_excuses(reading: &Reading<'_>) -> Vec<Deviation> {
    if deviations::d15(&reading.session) { vec![Deviation::D15] } else { Vec::new() }
}

fn context(reading: &Reading<'_>, program: Program, theirs: &Value<'_>, sheet: &mut Sheet) {
    let excuses = reading_excuses(reading);
    let n_entries = reading.session.entries.len().to_string();
    let theirs_entries = theirs.get("entries").map(canonical).unwrap_or_default();
    sheet.compare((program, Topic::Entries), &n_entries, &theirs_entries, &excuses);
    let Some(context) = theirs.get("context") else { return };
    let agent = agent_context(reading);
    let their_agent = lines(context.get("messages").map_or(&[][..], Value::items));
    sheet.compare((program, Topic::AgentMessages), &lines(&agent), &their_agent, &excuses);
    let branch = reading.session.branch(reading.subject.leaf);
    // Each program has its own form of it.
    let dialect = match program {
        Program::R13 => Dialect::OhMyPi,
        Program::P1 => Dialect::Pi,
    };
    let state = canonical(&State::of(&branch).to_json(dialect).into());
    sheet.compare((program, Topic::State), &state, &canonical(&state_in(context)), &excuses);
    if program == Program::R13 {
        let model: Vec<Value<'_>> =
            agent.into_iter().filter_map(|message| model_message(message, &reading.prompts)).collect();
        let theirs = lines(theirs.get("modelMessages").map_or(&[][..], Value::items));
        sheet.compare((program, Topic::ModelMessages), &lines(&model), &theirs, &excuses);
    }
}

/// Agent messages as sesstool prints them.
pub(crate) fn agent_context<'s>(reading: &Reading<'s>) -> Vec<Value<'s>> {
    agent_messages(&reading.sequence(), reading.records())
        .expect("the records are in memory")
        .into_iter()
        .map(|message| message.value)
        .collect()
}

/// Everything in a program's context but the messages.
fn state_in<'a>(context: &Value<'a>) -> Value<'a> {
    let mut state = context.as_object().cloned().unwrap_or_default();
    state.remove("messages");
    Value::Object(state)
}

fn preparation(reading: &Reading<'_>, program: Program, theirs: &Value<'_>, sheet: &mut Sheet) {
    let sequence = reading.sequence();
    let walk = Walk::of(&sequence, &reading.subject.compaction);
    let mut excuses = reading_excuses(reading);
    excuses.extend(
        deviations::cut_excuses(&sequence, &walk, program).into_iter().filter(|it| concerns(*it, program)),
    );
    if program == Program::P1 && deviations::d22(&sequence) {
        excuses.push(Deviation::D22);
    }
    let ours = reading.preparation();
    // Where all that we summarise is what the previous compaction kept, nothing is left of it for R13.
    if let Ok(ours) = &ours
        && program == Program::R13
        && ours.history.iter().chain(&ours.turn_prefix).all(deviations::is_kept)
    {
        excuses.push(Deviation::D1);
    }
    let cut = |first_kept: Option<String>| first_kept.unwrap_or_else(|| "nothing to do".to_owned());
    // R13 hands out a preparation that has nothing in it, where we say that there is nothing to do.
    let is_empty = |name: &str| theirs.get(name).is_none_or(|messages| messages.items().is_empty());
    let is_idle = is_empty("messagesToSummarize") && is_empty("turnPrefixMessages");
    let has_work = !theirs.is_null() && !is_idle;
    let our_cut = cut(ours.as_ref().ok().map(|it| canonical(&place(it.first_kept))));
    let their_cut = cut(has_work.then(|| theirs.get("firstKept").map(canonical)).flatten());
    sheet.compare((program, Topic::CutPoint), &our_cut, &their_cut, &excuses);
    let Ok(ours) = ours else { return };
    if has_work {
        // None of this depends on where the cut is.
        tokens_before(program, &ours, theirs, sheet);
        handed_on(reading, program, &ours, theirs, sheet);
    }
    if our_cut == their_cut {
        same_cut(reading, program, &ours, theirs, sheet);
    }
}

/// Whether a deviation is one from this program.
fn concerns(deviation: Deviation, program: Program) -> bool {
    match program {
        Program::R13 => true,
        Program::P1 => matches!(deviation, Deviation::D3 | Deviation::D4 | Deviation::D5 | Deviation::D22),
    }
}

/// The rest of a preparation, where both cut at the same entry.
fn same_cut(
    reading: &Reading<'_>,
    program: Program,
    ours: &Preparation<'_>,
    theirs: &Value<'_>,
    sheet: &mut Sheet,
) {
    let sequence = &ours.sequence;
    let has_d1 = program == Program::R13 && deviations::d1(sequence);
    // What the previous compaction kept is ours alone (D1); the rest must agree.
    let shared = |items: &[Item]| -> Vec<Item> {
        items.iter().filter(|item| !(has_d1 && deviations::is_kept(item))).copied().collect()
    };
    let (history, prefix) = (shared(&ours.history), shared(&ours.turn_prefix));
    let all: Vec<Item> = history.iter().chain(&prefix).copied().collect();
    let their = |name: &str| theirs.get(name).map_or(&[][..], Value::items);
    let their_all: Vec<&Value<'_>> =
        their("messagesToSummarize").iter().chain(their("turnPrefixMessages")).collect();
    let messages = |items: &[Item]| messages(reading, program, sequence, items);
    sheet.compare(
        (program, Topic::Preparation),
        &lines(&messages(&all)),
        &lines(their_all.iter().copied()),
        &[],
    );
    if program == Program::R13 {
        sheet.compare(
            (program, Topic::Preparation),
            &lines(&messages(&ours.recent)),
            &lines(their("recentMessages")),
            &[],
        );
    }
    let mut split_excuses = Vec::new();
    if deviations::d3(sequence, ours.cut) {
        split_excuses.push(Deviation::D3);
    }
    if has_d1 {
        split_excuses.push(Deviation::D1);
    }
    let split = |prefix: usize, is_split: bool| format!("{prefix} messages of a split turn: {is_split}");
    sheet.compare(
        (program, Topic::Preparation),
        &split(prefix.len(), ours.is_split_turn),
        &split(
            their("turnPrefixMessages").len(),
            theirs.get("isSplitTurn").and_then(Value::as_bool) == Some(true),
        ),
        &split_excuses,
    );
    file_ops(reading, program, ours, theirs, sheet);
}

/// The messages of items: by place for R13, whose answer has places, whole for P1.
fn messages<'s>(
    reading: &Reading<'s>,
    program: Program,
    sequence: &Sequence<'_>,
    items: &[Item],
) -> Vec<Value<'s>> {
    match program {
        Program::R13 => match message_places(reading, items) {
            Value::Array(places) => places,
            _ => Vec::new(),
        },
        Program::P1 => items
            .iter()
            .filter_map(|item| {
                agent_message(sequence, item, reading.records()).expect("the records are in memory")
            })
            .collect(),
    }
}

/// What the previous compaction hands on.
fn handed_on(
    reading: &Reading<'_>,
    program: Program,
    ours: &Preparation<'_>,
    theirs: &Value<'_>,
    sheet: &mut Sheet,
) {
    let previous = ours.previous.and_then(|entry| reading.record(entry).ok());
    let own = |name: &str| {
        previous.as_ref().and_then(|entry| entry.get(name)).map_or_else(|| "none".to_owned(), canonical)
    };
    let their = |name: &str| theirs.get(name).map_or_else(|| "none".to_owned(), canonical);
    sheet.compare((program, Topic::Preparation), &own("summary"), &their("previousSummary"), &[]);
    if program == Program::R13 {
        sheet.compare(
            (program, Topic::Preparation),
            &own("preserveData"),
            &their("previousPreserveData"),
            &[],
        );
    }
}

/// R13 gives what was measured and nothing for the messages that follow; the measure itself must be the same (D9).
fn tokens_before(program: Program, ours: &Preparation<'_>, theirs: &Value<'_>, sheet: &mut Sheet) {
    let key = (program, Topic::Preparation);
    let sequence = &ours.sequence;
    let number = theirs.get("tokensBefore").map(canonical).unwrap_or_default();
    match ours.measured.filter(|_| program == Program::R13 && !deviations::d9(sequence)) {
        Some(measured) if number == session_model::text::js_number(measured.context_tokens) => {
            sheet.compare(key, &ours.tokens_before.to_string(), &number, &[Deviation::D9]);
        }
        Some(_) => sheet.compare(key, &ours.tokens_before.to_string(), &number, &[]),
        None => {
            let has_d4 = sequence.items.iter().any(|item| deviations::costs_otherwise_in_p1(sequence, item));
            let excuses: &[Deviation] = match program {
                Program::R13 => &[Deviation::D9],
                Program::P1 if has_d4 => &[Deviation::D4],
                Program::P1 => &[],
            };
            sheet.compare(key, &ours.tokens_before.to_string(), &number, excuses);
        }
    }
}

fn file_ops(
    reading: &Reading<'_>,
    program: Program,
    ours: &Preparation<'_>,
    theirs: &Value<'_>,
    sheet: &mut Sheet,
) {
    let sequence = &ours.sequence;
    let mut excuses = Vec::new();
    if program == Program::R13 && deviations::d1(sequence) {
        excuses.push(Deviation::D1);
    }
    if deviations::d21(&reading.session, &sequence.branch) {
        excuses.push(Deviation::D21);
    }
    let their = theirs.get("fileOps").map(canonical).unwrap_or_default();
    sheet.compare((program, Topic::FileOps), &canonical(&details(&ours.file_ops.lists())), &their, &excuses);
}

/// File lists as `details` has them.
pub(crate) fn details(files: &FileLists) -> Value<'static> {
    let list = |paths: &[String]| Value::Array(paths.iter().cloned().map(Value::from).collect());
    let mut details = Object::new();
    details.set("readFiles", list(&files.read));
    details.set("modifiedFiles", list(&files.modified));
    Value::Object(details)
}

fn pruning(reading: &Reading<'_>, theirs: &Value<'_>, sheet: &mut Sheet) {
    let sequence = reading.sequence();
    let session = &reading.session;
    let plan = pruning::plan(&sequence, &reading.subject.pruning);
    let ours: Vec<String> = plan
        .candidates()
        .map(|result| {
            let notice = session_model::message::pruned_notice(result.estimate);
            format!("{} {notice}\n", result.entry)
        })
        .collect();
    let seen: std::collections::HashSet<_> =
        sequence.items.iter().filter(|item| sequence.reaches_model(item)).map(|item| item.entry).collect();
    let changed = theirs.get("changed").map_or(&[][..], Value::items);
    let listed = |changed: &Value<'_>| {
        let place = changed.get("place").and_then(Value::as_number).unwrap_or(-1.0);
        let text = changed.get("content").and_then(|content| content.items().first()?.text("text"));
        (place, text.unwrap_or_default().into_owned())
    };
    let all: Vec<(f64, String)> = changed.iter().map(listed).collect();
    let print = |list: &[(f64, String)]| -> String {
        list.iter().map(|(place, text)| format!("{place} {text}\n")).collect()
    };
    let has_d6 = deviations::d6(&sequence);
    // What we pass over by D6 is taken out of theirs; what is left must be the same, unless only their other savings reach
    // the minimum.
    let shared: Vec<(f64, String)> = all
        .iter()
        .filter(|(place, _)| {
            let number = *place as session_model::entry::EntryNo;
            seen.contains(&number) && !deviations::is_small(session, session.entry(number))
        })
        .cloned()
        .collect();
    let excuse = has_d6 && (print(&shared) == ours.concat() || !plan.is_worth_it);
    let excuses: &[Deviation] = if excuse { &[Deviation::D6] } else { &[] };
    sheet.compare((Program::R13, Topic::Pruning), &ours.concat(), &print(&all), excuses);
}

/// What the agent's own session manager sees of a file.
pub(crate) fn opened(
    reading: &Reading<'_>,
    (program, topic): (Program, Topic),
    theirs: &Value<'_>,
    sheet: &mut Sheet,
) {
    let excuses = reading_excuses(reading);
    let Some(context) = theirs.get("context") else { return };
    let their_messages = lines(context.get("messages").map_or(&[][..], Value::items));
    sheet.compare((program, topic), &lines(&agent_context(reading)), &their_messages, &excuses);
    let session = &reading.session;
    // Ids of version 1 are made up by each reader.
    if session.header.version > 1 {
        let leaf = session.last_entry().map(|entry| session.id(entry)).unwrap_or_default();
        let their_leaf = theirs.text("leaf").unwrap_or_default();
        sheet.compare((program, topic), leaf, &their_leaf, &excuses);
    }
}

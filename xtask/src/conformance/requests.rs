//! The texts of summary requests and what becomes of the answers, byte for byte.

use compaction_core::compaction_entry::{self, Content, finish};
use compaction_core::file_ops::{with_file_blocks, without_file_blocks};
use compaction_core::preparation::Preparation;
use session_model::message::Role;
use session_model::value::Value;
use summarizer::material::Material;
use summarizer::plan::{Job, ModelLimits, Plan, merge};
use summarizer::provider;
use summarizer::request::{Kind, RequestOptions};

use super::canonical::canonical;
use super::compare::details;
use super::deviations;
use super::subject::Reading;
use super::verdict::{Deviation, Sheet, Topic, Verdict};
use crate::reference::Program;

/// The time of our entry, which is not compared.
const NOW: i64 = 1_800_000_000_000;
/// Tags of a request that a transcript may have, and how we write them there (D11).
const ESCAPED: [(&str, &str); 6] = [
    ("&lt;conversation>", "<conversation>"),
    ("&lt;/conversation>", "</conversation>"),
    ("&lt;previous-summary>", "<previous-summary>"),
    ("&lt;/previous-summary>", "</previous-summary>"),
    ("&lt;additional-context>", "<additional-context>"),
    ("&lt;/additional-context>", "</additional-context>"),
];

/// Compares the requests that both make of our preparation, and the compaction that comes of the same answers.
pub(crate) fn requests(reading: &Reading<'_>, theirs: &Value<'_>, sheet: &mut Sheet) {
    let Ok(preparation) = reading.preparation() else { return };
    let material =
        Material::load(&preparation, reading.records(), &reading.prompts).expect("the records are in memory");
    let options = RequestOptions { instructions: Some("the tests".to_owned()), ..RequestOptions::default() };
    let job = Job::new(&reading.prompts, &options, ModelLimits::default(), &preparation.settings);
    let previous = preparation
        .previous
        .and_then(|entry| reading.record(entry).ok())
        .and_then(|entry| entry.text("summary").map(std::borrow::Cow::into_owned));
    let is_split = preparation.is_split_turn;
    let plan = job.plan(&material, is_split, previous.as_deref());
    // Where nothing that a model gets stands before the turn, R13 still asks for a summary of it (D13).
    let asks_for_nothing = plan.history.is_none() && !preparation.history.is_empty();
    let n_before = usize::from(asks_for_nothing);
    let reply = |kind| reply(&plan, kind, n_before);
    let ours = job.requests(&plan, &reply);
    // Without developer messages, as R13 has it (D17).
    let has_developer = any_developer(&material);
    let lean = has_developer.then(|| {
        let plan = job.plan(&without_developer(&material), is_split, previous.as_deref());
        job.requests(&plan, &reply)
    });
    let asked = theirs.get("requests").map_or(&[][..], Value::items);
    let is_empty = |request: &Value<'_>| {
        request.text("prompt").is_some_and(|prompt| prompt.starts_with("<conversation>\n\n</conversation>"))
    };
    let asked = match asked {
        [first, rest @ ..] if asks_for_nothing && is_empty(first) => rest,
        all => all,
    };
    if asked.len() != ours.len() {
        let words = format!("{} requests of ours, {} of theirs", ours.len(), asked.len());
        sheet.add(Program::R13, Topic::Requests, Verdict::Different(words));
        return;
    }
    let has_d13 = deviations::d13(material.history.len(), is_split, previous.is_some() || asks_for_nothing);
    for (at, ((kind, request), theirs)) in ours.iter().zip(asked).enumerate() {
        let lean = lean.as_ref().and_then(|requests| requests.get(at)).map(|(_, request)| request);
        let excuse_d13 = has_d13 && *kind == Kind::Short;
        one(Topic::Requests, (request, lean), theirs, excuse_d13, sheet);
    }
    if let Some(result) = theirs.get("result") {
        compare_result(reading, (&preparation, &plan), &reply, result, has_d13, sheet);
    }
}

/// What R13 is answered: the requests are counted.
fn reply(plan: &Plan, kind: Kind, n_before: usize) -> String {
    let n = n_before
        + match kind {
            Kind::History | Kind::Branch => 1,
            Kind::TurnPrefix => 1 + usize::from(plan.history.is_some()),
            Kind::Short => 1 + usize::from(plan.history.is_some()) + usize::from(plan.turn_prefix.is_some()),
        };
    format!("Reply {n}.")
}

fn is_developer(message: &Value<'_>) -> bool {
    message.text("role").is_some_and(|role| Role::from_wire(&role) == Role::Developer)
}

fn any_developer(material: &Material<'_>) -> bool {
    [&material.history, &material.turn_prefix, &material.recent].into_iter().flatten().any(is_developer)
}

fn without_developer<'r>(material: &Material<'r>) -> Material<'r> {
    let lean = |messages: &[Value<'r>]| -> Vec<Value<'r>> {
        messages
            .iter()
            .map(|message| {
                // An empty user message has no part in a transcript, and the list stays as long as it is.
                if is_developer(message) {
                    Value::parse(r#"{"role":"user","content":[]}"#).expect("valid JSON")
                } else {
                    message.clone()
                }
            })
            .collect()
    };
    Material {
        history: lean(&material.history),
        turn_prefix: lean(&material.turn_prefix),
        recent: lean(&material.recent),
    }
}

/// One request: the deviations are undone one by one, and what is left must be the same.
pub(crate) fn one(
    topic: Topic,
    (ours, without_developer): (&provider::Request, Option<&provider::Request>),
    theirs: &Value<'_>,
    has_d13: bool,
    sheet: &mut Sheet,
) {
    let key = (Program::R13, topic);
    sheet.compare(key, &ours.system, &theirs.text("system").unwrap_or_default(), &[]);
    let limit = theirs.get("maxTokens").map(canonical).unwrap_or_default();
    sheet.compare(key, &ours.max_output_tokens.to_string(), &limit, &[]);
    let their_prompt = theirs.text("prompt").unwrap_or_default().into_owned();
    if ours.prompt == their_prompt {
        return sheet.compare(key, &ours.prompt, &their_prompt, &[]);
    }
    let mut excuses = Vec::new();
    let mut mine = ours.prompt.clone();
    if let Some(request) = without_developer
        && request.prompt != mine
    {
        excuses.push(Deviation::D17);
        mine = request.prompt.clone();
    }
    let (bare, their_bare) = (unescaped(&mine), unescaped(&their_prompt));
    if bare != mine {
        excuses.push(Deviation::D11);
    }
    // Half a pair that the message itself has at the place of the cut is on both sides.
    let (bare, whole) = (without_halves(&bare), without_halves(&their_bare));
    if whole.len() < their_bare.len() {
        excuses.push(Deviation::D18);
    }
    if has_d13 {
        excuses.push(Deviation::D13);
    }
    // D13 is about the new summary that goes into the request; what is around it must be the same.
    if bare == whole || has_d13 && without_summary(&bare) == without_summary(&whole) {
        sheet.compare(key, &ours.prompt, &their_prompt, &excuses);
    } else {
        sheet.compare(key, &bare, &whole, &[]);
    }
}

/// A request before and behind the summary in it.
fn without_summary(prompt: &str) -> Option<(&str, &str)> {
    let (before, rest) = prompt.split_once("\n<previous-summary>\n")?;
    Some((before, rest.rsplit_once("\n</previous-summary>\n")?.1))
}

/// Tags in the transcript as they were.
fn unescaped(prompt: &str) -> String {
    ESCAPED.iter().fold(prompt.to_owned(), |text, (escaped, tag)| text.replace(escaped, tag))
}

/// Half surrogate pairs before the notice of a cut are taken away (D18).
fn without_halves(prompt: &str) -> String {
    const NOTICE: &str = "\n\n[... ";
    prompt.replace(&format!("\u{fffd}{NOTICE}"), NOTICE)
}

fn compare_result(
    reading: &Reading<'_>,
    (preparation, plan): (&Preparation<'_>, &Plan),
    reply: &dyn Fn(Kind) -> String,
    theirs: &Value<'_>,
    has_d13: bool,
    sheet: &mut Sheet,
) {
    let key = (Program::R13, Topic::Result);
    let history = plan.without_history.clone().unwrap_or_else(|| reply(Kind::History));
    let prefix = plan.turn_prefix.as_ref().map(|_| reply(Kind::TurnPrefix));
    let files = preparation.file_ops.lists();
    let merged = merge(&history, prefix.as_deref());
    let ours = with_file_blocks(&merged, &files, &reading.prompts);
    let summary = theirs.text("summary").unwrap_or_default().into_owned();
    let mut excuses = Vec::new();
    if has_d13 {
        excuses.push(Deviation::D13);
    }
    // D19 is about the lines of the blocks: what is before them must be the same.
    let has_d19 = files.read.len() > 1 || files.modified.len() > 1;
    if has_d19 && without_file_blocks(&ours) == without_file_blocks(&summary) {
        excuses.push(Deviation::D19);
    }
    sheet.compare(key, &ours, &summary, &excuses);
    let their_details = theirs.get("details").map(canonical).unwrap_or_default();
    sheet.compare(key, &canonical(&details(&files)), &their_details, &[]);
    let short = theirs.text("shortSummary").unwrap_or_default();
    sheet.compare(key, &reply(Kind::Short), &short, &[]);
    let content =
        Content::Made { summary: merged, short_summary: Some(reply(Kind::Short)), preserve_data: None };
    let previous = compaction_entry::previous(&preparation.sequence, reading.records())
        .expect("the records are in memory");
    // What does not shrink the context is refused, and then there is no entry to compare.
    let Ok(entry) = finish(preparation, previous.as_ref(), &content, &reading.prompts, NOW) else { return };
    // An empty object says nothing, and we leave it out (spec 3.7).
    let field = |object: &Value<'_>, name: &str| {
        object.get(name).map(canonical).filter(|json| json != "{}").unwrap_or_default()
    };
    for name in ["preserveData", "tokensBefore"] {
        sheet.compare(key, &field(&entry.value, name), &field(theirs, name), &[]);
    }
    // Ids of version 1 are made up by each reader.
    if reading.session.header.version > 1 {
        let name = "firstKeptEntryId";
        sheet.compare(key, &field(&entry.value, name), &field(theirs, name), &[]);
    }
}

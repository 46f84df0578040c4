//! What hooks are given before a compaction, and what their answers mean (spec 6.3).

use compaction_core::compaction_entry::{GivenCompaction, Previous};
use compaction_core::preparation::Preparation;
use session_model::agent_message::agent_message;
use session_model::error::RecordError;
use session_model::sequence::Item;
use session_model::session::Records;
use session_model::value::{Object, Value};
use summarizer::request::RequestOptions;

use super::one::at;
use crate::exit::CommandError;
use crate::hooks::{Event, Hooks, Opinion};
use crate::session_file::SessionFile;

/// What hooks want of a compaction.
pub(super) enum Before {
    /// That it does not happen.
    Cancelled,
    /// That theirs is taken.
    Given(GivenCompaction),
    /// That it is made, with these additions.
    Made { options: RequestOptions, preserve_data: Option<Value<'static>> },
}

/// What is known when hooks are asked.
pub(super) struct Known<'a, R: ?Sized> {
    pub(super) preparation: &'a Preparation<'a>,
    pub(super) previous: Option<&'a Previous>,
    pub(super) instructions: Option<&'a str>,
    pub(super) records: &'a R,
}

/// Asks the hooks about a compaction.
pub(super) fn ask<R: Records + ?Sized>(
    hooks: &Hooks<'_>,
    file: &SessionFile,
    known: &Known<'_, R>,
) -> Result<Before, CommandError> {
    if hooks.has(Event::BeforeCompact) {
        let given = before_compact(known).map_err(at(file))?;
        match hooks.ask(Event::BeforeCompact, given)? {
            Opinion::Cancel => return Ok(Before::Cancelled),
            Opinion::Answer(answer) => {
                if let Some(compaction) = answer.get("compaction").filter(|given| !given.is_null()) {
                    return Ok(Before::Given(given_compaction(file, compaction)?));
                }
            }
            Opinion::None => {}
        }
    }
    let mut options =
        RequestOptions { instructions: known.instructions.map(str::to_owned), ..RequestOptions::default() };
    let mut preserve_data = None;
    if hooks.has(Event::Compacting) {
        let given = compacting(known).map_err(at(file))?;
        match hooks.ask(Event::Compacting, given)? {
            Opinion::Cancel => return Ok(Before::Cancelled),
            Opinion::Answer(answer) => {
                options.prompt = text(file, &answer, "prompt")?;
                options.context = lines(file, &answer)?;
                preserve_data = answer.get("preserveData").filter(|data| data.as_object().is_some()).cloned();
            }
            Opinion::None => {}
        }
    }
    Ok(Before::Made { options, preserve_data })
}

fn before_compact<R: Records + ?Sized>(known: &Known<'_, R>) -> Result<Object<'static>, RecordError> {
    let preparation = known.preparation;
    let session = preparation.sequence.session;
    let mut told = Object::new();
    told.set("firstKeptEntryId", session.id(preparation.first_kept).to_owned());
    told.set("messagesToSummarize", messages(known, &preparation.history)?);
    told.set("turnPrefixMessages", messages(known, &preparation.turn_prefix)?);
    told.set("recentMessages", messages(known, &preparation.recent)?);
    told.set("isSplitTurn", preparation.is_split_turn);
    told.set("tokensBefore", preparation.tokens_before as f64);
    if let Some(previous) = known.previous {
        told.set("previousSummary", previous.summary.clone());
        told.set_some("previousPreserveData", previous.preserve_data.clone());
    }
    let list = |paths: &[String]| Value::Array(paths.iter().map(|path| Value::from(path.clone())).collect());
    let mut files = Object::new();
    files.set("read", list(&preparation.file_ops.read));
    files.set("written", list(&preparation.file_ops.written));
    files.set("edited", list(&preparation.file_ops.edited));
    told.set("fileOps", files);
    let mut settings = Object::new();
    settings.set("enabled", preparation.settings.enabled);
    settings.set("reserveTokens", preparation.settings.reserve_tokens as f64);
    settings.set("keepRecentTokens", preparation.settings.keep_recent_tokens as f64);
    told.set("settings", settings);
    let mut given = Object::new();
    given.set("preparation", told);
    given.set("branchEntries", entries(known.records, preparation)?);
    given.set_some("customInstructions", known.instructions.map(|text| Value::from(text.to_owned())));
    Ok(given)
}

fn compacting<R: Records + ?Sized>(known: &Known<'_, R>) -> Result<Object<'static>, RecordError> {
    let preparation = known.preparation;
    let mut all = preparation.history.clone();
    all.extend(&preparation.turn_prefix);
    let mut given = Object::new();
    given.set("sessionId", preparation.sequence.session.header.id.clone());
    given.set("messages", messages(known, &all)?);
    Ok(given)
}

fn messages<R: Records + ?Sized>(
    known: &Known<'_, R>,
    items: &[Item],
) -> Result<Value<'static>, RecordError> {
    let mut messages = Vec::with_capacity(items.len());
    for item in items {
        let message = agent_message(&known.preparation.sequence, item, known.records)?;
        messages.extend(message.map(Value::into_owned));
    }
    Ok(Value::Array(messages))
}

/// The entries of the branch, as the file has them.
fn entries<R: Records + ?Sized>(
    records: &R,
    preparation: &Preparation<'_>,
) -> Result<Value<'static>, RecordError> {
    let session = preparation.sequence.session;
    let mut entries = Vec::with_capacity(preparation.sequence.branch.len());
    for &entry in &preparation.sequence.branch {
        entries.push(records.value(session.entry(entry).span)?.into_owned());
    }
    Ok(Value::Array(entries))
}

fn given_compaction(file: &SessionFile, given: &Value<'_>) -> Result<GivenCompaction, CommandError> {
    let required = |name: &str| {
        given.text(name).map(std::borrow::Cow::into_owned).ok_or_else(|| {
            wrong(file, Event::BeforeCompact, &format!("its compaction has no string \"{name}\""))
        })
    };
    Ok(GivenCompaction {
        summary: required("summary")?,
        short_summary: given.text("shortSummary").map(std::borrow::Cow::into_owned),
        first_kept_entry_id: required("firstKeptEntryId")?,
        tokens_before: given
            .get("tokensBefore")
            .and_then(Value::as_number)
            .filter(|tokens| tokens.is_finite())
            .ok_or_else(|| {
                wrong(file, Event::BeforeCompact, "its compaction has no number \"tokensBefore\"")
            })?,
        details: given.get("details").filter(|details| !details.is_null()).cloned().map(Value::into_owned),
        preserve_data: given
            .get("preserveData")
            .filter(|data| data.as_object().is_some())
            .cloned()
            .map(Value::into_owned),
    })
}

fn text(file: &SessionFile, answer: &Value<'_>, name: &str) -> Result<Option<String>, CommandError> {
    match answer.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.text().into_owned())),
        Some(_) => Err(wrong(file, Event::Compacting, &format!("\"{name}\" is no string"))),
    }
}

fn lines(file: &SessionFile, answer: &Value<'_>) -> Result<Vec<String>, CommandError> {
    let no_lines = || wrong(file, Event::Compacting, "\"context\" is no list of strings");
    match answer.get("context") {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(items)) => items
            .iter()
            .map(|item| item.as_str().map(std::borrow::Cow::into_owned).ok_or_else(no_lines))
            .collect(),
        Some(_) => Err(no_lines()),
    }
}

fn wrong(file: &SessionFile, event: Event, what: &str) -> CommandError {
    CommandError::in_file(&file.path, format!("the answer of a hook of {}: {what}", event.name()))
        .hint("correct the hook, or run without it; docs/hooks.md says what an answer is")
}

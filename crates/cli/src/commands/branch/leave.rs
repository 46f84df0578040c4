//! The move itself: hooks, summary, entry, file.

use compaction_core::branch_summary::{
    BranchContent, BranchPreparation, BranchSkip, Navigation, branch_summary_entry, prepare_branch,
};
use compaction_core::file_ops::FileOps;
use session_model::entry::{EntryKind, EntryNo, Stamp};
use session_model::prompts::Prompts;
use session_model::session::{Records, Session};
use session_model::value::{Object, Value};
use summarizer::embedded::{self, EmbeddedInput};
use summarizer::material::branch_messages;
use summarizer::plan::{Job, ModelLimits};
use summarizer::request::RequestOptions;
use summarizer::summarize::{Asking, Summaries, summarize_branch};

use super::BranchArgs;
use super::facts::Branching;
use crate::app::App;
use crate::batch::Worker;
use crate::commands::compact::{RequestFacts, request_facts};
use crate::exit::{CommandError, ErrorKind};
use crate::fold_estimate;
use crate::hooks::{Event, Hooks, Opinion};
use crate::report::{Outcome, Skipped};
use crate::session_file::{Loaded, SessionFile};
use crate::settings::Settings;
use crate::summaries::{Asked, Source};
use crate::write::{self, Change};

/// What the run knows.
pub(super) struct Work<'a> {
    pub(super) app: &'a App,
    pub(super) args: &'a BranchArgs,
    pub(super) settings: &'a Settings,
    pub(super) source: &'a Source,
    pub(super) prompts: &'a Prompts,
    pub(super) wants_summary: bool,
    pub(super) now_ms: i64,
}

/// A summary that is to be written, and how it came about.
struct Made {
    content: BranchContent,
    file_ops: FileOps,
    summarizer: String,
    n_messages: usize,
    requests: Vec<RequestFacts>,
    price: Option<f64>,
    warnings: Vec<String>,
}

impl Work<'_> {
    /// Moves a session, if anything that moves it is asked for.
    pub(super) fn leave(
        &self,
        file: &SessionFile,
        loaded: &Loaded,
        navigation: &Navigation,
        worker: &Worker<'_>,
    ) -> Result<Outcome<Branching>, CommandError> {
        let session = &loaded.session;
        let mut facts = self.facts(file, loaded, navigation)?;
        let hooks = Hooks { settings: self.settings, file: &file.path, cancel: worker.cancel };
        let mut given = None;
        if hooks.has(Event::BeforeTree) && !self.args.write.dry_run {
            match hooks.ask(Event::BeforeTree, self.told(file, loaded, navigation)?)? {
                Opinion::Cancel => return Ok(skip("cancelled_by_hook", "a hook cancelled it", None)),
                Opinion::Answer(answer) => given = given_summary(file, &answer)?,
                Opinion::None => {}
            }
        }
        let made =
            if self.wants_summary { self.summary(file, loaded, navigation, given, worker)? } else { None };
        if self.wants_summary && made.is_none() {
            facts.written.warnings.push("there is nothing to summarise in what is left behind".to_owned());
        }
        if self.args.write.dry_run {
            if let Some(made) = made {
                facts.summarizer = Some(made.summarizer);
                facts.summarized_messages = made.n_messages;
                facts.requests = made.requests;
                facts.price = made.price;
            }
            return Ok(Outcome::Done(facts));
        }
        if worker.is_cancelled() {
            return Err(CommandError::interrupted());
        }
        let summary = made.as_ref().map(|made| {
            branch_summary_entry(
                session,
                navigation,
                &made.file_ops,
                &made.content,
                self.prompts,
                self.now_ms,
            )
        });
        let label = self.label(session, navigation, summary.as_ref().map(|(stamp, _)| stamp));
        let entries: Vec<String> = summary
            .iter()
            .map(|(_, entry)| entry.to_json())
            .chain(label.iter().map(|(_, entry)| entry.to_json()))
            .collect();
        if entries.is_empty() {
            let message =
                "without a summary nothing would move the session there; give --summarize or --label NAME";
            return Ok(skip("nothing_to_write", message, Some(facts)));
        }
        let records: Vec<&str> = entries.iter().map(String::as_str).collect();
        let change = Change { command: "branch", time_ms: self.now_ms, records: &records };
        let branch = session.branch(navigation.new_leaf.or(Some(navigation.target)));
        let written = write::add_records(file, loaded, &branch, change, &self.args.write)?;
        facts.written.take(written, file);
        facts.label_entry_id = label.map(|(stamp, _)| stamp.id);
        let mut told = Object::new();
        let leaf_id = facts.label_entry_id.clone().or_else(|| Some(summary.as_ref()?.0.id.clone()));
        told.set("newLeafId", leaf_id.map_or(Value::Null, Value::from));
        told.set("oldLeafId", facts.old_leaf_id.clone().map_or(Value::Null, Value::from));
        if let (Some((stamp, entry)), Some(made)) = (summary, made) {
            let text = entry.text("summary").unwrap_or_default().into_owned();
            facts.summary_tokens = Some(session.tokenizer.count(&text));
            facts.summary = Some(text);
            facts.summary_entry_id = Some(stamp.id);
            facts.summarized_messages = made.n_messages;
            facts.summarizer = Some(made.summarizer);
            facts.requests = made.requests;
            facts.price = made.price;
            facts.written.warnings.extend(made.warnings);
            told.set("summaryEntry", entry);
            told.set("fromExtension", matches!(made.content, BranchContent::Given { .. }));
        }
        facts.written.warnings.extend(hooks.tell(Event::Tree, told));
        Ok(Outcome::Done(facts))
    }

    fn facts(
        &self,
        file: &SessionFile,
        loaded: &Loaded,
        navigation: &Navigation,
    ) -> Result<Branching, CommandError> {
        let session = &loaded.session;
        let id = |entry: Option<EntryNo>| entry.map(|entry| session.id(entry).to_owned());
        let text = match navigation.gives_text_back {
            true => {
                let record = record(file, loaded, navigation.target)?;
                let content = record.get("message").unwrap_or(&record).get("content").cloned();
                content.map(|content| plain_text(&content))
            }
            false => None,
        };
        Ok(Branching {
            dry_run: self.args.write.dry_run,
            old_leaf_id: id(navigation.old_leaf),
            new_leaf_id: id(navigation.new_leaf),
            common_ancestor_id: id(navigation.common_ancestor),
            abandoned_entries: navigation.abandoned.len(),
            text,
            name: crate::report::named(&file.path),
            ..Branching::default()
        })
    }

    /// What hooks are told before the branch is left.
    fn told(
        &self,
        file: &SessionFile,
        loaded: &Loaded,
        navigation: &Navigation,
    ) -> Result<Object<'static>, CommandError> {
        let session = &loaded.session;
        let id = |entry: Option<EntryNo>| {
            entry.map_or(Value::Null, |entry| Value::from(session.id(entry).to_owned()))
        };
        let entries: Result<Vec<_>, _> =
            navigation.abandoned.iter().map(|&entry| record(file, loaded, entry)).collect();
        let mut preparation = Object::new();
        preparation.set("targetId", id(Some(navigation.target)));
        preparation.set("oldLeafId", id(navigation.old_leaf));
        preparation.set("commonAncestorId", id(navigation.common_ancestor));
        preparation.set("entriesToSummarize", Value::Array(entries?));
        preparation.set("userWantsSummary", self.wants_summary);
        let mut told = Object::new();
        told.set("preparation", preparation);
        Ok(told)
    }

    /// The summary, given or made; `None` if there is nothing to summarise.
    fn summary(
        &self,
        file: &SessionFile,
        loaded: &Loaded,
        navigation: &Navigation,
        given: Option<BranchContent>,
        worker: &Worker<'_>,
    ) -> Result<Option<Made>, CommandError> {
        if let Some(content) = given {
            return Ok(Some(Made {
                content,
                file_ops: FileOps::default(),
                summarizer: "a hook".to_owned(),
                n_messages: 0,
                requests: Vec::new(),
                price: None,
                warnings: Vec::new(),
            }));
        }
        let settings = self.settings.branch_summary();
        let limits = match self.source {
            Source::Asked(asked) => asked.limits,
            Source::Embedded => ModelLimits { window: self.settings.context_window(), max_output: None },
        };
        let preparation =
            match prepare_branch(&loaded.session, &navigation.abandoned, &settings, limits.window) {
                Ok(preparation) => preparation,
                Err(BranchSkip::NothingToSummarize) => return Ok(None),
                Err(error @ BranchSkip::NoBudget { .. }) => {
                    return Err(CommandError::in_file(&file.path, error)
                        .hint("lower branchSummary.reserveTokens, or give --context-window"));
                }
            };
        match self.source {
            Source::Embedded => self.embedded(file, loaded, &preparation).map(Some),
            Source::Asked(asked) => match self.ask(file, loaded, asked, &preparation, worker) {
                Err(error) if asked.falls_back && error.kind != ErrorKind::Interrupted => {
                    let mut made = self.embedded(file, loaded, &preparation)?;
                    made.warnings.push(format!("the embedded summarizer took over: {}", error.message));
                    Ok(Some(made))
                }
                made => made.map(Some),
            },
        }
    }

    fn embedded(
        &self,
        file: &SessionFile,
        loaded: &Loaded,
        preparation: &BranchPreparation<'_>,
    ) -> Result<Made, CommandError> {
        let records: &[u8] = &loaded.bytes;
        let messages = branch_messages(preparation, records, self.prompts)
            .map_err(|error| CommandError::from((&*file.path, error)))?;
        let limit = self.settings.summary_tokens().min(self.settings.branch_summary().summary_limit());
        let summary = embedded::summarize(&EmbeddedInput {
            kind: embedded::Kind::Branch,
            messages: &messages,
            kept: &Vec::new(),
            previous_summary: None,
            instructions: self.args.instructions.as_deref(),
            limit_tokens: limit,
        })
        .map_err(|error| CommandError::from((&*file.path, error)))?;
        Ok(Made {
            content: BranchContent::Made(summary),
            file_ops: preparation.file_ops.clone(),
            summarizer: "embedded".to_owned(),
            n_messages: messages.len(),
            requests: Vec::new(),
            price: None,
            warnings: Vec::new(),
        })
    }

    fn ask(
        &self,
        file: &SessionFile,
        loaded: &Loaded,
        asked: &Asked,
        preparation: &BranchPreparation<'_>,
        worker: &Worker<'_>,
    ) -> Result<Made, CommandError> {
        let records: &[u8] = &loaded.bytes;
        let messages = branch_messages(preparation, records, self.prompts)
            .map_err(|error| CommandError::from((&*file.path, error)))?;
        let options =
            RequestOptions { instructions: self.args.instructions.clone(), ..RequestOptions::default() };
        let mut job = Job::new(self.prompts, &options, asked.limits, &self.settings.compaction());
        job.branch_limit = self.settings.branch_summary().summary_limit();
        let chain = job.plan_branch(&messages, preparation.budget);
        let mut made = Made {
            content: BranchContent::Made(String::new()),
            file_ops: preparation.file_ops.clone(),
            summarizer: self.source.name(),
            n_messages: messages.len(),
            requests: Vec::new(),
            price: None,
            warnings: Vec::new(),
        };
        if self.args.write.dry_run {
            for request in fold_estimate::branch_requests(&job, &chain) {
                let price = asked.estimated_price(request.prompt, request.output);
                made.price = price.map(|price| price + made.price.unwrap_or(0.0));
                made.requests.push(RequestFacts::planned(request));
            }
            return Ok(made);
        }
        let candidates = asked.candidates();
        let progress = |progress: summarizer::provider::Progress<'_>| {
            crate::progress_words::tell(self.app, worker, &file.path, progress);
        };
        let asking = Asking { candidates: &candidates, cancel: worker.cancel, progress: &progress };
        let Summaries { summary, requests, cut, .. } = summarize_branch(&job, &chain, asking)
            .map_err(|error| CommandError::from((&*file.path, error)))?;
        if summary.trim().is_empty() {
            return Err(CommandError::in_file(&file.path, "the summary is empty")
                .hint("nothing was written; try another model, or --summarizer embedded"));
        }
        if !cut.is_empty() {
            made.warnings.push("the branch summary was longer than its limit and was cut".to_owned());
        }
        let prices: Option<Vec<f64>> = requests.iter().map(|request| asked.price(request)).collect();
        made.price = prices.map(|prices| prices.iter().sum());
        made.requests = requests.iter().map(request_facts).collect();
        made.content = BranchContent::Made(summary);
        Ok(made)
    }

    /// A label at the place that is gone to, behind the summary if there is one.
    fn label(
        &self,
        session: &Session,
        navigation: &Navigation,
        summary: Option<&Stamp>,
    ) -> Option<(Stamp, Value<'static>)> {
        let name = self.args.label.as_deref()?;
        let target = navigation.new_leaf.unwrap_or(navigation.target);
        let parent = summary
            .map(|summary| summary.id.as_str())
            .or_else(|| navigation.new_leaf.map(|leaf| session.id(leaf)));
        let make = |stamp: &Stamp| {
            let mut entry = stamp.head(EntryKind::Label, parent);
            entry.set("targetId", session.id(target).to_owned());
            entry.set("label", name.to_owned());
            Value::Object(entry)
        };
        let is_taken = |id: &str| session.has_id(id) || summary.is_some_and(|summary| summary.id == id);
        Some(Stamp::entry(self.now_ms, is_taken, make))
    }
}

fn skip(reason: &'static str, message: &str, facts: Option<Branching>) -> Outcome<Branching> {
    Outcome::Skipped(Skipped { reason, message: message.to_owned(), facts })
}

fn record(file: &SessionFile, loaded: &Loaded, entry: EntryNo) -> Result<Value<'static>, CommandError> {
    let records: &[u8] = &loaded.bytes;
    let value = records.value(loaded.session.entry(entry).span);
    value.map(Value::into_owned).map_err(|error| CommandError::from((&*file.path, error)))
}

/// The text of content: a string, or its text blocks.
fn plain_text(content: &Value<'_>) -> String {
    match content {
        Value::String(text) => text.text().into_owned(),
        content => {
            let texts = content.items().iter().filter(|block| block.text("type").as_deref() == Some("text"));
            texts.filter_map(|block| block.text("text").map(std::borrow::Cow::into_owned)).collect()
        }
    }
}

fn given_summary(file: &SessionFile, answer: &Value<'_>) -> Result<Option<BranchContent>, CommandError> {
    let Some(given) = answer.get("summary").filter(|given| !given.is_null()) else { return Ok(None) };
    let text = given.text("summary").filter(|text| !text.trim().is_empty()).ok_or_else(|| {
        CommandError::in_file(
            &file.path,
            "the answer of a hook of session_before_tree: its summary has no string \"summary\"",
        )
        .hint("correct the hook, or run without it; docs/hooks.md says what an answer is")
    })?;
    let details = given.get("details").filter(|details| !details.is_null()).cloned().map(Value::into_owned);
    Ok(Some(BranchContent::Given { summary: text.into_owned(), details }))
}

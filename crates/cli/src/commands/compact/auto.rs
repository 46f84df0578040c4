//! `compact --auto` and `--idle`: what a live agent does after a turn (spec 6.4).

use std::borrow::Cow;

use compaction_core::compaction_entry::CompactionEntry;
use compaction_core::maintenance::{self, Leave, Overflow, Reason, Rest, Step};
use compaction_core::usage::context_tokens;
use serde_json::json;
use session_model::branch::Branch;
use session_model::dialect::Dialect;
use session_model::entry::{EntryKind, Parent, Stamp};
use session_model::prompts::PromptName;
use session_model::session::Session;
use session_model::value::{Object, Value};

use super::facts::{Maintenance, PrunedFacts, PrunedOnly};
use super::one::{Subject, Work, skip};
use crate::batch::Worker;
use crate::exit::{CommandError, ErrorKind};
use crate::model_window;
use crate::prune_bytes::{Pruned, prune_bytes};
use crate::report::Outcome;
use crate::session_file::{Loaded, SessionFile};
use crate::written::WriteFacts;

/// What an automatic compaction is called in events.
const ACTION: &str = "context-full";

impl Work<'_> {
    /// Does what is due, if anything is.
    pub(super) fn automatic(
        &self,
        file: &SessionFile,
        loaded: &Loaded,
        branch: Branch<'_>,
        worker: &Worker<'_>,
    ) -> Result<Outcome<Maintenance>, CommandError> {
        let sequence = branch.effective();
        let window = model_window::window(self.settings, &sequence);
        if self.args.idle {
            return match maintenance::due(&sequence, &self.compaction, window, true) {
                None => Ok(below(context_tokens(&sequence), self.compaction.idle_threshold_tokens)),
                Some(reason) => {
                    let subject = subject(file, loaded, &loaded.session, branch, reason);
                    self.with_events(&subject, reason, worker)
                }
            };
        }
        match maintenance::first_step(&sequence, &self.compaction, window) {
            Step::Nothing(rest) => Ok(skip(rest.name(), words(rest))),
            Step::Recover(overflow) => self.recover(file, loaded, branch, overflow, worker),
            Step::PruneAndCheck => self.prune_and_check(file, loaded, branch, window, worker),
        }
    }

    fn recover(
        &self,
        file: &SessionFile,
        loaded: &Loaded,
        branch: Branch<'_>,
        overflow: Overflow,
        worker: &Worker<'_>,
    ) -> Result<Outcome<Maintenance>, CommandError> {
        let session = &loaded.session;
        let reason = Reason::Overflow;
        if !overflow.can_leave {
            let mut subject = subject(file, loaded, session, branch, reason);
            subject.will_retry = Some(overflow.is_error);
            return self.with_events(&subject, reason, worker);
        }
        match maintenance::leave(&branch.effective(), overflow.entry, self.now_ms) {
            Leave::AtParent => {
                let parent = match session.entry(overflow.entry).parent {
                    Parent::Entry(parent) => parent,
                    Parent::Root | Parent::Missing(_) => {
                        return Ok(skip("nothing_to_compact", "nothing stands before the failed message"));
                    }
                };
                let mut subject = subject(file, loaded, session, session.branch(Some(parent)), reason);
                subject.will_retry = Some(true);
                self.with_events(&subject, reason, worker)
            }
            Leave::Omit { edit } => {
                let record = edit.to_json();
                let edited = session
                    .with_records(&[&record])
                    .map_err(|error| CommandError::from((&*file.path, error)))?;
                let mut subject = subject(file, loaded, &edited, edited.branch(None), reason);
                subject.before.push(record);
                subject.will_retry = Some(true);
                self.with_events(&subject, reason, worker)
            }
        }
    }

    fn prune_and_check(
        &self,
        file: &SessionFile,
        loaded: &Loaded,
        branch: Branch<'_>,
        window: Option<u64>,
        worker: &Worker<'_>,
    ) -> Result<Outcome<Maintenance>, CommandError> {
        let plan = pruning::plan(&branch.effective(), &self.prune);
        if !plan.is_worth_it {
            return self.check(file, loaded, branch, window, worker);
        }
        let Pruned { bytes, session } = prune_bytes(file, loaded, &branch, &plan, self.now_ms, self.read)?;
        let leaf = branch.leaf().and_then(|leaf| session.find(loaded.session.id(leaf)));
        let pruned_branch = session.branch(leaf);
        let facts = PrunedFacts { results: plan.candidates().count(), tokens_saved: plan.savings };
        let sequence = pruned_branch.effective();
        match maintenance::due(&sequence, &self.compaction, window, false) {
            Some(reason) => {
                let mut subject = subject(file, loaded, &session, pruned_branch, reason);
                subject.bytes = Cow::Owned(bytes);
                subject.pruned = Some(facts);
                let outcome = self.with_events(&subject, reason, worker)?;
                match outcome {
                    // Pruning stands on its own if there is nothing to compact after it.
                    Outcome::Skipped(_) => self.only_pruned(&subject),
                    done => Ok(done),
                }
            }
            None => {
                let mut subject = subject(file, loaded, &session, pruned_branch, Reason::Threshold);
                subject.bytes = Cow::Owned(bytes);
                subject.pruned = Some(facts);
                self.only_pruned(&subject)
            }
        }
    }

    fn only_pruned(&self, subject: &Subject<'_>) -> Result<Outcome<Maintenance>, CommandError> {
        let mut facts = WriteFacts::default();
        if !self.args.write.dry_run {
            facts.take(self.put(subject, &[])?, subject.file);
        }
        let pruned = subject.pruned.as_ref().map_or((0, 0), |pruned| (pruned.results, pruned.tokens_saved));
        Ok(Outcome::Done(Maintenance::Pruned(PrunedOnly {
            dry_run: self.args.write.dry_run,
            pruned: PrunedFacts { results: pruned.0, tokens_saved: pruned.1 },
            context_tokens: context_tokens(&subject.branch.effective()),
            written: facts,
            name: crate::report::named(&subject.file.path),
        })))
    }

    fn check(
        &self,
        file: &SessionFile,
        loaded: &Loaded,
        branch: Branch<'_>,
        window: Option<u64>,
        worker: &Worker<'_>,
    ) -> Result<Outcome<Maintenance>, CommandError> {
        let sequence = branch.effective();
        match maintenance::due(&sequence, &self.compaction, window, false) {
            Some(reason) => {
                let subject = subject(file, loaded, &loaded.session, branch, reason);
                self.with_events(&subject, reason, worker)
            }
            None => Ok(match window {
                None => skip("unknown_window", model_window::unknown_window(&sequence)),
                Some(window) => below(
                    context_tokens(&sequence),
                    compaction_core::trigger::threshold(&self.compaction, window),
                ),
            }),
        }
    }

    /// Compacts, and says so in the event stream.
    fn with_events(
        &self,
        subject: &Subject<'_>,
        reason: Reason,
        worker: &Worker<'_>,
    ) -> Result<Outcome<Maintenance>, CommandError> {
        let events = self.events.of(&subject.file.path);
        if !self.args.write.dry_run {
            events.compaction_start(reason.name(), ACTION);
        }
        let will_retry = subject.will_retry == Some(true);
        let result = self.compact(subject, worker);
        if self.args.write.dry_run {
            return result.map(|(outcome, _)| outcome);
        }
        match result {
            Ok((Outcome::Done(facts), entry)) => {
                events.compaction_end(
                    ACTION,
                    json!({"result": entry.as_ref().map(result_of), "aborted": false, "willRetry": will_retry}),
                );
                Ok(Outcome::Done(facts))
            }
            Ok((Outcome::Skipped(skipped), _)) => {
                let aborted = skipped.reason == "cancelled_by_hook";
                events.compaction_end(
                    ACTION,
                    json!({"aborted": aborted, "willRetry": false, "skipped": (!aborted).then_some(true)}),
                );
                Ok(Outcome::Skipped(skipped))
            }
            Err(error) => {
                let aborted = error.kind == ErrorKind::Interrupted;
                let begin = match reason {
                    Reason::Overflow => "Context overflow recovery failed: ",
                    Reason::Threshold | Reason::Idle => "Auto-compaction failed: ",
                };
                let message = (!aborted).then(|| format!("{begin}{}", error.message));
                events.compaction_end(
                    ACTION,
                    json!({"aborted": aborted, "willRetry": false, "errorMessage": message}),
                );
                Err(error)
            }
        }
    }

    /// What the agent is asked after this compaction.
    pub(super) fn continue_prompt(&self, subject: &Subject<'_>) -> Option<String> {
        let asks = subject.trigger == Reason::Threshold.name() && self.compaction.auto_continue;
        asks.then(|| self.prompts.text(PromptName::AutoContinue))
    }

    /// The message that asks it, to be stored behind the compaction.
    pub(super) fn continuation(&self, subject: &Subject<'_>, entry: &CompactionEntry) -> Option<String> {
        let prompt = self.continue_prompt(subject).filter(|_| self.args.append_continue)?;
        let session = subject.session;
        let make = |stamp: &Stamp| {
            let mut message = Object::new();
            message.set(
                "role",
                match session.dialect {
                    Dialect::Pi => "user",
                    Dialect::OhMyPi => "developer",
                },
            );
            let mut block = Object::new();
            block.set("type", "text");
            block.set("text", prompt.clone());
            message.set("content", vec![Value::Object(block)]);
            if session.dialect == Dialect::OhMyPi {
                message.set("attribution", "agent");
            }
            message.set("timestamp", stamp.time_ms as f64);
            let mut record = stamp.head(EntryKind::Message, Some(&entry.stamp.id));
            record.set("message", message);
            Value::Object(record)
        };
        let is_taken = |id: &str| session.has_id(id) || id == entry.stamp.id;
        let (_, record) = Stamp::entry(self.now_ms, is_taken, make);
        Some(record.to_json())
    }
}

fn subject<'a>(
    file: &'a SessionFile,
    loaded: &'a Loaded,
    session: &'a Session,
    branch: Branch<'a>,
    reason: Reason,
) -> Subject<'a> {
    Subject {
        file,
        loaded,
        bytes: Cow::Borrowed(&loaded.bytes),
        session,
        branch,
        before: Vec::new(),
        trigger: reason.name(),
        pruned: None,
        will_retry: Some(false),
    }
}

/// What an event says of an entry.
fn result_of(entry: &CompactionEntry) -> serde_json::Value {
    let mut result = serde_json::Map::new();
    for name in ["summary", "shortSummary", "firstKeptEntryId", "tokensBefore", "details"] {
        if let Some(value) = entry.value.get(name) {
            // What is printed as JavaScript prints it is JSON, unless it holds half of a surrogate pair.
            let value =
                serde_json::from_str(&value.to_json()).unwrap_or_else(|_| value.as_str().as_deref().into());
            result.insert(name.to_owned(), value);
        }
    }
    result.into()
}

fn below(tokens: u64, threshold: u64) -> Outcome<Maintenance> {
    skip("below_threshold", format!("not due: {tokens} tokens of {threshold}"))
}

fn words(rest: Rest) -> &'static str {
    match rest {
        Rest::Disabled => "automatic compaction is turned off (compaction.enabled)",
        Rest::Aborted => "the user stopped the last answer",
        Rest::Failed => "the last answer failed, and not because the context was too long",
    }
}

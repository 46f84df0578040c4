//! The compaction of one session: read, decide, summarise, check, write.

use std::borrow::Cow;

use compaction_core::compaction_entry::{self, CompactionEntry, Content, FinishError, finish};
use compaction_core::preparation::{Preparation, prepare};
use compaction_core::settings::CompactionSettings;
use pruning::settings::PruneSettings;
use session_model::branch::Branch;
use session_model::error::RecordError;
use session_model::prompts::Prompts;
use session_model::sequence::Item;
use session_model::session::Session;
use session_model::value::Object;

use super::CompactArgs;
use super::before::{self, Before, Known};
use super::facts::{Compaction, ExplainedEntry, Explanation, Maintenance, PrunedFacts};
use super::made::{Made, Wanted};
use crate::app::App;
use crate::batch::Worker;
use crate::events::Events;
use crate::exit::CommandError;
use crate::figures::{count, grouped};
use crate::hooks::{Event, Hooks};
use crate::report::{Outcome, Skipped};
use crate::session_file::{Loaded, ReadOptions, SessionFile};
use crate::settings::Settings;
use crate::summaries::Source;
use crate::write::{self, Change};
use crate::written::WriteFacts;
use crate::{leaf, model_window};

/// What all sessions of a run have in common.
pub(super) struct Work<'a> {
    pub(super) app: &'a App,
    pub(super) args: &'a CompactArgs,
    pub(super) compaction: CompactionSettings,
    pub(super) prune: PruneSettings,
    pub(super) settings: &'a Settings,
    pub(super) source: &'a Source,
    pub(super) prompts: &'a Prompts,
    pub(super) read: ReadOptions,
    pub(super) now_ms: i64,
    pub(super) events: &'a Events<'a>,
}

/// A session as it is compacted: as the file has it, or with what pruning or a context edit has changed.
pub(super) struct Subject<'a> {
    pub(super) file: &'a SessionFile,
    pub(super) loaded: &'a Loaded,
    /// The bytes that `session` was read from; owned if they are no longer those of the file.
    pub(super) bytes: Cow<'a, [u8]>,
    pub(super) session: &'a Session,
    pub(super) branch: Branch<'a>,
    /// Records that are written before the compaction.
    pub(super) before: Vec<String>,
    pub(super) trigger: &'static str,
    pub(super) pruned: Option<PrunedFacts>,
    pub(super) will_retry: Option<bool>,
}

/// For `map_err`: a record that cannot be read again.
pub(super) fn at(file: &SessionFile) -> impl Fn(RecordError) -> CommandError + '_ {
    |error| CommandError::from((&*file.path, error))
}

impl Work<'_> {
    /// Compacts one session, again if an agent has written to it meanwhile.
    pub(super) fn one(
        &self,
        file: &SessionFile,
        worker: &Worker<'_>,
    ) -> Result<Outcome<Maintenance>, CommandError> {
        match self.source {
            Source::Embedded => write::until_unchanged(|| self.attempt(file, worker)),
            // Each time would cost its requests.
            _ => self.attempt(file, worker),
        }
    }

    fn attempt(&self, file: &SessionFile, worker: &Worker<'_>) -> Result<Outcome<Maintenance>, CommandError> {
        if !self.args.write.leaves_input_alone() {
            write::settle(self.app, file, self.now_ms)?;
        }
        let loaded = file.load(self.read, worker)?;
        let branch = leaf::branch(&file.path, &loaded.session, self.args.leaf.as_deref())?;
        if self.args.leaf.is_none()
            && let Some(note) = leaf::elsewhere(&loaded.session, &branch)
        {
            self.app.printer.warn(&format!("{}: {note}", file.path.display()));
        }
        if self.args.auto || self.args.idle {
            return self.automatic(file, &loaded, branch, worker);
        }
        let subject = Subject {
            file,
            loaded: &loaded,
            bytes: Cow::Borrowed(&loaded.bytes),
            session: &loaded.session,
            branch,
            before: Vec::new(),
            trigger: "manual",
            pruned: None,
            will_retry: None,
        };
        Ok(self.compact(&subject, worker)?.0)
    }

    /// Compacts what is given and writes it. The second value is the entry, if one was made.
    pub(super) fn compact(
        &self,
        subject: &Subject<'_>,
        worker: &Worker<'_>,
    ) -> Result<(Outcome<Maintenance>, Option<CompactionEntry>), CommandError> {
        let file = subject.file;
        let sequence = subject.branch.effective();
        let preparation = match prepare(&sequence, &self.compaction) {
            Ok(preparation) => preparation,
            Err(reason) => return Ok((skip(reason.name(), reason.to_string()), None)),
        };
        let records: &[u8] = &subject.bytes;
        let previous = compaction_entry::previous(&sequence, records).map_err(at(file))?;
        let hooks = Hooks { settings: self.settings, file: &file.path, cancel: worker.cancel };
        let instructions = self.args.instructions.as_deref();
        let known = Known { preparation: &preparation, previous: previous.as_ref(), instructions, records };
        if self.args.write.dry_run {
            return self.dry_run(subject, &known);
        }
        let events = self.events.of(&file.path);
        let (content, made) = match before::ask(&hooks, file, &known)? {
            Before::Cancelled => {
                return Ok((skip("cancelled_by_hook", "a hook cancelled it"), None));
            }
            Before::Given(given) => {
                let made = Made { summarizer: "a hook".to_owned(), ..Made::default() };
                (Content::Given(given), made)
            }
            Before::Made { options, preserve_data } => {
                let wanted =
                    Wanted { preparation: &preparation, previous: previous.as_ref(), options: &options };
                let mut made = self.make(file, records, &wanted, worker, &events)?;
                let summary = std::mem::take(&mut made.summary);
                (Content::Made { summary, short_summary: made.short_summary.clone(), preserve_data }, made)
            }
        };
        if worker.is_cancelled() {
            return Err(CommandError::interrupted());
        }
        let entry = match finish(&preparation, previous.as_ref(), &content, self.prompts, self.now_ms) {
            Ok(entry) => entry,
            Err(FinishError::NoGain { before, after }) if made.summarizer == "embedded" => {
                let message = format!("the context would not shrink ({before} tokens before, {after} after)");
                return Ok((skip("no_gain", message), None));
            }
            Err(error) => {
                let hint = match &error {
                    FinishError::NotOnBranch { .. } => "a hook named it; correct the hook",
                    FinishError::NewFaults { .. } => "nothing was written; sesstool context shows the faults",
                    _ => "nothing was written; try another model, or --summarizer embedded",
                };
                return Err(CommandError::in_file(&file.path, error).hint(hint));
            }
        };
        let compaction = self.write(subject, &preparation, &content, made, &entry, &hooks)?;
        Ok((Outcome::Done(Maintenance::Compacted(Box::new(compaction))), Some(entry)))
    }

    fn dry_run(
        &self,
        subject: &Subject<'_>,
        known: &Known<'_, [u8]>,
    ) -> Result<(Outcome<Maintenance>, Option<CompactionEntry>), CommandError> {
        let options = summarizer::request::RequestOptions {
            instructions: known.instructions.map(str::to_owned),
            ..summarizer::request::RequestOptions::default()
        };
        let wanted = Wanted { preparation: known.preparation, previous: known.previous, options: &options };
        let made = self.planned(subject.file, known.records, &wanted)?;
        let mut facts = self.facts(subject, known.preparation, made);
        facts.dry_run = true;
        if !self.settings.hooks(Event::BeforeCompact.name()).is_empty() {
            facts.written.warnings.push("hooks were not run: they may change what is done".to_owned());
        }
        Ok((Outcome::Done(Maintenance::Compacted(Box::new(facts))), None))
    }

    fn write(
        &self,
        subject: &Subject<'_>,
        preparation: &Preparation<'_>,
        content: &Content,
        made: Made,
        entry: &CompactionEntry,
        hooks: &Hooks<'_>,
    ) -> Result<Compaction, CommandError> {
        let continuation = self.continuation(subject, entry);
        let mut records: Vec<&str> = subject.before.iter().map(String::as_str).collect();
        records.push(&entry.record);
        records.extend(continuation.as_deref());
        let written = self.put(subject, &records)?;
        let mut facts = self.facts(subject, preparation, made);
        facts.entry_id = Some(entry.stamp.id.clone());
        facts.estimate_before = entry.estimate_before;
        facts.estimate_after = Some(entry.estimate_after);
        let summary = entry.value.text("summary").unwrap_or_default();
        facts.summary_tokens = Some(self.read.tokenizer.count(&summary));
        if let Content::Given(given) = content {
            facts.first_kept_entry_id.clone_from(&given.first_kept_entry_id);
            facts.short_summary.clone_from(&given.short_summary);
        }
        facts.written.take(written, subject.file);
        let mut told = Object::new();
        told.set("compactionEntry", entry.value.clone());
        told.set("fromExtension", matches!(content, Content::Given(_)));
        facts.written.warnings.extend(hooks.tell(Event::Compact, told));
        Ok(facts)
    }

    /// Writes the records behind the session, in the way that the session's state asks for.
    pub(super) fn put(
        &self,
        subject: &Subject<'_>,
        records: &[&str],
    ) -> Result<write::WriteReport, CommandError> {
        let change = Change { command: "compact", time_ms: self.now_ms, records };
        match &subject.bytes {
            Cow::Borrowed(_) => {
                write::add_records(subject.file, subject.loaded, &subject.branch, change, &self.args.write)
            }
            Cow::Owned(bytes) => write::put(
                subject.file,
                subject.loaded,
                |out| {
                    out.write_all(bytes)?;
                    if !bytes.ends_with(b"\n") {
                        out.write_all(b"\n")?;
                    }
                    records.iter().try_for_each(|record| writeln!(out, "{record}"))
                },
                change,
                &self.args.write,
            ),
        }
    }

    fn facts(&self, subject: &Subject<'_>, preparation: &Preparation<'_>, made: Made) -> Compaction {
        let sequence = &preparation.sequence;
        let files = preparation.file_ops.lists();
        let mut warnings = made.warnings;
        warnings.extend(self.oversized(preparation));
        let image_bytes = |item: &Item| sequence.message(item).map_or(0, |message| message.image_bytes);
        Compaction {
            trigger: subject.trigger,
            first_kept_entry_id: sequence.session.id(preparation.first_kept).to_owned(),
            tokens_before: preparation.tokens_before,
            is_measured: preparation.measured.is_some(),
            estimate_before: compaction_core::usage::estimate(sequence),
            short_summary: made.short_summary,
            history_messages: preparation.history.len(),
            turn_prefix_messages: preparation.turn_prefix.len(),
            kept_messages: preparation.recent.len(),
            kept_tokens: preparation.recent_tokens(),
            kept_bytes: preparation.recent.iter().map(|item| sequence.entry(item).span.len).sum(),
            kept_image_bytes: preparation.recent.iter().map(image_bytes).sum(),
            is_split_turn: preparation.is_split_turn,
            files_read: files.read.len(),
            files_modified: files.modified.len(),
            summarizer: made.summarizer,
            requests: made.requests,
            price: made.price,
            pruned: subject.pruned,
            will_retry: subject.will_retry,
            continue_prompt: self.continue_prompt(subject),
            written: WriteFacts { warnings, ..WriteFacts::default() },
            explanation: self.args.explain.then(|| explain(preparation)),
            name: crate::report::named(&subject.file.path),
            ..Compaction::default()
        }
    }

    /// A kept tail that alone is larger than the model's window (spec 3.4).
    fn oversized(&self, preparation: &Preparation<'_>) -> Option<String> {
        let window = model_window::window(self.settings, &preparation.sequence)?;
        let kept = preparation.recent_tokens();
        let largest = preparation.largest_recent().filter(|_| kept > window)?;
        Some(format!(
            "the kept messages have {}, the window {}; the largest is entry {} with {}",
            count(kept, "token"),
            grouped(window),
            preparation.sequence.session.id(largest.entry),
            grouped(largest.estimate)
        ))
    }
}

fn explain(preparation: &Preparation<'_>) -> Explanation {
    let sequence = &preparation.sequence;
    let entries = |items: &[Item]| {
        items
            .iter()
            .map(|item| ExplainedEntry {
                id: sequence.session.id(item.entry).to_owned(),
                role: sequence.role(item).map_or("", |role| role.wire()),
                tokens: item.estimate,
            })
            .collect()
    };
    Explanation {
        keep_budget: preparation.keep_budget,
        history: entries(&preparation.history),
        turn_prefix: entries(&preparation.turn_prefix),
        kept: entries(&preparation.recent),
    }
}

/// An outcome without facts.
pub(super) fn skip(reason: &'static str, message: impl Into<String>) -> Outcome<Maintenance> {
    Outcome::Skipped(Skipped { reason, message: message.into(), facts: None })
}

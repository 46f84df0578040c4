//! The summaries of one compaction, from whatever source the settings name (spec 5.3).

use compaction_core::compaction_entry::Previous;
use compaction_core::file_ops::without_file_blocks;
use compaction_core::preparation::Preparation;
use session_model::error::RecordError;
use session_model::session::Records;
use summarizer::embedded::{self, EmbeddedInput};
use summarizer::material::{Material, Messages, Stored};
use summarizer::plan::{Job, ModelLimits, Plan, clip, merge};
use summarizer::request::{Kind, RequestOptions};
use summarizer::summarize::{Asking, RequestReport, Summaries, summarize};

use super::facts::RequestFacts;
use super::one::{Work, at};
use crate::batch::Worker;
use crate::events::FileEvents;
use crate::exit::{CommandError, ErrorKind};
use crate::fold_estimate;
use crate::session_file::SessionFile;
use crate::summaries::{Asked, Source};

/// Summaries, and how they came about.
#[derive(Debug, Default)]
pub(super) struct Made {
    /// The summary without file blocks.
    pub(super) summary: String,
    /// A few sentences.
    pub(super) short_summary: Option<String>,
    /// Who made it.
    pub(super) summarizer: String,
    /// Requests that were answered.
    pub(super) requests: Vec<RequestFacts>,
    /// US dollars for them.
    pub(super) price: Option<f64>,
    /// What the user should know.
    pub(super) warnings: Vec<String>,
}

/// What a compaction asks for.
pub(super) struct Wanted<'a> {
    pub(super) preparation: &'a Preparation<'a>,
    pub(super) previous: Option<&'a Previous>,
    pub(super) options: &'a RequestOptions,
}

impl Work<'_> {
    /// Makes the summaries.
    pub(super) fn make<R: Records + ?Sized>(
        &self,
        file: &SessionFile,
        records: &R,
        wanted: &Wanted<'_>,
        worker: &Worker<'_>,
        events: &FileEvents<'_>,
    ) -> Result<Made, CommandError> {
        let Source::Asked(asked) = self.source else {
            return self.embedded(records, wanted).map_err(at(file));
        };
        let material = Material::load(wanted.preparation, records, self.prompts).map_err(at(file))?;
        match self.ask(file, asked, wanted, &material, worker, events) {
            Err(error) if asked.falls_back && error.kind != ErrorKind::Interrupted => {
                let mut made = self.embedded(records, wanted).map_err(at(file))?;
                made.warnings.push(format!("the embedded summarizer took over: {}", error.message));
                Ok(made)
            }
            made => made,
        }
    }

    /// What the requests would be: for `--dry-run`.
    pub(super) fn planned<R: Records + ?Sized>(
        &self,
        file: &SessionFile,
        records: &R,
        wanted: &Wanted<'_>,
    ) -> Result<Made, CommandError> {
        let Source::Asked(asked) = self.source else {
            return Ok(Made { summarizer: self.source.name(), ..Made::default() });
        };
        let material = Material::load(wanted.preparation, records, self.prompts).map_err(at(file))?;
        let (job, plan) = self.plan(wanted, &material, asked.limits);
        let requests = fold_estimate::requests(&job, &plan);
        let (prompt, output) = requests
            .iter()
            .fold((0, 0), |(prompt, output), request| (prompt + request.prompt, output + request.output));
        Ok(Made {
            summarizer: self.source.name(),
            requests: requests.into_iter().map(RequestFacts::planned).collect(),
            price: asked.estimated_price(prompt, output),
            ..Made::default()
        })
    }

    fn plan<'a>(
        &'a self,
        wanted: &Wanted<'a>,
        material: &Material<'_>,
        limits: ModelLimits,
    ) -> (Job<'a>, Plan) {
        let job = Job::new(self.prompts, wanted.options, limits, &wanted.preparation.settings);
        let previous = wanted.previous.map(|previous| previous.summary.as_str());
        let plan = job.plan(material, wanted.preparation.is_split_turn, previous);
        (job, plan)
    }

    fn ask(
        &self,
        file: &SessionFile,
        asked: &Asked,
        wanted: &Wanted<'_>,
        material: &Material<'_>,
        worker: &Worker<'_>,
        events: &FileEvents<'_>,
    ) -> Result<Made, CommandError> {
        let (job, plan) = self.plan(wanted, material, asked.limits);
        let candidates = asked.candidates();
        let progress = |progress: summarizer::provider::Progress<'_>| {
            events.progress(progress);
            crate::progress_words::tell(self.app, worker, &file.path, progress);
        };
        let asking = Asking { candidates: &candidates, cancel: worker.cancel, progress: &progress };
        let summaries =
            summarize(&job, &plan, asking).map_err(|error| CommandError::from((&*file.path, error)))?;
        let mut made = from_summaries(asked, summaries);
        if self.args.facts > 0 {
            let all: [&dyn Messages; 2] = [&material.history, &material.turn_prefix];
            let index = embedded::facts_index(&all, &material.recent, self.args.facts, &made.summary)
                .map_err(at(file))?;
            if !index.is_empty() {
                made.summary = format!("{}\n\n{index}", made.summary.trim_end());
            }
        }
        Ok(made)
    }

    fn embedded<R: Records + ?Sized>(&self, records: &R, wanted: &Wanted<'_>) -> Result<Made, RecordError> {
        let preparation = wanted.preparation;
        let stored = |items| Stored::new(&preparation.sequence, items, records, self.prompts);
        let before = stored(&preparation.history);
        let turn_prefix = stored(&preparation.turn_prefix);
        let kept = stored(&preparation.recent);
        let settings = &preparation.settings;
        let aim = self.settings.summary_tokens();
        let instructions = wanted.options.instructions.as_deref();
        let previous = wanted.previous.map(|previous| without_file_blocks(&previous.summary));
        let part = |kind, messages: &dyn Messages, previous, limit| {
            embedded::summarize(&EmbeddedInput {
                kind,
                messages,
                kept: &kept,
                previous_summary: previous,
                instructions,
                limit_tokens: limit,
            })
        };
        let is_split = preparation.is_split_turn;
        let history = if is_split && before.is_empty()? {
            let kept = previous.as_deref().filter(|summary| !summary.is_empty());
            clip(kept.unwrap_or(summarizer::plan::NO_HISTORY), settings.history_limit()).0
        } else {
            let limit = aim.min(settings.history_limit());
            part(embedded::Kind::History, &before, previous.as_deref(), limit)?
        };
        let limit = (aim / 2).min(settings.turn_prefix_limit());
        let prefix =
            is_split.then(|| part(embedded::Kind::TurnPrefix, &turn_prefix, None, limit)).transpose()?;
        let summary = merge(&history, prefix.as_deref());
        let all: [&dyn Messages; 2] = [&before, &turn_prefix];
        let short = embedded::short_summary(&all, &kept, settings.short_limit())?;
        Ok(Made {
            summary,
            short_summary: Some(short).filter(|short| !short.is_empty()),
            summarizer: "embedded".to_owned(),
            ..Made::default()
        })
    }
}

fn from_summaries(asked: &Asked, summaries: Summaries) -> Made {
    let prices: Option<Vec<f64>> = summaries.requests.iter().map(|request| asked.price(request)).collect();
    let mut models: Vec<&str> = summaries.requests.iter().map(|request| request.model.as_str()).collect();
    models.dedup();
    let cut = summaries.cut.iter().map(|kind| match kind {
        Kind::History => "the summary was longer than its limit and was cut".to_owned(),
        Kind::TurnPrefix => {
            "the summary of the turn's first part was longer than its limit and was cut".to_owned()
        }
        Kind::Short => "the short summary was longer than its limit and was cut".to_owned(),
        Kind::Branch => "the branch summary was longer than its limit and was cut".to_owned(),
    });
    Made {
        summarizer: models.join(", "),
        price: prices.map(|prices| prices.iter().sum()),
        requests: summaries.requests.iter().map(request_facts).collect(),
        warnings: cut.collect(),
        summary: summaries.summary,
        short_summary: summaries.short_summary,
    }
}

/// A request as it is reported.
pub(crate) fn request_facts(request: &RequestReport) -> RequestFacts {
    RequestFacts {
        kind: request.kind.name(),
        model: Some(request.model.clone()),
        estimated_prompt_tokens: request.estimated_prompt,
        prompt_tokens: request.usage.prompt(),
        output_tokens: request.usage.output,
        failures: request.failures.iter().map(ToString::to_string).collect(),
    }
}

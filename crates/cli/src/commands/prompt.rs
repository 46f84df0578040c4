//! `sesstool prompt`: the exact requests that a compaction would make; nothing is sent.

use std::io::{self, Write};

use clap::Args;
use compaction_core::compaction_entry;
use compaction_core::preparation::{Skip, prepare};
use schemars::JsonSchema;
use serde::Serialize;
use summarizer::material::Material;
use summarizer::plan::{Job, ModelLimits};
use summarizer::request::{Kind, RequestOptions};

use crate::app::App;
use crate::args::{PathArgs, SkipArgs};
use crate::discover::{Stdin, Without, discover};
use crate::exit::{CommandError, Status};
use crate::figures::{count, grouped};
use crate::printer::Paint;
use crate::report::{Facts, Outcome, Reporter, Skipped};
use crate::session_file::SessionFile;
use crate::settings::{CompactionFlags, SummarizerFlags};
use crate::summaries::Source;
use crate::{batch, leaf, prompts};

/// Print the exact requests that a compaction would send to a model
///
/// Nothing is sent. Where a request needs the answer to another one, a placeholder in angle brackets stands for it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sesstool prompt session.jsonl | less
  sesstool prompt --json session.jsonl | jq -r '.requests[0].prompt'
  sesstool prompt --model openai/gpt-4o session.jsonl      divided as its window asks for")]
pub struct PromptArgs {
    #[command(flatten)]
    paths: PathArgs,
    /// What the summary should attend to
    #[arg(short, long, value_name = "TEXT")]
    instructions: Option<String>,
    /// The branch, by its last entry [default: the last entry of the file]
    #[arg(long, value_name = "ID")]
    leaf: Option<String>,
    #[command(flatten)]
    compaction: CompactionFlags,
    #[command(flatten)]
    summarizer: SummarizerFlags,
    #[command(flatten)]
    skip: SkipArgs,
}

/// The requests of a compaction.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PromptFacts {
    /// In the order in which they would be made.
    pub requests: Vec<PromptRequest>,
}

/// One request.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PromptRequest {
    /// What it is for: `history`, `turn_prefix`, `short`.
    pub kind: &'static str,
    /// The system prompt.
    pub system_prompt: String,
    /// The only user message.
    pub prompt: String,
    /// Most tokens of the answer.
    pub max_output_tokens: u64,
    /// Estimated tokens of the request.
    pub estimated_tokens: u64,
}

impl Facts for PromptFacts {
    fn write_text(&self, out: &mut dyn Write, paint: Paint) -> io::Result<()> {
        for (n, request) in self.requests.iter().enumerate() {
            if n > 0 {
                writeln!(out)?;
            }
            let head = format!(
                "request {} of {}: {}, about {}, answer at most {}",
                n + 1,
                self.requests.len(),
                request.kind,
                count(request.estimated_tokens, "token"),
                grouped(request.max_output_tokens)
            );
            writeln!(out, "{}", paint.bold(head))?;
            writeln!(out, "{}", paint.accent("system:"))?;
            writeln!(out, "{}", request.system_prompt)?;
            writeln!(out, "{}", paint.accent("user:"))?;
            writeln!(out, "{}", request.prompt)?;
        }
        Ok(())
    }
}

/// Runs the command.
///
/// # Errors
/// Wrong usage or settings, or standard output cannot be written.
pub fn run(app: &App, args: &PromptArgs) -> Result<Status, CommandError> {
    let settings = app.settings(&[&args.compaction, &args.summarizer])?;
    let prompts = prompts::load(settings.prompts_dir(&app.env).as_deref())?;
    // A missing key matters only to those who send.
    let limits = match Source::open(app, &settings) {
        Ok(Source::Asked(asked)) => asked.limits,
        _ => ModelLimits { window: settings.context_window(), max_output: None },
    };
    let read = app.read_options(&settings);
    let options = RequestOptions { instructions: args.instructions.clone(), ..RequestOptions::default() };
    let compaction = settings.compaction();
    let items = discover(app, &args.paths, Stdin::Allowed, Without::Newest)?;
    let one = |file: &SessionFile, worker: &batch::Worker<'_>| {
        let loaded = file.load(read, worker)?;
        let at = |error| CommandError::from((&*file.path, error));
        let sequence = leaf::branch(&file.path, &loaded.session, args.leaf.as_deref())?.effective();
        let preparation = match prepare(&sequence, &compaction) {
            Ok(preparation) => preparation,
            Err(skip) => return Ok(skipped(skip)),
        };
        let records: &[u8] = &loaded.bytes;
        let previous = compaction_entry::previous(&sequence, records).map_err(at)?;
        let material = Material::load(&preparation, records, &prompts).map_err(at)?;
        let job = Job::new(&prompts, &options, limits, &compaction);
        let previous = previous.as_ref().map(|previous| previous.summary.as_str());
        let plan = job.plan(&material, preparation.is_split_turn, previous);
        let requests = job.requests(&plan, &placeholder).into_iter().map(|(kind, request)| PromptRequest {
            kind: kind.name(),
            estimated_tokens: read.tokenizer.count(&request.system) + read.tokenizer.count(&request.prompt),
            system_prompt: request.system,
            prompt: request.prompt,
            max_output_tokens: request.max_output_tokens,
        });
        Ok(Outcome::Done(PromptFacts { requests: requests.collect() }))
    };
    let mut reporter = Reporter::new(app, true);
    batch::map_within(2, app, &items, one, |item, result| reporter.take(item, result))?;
    Ok(reporter.status(args.skip.fail_on_skip))
}

fn placeholder(kind: Kind) -> String {
    match kind {
        Kind::History => "<the summary of the history so far>",
        Kind::TurnPrefix => "<the summary of the turn's first part>",
        Kind::Short => "<the short summary>",
        Kind::Branch => "<the summary of the branch so far>",
    }
    .to_owned()
}

fn skipped(skip: Skip) -> Outcome<PromptFacts> {
    Outcome::Skipped(Skipped { reason: skip.name(), message: skip.to_string(), facts: None })
}

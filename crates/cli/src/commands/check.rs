//! `sesstool check`: is maintenance due?

use std::io::{self, Write};

use clap::Args;
use compaction_core::maintenance::{self, Step};
use compaction_core::settings::CompactionSettings;
use compaction_core::trigger::threshold;
use compaction_core::usage::{context_tokens, measured};
use pruning::settings::PruneSettings;
use schemars::JsonSchema;
use serde::Serialize;
use session_model::text::shown;

use crate::app::App;
use crate::args::PathArgs;
use crate::batch::Worker;
use crate::discover::{Stdin, Without, discover};
use crate::exit::{CommandError, Status};
use crate::figures::grouped;
use crate::printer::Paint;
use crate::report::{Facts, Outcome, Reporter};
use crate::session_file::{ReadOptions, SessionFile};
use crate::settings::{CompactionFlags, PruneFlags, Settings};
use crate::{batch, leaf, model_window};

/// Say which sessions are due for maintenance
///
/// Exit status 0: some are due; 1: none is; 2: something went wrong.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sesstool check                          all sessions of the agents
  sesstool check --idle -q && sesstool compact --idle ~/.pi/agent/sessions")]
pub struct CheckArgs {
    #[command(flatten)]
    paths: PathArgs,
    /// Look at the idle threshold instead of the model's window
    #[arg(long)]
    idle: bool,
    /// The branch to look at, by its last entry [default: the last entry of the file]
    #[arg(long, value_name = "ID")]
    leaf: Option<String>,
    #[command(flatten)]
    compaction: CompactionFlags,
    #[command(flatten)]
    prune: PruneFlags,
}

/// What is due.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Check {
    /// Whether anything is.
    pub due: bool,
    /// `overflow`, `threshold`, `idle` or `prune` if it is; else why not: `below_threshold`, `unknown_window`, `disabled`,
    /// `aborted`, `failed`.
    pub reason: &'static str,
    /// Tokens of the context.
    pub context_tokens: u64,
    /// Whether that rests on what a provider counted.
    pub is_measured: bool,
    /// Above this many tokens a compaction is due.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threshold: Option<u64>,
    /// The model's window in tokens, where it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<u64>,
    /// The model that the session was last used with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Tokens that pruning would save, if that is enough to do it.
    pub prunable_tokens: u64,
    /// The session as it was named, for the text.
    #[serde(skip)]
    pub name: String,
}

impl Facts for Check {
    fn write_text(&self, out: &mut dyn Write, paint: Paint) -> io::Result<()> {
        let verdict = if self.due { paint.notice("due").to_string() } else { paint.dim("ok ").to_string() };
        let about = if self.is_measured { " " } else { "~" };
        let limit = self.threshold.map_or_else(|| "?".to_owned(), grouped);
        let prune = match self.prunable_tokens {
            0 => String::new(),
            tokens => format!(", pruning saves {}", grouped(tokens)),
        };
        writeln!(
            out,
            "{verdict} {about}{:>9} of {limit:>9}  {}  ({}{prune})",
            grouped(self.context_tokens),
            shown(&self.name),
            self.reason
        )
    }
}

/// Runs the command.
///
/// # Errors
/// Wrong usage or settings, or standard output cannot be written.
pub fn run(app: &App, args: &CheckArgs) -> Result<Status, CommandError> {
    let settings = app.settings(&[&args.compaction, &args.prune])?;
    let items = discover(app, &args.paths, Stdin::Allowed, Without::All)?;
    let work = Work {
        args,
        compaction: settings.compaction(),
        prune: settings.prune(),
        read: app.read_options(&settings),
        settings: &settings,
    };
    let mut reporter = Reporter::new(app, false);
    let mut is_any_due = false;
    batch::map(
        app,
        &items,
        |file, worker| work.one(file, worker).map(Outcome::Done),
        |item, result| {
            is_any_due |= matches!(&result, Ok(Outcome::Done(check)) if check.due);
            reporter.take(item, result)
        },
    )?;
    Ok(match reporter.status(false) {
        Status::Done if is_any_due => Status::Done,
        Status::Done => Status::SomeFailed,
        _ => Status::Usage,
    })
}

struct Work<'a> {
    args: &'a CheckArgs,
    compaction: CompactionSettings,
    prune: PruneSettings,
    read: ReadOptions,
    settings: &'a Settings,
}

impl Work<'_> {
    fn one(&self, file: &SessionFile, worker: &Worker<'_>) -> Result<Check, CommandError> {
        let (session, _, _) = file.index(self.read, worker)?;
        let sequence = leaf::branch(&file.path, &session, self.args.leaf.as_deref())?.effective();
        let window = model_window::window(self.settings, &sequence);
        let tokens = context_tokens(&sequence);
        let plan = pruning::plan(&sequence, &self.prune);
        let saved = if plan.is_worth_it { plan.savings } else { 0 };
        let is_above = |threshold: u64| tokens.saturating_sub(saved) > threshold;
        let limit = match self.args.idle {
            true => Some(self.compaction.idle_threshold_tokens),
            false => window.map(|window| threshold(&self.compaction, window)),
        };
        let (due, reason) = if self.args.idle {
            let due = tokens > self.compaction.idle_threshold_tokens;
            (due, if due { "idle" } else { "below_threshold" })
        } else {
            match maintenance::first_step(&sequence, &self.compaction, window) {
                Step::Nothing(rest) => (false, rest.name()),
                Step::Recover(_) => (true, "overflow"),
                Step::PruneAndCheck if limit.is_some_and(is_above) => (true, "threshold"),
                Step::PruneAndCheck if saved > 0 => (true, "prune"),
                Step::PruneAndCheck if limit.is_none() => (false, "unknown_window"),
                Step::PruneAndCheck => (false, "below_threshold"),
            }
        };
        Ok(Check {
            due,
            reason,
            context_tokens: tokens,
            is_measured: measured(&sequence).is_some(),
            threshold: limit,
            window,
            model: model_window::current_model(&sequence).map(|(provider, id)| format!("{provider}/{id}")),
            prunable_tokens: saved,
            name: crate::report::named(&file.path),
        })
    }
}

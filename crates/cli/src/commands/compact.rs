//! `sesstool compact`: a summary takes the place of the older part of the context.

use clap::Args;

use crate::app::App;
use crate::args::{PathArgs, SkipArgs};
use crate::discover::{Stdin, Without, discover};
use crate::events::{EventArgs, Events};
use crate::exit::{CommandError, Status};
use crate::report::{Outcome, Reporter};
use crate::settings::{CompactionFlags, HookFlags, PruneFlags, SummarizerFlags};
use crate::summaries::Source;
use crate::write::WriteArgs;
use crate::{batch, prompts, stamp};

mod auto;
mod before;
mod facts;
mod made;
mod one;

pub(crate) use facts::WIDTH;
pub use facts::{Maintenance, RequestFacts};
pub(crate) use made::request_facts;

/// Append a compaction: a summary takes the place of the older part of the context
///
/// Without a model the summary is made from the messages themselves, on this machine. Nothing is removed from the file:
/// the compaction is appended, and sesstool undo takes it back.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sesstool compact session.jsonl
  sesstool compact -n --explain session.jsonl        what would be summarised, and what kept
  sesstool compact --model anthropic/claude-sonnet-4-5 --instructions 'the parser' session.jsonl
  sesstool compact --auto ~/.omp/agent/sessions      those that are due, as an agent does after a turn")]
pub struct CompactArgs {
    #[command(flatten)]
    pub(crate) paths: PathArgs,
    /// Compact only where it is due, as a live agent does after a turn: recover from an overflow, else prune, then look
    #[arg(long)]
    pub(crate) auto: bool,
    /// Compact what is larger than the idle threshold, due or not
    #[arg(long, conflicts_with = "auto")]
    pub(crate) idle: bool,
    /// With --auto: also store the message that asks the agent to go on
    #[arg(long, requires = "auto")]
    pub(crate) append_continue: bool,
    /// What the summary should attend to
    #[arg(short, long, value_name = "TEXT")]
    pub(crate) instructions: Option<String>,
    /// The branch to compact, by its last entry [default: the last entry of the file]
    #[arg(long, value_name = "ID")]
    pub(crate) leaf: Option<String>,
    /// List the entries that are summarised and kept
    #[arg(long)]
    pub(crate) explain: bool,
    /// Append an index of facts of this many tokens to a model's summary
    #[arg(long, value_name = "TOKENS", default_value_t = 0, hide_default_value = true)]
    pub(crate) facts: u64,
    #[command(flatten)]
    pub(crate) compaction: CompactionFlags,
    #[command(flatten)]
    pub(crate) prune: PruneFlags,
    #[command(flatten)]
    pub(crate) summarizer: SummarizerFlags,
    #[command(flatten)]
    pub(crate) hooks: HookFlags,
    #[command(flatten)]
    pub(crate) write: WriteArgs,
    #[command(flatten)]
    pub(crate) events: EventArgs,
    #[command(flatten)]
    pub(crate) skip: SkipArgs,
}

/// Runs the command.
///
/// # Errors
/// Wrong usage or settings, or standard output cannot be written.
pub fn run(app: &App, args: &CompactArgs) -> Result<Status, CommandError> {
    let settings = app.settings(&[&args.compaction, &args.prune, &args.summarizer, &args.hooks])?;
    let source = Source::open(app, &settings)?;
    let prompts = prompts::load(settings.prompts_dir(&app.env).as_deref())?;
    let stdin =
        if args.write.output.is_some() || args.write.dry_run { Stdin::Allowed } else { Stdin::Refused };
    let items = discover(app, &args.paths, stdin, Without::Nothing)?;
    args.write.check(items.len())?;
    let events = Events::open(app, &args.events)?;
    let work = one::Work {
        app,
        args,
        compaction: settings.compaction(),
        prune: settings.prune(),
        settings: &settings,
        source: &source,
        prompts: &prompts,
        read: app.read_options(&settings),
        now_ms: stamp::now_ms(&app.env)?,
        events: &events,
    };
    let mut reporter = Reporter::new(app, false);
    let mut has_done = false;
    let limits = match source {
        Source::Embedded => batch::Limits::waiting(app, 0),
        Source::Asked(_) => batch::Limits::waiting(app, settings.concurrency()),
    };
    batch::map_with(
        limits,
        app,
        &items,
        |file, worker| work.one(file, worker),
        |item, result| {
            has_done |= matches!(result, Ok(Outcome::Done(_)));
            reporter.take(item, result)
        },
    )?;
    if has_done
        && !args.write.dry_run
        && matches!(source, Source::Embedded)
        && settings.get("models.summarizer").value != "embedded"
    {
        app.printer.say("the embedded summarizer was used; for a model's summary give --model NAME/ID (see sesstool models)");
    }
    Ok(reporter.status(args.skip.fail_on_skip))
}

//! `sesstool branch`: leaves a branch, with a summary of what was done on it (spec 6.1, 6.2).

use std::path::PathBuf;

use clap::Args;
use compaction_core::branch_summary::navigate;
use session_model::session::Session;

use crate::app::App;
use crate::args::{PathArgs, SkipArgs};
use crate::discover::{Stdin, Without, discover};
use crate::exit::{CommandError, Status};
use crate::report::{Outcome, Reporter, Skipped};
use crate::session_file::SessionFile;
use crate::settings::{BranchFlags, HookFlags, SummarizerFlags};
use crate::summaries::Source;
use crate::write::{self, WriteArgs};
use crate::{batch, leaf, prompts, stamp};

mod facts;
mod leave;

pub use facts::Branching;

/// Leave a branch and go on from another entry
///
/// With --summarize, what is left behind is summarised, and the summary hangs at the place that is gone to: the next agent that
/// opens the session goes on from there. Without a summary nothing would move the session there; --label leaves a mark that does.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sesstool inspect --tree session.jsonl                    the entries, to choose one
  sesstool branch --to 1a2b3c4d --summarize session.jsonl
  sesstool branch --to 1a2b3c4d --label 'before the rewrite' session.jsonl")]
pub struct BranchArgs {
    /// The session file
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The entry to go to; a user message is left again, and its text is printed for editing
    #[arg(long, value_name = "ID")]
    to: String,
    /// Summarise what is left behind
    #[arg(short, long)]
    summarize: bool,
    /// What to ask for in place of the usual summary
    #[arg(short, long, value_name = "TEXT")]
    instructions: Option<String>,
    /// Put a label there
    #[arg(long, value_name = "NAME")]
    label: Option<String>,
    /// The branch to leave, by its last entry [default: the last entry of the file]
    #[arg(long, value_name = "ID")]
    leaf: Option<String>,
    #[command(flatten)]
    branch: BranchFlags,
    #[command(flatten)]
    summarizer: SummarizerFlags,
    #[command(flatten)]
    hooks: HookFlags,
    #[command(flatten)]
    write: WriteArgs,
    #[command(flatten)]
    skip: SkipArgs,
}

/// Runs the command.
///
/// # Errors
/// Wrong usage or settings, or standard output cannot be written.
pub fn run(app: &App, args: &BranchArgs) -> Result<Status, CommandError> {
    let settings = app.settings(&[&args.branch, &args.summarizer, &args.hooks])?;
    let wants_summary = args.summarize || settings.branch_summary().enabled;
    let source = if wants_summary { Source::open(app, &settings)? } else { Source::Embedded };
    let prompts = prompts::load(settings.prompts_dir(&app.env).as_deref())?;
    let paths = PathArgs { paths: vec![args.file.clone()], ..PathArgs::default() };
    if args.file.is_dir() {
        return Err(CommandError::usage(format!("{}: is a folder", args.file.display()))
            .hint("branch takes one session file"));
    }
    let stdin =
        if args.write.output.is_some() || args.write.dry_run { Stdin::Allowed } else { Stdin::Refused };
    let items = discover(app, &paths, stdin, Without::Nothing)?;
    args.write.check(items.len())?;
    let work = leave::Work {
        app,
        args,
        settings: &settings,
        source: &source,
        prompts: &prompts,
        wants_summary,
        now_ms: stamp::now_ms(&app.env)?,
    };
    let read = app.read_options(&settings);
    let one = |file: &SessionFile, worker: &batch::Worker<'_>| {
        if !args.write.leaves_input_alone() {
            write::settle(app, file, work.now_ms)?;
        }
        let loaded = file.load(read, worker)?;
        let session: &Session = &loaded.session;
        let target = leaf::entry(&file.path, session, &args.to)?;
        let old_leaf = leaf::branch(&file.path, session, args.leaf.as_deref())?.leaf();
        match navigate(session, old_leaf, target) {
            None => Ok(Outcome::Skipped(Skipped {
                reason: "already_there",
                message: format!("{} is where the session is", session.id(target)),
                facts: None,
            })),
            Some(navigation) => work.leave(file, &loaded, &navigation, worker),
        }
    };
    let mut reporter = Reporter::new(app, false);
    batch::map(app, &items, one, |item, result| reporter.take(item, result))?;
    Ok(reporter.status(args.skip.fail_on_skip))
}

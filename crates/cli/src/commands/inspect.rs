//! `sesstool inspect`: what is in a session. A reading pass only; no content is decoded.

use clap::{Args, ValueEnum};

use crate::app::App;
use crate::args::PathArgs;
use crate::batch;
use crate::discover::{Item, Stdin, Without, discover};
use crate::exit::{CommandError, Status};
use crate::figures;
use crate::leaf;
use crate::report::{Outcome, Reporter, named};
use crate::table::Table;

mod facts;
mod gather;
mod text;
mod tree;

pub use facts::Inspection;

/// Show what is in sessions: entries, tokens, branches, compactions, damage
///
/// One session is shown in depth, several as a table. Without PATH, the newest session of this project.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sesstool inspect                                the newest session of this project
  sesstool inspect session.jsonl --tree           its branches
  sesstool inspect ~/.omp/agent/sessions --sort tokens -r
  sesstool inspect --json session.jsonl | jq .context")]
pub struct InspectArgs {
    /// Which sessions.
    #[command(flatten)]
    pub paths: PathArgs,
    /// Look at the branch that ends at this entry, instead of at the last of the file
    #[arg(long, value_name = "ID")]
    pub leaf: Option<String>,
    /// Print the tree of entries, long chains folded
    #[arg(short, long)]
    pub tree: bool,
    /// Show each of several sessions in depth instead of a table
    #[arg(short, long)]
    pub full: bool,
    /// Sort several sessions
    #[arg(long, value_name = "KEY")]
    pub sort: Option<SortKey>,
    /// Reverse the order: largest or newest first
    #[arg(short, long)]
    pub reverse: bool,
}

/// Values of `--sort`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SortKey {
    /// The path.
    Name,
    /// Bytes of the file.
    Size,
    /// Entries of the file.
    Entries,
    /// Messages of the file.
    Messages,
    /// Tokens of the context.
    Tokens,
    /// Compactions of the file.
    Compactions,
    /// Problems of the file.
    Problems,
    /// Time of the last change.
    Modified,
}

/// Runs the command.
///
/// # Errors
/// There is no session, or standard output cannot be written.
pub fn run(app: &App, args: &InspectArgs) -> Result<Status, CommandError> {
    let settings = app.settings(&[])?;
    let options = app.read_options(&settings);
    let items = discover(app, &args.paths, Stdin::Allowed, Without::Newest)?;
    let in_depth = items.len() == 1 || args.full || args.tree;
    let mut reporter = Reporter::new(app, items.len() > 1);
    let mut results = Vec::new();
    batch::map(
        app,
        &items,
        |file, worker| {
            let (session, problems, _) = file.index(options, worker)?;
            let branch = leaf::branch(&file.path, &session, args.leaf.as_deref())?;
            let mut inspection = Inspection::of(file, &branch, problems, &settings);
            if args.tree {
                inspection.add_tree(&branch, app.globals.json);
            }
            Ok(if app.globals.json || in_depth { inspection } else { inspection.for_table() })
        },
        |item, result| {
            let streams = args.sort.is_none() && !args.reverse && (app.globals.json || in_depth);
            if streams || result.is_err() {
                reporter.take(item, result.map(Outcome::Done))
            } else {
                results.extend(result.ok().map(|inspection| (item, inspection)));
                Ok(())
            }
        },
    )?;
    sort(&mut results, args);
    if app.globals.json || in_depth {
        for (item, inspection) in results {
            reporter.take(item, Ok(Outcome::Done(inspection)))?;
        }
    } else {
        table(app, &mut reporter, &results)?;
    }
    Ok(reporter.status(false))
}

fn sort(results: &mut [(&Item, Inspection)], args: &InspectArgs) {
    match args.sort {
        None => {}
        Some(SortKey::Name) => results.sort_by(|a, b| a.0.path.cmp(&b.0.path)),
        Some(SortKey::Modified) => results.sort_by_key(|(_, it)| it.modified_ms),
        Some(key) => results.sort_by_key(|(_, it)| match key {
            SortKey::Size => it.bytes,
            SortKey::Entries => it.entries,
            SortKey::Messages => it.messages.iter().map(|role| role.number).sum(),
            SortKey::Tokens => it.context.tokens,
            SortKey::Compactions => it.n_compactions(),
            SortKey::Problems => it.problems.len() as u64,
            SortKey::Name | SortKey::Modified => 0,
        }),
    }
    if args.reverse {
        results.reverse();
    }
}

fn table(
    app: &App,
    reporter: &mut Reporter<'_>,
    results: &[(&Item, Inspection)],
) -> Result<(), CommandError> {
    let mut table = Table::new(&[
        "modified",
        ">size",
        ">entries",
        ">messages",
        ">tokens",
        ">compactions",
        ">problems",
        "agent",
        "file",
    ]);
    for (item, it) in results {
        reporter.tally(item, &Ok(Outcome::Done(())));
        table.row([
            it.modified_ms.map_or_else(|| "-".to_owned(), figures::minute),
            figures::bytes(it.bytes),
            figures::grouped(it.entries),
            figures::grouped(it.messages.iter().map(|role| role.number).sum()),
            figures::grouped(it.context.tokens),
            it.n_compactions().to_string(),
            it.problems.len().to_string(),
            it.dialect.to_owned(),
            named(&item.path),
        ]);
    }
    if results.is_empty() {
        return Ok(());
    }
    app.printer.data(|out| table.write(out, app.printer.paint()))
}

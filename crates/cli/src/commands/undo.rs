//! `sesstool undo`: takes back the last change of a session.

use std::io::{self, Write};
use std::path::PathBuf;

use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;
use session_model::text::shown;

use crate::app::App;
use crate::args::PathArgs;
use crate::discover::{Stdin, Without, discover};
use crate::disk::{self, DiskError, Undone};
use crate::exit::{CommandError, Status};
use crate::figures::count;
use crate::printer::Paint;
use crate::report::{Facts, Outcome, Reporter, Skipped};
use crate::{batch, stamp, write};

/// Take back the last change that sesstool made to a session
///
/// Undoes one command each time, newest first. What an agent has written since is kept; where that cannot be done, the
/// file is left as it is and the reason is given.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  sesstool compact session.jsonl && sesstool undo session.jsonl")]
pub struct UndoArgs {
    /// The session file
    #[arg(value_name = "FILE", required = true)]
    pub file: PathBuf,
    /// Go on although another process has the file open for writing
    #[arg(short, long)]
    pub force: bool,
}

/// What was taken back.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Undo {
    /// The subcommand that had written.
    pub command: String,
    /// When it had, ISO 8601.
    pub time: String,
    /// The backup that was restored; absent if an append was cut off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restored: Option<String>,
    /// Bytes that an agent had appended since; they are kept.
    pub kept_bytes: u64,
}

impl Facts for Undo {
    fn write_text(&self, out: &mut dyn Write, paint: Paint) -> io::Result<()> {
        write!(out, "took back {} of {}", paint.bold(shown(&self.command)), shown(&self.time))?;
        if let Some(backup) = &self.restored {
            write!(out, ", from {}", shown(backup))?;
        }
        if self.kept_bytes > 0 {
            write!(out, "; {} written since kept", count(self.kept_bytes, "byte"))?;
        }
        writeln!(out)
    }
}

/// Runs the command.
///
/// # Errors
/// Standard output cannot be written.
pub fn run(app: &App, args: &UndoArgs) -> Result<Status, CommandError> {
    let time = session_model::time::iso(stamp::now_ms(&app.env)?);
    let paths = PathArgs { paths: vec![args.file.clone()], ..PathArgs::default() };
    if args.file.is_dir() {
        return Err(CommandError::in_file(&args.file, "is a folder").hint("undo takes one session file"));
    }
    let items = discover(app, &paths, Stdin::Refused, Without::Nothing)?;
    let mut reporter = Reporter::new(app, false);
    let undo = |path: &std::path::Path| match disk::undo(path, &time, args.force, disk::WATCH) {
        Ok(undone) => Ok(Outcome::Done(undone)),
        Err(DiskError::NothingToUndo { .. }) => Ok(Outcome::Skipped(Skipped {
            reason: "nothing_to_undo",
            message: "nothing to undo".to_owned(),
            facts: None,
        })),
        Err(error) => Err(CommandError::from(error)),
    };
    batch::map(
        app,
        &items,
        |file, _| undo(&file.path),
        |item, result| {
            if let Ok(Outcome::Done(undone)) = &result {
                write::open_warnings(&undone.carried).iter().for_each(|warning| app.printer.warn(warning));
            }
            reporter.take(item, result.map(facts))
        },
    )?;
    Ok(reporter.status(false))
}

fn facts(outcome: Outcome<Undone>) -> Outcome<Undo> {
    match outcome {
        Outcome::Done(undone) => Outcome::Done(Undo {
            command: undone.command,
            time: undone.time,
            restored: undone.restored.map(|path| path.to_string_lossy().into_owned()),
            kept_bytes: undone.kept_bytes + undone.carried.bytes,
        }),
        Outcome::Skipped(skipped) => {
            Outcome::Skipped(Skipped { reason: skipped.reason, message: skipped.message, facts: None })
        }
    }
}

//! `sesstool doctor`: what is wrong with a session, and a repaired copy of it.

use std::path::{Path, PathBuf};

use clap::Args;
use session_model::error::{NotASession, Problem};
use session_model::reader::SessionReader;
use session_model::repair::BYTE_ORDER_MARK;
use session_model::session::Session;

use crate::app::App;
use crate::args::PathArgs;
use crate::batch::{self, Worker};
use crate::discover::{Stdin, Without, discover};
use crate::disk;
use crate::exit::{CommandError, Status};
use crate::leaf;
use crate::report::{Outcome, Reporter};
use crate::session_file::{ReadOptions, SessionFile};

mod facts;
mod words;

pub use facts::Diagnosis;
use facts::{Repair, diagnosis, no_session};

/// Say what is wrong with sessions, and write repaired copies
///
/// Damage of the file (torn, glued and lost records, ids, parents) and what a provider would refuse in the context of the branch that
/// ends at the last entry, or at --leaf. The session itself is never changed.
///
/// Exit status 0: nothing is wrong, or all of it was repaired; 1: something is; 2: wrong usage or nothing could be read.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sesstool doctor session.jsonl
  sesstool doctor -q ~/.pi/agent/sessions          exit status only, and the sessions with problems
  sesstool doctor --repair session.jsonl           writes session.repaired.jsonl; what is no entry, into ….torn")]
pub struct DoctorArgs {
    #[command(flatten)]
    paths: PathArgs,
    /// Write a repaired copy of each session that needs one, beside it as NAME.repaired.jsonl
    #[arg(long)]
    repair: bool,
    /// Write the repaired copy to this file; for one session
    #[arg(short, long, value_name = "FILE", requires = "repair", conflicts_with = "output_dir")]
    output: Option<PathBuf>,
    /// Write repaired copies into this folder, under their names
    #[arg(long, value_name = "DIR", requires = "repair")]
    output_dir: Option<PathBuf>,
    /// Overwrite a copy that is there already
    #[arg(short, long, requires = "repair")]
    force: bool,
    /// The branch whose context is looked at, by its last entry [default: the last entry of the file]
    #[arg(long, value_name = "ID", conflicts_with = "repair")]
    leaf: Option<String>,
}

/// Runs the command.
///
/// # Errors
/// Wrong usage or settings, or standard output cannot be written.
pub fn run(app: &App, args: &DoctorArgs) -> Result<Status, CommandError> {
    let settings = app.settings(&[])?;
    let read = app.read_options(&settings);
    let stdin = if args.repair && args.output.is_none() { Stdin::Refused } else { Stdin::Allowed };
    let without = if args.repair { Without::Nothing } else { Without::All };
    let items = discover(app, &args.paths, stdin, without)?;
    if args.output.is_some() && items.len() > 1 {
        return Err(CommandError::usage("--output is for one session").hint("use --output-dir for several"));
    }
    if let Some(folder) = args.output_dir.as_ref().filter(|folder| !folder.is_dir()) {
        return Err(CommandError::usage(format!("{}: no such folder", folder.display()))
            .hint("make the folder first"));
    }
    let mut reporter = Reporter::new(app, false);
    let mut is_all_well = true;
    batch::map(
        app,
        &items,
        |file, worker| {
            let diagnosis =
                if args.repair { repair(args, file, read)? } else { examine(args, file, read, worker)? };
            Ok(Outcome::Done(diagnosis))
        },
        |item, result| {
            is_all_well &= matches!(&result, Ok(Outcome::Done(diagnosis)) if diagnosis.is_well());
            match &result {
                // The healthy ones of a large folder are of no interest.
                Ok(Outcome::Done(diagnosis))
                    if app.globals.quiet && !app.globals.json && diagnosis.healthy =>
                {
                    reporter.tally(item, &result);
                    Ok(())
                }
                _ => reporter.take(item, result),
            }
        },
    )?;
    Ok(match reporter.status(false) {
        Status::Done if !is_all_well => Status::SomeFailed,
        status => status,
    })
}

/// Looks at a session in chunks: memory is bounded by its largest line and its number of entries.
fn examine(
    args: &DoctorArgs,
    file: &SessionFile,
    options: ReadOptions,
    worker: &Worker<'_>,
) -> Result<Diagnosis, CommandError> {
    let mut reader = SessionReader::new(options.tokenizer);
    let mut start = Vec::with_capacity(BYTE_ORDER_MARK.len());
    file.feed(&mut reader, worker, |chunk| {
        start.extend(chunk.iter().take(BYTE_ORDER_MARK.len() - start.len()));
    })?;
    let mut diagnosis = diagnose(args, file, options, reader.finish())?;
    diagnosis.note_mark(&start);
    Ok(diagnosis)
}

fn diagnose(
    args: &DoctorArgs,
    file: &SessionFile,
    options: ReadOptions,
    read: Result<(Session, Vec<Problem>), NotASession>,
) -> Result<Diagnosis, CommandError> {
    match read {
        Ok((mut session, problems)) => {
            if let Some(dialect) = options.dialect {
                session.dialect = dialect;
            }
            let branch = leaf::branch(&file.path, &session, args.leaf.as_deref())?;
            let elsewhere = if args.leaf.is_none() { leaf::elsewhere(&session, &branch) } else { None };
            Ok(diagnosis(file, &branch, problems, elsewhere))
        }
        Err(error) => Ok(no_session(file, &error)),
    }
}

fn repair(args: &DoctorArgs, file: &SessionFile, options: ReadOptions) -> Result<Diagnosis, CommandError> {
    let bytes = file.bytes()?;
    let mut found = diagnose(args, file, options, read_all(&bytes, options))?;
    found.note_mark(&bytes);
    let repaired = session_model::repair::repair(&bytes).map_err(|error| {
        CommandError::from((&*file.path, error)).hint("there is no entry from which a header could be made")
    })?;
    if repaired.steps.is_empty() {
        return Ok(found);
    }
    let output = output(args, &file.path)?;
    if is_same_file(&output, &file.path) {
        return Err(CommandError::in_file(&output, "this is the session itself")
            .hint("the repaired copy needs a name of its own"));
    }
    let left = diagnose(args, file, options, read_all(&repaired.bytes, options))?;
    let aside = (!repaired.aside.is_empty()).then(|| {
        let mut name = output.clone().into_os_string();
        name.push(".torn");
        PathBuf::from(name)
    });
    // Both names first: a copy without its side file would be half a repair.
    for path in [Some(&output), aside.as_ref()].into_iter().flatten() {
        if !args.force && path.symlink_metadata().is_ok() {
            return Err(disk::DiskError::Exists { path: path.clone() }.into());
        }
    }
    if let Some(aside) = &aside {
        disk::create(aside, |out| out.write_all(&repaired.aside), args.force)?;
    }
    disk::create(&output, |out| out.write_all(&repaired.bytes), args.force)?;
    found.repair = Some(Repair::new(&output, aside.as_deref(), &repaired.steps, &left));
    Ok(found)
}

fn read_all(bytes: &[u8], options: ReadOptions) -> Result<(Session, Vec<Problem>), NotASession> {
    let mut reader = SessionReader::new(options.tokenizer);
    reader.push(bytes);
    reader.finish()
}

fn output(args: &DoctorArgs, file: &Path) -> Result<PathBuf, CommandError> {
    if let Some(output) = &args.output {
        return Ok(output.clone());
    }
    let name = file.file_name().ok_or_else(|| CommandError::in_file(file, "the path has no file name"))?;
    if let Some(folder) = &args.output_dir {
        return Ok(folder.join(name));
    }
    let stem = file.file_stem().unwrap_or(name);
    let mut name = stem.to_owned();
    name.push(".repaired.jsonl");
    Ok(file.with_file_name(name))
}

fn is_same_file(one: &Path, other: &Path) -> bool {
    matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other)
}

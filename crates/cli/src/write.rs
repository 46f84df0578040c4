//! Puts new records behind a session's last one, or writes the changed session elsewhere (spec 1.6, 8.1).

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use session_model::branch::Branch;
use session_model::migrate;
use session_model::session::Session;

use crate::app::App;
use crate::disk::{self, Backup, Carried, Intent, ReplaceOptions, Target, Writers};
use crate::exit::{CommandError, ErrorKind};
use crate::session_file::{Loaded, SessionFile};

/// Where a changed session goes, and how careful to be.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Writing")]
pub struct WriteArgs {
    /// Write nothing; print what would be done
    #[arg(short = 'n', long)]
    pub dry_run: bool,
    /// Write the changed session to this file and leave the input alone; for one session
    #[arg(short, long, value_name = "FILE", conflicts_with = "output_dir")]
    pub output: Option<PathBuf>,
    /// Write changed sessions into this folder, under their names, and leave the input alone
    #[arg(long, value_name = "DIR")]
    pub output_dir: Option<PathBuf>,
    /// Keep backups in this folder instead of beside the session
    #[arg(long, value_name = "DIR", conflicts_with = "no_backup")]
    pub backup_dir: Option<PathBuf>,
    /// Keep no backup when a file is replaced; that change cannot be undone
    #[arg(long)]
    pub no_backup: bool,
    /// Replace a file although another process has it open for writing
    #[arg(short, long)]
    pub force: bool,
}

impl WriteArgs {
    /// Checks what clap cannot: `--output` is for one session.
    ///
    /// # Errors
    /// There are several sessions, or the folder is not there.
    pub fn check(&self, n_files: usize) -> Result<(), CommandError> {
        if self.output.is_some() && n_files > 1 {
            return Err(
                CommandError::usage("--output is for one session").hint("use --output-dir for several")
            );
        }
        for folder in self.output_dir.iter().chain(&self.backup_dir) {
            if !folder.is_dir() {
                return Err(CommandError::usage(format!("{}: no such folder", folder.display()))
                    .hint("make the folder first"));
            }
        }
        Ok(())
    }

    /// Whether the session itself stays as it is.
    pub fn leaves_input_alone(&self) -> bool {
        self.dry_run || self.output.is_some() || self.output_dir.is_some()
    }

    /// Where the changed session of `file` goes, if not in its own place.
    pub fn target(&self, file: &Path) -> Option<PathBuf> {
        self.output.clone().or_else(|| Some(self.output_dir.as_ref()?.join(file.file_name()?)))
    }

    fn replace_options(&self) -> ReplaceOptions {
        let backup = match &self.backup_dir {
            Some(folder) => Backup::In(folder.clone()),
            None if self.no_backup => Backup::None,
            None => Backup::Beside,
        };
        ReplaceOptions { backup, force: self.force, watch: disk::WATCH }
    }
}

/// What a write did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WriteReport {
    /// The file that was written.
    pub file: Option<PathBuf>,
    /// Where the old bytes are, if the file was replaced.
    pub backup: Option<PathBuf>,
    /// What the user should know.
    pub warnings: Vec<String>,
}

/// What is written.
#[derive(Clone, Copy, Debug)]
pub struct Change<'a> {
    /// The subcommand.
    pub command: &'a str,
    /// The time of the change, in milliseconds since 1970.
    pub time_ms: i64,
    /// New records, without line ends.
    pub records: &'a [&'a str],
}

/// Takes back what a write that was killed has left in the file; to be done before it is read.
///
/// # Errors
/// The file cannot be read or written.
pub fn settle(app: &App, file: &SessionFile, time_ms: i64) -> Result<(), CommandError> {
    let settled = disk::settle(&file.path, &session_model::time::iso(time_ms))?;
    let said = |bytes: u64, what: &str| {
        if bytes > 0 {
            app.printer.warn(&format!("{}: {bytes} bytes {what}", file.path.display()));
        }
    };
    said(settled.torn_bytes, "that an interrupted write had left behind were removed");
    said(
        settled.carried_bytes,
        "that an agent had written to the file before it was replaced were carried over",
    );
    Ok(())
}

/// How often a session that an agent writes to is read anew.
const ATTEMPTS: usize = 5;

/// Does it again while an agent has written to the file between reading and writing.
///
/// # Errors
/// Those of `attempt`; that the file was changed, if it was each time.
pub fn until_unchanged<T>(mut attempt: impl FnMut() -> Result<T, CommandError>) -> Result<T, CommandError> {
    for _ in 1..ATTEMPTS {
        match attempt() {
            Err(error) if error.kind == ErrorKind::Changed => {}
            result => return result,
        }
    }
    attempt()
}

/// Why the file has to be rewritten before anything can be appended; `None` if appending is enough.
pub fn rewrite_reason(session: &Session, branch: &Branch<'_>) -> Option<String> {
    if session.needs_migration() {
        return Some(format!("was rewritten from version {} as version 3", session.header.version));
    }
    branch.has_recovered_records().then(|| {
        "records that shared a line or stood behind a torn one were given lines of their own, so that the agent reads them"
            .to_owned()
    })
}

/// The bytes of a session as the current version, each record on a line of its own.
pub fn rewritten(bytes: &[u8], session: &Session) -> Vec<u8> {
    if session.needs_migration() {
        migrate::to_current(bytes, session)
    } else {
        migrate::own_lines(bytes, session)
    }
}

/// Writes `change.records` behind the session's last one: appended, or into a rewritten file, or elsewhere.
///
/// # Errors
/// The file has changed since it was read or cannot be written; then it is as it was.
pub fn add_records(
    file: &SessionFile,
    loaded: &Loaded,
    branch: &Branch<'_>,
    change: Change<'_>,
    args: &WriteArgs,
) -> Result<WriteReport, CommandError> {
    let reason = rewrite_reason(&loaded.session, branch);
    let mut tail = Vec::new();
    for record in change.records {
        tail.extend_from_slice(record.as_bytes());
        tail.push(b'\n');
    }
    if reason.is_none() && args.target(&file.path).is_none() {
        return append(file, loaded, &tail, change);
    }
    let base = match &reason {
        Some(_) => std::borrow::Cow::Owned(rewritten(&loaded.bytes, &loaded.session)),
        None => std::borrow::Cow::Borrowed(&loaded.bytes[..]),
    };
    let write = |out: &mut dyn Write| -> io::Result<()> {
        out.write_all(&base)?;
        if !base.is_empty() && !base.ends_with(b"\n") {
            out.write_all(b"\n")?;
        }
        out.write_all(&tail)
    };
    let mut report = put(file, loaded, write, change, args)?;
    report.warnings.extend(reason);
    Ok(report)
}

fn append(
    file: &SessionFile,
    loaded: &Loaded,
    tail: &[u8],
    change: Change<'_>,
) -> Result<WriteReport, CommandError> {
    let time = session_model::time::iso(change.time_ms);
    let intent = Intent { command: change.command, time: &time };
    let written = disk::append(&target(file, loaded)?, tail, &intent)?;
    let mut report = WriteReport { file: Some(file.path.clone()), ..WriteReport::default() };
    report.warnings.extend(writers_warning(&written.writers));
    Ok(report)
}

/// Writes a whole new session in the place of the old one, or where the flags say.
///
/// # Errors
/// As [`add_records`].
pub fn put(
    file: &SessionFile,
    loaded: &Loaded,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    change: Change<'_>,
    args: &WriteArgs,
) -> Result<WriteReport, CommandError> {
    let time = session_model::time::iso(change.time_ms);
    let intent = Intent { command: change.command, time: &time };
    if let Some(other) = args.target(&file.path) {
        let real = |path: &Path| path.canonicalize().ok();
        if real(&other).is_some_and(|other| real(&file.path) == Some(other)) {
            return Err(CommandError::in_file(&other, "this is the session itself")
                .hint("without --output it is changed in place, with a backup"));
        }
        disk::create(&other, write, args.force)?;
        return Ok(WriteReport { file: Some(other), ..WriteReport::default() });
    }
    let keeps_all = |new: &Path| keeps_every_entry(&loaded.session, new);
    let replaced = disk::replace(&target(file, loaded)?, write, keeps_all, &intent, &args.replace_options())?;
    let warnings = carried_warnings(&replaced.carried);
    Ok(WriteReport { file: Some(file.path.clone()), backup: replaced.backup, warnings })
}

fn target<'a>(file: &'a SessionFile, loaded: &'a Loaded) -> Result<Target<'a>, CommandError> {
    let fingerprint = loaded.bytes.fingerprint().ok_or_else(|| {
        CommandError::in_file(&file.path, "there is no file to write to").hint("give --output FILE")
    })?;
    Ok(Target { path: &file.path, fingerprint, bytes: Some(&loaded.bytes) })
}

/// Whether the new file has every entry of the old one: what is refused before the rename otherwise (spec 8.1).
fn keeps_every_entry(old: &Session, new: &Path) -> Result<(), String> {
    let mut reader = session_model::reader::SessionReader::new(session_model::tokens::Tokenizer::Units);
    disk::read::stream(new, |chunk| {
        reader.push(chunk);
        std::ops::ControlFlow::Continue(())
    })
    .map_err(|error| error.to_string())?;
    let (new, _) = reader.finish().map_err(|error| format!("the new file is no session: {error}"))?;
    if new.entries.len() < old.entries.len() {
        return Err(format!(
            "the new file has {} entries, the old one {}",
            new.entries.len(),
            old.entries.len()
        ));
    }
    let lost = (0..old.entries.len() as u32).map(|entry| old.id(entry)).find(|id| !new.has_id(id));
    lost.map_or(Ok(()), |id| Err(format!("entry {id} is missing in the new file")))
}

/// What to say if other processes had the file open while something was appended.
fn writers_warning(writers: &Writers) -> Option<String> {
    let pids: Vec<String> = writers.pids.iter().map(u32::to_string).collect();
    (!pids.is_empty()).then(|| {
        format!(
            "process {} has the session open: the agent sees the change when it opens the session again",
            pids.join(", ")
        )
    })
}

/// What to say of an agent that wrote while the file was replaced.
pub fn carried_warnings(carried: &Carried) -> Vec<String> {
    let mut warnings = Vec::new();
    if carried.bytes > 0 {
        warnings.push(format!("{} bytes that an agent wrote meanwhile were carried over", carried.bytes));
    }
    warnings.extend(open_warnings(carried));
    warnings
}

/// What to say of an agent that still has the file open which was replaced.
pub fn open_warnings(carried: &Carried) -> Vec<String> {
    let mut warnings = Vec::new();
    if !carried.still_open.is_empty() {
        let pids: Vec<String> = carried.still_open.iter().map(u32::to_string).collect();
        warnings.push(format!(
            "process {} still has the old file open; the next sesstool command carries over what it writes",
            pids.join(", ")
        ));
    }
    if let Some(failed) = &carried.failed {
        warnings.push(format!("what an agent wrote meanwhile was not carried over: {failed}"));
    }
    warnings
}

//! Replacing a session by a new file, with the old bytes kept as a backup.

use super::error::{DiskError, io_error};
use super::guard::{self, Intent, Locked, Target, copy_attributes, sync_folder};
use super::live_writer::writers_of;
use super::log::{self, Line, Log, Write};
use super::swap::{self, Carried, Temporary};
use super::{WATCH, fault, names, read, settle};
use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Where the old bytes go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Backup {
    /// `NAME.bak`, `NAME.bak.2`, … beside the session.
    Beside,
    /// The same names in another folder, which must exist.
    In(PathBuf),
    /// Nowhere; the write cannot be undone.
    None,
}

/// How a replacement is made.
#[derive(Clone, Debug)]
pub struct ReplaceOptions {
    /// Where the old bytes go.
    pub backup: Backup,
    /// Replace although a process has the file open for writing, or it has other names.
    pub force: bool,
    /// How long the old file is watched at most; [`WATCH`] by default.
    pub watch: Duration,
}

impl Default for ReplaceOptions {
    fn default() -> Self {
        Self { backup: Backup::Beside, force: false, watch: WATCH }
    }
}

/// What a replacement did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replaced {
    /// The new length in bytes, without what was carried over.
    pub length: u64,
    /// Where the old bytes are.
    pub backup: Option<PathBuf>,
    /// What an agent appended to the old file meanwhile.
    pub carried: Carried,
}

/// Replaces the file by what `write_new` writes, if `verify` finds the temporary file good (spec 8.1).
///
/// `verify` gets the path of the new file before the rename and gives the reason if it loses something. On any error
/// the file is the old one, and no backup is left.
pub fn replace(
    target: &Target<'_>,
    write_new: impl FnOnce(&mut dyn io::Write) -> io::Result<()>,
    verify: impl FnOnce(&Path) -> Result<(), String>,
    intent: &Intent<'_>,
    options: &ReplaceOptions,
) -> Result<Replaced, DiskError> {
    let locked = guard::lock(target.path)?;
    settle::settle_locked(&locked, intent.time)?;
    locked.expect(target.fingerprint)?;
    let metadata = locked.metadata()?;
    if !options.force {
        refuse_writers(&locked)?;
        if metadata.nlink() > 1 {
            return Err(DiskError::HardLinked { path: target.path.to_owned(), links: metadata.nlink() });
        }
    }
    let mut new = Temporary::create(&locked)?;
    #[cfg(not(target_os = "linux"))]
    if !options.force {
        refuse_recent(&locked, new.path())?;
    }
    write_new(&mut new).map_err(io_error(new.path(), "write the new file"))?;
    let (new_length, new_hash) = new.finish()?;
    verify(new.path()).map_err(|reason| DiskError::Refused { path: target.path.to_owned(), reason })?;

    let old_hash = match target.bytes {
        Some(bytes) => blake3::hash(bytes),
        None => locked.hash(metadata.len())?.finalize(),
    };
    let backup = free_backup(&locked, &options.backup)?;
    let number = Log::read(&locked.path)?.next_number();
    let write = Write {
        number,
        command: intent.command.to_owned(),
        time: intent.time.to_owned(),
        old_length: metadata.len(),
        new_length,
        old_hash: old_hash.to_hex().to_string(),
        new_hash,
        backup: match &options.backup {
            Backup::Beside => backup.as_deref().and_then(Path::file_name).map(PathBuf::from),
            Backup::In(_) | Backup::None => backup.clone(),
        },
        appended: None,
    };
    log::add(&locked.path, &metadata, &Line::Replace(write))?;
    let mut is_backup_made = false;
    let result = match &backup {
        Some(backup) => copy_to_backup(&locked, backup, metadata.len(), &mut is_backup_made),
        None => Ok(()),
    }
    .and_then(|()| swap::swap(&locked, new, target.fingerprint, options.watch));
    if let (Err(_), true, Some(backup)) = (&result, is_backup_made, &backup) {
        let _ = std::fs::remove_file(backup);
    }
    // A mark that cannot be written is no reason to fail: the next command finds out from the file itself.
    let mark = if result.is_ok() { Line::Done { of: number } } else { Line::Void { of: number } };
    let _ = log::add(&locked.path, &metadata, &mark);
    let (carried, _lock) = result?;
    Ok(Replaced { length: new_length, backup, carried })
}

/// Fails if another process has the file open for writing.
pub(super) fn refuse_writers(locked: &Locked) -> Result<(), DiskError> {
    let writers = writers_of(&locked.metadata()?);
    if writers.pids.is_empty() {
        return Ok(());
    }
    Err(DiskError::OpenForWriting { path: locked.path.clone(), pids: writers.pids })
}

/// Where processes cannot be looked at: a file written less than ten seconds before the temporary one is in use.
#[cfg(not(target_os = "linux"))]
fn refuse_recent(locked: &Locked, new: &Path) -> Result<(), DiskError> {
    let now = std::fs::metadata(new).map_err(io_error(new, "read the file"))?.mtime();
    if now - locked.metadata()?.mtime() < 10 {
        return Err(DiskError::OpenForWriting { path: locked.path.clone(), pids: Vec::new() });
    }
    Ok(())
}

fn free_backup(locked: &Locked, backup: &Backup) -> Result<Option<PathBuf>, DiskError> {
    let folder = match backup {
        Backup::Beside => None,
        Backup::In(folder) => {
            Some(std::path::absolute(folder).map_err(io_error(folder, "find the backup folder"))?)
        }
        Backup::None => return Ok(None),
    };
    let mut number = 1;
    loop {
        let path = names::backup(&locked.path, folder.as_deref(), number);
        match std::fs::symlink_metadata(&path) {
            Ok(_) => number += 1,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Some(path)),
            Err(error) => return Err(io_error(&path, "make the backup")(error)),
        }
    }
}

fn copy_to_backup(locked: &Locked, backup: &Path, length: u64, is_made: &mut bool) -> Result<(), DiskError> {
    let cannot = || io_error(backup, "make the backup");
    fault::point("backup").map_err(cannot())?;
    // `create_new` never overwrites, and never follows a link.
    let file = OpenOptions::new().append(true).create_new(true).open(backup).map_err(cannot())?;
    *is_made = true;
    copy_attributes(&locked.metadata()?, &file).map_err(cannot())?;
    read::each_chunk_from(&locked.file, 0, length, |chunk| {
        guard::write_out(&file, chunk).map_err(|(_, error)| error)
    })
    .map_err(cannot())?;
    file.sync_all().and_then(|()| sync_folder(backup)).map_err(cannot())?;
    fault::point("backed up").map_err(cannot())
}

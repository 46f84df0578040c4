//! Taking back the newest write of a session.

use super::error::{DiskError, io_error};
use super::guard::{self, Locked, hash_of};
use super::log::{self, Line, Log, State, Write};
use super::replace::refuse_writers;
use super::swap::{self, Carried, Temporary};
use super::{read, settle};
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What was taken back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undone {
    /// The subcommand that had written.
    pub command: String,
    /// When it had, ISO 8601.
    pub time: String,
    /// The backup that was restored; none if an append was cut off.
    pub restored: Option<PathBuf>,
    /// Bytes that had been appended since and are behind the restored ones.
    pub kept_bytes: u64,
    /// What an agent appended while the file was replaced.
    pub carried: Carried,
}

/// Takes back the newest write that is not yet taken back, and marks it (spec 8.1).
///
/// An append is cut off if the file is as it was left. A replacement is taken back by restoring its backup, with what
/// was appended since behind it. Anything else is refused with [`DiskError::CannotUndo`] and changes nothing.
/// `force` goes on although a process has the file open for writing; `time` is ISO 8601; `watch` is the longest time
/// that the replaced file is watched.
pub fn undo(path: &Path, time: &str, force: bool, watch: Duration) -> Result<Undone, DiskError> {
    let locked = guard::lock(path)?;
    let mut log = Log::read(&locked.path)?;
    // Looked at before settling, which would mark it: who repeats a killed undo does not want two.
    let is_cut_already = match log.writes.last() {
        Some((write, State::Done)) => is_taken_back(&locked, write)?,
        _ => false,
    };
    if !is_cut_already {
        settle::settle_locked(&locked, time)?;
        log = Log::read(&locked.path)?;
    }
    let Some((write, _)) = log.writes.iter().rev().find(|(_, state)| *state == State::Done) else {
        return Err(DiskError::NothingToUndo { path: path.to_owned() });
    };
    let metadata = locked.metadata()?;
    let mut undone = Undone {
        command: write.command.clone(),
        time: write.time.clone(),
        restored: None,
        kept_bytes: 0,
        carried: Carried::default(),
    };
    let mut _lock = None;
    if write.appended.is_none() {
        _lock = restore(&locked, write, force, watch, &mut undone)?;
    } else if !is_cut_already {
        cut_off(&locked, write, force)?;
    }
    log::add(&locked.path, &metadata, &Line::Undone { of: write.number, time: time.to_owned() })?;
    Ok(undone)
}

/// Whether an undo of this write was killed between its last step and its mark.
pub(super) fn is_taken_back(locked: &Locked, write: &Write) -> Result<bool, DiskError> {
    let length = locked.metadata()?.len();
    if write.appended.is_some() {
        // Cheap in the usual case: an append that still stands makes the file longer.
        return Ok(length == write.old_length && starts_with(locked, length, length, &write.old_hash)?);
    }
    Ok(false)
}

/// Whether the first `prefix` bytes of the session have this hash.
pub(super) fn starts_with(locked: &Locked, length: u64, prefix: u64, hash: &str) -> Result<bool, DiskError> {
    Ok(length >= prefix && locked.hash(prefix)?.finalize().to_hex().as_str() == hash)
}

/// Where the backup of a write is.
pub(super) fn backup_path(locked: &Locked, write: &Write) -> Option<PathBuf> {
    let folder = locked.path.parent().expect("a resolved path has a folder");
    // Joining with an absolute path gives that path.
    write.backup.as_ref().map(|name| folder.join(name))
}

fn cut_off(locked: &Locked, write: &Write, force: bool) -> Result<(), DiskError> {
    let seen = locked.fingerprint()?;
    if seen.length != write.new_length || !starts_with(locked, seen.length, seen.length, &write.new_hash)? {
        return Err(refusal(locked, "the file has changed since the records were appended"));
    }
    if !force {
        refuse_writers(locked)?;
    }
    locked.truncate(write.old_length, &seen)
}

fn restore(
    locked: &Locked,
    write: &Write,
    force: bool,
    watch: Duration,
    undone: &mut Undone,
) -> Result<Option<File>, DiskError> {
    let seen = locked.fingerprint()?;
    if !starts_with(locked, seen.length, write.new_length, &write.new_hash)? {
        // A killed undo may have restored it already; then only the mark is missing.
        if starts_with(locked, seen.length, write.old_length, &write.old_hash)? {
            undone.restored = backup_path(locked, write);
            undone.kept_bytes = seen.length - write.old_length;
            return Ok(None);
        }
        return Err(refusal(locked, "the file has been changed otherwise than by appending"));
    }
    let Some(backup) = backup_path(locked, write) else {
        return Err(refusal(locked, "the write was made without a backup"));
    };
    let file = File::open(&backup).map_err(io_error(&backup, "open the backup"))?;
    let length = file.metadata().map_err(io_error(&backup, "read the backup"))?.len();
    let is_whole = length == write.old_length
        && hash_of(&file, length).map_err(io_error(&backup, "read the backup"))?.finalize().to_hex().as_str()
            == write.old_hash;
    if !is_whole {
        return Err(refusal(locked, &format!("the backup {} has been changed", backup.display())));
    }
    if !force {
        refuse_writers(locked)?;
    }
    let mut new = Temporary::create(locked)?;
    let kept = seen.length - write.new_length;
    let copied = read::each_chunk_from(&file, 0, length, |chunk| new.write_all(chunk)).and_then(|()| {
        if kept > 0 && log::ends_torn(&file, length)? {
            new.write_all(b"\n")?;
        }
        read::each_chunk_from(&locked.file, write.new_length, seen.length, |chunk| new.write_all(chunk))
    });
    copied.map_err(io_error(new.path(), "write the new file"))?;
    new.finish()?;
    let (carried, lock) = swap::swap(locked, new, &seen, watch)?;
    undone.carried = carried;
    undone.restored = Some(backup);
    undone.kept_bytes = kept;
    Ok(lock)
}

fn refusal(locked: &Locked, reason: &str) -> DiskError {
    DiskError::CannotUndo { path: locked.path.clone(), reason: reason.to_owned() }
}

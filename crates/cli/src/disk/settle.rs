//! Tidying up what a killed command left: torn tails of our own, temporary files, an old file still written to.

use super::error::{DiskError, io_error};
use super::guard::{self, Locked};
use super::live_writer::writers_of;
use super::log::{self, Line, Log, State, Write};
use super::swap::{carry, read_range};
use super::{names, undo};
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// What was tidied up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settled {
    /// Bytes of a torn record of ours that were cut off.
    pub torn_bytes: u64,
    /// Bytes that an agent had written to a file that was replaced, now behind the session.
    pub carried_bytes: u64,
}

/// Finishes or takes back what a killed command began. Every writing command calls this before it reads the file;
/// without an undo log or a temporary file beside the session it does nothing. `time` is ISO 8601.
pub fn settle(path: &Path, time: &str) -> Result<Settled, DiskError> {
    let real = guard::resolve(path)?;
    let is_there = |path: &Path| std::fs::symlink_metadata(path).is_ok();
    if !is_there(&names::undo_log(&real)) && !is_there(&names::temporary(&real)) {
        return Ok(Settled::default());
    }
    settle_locked(&guard::lock(path)?, time)
}

/// As [`settle`], for a command that already holds the lock.
pub(super) fn settle_locked(locked: &Locked, time: &str) -> Result<Settled, DiskError> {
    let log = Log::read(&locked.path)?;
    let mut settled = Settled::default();
    let Some((write, state)) = log.writes.last() else {
        // Killed before there was anything to note. We hold the lock, so nobody is making it.
        let _ = std::fs::remove_file(names::temporary(&locked.path));
        return Ok(settled);
    };
    let metadata = locked.metadata()?;
    if *state == State::Begun {
        let line = match &write.appended {
            Some(appended) => settle_append(locked, write, appended, &mut settled)?,
            None => settle_replace(locked, write)?,
        };
        if let Some(line) = line {
            log::add(&locked.path, &metadata, &line)?;
        }
    } else if *state == State::Done && undo::is_taken_back(locked, write)? {
        log::add(&locked.path, &metadata, &Line::Undone { of: write.number, time: time.to_owned() })?;
    }
    settled.carried_bytes = settle_leftovers(locked)?;
    Ok(settled)
}

fn settle_append(
    locked: &Locked,
    write: &Write,
    appended: &str,
    settled: &mut Settled,
) -> Result<Option<Line>, DiskError> {
    let void = Some(Line::Void { of: write.number });
    let seen = locked.fingerprint()?;
    let Some(behind) = seen.length.checked_sub(write.old_length) else { return Ok(void) };
    let compared = usize::try_from(behind).map_or(appended.len(), |behind| behind.min(appended.len()));
    let tail = locked.read_at(write.old_length, compared)?;
    if tail != appended.as_bytes()[..compared] || compared == 0 {
        return Ok(void);
    }
    if compared == appended.len() {
        return Ok(Some(Line::Done { of: write.number }));
    }
    if locked.hash(write.old_length)?.finalize().to_hex().as_str() != write.old_hash {
        return Ok(void);
    }
    // Cutting the file under a writer could take its next record with it; a torn line only looks ugly.
    if !writers_of(&locked.metadata()?).pids.is_empty() {
        return Ok(None);
    }
    locked.truncate(write.old_length, &seen)?;
    settled.torn_bytes = behind;
    Ok(void)
}

fn settle_replace(locked: &Locked, write: &Write) -> Result<Option<Line>, DiskError> {
    let length = locked.metadata()?.len();
    if undo::starts_with(locked, length, write.new_length, &write.new_hash)? {
        return Ok(Some(Line::Done { of: write.number }));
    }
    // The backup of a replacement that never came is a copy, whole or in part, of what is still there.
    if undo::starts_with(locked, length, write.old_length, &write.old_hash)?
        && let Some(backup) = undo::backup_path(locked, write)
    {
        remove_if_redundant(locked, &backup, write.old_length);
    }
    Ok(Some(Line::Void { of: write.number }))
}

/// Removes a backup that says nothing but what the session begins with. Best effort: a backup too many does no harm.
fn remove_if_redundant(locked: &Locked, backup: &Path, length: u64) {
    let Ok(file) = File::open(backup) else { return };
    let Ok(copied) = file.metadata().map(|it| it.len()) else { return };
    if copied > length {
        return;
    }
    let (Ok(theirs), Ok(ours)) = (guard::hash_of(&file, copied), locked.hash(copied)) else { return };
    if theirs.finalize() == ours.finalize() {
        let _ = std::fs::remove_file(backup);
    }
}

fn settle_leftovers(locked: &Locked) -> Result<u64, DiskError> {
    let folder = locked.path.parent().expect("a resolved path has a folder");
    let cannot = || io_error(folder, "look for leftovers");
    let _ = std::fs::remove_file(names::temporary(&locked.path));
    let mut carried = 0;
    for entry in std::fs::read_dir(folder).map_err(cannot())? {
        let entry = entry.map_err(cannot())?;
        let Some(length) = names::left_behind_length(&locked.path, &entry.file_name()) else { continue };
        let path = entry.path();
        let old = File::open(&path).map_err(io_error(&path, "open the file"))?;
        let metadata = old.metadata().map_err(io_error(&path, "read the file"))?;
        if metadata.ino() == locked.metadata()?.ino() {
            // Killed before the rename: only a second name of the session.
            std::fs::remove_file(&path).map_err(io_error(&path, "remove the file"))?;
            continue;
        }
        let is_closed = writers_of(&metadata).pids.is_empty();
        let (end, bytes) =
            carry_missing(locked, &old, length, is_closed).map_err(io_error(&path, "carry over"))?;
        carried += bytes;
        if is_closed {
            std::fs::remove_file(&path).map_err(io_error(&path, "remove the file"))?;
        } else if end > length {
            // Pruning may change these lines in the session: they must not count as missing then.
            let further = names::left_behind(&locked.path, end, metadata.ino());
            std::fs::rename(&path, further).map_err(io_error(&path, "rename the file"))?;
        }
    }
    Ok(carried)
}

/// Carries the lines from `start` on that the session does not have yet: a kill before the name tells how far we came cannot
/// double them. Gives where it stopped, which is before a line in the making, and the number of bytes.
fn carry_missing(locked: &Locked, old: &File, start: u64, is_closed: bool) -> io::Result<(u64, u64)> {
    let end = old.metadata()?.len();
    if end <= start {
        return Ok((start, 0));
    }
    let mut late = read_range(old, start, end)?;
    if !is_closed {
        late.truncate(memchr::memrchr(b'\n', &late).map_or(0, |last| last + 1));
    }
    let session = read_range(&locked.file, 0, locked.file.metadata()?.len())?;
    let known: std::collections::HashSet<&[u8]> = session.split(|byte| *byte == b'\n').collect();
    let mut missing = Vec::new();
    for line in late.split(|byte| *byte == b'\n') {
        if !line.is_empty() && !known.contains(line) {
            missing.extend_from_slice(line);
            missing.push(b'\n');
        }
    }
    carry(&locked.file, &missing)?;
    Ok((start + late.len() as u64, missing.len() as u64))
}

//! Putting a new file in the place of a session, and carrying over what an agent still writes to the old one.

use super::error::{DiskError, io_error};
use super::guard::{self, Fingerprint, Locked, copy_attributes, sync_folder, write_out};
use super::live_writer::writers_of;
use super::{fault, names, read};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long the old file is watched while a process has it open for writing. What comes later stays in a file
/// beside the session, and the next writing command carries it over.
pub const WATCH: Duration = Duration::from_secs(2);

/// What was found in the old file after the rename.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Carried {
    /// Bytes that were appended to the old file and are now behind the new one.
    pub bytes: u64,
    /// Processes that still had the old file open when the watch ended.
    pub still_open: Vec<u32>,
    /// Why the watch could not go on. The old file then stays beside the session for the next writing command.
    pub failed: Option<String>,
}

/// The new file before it has its name; removed when dropped.
pub(super) struct Temporary {
    file: File,
    path: PathBuf,
    hasher: blake3::Hasher,
    length: u64,
    pending: Vec<u8>,
    is_renamed: bool,
}

impl Temporary {
    /// Makes the file with the session's mode and owner. A leftover of a killed process is removed first.
    pub(super) fn create(locked: &Locked) -> Result<Self, DiskError> {
        let path = names::temporary(&locked.path);
        let cannot = || io_error(&path, "make a temporary file");
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(cannot()(error)),
            _ => {}
        }
        fault::point("temporary").map_err(cannot())?;
        let file =
            OpenOptions::new().read(true).append(true).create_new(true).open(&path).map_err(cannot())?;
        let new = Self {
            file,
            path: path.clone(),
            hasher: blake3::Hasher::new(),
            length: 0,
            pending: Vec::new(),
            is_renamed: false,
        };
        copy_attributes(&locked.metadata()?, &new.file).map_err(cannot())?;
        Ok(new)
    }

    /// Makes the bytes durable; gives length and hash.
    pub(super) fn finish(&mut self) -> Result<(u64, String), DiskError> {
        self.flush()
            .and_then(|()| fault::point("new file"))
            .and_then(|()| self.file.sync_all())
            .map_err(io_error(&self.path, "write the new file"))?;
        Ok((self.length, self.hasher.finalize().to_hex().to_string()))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Write for Temporary {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.pending.extend_from_slice(bytes);
        if self.pending.len() >= 1 << 20 {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.hasher.update(&self.pending);
        self.length += self.pending.len() as u64;
        write_out(&self.file, &self.pending).map_err(|(_, error)| error)?;
        self.pending.clear();
        Ok(())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.is_renamed {
            // Best effort: the next writing command removes it too.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Renames the finished file over the session if that still is the one with this fingerprint, then watches the old
/// file until no process has it open for writing, at most for `watch`. An error means that nothing was renamed; the
/// handle given back holds the lock on the new file.
pub(super) fn swap(
    locked: &Locked,
    mut new: Temporary,
    seen: &Fingerprint,
    watch: Duration,
) -> Result<(Carried, Option<File>), DiskError> {
    let path = &locked.path;
    let cannot = || io_error(path, "replace the file");
    // Whoever opens the session from now on waits for us.
    let _ = new.file.try_lock();
    let inode = locked.metadata()?.ino();
    let old = names::left_behind(path, seen.length, inode);
    fault::point("link").map_err(cannot())?;
    // Where hard links are impossible, only a kill within the watch could lose what an agent writes in it.
    let is_linked = std::fs::hard_link(path, &old).is_ok();
    let renamed = fault::point("rename")
        .map_err(cannot())
        .and_then(|()| locked.expect(seen))
        .and_then(|()| std::fs::rename(&new.path, path).map_err(cannot()));
    if let Err(error) = renamed {
        if is_linked {
            let _ = std::fs::remove_file(&old);
        }
        return Err(error);
    }
    new.is_renamed = true;
    // From here on the file is the new one: a failure to flush the folder must not be told as "nothing happened".
    let _ = fault::point("renamed").and_then(|()| sync_folder(path));
    let carried = watch_old(locked, &new.file, seen.length, watch)
        .unwrap_or_else(|error| Carried { failed: Some(error.to_string()), ..Carried::default() });
    let _ = fault::point("carried");
    if is_linked && carried.failed.is_none() {
        let _ = match carried.still_open[..] {
            [] => std::fs::remove_file(&old),
            // What is in the session may change there before the rest is carried over.
            _ => std::fs::rename(&old, names::left_behind(path, seen.length + carried.bytes, inode)),
        };
    }
    let file = new.file.try_clone().map_err(io_error(path, "keep the lock"));
    Ok((carried, file.ok()))
}

fn watch_old(locked: &Locked, new: &File, length: u64, watch: Duration) -> io::Result<Carried> {
    let start = Instant::now();
    let mut at = length;
    loop {
        // Asked first, read second: once nobody can write any more, the reading sees everything.
        let still_open = writers_of(&locked.file.metadata()?).pids;
        let is_last = still_open.is_empty() || start.elapsed() >= watch;
        let end = locked.file.metadata()?.len();
        if end > at {
            let bytes = read_range(&locked.file, at, end)?;
            // A line in the making is waited for.
            let whole = match bytes.iter().rposition(|byte| *byte == b'\n') {
                Some(last) => last + 1,
                None => 0,
            };
            let taken = if still_open.is_empty() { bytes.len() } else { whole };
            carry(new, &bytes[..taken])?;
            at += taken as u64;
        }
        if is_last {
            return Ok(Carried { bytes: at - length, still_open, failed: None });
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Puts bytes of an agent behind the session, on a line of their own.
pub(super) fn carry(new: &File, bytes: &[u8]) -> io::Result<()> {
    if bytes.is_empty() {
        return Ok(());
    }
    let length = new.metadata()?.len();
    let mut text = Vec::with_capacity(bytes.len() + 1);
    if super::log::ends_torn(new, length)? {
        text.push(b'\n');
    }
    text.extend_from_slice(bytes);
    guard::write_out(new, &text).map_err(|(_, error)| error)?;
    new.sync_all()
}

/// The bytes from `start` to `end` of an open file.
pub(super) fn read_range(file: &File, start: u64, end: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    read::each_chunk_from(file, start, end, |chunk| {
        bytes.extend_from_slice(chunk);
        Ok(())
    })?;
    Ok(bytes)
}

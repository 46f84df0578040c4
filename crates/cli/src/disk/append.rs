//! Putting records behind a session: no old byte is ever touched.

use super::error::{DiskError, io_error};
use super::guard::{self, Intent, Locked, Target};
use super::live_writer::{Writers, writers_of};
use super::log::{self, Line, Log, Write};
use super::{fault, settle};

/// What an append did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// Where the new bytes begin if nothing else was appended in the same moment.
    pub offset: u64,
    /// How many bytes were added, with the LF before the first record if one was missing.
    pub length: u64,
    /// Others that have the session open; an agent will not see the new records before it reads the file again.
    pub writers: Writers,
}

/// Appends whole records, each ending in LF, as one write (spec 8.1).
///
/// Fails with [`DiskError::Changed`] if the file is not the one that was read, and leaves it as it was on any error.
/// If the process is killed, the file may have a torn tail, which [`settle()`](super::settle()) removes.
pub fn append(target: &Target<'_>, records: &[u8], intent: &Intent<'_>) -> Result<Written, DiskError> {
    let refuse = |reason| DiskError::NotRecords { path: target.path.to_owned(), reason };
    if records.last() != Some(&b'\n') {
        return Err(refuse("the last record does not end in a line feed"));
    }
    let text = std::str::from_utf8(records).map_err(|_| refuse("the records are not UTF-8"))?;

    let locked = guard::lock(target.path)?;
    settle::settle_locked(&locked, intent.time)?;
    locked.expect(target.fingerprint)?;
    let metadata = locked.metadata()?;
    let old_length = metadata.len();
    let is_torn =
        log::ends_torn(&locked.file, old_length).map_err(io_error(&locked.path, "read the file"))?;
    let appended = if is_torn { format!("\n{text}") } else { text.to_owned() };
    let mut hasher = match target.bytes {
        Some(bytes) => {
            let mut hasher = blake3::Hasher::new();
            hasher.update(bytes);
            hasher
        }
        None => locked.hash(old_length)?,
    };
    let old_hash = hasher.finalize().to_hex().to_string();
    hasher.update(appended.as_bytes());
    let number = Log::read(&locked.path)?.next_number();
    let length = appended.len() as u64;
    let write = Write {
        number,
        command: intent.command.to_owned(),
        time: intent.time.to_owned(),
        old_length,
        new_length: old_length + length,
        old_hash,
        new_hash: hasher.finalize().to_hex().to_string(),
        backup: None,
        appended: Some(appended.clone()),
    };
    log::add(&locked.path, &metadata, &Line::Append(write))?;
    let result =
        locked.expect(target.fingerprint).and_then(|()| write_behind(&locked, old_length, &appended));
    // A mark that cannot be written is no reason to fail: the next command finds out from the file itself.
    let mark = if result.is_ok() { Line::Done { of: number } } else { Line::Void { of: number } };
    let _ = log::add(&locked.path, &metadata, &mark);
    result?;
    Ok(Written { offset: old_length, length, writers: writers_of(&metadata) })
}

fn write_behind(locked: &Locked, old_length: u64, appended: &str) -> Result<(), DiskError> {
    let result = guard::write_out(&locked.file, appended.as_bytes()).and_then(|()| {
        fault::point("appended")
            .and_then(|()| locked.file.sync_all())
            .map_err(|error| (appended.len(), error))
    });
    let Err((written, error)) = result else { return Ok(()) };
    // Only our own bytes are cut off; if another has written behind them, they stay as a torn line.
    if locked.metadata()?.len() == old_length + written as u64 {
        let _ = locked.file.set_len(old_length).and_then(|()| locked.file.sync_all());
    }
    Err(io_error(&locked.path, "append to the file")(error))
}

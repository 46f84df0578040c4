//! The undo log of a session: one JSON line per write, and marks that say what became of it.

use super::error::{DiskError, io_error};
use super::guard::{copy_attributes, sync_folder, write_out};
use super::{fault, names};
use serde::{Deserialize, Serialize};
use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// One write of one command.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Write {
    pub(super) number: u64,
    pub(super) command: String,
    pub(super) time: String,
    pub(super) old_length: u64,
    pub(super) new_length: u64,
    pub(super) old_hash: String,
    pub(super) new_hash: String,
    /// A name beside the session, or a path in another folder. Replacements only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) backup: Option<PathBuf>,
    /// The bytes wanted behind the old ones, so that a torn tail can be told from an agent's. Appends only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) appended: Option<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase")]
pub(super) enum Line {
    Append(Write),
    Replace(Write),
    /// The write is complete.
    Done {
        of: u64,
    },
    /// The write never happened, or its remains are removed.
    Void {
        of: u64,
    },
    Undone {
        of: u64,
        time: String,
    },
}

/// What became of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Begun,
    Done,
    Void,
    Undone,
}

/// Every write that the log tells of, oldest first.
#[derive(Debug, Default)]
pub(super) struct Log {
    pub(super) writes: Vec<(Write, State)>,
}

impl Log {
    /// Reads the log; an absent one is empty, torn and unknown lines are passed over.
    pub(super) fn read(session: &Path) -> Result<Self, DiskError> {
        let path = names::undo_log(session);
        match std::fs::symlink_metadata(&path) {
            Ok(metadata) if metadata.is_file() => {}
            Ok(_) => return Err(DiskError::NotAFile { path }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(io_error(&path, "read the undo record")(error)),
        }
        let bytes = std::fs::read(&path).map_err(io_error(&path, "read the undo record"))?;
        let mut log = Self::default();
        for line in bytes.split(|byte| *byte == b'\n') {
            match serde_json::from_slice(line) {
                Ok(Line::Append(write) | Line::Replace(write)) => log.writes.push((write, State::Begun)),
                Ok(Line::Done { of }) => log.set(of, State::Done),
                Ok(Line::Void { of }) => log.set(of, State::Void),
                Ok(Line::Undone { of, .. }) => log.set(of, State::Undone),
                Err(_) => {}
            }
        }
        Ok(log)
    }

    pub(super) fn next_number(&self) -> u64 {
        self.writes.iter().map(|(write, _)| write.number).max().unwrap_or(0) + 1
    }

    fn set(&mut self, of: u64, state: State) {
        if let Some(entry) = self.writes.iter_mut().rev().find(|(write, _)| write.number == of) {
            // "Done" may be said twice, the second time late.
            if state != State::Done || entry.1 == State::Begun {
                entry.1 = state;
            }
        }
    }
}

/// Adds one line and makes it durable. The log gets the session's mode and owner, since it holds some of its text.
pub(super) fn add(session: &Path, like: &Metadata, line: &Line) -> Result<(), DiskError> {
    let path = names::undo_log(session);
    let cannot = || io_error(&path, "write the undo record");
    let mut bytes = serde_json::to_vec(line).map_err(|error| cannot()(error.into()))?;
    bytes.push(b'\n');
    fault::point("log").map_err(cannot())?;
    let (file, is_new) = open(&path)?;
    if is_new {
        copy_attributes(like, &file).map_err(cannot())?;
    }
    let length = file.metadata().map_err(cannot())?.len();
    if ends_torn(&file, length).map_err(cannot())? {
        bytes.insert(0, b'\n');
    }
    if let Err((_, error)) = write_out(&file, &bytes) {
        // Best effort: a torn line is passed over by readers anyway.
        let _ = file.set_len(length);
        return Err(cannot()(error));
    }
    file.sync_all().map_err(cannot())?;
    if is_new {
        sync_folder(&path).map_err(cannot())?;
    }
    fault::point("logged").map_err(cannot())
}

/// Whether the last byte is anything but an LF.
pub(super) fn ends_torn(file: &File, length: u64) -> io::Result<bool> {
    let mut last = [b'\n'];
    if length > 0 {
        file.read_exact_at(&mut last, length - 1)?;
    }
    Ok(last != [b'\n'])
}

fn open(path: &Path) -> Result<(File, bool), DiskError> {
    let cannot = || io_error(path, "write the undo record");
    match OpenOptions::new().read(true).append(true).create_new(true).open(path) {
        Ok(file) => return Ok((file, true)),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(cannot()(error)),
    }
    // Never through a link: it could lead anywhere.
    if !std::fs::symlink_metadata(path).map_err(cannot())?.is_file() {
        return Err(DiskError::NotAFile { path: path.to_owned() });
    }
    let file = OpenOptions::new().read(true).append(true).open(path).map_err(cannot())?;
    Ok((file, false))
}

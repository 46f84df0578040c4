//! What can go wrong between us and a file: one variant per thing a caller does differently.

use std::io;
use std::path::{Path, PathBuf};

/// Why a file was not read or not written. Whatever it says, the file is the one it was before (spec 8.1).
#[derive(Debug, thiserror::Error)]
pub enum DiskError {
    /// The operating system refused a step.
    #[error("{}: cannot {doing}: {source}", path.display())]
    Io {
        /// The file that the step was about.
        path: PathBuf,
        /// The step, as a verb phrase.
        doing: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// Nothing has this name.
    #[error("{}: no such file", path.display())]
    NotFound {
        /// The name that was asked for.
        path: PathBuf,
    },
    /// The name is a symbolic link that leads nowhere.
    #[error("{}: symbolic link to a file that does not exist", path.display())]
    DanglingLink {
        /// The link.
        path: PathBuf,
    },
    /// A folder, a device or a pipe has this name.
    #[error("{}: not a regular file", path.display())]
    NotAFile {
        /// The name that was asked for.
        path: PathBuf,
    },
    /// The file has no write permission for anyone, which is taken as a wish.
    #[error("{}: the file is read-only", path.display())]
    ReadOnly {
        /// The file.
        path: PathBuf,
    },
    /// The file that was to be made is there already.
    #[error("{}: the file exists", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// Something wrote to the file, or put another in its place, since it was read.
    #[error("{}: the file has changed since it was read", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// Another sesstool is writing this file.
    #[error("{}: locked by another process", path.display())]
    Busy {
        /// The file.
        path: PathBuf,
    },
    /// A process has the file open for writing, and this write would replace or shorten it.
    #[error("{}: open for writing in another process{}", path.display(), list(pids))]
    OpenForWriting {
        /// The file.
        path: PathBuf,
        /// The processes; empty where the system does not tell.
        pids: Vec<u32>,
    },
    /// The file has other names, which a replacement would leave with the old bytes.
    #[error("{}: the file has {links} names (hard links)", path.display())]
    HardLinked {
        /// The file.
        path: PathBuf,
        /// How many names it has.
        links: u64,
    },
    /// The caller's check of the new bytes failed; nothing was renamed.
    #[error("{}: result refused: {reason}", path.display())]
    Refused {
        /// The file that was to be replaced.
        path: PathBuf,
        /// The caller's words.
        reason: String,
    },
    /// The bytes to append are not whole records.
    #[error("{}: cannot append: {reason}", path.display())]
    NotRecords {
        /// The file that was to grow.
        path: PathBuf,
        /// What is wrong with the bytes.
        reason: &'static str,
    },
    /// There is no write that could be taken back.
    #[error("{}: nothing to undo", path.display())]
    NothingToUndo {
        /// The file.
        path: PathBuf,
    },
    /// The newest write cannot be taken back without losing something.
    #[error("{}: cannot undo: {reason}", path.display())]
    CannotUndo {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
}

impl DiskError {
    /// What the user can do about it, where there is something.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Changed { .. } => Some("run the command again; it reads the file anew"),
            Self::Busy { .. } => Some("wait until the other sesstool is done, then run the command again"),
            Self::OpenForWriting { .. } => Some("close the agent that has the session open, or use --force"),
            Self::HardLinked { .. } => {
                Some("remove the other names, or use --force to replace only this one")
            }
            Self::Exists { .. } => Some("name another file, or use --force to overwrite it"),
            Self::ReadOnly { .. } => Some("chmod u+w the file if it may be changed"),
            Self::Refused { .. } => Some("the file is untouched; please report this"),
            Self::CannotUndo { .. } => {
                Some("the backups beside the file (.bak, .bak.2, …) can be copied by hand")
            }
            Self::Io { source, .. } => match source.kind() {
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                    Some("the file is untouched; free some space, or give --backup-dir")
                }
                io::ErrorKind::ReadOnlyFilesystem => Some("copy the session to a place that can be written"),
                io::ErrorKind::PermissionDenied => {
                    Some("check the permissions of the file and of its folder")
                }
                _ => None,
            },
            Self::NotFound { .. }
            | Self::DanglingLink { .. }
            | Self::NotAFile { .. }
            | Self::NotRecords { .. }
            | Self::NothingToUndo { .. } => None,
        }
    }
}

/// For `map_err`: names the file and the step.
pub(super) fn io_error(path: &Path, doing: &'static str) -> impl FnOnce(io::Error) -> DiskError {
    move |source| DiskError::Io { path: path.to_owned(), doing, source }
}

fn list(pids: &[u32]) -> String {
    if pids.is_empty() {
        return String::new();
    }
    let words: Vec<String> = pids.iter().map(u32::to_string).collect();
    format!(" ({})", words.join(", "))
}

//! What must hold before a file is written: it is the file that was read, it is ours alone, it may be written.

use super::error::{DiskError, io_error};
use super::{fault, read};
use std::fs::{File, Metadata, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long a lock of another sesstool is waited for.
const LOCK_WAIT: Duration = Duration::from_secs(2);

/// Which bytes a file had: if these four are equal, nothing has written to it (spec 8.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fingerprint {
    /// The device number.
    pub device: u64,
    /// The inode number.
    pub inode: u64,
    /// The length in bytes.
    pub length: u64,
    /// The modification time in nanoseconds.
    pub modified_ns: i128,
}

impl Fingerprint {
    pub(super) fn of(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            length: metadata.len(),
            modified_ns: i128::from(metadata.mtime()) * 1_000_000_000 + i128::from(metadata.mtime_nsec()),
        }
    }
}

/// The file that a command has read and now writes.
#[derive(Clone, Copy, Debug)]
pub struct Target<'a> {
    /// As the user named it; links are followed.
    pub path: &'a Path,
    /// From the reading functions.
    pub fingerprint: &'a Fingerprint,
    /// The bytes if they are still in memory; saves one pass over the file for its hash.
    pub bytes: Option<&'a [u8]>,
}

/// Why and when a write happens, for its record.
#[derive(Clone, Copy, Debug)]
pub struct Intent<'a> {
    /// The subcommand.
    pub command: &'a str,
    /// ISO 8601.
    pub time: &'a str,
}

/// A session file that is open for appending and locked until dropped.
pub(super) struct Locked {
    pub(super) file: File,
    /// The name behind all links.
    pub(super) path: PathBuf,
}

impl Locked {
    pub(super) fn metadata(&self) -> Result<Metadata, DiskError> {
        self.file.metadata().map_err(io_error(&self.path, "read the file"))
    }

    pub(super) fn fingerprint(&self) -> Result<Fingerprint, DiskError> {
        self.metadata().map(|it| Fingerprint::of(&it))
    }

    /// Fails unless the path still names the file that has this fingerprint.
    pub(super) fn expect(&self, fingerprint: &Fingerprint) -> Result<(), DiskError> {
        match std::fs::symlink_metadata(&self.path) {
            Ok(now) if Fingerprint::of(&now) == *fingerprint => Ok(()),
            Ok(_) => Err(DiskError::Changed { path: self.path.clone() }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(DiskError::Changed { path: self.path.clone() })
            }
            Err(error) => Err(io_error(&self.path, "read the file")(error)),
        }
    }

    /// Shortens the file if nothing has been written to it since `seen`.
    pub(super) fn truncate(&self, length: u64, seen: &Fingerprint) -> Result<(), DiskError> {
        let cannot = || io_error(&self.path, "shorten the file");
        fault::point("truncate").map_err(cannot())?;
        self.expect(seen)?;
        self.file.set_len(length).map_err(cannot())?;
        fault::point("truncated").map_err(cannot())?;
        self.file.sync_all().map_err(cannot())
    }

    /// The hash state after the first `length` bytes.
    pub(super) fn hash(&self, length: u64) -> Result<blake3::Hasher, DiskError> {
        hash_of(&self.file, length).map_err(io_error(&self.path, "read the file"))
    }

    pub(super) fn read_at(&self, offset: u64, length: usize) -> Result<Vec<u8>, DiskError> {
        let mut bytes = vec![0; length];
        self.file.read_exact_at(&mut bytes, offset).map_err(io_error(&self.path, "read the file"))?;
        Ok(bytes)
    }
}

/// The hash state after the first `length` bytes of an open file.
pub(super) fn hash_of(file: &File, length: u64) -> io::Result<blake3::Hasher> {
    let mut hasher = blake3::Hasher::new();
    read::each_chunk(file, length, |chunk| {
        hasher.update(chunk);
    })?;
    Ok(hasher)
}

/// The file that a path names behind all symbolic links.
pub(super) fn resolve(path: &Path) -> Result<PathBuf, DiskError> {
    match std::fs::canonicalize(path) {
        Ok(real) => Ok(real),
        Err(error) if error.kind() == io::ErrorKind::NotFound => match std::fs::symlink_metadata(path) {
            Ok(_) => Err(DiskError::DanglingLink { path: path.to_owned() }),
            Err(_) => Err(DiskError::NotFound { path: path.to_owned() }),
        },
        Err(error) => Err(io_error(path, "find the file")(error)),
    }
}

/// Opens the file for writing and locks it, waiting up to two seconds for another sesstool.
pub(super) fn lock(path: &Path) -> Result<Locked, DiskError> {
    let real = resolve(path)?;
    let metadata = std::fs::metadata(&real).map_err(io_error(path, "read the file"))?;
    if !metadata.is_file() {
        return Err(DiskError::NotAFile { path: path.to_owned() });
    }
    // The system lets root write to such a file; whoever made it so did not want that.
    if metadata.permissions().readonly() {
        return Err(DiskError::ReadOnly { path: path.to_owned() });
    }
    let file = OpenOptions::new()
        .read(true)
        .append(true)
        .open(&real)
        .map_err(io_error(path, "open the file for writing"))?;
    let start = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => break,
            Err(TryLockError::WouldBlock) if start.elapsed() < LOCK_WAIT => {
                std::thread::sleep(Duration::from_millis(10));
            }
            Err(TryLockError::WouldBlock) => return Err(DiskError::Busy { path: path.to_owned() }),
            // Some network file systems have no locks; the fingerprint still guards.
            Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => break,
            Err(TryLockError::Error(error)) => return Err(io_error(path, "lock the file")(error)),
        }
    }
    let locked = Locked { file, path: real };
    // The lock may have come free because its holder put a new file in this place.
    let ours = locked.fingerprint()?;
    let named = std::fs::symlink_metadata(&locked.path).map_err(io_error(path, "read the file"))?;
    if (named.dev(), named.ino()) != (ours.device, ours.inode) {
        return Err(DiskError::Changed { path: path.to_owned() });
    }
    Ok(locked)
}

/// Makes the entries of a folder durable.
pub(super) fn sync_folder(of: &Path) -> io::Result<()> {
    let folder = of.parent().filter(|it| !it.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()
}

/// Writes everything at the end of a file opened for appending. On failure says how many bytes went out before it.
pub(super) fn write_out(file: &File, bytes: &[u8]) -> Result<(), (usize, io::Error)> {
    let mut written = 0;
    while written < bytes.len() {
        match fault::write(file, &bytes[written..]) {
            Ok(0) => return Err((written, io::ErrorKind::WriteZero.into())),
            Ok(n) => written += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err((written, error)),
        }
    }
    Ok(())
}

/// Gives a new file the mode and the owner of another.
pub(super) fn copy_attributes(from: &Metadata, to: &File) -> io::Result<()> {
    let now = to.metadata()?;
    if (now.uid(), now.gid()) != (from.uid(), from.gid()) {
        std::os::unix::fs::fchown(to, Some(from.uid()), Some(from.gid()))?;
    }
    to.set_permissions(from.permissions())
}

//! Reading: a whole file, a stream of chunks, or a few ranges; each with the fingerprint of what was read.

use super::buffer::Buffer;
use super::error::{DiskError, io_error};
use super::guard::{Fingerprint, resolve};
use std::cell::RefCell;
use std::fs::File;
use std::io::{self, Read};
use std::ops::{ControlFlow, Deref};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// The size of the chunks that [`stream`] hands out, in bytes.
const CHUNK: usize = 256 * 1024;

thread_local! {
    static BUFFER: RefCell<Option<Buffer>> = const { RefCell::new(None) };
}

/// A whole file in memory, and which file it was. Derefs to its bytes.
pub struct FileBytes {
    buffer: Buffer,
    fingerprint: Option<Fingerprint>,
}

impl FileBytes {
    /// Which file these bytes are; none if they came from a pipe.
    pub fn fingerprint(&self) -> Option<&Fingerprint> {
        self.fingerprint.as_ref()
    }
}

impl Deref for FileBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.buffer.as_slice()
    }
}

impl std::fmt::Debug for FileBytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FileBytes")
            .field("length", &self.len())
            .field("fingerprint", &self.fingerprint)
            .finish()
    }
}

/// Reads the file as long as it is when opened: what a live agent appends meanwhile is not in it, and a later write
/// with this fingerprint fails with [`DiskError::Changed`].
pub fn whole(path: &Path) -> Result<FileBytes, DiskError> {
    let (file, fingerprint) = open(path)?;
    let length = usize::try_from(fingerprint.length)
        .map_err(|_| io_error(path, "read the file")(io::ErrorKind::FileTooLarge.into()))?;
    let mut buffer = Buffer::new(length).map_err(io_error(path, "read the file"))?;
    (&file).read_exact(buffer.as_mut()).map_err(cut_short(path))?;
    verify(path, &file, &fingerprint)?;
    Ok(FileBytes { buffer, fingerprint: Some(fingerprint) })
}

/// Reads to the end of a pipe or of standard input; there is no file to write back to.
pub fn from_reader(mut reader: impl Read) -> io::Result<FileBytes> {
    let mut bytes = Vec::new();
    reader.read_to_end(&mut bytes)?;
    Ok(FileBytes { buffer: Buffer::from(bytes), fingerprint: None })
}

/// Hands the file to `on_chunk` in pieces of at most 256 KiB until it breaks or the file ends, as long as it was
/// when opened. The buffer is kept for the next file of this thread.
pub fn stream(
    path: &Path,
    mut on_chunk: impl FnMut(&[u8]) -> ControlFlow<()>,
) -> Result<Fingerprint, DiskError> {
    let (file, fingerprint) = open(path)?;
    // Taken out, so that `on_chunk` may itself read a file.
    let mut buffer = BUFFER.take().unwrap_or_else(|| Buffer::small(CHUNK));
    let result = chunks(&file, fingerprint.length, &mut buffer, &mut on_chunk);
    BUFFER.set(Some(buffer));
    result.map_err(cut_short(path))?;
    verify(path, &file, &fingerprint)?;
    Ok(fingerprint)
}

/// A file whose ranges are fetched on demand, for commands that index first and then need only a few lines.
#[derive(Debug)]
pub struct FileLines {
    file: File,
    path: PathBuf,
    fingerprint: Fingerprint,
}

impl FileLines {
    /// Opens the file; nothing is read yet.
    pub fn open(path: &Path) -> Result<Self, DiskError> {
        let (file, fingerprint) = open(path)?;
        Ok(Self { file, path: path.to_owned(), fingerprint })
    }

    /// Which file this is, as it was when opened.
    pub fn fingerprint(&self) -> &Fingerprint {
        &self.fingerprint
    }

    /// Replaces what is in `into` by `length` bytes from `offset`. Fails with [`DiskError::Changed`] if the file is
    /// shorter by now.
    pub fn read_range(&self, offset: u64, length: usize, into: &mut Vec<u8>) -> Result<(), DiskError> {
        into.clear();
        let end = offset.checked_add(length as u64);
        if end.is_none_or(|end| end > self.fingerprint.length) {
            return Err(DiskError::Changed { path: self.path.clone() });
        }
        into.resize(length, 0);
        self.file.read_exact_at(into, offset).map_err(cut_short(&self.path))
    }

    /// Fails with [`DiskError::Changed`] if what has been read so far may be of different ages.
    pub fn verify(&self) -> Result<(), DiskError> {
        verify(&self.path, &self.file, &self.fingerprint)
    }
}

/// The part of a file around what was fetched last: records mostly stand one behind the other, and then one reading serves many.
pub struct Window<'f> {
    lines: &'f FileLines,
    buffer: Buffer,
    /// Where in the file the buffer starts, and how many bytes of it are read.
    start: u64,
    n_read: usize,
}

impl<'f> Window<'f> {
    /// Nothing is read yet.
    pub fn new(lines: &'f FileLines) -> Self {
        Self { lines, buffer: Buffer::small(CHUNK), start: 0, n_read: 0 }
    }

    /// `length` bytes from `offset`. Fails with [`DiskError::Changed`] if the file is shorter by now.
    pub fn fetch(&mut self, offset: u64, length: usize) -> Result<&[u8], DiskError> {
        let changed = || DiskError::Changed { path: self.lines.path.clone() };
        let end = offset.checked_add(length as u64).ok_or_else(changed)?;
        if offset < self.start || end > self.start + self.n_read as u64 {
            let rest = self.lines.fingerprint.length.checked_sub(offset).ok_or_else(changed)?;
            if length as u64 > rest {
                return Err(changed());
            }
            let wanted = usize::try_from(rest).unwrap_or(usize::MAX).min(length.max(CHUNK));
            if self.buffer.len() < wanted || self.buffer.len() > wanted.max(4 * CHUNK) {
                self.buffer =
                    Buffer::new(wanted.max(CHUNK)).map_err(io_error(&self.lines.path, "read the file"))?;
            }
            self.n_read = 0;
            let into = &mut self.buffer.as_mut()[..wanted];
            self.lines.file.read_exact_at(into, offset).map_err(cut_short(&self.lines.path))?;
            (self.start, self.n_read) = (offset, wanted);
        }
        let first = (offset - self.start) as usize;
        Ok(&self.buffer.as_slice()[first..first + length])
    }
}

impl std::fmt::Debug for Window<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Window").field("start", &self.start).field("n_read", &self.n_read).finish()
    }
}

/// Feeds the first `length` bytes of an open file to a callback.
pub(super) fn each_chunk(file: &File, length: u64, mut on_chunk: impl FnMut(&[u8])) -> io::Result<()> {
    each_chunk_from(file, 0, length, |chunk| {
        on_chunk(chunk);
        Ok(())
    })
}

/// Feeds the bytes from `start` to `end` to a callback that may fail.
pub(super) fn each_chunk_from(
    file: &File,
    start: u64,
    end: u64,
    mut on_chunk: impl FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<()> {
    let mut buffer = BUFFER.take().unwrap_or_else(|| Buffer::small(CHUNK));
    let mut at = start;
    let mut result = Ok(());
    while at < end && result.is_ok() {
        let wanted = usize::try_from(end - at).map_or(CHUNK, |rest| rest.min(CHUNK));
        let chunk = &mut buffer.as_mut()[..wanted];
        result = file.read_exact_at(chunk, at).and_then(|()| on_chunk(chunk));
        at += wanted as u64;
    }
    BUFFER.set(Some(buffer));
    result
}

fn chunks(
    mut file: &File,
    length: u64,
    buffer: &mut Buffer,
    on_chunk: &mut dyn FnMut(&[u8]) -> ControlFlow<()>,
) -> io::Result<()> {
    let mut left = length;
    while left > 0 {
        let wanted = usize::try_from(left).map_or(CHUNK, |left| left.min(CHUNK));
        let n = match file.read(&mut buffer.as_mut()[..wanted]) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(n) => n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if on_chunk(&buffer.as_slice()[..n]).is_break() {
            break;
        }
        left -= n as u64;
    }
    Ok(())
}

fn open(path: &Path) -> Result<(File, Fingerprint), DiskError> {
    let real = resolve(path)?;
    // Asked before opening: opening a pipe would wait for its writer.
    let kind = std::fs::metadata(&real).map_err(io_error(path, "read the file"))?;
    if !kind.is_file() {
        return Err(DiskError::NotAFile { path: path.to_owned() });
    }
    let file = File::open(&real).map_err(io_error(path, "open the file"))?;
    let metadata = file.metadata().map_err(io_error(path, "read the file"))?;
    Ok((file, Fingerprint::of(&metadata)))
}

fn verify(path: &Path, file: &File, before: &Fingerprint) -> Result<(), DiskError> {
    let metadata = file.metadata().map_err(io_error(path, "read the file"))?;
    let now = Fingerprint::of(&metadata);
    // Growth is an append behind what we read; a new time at the same length is a change within it.
    if now == *before || now.length > before.length {
        Ok(())
    } else {
        Err(DiskError::Changed { path: path.to_owned() })
    }
}

fn cut_short(path: &Path) -> impl FnOnce(io::Error) -> DiskError {
    move |error| match error.kind() {
        io::ErrorKind::UnexpectedEof => DiskError::Changed { path: path.to_owned() },
        _ => io_error(path, "read the file")(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_gives_the_bytes_of_the_file_wherever_it_stands() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("file");
        let bytes: Vec<u8> = (0..5 * CHUNK + 7).map(|n| (n * 7 / 3) as u8).collect();
        std::fs::write(&path, &bytes).expect("a file");
        let lines = FileLines::open(&path).expect("the file");
        let mut window = Window::new(&lines);
        let end = bytes.len();
        for (start, length) in [
            (0, 0),
            (0, 10),
            (CHUNK - 5, 10),
            (CHUNK, 5),
            (3, CHUNK * 4),
            (2, 1),
            (end - 3, 3),
            (0, end),
            (end, 0),
            (7, 100),
        ] {
            let fetched = window.fetch(start as u64, length).expect("within the file");
            assert!(fetched == &bytes[start..start + length], "{start} {length}");
        }
        for (start, length) in [(end - 3, 4), (end + 1, 0), (usize::MAX, 1)] {
            let result = window.fetch(start as u64, length).map(<[u8]>::len);
            assert!(matches!(result, Err(DiskError::Changed { .. })), "{start} {length}");
        }
        assert_eq!(window.fetch(0, 3).expect("within the file"), &bytes[..3]);
    }
}

//! A session file that was found: how it is read, by its bytes or as an index only.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use session_model::dialect::Dialect;
use session_model::error::{NotASession, Problem};
use session_model::reader::SessionReader;
use session_model::session::Session;
use session_model::tokens::Tokenizer;

use crate::batch::Worker;
use crate::disk::Fingerprint;
use crate::disk::read::{self, FileBytes};
use crate::exit::CommandError;
use crate::signals;

/// A file that may be a session, or standard input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionFile {
    /// As the user named it; `-` is standard input.
    pub path: PathBuf,
    /// Length when it was found; 0 for standard input.
    pub n_bytes: u64,
    /// Time of the last change, in milliseconds since 1970.
    pub modified_ms: Option<i64>,
}

/// How a session is to be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadOptions {
    /// How tokens are estimated.
    pub tokenizer: Tokenizer,
    /// A dialect that goes before the marks in the file.
    pub dialect: Option<Dialect>,
}

/// A session with the bytes that it was read from.
#[derive(Debug)]
pub struct Loaded {
    /// The whole file.
    pub bytes: FileBytes,
    /// The index of it.
    pub session: Session,
    /// What could not be taken as it stands.
    pub problems: Vec<Problem>,
}

impl SessionFile {
    /// Standard input.
    pub fn stdin() -> SessionFile {
        SessionFile { path: PathBuf::from("-"), n_bytes: 0, modified_ms: None }
    }

    /// Whether it is standard input.
    pub fn is_stdin(&self) -> bool {
        self.path == Path::new("-")
    }

    /// Reads the session in chunks and keeps its index alone: memory is bounded by its largest line and its number of
    /// entries. The fingerprint is absent for standard input.
    ///
    /// # Errors
    /// The file cannot be read, is no session, or the user stopped it.
    pub fn index(
        &self,
        options: ReadOptions,
        worker: &Worker<'_>,
    ) -> Result<(Session, Vec<Problem>, Option<Fingerprint>), CommandError> {
        let mut reader = SessionReader::new(options.tokenizer);
        let fingerprint = self.feed(&mut reader, worker, |_| {})?;
        let (session, problems) = self.finish(reader, options)?;
        Ok((session, problems, fingerprint))
    }

    /// Feeds the file to the reader in chunks, and shows each of them to `see` before; the fingerprint is absent for standard input.
    ///
    /// # Errors
    /// The file cannot be read, or the user stopped it.
    pub fn feed(
        &self,
        reader: &mut SessionReader,
        worker: &Worker<'_>,
        mut see: impl FnMut(&[u8]),
    ) -> Result<Option<Fingerprint>, CommandError> {
        let mut on_chunk = |chunk: &[u8]| {
            see(chunk);
            reader.push(chunk);
            worker.progress.add(chunk.len() as u64);
            if reader.is_refused() || worker.is_cancelled() {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        };
        let fingerprint = if self.is_stdin() {
            // One buffer of the whole: standard input cannot be asked for its length.
            let _ = on_chunk(&stdin()?);
            None
        } else {
            Some(read::stream(&self.path, on_chunk)?)
        };
        if worker.is_cancelled() {
            return Err(CommandError::interrupted());
        }
        Ok(fingerprint)
    }

    /// The whole file.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn bytes(&self) -> Result<FileBytes, CommandError> {
        if self.is_stdin() { stdin() } else { Ok(read::whole(&self.path)?) }
    }

    /// Reads the whole file and its index.
    ///
    /// # Errors
    /// As [`SessionFile::index`].
    pub fn load(&self, options: ReadOptions, worker: &Worker<'_>) -> Result<Loaded, CommandError> {
        let bytes = self.bytes()?;
        let mut reader = SessionReader::new(options.tokenizer);
        for chunk in bytes.chunks(1 << 20) {
            if worker.is_cancelled() {
                return Err(CommandError::interrupted());
            }
            reader.push(chunk);
            worker.progress.add(chunk.len() as u64);
        }
        let (session, problems) = self.finish(reader, options)?;
        Ok(Loaded { bytes, session, problems })
    }

    /// Reads the index of bytes that this file would have.
    ///
    /// # Errors
    /// They are no session.
    pub fn parse(&self, bytes: &[u8], options: ReadOptions) -> Result<Session, CommandError> {
        let mut reader = SessionReader::new(options.tokenizer);
        reader.push(bytes);
        self.finish(reader, options).map(|(session, _)| session)
    }

    fn finish(
        &self,
        reader: SessionReader,
        options: ReadOptions,
    ) -> Result<(Session, Vec<Problem>), CommandError> {
        let finished: Result<_, NotASession> = reader.finish();
        let (mut session, problems) = finished.map_err(|error| CommandError::from((&*self.path, error)))?;
        if let Some(dialect) = options.dialect {
            session.dialect = dialect;
        }
        Ok((session, problems))
    }
}

fn stdin() -> Result<FileBytes, CommandError> {
    let bytes = signals::while_waiting(|| read::from_reader(std::io::stdin().lock()));
    bytes.map_err(|error| CommandError::in_file(Path::new("-"), error))
}

//! How a run ends: [`CommandError`] in words and with a hint, one `From` per library error, and the exit statuses (spec part 7).

use std::path::Path;
use std::process::ExitCode;

use session_model::error::{NotASession, RecordError};
use session_model::text::shown;

use crate::disk::DiskError;

/// What the process tells its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// 0: done, also if there was nothing to do.
    Done,
    /// 1: some files failed; for `check`, nothing is due.
    SomeFailed,
    /// 2: wrong usage, or nothing could be run.
    Usage,
    /// 130: stopped by a signal.
    Interrupted,
}

impl Status {
    /// The number.
    pub fn code(self) -> u8 {
        match self {
            Status::Done => 0,
            Status::SomeFailed => 1,
            Status::Usage => 2,
            Status::Interrupted => 130,
        }
    }
}

impl From<Status> for ExitCode {
    fn from(status: Status) -> ExitCode {
        ExitCode::from(status.code())
    }
}

/// What a [`CommandError`] means for the whole run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// One file, or the one thing that was asked for, failed.
    Failed,
    /// A session has changed since it was read; reading it anew may help.
    Changed,
    /// The command line or the settings are wrong, or there is nothing that could be run.
    Usage,
    /// The user stopped it.
    Interrupted,
    /// Whoever read our output has gone. Not worth a word.
    PipeClosed,
}

/// One line that says what went wrong and where, and one that says what to do. Both are fit for a terminal.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct CommandError {
    /// What went wrong: lower case, no full stop, the file first.
    pub message: String,
    /// What to do about it, where there is something.
    pub hint: Option<String>,
    /// What it means for the run.
    pub kind: ErrorKind,
}

impl CommandError {
    /// A failure of one file or one thing. Control characters are spelled out.
    pub fn new(message: impl AsRef<str>) -> CommandError {
        CommandError { message: shown(message.as_ref()).into_owned(), hint: None, kind: ErrorKind::Failed }
    }

    /// A mistake in the command line or the settings; ends the run with status 2.
    pub fn usage(message: impl AsRef<str>) -> CommandError {
        CommandError { kind: ErrorKind::Usage, ..CommandError::new(message) }
    }

    /// A failure that concerns a session file. `-` is standard input.
    pub fn in_file(path: &Path, error: impl std::fmt::Display) -> CommandError {
        let name = if path == Path::new("-") { "standard input".into() } else { path.to_string_lossy() };
        CommandError::new(format!("{name}: {error}"))
    }

    /// The user stopped it.
    pub fn interrupted() -> CommandError {
        CommandError { kind: ErrorKind::Interrupted, ..CommandError::new("interrupted") }
    }

    /// Names the file, if it is an internal error, which cannot know it.
    pub(crate) fn about(self, path: &Path) -> CommandError {
        if self.message.starts_with("internal error:") {
            CommandError { hint: self.hint, ..CommandError::in_file(path, self.message) }
        } else {
            self
        }
    }

    /// With a line that says what to do.
    pub fn hint(self, hint: impl AsRef<str>) -> CommandError {
        CommandError { hint: Some(shown(hint.as_ref()).into_owned()), ..self }
    }

    /// With a hint if there is one.
    pub fn maybe_hint(self, hint: Option<impl AsRef<str>>) -> CommandError {
        match hint {
            Some(hint) => self.hint(hint),
            None => self,
        }
    }

    /// The status of a run that this error ended.
    pub fn status(&self) -> Status {
        match self.kind {
            ErrorKind::Failed | ErrorKind::Changed => Status::SomeFailed,
            ErrorKind::Usage => Status::Usage,
            ErrorKind::Interrupted => Status::Interrupted,
            ErrorKind::PipeClosed => Status::Done,
        }
    }

    /// An error of writing to standard output.
    pub(crate) fn output(error: &std::io::Error) -> CommandError {
        if error.kind() == std::io::ErrorKind::BrokenPipe {
            CommandError { kind: ErrorKind::PipeClosed, ..CommandError::new("the pipe is closed") }
        } else {
            CommandError::new(format!("standard output: {error}"))
        }
    }
}

impl From<DiskError> for CommandError {
    fn from(error: DiskError) -> CommandError {
        let hint = match &error {
            DiskError::NotAFile { .. } => Some("a pipe can be given as - on standard input"),
            other => other.hint(),
        };
        let kind = match &error {
            DiskError::Changed { .. } => ErrorKind::Changed,
            _ => ErrorKind::Failed,
        };
        CommandError { kind, ..CommandError::new(error.to_string()).maybe_hint(hint) }
    }
}

impl From<(&Path, NotASession)> for CommandError {
    fn from((path, error): (&Path, NotASession)) -> CommandError {
        CommandError::in_file(path, error).hint("a session begins with a line {\"type\":\"session\",…}")
    }
}

impl From<(&Path, RecordError)> for CommandError {
    fn from((path, error): (&Path, RecordError)) -> CommandError {
        CommandError::in_file(path, error).hint("run the command again; it reads the file anew")
    }
}

impl From<summarizer::error::SetupError> for CommandError {
    fn from(error: summarizer::error::SetupError) -> CommandError {
        CommandError::usage(&error.message).hint(&error.hint)
    }
}

impl From<(&Path, summarizer::error::Error)> for CommandError {
    fn from((path, error): (&Path, summarizer::error::Error)) -> CommandError {
        if error == summarizer::error::Error::Cancelled {
            return CommandError {
                kind: ErrorKind::Interrupted,
                ..CommandError::in_file(path, "interrupted")
            };
        }
        let hint = error.hint();
        CommandError::in_file(path, error).maybe_hint(hint)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_of_names_are_spelled_out() {
        let error = CommandError::in_file(Path::new("a\u{1b}[31m\n.jsonl"), "no such file");
        assert_eq!(error.message, "a\\u{1b}[31m\\n.jsonl: no such file");
    }

    #[test]
    fn a_closed_pipe_is_no_failure() {
        let error = CommandError::output(&std::io::ErrorKind::BrokenPipe.into());
        assert_eq!(error.status(), Status::Done);
        let error = CommandError::output(&std::io::ErrorKind::StorageFull.into());
        assert_eq!(error.status(), Status::SomeFailed);
    }
}

//! One record per session, printed as text or as JSON from the same facts, and the status that all records give.

use std::io::{self, Write};
use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;
use session_model::text::shown;

use crate::app::App;
use crate::discover::Item;
use crate::exit::{CommandError, ErrorKind, Status};
use crate::printer::Paint;

/// What a command has found out about a session, or done to it.
pub trait Facts: Serialize + JsonSchema + Send {
    /// The same for a person. Nothing of it is styled unless by `paint`; text of a session goes through
    /// [`session_model::text::shown`].
    ///
    /// # Errors
    /// `out` cannot be written.
    fn write_text(&self, out: &mut dyn Write, paint: Paint) -> io::Result<()>;
}

/// How it went with a file that could be worked on.
#[derive(Debug)]
pub enum Outcome<T> {
    /// What was asked for.
    Done(T),
    /// There was nothing to do.
    Skipped(Skipped<T>),
}

/// Why there was nothing to do (spec part 7).
#[derive(Debug)]
pub struct Skipped<T> {
    /// For programs, e.g. `already_compacted`.
    pub reason: &'static str,
    /// For people; one line, lower case.
    pub message: String,
    /// What is known nevertheless.
    pub facts: Option<T>,
}

/// One session in machine-readable output: one line of `--json`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Record<T> {
    /// The file as it was named; `-` is standard input.
    pub file: String,
    /// How it went.
    pub status: RecordStatus,
    /// Why the file was skipped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The same in words, or what went wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The facts.
    #[serde(flatten)]
    pub facts: Option<T>,
}

/// How it went with a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RecordStatus {
    /// What was asked for.
    Done,
    /// There was nothing to do.
    Skipped,
    /// It could not be done; the file is as it was.
    Failed,
}

/// Prints records one after the other and counts how they went.
#[derive(Debug)]
pub struct Reporter<'a> {
    app: &'a App,
    titled: bool,
    n_done: usize,
    n_skipped: usize,
    n_failed: usize,
    n_begun: usize,
}

impl<'a> Reporter<'a> {
    /// A reporter that prints as the flags say. With `titled`, each text has the file's name above it and a blank line
    /// between it and the one before.
    pub fn new(app: &'a App, titled: bool) -> Reporter<'a> {
        Reporter { app, titled, n_done: 0, n_skipped: 0, n_failed: 0, n_begun: 0 }
    }

    /// Prints what came out for one item; to be called in the order of the items.
    ///
    /// # Errors
    /// Standard output cannot be written.
    pub fn take<T: Facts>(
        &mut self,
        item: &Item,
        result: Result<Outcome<T>, CommandError>,
    ) -> Result<(), CommandError> {
        self.tally(item, &result);
        match &result {
            Ok(Outcome::Done(facts)) if !self.app.globals.json => self.text(item, facts)?,
            Ok(Outcome::Skipped(skipped)) if !self.app.globals.json => {
                if let Some(facts) = &skipped.facts {
                    self.text(item, facts)?;
                }
            }
            _ => {}
        }
        match &result {
            // Said once, at the end of the run.
            Err(error) if error.kind == ErrorKind::Interrupted => {}
            Err(error) => self.app.printer.error(error),
            Ok(Outcome::Skipped(skipped)) => {
                self.app.printer.say(&format!("{}: skipped: {}", named(&item.path), skipped.message));
            }
            Ok(Outcome::Done(_)) => {}
        }
        if self.app.globals.json { self.json(&Record::new(&item.path, result)) } else { Ok(()) }
    }

    /// Counts a result that the caller prints itself.
    pub fn tally<T>(&mut self, item: &Item, result: &Result<Outcome<T>, CommandError>) {
        self.n_begun += usize::from(item.file.is_ok());
        match result {
            Ok(Outcome::Done(_)) => self.n_done += 1,
            Ok(Outcome::Skipped(_)) => self.n_skipped += 1,
            Err(error) if error.kind == ErrorKind::Interrupted => {}
            Err(_) => self.n_failed += 1,
        }
    }

    /// Prints one line of JSON.
    ///
    /// # Errors
    /// Standard output cannot be written.
    pub fn json<T: Serialize>(&self, record: &Record<T>) -> Result<(), CommandError> {
        self.app.printer.data(|out| {
            serde_json::to_writer(&mut *out, record)?;
            out.write_all(b"\n")
        })
    }

    /// The status of the run: 1 if a file failed, 2 if there was none that could be begun. With `fail_on_skip`, a
    /// skipped file counts as failed.
    pub fn status(&self, fail_on_skip: bool) -> Status {
        if self.n_failed > 0 && self.n_begun == 0 {
            Status::Usage
        } else if self.n_failed > 0 || fail_on_skip && self.n_skipped > 0 {
            Status::SomeFailed
        } else {
            Status::Done
        }
    }

    fn text<T: Facts>(&self, item: &Item, facts: &T) -> Result<(), CommandError> {
        let printer = &self.app.printer;
        let is_first = self.n_done + self.n_skipped <= 1;
        printer.data(|out| {
            if self.titled {
                let gap = if is_first { "" } else { "\n" };
                writeln!(out, "{gap}{}", printer.paint().accent(named(&item.path)))?;
            }
            facts.write_text(out, printer.paint())
        })
    }
}

impl<T> Record<T> {
    /// The record of a result.
    pub fn new(path: &Path, result: Result<Outcome<T>, CommandError>) -> Record<T> {
        let mut record = Record {
            file: path.to_string_lossy().into_owned(),
            status: RecordStatus::Done,
            reason: None,
            message: None,
            hint: None,
            facts: None,
        };
        match result {
            Ok(Outcome::Done(facts)) => record.facts = Some(facts),
            Ok(Outcome::Skipped(skipped)) => {
                record.status = RecordStatus::Skipped;
                record.reason = Some(skipped.reason.to_owned());
                record.message = Some(skipped.message);
                record.facts = skipped.facts;
            }
            Err(error) => {
                record.status = RecordStatus::Failed;
                record.message = Some(error.message);
                record.hint = error.hint;
            }
        }
        record
    }
}

/// The name of a file for a person.
pub fn named(path: &Path) -> String {
    if path == Path::new("-") {
        "standard input".to_owned()
    } else {
        shown(&path.to_string_lossy()).into_owned()
    }
}

//! The event stream of `--events`: what happens while it happens, one JSON object a line (spec 6.4).

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use clap::Args;
use serde_json::{Value, json};
use summarizer::provider::Progress;

use crate::app::App;
use crate::disk;
use crate::exit::CommandError;

/// Where events go.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Events")]
pub struct EventArgs {
    /// Append events to this file as they happen, one JSON object a line; - is standard output
    #[arg(long, value_name = "FILE")]
    pub events: Option<PathBuf>,
}

/// The stream; without `--events` it takes events and drops them.
#[derive(Debug)]
pub struct Events<'a> {
    app: &'a App,
    target: Target,
}

#[derive(Debug)]
enum Target {
    Nowhere,
    StandardOutput,
    File(Mutex<std::fs::File>),
}

impl<'a> Events<'a> {
    /// Opens the stream.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub fn open(app: &'a App, args: &EventArgs) -> Result<Events<'a>, CommandError> {
        let target = match args.events.as_deref() {
            None => Target::Nowhere,
            Some(path) if path == Path::new("-") => Target::StandardOutput,
            Some(path) => Target::File(Mutex::new(disk::open_log(path).map_err(|error| CommandError {
                kind: crate::exit::ErrorKind::Usage,
                ..CommandError::from(error)
            })?)),
        };
        Ok(Events { app, target })
    }

    /// The stream of one session: its events say which.
    pub fn of<'e>(&'e self, file: &Path) -> FileEvents<'e> {
        FileEvents { events: self, file: file.to_string_lossy().into_owned() }
    }

    fn write(&self, event: &Value) {
        let mut line = event.to_string();
        line.push('\n');
        // Events accompany the work; whoever stops reading them does not stop it.
        let _ = match &self.target {
            Target::Nowhere => Ok(()),
            Target::StandardOutput => self
                .app
                .printer
                .data(|out| out.write_all(line.as_bytes()).and_then(|()| out.flush()))
                .map_err(|_| ()),
            Target::File(file) => {
                file.lock().unwrap_or_else(PoisonError::into_inner).write_all(line.as_bytes()).map_err(|_| ())
            }
        };
    }
}

/// Events of one session.
#[derive(Debug)]
pub struct FileEvents<'a> {
    events: &'a Events<'a>,
    file: String,
}

impl FileEvents<'_> {
    /// An automatic compaction begins.
    pub fn compaction_start(&self, reason: &str, action: &str) {
        self.send(json!({"type": "auto_compaction_start", "reason": reason, "action": action}));
    }

    /// An automatic compaction has ended; `fields` are those of the event beside its action.
    pub fn compaction_end(&self, action: &str, fields: Value) {
        let mut event = json!({"type": "auto_compaction_end", "action": action});
        if let (Some(event), Value::Object(fields)) = (event.as_object_mut(), fields) {
            event.extend(fields.into_iter().filter(|(_, value)| !value.is_null()));
        }
        self.send(event);
    }

    /// What happens to a request.
    pub fn progress(&self, progress: Progress<'_>) {
        let event = match progress {
            Progress::Asked { provider } => {
                json!({"type": "progress", "stage": "asked", "provider": provider})
            }
            Progress::Received { provider, text, reasoning } => json!({
                "type": "progress", "stage": "received", "provider": provider, "bytes": text, "reasoningBytes": reasoning
            }),
            Progress::RetryStart { attempt, max_attempts, wait, error } => json!({
                "type": "auto_retry_start", "attempt": attempt, "maxAttempts": max_attempts,
                "delayMs": wait.as_millis() as u64, "errorMessage": error.to_string()
            }),
            Progress::RetryEnd { attempt, error } => {
                let mut event =
                    json!({"type": "auto_retry_end", "success": error.is_none(), "attempt": attempt});
                if let Some(error) = error {
                    event["finalError"] = json!(error.to_string());
                }
                event
            }
            Progress::NextCandidate { error, next } => json!({
                "type": "progress", "stage": "next_candidate", "errorMessage": error.to_string(), "provider": next
            }),
        };
        self.send(event);
    }

    fn send(&self, mut event: Value) {
        if matches!(self.events.target, Target::Nowhere) {
            return;
        }
        event["sessionFile"] = json!(self.file);
        self.events.write(&event);
    }
}

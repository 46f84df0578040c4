//! What a person sees of a request that is under way.

use std::path::Path;

use summarizer::provider::Progress;

use crate::app::App;
use crate::batch::Worker;
use crate::figures::bytes;

/// Shows that tokens arrive, and says what went wrong on the way.
pub fn tell(app: &App, worker: &Worker<'_>, file: &Path, progress: Progress<'_>) {
    let file = file.display();
    match progress {
        Progress::Asked { provider } => worker.progress.message(&format!("{provider} is asked")),
        Progress::Received { provider, text, reasoning } => {
            let text = bytes(text as u64);
            let message = if reasoning > 0 {
                format!("{provider}: {text}, {} of reasoning", bytes(reasoning as u64))
            } else {
                format!("{provider}: {text}")
            };
            worker.progress.message(&message);
        }
        Progress::RetryStart { attempt, max_attempts, wait, error } => {
            let wait = wait.as_secs_f64();
            app.printer.say(&format!("{file}: {error}; attempt {attempt} of {max_attempts} in {wait:.0} s"));
        }
        Progress::RetryEnd { .. } => {}
        Progress::NextCandidate { error, next } => {
            app.printer.say(&format!("{file}: {error}; now asking {next}"))
        }
    }
}

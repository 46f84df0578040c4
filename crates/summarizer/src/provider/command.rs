//! A command of the user's: the remote endpoint's JSON on its standard input, the answer on its output.

use std::time::Duration;

use serde_json::Value;

use super::process::{RunError, run};
use super::reply::{Reply, Reported};
use super::{Completion, Progress, ProgressFn, Provider, Request, remote};
use crate::cancel::Cancel;
use crate::error::{Failure, ProviderError, one_line};
use crate::retry::cancelled;

/// `--summarizer-command CMD`, run by the system's shell once for each request.
#[derive(Debug, Clone)]
pub struct SummarizerCommand {
    /// The command line.
    pub command_line: String,
    /// It is killed after this long.
    pub limit: Duration,
}

const NAME: &str = "summarizer command";

impl Provider for SummarizerCommand {
    fn complete(
        &self,
        request: &Request,
        cancel: &Cancel,
        progress: &ProgressFn<'_>,
    ) -> Result<Completion, ProviderError> {
        progress(Progress::Asked { provider: NAME });
        let input = remote::question(request).to_string();
        let output =
            run(&self.command_line, input.as_bytes(), self.limit, cancel).map_err(|error| match error {
                RunError::Cancelled => cancelled(NAME),
                // A command that hangs would hang again for as long; the next candidate is asked.
                other => failed(Failure::Permanent, &other.to_string()),
            })?;
        if output.code != Some(0) {
            let how = output.code.map_or("was killed".to_owned(), |code| format!("exit status {code}"));
            return Err(failed(Failure::Permanent, &format!("{how}: {}", output.stderr)));
        }
        progress(Progress::Received { provider: NAME, text: output.stdout.len(), reasoning: 0 });
        let text = String::from_utf8_lossy(&output.stdout);
        let answer: Value = serde_json::from_str(&text)
            .map_err(|error| failed(Failure::Permanent, &format!("its output is not JSON: {error}")))?;
        let summary = remote::summary(&answer)
            .map_err(|Reported { message, .. }| failed(Failure::Permanent, &message))?;
        let reply = Reply { text: summary, ended: true, ..Reply::default() };
        reply.finish(NAME, request.max_output_tokens).map_err(|(failure, message)| failed(failure, &message))
    }

    fn name(&self) -> &str {
        NAME
    }
}

fn failed(failure: Failure, message: &str) -> ProviderError {
    let message = one_line(message.trim_end_matches([':', ' ']));
    ProviderError { provider: NAME.to_owned(), failure, message, status: None, retry_after: None }
}

//! Which errors are tried again, when, and which model is asked next (spec 5.3).

use std::time::Duration;

use crate::cancel::Cancel;
use crate::error::{Error, Failure, ProviderError, Spoken};
use crate::provider::{Completion, Progress, ProgressFn, Provider, Request};

/// `retry.enabled`, `retry.maxRetries` and `retry.baseDelayMs` (spec 3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetrySettings {
    /// Whether anything is tried again on the same model.
    pub enabled: bool,
    /// How often, after the first attempt.
    pub max_retries: u32,
    /// Wait before the first retry; each further one waits twice as long.
    pub base_delay: Duration,
}

impl Default for RetrySettings {
    fn default() -> Self {
        Self { enabled: true, max_retries: 3, base_delay: Duration::from_millis(2000) }
    }
}

/// A wait longer than this is not waited for if there is another candidate.
const LONGEST_WAIT_WITH_ANOTHER: Duration = Duration::from_secs(30);
/// A wait longer than this is not waited for at all: a person would think that the program hangs.
const LONGEST_WAIT: Duration = Duration::from_secs(3600);

/// The time, and waiting for it. The tests' clock does not wait.
pub trait Clock: Send + Sync {
    /// Milliseconds since 1970.
    fn now_ms(&self) -> u64;

    /// Waits, unless `cancel` is turned before; returns whether it was.
    fn sleep(&self, wait: Duration, cancel: &Cancel) -> bool {
        cancel.sleep(wait)
    }
}

/// Models in the order in which they are asked.
pub struct Candidates<'a> {
    /// The models; the first is asked first.
    pub providers: &'a [Box<dyn Provider>],
    /// When to try again.
    pub settings: RetrySettings,
    /// The clock that waits are measured by.
    pub clock: &'a dyn Clock,
}

/// An answer and who gave it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The text and what it used.
    pub completion: Completion,
    /// Position of the candidate that answered.
    pub candidate: usize,
    /// What went wrong before, in order: every failed attempt, retried ones included.
    pub failures: Vec<ProviderError>,
}

impl Candidates<'_> {
    /// Asks the candidates in order until one answers.
    ///
    /// # Errors
    /// [`Error::Overflow`] as soon as a candidate says that the request is too large, [`Error::Cancelled`], or
    /// [`Error::Failed`] with the last error of each candidate.
    pub fn complete(
        &self,
        request: &Request,
        cancel: &Cancel,
        progress: &ProgressFn<'_>,
    ) -> Result<Answer, Error> {
        self.complete_from(0, request, cancel, progress)
    }

    /// As [`Candidates::complete`], leaving out the candidates before `first`: the parts of a folded request go
    /// on with the model that the first part ended at.
    ///
    /// # Errors
    /// As [`Candidates::complete`].
    pub fn complete_from(
        &self,
        first: usize,
        request: &Request,
        cancel: &Cancel,
        progress: &ProgressFn<'_>,
    ) -> Result<Answer, Error> {
        let mut failures = Vec::new();
        let mut last_of_each = Vec::new();
        for candidate in first..self.providers.len() {
            match self.ask(candidate, request, cancel, progress, &mut failures) {
                Ok(completion) => return Ok(Answer { completion, candidate, failures }),
                Err(error) => match error.failure {
                    Failure::Cancelled => return Err(Error::Cancelled),
                    Failure::Overflow { .. } => return Err(Error::Overflow { candidate, error }),
                    _ => {
                        self.next(candidate, &error, progress);
                        last_of_each.push(error);
                    }
                },
            }
        }
        if last_of_each.is_empty() { Err(Error::NoCandidate) } else { Err(Error::Failed(last_of_each)) }
    }

    /// The candidate behind `at`, after `at` has failed with `error`; whoever follows the progress is told.
    pub(crate) fn next(&self, at: usize, error: &ProviderError, progress: &ProgressFn<'_>) -> Option<usize> {
        let next = self.providers.get(at + 1)?;
        progress(Progress::NextCandidate { error, next: next.name() });
        Some(at + 1)
    }

    /// Asks one candidate, again where that may help.
    fn ask(
        &self,
        candidate: usize,
        request: &Request,
        cancel: &Cancel,
        progress: &ProgressFn<'_>,
        failures: &mut Vec<ProviderError>,
    ) -> Result<Completion, ProviderError> {
        let provider = &self.providers[candidate];
        let has_next = candidate + 1 < self.providers.len();
        let mut attempt = 0;
        loop {
            let mut result = Err(cancelled(provider.name()));
            if !cancel.is_cancelled() {
                result = provider.complete(request, cancel, progress);
            }
            // An answer that arrived together with the signal is not used: the user asked to stop.
            if cancel.is_cancelled() {
                result = Err(cancelled(provider.name()));
            }
            // Also of a retry that was cancelled while it waited: whoever was told of its start is told of its end.
            if attempt > 0 {
                progress(Progress::RetryEnd { attempt, error: result.as_ref().err() });
            }
            let error = match result {
                Ok(completion) => return Ok(completion),
                Err(error) => error,
            };
            if error.failure == Failure::Cancelled {
                return Err(error);
            }
            failures.push(error.clone());
            let wait = self.wait(&error, attempt);
            if !self.settings.enabled || attempt >= self.settings.max_retries || !is_retried(&error) {
                return Err(error);
            }
            if wait > LONGEST_WAIT || (has_next && wait > LONGEST_WAIT_WITH_ANOTHER) {
                let message = format!("{} (asks to wait {})", error.message, Spoken(wait));
                return Err(ProviderError { message, ..error });
            }
            attempt += 1;
            progress(Progress::RetryStart {
                attempt,
                max_attempts: self.settings.max_retries,
                wait,
                error: &error,
            });
            // A wait that was cut short is seen above.
            self.clock.sleep(wait, cancel);
        }
    }

    /// The longer of base · 2ⁿ and what the provider asks for.
    fn wait(&self, error: &ProviderError, attempt: u32) -> Duration {
        let own = self.settings.base_delay.saturating_mul(1_u32.checked_shl(attempt).unwrap_or(u32::MAX));
        let asked = error.retry_after.map_or(Duration::ZERO, |after| after.from(self.clock.now_ms()));
        own.max(asked)
    }
}

/// Transient failures, usage limits, and whatever says when to come back. An overflow never: the same request
/// would be too large again.
fn is_retried(error: &ProviderError) -> bool {
    match error.failure {
        Failure::Transient | Failure::UsageLimit => true,
        Failure::Overflow { .. } | Failure::Cancelled => false,
        Failure::Refused | Failure::Empty { .. } | Failure::CutOff | Failure::Auth | Failure::Permanent => {
            error.retry_after.is_some()
        }
    }
}

pub(crate) fn cancelled(provider: &str) -> ProviderError {
    ProviderError {
        provider: provider.to_owned(),
        failure: Failure::Cancelled,
        message: "cancelled".to_owned(),
        status: None,
        retry_after: None,
    }
}

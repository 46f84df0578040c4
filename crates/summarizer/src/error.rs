//! What can go wrong when a summary is asked for: one variant per thing that a caller does differently.

use std::fmt;
use std::time::Duration;

/// Why a request to the candidates gave no text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The request is larger than this candidate's window: fold it (spec 5.4) and ask again.
    #[error("{error}")]
    Overflow {
        /// Position of the candidate that said so.
        candidate: usize,
        /// What it said.
        error: ProviderError,
    },
    /// The user or a signal stopped it. Nothing is written.
    #[error("cancelled")]
    Cancelled,
    /// Every candidate failed; never empty, in the order of the attempts, one per candidate.
    #[error("{}", join(.0))]
    Failed(Vec<ProviderError>),
    /// There is no candidate to ask.
    #[error("no model to ask")]
    NoCandidate,
}

impl Error {
    /// One line that says what to do, if there is something.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Overflow { .. } => Some(Failure::Overflow { prompt_tokens: None, window: None }.hint()),
            Self::Cancelled => None,
            Self::Failed(errors) => errors.last().map(|error| error.failure.hint()),
            Self::NoCandidate => Some("name a model with --model NAME/ID, or use --summarizer embedded"),
        }
    }
}

fn join(errors: &[ProviderError]) -> String {
    errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// One failed request to one provider.
///
/// The message never holds a key: what a provider echoes is blanked before it gets here.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{provider}: {message}")]
pub struct ProviderError {
    /// Who failed, e.g. `anthropic/claude-opus-4-5`, or the host of a remote endpoint.
    pub provider: String,
    /// What a caller does about it.
    pub failure: Failure,
    /// What happened, one line without line ends or control characters.
    pub message: String,
    /// The HTTP status, if there was an answer.
    pub status: Option<u16>,
    /// How long the provider asked to wait. Any error that carries it is retried (spec 5.3).
    pub retry_after: Option<RetryAfter>,
}

/// What a caller does about a failed request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// Overloaded, rate limit, 5xx, network, time-out: the same model again after a wait.
    Transient,
    /// An allowance is used up: tried again like a transient failure.
    UsageLimit,
    /// The request is larger than the model's window: fold it.
    Overflow {
        /// Tokens of the request, if the provider said so.
        prompt_tokens: Option<u64>,
        /// Tokens of the window, if the provider said so.
        window: Option<u64>,
    },
    /// The model would not answer, or did something other than answer (D7).
    Refused,
    /// The answer has no text (D7).
    Empty {
        /// There was reasoning, but nothing after it.
        only_reasoning: bool,
    },
    /// The answer was cut at the output limit (D7).
    CutOff,
    /// The key is missing or wrong, or may not do this.
    Auth,
    /// Anything else: asking the same again gives the same.
    Permanent,
    /// The request was stopped by [`crate::cancel::Cancel`].
    Cancelled,
}

impl Failure {
    /// One line that says what to do.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Transient => "try again later, or give a second --model to fall back to",
            Self::UsageLimit => "wait until the limit resets, or give a second --model to fall back to",
            Self::Overflow { .. } => "give the window with --context-window so that the request is divided",
            Self::Refused => "try another model with --model",
            Self::Empty { .. } => "try another model with --model, one that does not only reason",
            Self::CutOff => "raise compaction.reserveTokens, or use a model that reasons less",
            Self::Auth => "check the key in the provider's environment variable",
            Self::Permanent => "check the model's name and --base-url",
            Self::Cancelled => "nothing was written",
        }
    }
}

/// When a provider wants to be asked again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryAfter {
    /// After this long.
    In(Duration),
    /// At this time, in milliseconds since 1970.
    At(u64),
}

impl RetryAfter {
    /// How long to wait if it is now `now_ms` (milliseconds since 1970); zero if the time has passed.
    pub fn from(self, now_ms: u64) -> Duration {
        match self {
            Self::In(wait) => wait,
            Self::At(time) => Duration::from_millis(time.saturating_sub(now_ms)),
        }
    }
}

/// A candidate that cannot be set up: a mistake in a name, an address or a key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct SetupError {
    /// What is wrong, one line.
    pub message: String,
    /// What to do.
    pub hint: String,
}

impl SetupError {
    pub(crate) fn new(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { message: message.into(), hint: hint.into() }
    }
}

/// Text from outside made fit for one line: no control characters, bounded length.
pub(crate) fn one_line(text: &str) -> String {
    const MOST: usize = 400;
    let mut line = String::new();
    for word in text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty()) {
        if !line.is_empty() {
            line.push(' ');
        }
        if line.len() + word.len() > MOST {
            line.extend(word.chars().take(MOST.saturating_sub(line.len())));
            line.push('…');
            break;
        }
        line.push_str(word);
    }
    line
}

/// Writes a duration for a person: `2 s`, `1.5 s`, `3 min`.
pub(crate) struct Spoken(pub(crate) Duration);

impl fmt::Display for Spoken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.as_secs_f64();
        if seconds < 1.0 {
            write!(f, "{} ms", self.0.as_millis())
        } else if seconds < 120.0 {
            write!(f, "{} s", (seconds * 10.0).round() / 10.0)
        } else {
            write!(f, "{} min", (seconds / 60.0).ceil())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_of_many_lines_becomes_one() {
        assert_eq!(one_line("a\r\n  b\u{1b}[31m c\t\0d"), "a b [31m c d");
    }

    #[test]
    fn a_long_message_is_cut_between_characters() {
        let line = one_line(&"é".repeat(1000));
        assert_eq!(line.chars().count(), 401);
        assert!(line.ends_with('…'));
    }

    #[test]
    fn durations_read_like_speech() {
        let spoken = |ms| Spoken(Duration::from_millis(ms)).to_string();
        assert_eq!(
            [spoken(20), spoken(2000), spoken(34_074), spoken(150_000)],
            ["20 ms", "2 s", "34.1 s", "3 min"]
        );
    }

    #[test]
    fn a_time_that_has_passed_is_no_wait() {
        assert_eq!(RetryAfter::At(1000).from(5000), Duration::ZERO);
        assert_eq!(RetryAfter::At(5000).from(1000), Duration::from_secs(4));
    }
}

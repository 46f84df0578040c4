//! `Provider`: one request to one model, and the table of names (spec 5.3).

mod address;
mod anthropic;
mod chat_completions;
mod classify;
mod command;
mod gemini;
mod http;
pub mod process;
mod remote;
mod reply;
mod responses;
mod retry_after;
mod sse;
mod table;

use std::time::Duration;

use crate::cancel::Cancel;
use crate::error::{ProviderError, SetupError};
use crate::secret::Secret;

pub use command::SummarizerCommand;
pub use remote::RemoteEndpoint;
pub use table::{ProviderName, TABLE, Wire, key_variable, provider_name};

/// One request: plain text in, plain text out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The system prompt; none is sent if it is empty.
    pub system: String,
    /// The only user message.
    pub prompt: String,
    /// The most tokens that the answer may have (spec 5.2).
    pub max_output_tokens: u64,
}

/// An answer that is complete and has text (D7).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completion {
    /// The text, without reasoning.
    pub text: String,
    /// What it used.
    pub usage: Usage,
    /// The model that answered, as the provider names it, else as it was asked for.
    pub model: String,
}

/// Tokens of one request as its provider counted them; `None` where it said nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Prompt tokens that were neither read from nor written to a cache.
    pub input: Option<u64>,
    /// Tokens of the answer, reasoning included.
    pub output: Option<u64>,
    /// Prompt tokens read from a cache.
    pub cache_read: Option<u64>,
    /// Prompt tokens written to a cache.
    pub cache_write: Option<u64>,
}

impl Usage {
    /// All prompt tokens together, or `None` if the provider named none.
    pub fn prompt(&self) -> Option<u64> {
        let parts = [self.input, self.cache_read, self.cache_write];
        parts
            .iter()
            .any(Option::is_some)
            .then(|| parts.iter().flatten().fold(0_u64, |sum, n| sum.saturating_add(*n)))
    }
}

/// What happens while a request is under way.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Progress<'a> {
    /// A request was sent to this provider.
    Asked {
        /// Its name.
        provider: &'a str,
    },
    /// Something arrived.
    Received {
        /// Who sends.
        provider: &'a str,
        /// Bytes of text so far.
        text: usize,
        /// Bytes of reasoning so far, where the provider shows it.
        reasoning: usize,
    },
    /// The same model is asked again after a wait.
    RetryStart {
        /// The first retry is 1.
        attempt: u32,
        /// How many there can be.
        max_attempts: u32,
        /// How long is waited before it.
        wait: Duration,
        /// Why.
        error: &'a ProviderError,
    },
    /// A retry has ended.
    RetryEnd {
        /// As in `RetryStart`.
        attempt: u32,
        /// `None` if it went well.
        error: Option<&'a ProviderError>,
    },
    /// A candidate has failed for good, and there is another.
    NextCandidate {
        /// Why it failed.
        error: &'a ProviderError,
        /// Who is asked now.
        next: &'a str,
    },
}

/// Who is told of progress. Called on the thread that asked.
pub type ProgressFn<'a> = dyn Fn(Progress<'_>) + Sync + 'a;

/// Something that can be asked for a summary.
pub trait Provider: Send + Sync {
    /// Asks once. Returns when the answer is complete, has failed, or `cancel` was turned.
    ///
    /// # Errors
    /// Everything other than a complete answer with text.
    fn complete(
        &self,
        request: &Request,
        cancel: &Cancel,
        progress: &ProgressFn<'_>,
    ) -> Result<Completion, ProviderError>;

    /// What it is called in reports and errors, e.g. `anthropic/claude-opus-4-5`.
    fn name(&self) -> &str;
}

/// How to reach a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelSetup {
    /// `NAME/ID`: a name of [`TABLE`], or any other with `base_url`.
    pub model: String,
    /// Another address than the table's, without the path of the call; with that path it says how the service is spoken to.
    pub base_url: Option<String>,
    /// The key; the caller reads it from the variable that [`key_variable`] names.
    pub key: Option<Secret>,
    /// Another way to speak than the table's.
    pub wire: Option<Wire>,
    /// Time limits.
    pub limits: Limits,
}

/// Time limits of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// To look up the host, and again to connect.
    pub connect: Duration,
    /// Between two pieces of an answer, and before the first. `None`: 3 minutes, and 15 for a server on this
    /// machine, which reads a long prompt without a sign of life, and for answers that come in one piece.
    pub silence: Option<Duration>,
    /// For one request from its start to its end.
    pub total: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { connect: Duration::from_secs(15), silence: None, total: Duration::from_secs(3600) }
    }
}

/// Makes a provider of a model's name and address. No request is made.
///
/// # Errors
/// If the name is not `NAME/ID`, is unknown and has no base URL, needs a key and has none, or the base URL is
/// not an address.
pub fn open(setup: &ModelSetup) -> Result<Box<dyn Provider>, SetupError> {
    let (name, id) =
        setup.model.split_once('/').filter(|(name, id)| !name.is_empty() && !id.is_empty()).ok_or_else(
            || {
                SetupError::new(
                    format!("model {:?} is not of the form NAME/ID", setup.model),
                    "for example --model anthropic/claude-sonnet-4-5",
                )
            },
        )?;
    let row = provider_name(name);
    let base_url = match (setup.base_url.as_deref(), row) {
        (Some(url), _) => url,
        (None, Some(row)) => row.base_url,
        (None, None) => {
            let known = TABLE.iter().map(|row| row.name).collect::<Vec<_>>().join(", ");
            return Err(SetupError::new(
                format!("unknown provider {name:?}"),
                format!("known are {known}; any other needs --base-url URL"),
            ));
        }
    };
    let address = address::Address::parse(base_url)?;
    if let (Some(row), None, None) = (row, &setup.key, &setup.base_url)
        && row.needs_key
    {
        return Err(SetupError::new(
            format!("no key for {name}"),
            format!("set the environment variable {}", row.key_variable),
        ));
    }
    // An address that names the call says how it is spoken to.
    let wire = setup.wire.or_else(|| address.wire()).unwrap_or_else(|| match row {
        // Proxies that stand in for the real service rarely speak Responses.
        Some(row) if row.wire == Wire::Responses && !address.same_host(row.base_url) => Wire::ChatCompletions,
        Some(row) => row.wire,
        None => Wire::ChatCompletions,
    });
    let target = http::Target::new(setup.model.clone(), address, setup.key.clone(), setup.limits);
    let id = id.to_owned();
    Ok(match wire {
        Wire::Messages => Box::new(http::HttpProvider::new(target, anthropic::Messages { id })),
        Wire::Responses => {
            let effort = crate::models::find(name, &id).and_then(|model| model.least_effort);
            Box::new(http::HttpProvider::new(target, responses::Responses { id, effort }))
        }
        Wire::ChatCompletions => {
            let form = row.map_or(chat_completions::Form::LOCAL, |row| row.form);
            Box::new(http::HttpProvider::new(target, chat_completions::ChatCompletions { id, form }))
        }
        Wire::Gemini => Box::new(http::HttpProvider::new(target, gemini::Gemini { id })),
    })
}

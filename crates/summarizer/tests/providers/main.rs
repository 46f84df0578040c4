//! Providers and candidates against a scripted server on loopback.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod candidates;
mod failures;
mod secrets;
mod server;
mod setups;
mod wires;

use std::time::Duration;

use summarizer::cancel::Cancel;
use summarizer::error::ProviderError;
use summarizer::provider::{Completion, Limits, ModelSetup, Provider, Request, Wire, open};
use summarizer::secret::Secret;

/// A key that no error may show.
const KEY: &str = "sk-test-0123456789abcdef";

fn request() -> Request {
    Request { system: "Summarise.".to_owned(), prompt: "<conversation>".to_owned(), max_output_tokens: 1000 }
}

/// Short enough for a test that waits for them, and long enough for a busy machine.
fn limits() -> Limits {
    Limits {
        connect: Duration::from_secs(20),
        silence: Some(Duration::from_secs(20)),
        total: Duration::from_secs(60),
    }
}

fn provider(model: &str, url: &str, wire: Wire) -> Box<dyn Provider> {
    with_limits(model, url, wire, limits())
}

fn with_limits(model: &str, url: &str, wire: Wire, limits: Limits) -> Box<dyn Provider> {
    open(&ModelSetup {
        model: model.to_owned(),
        base_url: Some(url.to_owned()),
        key: Secret::new(KEY).unwrap(),
        wire: Some(wire),
        limits,
    })
    .unwrap()
}

fn ask(provider: &dyn Provider) -> Result<Completion, ProviderError> {
    provider.complete(&request(), &Cancel::new(), &|_| {})
}

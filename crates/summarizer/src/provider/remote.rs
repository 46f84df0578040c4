//! A remote endpoint: `{"systemPrompt","prompt"}` is posted, `{"summary"}` comes back.

use serde_json::{Value, json};

use super::address::Address;
use super::http::{HttpProvider, Speaks, Target};
use super::reply::{Reply, Reported};
use super::{Completion, Limits, ProgressFn, Provider, Request};
use crate::cancel::Cancel;
use crate::error::{ProviderError, SetupError};

/// A service that summarises (`compaction.remoteEndpoint`). It gets no key.
pub struct RemoteEndpoint(HttpProvider<Endpoint>);

impl RemoteEndpoint {
    /// # Errors
    /// If `url` is not an address.
    pub fn new(url: &str, limits: Limits) -> Result<Self, SetupError> {
        let address = Address::parse(url)?;
        let label = format!("remote endpoint {}", address.host());
        Ok(Self(HttpProvider::new(Target::new(label, address, None, limits), Endpoint)))
    }
}

impl Provider for RemoteEndpoint {
    fn complete(
        &self,
        request: &Request,
        cancel: &Cancel,
        progress: &ProgressFn<'_>,
    ) -> Result<Completion, ProviderError> {
        self.0.complete(request, cancel, progress)
    }

    fn name(&self) -> &str {
        self.0.name()
    }
}

struct Endpoint;

impl Speaks for Endpoint {
    fn model(&self) -> &'static str {
        "remote"
    }

    fn streams(&self) -> bool {
        false
    }

    fn call(&self, address: &Address, request: &Request) -> (String, Value) {
        (address.whole(), question(request))
    }

    fn piece(&self, _reply: &mut Reply, _piece: &Value) -> Result<(), Reported> {
        Err(Reported { message: "a stream where an object was expected".to_owned(), ..Reported::default() })
    }

    fn whole(&self, reply: &mut Reply, answer: &Value) -> Result<(), Reported> {
        reply.text = summary(answer)?;
        reply.ended = true;
        Ok(())
    }
}

/// What is asked, for the endpoint and the command alike.
pub(super) fn question(request: &Request) -> Value {
    json!({"systemPrompt": request.system, "prompt": request.prompt})
}

/// The summary in an answer; other fields are allowed.
pub(super) fn summary(answer: &Value) -> Result<String, Reported> {
    match answer["summary"].as_str() {
        Some(text) => Ok(text.to_owned()),
        None => Err(Reported {
            message: "the answer has no string \"summary\"".to_owned(),
            ..Reported::default()
        }),
    }
}

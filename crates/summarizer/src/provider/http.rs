//! Requests over HTTP: sent on a thread of their own so that cancelling returns at once, whatever they wait for.

use std::io::Read;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;
use ureq::Agent;
use ureq::config::AutoHeaderValue;
use ureq::tls::{RootCerts, TlsConfig};

use super::address::Address;
use super::classify::{Verdict, classify, classify_in_stream};
use super::reply::{Reply, Reported};
use super::retry_after::Headers;
use super::sse::Events;
use super::{Completion, Limits, Progress, ProgressFn, Provider, Request};
use crate::cancel::Cancel;
use crate::error::{Failure, ProviderError, one_line};
use crate::retry::cancelled;
use crate::secret::Secret;

/// The most bytes of an answer that are read: far above any summary, far below what hurts.
const LARGEST_ANSWER: usize = 64 << 20;
/// The most bytes of an error's body that are read.
const LARGEST_ERROR: usize = 64 << 10;
/// How many redirects on one host are followed.
const MOST_REDIRECTS: u32 = 5;

/// What one way of speaking knows: how to ask, and what arrives.
pub(crate) trait Speaks: Send + Sync {
    /// The model's id.
    fn model(&self) -> &str;

    /// Whether the answer comes in pieces.
    fn streams(&self) -> bool {
        true
    }

    /// The address and body of a request.
    fn call(&self, address: &Address, request: &Request) -> (String, Value);

    /// The header that carries the key: its name, and what stands before the key.
    fn key_header(&self) -> (&'static str, &'static str) {
        ("authorization", "Bearer ")
    }

    /// Further headers.
    fn headers(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    /// A simpler body, if the provider does not understand something that it can do without.
    fn simpler(&self, _body: &Value, _message: &str) -> Option<Value> {
        None
    }

    /// A piece of a streamed answer.
    fn piece(&self, reply: &mut Reply, piece: &Value) -> Result<(), Reported>;

    /// An answer that came whole.
    fn whole(&self, reply: &mut Reply, answer: &Value) -> Result<(), Reported>;
}

/// Where requests go, with what key, and how long they may take.
pub(crate) struct Target {
    label: String,
    address: Address,
    key: Option<Secret>,
    limits: Limits,
}

impl Target {
    pub(crate) fn new(label: String, address: Address, key: Option<Secret>, limits: Limits) -> Self {
        Self { label, address, key, limits }
    }
}

/// A provider that is asked over HTTP.
pub(crate) struct HttpProvider<S> {
    target: Target,
    speaks: S,
    /// The connections; a new set after each cancellation, which closes the old one for good.
    agent: Mutex<Option<Agent>>,
}

enum Event {
    Head { status: u16, headers: Headers },
    Bytes(Vec<u8>),
    End(Result<(), Fault>),
    Cancelled,
}

struct Fault {
    failure: Failure,
    message: String,
}

/// How an answer comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Pieces,
    Whole,
}

impl Form {
    /// As the first bytes tell, if they hold something: no event begins with a bracket.
    fn of(bytes: &[u8]) -> Option<Self> {
        let first = bytes.iter().find(|byte| !byte.is_ascii_whitespace())?;
        Some(if matches!(first, b'{' | b'[') { Self::Whole } else { Self::Pieces })
    }
}

impl<S: Speaks> Provider for HttpProvider<S> {
    fn complete(
        &self,
        request: &Request,
        cancel: &Cancel,
        progress: &ProgressFn<'_>,
    ) -> Result<Completion, ProviderError> {
        if cancel.is_cancelled() {
            return Err(cancelled(self.name()));
        }
        progress(Progress::Asked { provider: self.name() });
        let (mut url, mut body) = self.speaks.call(&self.target.address, request);
        let mut at = self.target.address.clone();
        let mut redirects = 0;
        let mut simpler_tried = false;
        loop {
            let events = self.send(&url, &body, cancel)?;
            let (status, headers) = self.head(&events.receiver)?;
            match status {
                200..=299 => return self.read(&events.receiver, &headers, request, progress),
                300..=399 => {
                    redirects += 1;
                    at = self.redirect(&at, status, &headers, redirects)?;
                    url = at.whole();
                }
                _ => {
                    let error_body = self.error_body(&events.receiver)?;
                    let verdict = classify(status, &headers, &error_body);
                    if verdict.failure == Failure::Permanent
                        && !simpler_tried
                        && let Some(simpler) = self.speaks.simpler(&body, &verdict.message)
                    {
                        simpler_tried = true;
                        body = simpler;
                        continue;
                    }
                    return Err(self.error(verdict, Some(status)));
                }
            }
        }
    }

    fn name(&self) -> &str {
        &self.target.label
    }
}

/// What a request sends back, for as long as it is listened to.
struct Listening {
    receiver: Receiver<Event>,
    _guard: crate::cancel::CancelGuard,
}

impl<S: Speaks> HttpProvider<S> {
    pub(crate) fn new(target: Target, speaks: S) -> Self {
        Self { target, speaks, agent: Mutex::new(None) }
    }

    fn agent(&self) -> Agent {
        let mut agent = self.agent.lock().unwrap_or_else(PoisonError::into_inner);
        agent.get_or_insert_with(|| self.new_agent()).clone()
    }

    fn silence(&self) -> Duration {
        self.target.limits.silence.unwrap_or_else(|| {
            let patient = self.target.address.is_loopback() || !self.speaks.streams();
            Duration::from_secs(if patient { 900 } else { 180 })
        })
    }

    fn new_agent(&self) -> Agent {
        let limits = self.target.limits;
        let config = Agent::config_builder()
            .http_status_as_error(false)
            // Redirects are judged here: neither the key nor the conversation may go to another host.
            .max_redirects(0)
            .max_redirects_will_error(false)
            .timeout_resolve(Some(limits.connect))
            .timeout_connect(Some(limits.connect))
            .timeout_per_read(Some(self.silence()))
            .timeout_per_write(Some(self.silence()))
            .timeout_global(Some(limits.total))
            .user_agent(concat!("sesstool/", env!("CARGO_PKG_VERSION")))
            .accept_encoding(AutoHeaderValue::None)
            .tls_config(TlsConfig::builder().root_certs(RootCerts::PlatformVerifier).build());
        // The proxies of the environment would be used for this machine too.
        let config = if self.target.address.is_loopback() { config.proxy(None) } else { config };
        config.build().new_agent()
    }

    /// Starts a request on a thread of its own.
    fn send(&self, url: &str, body: &Value, cancel: &Cancel) -> Result<Listening, ProviderError> {
        let agent = self.agent();
        let (sender, receiver) = channel();
        let spare = self.new_agent();
        let guard = {
            let (agent, spare, sender) = (agent.clone(), spare.clone(), sender.clone());
            cancel.on_cancel(move || {
                // Nobody listens any more if this fails.
                let _ = sender.send(Event::Cancelled);
                // The spare one first: it would take over when the other stops.
                spare.shutdown();
                agent.shutdown();
            })
        };
        let mut headers: Vec<(&'static str, String)> = vec![
            ("content-type", "application/json".to_owned()),
            (
                "accept",
                if self.speaks.streams() {
                    "text/event-stream, application/json"
                } else {
                    "application/json"
                }
                .to_owned(),
            ),
        ];
        headers.extend(self.speaks.headers().iter().map(|(name, value)| (*name, (*value).to_owned())));
        if let Some(key) = &self.target.key {
            let (name, before) = self.speaks.key_header();
            headers.push((name, format!("{before}{}", key.expose())));
        }
        let url = url.to_owned();
        let body = body.to_string().into_bytes();
        let started = std::thread::Builder::new()
            .name("request".to_owned())
            .spawn(move || transmit(&agent, &spare, &url, &headers, &body, &sender));
        match started {
            Ok(_) => Ok(Listening { receiver, _guard: guard }),
            Err(error) => Err(self.error(
                Verdict {
                    failure: Failure::Transient,
                    message: format!("no thread for the request: {error}"),
                    retry_after: None,
                },
                None,
            )),
        }
    }

    fn head(&self, events: &Receiver<Event>) -> Result<(u16, Headers), ProviderError> {
        match events.recv() {
            Ok(Event::Head { status, headers }) => Ok((status, headers)),
            Ok(Event::End(Err(fault))) => Err(self.fault(fault)),
            Ok(Event::Cancelled) => Err(self.was_cancelled()),
            Ok(Event::End(Ok(())) | Event::Bytes(_)) | Err(_) => Err(self.fault(Fault::broken())),
        }
    }

    /// What there is of an error's body: a part of it, or nothing, is better than no error at all.
    fn error_body(&self, events: &Receiver<Event>) -> Result<Vec<u8>, ProviderError> {
        let mut body = Vec::new();
        while let Ok(event) = events.recv() {
            match event {
                Event::Cancelled => return Err(self.was_cancelled()),
                Event::Bytes(bytes) if body.len() < LARGEST_ERROR => body.extend_from_slice(&bytes),
                Event::Bytes(_) | Event::End(_) | Event::Head { .. } => break,
            }
        }
        Ok(body)
    }

    fn redirect(
        &self,
        at: &Address,
        status: u16,
        headers: &Headers,
        redirects: u32,
    ) -> Result<Address, ProviderError> {
        let location = headers.get("location").unwrap_or_default();
        match at.follow(location) {
            Some(to) if redirects <= MOST_REDIRECTS => Ok(to),
            Some(_) => Err(self.permanent("redirected too often", Some(status))),
            None => {
                let to =
                    Address::parse(location).map_or_else(|_| "nowhere".to_owned(), |to| to.host().to_owned());
                let message = format!("redirected to {to}, which is not the host that was asked for");
                Err(self.permanent(&message, Some(status)))
            }
        }
    }

    /// Reads an answer that began well.
    fn read(
        &self,
        events: &Receiver<Event>,
        headers: &Headers,
        request: &Request,
        progress: &ProgressFn<'_>,
    ) -> Result<Completion, ProviderError> {
        let mut reply = Reply::default();
        let mut stream = Events::default();
        // Some servers answer in one piece although a stream was asked for; some do not say what they send.
        let kind = headers.get("content-type").unwrap_or_default().to_ascii_lowercase();
        let mut form = if !self.speaks.streams() || kind.contains("json") {
            Some(Form::Whole)
        } else if kind.contains("event-stream") {
            Some(Form::Pieces)
        } else {
            None
        };
        let mut body = Vec::new();
        let mut length = 0;
        let mut fault = None;
        loop {
            match events.recv() {
                Ok(Event::Bytes(bytes)) => {
                    length += bytes.len();
                    if length > LARGEST_ANSWER {
                        return Err(self.permanent("the answer is larger than 64 MiB", None));
                    }
                    form = form.or_else(|| Form::of(&bytes));
                    if form != Some(Form::Whole) {
                        let pieces =
                            stream.push(&bytes).map_err(|_| self.permanent("an event has no end", None))?;
                        for piece in &pieces {
                            self.piece(&mut reply, piece)?;
                        }
                    } else {
                        body.extend_from_slice(&bytes);
                    }
                    progress(Progress::Received {
                        provider: self.name(),
                        text: reply.text.len().max(body.len()),
                        reasoning: reply.reasoning,
                    });
                    if reply.closed {
                        break;
                    }
                }
                Ok(Event::Cancelled) => return Err(self.was_cancelled()),
                Ok(Event::End(Ok(()))) => break,
                Ok(Event::End(Err(error))) => {
                    fault = Some(error);
                    break;
                }
                Ok(Event::Head { .. }) | Err(_) => {
                    fault = Some(Fault::broken());
                    break;
                }
            }
        }
        // A connection that breaks behind the end of the answer has done its work.
        if let Some(fault) = fault
            && !reply.ended
        {
            return Err(self.fault(fault));
        }
        if form != Some(Form::Whole) {
            if let Some(piece) = stream.finish().filter(|_| !reply.closed) {
                self.piece(&mut reply, &piece)?;
            }
        } else {
            let text = String::from_utf8_lossy(&body);
            let answer: Value = serde_json::from_str(&text)
                .map_err(|error| self.unreadable(&format!("the answer is not JSON: {error}")))?;
            if let Some(reported) =
                Reported::find(&answer).filter(|_| answer.get("error").is_some_and(|it| !it.is_null()))
            {
                return Err(self.error(classify_in_stream(&reported), None));
            }
            self.speaks
                .whole(&mut reply, &answer)
                .map_err(|reported| self.error(classify_in_stream(&reported), None))?;
        }
        let completion =
            reply.finish(self.speaks.model(), request.max_output_tokens).map_err(|(failure, message)| {
                self.error(Verdict { failure, message, retry_after: None }, None)
            })?;
        Ok(match &self.target.key {
            // What is answered goes into reports and sessions.
            Some(key) => Completion {
                text: key.blank(&completion.text),
                model: key.blank(&completion.model),
                ..completion
            },
            None => completion,
        })
    }

    fn piece(&self, reply: &mut Reply, piece: &str) -> Result<(), ProviderError> {
        let piece = piece.trim();
        if piece == "[DONE]" {
            reply.ended = true;
            reply.closed = true;
            return Ok(());
        }
        if piece.is_empty() || reply.closed {
            return Ok(());
        }
        // Half an event is a connection that was cut; a whole one that is no JSON is no better.
        let value: Value = serde_json::from_str(piece)
            .map_err(|error| self.unreadable(&format!("an event is not JSON: {error}")))?;
        self.speaks.piece(reply, &value).map_err(|reported| self.error(classify_in_stream(&reported), None))
    }

    fn unreadable(&self, message: &str) -> ProviderError {
        self.fault(Fault { failure: Failure::Transient, message: message.to_owned() })
    }

    fn permanent(&self, message: &str, status: Option<u16>) -> ProviderError {
        let message = message.to_owned();
        self.error(Verdict { failure: Failure::Permanent, message, retry_after: None }, status)
    }

    fn fault(&self, fault: Fault) -> ProviderError {
        self.error(Verdict { failure: fault.failure, message: fault.message, retry_after: None }, None)
    }

    fn error(&self, verdict: Verdict, status: Option<u16>) -> ProviderError {
        let message = match &self.target.key {
            Some(key) => key.blank(&verdict.message),
            None => verdict.message,
        };
        ProviderError {
            provider: self.target.label.clone(),
            failure: verdict.failure,
            message,
            status,
            retry_after: verdict.retry_after,
        }
    }

    fn was_cancelled(&self) -> ProviderError {
        // The connections are closed for good; whoever asks next gets new ones.
        *self.agent.lock().unwrap_or_else(PoisonError::into_inner) = None;
        cancelled(self.name())
    }
}

impl Fault {
    fn broken() -> Self {
        Self { failure: Failure::Transient, message: "the connection broke".to_owned() }
    }
}

/// Sends the request and passes on what comes back. Runs on its own thread.
fn transmit(
    agent: &Agent,
    spare: &Agent,
    url: &str,
    headers: &[(&'static str, String)],
    body: &[u8],
    to: &Sender<Event>,
) {
    let mut result = post(agent, url, headers, body);
    // A kept connection that the server has closed meanwhile fails before there is an answer: once more, on
    // connections of its own.
    if result.as_ref().is_err_and(is_reset) {
        result = post(spare, url, headers, body);
    }
    let response = match result {
        Ok(response) => response,
        Err(error) => {
            let _ = to.send(Event::End(Err(fault(&error))));
            return;
        }
    };
    let fields = response.headers().iter().map(|(name, value)| {
        (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned())
    });
    let head = Event::Head { status: response.status().as_u16(), headers: Headers(fields.collect()) };
    if to.send(head).is_err() {
        return;
    }
    let mut reader = response.into_body().into_reader();
    let mut buffer = vec![0; 16 << 10];
    loop {
        let event = match reader.read(&mut buffer) {
            Ok(0) => Event::End(Ok(())),
            Ok(n) => Event::Bytes(buffer[..n].to_vec()),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => Event::End(Err(fault(&ureq::Error::from(error)))),
        };
        let last = matches!(event, Event::End(_));
        // No one listens any more once the answer is complete or has failed.
        if to.send(event).is_err() || last {
            return;
        }
    }
}

fn post(
    agent: &Agent,
    url: &str,
    headers: &[(&'static str, String)],
    body: &[u8],
) -> Result<ureq::http::Response<ureq::Body>, ureq::Error> {
    let mut request = agent.post(url);
    for (name, value) in headers {
        request = request.header(*name, value);
    }
    request.send(body)
}

fn is_reset(error: &ureq::Error) -> bool {
    use std::io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    matches!(error, ureq::Error::Io(error)
        if matches!(error.kind(), BrokenPipe | ConnectionAborted | ConnectionReset | UnexpectedEof))
}

fn fault(error: &ureq::Error) -> Fault {
    let transient = |message: String| Fault { failure: Failure::Transient, message };
    let permanent = |message: String| Fault { failure: Failure::Permanent, message };
    match error {
        ureq::Error::Timeout(what) => transient(format!("time-out: {what}")),
        ureq::Error::HostNotFound => transient("the host is not found".to_owned()),
        ureq::Error::Io(error) if error.kind() == std::io::ErrorKind::InvalidData => {
            permanent(format!("no secure connection: {}", one_line(&error.to_string())))
        }
        ureq::Error::Io(error) => transient(format!("no connection: {}", one_line(&error.to_string()))),
        ureq::Error::ConnectionFailed => transient("no connection".to_owned()),
        ureq::Error::Protocol(error) => {
            transient(format!("a broken answer: {}", one_line(&error.to_string())))
        }
        ureq::Error::Tls(_) | ureq::Error::Rustls(_) => {
            permanent(format!("no secure connection: {}", one_line(&error.to_string())))
        }
        other => permanent(one_line(&other.to_string())),
    }
}

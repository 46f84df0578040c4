//! Whom to ask for summaries, made of the settings once for all files (spec 5.3).

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use summarizer::cancel::Cancel;
use summarizer::error::{Failure, ProviderError};
use summarizer::models::{self, Model};
use summarizer::plan::ModelLimits;
use summarizer::provider::{
    self, Completion, Limits, ModelSetup, ProgressFn, Provider, RemoteEndpoint, Request, SummarizerCommand,
};
use summarizer::retry::{Candidates, RetrySettings};
use summarizer::secret::Secret;
use summarizer::summarize::RequestReport;

use crate::app::App;
use crate::base_urls::{self, BaseUrls};
use crate::exit::CommandError;
use crate::settings::{Settings, SummarySource};
use crate::stamp::RealClock;

/// Time that a summarizer command has.
const COMMAND_LIMIT: Duration = Duration::from_secs(600);

/// Where summaries come from.
pub enum Source {
    /// From the messages themselves.
    Embedded,
    /// From models, an endpoint or a command, in this order.
    Asked(Asked),
}

/// Candidates with what is known of them.
pub struct Asked {
    providers: Vec<Box<dyn Provider>>,
    /// The table's row of each candidate, where it has one.
    models: Vec<Option<&'static Model>>,
    retry: RetrySettings,
    clock: RealClock,
    /// The least window and output limit of all candidates.
    pub limits: ModelLimits,
    /// Whether the embedded summarizer takes over when all have failed.
    pub falls_back: bool,
}

impl std::fmt::Debug for Source {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.name())
    }
}

impl Source {
    /// Makes the source that the settings name. Nothing is sent.
    ///
    /// # Errors
    /// An unknown model without an address, a missing key, a bad address.
    pub fn open(app: &App, settings: &Settings) -> Result<Source, CommandError> {
        let gate = Arc::new(Gate::new(settings.concurrency()));
        let window = settings.context_window();
        let asked = |providers: Vec<Box<dyn Provider>>, models: Vec<Option<&'static Model>>| {
            let least = |of: fn(&Model) -> Option<u64>| models.iter().filter_map(|model| of((*model)?)).min();
            let limits = ModelLimits {
                window: window.or_else(|| least(|model| Some(model.window))),
                max_output: least(|model| model.max_output),
            };
            let gated = |provider| Box::new(Gated { provider, gate: Arc::clone(&gate) }) as Box<dyn Provider>;
            Source::Asked(Asked {
                providers: providers.into_iter().map(gated).collect(),
                models,
                retry: settings.retry(),
                clock: RealClock,
                limits,
                falls_back: settings.falls_back_to_embedded(),
            })
        };
        Ok(match settings.summary_source() {
            SummarySource::Embedded => Source::Embedded,
            SummarySource::Models(names) => {
                let urls = BaseUrls::of(settings, &names)?;
                let open = |name: &String| Ok(provider::open(&setup(app, &urls, name)?)?);
                let providers: Result<Vec<_>, CommandError> = names.iter().map(open).collect();
                asked(providers?, names.iter().map(|name| models::find_named(name)).collect())
            }
            SummarySource::Remote(url) => {
                asked(vec![Box::new(RemoteEndpoint::new(&url, Limits::default())?)], vec![None])
            }
            SummarySource::Command(command_line) => {
                asked(vec![Box::new(SummarizerCommand { command_line, limit: COMMAND_LIMIT })], vec![None])
            }
        })
    }

    /// What it is called in reports.
    pub fn name(&self) -> String {
        match self {
            Source::Embedded => "embedded".to_owned(),
            Source::Asked(asked) => {
                let names: Vec<&str> = asked.providers.iter().map(|provider| provider.name()).collect();
                names.join(", ")
            }
        }
    }
}

impl Asked {
    /// The candidates, to be asked.
    pub fn candidates(&self) -> Candidates<'_> {
        Candidates { providers: &self.providers, settings: self.retry, clock: &self.clock }
    }

    /// What the first candidate charges for so many tokens, in US dollars, where its price is known.
    pub fn estimated_price(&self, prompt_tokens: u64, output_tokens: u64) -> Option<f64> {
        let price = (*self.models.first()?)?.price?;
        Some((prompt_tokens as f64 * price.input + output_tokens as f64 * price.output) / 1e6)
    }

    /// What a request cost, in US dollars, where the price of its model is known and the provider counted.
    pub fn price(&self, request: &RequestReport) -> Option<f64> {
        let price = (*self.models.get(request.candidate)?)?.price?;
        request.usage.prompt()?;
        Some(price.of(&request.usage))
    }
}

fn setup(app: &App, urls: &BaseUrls, name: &str) -> Result<ModelSetup, CommandError> {
    let provider = base_urls::provider(name);
    let key = app.env.text(&provider::key_variable(provider));
    let key = key.map(|key| Secret::new(&key)).transpose()?.flatten();
    Ok(ModelSetup {
        model: name.to_owned(),
        base_url: urls.get(provider, key.is_some())?,
        key,
        wire: None,
        limits: Limits::default(),
    })
}

/// Lets so many requests through at the same time, whatever number of files is worked on.
struct Gate {
    free: Mutex<usize>,
    changed: Condvar,
}

impl Gate {
    fn new(n: usize) -> Gate {
        Gate { free: Mutex::new(n.max(1)), changed: Condvar::new() }
    }

    /// Waits for a place; false if `cancel` was turned before one was free.
    fn enter(&self, cancel: &Cancel) -> bool {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        while *free == 0 {
            if cancel.is_cancelled() {
                return false;
            }
            // The switch cannot wake a condition variable, so it is looked at now and then.
            let wait = Duration::from_millis(100);
            (free, _) = self.changed.wait_timeout(free, wait).unwrap_or_else(PoisonError::into_inner);
        }
        *free -= 1;
        true
    }

    fn leave(&self) {
        *self.free.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.changed.notify_one();
    }
}

/// A provider behind a gate.
struct Gated {
    provider: Box<dyn Provider>,
    gate: Arc<Gate>,
}

impl Provider for Gated {
    fn complete(
        &self,
        request: &Request,
        cancel: &Cancel,
        progress: &ProgressFn<'_>,
    ) -> Result<Completion, ProviderError> {
        if !self.gate.enter(cancel) {
            return Err(ProviderError {
                provider: self.name().to_owned(),
                failure: Failure::Cancelled,
                message: "cancelled".to_owned(),
                status: None,
                retry_after: None,
            });
        }
        let _place = Place(&self.gate);
        self.provider.complete(request, cancel, progress)
    }

    fn name(&self) -> &str {
        self.provider.name()
    }
}

/// Frees its place when it is dropped, also by a panic.
struct Place<'a>(&'a Gate);

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.leave();
    }
}

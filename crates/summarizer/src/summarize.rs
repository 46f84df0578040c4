//! Carries a plan out with a model: both parts of a split turn at once, folding where a request is too large (spec 5.3, 5.4).

use std::sync::Mutex;

use session_model::text::units;

use crate::cancel::Cancel;
use crate::error::{Error, Failure, ProviderError};
use crate::fold::{Capacity, FLOOR_TOKENS, cut_in_the_middle, estimate, windows};
use crate::plan::{Chain, Job, Plan, clip, merge};
use crate::provider::{Progress, ProgressFn, Request, Usage};
use crate::request::Kind;
use crate::retry::Candidates;

/// The summaries of a compaction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summaries {
    /// The summary without file blocks.
    pub summary: String,
    /// A few sentences.
    pub short_summary: Option<String>,
    /// What was asked for them.
    pub requests: Vec<RequestReport>,
    /// Parts that were longer than their limit and were cut.
    pub cut: Vec<Kind>,
}

/// A request that was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestReport {
    /// What it was for.
    pub kind: Kind,
    /// Position of the candidate that answered.
    pub candidate: usize,
    /// The model that answered.
    pub model: String,
    /// Tokens as the provider counted them.
    pub usage: Usage,
    /// Estimated tokens of the request.
    pub estimated_prompt: u64,
    /// What went wrong before.
    pub failures: Vec<ProviderError>,
}

/// Whom to ask, and who may stop it.
#[derive(Clone, Copy)]
pub struct Asking<'a> {
    /// The models.
    pub candidates: &'a Candidates<'a>,
    /// Stops all requests at once.
    pub cancel: &'a Cancel,
    /// Is told what happens.
    pub progress: &'a ProgressFn<'a>,
}

/// Makes the summaries of a compaction.
///
/// # Errors
/// Any request that fails: then there are no summaries (spec 5.2).
pub fn summarize(job: &Job<'_>, plan: &Plan, asking: Asking<'_>) -> Result<Summaries, Error> {
    let reports = Reports::default();
    let run = |chain: &Chain, cancel: &Cancel| run_chain(job, chain, Asking { cancel, ..asking }, &reports);
    let (history, turn_prefix) = match (&plan.history, &plan.turn_prefix) {
        (Some(history), Some(prefix)) => {
            let (history, prefix) =
                both(asking.cancel, |cancel| run(history, cancel), |cancel| run(prefix, cancel))?;
            (Some(history), Some(prefix))
        }
        (history, prefix) => {
            let one =
                |chain: &Option<Chain>| chain.as_ref().map(|chain| run(chain, asking.cancel)).transpose();
            (one(history)?, one(prefix)?)
        }
    };
    let history = match history {
        Some(summary) => summary,
        None => {
            let kept = plan.without_history.as_deref().unwrap_or_default();
            reports.clipped(Kind::History, kept, job.limit(Kind::History))
        }
    };
    let summary = merge(&history, turn_prefix.as_deref());
    let short = short(job, &plan.recent, &summary, asking, &reports)?;
    let short = reports.clipped(Kind::Short, &short, job.limit(Kind::Short));
    let Reports { requests, cut } = reports;
    Ok(Summaries {
        summary,
        short_summary: Some(short),
        requests: requests.into_inner().unwrap_or_default(),
        cut: cut.into_inner().unwrap_or_default(),
    })
}

/// Runs both at the same time. One that fails stops the other: nothing would come of what it is still to be paid for.
fn both<T: Send>(
    all: &Cancel,
    one: impl FnOnce(&Cancel) -> Result<T, Error>,
    other: impl FnOnce(&Cancel) -> Result<T, Error> + Send,
) -> Result<(T, T), Error> {
    let cancel = Cancel::new();
    let turned = cancel.clone();
    let _guard = all.on_cancel(move || turned.cancel());
    let or_stop = |result: Result<T, Error>| {
        if result.is_err() {
            cancel.cancel();
        }
        result
    };
    let (one, other) = std::thread::scope(|scope| {
        let other = scope.spawn(|| or_stop(other(&cancel)));
        let one = or_stop(one(&cancel));
        (one, other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    });
    match (one, other) {
        (Ok(one), Ok(other)) => Ok((one, other)),
        // Who was stopped says no more than that.
        (Err(Error::Cancelled), Err(error)) | (Err(error), _) | (_, Err(error)) => Err(error),
    }
}

/// Makes the summary of an abandoned branch.
///
/// # Errors
/// Any request that fails.
pub fn summarize_branch(job: &Job<'_>, chain: &Chain, asking: Asking<'_>) -> Result<Summaries, Error> {
    let reports = Reports::default();
    let summary = run_chain(job, chain, asking, &reports)?;
    let Reports { requests, cut } = reports;
    Ok(Summaries {
        summary,
        short_summary: None,
        requests: requests.into_inner().unwrap_or_default(),
        cut: cut.into_inner().unwrap_or_default(),
    })
}

#[derive(Default)]
struct Reports {
    requests: Mutex<Vec<RequestReport>>,
    cut: Mutex<Vec<Kind>>,
}

impl Reports {
    fn clipped(&self, kind: Kind, summary: &str, limit: u64) -> String {
        let (summary, was_cut) = clip(summary, limit);
        if was_cut && let Ok(mut cut) = self.cut.lock() {
            cut.push(kind);
        }
        summary
    }
}

/// Asks window after window, each with the summary so far. After an overflow the rest is divided anew, into halves.
fn run_chain(job: &Job<'_>, chain: &Chain, asking: Asking<'_>, reports: &Reports) -> Result<String, Error> {
    let frame = job.frame(chain.kind);
    let mut running = chain.previous.clone();
    let mut capacity = chain.capacity;
    let mut rest = &chain.messages[..];
    let mut candidate = 0;
    let mut is_first = true;
    loop {
        let open =
            capacity.map(
                |capacity| if is_first { capacity } else { Capacity { first: capacity.further, ..capacity } },
            );
        let window = windows(rest, open).swap_remove(0);
        let request = frame.request(chain.kind, &window.transcript, running.as_deref());
        match ask(chain.kind, &request, candidate, asking, reports) {
            Ok((summary, answered)) => {
                // Whoever answered goes on: the ones before it have failed.
                candidate = answered;
                running = Some(reports.clipped(chain.kind, &summary, job.limit(chain.kind)));
                rest = &rest[window.n_messages..];
                is_first = false;
                if rest.is_empty() {
                    return Ok(running.unwrap_or_default());
                }
            }
            Err(Error::Overflow { candidate: at, error }) => {
                match smaller(capacity, &window.transcript, &error) {
                    Some(smaller) => (candidate, capacity) = (at, Some(smaller)),
                    // No smaller request makes sense: another model may take what this one does not.
                    None => (candidate, capacity) = (after_overflow(at, error, asking)?, chain.capacity),
                }
            }
            Err(error) => return Err(error),
        }
    }
}

/// Asks for the short summary; kept messages that are too much for it lose more of their middle, down to the floor.
fn short(
    job: &Job<'_>,
    recent: &str,
    summary: &str,
    asking: Asking<'_>,
    reports: &Reports,
) -> Result<String, Error> {
    let mut shown = recent.to_owned();
    let mut first = 0;
    loop {
        match ask(Kind::Short, &job.short_request(&shown, summary), first, asking, reports) {
            Ok((short, _)) => return Ok(short),
            Err(Error::Overflow { candidate, .. }) if estimate(&shown) > FLOOR_TOKENS => {
                first = candidate;
                let length = units(&shown);
                shown = cut_in_the_middle(shown, length, (length / 2).max(FLOOR_TOKENS * 4));
            }
            Err(Error::Overflow { candidate, error }) => {
                first = after_overflow(candidate, error, asking)?;
                recent.clone_into(&mut shown);
            }
            Err(error) => return Err(error),
        }
    }
}

/// The candidate behind the one that finds the smallest request too large.
fn after_overflow(candidate: usize, error: ProviderError, asking: Asking<'_>) -> Result<usize, Error> {
    match asking.candidates.providers.get(candidate + 1) {
        Some(next) => {
            (asking.progress)(Progress::NextCandidate { error: &error, next: next.name() });
            Ok(candidate + 1)
        }
        None => Err(Error::Overflow { candidate, error }),
    }
}

/// Half of what did not fit, down to the floor; `None` if that was at the floor.
fn smaller(capacity: Option<Capacity>, transcript: &str, error: &ProviderError) -> Option<Capacity> {
    let tokens = estimate(transcript);
    let known = match error.failure {
        // The share of the request that would have fitted, by the provider's own count.
        Failure::Overflow { prompt_tokens: Some(prompt), window: Some(window) } if prompt > window => {
            tokens as u128 * u128::from(window) / u128::from(prompt)
        }
        _ => u128::from(tokens),
    };
    let most = u64::try_from(known).unwrap_or(tokens);
    let half = |room: u64| (room.min(most) / 2).max(FLOOR_TOKENS);
    let room = capacity.unwrap_or(Capacity { first: most, further: most });
    // What was sent counts, not what was planned: a window can end early because the next message is large.
    (tokens > FLOOR_TOKENS).then(|| Capacity { first: half(room.first), further: half(room.further) })
}

fn ask(
    kind: Kind,
    request: &Request,
    first: usize,
    asking: Asking<'_>,
    reports: &Reports,
) -> Result<(String, usize), Error> {
    let answer = asking.candidates.complete_from(first, request, asking.cancel, asking.progress)?;
    if let Ok(mut requests) = reports.requests.lock() {
        requests.push(RequestReport {
            kind,
            candidate: answer.candidate,
            model: answer.completion.model.clone(),
            usage: answer.completion.usage,
            estimated_prompt: estimate(&request.system) + estimate(&request.prompt),
            failures: answer.failures,
        });
    }
    Ok((answer.completion.text, answer.candidate))
}

#[cfg(test)]
mod tests {
    use compaction_core::settings::CompactionSettings;
    use session_model::prompts::Prompts;
    use session_model::value::Value;

    use super::*;
    use crate::error::Failure;
    use crate::material::Material;
    use crate::plan::ModelLimits;
    use crate::provider::{Completion, Provider};
    use crate::request::RequestOptions;
    use crate::retry::{Clock, RetrySettings};

    /// A model that takes prompts of so many bytes, and writes down how long those were that it got.
    struct Small {
        most: usize,
        asked: Mutex<Vec<usize>>,
    }

    impl Provider for &'static Small {
        fn complete(
            &self,
            request: &Request,
            _: &Cancel,
            _: &ProgressFn<'_>,
        ) -> Result<Completion, ProviderError> {
            self.asked.lock().expect("nobody panics").push(request.prompt.len());
            if request.prompt.len() > self.most {
                return Err(ProviderError {
                    provider: "small".to_owned(),
                    failure: Failure::Overflow { prompt_tokens: None, window: None },
                    message: "too long".to_owned(),
                    status: Some(400),
                    retry_after: None,
                });
            }
            let text = format!("summary of {} bytes", request.prompt.len());
            Ok(Completion { text, usage: Usage::default(), model: "small".to_owned() })
        }

        fn name(&self) -> &str {
            "small"
        }
    }

    /// Refuses the part of a turn, and takes with the history until it is stopped.
    struct Half;

    impl Provider for Half {
        fn complete(
            &self,
            request: &Request,
            cancel: &Cancel,
            _: &ProgressFn<'_>,
        ) -> Result<Completion, ProviderError> {
            let is_history = request.prompt.contains("[User]: the history");
            if is_history {
                assert!(cancel.sleep(std::time::Duration::from_secs(120)), "nobody stops it");
            }
            Err(ProviderError {
                provider: "half".to_owned(),
                failure: if is_history { Failure::Cancelled } else { Failure::Permanent },
                message: "no".to_owned(),
                status: None,
                retry_after: None,
            })
        }

        fn name(&self) -> &str {
            "half"
        }
    }

    struct Stopped;

    impl Clock for Stopped {
        fn now_ms(&self) -> u64 {
            0
        }
    }

    /// Summarises so many messages of 4000 characters; gives the outcome, how many requests were planned, and what was asked.
    fn run(
        most: usize,
        window: Option<u64>,
        n_messages: usize,
    ) -> (Result<Summaries, Error>, usize, Vec<usize>) {
        let (outcome, planned, mut asked) = run_with(&[most], window, n_messages);
        (outcome, planned, asked.swap_remove(0))
    }

    /// The same with a candidate for each of these lengths.
    fn run_with(
        most: &[usize],
        window: Option<u64>,
        n_messages: usize,
    ) -> (Result<Summaries, Error>, usize, Vec<Vec<usize>>) {
        let prompts = Prompts::default();
        let options = RequestOptions::default();
        let limits = ModelLimits { window, max_output: None };
        let job = Job::new(&prompts, &options, limits, &CompactionSettings::default());
        let json = format!(r#"{{"role":"user","content":"{}"}}"#, "word ".repeat(800));
        let message = Value::parse(&json).expect("JSON");
        let recent = vec![message.clone(); 30];
        let material = Material { history: vec![message; n_messages], recent, ..Material::default() };
        let plan = job.plan(&material, false, None);
        let planned = job.requests(&plan, &|_| String::new()).len();
        let leaked = |most: &usize| -> &'static Small {
            Box::leak(Box::new(Small { most: *most, asked: Mutex::default() }))
        };
        let models: Vec<&'static Small> = most.iter().map(leaked).collect();
        let providers: Vec<Box<dyn Provider>> =
            models.iter().map(|model| Box::new(*model) as Box<dyn Provider>).collect();
        let candidates =
            Candidates { providers: &providers, settings: RetrySettings::default(), clock: &Stopped };
        let (cancel, progress) = (Cancel::new(), |_: crate::provider::Progress<'_>| {});
        let asking = Asking { candidates: &candidates, cancel: &cancel, progress: &progress };
        let outcome = summarize(&job, &plan, asking);
        let asked = models.iter().map(|model| model.asked.lock().expect("nobody panics").clone()).collect();
        (outcome, planned, asked)
    }

    #[test]
    fn a_request_at_the_floor_that_is_too_large_goes_to_the_next_candidate() {
        let (outcome, _, asked) = run_with(&[2_000, 128_000 * 4], Some(128_000), 100);
        assert!(outcome.is_ok(), "{outcome:?}");
        assert!(asked[0].iter().all(|length| *length > 2_000) && asked[1].len() == 2, "{asked:?}");
        // Where nobody is left to ask, that is what has failed.
        let (outcome, ..) = run_with(&[2_000, 2_000], Some(128_000), 100);
        assert!(matches!(outcome, Err(Error::Overflow { candidate: 1, .. })));
    }

    #[test]
    fn a_half_of_a_split_turn_that_fails_stops_the_other() {
        let prompts = Prompts::default();
        let options = RequestOptions::default();
        let job = Job::new(&prompts, &options, ModelLimits::default(), &CompactionSettings::default());
        let message = |text: &str| {
            Value::parse(&format!(r#"{{"role":"user","content":"{text}"}}"#)).expect("JSON").into_owned()
        };
        let material = Material {
            history: vec![message("the history")],
            turn_prefix: vec![message("the turn")],
            ..Material::default()
        };
        let plan = job.plan(&material, true, None);
        let providers: Vec<Box<dyn Provider>> = vec![Box::new(Half)];
        let candidates =
            Candidates { providers: &providers, settings: RetrySettings::default(), clock: &Stopped };
        let (cancel, progress) = (Cancel::new(), |_: crate::provider::Progress<'_>| {});
        let asking = Asking { candidates: &candidates, cancel: &cancel, progress: &progress };
        let outcome = summarize(&job, &plan, asking);
        assert!(
            matches!(&outcome, Err(Error::Failed(errors)) if errors[0].failure == Failure::Permanent),
            "{outcome:?}"
        );
        assert!(!cancel.is_cancelled(), "other sessions go on");
    }

    #[test]
    fn eight_million_characters_take_as_many_requests_as_planned() {
        let (outcome, planned, asked) = run(128_000 * 4, Some(128_000), 2000);
        assert!(outcome.is_ok_and(|summaries| summaries.cut.is_empty()));
        assert!(planned > 15 && asked.len() == planned, "{planned} planned, {} made", asked.len());
    }

    #[test]
    fn a_provider_that_finds_a_planned_request_too_long_gets_halves() {
        let (outcome, planned, asked) = run(100_000, Some(128_000), 2000);
        assert!(outcome.is_ok());
        assert!(asked.len() > planned, "{planned} planned, {} made", asked.len());
        assert!(asked[0] > 100_000 && asked.last().is_some_and(|last| *last <= 100_000));
        // Nothing is lost on the way: what was answered holds every message.
        let answered: usize = asked.iter().filter(|length| **length <= 100_000).sum();
        assert!(answered > 2000 * 4000, "{answered}");
    }

    #[test]
    fn an_unknown_window_is_found_by_halving_and_the_floor_ends_in_an_error() {
        assert!(run(30_000, None, 100).0.is_ok());
        let (outcome, _, asked) = run(2_000, None, 100);
        assert!(matches!(outcome, Err(Error::Overflow { .. })));
        assert!(asked.len() < 20, "{asked:?}");
    }
}

//! Carries a plan out with a model: both parts of a split turn at once, folding where a request is too large (spec 5.3, 5.4).

use std::sync::Mutex;

use session_model::text::units;

use crate::cancel::Cancel;
use crate::error::{Error, Failure, ProviderError};
use crate::fold::{Capacity, FLOOR_TOKENS, cut_in_the_middle, estimate, windows};
use crate::plan::{Chain, Job, Plan, clip, merge};
use crate::provider::{ProgressFn, Request, Usage};
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
    let run = |chain: &Chain| run_chain(job, chain, asking, &reports);
    let (history, turn_prefix) = match (&plan.history, &plan.turn_prefix) {
        (Some(history), Some(prefix)) => {
            let (history, prefix) = both(asking, |half, asking| {
                run_chain(job, if half == 0 { history } else { prefix }, asking, &reports)
            })?;
            (Some(history), Some(prefix))
        }
        (history, prefix) => (history.as_ref().map(run).transpose()?, prefix.as_ref().map(run).transpose()?),
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

/// Runs two halves at the same time. Once one has failed there will be no summary, so the other is stopped: its tokens would be
/// paid for nothing. The error is that of the half which failed by itself.
fn both<T: Send>(
    asking: Asking<'_>,
    run: impl Fn(usize, Asking<'_>) -> Result<T, Error> + Sync,
) -> Result<(T, T), Error> {
    let halves = Cancel::new();
    let of_the_user = halves.clone();
    let _guard = asking.cancel.on_cancel(move || of_the_user.cancel());
    let run = |half| {
        let result = run(half, Asking { cancel: &halves, ..asking });
        if result.is_err() {
            halves.cancel();
        }
        result
    };
    let (first, second) = std::thread::scope(|scope| {
        let second = scope.spawn(|| run(1));
        (run(0), second.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    });
    match (first, second) {
        (Ok(first), Ok(second)) => Ok((first, second)),
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
    let mut given_up = Vec::new();
    let mut is_first = true;
    loop {
        let open =
            capacity.map(
                |capacity| if is_first { capacity } else { Capacity { first: capacity.further, ..capacity } },
            );
        let window = windows(rest, open).swap_remove(0);
        let request = frame.request(chain.kind, &window.transcript, running.as_deref());
        match ask(chain.kind, &request, candidate, asking, reports, &mut given_up) {
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
                    None => {
                        // The next one may take more: it gets what was planned, not what this one was down to.
                        candidate = give_up(at, error, asking, &mut given_up)?;
                        capacity = chain.capacity;
                    }
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
    let whole = recent;
    let mut recent = whole.to_owned();
    let mut first = 0;
    let mut given_up = Vec::new();
    loop {
        let request = job.short_request(&recent, summary);
        match ask(Kind::Short, &request, first, asking, reports, &mut given_up) {
            Ok((short, _)) => return Ok(short),
            Err(Error::Overflow { candidate, .. }) if estimate(&recent) > FLOOR_TOKENS => {
                first = candidate;
                let length = units(&recent);
                recent = cut_in_the_middle(recent, length, (length / 2).max(FLOOR_TOKENS * 4));
            }
            Err(Error::Overflow { candidate, error }) => {
                first = give_up(candidate, error, asking, &mut given_up)?;
                recent = whole.to_owned();
            }
            Err(error) => return Err(error),
        }
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

/// The candidate behind one for which even the floor is too much: to that one it is a failure like any other.
fn give_up(
    at: usize,
    error: ProviderError,
    asking: Asking<'_>,
    given_up: &mut Vec<ProviderError>,
) -> Result<usize, Error> {
    match asking.candidates.next(at, &error, asking.progress) {
        Some(next) => {
            given_up.push(error);
            Ok(next)
        }
        None if given_up.is_empty() => Err(Error::Overflow { candidate: at, error }),
        None => {
            given_up.push(error);
            Err(Error::Failed(std::mem::take(given_up)))
        }
    }
}

/// Asks once. `given_up` are errors of candidates that are no longer asked; they belong to this request's report, or its error.
fn ask(
    kind: Kind,
    request: &Request,
    first: usize,
    asking: Asking<'_>,
    reports: &Reports,
    given_up: &mut Vec<ProviderError>,
) -> Result<(String, usize), Error> {
    let answer = match asking.candidates.complete_from(first, request, asking.cancel, asking.progress) {
        Err(Error::Failed(errors)) => {
            given_up.extend(errors);
            return Err(Error::Failed(std::mem::take(given_up)));
        }
        other => other?,
    };
    given_up.extend(answer.failures);
    if let Ok(mut requests) = reports.requests.lock() {
        requests.push(RequestReport {
            kind,
            candidate: answer.candidate,
            model: answer.completion.model.clone(),
            usage: answer.completion.usage,
            estimated_prompt: estimate(&request.system) + estimate(&request.prompt),
            failures: std::mem::take(given_up),
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
        name: &'static str,
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
                    provider: self.name.to_owned(),
                    failure: Failure::Overflow { prompt_tokens: None, window: None },
                    message: "too long".to_owned(),
                    status: Some(400),
                    retry_after: None,
                });
            }
            let text = format!("summary of {} bytes", request.prompt.len());
            Ok(Completion { text, usage: Usage::default(), model: self.name.to_owned() })
        }

        fn name(&self) -> &str {
            self.name
        }
    }

    fn small(name: &'static str, most: usize) -> &'static Small {
        Box::leak(Box::new(Small { name, most, asked: Mutex::default() }))
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
        let small = small("small", most);
        let (outcome, planned) = run_with(vec![Box::new(small)], window, n_messages);
        let asked = small.asked.lock().expect("nobody panics").clone();
        (outcome, planned, asked)
    }

    /// The same of these models.
    fn run_with(
        providers: Vec<Box<dyn Provider>>,
        window: Option<u64>,
        n_messages: usize,
    ) -> (Result<Summaries, Error>, usize) {
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
        let candidates =
            Candidates { providers: &providers, settings: RetrySettings::default(), clock: &Stopped };
        let (cancel, progress) = (Cancel::new(), |_: crate::provider::Progress<'_>| {});
        let asking = Asking { candidates: &candidates, cancel: &cancel, progress: &progress };
        (summarize(&job, &plan, asking), planned)
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

    #[test]
    fn a_candidate_for_which_the_floor_is_too_much_gives_way_to_the_next() {
        let (first, second) = (small("first", 2_000), small("second", 300_000));
        let (outcome, _) = run_with(vec![Box::new(first), Box::new(second)], None, 100);
        let requests = outcome.expect("the second one takes it").requests;
        let who: Vec<_> = requests
            .iter()
            .map(|request| (request.kind, request.model.as_str(), request.failures.len()))
            .collect();
        // The second gives the short summary too, after the first has been asked for that as well.
        let asked = second.asked.lock().expect("nobody panics").clone();
        assert_eq!((who[0].1, who[0].2), ("second", 1));
        assert!(who.iter().all(|(_, model, _)| *model == "second"), "{who:?}");
        // It is asked for what was planned, not for what the first one was down to.
        assert!(asked.iter().any(|length| *length > 100_000), "{asked:?}");
    }

    #[test]
    fn when_no_candidate_takes_the_floor_the_error_names_them_all() {
        let providers: Vec<Box<dyn Provider>> =
            vec![Box::new(small("first", 2_000)), Box::new(small("second", 1_000))];
        let (outcome, _) = run_with(providers, None, 100);
        assert_eq!(outcome.expect_err("none takes it").to_string(), "first: too long; second: too long");
    }

    /// Fails at once for one half of a split turn; the other half ends only when it is stopped.
    struct HalfBroken {
        broken: &'static str,
        both_asked: std::sync::Barrier,
        stopped: Mutex<u32>,
    }

    impl Provider for &'static HalfBroken {
        fn complete(
            &self,
            request: &Request,
            cancel: &Cancel,
            _: &ProgressFn<'_>,
        ) -> Result<Completion, ProviderError> {
            self.both_asked.wait();
            let mut error = crate::retry::cancelled("half");
            if request.prompt.contains(self.broken) {
                error.failure = Failure::Permanent;
                error.message = "broken".to_owned();
            } else if cancel.sleep(std::time::Duration::from_secs(60)) {
                *self.stopped.lock().expect("nobody panics") += 1;
            }
            Err(error)
        }

        fn name(&self) -> &str {
            "half"
        }
    }

    #[test]
    fn when_one_half_of_a_split_turn_fails_the_other_is_stopped() {
        for broken in ["first half", "second half"] {
            let both_asked = std::sync::Barrier::new(2);
            let half = HalfBroken { broken, both_asked, stopped: Mutex::default() };
            let half: &'static HalfBroken = Box::leak(Box::new(half));
            let prompts = Prompts::default();
            let options = RequestOptions::default();
            let job = Job::new(&prompts, &options, ModelLimits::default(), &CompactionSettings::default());
            let message = |text: &'static str| Value::parse(text).map(|value| vec![value]).expect("JSON");
            let material = Material {
                history: message(r#"{"role":"user","content":"the first half"}"#),
                turn_prefix: message(r#"{"role":"user","content":"the second half"}"#),
                ..Material::default()
            };
            let plan = job.plan(&material, true, None);
            let providers: Vec<Box<dyn Provider>> = vec![Box::new(half)];
            let candidates =
                Candidates { providers: &providers, settings: RetrySettings::default(), clock: &Stopped };
            let (cancel, progress) = (Cancel::new(), |_: crate::provider::Progress<'_>| {});
            let asking = Asking { candidates: &candidates, cancel: &cancel, progress: &progress };
            let error = summarize(&job, &plan, asking).expect_err("a half has failed");
            assert_eq!(error.to_string(), "half: broken");
            assert_eq!(*half.stopped.lock().expect("nobody panics"), 1);
            assert!(!cancel.is_cancelled(), "the user's switch is not touched");
        }
    }
}

//! Which candidate is asked, how often, and after what wait; on a clock that does not wait.

use std::sync::Mutex;
use std::time::Duration;

use serde_json::json;
use summarizer::cancel::Cancel;
use summarizer::error::{Error, Failure, ProviderError, RetryAfter};
use summarizer::provider::{Completion, Progress, ProgressFn, Provider, Request, Usage, Wire};
use summarizer::retry::{Candidates, Clock, RetrySettings};

use crate::server::{Server, answer, json as whole};
use crate::{provider, request};

/// A candidate that plays a list of results.
struct Scripted {
    name: String,
    results: Mutex<Vec<Result<&'static str, ProviderError>>>,
    cancels: Option<Cancel>,
}

impl Provider for Scripted {
    fn complete(&self, _: &Request, _: &Cancel, _: &ProgressFn<'_>) -> Result<Completion, ProviderError> {
        if let Some(cancel) = &self.cancels {
            cancel.cancel();
        }
        let result = self.results.lock().unwrap().remove(0);
        result.map(|text| Completion {
            text: text.to_owned(),
            usage: Usage::default(),
            model: self.name.clone(),
        })
    }

    fn name(&self) -> &str {
        &self.name
    }
}

fn scripted(name: &str, results: Vec<Result<&'static str, ProviderError>>) -> Box<dyn Provider> {
    Box::new(Scripted { name: name.to_owned(), results: Mutex::new(results), cancels: None })
}

fn failure(failure: Failure, retry_after: Option<RetryAfter>) -> ProviderError {
    ProviderError {
        provider: "x".to_owned(),
        failure,
        message: format!("{failure:?}"),
        status: None,
        retry_after,
    }
}

fn transient() -> Result<&'static str, ProviderError> {
    Err(failure(Failure::Transient, None))
}

fn asks(failing: Failure, seconds: u64) -> Result<&'static str, ProviderError> {
    Err(failure(failing, Some(RetryAfter::In(Duration::from_secs(seconds)))))
}

/// Notes the waits and does not wait.
#[derive(Default)]
struct Noted {
    waits: Mutex<Vec<u64>>,
    cancels: bool,
}

impl Clock for Noted {
    fn now_ms(&self) -> u64 {
        1_000_000
    }

    fn sleep(&self, wait: Duration, cancel: &Cancel) -> bool {
        self.waits.lock().unwrap().push(u64::try_from(wait.as_millis()).unwrap());
        if self.cancels {
            cancel.cancel();
        }
        cancel.is_cancelled()
    }
}

/// What came out, and the waits in milliseconds.
#[track_caller]
fn run(
    providers: Vec<Box<dyn Provider>>,
    settings: RetrySettings,
) -> (Result<(usize, String), Error>, Vec<u64>) {
    let clock = Noted::default();
    let candidates = Candidates { providers: &providers, settings, clock: &clock };
    let result = candidates.complete(&request(), &Cancel::new(), &|_| {});
    (result.map(|answer| (answer.candidate, answer.completion.text)), clock.waits.into_inner().unwrap())
}

#[track_caller]
fn answers(providers: Vec<Box<dyn Provider>>, candidate: usize, waits: &[u64]) {
    let (result, waited) = run(providers, RetrySettings::default());
    assert_eq!((result, waited.as_slice()), (Ok((candidate, "text".to_owned())), waits));
}

#[test]
fn a_transient_failure_is_tried_again_three_times_with_growing_waits() {
    answers(
        vec![scripted("a", vec![transient(), transient(), transient(), Ok("text")])],
        0,
        &[2000, 4000, 8000],
    );
    let all = vec![scripted("a", vec![transient(), transient(), transient(), transient(), Ok("late")])];
    let (result, waits) = run(all, RetrySettings::default());
    assert_eq!(result, Err(Error::Failed(vec![failure(Failure::Transient, None)])));
    assert_eq!(waits, [2000, 4000, 8000]);
}

#[test]
fn then_the_next_candidate_is_asked() {
    let first = scripted("a", vec![transient(), transient(), transient(), transient()]);
    answers(vec![first, scripted("b", vec![Ok("text")])], 1, &[2000, 4000, 8000]);
}

#[test]
fn a_longer_wait_that_the_provider_asks_for_is_kept() {
    answers(
        vec![scripted("a", vec![asks(Failure::Transient, 1), asks(Failure::Transient, 20), Ok("text")])],
        0,
        &[2000, 20_000],
    );
    let at = Err(failure(Failure::Transient, Some(RetryAfter::At(1_000_000 + 5500))));
    answers(vec![scripted("a", vec![at, Ok("text")])], 0, &[5500]);
}

#[test]
fn a_wait_above_thirty_seconds_goes_to_the_next_candidate_if_there_is_one() {
    answers(
        vec![scripted("a", vec![asks(Failure::Transient, 31), Ok("no")]), scripted("b", vec![Ok("text")])],
        1,
        &[],
    );
    answers(
        vec![scripted("a", vec![asks(Failure::Transient, 30), Ok("text")]), scripted("b", vec![])],
        0,
        &[30_000],
    );
    answers(vec![scripted("a", vec![asks(Failure::Transient, 31), Ok("text")])], 0, &[31_000]);
}

#[test]
fn a_wait_of_hours_is_not_waited_for() {
    let (result, waits) =
        run(vec![scripted("a", vec![asks(Failure::UsageLimit, 7200)])], RetrySettings::default());
    assert_eq!(result.unwrap_err().to_string(), "x: UsageLimit (asks to wait 120 min)");
    assert_eq!(waits, [0_u64; 0]);
}

#[test]
fn whatever_asks_for_a_wait_is_tried_again() {
    for failing in [Failure::Permanent, Failure::Auth, Failure::Refused, Failure::CutOff] {
        answers(vec![scripted("a", vec![asks(failing, 3), Ok("text")])], 0, &[3000]);
    }
    let limit = Err(failure(Failure::UsageLimit, None));
    answers(vec![scripted("a", vec![limit, Ok("text")])], 0, &[2000]);
}

#[test]
fn other_failures_go_to_the_next_candidate_at_once() {
    for failing in [
        Failure::Permanent,
        Failure::Auth,
        Failure::Refused,
        Failure::CutOff,
        Failure::Empty { only_reasoning: true },
    ] {
        let first = scripted("a", vec![Err(failure(failing, None)), Ok("no")]);
        answers(vec![first, scripted("b", vec![Ok("text")])], 1, &[]);
    }
}

#[test]
fn an_overflow_goes_to_the_caller_even_when_it_asks_for_a_wait() {
    let overflow = Failure::Overflow { prompt_tokens: Some(11), window: Some(10) };
    let first = scripted("a", vec![Err(failure(Failure::Auth, None))]);
    let all = vec![first, scripted("b", vec![asks(overflow, 3), Ok("no")]), scripted("c", vec![Ok("no")])];
    let (result, waits) = run(all, RetrySettings::default());
    let error = failure(overflow, Some(RetryAfter::In(Duration::from_secs(3))));
    assert_eq!((result, waits), (Err(Error::Overflow { candidate: 1, error }), vec![]));
}

#[test]
fn retries_follow_the_settings() {
    let off = RetrySettings { enabled: false, ..RetrySettings::default() };
    let (result, waits) = run(vec![scripted("a", vec![transient(), Ok("no")])], off);
    assert_eq!((result, waits), (Err(Error::Failed(vec![failure(Failure::Transient, None)])), vec![]));

    let own = RetrySettings { enabled: true, max_retries: 1, base_delay: Duration::from_millis(10) };
    let (result, waits) = run(vec![scripted("a", vec![transient(), transient(), Ok("no")])], own);
    assert_eq!((result, waits), (Err(Error::Failed(vec![failure(Failure::Transient, None)])), vec![10]));

    let many = RetrySettings { enabled: true, max_retries: 40, base_delay: Duration::from_millis(1) };
    let results = std::iter::repeat_with(transient).take(41).collect();
    let (result, waits) = run(vec![scripted("a", results)], many);
    assert!(result.is_err());
    assert_eq!(waits.last(), Some(&(1 << 21)), "a wait above an hour ends it");
}

#[test]
fn nobody_to_ask() {
    assert_eq!(run(vec![], RetrySettings::default()), (Err(Error::NoCandidate), vec![]));
}

#[test]
fn every_candidates_last_error_is_reported() {
    let all = vec![
        scripted("a", vec![Err(failure(Failure::Auth, None))]),
        scripted("b", vec![Err(failure(Failure::CutOff, None))]),
    ];
    let (result, _) = run(all, RetrySettings::default());
    let error = result.unwrap_err();
    assert_eq!(error.to_string(), "x: Auth; x: CutOff");
    assert_eq!(error.hint(), Some("raise compaction.reserveTokens, or use a model that reasons less"));
}

#[test]
fn cancelling_ends_a_wait_and_asks_nobody_else() {
    let providers = vec![scripted("a", vec![transient(), Ok("no")]), scripted("b", vec![Ok("no")])];
    let clock = Noted { cancels: true, ..Noted::default() };
    let candidates = Candidates { providers: &providers, settings: RetrySettings::default(), clock: &clock };
    let told = Mutex::new(Vec::new());
    let tell = |progress: Progress<'_>| {
        told.lock().unwrap().push(match progress {
            Progress::RetryStart { attempt, .. } => format!("retry {attempt}"),
            Progress::RetryEnd { attempt, error } => {
                format!("retry {attempt} ended: {:?}", error.map(|error| error.failure))
            }
            other => format!("{other:?}"),
        });
    };
    assert_eq!(candidates.complete(&request(), &Cancel::new(), &tell), Err(Error::Cancelled));
    // Whoever was told that a retry begins is told that it has ended.
    assert_eq!(told.into_inner().unwrap(), ["retry 1", "retry 1 ended: Some(Cancelled)"]);
}

#[test]
fn an_answer_that_comes_with_the_cancelling_is_not_used() {
    let cancel = Cancel::new();
    let providers: Vec<Box<dyn Provider>> = vec![Box::new(Scripted {
        name: "a".to_owned(),
        results: Mutex::new(vec![Ok("text")]),
        cancels: Some(cancel.clone()),
    })];
    let clock = Noted::default();
    let candidates = Candidates { providers: &providers, settings: RetrySettings::default(), clock: &clock };
    assert_eq!(candidates.complete(&request(), &cancel, &|_| {}), Err(Error::Cancelled));
}

#[test]
fn progress_tells_of_retries_and_of_the_next_candidate() {
    let providers = vec![
        scripted("a", vec![transient(), Err(failure(Failure::CutOff, None))]),
        scripted("b", vec![transient(), Ok("text")]),
    ];
    let clock = Noted::default();
    let candidates = Candidates { providers: &providers, settings: RetrySettings::default(), clock: &clock };
    let log = Mutex::new(Vec::new());
    let tell = |progress: Progress<'_>| {
        log.lock().unwrap().push(match progress {
            Progress::RetryStart { attempt, max_attempts, wait, error } => {
                format!("retry {attempt}/{max_attempts} after {wait:?}: {error}")
            }
            Progress::RetryEnd { attempt, error } => format!("retry {attempt} ended: {}", error.is_none()),
            Progress::NextCandidate { error, next } => format!("{error}, so {next}"),
            other => format!("{other:?}"),
        });
    };
    let answer = candidates.complete(&request(), &Cancel::new(), &tell).unwrap();
    assert_eq!(
        log.into_inner().unwrap(),
        [
            "retry 1/3 after 2s: x: Transient",
            "retry 1 ended: false",
            "x: CutOff, so b",
            "retry 1/3 after 2s: x: Transient",
            "retry 1 ended: true",
        ]
    );
    assert_eq!(answer.failures.len(), 3);
}

#[test]
fn a_folded_request_goes_on_with_the_candidate_that_it_ended_at() {
    let providers = vec![scripted("a", vec![Ok("no")]), scripted("b", vec![Ok("text")])];
    let clock = Noted::default();
    let candidates = Candidates { providers: &providers, settings: RetrySettings::default(), clock: &clock };
    assert_eq!(candidates.complete_from(1, &request(), &Cancel::new(), &|_| {}).unwrap().candidate, 1);
}

#[test]
fn real_requests_are_retried_too() {
    let good = json!({"choices": [{"message": {"content": "text"}, "finish_reason": "stop"}]});
    let busy = Server::start([answer(529, &[], b""), answer(429, &[("retry-after", "40")], b"")]);
    let free = Server::start([answer(503, &[("retry-after", "9")], b""), whole(200, &good)]);
    let providers = vec![
        provider("a/m", &busy.url, Wire::ChatCompletions),
        provider("b/m", &free.url, Wire::ChatCompletions),
    ];
    let (result, waits) = run(providers, RetrySettings::default());
    assert_eq!((result, waits), (Ok((1, "text".to_owned())), vec![2000, 9000]));
    assert_eq!((busy.seen().len(), free.seen().len()), (2, 2));
}

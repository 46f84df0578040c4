//! What a failed answer means for the caller.

use compaction_core::overflow::find_overflow;
use serde_json::Value;

use super::reply::Reported;
use super::retry_after::{Headers, retry_after};
use crate::error::{Failure, RetryAfter, one_line};

/// What an error answer means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Verdict {
    pub(crate) failure: Failure,
    pub(crate) message: String,
    pub(crate) retry_after: Option<RetryAfter>,
}

/// Judges an answer with an error status. `body` may be anything.
pub(crate) fn classify(status: u16, headers: &Headers, body: &[u8]) -> Verdict {
    let text = String::from_utf8_lossy(body);
    let json: Value = serde_json::from_str(&text).unwrap_or(Value::Null);
    let reported = Reported::find(&json).unwrap_or_else(|| {
        // A page of a proxy says less than its status.
        let message = if text.trim_start().starts_with('<') { String::new() } else { text.into_owned() };
        Reported { message, body: Box::new(json), ..Reported::default() }
    });
    judge(Some(status), headers, &reported)
}

/// Judges an error that came in the middle of a stream that began well.
pub(crate) fn classify_in_stream(reported: &Reported) -> Verdict {
    judge(reported.status, &Headers::default(), reported)
}

fn judge(status: Option<u16>, headers: &Headers, reported: &Reported) -> Verdict {
    let failure = failure(status, reported);
    let rate_limited = matches!(failure, Failure::Transient | Failure::UsageLimit) && status == Some(429);
    let retry_after = retry_after(headers, &reported.body, &reported.message, rate_limited);
    let message = match (status, one_line(&reported.message)) {
        (Some(status), message) if message.is_empty() => format!("http {status}"),
        (Some(status), message) => format!("http {status}: {message}"),
        (None, message) if message.is_empty() => "the provider reports an error".to_owned(),
        (None, message) => message,
    };
    Verdict { failure, message, retry_after }
}

fn failure(status: Option<u16>, reported: &Reported) -> Failure {
    const USED_UP: &[&str] = &[
        "insufficient_quota",
        "exceeded_current_quota",
        "usage_limit",
        "usage limit",
        "current quota",
        "billing_error",
    ];
    const TRANSIENT: &[&str] = &[
        "overloaded",
        "rate_limit",
        "rate limit",
        "api_error",
        "server_error",
        "internal_error",
        "service_unavailable",
        "resource_exhausted",
        "unavailable",
        "deadline_exceeded",
        "timeout",
        "too many requests",
        "throttl",
    ];
    let words = format!("{} {}", reported.kind, reported.message.to_lowercase());
    let says = |list: &[&str]| list.iter().any(|word| words.contains(word));
    if status == Some(429) {
        return if says(USED_UP) { Failure::UsageLimit } else { Failure::Transient };
    }
    let whole = match status {
        Some(status) if reported.message.is_empty() => format!("{status} status code (no body)"),
        _ => format!("{} {}", reported.kind, reported.message),
    };
    if let Some(found) = find_overflow(&whole) {
        // llama.cpp puts the numbers beside the message.
        let beside = |name: &str| reported.body["error"][name].as_u64();
        return Failure::Overflow {
            prompt_tokens: found.prompt_tokens.or_else(|| beside("n_prompt_tokens")),
            window: found.window.or_else(|| beside("n_ctx")),
        };
    }
    match status {
        // Too large is too large, whatever limit it is that was passed: only a smaller request can pass.
        Some(413) => Failure::Overflow { prompt_tokens: None, window: None },
        Some(401 | 403) if says(USED_UP) => Failure::UsageLimit,
        Some(401 | 403) => Failure::Auth,
        // Google answers a wrong key with 400.
        Some(400) if words.contains("api key not valid") || words.contains("api_key_invalid") => {
            Failure::Auth
        }
        Some(408 | 425) => Failure::Transient,
        Some(status) if status >= 500 => Failure::Transient,
        _ if says(USED_UP) => Failure::UsageLimit,
        Some(400..=499) if reported.kind.contains("overloaded") || reported.kind.contains("rate_limit") => {
            Failure::Transient
        }
        Some(_) => Failure::Permanent,
        None if words.contains("authentication") => Failure::Auth,
        None if says(TRANSIENT) => Failure::Transient,
        None => Failure::Permanent,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[track_caller]
    fn check(status: u16, body: &str, expected: Failure) {
        assert_eq!(
            classify(status, &Headers::default(), body.as_bytes()).failure,
            expected,
            "{status} {body}"
        );
    }

    #[test]
    fn a_status_is_enough() {
        check(429, "", Failure::Transient);
        check(500, "<html>oops</html>", Failure::Transient);
        check(502, "\u{fffd}", Failure::Transient);
        check(529, "{}", Failure::Transient);
        check(408, "", Failure::Transient);
        check(401, "", Failure::Auth);
        check(403, r#"{"error":"forbidden"}"#, Failure::Auth);
        check(404, r#"{"error":"model 'x' not found"}"#, Failure::Permanent);
        check(422, r#"{"detail":[{"msg":"extra"}]}"#, Failure::Permanent);
        check(400, r#"{"error":{"message":"bad"}}"#, Failure::Permanent);
        check(400, r#"{"error":{"type":"overloaded_error","message":"later"}}"#, Failure::Transient);
    }

    #[test]
    fn a_bodyless_400_or_413_is_an_overflow() {
        check(400, "", Failure::Overflow { prompt_tokens: None, window: None });
        check(413, " \n", Failure::Overflow { prompt_tokens: None, window: None });
    }

    #[test]
    fn used_up_allowances_and_wrong_keys() {
        check(
            429,
            r#"{"error":{"code":"insufficient_quota","message":"You exceeded your current quota"}}"#,
            Failure::UsageLimit,
        );
        check(
            403,
            r#"{"error":{"message":"exceeded current quota","type":"exceeded_current_quota_error"}}"#,
            Failure::UsageLimit,
        );
        check(
            400,
            r#"{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT"}}"#,
            Failure::Auth,
        );
    }

    #[test]
    fn a_429_is_never_an_overflow() {
        check(
            429,
            r#"{"error":{"message":"prompt is too long: 11 tokens > 10 maximum"}}"#,
            Failure::Transient,
        );
    }

    #[test]
    fn an_overflow_in_a_server_error_is_one() {
        check(
            500,
            r#"{"error":{"code":500,"message":"the request exceeds the available context size","type":"exceed_context_size_error","n_prompt_tokens":1407,"n_ctx":256}}"#,
            Failure::Overflow { prompt_tokens: Some(1407), window: Some(256) },
        );
    }

    #[test]
    fn the_message_is_one_line_and_names_the_status() {
        let verdict = classify(400, &Headers::default(), b"{\"error\":{\"message\":\"a\\nb\\u001b[1m\"}}");
        assert_eq!(verdict.message, "http 400: a b [1m");
        assert_eq!(classify(503, &Headers::default(), b"<html>").message, "http 503");
    }

    #[test]
    fn errors_in_a_stream_are_judged_by_their_words() {
        let failure = |json: Value| classify_in_stream(&Reported::find(&json).unwrap()).failure;
        use serde_json::json;
        assert_eq!(
            failure(json!({"error": {"type": "overloaded_error", "message": "Overloaded"}})),
            Failure::Transient
        );
        assert_eq!(failure(json!({"error": {"code": 502, "message": "upstream"}})), Failure::Transient);
        assert_eq!(failure(json!({"error": {"code": 429, "message": "slow down"}})), Failure::Transient);
        assert_eq!(
            failure(json!({"error": {"type": "invalid_request_error", "message": "no"}})),
            Failure::Permanent
        );
        assert_eq!(
            failure(json!({"error": {"type": "authentication_error", "message": "no"}})),
            Failure::Auth
        );
    }

    #[test]
    fn any_error_can_ask_for_a_wait() {
        let headers = Headers(vec![("retry-after".to_owned(), "3".to_owned())]);
        let verdict = classify(404, &headers, b"");
        assert_eq!(
            (verdict.failure, verdict.retry_after),
            (Failure::Permanent, Some(RetryAfter::In(Duration::from_secs(3))))
        );
    }
}

//! When a provider wants to be asked again: headers, and words in the body (spec 5.3).

use std::time::Duration;

use serde_json::Value;

use crate::error::RetryAfter;

/// Header fields of an answer, names in lower case.
#[derive(Debug, Default, Clone)]
pub(crate) struct Headers(pub(crate) Vec<(String, String)>);

impl Headers {
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(field, _)| field == name).map(|(_, value)| value.trim())
    }
}

/// What the answer asks for, if anything. The limits' reset times count only for `rate_limited` answers: they
/// are sent with every answer, also with those that fail for another reason.
pub(crate) fn retry_after(
    headers: &Headers,
    body: &Value,
    message: &str,
    rate_limited: bool,
) -> Option<RetryAfter> {
    asked(headers)
        .or_else(|| in_body(body))
        .or_else(|| in_words(message))
        .or_else(|| if rate_limited { reset(headers) } else { None })
}

fn asked(headers: &Headers) -> Option<RetryAfter> {
    if let Some(ms) = headers.get("retry-after-ms").and_then(number) {
        return Some(RetryAfter::In(seconds(ms / 1000.0)));
    }
    let value = headers.get("retry-after")?;
    if let Some(after) = number(value) {
        return Some(RetryAfter::In(seconds(after)));
    }
    let time = http_date(value)?;
    // Measured by the provider's own clock where it says what it shows.
    Some(match headers.get("date").and_then(http_date) {
        Some(now) => RetryAfter::In(Duration::from_millis(time.saturating_sub(now))),
        None => RetryAfter::At(time),
    })
}

/// The latest reset among the limits that are used up.
fn reset(headers: &Headers) -> Option<RetryAfter> {
    const PAIRS: &[(&str, &str)] = &[
        ("x-ratelimit-remaining-requests", "x-ratelimit-reset-requests"),
        ("x-ratelimit-remaining-tokens", "x-ratelimit-reset-tokens"),
        ("anthropic-ratelimit-requests-remaining", "anthropic-ratelimit-requests-reset"),
        ("anthropic-ratelimit-tokens-remaining", "anthropic-ratelimit-tokens-reset"),
        ("anthropic-ratelimit-input-tokens-remaining", "anthropic-ratelimit-input-tokens-reset"),
        ("anthropic-ratelimit-output-tokens-remaining", "anthropic-ratelimit-output-tokens-reset"),
        ("x-ratelimit-remaining", "x-ratelimit-reset"),
        ("ratelimit-remaining", "ratelimit-reset"),
    ];
    let used_up =
        |remaining: &str| headers.get(remaining).is_none_or(|left| number(left).is_none_or(|n| n <= 0.0));
    PAIRS
        .iter()
        .filter(|(remaining, _)| used_up(remaining))
        .filter_map(|(_, reset)| moment(headers.get(reset)?))
        .max_by_key(|after| match after {
            RetryAfter::In(wait) => (0, *wait),
            RetryAfter::At(time) => (1, Duration::from_millis(*time)),
        })
}

/// A reset time in one of the spellings in use: `6m0s`, seconds, a time in seconds or milliseconds, ISO 8601.
fn moment(value: &str) -> Option<RetryAfter> {
    if let Some(n) = number(value) {
        return Some(if n >= 1e11 {
            RetryAfter::At(n as u64)
        } else if n >= 1e9 {
            RetryAfter::At((n * 1000.0) as u64)
        } else {
            RetryAfter::In(seconds(n))
        });
    }
    if let Some(wait) = span(value) {
        return Some(RetryAfter::In(wait));
    }
    let time: jiff::Timestamp = value.parse().ok()?;
    u64::try_from(time.as_millisecond()).ok().map(RetryAfter::At)
}

fn in_body(body: &Value) -> Option<RetryAfter> {
    let error = &body["error"];
    for detail in error["details"].as_array().into_iter().flatten() {
        if let Some(wait) = detail["retryDelay"].as_str().and_then(span) {
            return Some(RetryAfter::In(wait));
        }
    }
    if let Some(after) = error["resets_in_seconds"].as_f64().or_else(|| error["retry_after"].as_f64()) {
        return Some(RetryAfter::In(seconds(after)));
    }
    error["resets_at"].as_f64().filter(|time| *time >= 1e9).map(|time| RetryAfter::At((time * 1000.0) as u64))
}

/// `Please try again in 1m3.5s.`, `retry in 34.07s`
fn in_words(message: &str) -> Option<RetryAfter> {
    let lower = message.to_ascii_lowercase();
    let after = ["try again in ", "retry in ", "retry after "]
        .iter()
        .find_map(|words| lower.split_once(words).map(|(_, after)| after))?;
    let mut words = after.split_whitespace();
    let first = words.next()?.trim_end_matches(['.', ',', ';', ')']);
    if let Some(wait) = span(first) {
        return Some(RetryAfter::In(wait));
    }
    let n = number(first)?;
    let unit = words.next()?;
    let factor = if unit.starts_with("second") {
        1.0
    } else if unit.starts_with("minute") {
        60.0
    } else if unit.starts_with("hour") {
        3600.0
    } else {
        return None;
    };
    Some(RetryAfter::In(seconds(n * factor)))
}

/// `1h2m3.5s`, `6m0s`, `20ms`: numbers with units, nothing else.
fn span(text: &str) -> Option<Duration> {
    let mut rest = text.trim();
    let mut sum = 0.0;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let n = number(&rest[..digits])?;
        let unit_end =
            rest[digits..].find(|c: char| !c.is_ascii_alphabetic()).map_or(rest.len(), |at| digits + at);
        sum += n * match &rest[digits..unit_end] {
            "d" => 86_400.0,
            "h" => 3600.0,
            "m" => 60.0,
            "s" => 1.0,
            "ms" => 0.001,
            "us" | "µs" => 0.000_001,
            _ => return None,
        };
        rest = &rest[unit_end..];
    }
    Some(seconds(sum))
}

fn number(text: &str) -> Option<f64> {
    text.trim().parse().ok().filter(|n: &f64| n.is_finite())
}

/// Seconds as a duration; negative ones are none, and none is longer than a year.
fn seconds(n: f64) -> Duration {
    Duration::from_secs_f64(n.clamp(0.0, 31_536_000.0))
}

/// A date as HTTP writes it, in milliseconds since 1970.
fn http_date(text: &str) -> Option<u64> {
    let time = jiff::fmt::rfc2822::parse(text).ok()?.timestamp();
    u64::try_from(time.as_millisecond()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(headers: &[(&str, &str)], expected: Option<RetryAfter>) {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        assert_eq!(retry_after(&Headers(headers), &Value::Null, "", true), expected);
    }

    fn after_ms(ms: u64) -> Option<RetryAfter> {
        Some(RetryAfter::In(Duration::from_millis(ms)))
    }

    #[test]
    fn seconds_and_milliseconds() {
        check(&[("retry-after", "7")], after_ms(7000));
        check(&[("retry-after", "0.5")], after_ms(500));
        check(&[("retry-after", "60"), ("retry-after-ms", "1234")], after_ms(1234));
        check(&[("retry-after", "-5")], after_ms(0));
        check(&[("retry-after", "soon")], None);
        check(&[], None);
    }

    #[test]
    fn a_date_is_measured_by_the_providers_clock() {
        let at = ("retry-after", "Tue, 01 Dec 2026 05:40:00 GMT");
        check(&[at, ("date", "Tue, 01 Dec 2026 05:39:15 GMT")], after_ms(45_000));
        check(&[at], Some(RetryAfter::At(1_796_103_600_000)));
    }

    #[test]
    fn only_limits_that_are_used_up_count() {
        check(
            &[
                ("x-ratelimit-remaining-requests", "12"),
                ("x-ratelimit-reset-requests", "8h0m0s"),
                ("x-ratelimit-remaining-tokens", "0"),
                ("x-ratelimit-reset-tokens", "6m0.5s"),
            ],
            after_ms(360_500),
        );
        check(&[("x-ratelimit-reset", "1796103600")], Some(RetryAfter::At(1_796_103_600_000)));
        check(&[("x-ratelimit-reset", "1796103600123")], Some(RetryAfter::At(1_796_103_600_123)));
        check(&[("ratelimit-reset", "12")], after_ms(12_000));
        check(
            &[
                ("anthropic-ratelimit-tokens-remaining", "0"),
                ("anthropic-ratelimit-tokens-reset", "2026-12-01T05:40:00Z"),
            ],
            Some(RetryAfter::At(1_796_103_600_000)),
        );
    }

    #[test]
    fn reset_times_say_nothing_about_other_errors() {
        let headers = Headers(vec![("x-ratelimit-reset".to_owned(), "12".to_owned())]);
        assert_eq!(retry_after(&headers, &Value::Null, "", false), None);
    }

    #[test]
    fn bodies_and_words() {
        let body = |value: Value, message: &str| retry_after(&Headers::default(), &value, message, false);
        assert_eq!(
            body(json!({"error": {"details": [{"@type": "x"}, {"retryDelay": "34.5s"}]}}), ""),
            after_ms(34_500)
        );
        assert_eq!(body(json!({"error": {"resets_in_seconds": 90}}), ""), after_ms(90_000));
        assert_eq!(
            body(json!({"error": {"resets_at": 1_796_103_600}}), ""),
            Some(RetryAfter::At(1_796_103_600_000))
        );
        assert_eq!(
            body(Value::Null, "Rate limit reached. Please try again in 1m3.5s. Visit x"),
            after_ms(63_500)
        );
        assert_eq!(body(Value::Null, "Please try again in 250ms."), after_ms(250));
        assert_eq!(body(Value::Null, "Please retry after 20 seconds."), after_ms(20_000));
        assert_eq!(body(Value::Null, "Try again in 2 minutes"), after_ms(120_000));
        assert_eq!(body(Value::Null, "try again in 1 hour."), after_ms(3_600_000));
        assert_eq!(body(Value::Null, "try again in 3 fortnights"), None);
        assert_eq!(body(Value::Null, "please try again in a while"), None);
        assert_eq!(body(Value::Null, "try again in "), None);
    }
}

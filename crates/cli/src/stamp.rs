//! The only clock: the time of what is written, or `SOURCE_DATE_EPOCH` in its place (spec 3.7).
#![expect(clippy::disallowed_methods, reason = "this module is the owner of the clock")]

use std::time::{SystemTime, UNIX_EPOCH};

use crate::env::Env;
use crate::exit::CommandError;

/// Now, in milliseconds since 1970; with `SOURCE_DATE_EPOCH` set, that time instead.
///
/// # Errors
/// The variable is set and is no number of seconds.
pub fn now_ms(env: &Env) -> Result<i64, CommandError> {
    let Some(text) = env.text("SOURCE_DATE_EPOCH") else { return Ok(clock_ms() as i64) };
    let seconds = text.trim().parse::<i64>().ok().and_then(|seconds| seconds.checked_mul(1000));
    seconds.ok_or_else(|| {
        CommandError::usage(format!("SOURCE_DATE_EPOCH: {text:?} is no number of seconds"))
            .hint("unset it, or give seconds since 1970")
    })
}

/// The clock of waits between requests: always the real one.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealClock;

impl summarizer::retry::Clock for RealClock {
    fn now_ms(&self) -> u64 {
        clock_ms()
    }
}

fn clock_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn source_date_epoch_stands_for_the_clock() {
        let env = |value| Env::of_pairs(Path::new("/"), [("SOURCE_DATE_EPOCH", value)]);
        assert_eq!(now_ms(&env("1700000000")), Ok(1_700_000_000_000));
        assert_eq!(now_ms(&env("soon")).map_err(|error| error.status()), Err(crate::exit::Status::Usage));
        assert!(now_ms(&env("")).is_ok_and(|ms| ms > 1_700_000_000_000));
    }
}

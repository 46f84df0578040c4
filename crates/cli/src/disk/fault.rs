//! Named points at which a test can kill or fail us; in an optimised build they are nothing.
//!
//! Unit tests plan a fault by `arm`. Tests of the program set `SESSTOOL_FAULT` to `kill:N` or `fail:N:ERRNO`: it happens at the
//! N-th point that a thread passes, from 0.

use std::fs::File;
use std::io::{self, Write};

/// A place where a test may end the process or make the step fail.
#[cfg(not(any(test, debug_assertions)))]
#[inline(always)]
#[expect(clippy::unnecessary_wraps, reason = "under test it can fail")]
pub(super) fn point(_name: &str) -> io::Result<()> {
    Ok(())
}

/// Writes what one `write` call takes.
#[cfg(not(any(test, debug_assertions)))]
#[inline(always)]
pub(super) fn write(mut file: &File, bytes: &[u8]) -> io::Result<usize> {
    file.write(bytes)
}

#[cfg(test)]
pub(super) use testing::{Fault, arm, passed};
#[cfg(any(test, debug_assertions))]
pub(super) use testing::{point, write};

#[cfg(any(test, debug_assertions))]
mod testing {
    use super::{File, Write, io};
    use std::cell::RefCell;

    /// What happens at the n-th point that this thread passes.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub(in crate::disk) enum Fault {
        /// The process ends as if killed.
        Kill,
        /// The step fails with this error number.
        Fail(i32),
    }

    struct Plan {
        passed: Vec<String>,
        at: Option<(usize, Fault)>,
    }

    thread_local! {
        static PLAN: RefCell<Plan> = RefCell::new(Plan { passed: Vec::new(), at: from_environment() });
    }

    #[expect(clippy::disallowed_methods, reason = "not a setting: it says what a test wants to go wrong")]
    fn from_environment() -> Option<(usize, Fault)> {
        let text = std::env::var("SESSTOOL_FAULT").ok()?;
        let words: Vec<&str> = text.split(':').collect();
        match words[..] {
            ["kill", at] => Some((at.parse().ok()?, Fault::Kill)),
            ["fail", at, number] => Some((at.parse().ok()?, Fault::Fail(number.parse().ok()?))),
            _ => None,
        }
    }

    /// Forgets the points passed so far and plans a fault at the n-th from now, from 0.
    #[cfg(test)]
    pub(in crate::disk) fn arm(at: Option<(usize, Fault)>) {
        PLAN.with_borrow_mut(|plan| *plan = Plan { passed: Vec::new(), at });
    }

    /// The points passed since [`arm`].
    #[cfg(test)]
    pub(in crate::disk) fn passed() -> Vec<String> {
        PLAN.with_borrow(|plan| plan.passed.clone())
    }

    pub(in crate::disk) fn point(name: &str) -> io::Result<()> {
        PLAN.with_borrow_mut(|plan| {
            let here = plan.passed.len();
            plan.passed.push(name.to_owned());
            match plan.at {
                Some((at, Fault::Kill)) if at == here => std::process::abort(),
                Some((at, Fault::Fail(number))) if at == here => Err(io::Error::from_raw_os_error(number)),
                _ => Ok(()),
            }
        })
    }

    /// As the real one, but while a fault is planned every write is cut in two with a point between.
    pub(in crate::disk) fn write(mut file: &File, bytes: &[u8]) -> io::Result<usize> {
        let planned = PLAN.with_borrow(|plan| plan.at.is_some());
        point("write")?;
        if planned && bytes.len() > 1 { file.write(&bytes[..bytes.len() / 2]) } else { file.write(bytes) }
    }
}

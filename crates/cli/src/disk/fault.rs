//! Named points at which a test can kill or fail us; in a build without tests they are nothing.

use std::fs::File;
use std::io::{self, Write};

/// A place where a test may end the process or make the step fail.
#[cfg(not(test))]
#[inline(always)]
#[expect(clippy::unnecessary_wraps, reason = "under test it can fail")]
pub(super) fn point(_name: &str) -> io::Result<()> {
    Ok(())
}

/// Writes what one `write` call takes.
#[cfg(not(test))]
#[inline(always)]
pub(super) fn write(mut file: &File, bytes: &[u8]) -> io::Result<usize> {
    file.write(bytes)
}

#[cfg(test)]
pub(super) use testing::{Fault, arm, passed, point, write};

#[cfg(test)]
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

    #[derive(Default)]
    struct Plan {
        passed: Vec<String>,
        at: Option<(usize, Fault)>,
    }

    thread_local! {
        static PLAN: RefCell<Plan> = RefCell::default();
    }

    /// Forgets the points passed so far and plans a fault at the n-th from now, from 0.
    pub(in crate::disk) fn arm(at: Option<(usize, Fault)>) {
        PLAN.with_borrow_mut(|plan| *plan = Plan { passed: Vec::new(), at });
    }

    /// The points passed since [`arm`].
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

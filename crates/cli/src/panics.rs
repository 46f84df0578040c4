//! A panic is a fault of ours: it becomes one error line that asks for a report, and stays with the file that it met.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind};

use crate::exit::{CommandError, ErrorKind};

thread_local! {
    static CATCHING: Cell<bool> = const { Cell::new(false) };
    static LAST: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Replaces the message with backtrace that a panic prints by nothing where [`catch`] is waiting, and by one line
/// elsewhere.
pub fn install() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| std::panic::set_hook(Box::new(note)));
}

/// Runs `work`; a panic in it is an error.
///
/// # Errors
/// What `work` returns, or `internal error: …`.
pub fn catch<T>(work: impl FnOnce() -> Result<T, CommandError>) -> Result<T, CommandError> {
    let was_catching = CATCHING.replace(true);
    // Nothing that `work` has borrowed is used behind a panic other than locks, which are opened in spite of poison.
    let result = catch_unwind(AssertUnwindSafe(work));
    CATCHING.set(was_catching);
    result.unwrap_or_else(|_| {
        let what = LAST.take().unwrap_or_else(|| "a panic".to_owned());
        Err(CommandError { kind: ErrorKind::Failed, ..CommandError::new(format!("internal error: {what}")) }
            .hint("this is a fault of sesstool; please report it, with the session if you may share it"))
    })
}

fn note(info: &PanicHookInfo<'_>) {
    let message = info.payload_as_str().unwrap_or("a panic");
    let place = info.location().map(|at| format!(" ({}:{})", at.file(), at.line())).unwrap_or_default();
    let line = format!("{}{place}", message.lines().next().unwrap_or_default());
    if CATCHING.get() {
        LAST.set(Some(line));
    } else {
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), "error: internal error: {line}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_one_line_with_its_place() {
        install();
        let error = catch::<()>(|| panic!("the sum of {}\nand more", 1)).unwrap_err();
        assert!(
            error.message.starts_with("internal error: the sum of 1 (crates/cli/src/panics.rs:"),
            "{error}"
        );
        assert!(error.hint.is_some_and(|hint| hint.contains("report")));
        assert_eq!(catch(|| Ok(1)), Ok(1));
    }
}

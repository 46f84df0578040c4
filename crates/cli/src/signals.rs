//! Ctrl-C and SIGTERM: the first turns the switch, the second ends the process at once.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::app::App;

static LISTENING: AtomicBool = AtomicBool::new(false);
static WAITING: AtomicBool = AtomicBool::new(false);

/// From now on a signal turns `app.cancel`: no new work is begun, requests stop, files not yet reported stay as they
/// were. A second signal exits with 130; what is written is written so that this is safe at any moment.
pub fn listen(app: &App) {
    if LISTENING.swap(true, Ordering::SeqCst) {
        return;
    }
    let cancel = app.cancel.clone();
    let handler = move || {
        if cancel.is_cancelled() || WAITING.load(Ordering::SeqCst) {
            std::process::exit(i32::from(crate::exit::Status::Interrupted.code()));
        }
        cancel.cancel();
    };
    if let Err(error) = ctrlc::set_handler(handler) {
        // The default action of the signal remains, which is safe as well.
        app.printer.detail(&format!("cannot listen for Ctrl-C: {error}"));
    }
}

/// Waits for something that cannot be told to stop and after which nothing is lost, as standard input: a signal then
/// ends the process at once.
pub fn while_waiting<T>(wait: impl FnOnce() -> T) -> T {
    WAITING.store(true, Ordering::SeqCst);
    let value = wait();
    WAITING.store(false, Ordering::SeqCst);
    value
}

//! `Cancel`: the one switch that stops every request and every wait at once (spec 5.3).

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A switch that can be turned once. Clones share it; turning one turns all.
///
/// ```
/// let cancel = summarizer::cancel::Cancel::new();
/// let of_the_signal = cancel.clone();
/// of_the_signal.cancel();
/// assert!(cancel.is_cancelled());
/// ```
#[derive(Clone, Default)]
pub struct Cancel(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    turned: Condvar,
}

#[derive(Default)]
struct State {
    cancelled: bool,
    next_id: u64,
    actions: BTreeMap<u64, Box<dyn FnOnce() + Send>>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // The state is valid after every statement below, so a panic elsewhere does not spoil it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Cancel {
    /// A switch that is not turned.
    pub fn new() -> Self {
        Self::default()
    }

    /// Turns the switch: sleeps end, registered actions run (on this thread), later ones run at once.
    pub fn cancel(&self) {
        let actions = {
            let mut state = self.0.lock();
            state.cancelled = true;
            std::mem::take(&mut state.actions)
        };
        self.0.turned.notify_all();
        for action in actions.into_values() {
            action();
        }
    }

    /// Whether the switch has been turned.
    pub fn is_cancelled(&self) -> bool {
        self.0.lock().cancelled
    }

    /// Waits until `wait` is over or the switch is turned; returns whether it was turned.
    pub fn sleep(&self, wait: Duration) -> bool {
        // A wait beyond what the clock can express is a wait without end.
        let end = Instant::now().checked_add(wait);
        let mut state = self.0.lock();
        while !state.cancelled {
            let left = match end {
                Some(end) => end.saturating_duration_since(Instant::now()),
                None => Duration::from_secs(3600),
            };
            if left.is_zero() {
                break;
            }
            let waited = self.0.turned.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        state.cancelled
    }

    /// Runs `action` when the switch is turned, unless the returned guard is dropped before; at once if it is
    /// turned already.
    pub fn on_cancel(&self, action: impl FnOnce() + Send + 'static) -> CancelGuard {
        let mut state = self.0.lock();
        if state.cancelled {
            drop(state);
            action();
            return CancelGuard { cancel: self.clone(), id: None };
        }
        let id = state.next_id;
        state.next_id += 1;
        state.actions.insert(id, Box::new(action));
        CancelGuard { cancel: self.clone(), id: Some(id) }
    }
}

impl fmt::Debug for Cancel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cancel").field("cancelled", &self.is_cancelled()).finish()
    }
}

/// Keeps an action of [`Cancel::on_cancel`] registered; dropping it takes the action back.
#[derive(Debug)]
#[must_use = "dropping the guard takes the action back"]
pub struct CancelGuard {
    cancel: Cancel,
    id: Option<u64>,
}

impl Drop for CancelGuard {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            self.cancel.0.lock().actions.remove(&id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn a_sleep_ends_when_another_thread_cancels() {
        let cancel = Cancel::new();
        let of_the_other = cancel.clone();
        let other = std::thread::spawn(move || of_the_other.cancel());
        assert!(cancel.sleep(Duration::from_secs(600)));
        other.join().unwrap();
    }

    #[test]
    fn a_sleep_that_is_not_cancelled_says_so() {
        assert!(!Cancel::new().sleep(Duration::from_millis(1)));
    }

    #[test]
    fn an_endless_sleep_does_not_overflow_the_clock() {
        let cancel = Cancel::new();
        cancel.cancel();
        assert!(cancel.sleep(Duration::MAX));
    }

    #[test]
    fn an_action_runs_once_and_not_after_its_guard_is_gone() {
        let (sender, receiver) = mpsc::channel();
        let cancel = Cancel::new();
        let kept = sender.clone();
        let guard = cancel.on_cancel(move || kept.send("kept").unwrap());
        let dropped = sender.clone();
        drop(cancel.on_cancel(move || dropped.send("dropped").unwrap()));
        cancel.cancel();
        cancel.cancel();
        drop(guard);
        let _late = cancel.on_cancel(move || sender.send("late").unwrap());
        assert_eq!(receiver.iter().collect::<Vec<_>>(), ["kept", "late"]);
    }
}

//! Many files in parallel: largest first, results in input order, one file's failure or panic stays its own (spec part 7).

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, PoisonError};

use summarizer::cancel::Cancel;

use crate::app::App;
use crate::discover::Item;
use crate::exit::CommandError;
use crate::panics;
use crate::printer::Progress;
use crate::session_file::SessionFile;

/// How far work may be ahead of the result that is printed next: bounds the results that wait in memory.
const WINDOW: usize = 256;
/// As much as the first thread of a process usually has.
const STACK: usize = 8 << 20;

/// What the work on one file gets beside the file.
#[derive(Clone, Copy, Debug)]
pub struct Worker<'a> {
    /// Where progress is told.
    pub progress: &'a Progress,
    /// The switch that a signal turns.
    pub cancel: &'a Cancel,
}

impl Worker<'_> {
    /// Whether the user stopped it.
    pub fn is_cancelled(&self) -> bool {
        self.cancel.is_cancelled()
    }
}

/// Does `work` for each file that was found, on as many threads as `--jobs` says, and hands each result to `deliver`
/// on this thread, in the order of `items`. Items that are errors already come back as they are. When a signal has
/// come, or `deliver` gives up, no further file is begun; results of those that were are still delivered.
///
/// # Errors
/// What `deliver` returned.
pub fn map<'i, T: Send>(
    app: &App,
    items: &'i [Item],
    work: impl Fn(&SessionFile, &Worker<'_>) -> Result<T, CommandError> + Sync,
    deliver: impl FnMut(&'i Item, Result<T, CommandError>) -> Result<(), CommandError>,
) -> Result<(), CommandError> {
    map_within(WINDOW, app, items, work, deliver)
}

/// As [`map`], for results that are large: at most `window` of them wait to be delivered.
///
/// # Errors
/// As [`map`].
pub fn map_within<'i, T: Send>(
    window: usize,
    app: &App,
    items: &'i [Item],
    work: impl Fn(&SessionFile, &Worker<'_>) -> Result<T, CommandError> + Sync,
    deliver: impl FnMut(&'i Item, Result<T, CommandError>) -> Result<(), CommandError>,
) -> Result<(), CommandError> {
    map_with(Limits { window, jobs: app.globals.jobs() }, app, items, work, deliver)
}

/// How much is under way at the same time.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Results that may wait to be delivered.
    pub window: usize,
    /// Files that are worked on.
    pub jobs: usize,
}

impl Limits {
    /// For work that waits for the network: as many files as there may be requests, unless the user said how many.
    pub fn waiting(app: &App, n_requests: usize) -> Limits {
        let jobs = app.globals.jobs.map_or(app.globals.jobs().max(n_requests), usize::from);
        Limits { window: WINDOW, jobs }
    }
}

/// As [`map`], with these limits.
///
/// # Errors
/// As [`map`].
pub fn map_with<'i, T: Send>(
    limits: Limits,
    app: &App,
    items: &'i [Item],
    work: impl Fn(&SessionFile, &Worker<'_>) -> Result<T, CommandError> + Sync,
    mut deliver: impl FnMut(&'i Item, Result<T, CommandError>) -> Result<(), CommandError>,
) -> Result<(), CommandError> {
    crate::signals::listen(app);
    let sizes = items.iter().filter_map(|item| item.file.as_ref().ok()).map(|file| file.n_bytes);
    let progress = app.printer.progress(sizes.sum());
    let worker = Worker { progress: &progress, cancel: &app.cancel };
    let one = |item: &Item| match &item.file {
        Ok(file) => panics::catch(|| work(file, &worker)).map_err(|error| error.about(&file.path)),
        Err(error) => Err(error.clone()),
    };
    let jobs = limits.jobs.min(items.len());
    if jobs <= 1 {
        for item in items {
            if app.cancel.is_cancelled() {
                break;
            }
            deliver(item, one(item))?;
        }
        return Ok(());
    }
    let queue = Queue::new(items, limits.window.max(jobs));
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            let run = || {
                while let Some(at) = queue.next(&app.cancel) {
                    queue.done(at, one(&items[at]));
                }
                queue.leave();
            };
            let thread = std::thread::Builder::new().stack_size(STACK);
            if thread.spawn_scoped(scope, run).is_err() {
                // The others do its share; without any the queue says so.
                queue.not_started();
            }
        }
        queue.deliver(jobs, |at, result| deliver(&items[at], result))
    })
}

/// Which file is whose turn, and which results wait for the ones before them.
struct Queue<T> {
    state: Mutex<State<T>>,
    /// The result that is delivered next is there, or a worker has left.
    ready: Condvar,
    /// The window has moved, or everything is to stop.
    moved: Condvar,
    window: usize,
    sizes: Vec<u64>,
}

struct State<T> {
    taken: Vec<bool>,
    /// Results that are made and not delivered.
    waiting: BTreeMap<usize, Result<T, CommandError>>,
    /// The file whose result is delivered next.
    next: usize,
    /// Workers that wait for the window to move.
    n_idle: usize,
    n_gone: usize,
    n_not_started: usize,
    stopped: bool,
}

impl<T> Queue<T> {
    fn new(items: &[Item], window: usize) -> Self {
        let state = State {
            taken: vec![false; items.len()],
            waiting: BTreeMap::new(),
            next: 0,
            n_idle: 0,
            n_gone: 0,
            n_not_started: 0,
            stopped: false,
        };
        let sizes = items.iter().map(|item| item.file.as_ref().map_or(0, |file| file.n_bytes)).collect();
        Queue { state: Mutex::new(state), ready: Condvar::new(), moved: Condvar::new(), window, sizes }
    }

    /// The largest file that is not taken, of the next ones in the order of results. Waits while results pile up.
    fn next(&self, cancel: &Cancel) -> Option<usize> {
        let mut state = self.lock();
        loop {
            if state.stopped || cancel.is_cancelled() {
                return None;
            }
            let end = self.sizes.len().min(state.next + self.window);
            let free = (state.next..end).filter(|&at| !state.taken[at]);
            if let Some(at) = free.max_by_key(|&at| (self.sizes[at], std::cmp::Reverse(at))) {
                state.taken[at] = true;
                return Some(at);
            }
            if end == self.sizes.len() {
                return None;
            }
            state.n_idle += 1;
            state = self.moved.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.n_idle -= 1;
        }
    }

    /// Takes a result. The thread that delivers is woken for the one that it waits for and no other: on a machine with as many
    /// processors as workers, each time that it looks in vain takes a worker's place.
    fn done(&self, at: usize, result: Result<T, CommandError>) {
        let mut state = self.lock();
        state.waiting.insert(at, result);
        if at == state.next {
            self.ready.notify_one();
        }
    }

    fn leave(&self) {
        self.lock().n_gone += 1;
        self.ready.notify_one();
    }

    fn not_started(&self) {
        self.lock().n_not_started += 1;
        self.leave();
    }

    /// Hands out results in order until all are out or no worker is left. After a stop the ones that are missing are
    /// passed over.
    fn deliver(
        &self,
        n_workers: usize,
        mut take: impl FnMut(usize, Result<T, CommandError>) -> Result<(), CommandError>,
    ) -> Result<(), CommandError> {
        let mut state = self.lock();
        loop {
            let at = state.next;
            if let Some(result) = state.waiting.remove(&at) {
                state.next += 1;
                if state.n_idle > 0 {
                    self.moved.notify_all();
                }
                drop(state);
                let taken = take(at, result);
                state = self.lock();
                if taken.is_err() {
                    state.stopped = true;
                    self.moved.notify_all();
                    return taken;
                }
            } else if at == self.sizes.len() {
                return Ok(());
            } else if state.n_gone == n_workers {
                let Some((&first, _)) = state.waiting.first_key_value() else {
                    if state.n_not_started == n_workers {
                        return Err(
                            CommandError::new("no thread could be started").hint("try again with --jobs 1")
                        );
                    }
                    return Ok(());
                };
                state.next = first;
            } else {
                state = self.ready.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Globals;
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn app(jobs: u16) -> App {
        App::new(Globals { jobs: Some(jobs), quiet: true, ..Globals::default() })
    }

    fn items(sizes: &[u64]) -> Vec<Item> {
        let item = |(at, &n_bytes): (usize, &u64)| {
            let path = std::path::PathBuf::from(at.to_string());
            let file = SessionFile { path: path.clone(), n_bytes, modified_ms: None };
            Item { path, file: Ok(file) }
        };
        sizes.iter().enumerate().map(item).collect()
    }

    /// Runs the batch with a result that names the file, and returns what was delivered.
    fn names(
        window: usize,
        app: &App,
        items: &[Item],
        work: impl Fn(&SessionFile) -> Result<(), CommandError> + Sync,
    ) -> Vec<String> {
        let mut delivered = Vec::new();
        map_within(
            window,
            app,
            items,
            |file, _| work(file).map(|()| file.path.display().to_string()),
            |item, result| {
                delivered.push(result.unwrap_or_else(|error| error.message));
                assert!(delivered.last().unwrap().contains(&item.path.display().to_string()));
                Ok(())
            },
        )
        .unwrap();
        delivered
    }

    #[test]
    fn results_come_in_the_order_of_the_items() {
        let items = items(&[1, 50, 3, 100, 2, 7, 80, 4]);
        let expected: Vec<_> = (0..items.len()).map(|at| at.to_string()).collect();
        for (jobs, window) in [(1, 256), (3, 256), (4, 2), (16, 1)] {
            assert_eq!(names(window, &app(jobs), &items, |_| Ok(())), expected, "{jobs} jobs");
        }
    }

    #[test]
    fn the_largest_file_of_the_window_is_begun_first() {
        let items = items(&[1, 50, 3, 100]);
        let begun = Mutex::new(Vec::new());
        let queue: Queue<()> = Queue::new(&items, 3);
        while let Some(at) = queue.next(&Cancel::new()) {
            begun.lock().unwrap().push(at);
            queue.done(at, Ok(()));
            if begun.lock().unwrap().len() == 3 {
                // The window moves on only as results are delivered.
                queue.lock().next = 3;
            }
        }
        assert_eq!(begun.into_inner().unwrap(), [1, 2, 0, 3]);
    }

    #[test]
    fn a_panic_and_an_error_stay_with_their_file() {
        panics::install();
        for jobs in [1, 4] {
            let delivered = names(256, &app(jobs), &items(&[1, 2, 3, 4]), |file| match file.path.to_str() {
                Some("1") => panic!("a fault"),
                Some("2") => Err(CommandError::in_file(&file.path, "wrong")),
                _ => Ok(()),
            });
            assert_eq!(delivered.len(), 4);
            assert!(delivered[1].starts_with("1: internal error: a fault ("), "{}", delivered[1]);
            assert_eq!((&*delivered[0], &*delivered[2], &*delivered[3]), ("0", "2: wrong", "3"));
        }
    }

    #[test]
    fn nothing_is_begun_behind_a_cancel_and_what_was_begun_is_delivered() {
        for jobs in [1, 4] {
            let app = app(jobs);
            let begun = AtomicUsize::new(0);
            let delivered = names(256, &app, &items(&[1; 100]), |_| {
                if begun.fetch_add(1, Ordering::SeqCst) == 5 {
                    app.cancel.cancel();
                }
                Ok(())
            });
            let n_begun = begun.load(Ordering::SeqCst);
            assert_eq!(delivered.len(), n_begun);
            assert!((6..=6 + usize::from(jobs)).contains(&n_begun), "{n_begun} of {jobs} jobs");
        }
    }

    #[test]
    fn a_reader_that_gives_up_ends_the_batch() {
        for jobs in [1, 4] {
            let (app, mut n_delivered) = (app(jobs), 0);
            let result = map(
                &app,
                &items(&[1; 1000]),
                |_, _| Ok(()),
                |_, _| {
                    n_delivered += 1;
                    if n_delivered == 3 { Err(CommandError::new("enough")) } else { Ok(()) }
                },
            );
            assert_eq!(result, Err(CommandError::new("enough")));
            assert_eq!(n_delivered, 3);
        }
    }
}

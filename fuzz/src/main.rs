//! Runs mutated sessions through the libraries until a time or a number of records is reached: nothing may panic, hang, or lie.
//!
//! The same seed and corpus give the same inputs on every machine; a failure names the seed that shows it again.

mod corpus;
mod mutate;
mod targets;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use clap::Parser;

use corpus::Corpus;
use targets::Target;

/// An input of some kilobytes that takes longer than this is a hang.
const HANG: Duration = Duration::from_secs(10);

/// Mutated sessions through the libraries
#[derive(Debug, Parser)]
struct Args {
    /// Stop after this time
    #[arg(long, value_name = "N", default_value_t = 20, conflicts_with_all = ["records", "only"])]
    seconds: u64,
    /// Stop after this many records; every input goes through the reader, one in sixteen through the other targets
    #[arg(long, value_name = "N")]
    records: Option<u64>,
    /// The first seed
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Run this seed alone, write its input to the standard output, and stop
    #[arg(long, value_name = "SEED")]
    only: Option<u64>,
    /// One target alone
    #[arg(long, value_name = "NAME", value_parser = targets::find)]
    target: Option<Target>,
    /// A folder with more sessions to begin with
    #[arg(long, value_name = "DIR")]
    corpus: Vec<PathBuf>,
    /// Threads
    #[arg(short, long, default_value_t = 1)]
    jobs: usize,
}

/// What all threads know.
struct Run<'a> {
    args: &'a Args,
    corpus: Corpus,
    targets: Vec<Target>,
    start: Instant,
    next_seed: AtomicU64,
    n_inputs: AtomicU64,
    n_records: AtomicU64,
    n_bytes: AtomicU64,
    is_over: AtomicBool,
    failures: Mutex<Vec<String>>,
    /// For each thread: its seed and when it began with it, in milliseconds since the start, plus one; 0 while it rests.
    under_way: Vec<(AtomicU64, AtomicU64)>,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let corpus = Corpus::load(&args.corpus);
    let run = Run {
        corpus,
        targets: args.target.map_or_else(|| targets::ALL.to_vec(), |target| vec![target]),
        start: Instant::now(),
        next_seed: AtomicU64::new(args.only.unwrap_or(args.seed)),
        n_inputs: AtomicU64::new(0),
        n_records: AtomicU64::new(0),
        n_bytes: AtomicU64::new(0),
        is_over: AtomicBool::new(false),
        failures: Mutex::new(Vec::new()),
        under_way: (0..args.jobs.max(1)).map(|_| (AtomicU64::new(0), AtomicU64::new(0))).collect(),
        args: &args,
    };
    // What a target panics with is printed with its seed.
    if args.only.is_none() {
        std::panic::set_hook(Box::new(|_| {}));
    }
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..args.jobs.max(1))
            .map(|thread| {
                let run = &run;
                // The stack that a thread of the program has: deep nesting must not need more.
                let builder = std::thread::Builder::new().stack_size(8 << 20);
                builder.spawn_scoped(scope, move || work(run, thread)).expect("a thread can be started")
            })
            .collect();
        scope.spawn(|| watch(&run));
        for thread in threads {
            let _ = thread.join();
        }
        run.is_over.store(true, Ordering::Relaxed);
    });
    let seconds = run.start.elapsed().as_secs_f64();
    let failures = run.failures.into_inner().unwrap_or_else(|error| error.into_inner());
    for failure in &failures {
        eprintln!("{failure}");
    }
    eprintln!(
        "{} inputs, {} records, {} MB in {seconds:.1} s from seed {}: {} failures",
        run.n_inputs.into_inner(),
        run.n_records.into_inner(),
        run.n_bytes.into_inner() / 1_000_000,
        args.only.unwrap_or(args.seed),
        failures.len()
    );
    if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn work(run: &Run<'_>, thread: usize) {
    while !is_done(run) {
        let seed = run.next_seed.fetch_add(1, Ordering::Relaxed);
        let (current, began) = &run.under_way[thread];
        current.store(seed, Ordering::Relaxed);
        began.store(run.start.elapsed().as_millis() as u64 + 1, Ordering::Relaxed);
        let input = mutate::input(seed, &run.corpus);
        if run.args.only.is_some() {
            use std::io::Write;
            std::io::stdout().write_all(&input).expect("standard output can be written");
        }
        let is_reader_only = run.args.records.is_some() && !seed.is_multiple_of(16);
        for target in run.targets.iter().filter(|target| target.is_reader || !is_reader_only) {
            match catch_unwind(AssertUnwindSafe(|| (target.run)(&input, seed))) {
                Ok(n_records) if target.is_reader => {
                    run.n_records.fetch_add(n_records, Ordering::Relaxed);
                }
                Ok(_) => {}
                Err(panic) => {
                    let words = panic
                        .downcast_ref::<String>()
                        .cloned()
                        .or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
                        .unwrap_or_default();
                    let failure = format!("seed {seed}, target {}: {words}", target.name);
                    run.failures.lock().unwrap_or_else(|error| error.into_inner()).push(failure);
                }
            }
        }
        began.store(0, Ordering::Relaxed);
        run.n_inputs.fetch_add(1, Ordering::Relaxed);
        run.n_bytes.fetch_add(input.len() as u64, Ordering::Relaxed);
    }
}

fn is_done(run: &Run<'_>) -> bool {
    let failed = run.failures.lock().unwrap_or_else(|error| error.into_inner()).len();
    if failed >= 20 {
        return true;
    }
    match (run.args.only, run.args.records) {
        (Some(_), _) => run.n_inputs.load(Ordering::Relaxed) > 0,
        (None, Some(records)) => run.n_records.load(Ordering::Relaxed) >= records,
        (None, None) => run.start.elapsed() >= Duration::from_secs(run.args.seconds),
    }
}

/// Ends the process when a thread hangs, and says at what.
fn watch(run: &Run<'_>) {
    while !run.is_over.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(100));
        let now = run.start.elapsed().as_millis() as u64;
        for (seed, began) in &run.under_way {
            let at = began.load(Ordering::Relaxed);
            if at > 0 && now.saturating_sub(at) > HANG.as_millis() as u64 {
                eprintln!("seed {}: takes longer than {} s", seed.load(Ordering::Relaxed), HANG.as_secs());
                std::process::exit(2);
            }
        }
    }
}

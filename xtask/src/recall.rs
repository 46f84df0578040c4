//! Measures how many of the facts that are needed after a compaction its summary still holds, and at what size.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use rayon::prelude::*;
use session_model::text::units;
use summarizer::embedded::{EmbeddedInput, Kind, Weights, summarize};

use crate::files;
use facts::Finder;
use fit::{Evidence, fitted};
use points::{Point, Trace};
use scored::Scored;
use survival::Survival;
use table::Scores;

mod document;
mod facts;
mod fit;
mod needed;
mod points;
mod scored;
mod speed;
mod survival;
mod table;

/// Measure summaries
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Sessions, or folders of them [default: ../shared/corpus beside the repository, or fixtures]
    paths: Vec<PathBuf>,
    /// Limits to score at, in tokens [default: 2000 and 4000]
    #[arg(long, value_name = "TOKENS")]
    budget: Vec<u64>,
    /// Print one JSON value instead of tables
    #[arg(long)]
    json: bool,
    /// Write the tables into docs/summaries.md
    #[arg(long)]
    write: bool,
    /// Print the weights that fit all sessions best
    #[arg(long)]
    fit: bool,
    /// Measure how fast summaries are made of a generated session
    #[arg(long)]
    speed: bool,
    /// Print the summaries of one session instead: the recorded ones, each with ours at the same cut, and ours where sesstool would cut
    #[arg(long, value_name = "FILE")]
    show: Option<PathBuf>,
    /// Size of the summaries that --show and --examples print, in tokens
    #[arg(long, value_name = "TOKENS", default_value_t = 4000)]
    limit: u64,
    /// Print a line for each point and each limit
    #[arg(long)]
    points: bool,
    /// Print what is needed and missing
    #[arg(long)]
    missing: bool,
    /// Write the examples into docs/summaries.md
    #[arg(long)]
    examples: bool,
}

impl Args {
    fn budgets(&self) -> Vec<u64> {
        if self.budget.is_empty() { vec![2000, 4000] } else { self.budget.clone() }
    }

    fn folders(&self) -> Result<Vec<PathBuf>> {
        if !self.paths.is_empty() {
            return Ok(self.paths.clone());
        }
        let root = files::root()?;
        let corpus = root.join("../shared/corpus");
        Ok(vec![if corpus.is_dir() { corpus } else { root.join("fixtures") }])
    }
}

/// Runs the chore.
///
/// # Errors
/// A file that cannot be read or written.
pub(crate) fn run(args: &Args) -> Result<()> {
    let finder = Finder::new();
    if args.examples {
        return document::write_examples(|path| example(path, &finder));
    }
    if args.speed {
        return speed::run();
    }
    if let Some(path) = &args.show {
        return show(path, args.limit, &finder);
    }
    let is_session = |path: &Path| path.extension().is_some_and(|it| it == "jsonl");
    let folders = args.folders()?;
    let paths: Vec<PathBuf> = folders.iter().flat_map(|folder| files::below(folder, is_session)).collect();
    let traces: Vec<Option<Trace>> =
        paths.par_iter().map(|path| Trace::read(path, &finder)).collect::<Result<_>>()?;
    let traces = without_copies(traces.into_iter().flatten().collect());
    let evidence: Vec<Evidence> = traces.par_iter().map(|trace| scored::evidence(trace, &finder)).collect();
    if args.fit {
        print!("{}", fit::listed(&fitted(evidence.iter())));
        return Ok(());
    }
    let scored: Vec<Scored> = traces
        .par_iter()
        .enumerate()
        .map(|(at, trace)| {
            let others = evidence.iter().enumerate().filter(|(other, _)| *other != at);
            let weights =
                if evidence[at].is_empty() { Weights::default() } else { fitted(others.map(|it| it.1)) };
            Scored::of(trace, &finder, &weights, args)
        })
        .collect();
    let sum = |of: fn(&Scored) -> &Scores| scored.iter().map(of).fold(Scores::default(), Scores::with);
    let (recorded, assumed) = (sum(|scored| &scored.recorded), sum(|scored| &scored.assumed));
    let survival = scored.iter().map(|scored| &scored.survival).fold(Survival::default(), Survival::with);
    let n_scored = scored.iter().filter(|it| it.has_any()).count();
    if args.json {
        let value = serde_json::json!({
            "sessions": traces.len(),
            "scored": n_scored,
            "recorded": recorded.to_json(),
            "assumed": assumed.to_json(),
            "survival": survival.to_json(),
        });
        println!("{value:#}");
        return Ok(());
    }
    let tables = format!(
        "{} sessions, of which {n_scored} are long enough to have a point.\n\nRecorded compactions, at their own cuts:\n\n{recorded}\nWhere sesstool would cut, every 40 000 tokens:\n\n{assumed}\n{survival}",
        traces.len()
    );
    if args.write {
        return document::write_tables(&tables);
    }
    print!("{tables}");
    Ok(())
}

/// Of sessions that begin with the same messages only the longest.
fn without_copies(traces: Vec<Trace>) -> Vec<Trace> {
    let mut best: BTreeMap<String, Trace> = BTreeMap::new();
    for trace in traces {
        let key = if trace.fingerprint.is_empty() { trace.name.clone() } else { trace.fingerprint.clone() };
        match best.get(&key) {
            Some(known) if known.steps.len() >= trace.steps.len() => {}
            _ => {
                best.insert(key, trace);
            }
        }
    }
    best.into_values().collect()
}

fn show(path: &Path, limit: u64, finder: &Finder) -> Result<()> {
    let trace = Trace::read(path, finder)?.context("no session")?;
    for point in &trace.points {
        println!("==== {} of {} entries\n", point.summarised.end, trace.steps.len());
        if let Some(recorded) = &point.recorded {
            let tokens = units(recorded).div_ceil(4);
            println!("---- recorded, {tokens} tokens\n\n{recorded}\n\n---- ours, at most {limit} tokens\n");
        }
        println!("{}\n", shown(&trace, point, limit));
    }
    Ok(())
}

fn shown(trace: &Trace, point: &Point, limit_tokens: u64) -> String {
    summarize(&EmbeddedInput {
        kind: Kind::History,
        messages: &trace.messages(point.summarised.clone()),
        kept: &trace.messages(point.kept.clone()),
        previous_summary: point.previous.as_deref(),
        instructions: None,
        limit_tokens,
    })
    .expect("the messages are in memory")
}

/// The summary of an example session, the whole of it summarised.
fn example(path: &Path, finder: &Finder) -> Result<String> {
    let trace = Trace::read(path, finder)?.context("an example is a session")?;
    let end = trace.steps.len();
    let point = Point { summarised: 0..end, kept: end..end, previous: None, recorded: None };
    Ok(shown(&trace, &point, 1200))
}

//! Measures how many of the facts that are needed after a compaction its summary still holds, and at what size.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use rayon::prelude::*;
use session_model::text::units;
use summarizer::embedded::{EmbeddedInput, Kind, expanded, facts_index, summarize};

use crate::files;
use facts::{CLASSES, Class, Facts, Finder};
use points::{Point, Trace};
use survival::Survival;
use table::Scores;

mod facts;
mod points;
mod survival;
mod table;

/// Needed facts that a point must have to be scored.
const FEWEST: usize = 10;

/// Measure summaries
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Sessions, or folders of them [default: fixtures]
    paths: Vec<PathBuf>,
    /// Print the embedded summaries of one session instead
    #[arg(long, value_name = "FILE")]
    show: Option<PathBuf>,
    /// Size of the summaries that --show and --examples print, in tokens
    #[arg(long, value_name = "TOKENS", default_value_t = 4000)]
    limit: u64,
    /// Print what is needed and missing at the larger size
    #[arg(long)]
    missing: bool,
    /// Write the examples into docs/summaries.md
    #[arg(long)]
    examples: bool,
}

/// Runs the chore.
///
/// # Errors
/// A file that cannot be read or written.
pub(crate) fn run(args: &Args) -> Result<()> {
    let finder = Finder::new();
    if args.examples {
        return examples(&finder);
    }
    if let Some(path) = &args.show {
        return show(path, args.limit, &finder);
    }
    let folders =
        if args.paths.is_empty() { vec![files::root()?.join("fixtures")] } else { args.paths.clone() };
    let paths: Vec<PathBuf> = folders
        .iter()
        .flat_map(|folder| files::below(folder, |path| path.extension().is_some_and(|it| it == "jsonl")))
        .collect();
    let traces: Vec<Option<Trace>> =
        paths.par_iter().map(|path| Trace::read(path, &finder)).collect::<Result<_>>()?;
    let traces = without_copies(traces.into_iter().flatten().collect());
    let scored: Vec<Scored> =
        traces.par_iter().map(|trace| Scored::of(trace, &finder, args.missing)).collect();
    let sum = |of: fn(&Scored) -> &Scores| scored.iter().map(of).fold(Scores::default(), Scores::with);
    println!("{} sessions, {} with points\n", traces.len(), scored.iter().filter(|it| it.has_any()).count());
    println!("Recorded compactions, at their own cuts\n\n{}", sum(|scored| &scored.recorded));
    println!("Where sesstool would cut, every 40 000 tokens\n\n{}", sum(|scored| &scored.assumed));
    let survival = scored.iter().map(|scored| &scored.survival).fold(Survival::default(), Survival::with);
    println!("{survival}");
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

/// The scores of a session.
#[derive(Default)]
struct Scored {
    recorded: Scores,
    assumed: Scores,
    survival: Survival,
}

impl Scored {
    fn of(trace: &Trace, finder: &Finder, missing: bool) -> Scored {
        let mut scored = Scored::default();
        for point in &trace.points {
            scored.point(trace, point, finder, missing);
        }
        scored.survival.stability(trace, finder);
        scored
    }

    fn has_any(&self) -> bool {
        !self.assumed.is_empty() || !self.recorded.is_empty()
    }

    fn point(&mut self, trace: &Trace, point: &Point, finder: &Finder, missing: bool) {
        let needed = Needed::at(trace, point, finder);
        if needed.facts.values().filter(|class| class.is_simple()).count() < FEWEST {
            return;
        }
        let (messages, kept) = (trace.messages(point.summarised.clone()), trace.messages(point.kept.clone()));
        let ours = |limit_tokens| {
            summarize(&EmbeddedInput {
                kind: Kind::History,
                messages: &messages,
                kept: &kept,
                previous_summary: point.previous.as_deref(),
                instructions: None,
                limit_tokens,
            })
            .expect("the messages are in memory")
        };
        let scores = if point.recorded.is_some() { &mut self.recorded } else { &mut self.assumed };
        scores.open_point();
        let mut sizes = vec![("2000", 2000), ("4000", 4000)];
        if let Some(recorded) = &point.recorded {
            let size = units(recorded) / 4;
            scores.add("recorded", &needed, recorded, size);
            sizes.push(("same size", size));
            for tokens in [1000, 2000] {
                let index = facts_index(&messages, tokens, recorded).expect("the messages are in memory");
                let whole = format!("{recorded}\n\n{}", expanded(&index));
                scores.add(&format!("recorded, --facts {tokens}"), &needed, &whole, size + units(&index) / 4);
            }
        }
        for (name, limit) in sizes {
            let list = needed.list(limit);
            scores.add(&format!("bare list, {name}"), &needed, &list, limit);
            let summary = ours(limit);
            let size = units(&summary).div_ceil(4);
            assert!(size <= limit, "{}: {size} tokens where {limit} are allowed", trace.name);
            let whole = expanded(&summary);
            scores.add(&format!("embedded, {name}"), &needed, &whole, size);
            if limit == 4000 {
                self.survival.point(trace, point, &summary, finder);
                if missing {
                    let lost = needed.facts.iter().filter(|(fact, _)| !whole.contains(fact.as_str()));
                    for (fact, class) in lost {
                        println!("{} {:?} {} {fact}", trace.name, point.summarised, class.name());
                    }
                }
            }
        }
    }
}

/// What is needed after a point, and what there was to choose from.
struct Needed {
    facts: Facts,
    /// Facts of the summarised part by how often they occur, those of the kept part left out.
    by_frequency: Vec<String>,
    /// Commands that ran and error lines that came, newest first.
    commands: Vec<String>,
    error_lines: Vec<String>,
}

impl Needed {
    fn at(trace: &Trace, point: &Point, finder: &Finder) -> Needed {
        let steps = |range: std::ops::Range<usize>| &trace.steps[range];
        let mut count: BTreeMap<&str, u32> = BTreeMap::new();
        let mut before = Facts::new();
        for step in steps(point.summarised.clone()) {
            for (fact, class) in &step.facts {
                before.entry(fact.clone()).or_insert(*class);
                if class.is_simple() {
                    let weight = if step.facts_written.contains_key(fact) { 3 } else { 1 };
                    *count.entry(fact).or_default() += weight;
                }
            }
        }
        if let Some(previous) = &point.previous {
            finder.simple(previous, &mut before);
            finder.quoted(previous, &mut before);
        }
        let kept: BTreeSet<&String> =
            steps(point.kept.clone()).iter().flat_map(|step| step.facts.keys()).collect();
        let later = steps(point.kept.end..trace.steps.len());
        let after: BTreeSet<&String> = later.iter().flat_map(|step| step.facts_written.keys()).collect();
        let mut facts: Facts =
            before.into_iter().filter(|(fact, _)| after.contains(fact) && !kept.contains(fact)).collect();
        let ran = |range: std::ops::Range<usize>| steps(range).iter().flat_map(|step| &step.commands);
        let mut commands: Vec<String> = Vec::new();
        for command in ran(point.summarised.clone()).rev() {
            if !commands.contains(command) {
                commands.push(command.clone());
            }
        }
        let ran_later: BTreeSet<&String> = later.iter().flat_map(|step| &step.commands).collect();
        let ran_kept: BTreeSet<&String> = ran(point.kept.clone()).collect();
        for command in commands.iter().filter(|it| ran_later.contains(it) && !ran_kept.contains(it)) {
            facts.insert(command.clone(), Class::Command);
        }
        let mut error_lines = Vec::new();
        for step in steps(point.summarised.clone()).iter().rev() {
            for line in finder.error_lines(&step.read) {
                if error_lines.len() < 2000 && !error_lines.contains(&line) {
                    error_lines.push(line);
                }
            }
        }
        let written_later = || later.iter().map(|step| &step.written);
        for line in error_lines.iter().take(300) {
            if written_later().any(|text| text.contains(line.as_str())) {
                facts.insert(line.clone(), Class::ErrorLine);
            }
        }
        let mut ranked: Vec<(&str, u32)> =
            count.into_iter().filter(|(fact, _)| !kept.contains(&(*fact).to_owned())).collect();
        ranked.sort_by_key(|&(_, n)| std::cmp::Reverse(n));
        let by_frequency = ranked.into_iter().map(|(fact, _)| fact.to_owned()).collect();
        Needed { facts, by_frequency, commands, error_lines }
    }

    /// The bare list: the most frequent facts, nothing else.
    fn list(&self, limit: u64) -> String {
        let mut list = String::new();
        for fact in &self.by_frequency {
            if units(&list) + units(fact) + 1 > limit * 4 {
                break;
            }
            list.push_str(fact);
            list.push('\n');
        }
        list
    }
}

fn show(path: &Path, limit: u64, finder: &Finder) -> Result<()> {
    let trace = Trace::read(path, finder)?.context("no session")?;
    for point in trace.points.iter().filter(|point| point.recorded.is_none()) {
        println!(
            "==== {} of {} entries\n\n{}\n",
            point.summarised.end,
            trace.steps.len(),
            shown(&trace, point, limit)
        );
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

/// Begins the part of the document that is written here.
const MARK: &str = "<!-- written by `cargo xtask recall --examples` -->";

/// Writes the summaries of the example sessions into the document.
fn examples(finder: &Finder) -> Result<()> {
    let root = files::root()?;
    let document = root.join("docs/summaries.md");
    let text = files::read(&document)?;
    let head = text.split(MARK).next().unwrap_or_default().trim_end();
    let mut out = format!("{head}\n\n{MARK}\n");
    for path in files::below(&root.join("fixtures"), is_example) {
        let trace = Trace::read(&path, finder)?.context("an example is a session")?;
        let name = path.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
        let end = trace.steps.len();
        let point = Point { summarised: 0..end, kept: end..end, previous: None, recorded: None };
        out.push_str(&format!("\n### {name}\n\n````markdown\n{}\n````\n", shown(&trace, &point, 1200)));
    }
    files::write(&document, out)
}

fn is_example(path: &Path) -> bool {
    let folder = path.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
    path.ends_with("session.jsonl") && folder.starts_with("summary-")
}

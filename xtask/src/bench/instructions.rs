//! Instructions of the hot paths under callgrind: a number that no neighbour on the machine changes, compared with the one checked in.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use super::material::Material;
use crate::files;

/// Growth that is passed over: another compiler, another order of functions.
const TOLERANCE: f64 = 0.05;

/// What is counted: a name, the words of the command, and the session.
const PATHS: &[(&str, &str, Session)] = &[
    ("check", "check --jobs 1", Session::Large),
    ("check, short entries", "check --jobs 1", Session::Short),
    ("prune --dry-run", "prune --dry-run --jobs 1", Session::Large),
    ("inspect", "inspect --jobs 1", Session::Large),
    ("context", "context --jobs 1", Session::Large),
    ("context --format jsonl", "context --format jsonl --jobs 1", Session::Large),
    ("start", "--version", Session::None),
];

#[derive(Clone, Copy)]
enum Session {
    /// One megabyte of the mix of real ones.
    Large,
    /// 10 000 entries of a few words.
    Short,
    /// None at all.
    None,
}

/// Counts, and writes the counts down or compares them with those that are.
///
/// # Errors
/// A count has grown by more than 5 %, or a command fails.
pub(super) fn run(root: &Path, sesstool: &Path, material: &Material, is_check: bool) -> Result<()> {
    let is_there = Command::new("valgrind").arg("--version").stdout(Stdio::null()).status();
    if !is_there.is_ok_and(|status| status.success()) {
        eprintln!(
            "SKIPPED: valgrind is not installed, so no instructions were counted (apt-get install valgrind)"
        );
        return Ok(());
    }
    let place = root.join("xtask/instructions.tsv");
    let mut counts = Vec::new();
    for (name, words, session) in PATHS {
        let session = match session {
            Session::Large => Some(material.large(1)?),
            Session::Short => Some(material.short_entries(10_000)?),
            Session::None => None,
        };
        counts.push((*name, count(sesstool, words, session)?));
    }
    if !is_check {
        let lines: String = counts.iter().map(|(name, count)| format!("{name}\t{count}\n")).collect();
        files::write(&place, lines)?;
        print!("{}", table(&counts, &[]));
        return Ok(());
    }
    let text = files::read(&place)?;
    let known: Vec<(&str, u64)> = text
        .lines()
        .filter_map(|line| line.split_once('\t'))
        .filter_map(|(name, count)| Some((name, count.parse().ok()?)))
        .collect();
    print!("{}", table(&counts, &known));
    let mut grown = Vec::new();
    for (name, count) in &counts {
        let before = known.iter().find(|(known, _)| known == name).map(|(_, count)| *count);
        let before = before.with_context(|| format!("{name} is not in {}", place.display()))?;
        if *count as f64 > before as f64 * (1.0 + TOLERANCE) {
            grown.push(*name);
        }
    }
    if !grown.is_empty() {
        bail!("more instructions than in {}: {}", place.display(), grown.join(", "));
    }
    Ok(())
}

fn table(counts: &[(&str, u64)], known: &[(&str, u64)]) -> String {
    let line = |(name, count): &(&str, u64)| {
        let before = known.iter().find(|(known, _)| known == name);
        let change = before.map_or(String::new(), |(_, before)| {
            format!("  {:+.2} %", (*count as f64 / *before as f64 - 1.0) * 100.0)
        });
        format!("{name:24} {count:>14}{change}\n")
    };
    counts.iter().map(line).collect()
}

fn count(sesstool: &Path, words: &str, session: Option<PathBuf>) -> Result<u64> {
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]).arg(sesstool);
    command.args(words.split(' ')).args(session);
    // What the program finds in the environment must be the same everywhere.
    command.env_clear().env("HOME", "/nonexistent").env("PATH", "/usr/bin:/bin");
    let output = command.stdin(Stdio::null()).output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    let collected = said.lines().find_map(|line| line.split_once("Collected :"));
    collected
        .and_then(|(_, count)| count.trim().parse().ok())
        .with_context(|| format!("callgrind counted nothing for {words}: {said}"))
}

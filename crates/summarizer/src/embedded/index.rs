//! The fact index: as many of the facts that will be needed as fit, paths folded by folder.

use std::collections::{BTreeMap, HashSet};

use session_model::text::units;

use super::digest::{Digest, Weight};
use super::facts::{FactKind, each_fact};

/// Most facts that are considered.
const MOST: usize = 20_000;

/// A fact that the index may hold.
struct Candidate<'d> {
    fact: &'d str,
    kind: FactKind,
    score: f64,
}

/// The index in at most `limit` UTF-16 units, of the facts that are neither in `known` (the text that it follows) nor in `kept`.
/// Empty if nothing fits.
pub(super) fn index(digest: &Digest, known: &str, kept: &dyn Fn(&str) -> bool, limit: u64) -> String {
    let candidates = ranked(digest, known, kept);
    // What a fact costs depends on its neighbours, so the number that fits is searched for.
    let (mut fits, mut too_many) = (0, candidates.len() + 1);
    let mut best = String::new();
    while fits + 1 < too_many {
        let n = fits + (too_many - fits) / 2;
        let text = written(&candidates[..n.min(candidates.len())]);
        if units(&text) <= limit {
            (fits, best) = (n, text);
        } else {
            too_many = n;
        }
        if fits >= candidates.len() {
            break;
        }
    }
    best
}

/// How likely a fact is to be needed, for what it costs: what was written often and late goes first.
pub(super) fn score(digest: &Digest, fact: &str, weight: &Weight) -> f64 {
    let last = digest.n_messages.max(1) as f64;
    let recency = f64::from(weight.last) / last;
    let often = 3.0 * f64::from(weight.written) + f64::from(weight.read);
    let cost = fact.len() as f64 / 4.0 + 0.5;
    // An address is long, rare, and cannot be found again.
    let share = if weight.kind == FactKind::Url { 3.0 } else { 1.0 };
    share * often * (0.6 + recency) / cost.sqrt()
}

/// The candidates, what is likeliest to be needed first.
fn ranked<'d>(digest: &'d Digest, known: &str, kept: &dyn Fn(&str) -> bool) -> Vec<Candidate<'d>> {
    let mut held = HashSet::new();
    each_fact(known, |_, fact| {
        held.insert(fact);
    });
    let mut candidates: Vec<Candidate<'d>> = digest
        .facts
        .iter()
        .filter(|(fact, _)| !held.contains(fact.as_str()) && !kept(fact))
        .map(|(fact, weight)| Candidate { fact, kind: weight.kind, score: score(digest, fact, weight) })
        .collect();
    candidates
        .sort_by(|left, right| right.score.total_cmp(&left.score).then_with(|| left.fact.cmp(right.fact)));
    // More than that cannot fit, however short they are.
    candidates.truncate(MOST);
    // A part of a longer word in the text before is there already.
    candidates.retain(|candidate| !known.contains(candidate.fact));
    candidates
}

fn written(candidates: &[Candidate<'_>]) -> String {
    let mut text = String::new();
    let of =
        |kind: FactKind| candidates.iter().filter(move |candidate| candidate.kind == kind).map(|it| it.fact);
    let mut paths: Vec<&str> = of(FactKind::Path).collect();
    paths.sort_unstable();
    folded(&paths, &mut text);
    // What a path or a longer name says already need not be said again.
    let mut names: Vec<&str> = of(FactKind::Identifier).filter(|name| !text.contains(name)).collect();
    names.sort_unstable();
    line("Names", &names, &mut text);
    let mut values: Vec<&str> = of(FactKind::Value).filter(|value| !text.contains(value)).collect();
    values.sort_unstable();
    line("Values", &values, &mut text);
    let mut urls: Vec<&str> = of(FactKind::Url).collect();
    urls.sort_unstable();
    for url in urls {
        text.push_str(&format!("- {url}\n"));
    }
    text.truncate(text.trim_end().len());
    text
}

fn line(label: &str, facts: &[&str], text: &mut String) {
    if !facts.is_empty() {
        text.push_str(&format!("- {label}: {}\n", facts.join(", ")));
    }
}

/// A folder of paths.
#[derive(Default)]
struct Folder<'p> {
    folders: BTreeMap<&'p str, Folder<'p>>,
    files: Vec<&'p str>,
}

/// Writes sorted paths as a tree: `- folder/: file, file`, folders below with more indentation.
fn folded(paths: &[&str], text: &mut String) {
    let mut root = Folder::default();
    for path in paths {
        let mut folder = &mut root;
        let mut rest = *path;
        while let Some((name, below)) = rest.split_once('/') {
            folder = folder.folders.entry(name).or_default();
            rest = below;
        }
        folder.files.push(rest);
    }
    line("Files", &root.files, text);
    root.files.clear();
    root.write("", 0, text);
}

impl Folder<'_> {
    fn write(&self, name: &str, depth: usize, text: &mut String) {
        let below = |text: &mut String, name: &str, depth: usize| {
            for (folder, inner) in &self.folders {
                inner.write(&format!("{name}{folder}/"), depth, text);
            }
        };
        // A folder with nothing but one other folder is written together with it.
        if self.files.is_empty() && (self.folders.len() <= 1 || name.is_empty()) {
            return below(text, name, depth);
        }
        let indent = "  ".repeat(depth);
        match &self.files[..] {
            [only] if self.folders.is_empty() => {
                text.push_str(&format!("{indent}- {name}{only}\n"));
            }
            files => {
                let gap = if files.is_empty() { "" } else { " " };
                text.push_str(&format!("{indent}- {name}:{gap}{}\n", files.join(", ")));
                below(text, "", depth + 1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_fold_by_folder() {
        let mut text = String::new();
        folded(&["a/b/c.rs", "a/b/d.rs", "a/b/e/f.rs", "x.rs", "y/z/only.rs"], &mut text);
        assert_eq!(text, "- Files: x.rs\n- a/b/: c.rs, d.rs\n  - e/f.rs\n- y/z/only.rs\n");
    }
}

//! The fact index: as many of the facts that will be needed as fit, paths folded by folder.

use memchr::memmem;
use session_model::text::units;

use super::facts::{FactKind, each_fact};
use super::fold::{names, write_paths};
use super::rank::{Ranked, Ranks};

/// Facts that are considered, by how much room they would take one by one, compared with the room that there is.
const CONSIDERED: u64 = 4;

/// Share of the index that addresses may take before everything else had its turn, in percent.
const ADDRESS_PERCENT: u64 = 10;

/// The index in at most `limit` UTF-16 units, of the facts that are not in `known`, the text that it follows.
/// Empty if nothing fits.
pub(super) fn index(ranks: &Ranks<'_>, known: &str, limit: u64) -> String {
    let candidates = candidates(ranks, known, limit);
    let covered = covered(ranks, &candidates);
    // What a fact costs depends on its neighbours, so the number that fits is searched for.
    let (mut fits, mut too_many) = (0, candidates.len() + 1);
    let mut best = String::new();
    while fits + 1 < too_many {
        let n = fits + (too_many - fits) / 2;
        let text = written(&candidates, &covered, n);
        if units(&text) <= limit {
            (fits, best) = (n, text);
        } else {
            too_many = n;
        }
    }
    best
}

/// The index of exactly these facts, however long it gets.
pub(super) fn index_of(facts: &[&str]) -> String {
    let mut candidates: Vec<Ranked<'_>> = Vec::new();
    for fact in facts {
        let mut kind = FactKind::Identifier;
        each_fact(fact, |of, found| {
            if found == *fact {
                kind = of;
            }
        });
        candidates.push(Ranked { fact, kind, chance: 1.0 });
    }
    let candidates: Vec<&Ranked<'_>> = candidates.iter().collect();
    written(&candidates, &vec![usize::MAX; candidates.len()], candidates.len())
}

/// What is likeliest to be needed first, for what it costs.
fn candidates<'r, 'd>(ranks: &'r Ranks<'d>, known: &str, limit: u64) -> Vec<&'r Ranked<'d>> {
    let mut held = vec![false; ranks.facts.len()];
    for place in ranks.places_in(known) {
        held[place] = true;
    }
    let mut room = limit * CONSIDERED;
    let mut for_addresses = limit * ADDRESS_PERCENT / 100;
    let (mut candidates, mut addresses) = (Vec::new(), Vec::new());
    for (ranked, held) in ranks.facts.iter().zip(held) {
        // A part of a longer word in the text before is there already.
        if held || memmem::find(known.as_bytes(), ranked.fact.as_bytes()).is_some() {
            continue;
        }
        let cost = ranked.fact.len() as u64 + 1;
        if cost > room {
            break;
        }
        room -= cost;
        if ranked.kind != FactKind::Url {
            candidates.push(ranked);
        } else if cost <= for_addresses {
            for_addresses -= cost;
            candidates.push(ranked);
        } else {
            addresses.push(ranked);
        }
    }
    candidates.append(&mut addresses);
    candidates
}

/// For each candidate the first other one whose path holds it: it need not be written beside that.
fn covered(ranks: &Ranks<'_>, candidates: &[&Ranked<'_>]) -> Vec<usize> {
    let mut numbers = vec![usize::MAX; ranks.facts.len()];
    for (number, candidate) in candidates.iter().enumerate() {
        if let Some(place) = ranks.place(candidate.fact) {
            numbers[place] = number;
        }
    }
    let mut covered = vec![usize::MAX; candidates.len()];
    let mut cover = |part: &str, by: usize| {
        let number = ranks.place(part).map_or(usize::MAX, |place| numbers[place]);
        if number != usize::MAX && number != by {
            covered[number] = covered[number].min(by);
        }
    };
    for (by, candidate) in candidates.iter().enumerate() {
        if candidate.kind != FactKind::Path {
            continue;
        }
        let path = candidate.fact;
        each_fact(path, |_, fact| cover(fact, by));
        let borders: Vec<usize> = path.match_indices('/').map(|(at, _)| at).collect();
        let starts = std::iter::once(0).chain(borders.iter().map(|at| at + 1));
        for start in starts {
            for &end in borders.iter().filter(|&&end| end > start).chain([&path.len()]) {
                cover(&path[start..end], by);
            }
        }
    }
    covered
}

/// The first `n` candidates, those left out that another one of them covers.
fn written(candidates: &[&Ranked<'_>], covered: &[usize], n: usize) -> String {
    let of = |kind: FactKind| -> Vec<&str> {
        let chosen = candidates[..n].iter().zip(covered).filter(|(it, by)| it.kind == kind && **by >= n);
        let mut facts: Vec<&str> = chosen.map(|(candidate, _)| candidate.fact).collect();
        facts.sort_unstable();
        facts
    };
    let mut text = String::new();
    write_paths(&of(FactKind::Path), &mut text);
    for (label, kind) in [("Names", FactKind::Identifier), ("Values", FactKind::Value)] {
        let facts = of(kind);
        if !facts.is_empty() {
            let list = if kind == FactKind::Value { facts.join(" ") } else { names(&facts) };
            text.push_str(&format!("- {label}: {list}\n"));
        }
    }
    for address in of(FactKind::Url) {
        text.push_str(&format!("- {address}\n"));
    }
    text.truncate(text.trim_end().len());
    text
}

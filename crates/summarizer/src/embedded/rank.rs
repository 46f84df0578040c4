//! How likely a fact is to be needed again, from where and when it was said.

use std::collections::{HashMap, HashSet};

use foldhash::fast::FixedState;

use super::digest::{Digest, Weight};
use super::facts::{FactKind, each_fact};

/// What is known of a fact, as numbers; each has its weight.
pub const FEATURES: [&str; 11] = [
    "nothing else known",
    "occurrences, doublings",
    "messages between first and last, doublings",
    "messages since it was last written, doublings",
    "how late it was last seen, 0 to 1",
    "no tool showed it",
    "messages of the user, doublings",
    "is a path",
    "is a number or a hash",
    "is an address",
    "is a pair of plain words",
];

/// Weights of the features in a logistic model of "will be written again".
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Weights(pub [f64; FEATURES.len()]);

impl Default for Weights {
    /// Fitted to sessions of real agents by `cargo xtask recall --fit`; docs/summaries.md says how well they do on sessions that
    /// they were not fitted to.
    fn default() -> Weights {
        Weights([
            -0.32, // only the order counts
            0.29,  // what is said often stays in use
            0.17,  // what was used over a long stretch goes on being used
            -0.42, // what was written long ago is done with
            -1.26, // what only came in at the end has not proved to be of use
            0.44,  // what no tool showed was made up by those who write, and they come back to it
            0.79,  // what the user says matters
            -0.06, -0.08, -0.13, -0.15, // the kinds of facts differ little
        ])
    }
}

/// An address is long and rare, and cannot be found again by searching.
const ADDRESS_FACTOR: f64 = 3.0;
/// Paths are folded and cost less than their length.
const PATH_FACTOR: f64 = 1.15;
/// A pair of words with a slash between, where the first is no folder of any longer path, is seldom a path.
const WORD_PAIR_FACTOR: f64 = 0.8;
/// How much the length of a fact counts against it.
const COST_POWER: f64 = 0.75;

/// Facts with the chance that each will be needed; what the kept messages hold is left out.
#[derive(Debug, Default)]
pub(super) struct Ranks<'d> {
    pub(super) facts: Vec<Ranked<'d>>,
    places: HashMap<&'d str, usize, FixedState>,
}

/// A fact and its chance.
#[derive(Debug)]
pub(super) struct Ranked<'d> {
    pub(super) fact: &'d str,
    pub(super) kind: FactKind,
    pub(super) chance: f64,
}

impl<'d> Ranks<'d> {
    /// Ranks all facts of a digest that are not in `kept`.
    pub(super) fn of(digest: &'d Digest, kept: &HashSet<String>, weights: &Weights) -> Ranks<'d> {
        let n_messages = digest.n_messages as f64;
        let folders = folders(digest);
        let is_said_only = |fact: &str, kind: FactKind| {
            kind == FactKind::Path
                && is_word_pair(fact)
                && fact.split('/').next().is_none_or(|first| !folders.contains(first))
        };
        let mut facts: Vec<Ranked<'d>> = digest
            .facts
            .iter()
            .filter(|(fact, _)| !kept.contains(fact.as_str()))
            .map(|(fact, weight)| {
                let chance = chance(&features(fact, weight, n_messages), weights);
                // Two words are listed among the names, where nobody takes them for a file.
                if is_said_only(fact, weight.kind) {
                    Ranked { fact, kind: FactKind::Identifier, chance: chance * WORD_PAIR_FACTOR }
                } else {
                    Ranked { fact, kind: weight.kind, chance }
                }
            })
            .collect();
        // The order of a hash map must not show.
        facts.sort_unstable_by(|left, right| {
            right.worth().total_cmp(&left.worth()).then_with(|| left.fact.cmp(right.fact))
        });
        let places = facts.iter().enumerate().map(|(place, ranked)| (ranked.fact, place)).collect();
        Ranks { facts, places }
    }

    /// Places of the facts in a text, each once.
    pub(super) fn places_in(&self, text: &str) -> Vec<usize> {
        let mut places = Vec::new();
        each_fact(text, |_, fact| places.extend(self.places.get(fact)));
        places.sort_unstable();
        places.dedup();
        places
    }

    pub(super) fn place(&self, fact: &str) -> Option<usize> {
        self.places.get(fact).copied()
    }
}

impl Ranked<'_> {
    /// The chance for what it costs to write.
    pub(super) fn worth(&self) -> f64 {
        let factor = match self.kind {
            FactKind::Url => ADDRESS_FACTOR,
            FactKind::Path => PATH_FACTOR,
            FactKind::Identifier | FactKind::Value => 1.0,
        };
        factor * self.chance / (self.fact.len() as f64 + 2.0).powf(COST_POWER)
    }
}

/// Names of folders: of paths with more than two parts, or with a file that has an ending.
fn folders(digest: &Digest) -> HashSet<&str> {
    let mut folders = HashSet::new();
    for (fact, weight) in &digest.facts {
        if weight.kind == FactKind::Path && !is_word_pair(fact) {
            let n = fact.matches('/').count();
            folders.extend(fact.split('/').take(n));
        }
    }
    folders
}

/// The numbers of a fact, in the order of [`FEATURES`].
pub(super) fn features(fact: &str, weight: &Weight, n_messages: f64) -> [f64; FEATURES.len()] {
    let doublings = |n: u32| (1.0 + f64::from(n)).log2();
    let age = if weight.last_written == 0 {
        (1.0 + n_messages).log2() + 1.0
    } else {
        (1.0 + (n_messages - f64::from(weight.last_written)).max(0.0)).log2()
    };
    let flag = |is_so: bool| f64::from(u8::from(is_so));
    let is = |kind: FactKind| flag(weight.kind == kind);
    [
        1.0,
        doublings(weight.occurrences),
        doublings(weight.last.saturating_sub(weight.first)),
        age,
        f64::from(weight.last) / n_messages.max(1.0),
        flag(weight.read == 0),
        doublings(weight.by_user),
        is(FactKind::Path),
        is(FactKind::Value),
        is(FactKind::Url),
        flag(weight.kind == FactKind::Path && is_word_pair(fact)),
    ]
}

fn chance(features: &[f64], weights: &Weights) -> f64 {
    let sum: f64 = features.iter().zip(weights.0).map(|(feature, weight)| feature * weight).sum();
    1.0 / (1.0 + (-sum).exp())
}

/// `and/or`, `dark/light`: two words of small letters and nothing of a file.
fn is_word_pair(path: &str) -> bool {
    path.split('/').count() == 2 && path.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'/')
}

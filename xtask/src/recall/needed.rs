//! What is needed after a point, and what there was to choose from.

use std::collections::{BTreeMap, BTreeSet};

use session_model::text::units;
use summarizer::embedded::index_of;

use super::facts::{Class, Facts, Finder};
use super::points::{Point, Trace};

/// What is needed after a point, and what there was to choose from.
pub(super) struct Needed {
    pub(super) facts: Facts,
    /// Facts of the summarised part by how often they occur, those of the kept part left out.
    by_frequency: Vec<String>,
    /// Commands that ran and error lines that came, newest first.
    pub(super) commands: Vec<String>,
    pub(super) error_lines: Vec<String>,
}

impl Needed {
    pub(super) fn at(trace: &Trace, point: &Point, finder: &Finder) -> Needed {
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
    pub(super) fn list(&self, limit: u64) -> String {
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

    /// Facts of the five simple classes.
    pub(super) fn n_simple(&self) -> usize {
        self.facts.values().filter(|class| class.is_simple()).count()
    }

    /// What a ranking would write that knew what is needed: the needed facts that the sections do not hold, in our own
    /// encoding and in as much room as our index may have, the shortest first.
    pub(super) fn perfect(&self, sections: &str, limit: u64) -> String {
        let simple = self.facts.iter().filter(|(_, class)| class.is_simple()).map(|(fact, _)| fact.as_str());
        let mut missing: Vec<&str> = simple.filter(|fact| !sections.contains(fact)).collect();
        missing.sort_by_key(|fact| fact.len());
        let room = (limit * 4).saturating_sub(units(sections)).min(units(sections));
        let (mut fits, mut too_many) = (0, missing.len() + 1);
        while fits + 1 < too_many {
            let n = fits + (too_many - fits) / 2;
            if units(&index_of(&missing[..n])) <= room {
                fits = n;
            } else {
                too_many = n;
            }
        }
        format!("{sections}\n\n{}", index_of(&missing[..fits]))
    }
}

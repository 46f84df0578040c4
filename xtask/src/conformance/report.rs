//! The outcome of a conformance run: counts by question, what differs, and the summary that is checked in.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::subject::Subject;
use super::verdict::{Deviation, Sheet, Topic, Verdict};
use crate::reference::Program;

/// Differences that are printed; the rest is only counted.
const SHOWN: usize = 40;

/// Counts and differences of a run.
#[derive(Debug, Default)]
pub(crate) struct Report {
    sources: Vec<Source>,
    counts: BTreeMap<(Topic, Program), Counts>,
    deviations: BTreeMap<Deviation, usize>,
    different: Vec<String>,
}

#[derive(Debug)]
struct Source {
    title: String,
    n_sessions: usize,
    n_refused: usize,
    n_different: usize,
}

#[derive(Debug, Default)]
struct Counts {
    equal: usize,
    explained: usize,
    overruled: usize,
    different: usize,
}

impl Report {
    /// Begins with the sessions of another source.
    pub(crate) fn begin(&mut self, title: String) {
        self.sources.push(Source { title, n_sessions: 0, n_refused: 0, n_different: 0 });
    }

    /// Counts files that are no sessions.
    pub(crate) fn refused(&mut self, n: usize) {
        if let Some(source) = self.sources.last_mut() {
            source.n_refused += n;
        }
    }

    /// Takes the comparisons of one session.
    pub(crate) fn take(&mut self, subject: &Subject, sheet: &Sheet, explains: bool) {
        if subject.written.is_none()
            && let Some(source) = self.sources.last_mut()
        {
            source.n_sessions += 1;
        }
        let mut met = BTreeSet::new();
        for finding in &sheet.findings {
            let counts = self.counts.entry((finding.topic, finding.program)).or_default();
            let label = format!("{}: {} ({})", subject.name, finding.topic.name(), finding.program.name());
            if explains {
                println!("{label}: {:?}", finding.verdict);
            }
            match &finding.verdict {
                Verdict::Equal => counts.equal += 1,
                Verdict::Overruled => counts.overruled += 1,
                Verdict::Explained(deviations) => {
                    counts.explained += 1;
                    met.extend(deviations.iter().copied());
                }
                Verdict::Different(words) => {
                    counts.different += 1;
                    self.different.push(format!("{label} {words}"));
                    if let Some(source) = self.sources.last_mut() {
                        source.n_different += 1;
                    }
                }
            }
        }
        for deviation in met {
            *self.deviations.entry(deviation).or_default() += 1;
        }
    }

    /// One line about the source that was dealt with last.
    pub(crate) fn progress(&self) -> String {
        self.sources.last().map_or_else(String::new, |source| {
            format!("{}: {} sessions, {} differences", source.title, source.n_sessions, source.n_different)
        })
    }

    /// How many answers differ.
    pub(crate) fn n_different(&self) -> usize {
        self.different.len()
    }

    /// How many sessions were compared.
    pub(crate) fn n_sessions(&self) -> usize {
        self.sources.iter().map(|source| source.n_sessions).sum()
    }

    /// For the terminal: differences first, then the counts.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        for difference in self.different.iter().take(SHOWN) {
            text.push_str(&format!("different: {difference}\n"));
        }
        if self.different.len() > SHOWN {
            text.push_str(&format!("… and {} more\n", self.different.len() - SHOWN));
        }
        text.push_str(&self.tables());
        text
    }

    /// For `docs/conformance.md`.
    pub(crate) fn markdown(&self) -> String {
        format!(
            "# Conformance\n\n\
             What `cargo xtask conformance --write` last found: sesstool's answers compared with those of R13\n\
             (`@oh-my-pi/pi-coding-agent` 13.19.0) and P1 (`@earendil-works/pi-coding-agent` 1.6.0), both installed from npm.\n\n\
             *Equal* is equal byte for byte, but for the order of JSON keys. *Explained* is not equal, and the session has the\n\
             shape of a deviation that the specification names; what the deviation does not concern is compared all the\n\
             same. *R13 decides* counts answers of P1 that differ where R13 was asked the same and agrees with sesstool.\n\
             The shapes are code: `xtask/src/conformance/deviations.rs`. A generated session is asked for again with\n\
             `cargo xtask conformance --shape NAME --seed N --explain`.\n\n\
             The requests are compared for sesstool's own preparation, which R13 is handed, so that a deviation in the cut\n\
             hides nothing in the texts. Not asked: R13 about files with `reset_boundary`, `context_edit`, system messages or\n\
             `fullOutputPath`, which it does not know, about preparations with an empty branch summary, which it leaves out of\n\
             the context and has in its preparations, and to open files with a title slot or without costs; P1 about\n\
             oh-my-pi files and measured preparations; both about files with a byte order mark, which hides the header from\n\
             them, and with cycles, in which they walk for ever; and about more than the reading of files whose records are\n\
             glued or torn (D15). D7, D8, D10, D14, D16 and D20 concern nothing that is compared.\n\n{}",
            self.tables()
        )
    }

    fn tables(&self) -> String {
        let mut text =
            String::from("| sessions | compared | no session | different |\n|---|---:|---:|---:|\n");
        for source in &self.sources {
            let Source { title, n_sessions, n_refused, n_different } = source;
            text.push_str(&format!("| {title} | {n_sessions} | {n_refused} | {n_different} |\n"));
        }
        text.push_str(
            "\n| question | asked | equal | explained | R13 decides | different |\n|---|---|---:|---:|---:|---:|\n",
        );
        for ((topic, program), counts) in &self.counts {
            let Counts { equal, explained, overruled, different } = counts;
            let _ = writeln!(
                text,
                "| {} | {} | {equal} | {explained} | {overruled} | {different} |",
                topic.name(),
                program.name()
            );
        }
        text.push_str("\n| deviation | sessions where it explains something |\n|---|---:|\n");
        for (deviation, n) in &self.deviations {
            let _ = writeln!(text, "| {deviation:?} | {n} |");
        }
        text
    }
}

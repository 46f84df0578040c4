//! What must survive word for word, what must not be invented, and what is left after five compactions.

use std::fmt;

use regex::Regex;
use summarizer::embedded::{EmbeddedInput, Kind, expanded, summarize};

use super::facts::{Facts, Finder};
use super::points::{Point, Trace};

/// Size of the summaries, in tokens.
const LIMIT: u64 = 4000;
/// Compactions in a row.
const ROUNDS: usize = 5;

/// Counts of what was there and what was held.
#[derive(Clone, Debug, Default)]
pub(super) struct Survival {
    requests: Share,
    prohibitions: Share,
    questions: Share,
    lines: Share,
    index: Share,
    /// Facts of the first summary that are needed after the fifth, still in the fifth.
    stable: Share,
    /// All facts of the first summary.
    stable_all: Share,
    invented: Vec<String>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Share {
    held: usize,
    all: usize,
}

impl Share {
    fn count(&mut self, is_held: bool) {
        self.all += 1;
        self.held += usize::from(is_held);
    }

    fn with(self, other: Share) -> Share {
        Share { held: self.held + other.held, all: self.all + other.all }
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.held, self.all)
    }
}

/// Letters and digits alone, one space between words.
fn words(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for word in text.split(|character: char| !character.is_alphanumeric()).filter(|word| !word.is_empty()) {
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(word);
    }
    out
}

impl Survival {
    /// Adds the counts of a session.
    pub(super) fn with(mut self, other: &Survival) -> Survival {
        self.requests = self.requests.with(other.requests);
        self.prohibitions = self.prohibitions.with(other.prohibitions);
        self.questions = self.questions.with(other.questions);
        self.lines = self.lines.with(other.lines);
        self.index = self.index.with(other.index);
        self.stable = self.stable.with(other.stable);
        self.stable_all = self.stable_all.with(other.stable_all);
        self.invented.extend(other.invented.iter().cloned());
        self
    }

    /// Checks a summary against what it was made of.
    pub(super) fn point(&mut self, trace: &Trace, point: &Point, summary: &str, finder: &Finder) {
        let steps = &trace.steps[point.summarised.clone()];
        let held = words(summary);
        let role =
            |message: &session_model::value::Value<'_>| message.text("role").unwrap_or_default().into_owned();
        let users = || steps.iter().filter(|step| step.message.as_ref().is_some_and(|it| role(it) == "user"));
        let is_request = |text: &str| !text.trim().is_empty() && !text.trim_start().starts_with('<');
        if let Some(newest) = users().rev().find(|step| is_request(&step.written)) {
            self.requests.count(held.contains(&words(&newest.written)));
        }
        let rule = Regex::new(r"(?i)\b(?:never|do not|don't|must)\b").expect("the expression is valid");
        for text in
            users().map(|step| step.written.as_str()).filter(|text| is_request(text) && text.len() < 4000)
        {
            for sentence in text.split(['\n', '.', '!', '?']).map(str::trim) {
                if rule.is_match(sentence) && (12..=300).contains(&sentence.len()) {
                    self.prohibitions.count(held.contains(&words(sentence)));
                }
            }
        }
        let speech = steps.iter().rev().find_map(|step| {
            let message = step.message.as_ref()?;
            let of = role(message);
            ((of == "user" || of == "assistant") && !step.written.trim().is_empty()).then_some((of, step))
        });
        if let Some((_, step)) =
            speech.filter(|(of, step)| of == "assistant" && step.written.trim_end().ends_with('?'))
        {
            let question = step.written.trim_end().lines().last().unwrap_or_default();
            let question = question.split_inclusive(['.', '!', '?']).next_back().unwrap_or_default();
            self.questions.count(held.contains(&words(question)));
        }
        self.nothing_invented(trace, point, summary, finder);
    }

    /// Every line outside the index, taken apart at our own words, must be in the messages.
    fn nothing_invented(&mut self, trace: &Trace, point: &Point, summary: &str, finder: &Finder) {
        let mut source = String::new();
        for step in &trace.steps[point.summarised.clone()] {
            source.push_str(&step.written);
            source.push('\n');
            source.push_str(&step.read);
            source.push('\n');
            if let Some(message) = &step.message {
                source.push_str(&message.to_json());
                source.push('\n');
            }
        }
        source.push_str(point.previous.as_deref().unwrap_or_default());
        let source_words = words(&source);
        let frame = Regex::new(
            r"^(?:\s*(?:- \[[x ]\] |- |\d+\. )?)(?:Read |Also ran, newest last: |Last answer: |wrote |edited |ran |The user said: |Waits for the user's answer: )?",
        )
        .expect("the expression is valid");
        let times = Regex::new(r"(?:,| \() ?\d+ (?:times|edits)\)?").expect("the expression is valid");
        let sections = summary.split("Index of facts:").next().unwrap_or_default();
        for line in sections.lines() {
            let line = line.trim();
            if line.is_empty()
                || line.starts_with('#')
                || line == "(none)"
                || line.contains("Summarised ")
                || line.starts_with("- Read ")
            {
                continue;
            }
            let line = frame.replace(line, "");
            let line = times.replace_all(&line, " : ");
            for piece in line.split(['`', '"', '*', '…', ':', '(', ')']) {
                let piece = words(piece);
                let is_held =
                    piece.is_empty() || piece == "gave" || piece == "has" || source_words.contains(&piece);
                self.lines.count(is_held);
                if !is_held {
                    self.invented.push(format!("{}: {piece}", trace.name));
                }
            }
        }
        let mut facts = Facts::new();
        let folded = &expanded(summary)[summary.len()..];
        finder.simple(folded, &mut facts);
        for fact in facts.keys() {
            self.index.count(source.contains(fact.as_str()));
        }
    }

    /// Five compactions in a row, each going on from the one before.
    pub(super) fn stability(&mut self, trace: &Trace, finder: &Finder) {
        let mut cuts: Vec<usize> = trace
            .points
            .iter()
            .filter(|point| point.recorded.is_none())
            .map(|point| point.kept.start)
            .collect();
        cuts.sort_unstable();
        cuts.dedup();
        if cuts.len() < ROUNDS {
            return;
        }
        let mut summaries: Vec<String> = Vec::new();
        let mut start = 0;
        for &cut in &cuts[..ROUNDS] {
            let summary = summarize(&EmbeddedInput {
                kind: Kind::History,
                messages: &trace.messages(start..cut),
                kept: &Vec::new(),
                previous_summary: summaries.last().map(String::as_str),
                instructions: None,
                limit_tokens: LIMIT,
            })
            .expect("the messages are in memory");
            summaries.push(summary);
            start = cut;
        }
        let (first, last) = (expanded(&summaries[0]), expanded(&summaries[ROUNDS - 1]));
        let mut facts = Facts::new();
        finder.simple(&first, &mut facts);
        for fact in facts.keys() {
            let is_held = last.contains(fact.as_str());
            self.stable_all.count(is_held);
            if trace.steps[start..].iter().any(|step| step.facts_written.contains_key(fact)) {
                self.stable.count(is_held);
            }
        }
    }
}

impl Survival {
    /// The counts as JSON, each as what is held and what there is.
    pub(super) fn to_json(&self) -> serde_json::Value {
        let pair = |share: Share| serde_json::json!([share.held, share.all]);
        serde_json::json!({
            "requests": pair(self.requests),
            "prohibitions": pair(self.prohibitions),
            "questions": pair(self.questions),
            "lines": pair(self.lines),
            "index": pair(self.index),
            "stableNeeded": pair(self.stable),
            "stable": pair(self.stable_all),
            "invented": self.invented,
        })
    }
}

impl fmt::Display for Survival {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "In summaries of {LIMIT} tokens:")?;
        writeln!(f, "- newest requests held word for word: {}", self.requests)?;
        writeln!(f, "- sentences with never, do not, must: {}", self.prohibitions)?;
        writeln!(f, "- questions that wait: {}", self.questions)?;
        writeln!(
            f,
            "- pieces of lines found in the messages: {}; facts of the index: {}",
            self.lines, self.index
        )?;
        for piece in self.invented.iter().take(20) {
            writeln!(f, "  - not found: {piece}")?;
        }
        writeln!(
            f,
            "- after {ROUNDS} compactions: {} facts of the first summary that are needed later, {} of all",
            self.stable, self.stable_all
        )
    }
}

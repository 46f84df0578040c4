//! The summarizer without a model: the same sections, made of the messages themselves (spec 5.5). Deterministic and linear.
//!
//! ```text
//! messages → digest → sections (section), merged with the previous summary's (previous) → text, then the index (index, facts)
//! ```

use std::collections::HashSet;

use session_model::error::RecordError;
use session_model::text::{take_units, units};
use session_model::value::Value;

use digest::{Command, Digest};
use facts::each_fact;
use previous::{INDEX_LABEL, Part, Previous};
use section::{Mark, Section, fit, write};
use sentences::{is_rule, sentences};

use crate::material::Messages;
use crate::transcript::content_text;

mod context;
mod digest;
mod facts;
mod index;
mod previous;
mod section;
mod sentences;
#[cfg(test)]
mod tests;

/// What a summary is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The history before the kept messages.
    History,
    /// The first part of a split turn.
    TurnPrefix,
    /// An abandoned branch.
    Branch,
}

/// What a summary is made of.
#[derive(Clone, Copy)]
pub struct EmbeddedInput<'a> {
    /// What it is of.
    pub kind: Kind,
    /// The model messages that it stands for.
    pub messages: &'a dyn Messages,
    /// Messages that stay behind it: what they say need not be said.
    pub kept: &'a dyn Messages,
    /// The summary that it goes on from, without file blocks.
    pub previous_summary: Option<&'a str>,
    /// What the user wants it to attend to.
    pub instructions: Option<&'a str>,
    /// Most tokens of it, by estimate.
    pub limit_tokens: u64,
}

/// Share of the room that the index may take, in percent.
const INDEX_PERCENT: u64 = 48;
/// Rank of what must outlive every compaction.
const STANDING: u32 = 1_000_000;
/// Most lines of one kind that are weighed, the newest: more would not fit and each is compared with all.
const MOST_LINES: usize = 500;

/// Makes the summary; never longer than its limit.
///
/// # Errors
/// A record that cannot be read again.
pub fn summarize(input: &EmbeddedInput<'_>) -> Result<String, RecordError> {
    let mut digest = Digest::of(input.messages)?;
    let previous = input.previous_summary.map(Previous::of).unwrap_or_default();
    if let Some(summary) = input.previous_summary {
        digest.take_facts(summary, 0, true);
        for round in 0..2 {
            let carried = previous.indexed.join(" ");
            digest.take_facts(&carried, u32::MAX - round, true);
        }
        digest.forget_rounds();
    }
    let mut sections = match input.kind {
        Kind::History => history(&digest, &previous),
        Kind::TurnPrefix => turn_prefix(&digest),
        Kind::Branch => branch(&digest),
    };
    attend(&mut sections, input.instructions);
    let limit = input.limit_tokens * 4;
    let for_index = limit * INDEX_PERCENT / 100;
    let kept = facts_of(input.kept)?;
    fit(&mut sections, limit - for_index);
    context::fill(&mut sections, &digest, &kept, limit - for_index);
    let text = write(&sections);
    let text = text.trim_end();
    let label = format!("\n\n{INDEX_LABEL}\n");
    let room = limit.saturating_sub(units(text)).min(limit / 2).saturating_sub(units(&label));
    let index = index::index(&digest, text, &|fact| kept.contains(fact), room);
    let whole = if index.is_empty() { text.to_owned() } else { place(text, &label, &index, input.kind) };
    Ok(take_units(&whole, limit).to_owned())
}

/// Two or three sentences: what was asked, what was changed, what is open.
///
/// # Errors
/// As [`summarize`].
pub fn short_summary(
    messages: &dyn Messages,
    kept: &dyn Messages,
    limit_tokens: u64,
) -> Result<String, RecordError> {
    let limit = limit_tokens * 4;
    let digest = Digest::without_facts(messages)?;
    let later = Digest::without_facts(kept)?;
    let mut parts = Vec::new();
    if let Some(request) = digest.requests.last().or(later.requests.last()) {
        // "Good." says nothing; the first sentence of some length does.
        let said = sentences(request);
        let telling = said.iter().find(|sentence| sentence.chars().count() >= 15).or(said.first());
        let first = telling.map_or(request.as_str(), |first| first).to_owned();
        parts.push(format!("Asked: {}", ended(take_units(&first, limit / 3))));
    }
    let changed: Vec<&str> = digest.changes.iter().rev().map(|change| change.path.as_str()).collect();
    if let Some(first) = changed.first() {
        let more = match changed.len() {
            1 => String::new(),
            n => format!(" and {} more", n - 1),
        };
        parts.push(format!("Changed {}{more}.", take_units(first, limit / 4)));
    }
    let question = later.question.or(digest.question);
    let last = later.last_words.last().or(digest.last_words.last()).cloned();
    if let Some(last) = question.or(last) {
        parts.push(ended(take_units(&last, limit / 3)));
    }
    Ok(take_units(&parts.join(" "), limit).to_owned())
}

/// An index of facts as a block of its own, to be put behind a model's summary; empty if nothing fits.
///
/// # Errors
/// As [`summarize`].
pub fn facts_index(messages: &dyn Messages, limit_tokens: u64, summary: &str) -> Result<String, RecordError> {
    let digest = Digest::of(messages)?;
    let label = format!("{INDEX_LABEL}\n");
    let room = (limit_tokens * 4).saturating_sub(units(&label));
    let index = index::index(&digest, summary, &|_| false, room);
    Ok(if index.is_empty() { index } else { format!("{label}{index}") })
}

/// A summary with the index written out: every path whole, on a line of its own behind the rest.
pub fn expanded(summary: &str) -> String {
    let mut whole = summary.to_owned();
    for fact in Previous::of(summary).indexed {
        whole.push('\n');
        whole.push_str(&fact);
    }
    whole
}

fn ended(sentence: &str) -> String {
    let sentence = sentence.trim();
    let is_ended = sentence.ends_with(['.', '!', '?', '。', '！', '？', '؟', '…', ':']);
    if is_ended { sentence.to_owned() } else { format!("{sentence}.") }
}

/// Facts that stay in the context anyway.
fn facts_of(messages: &dyn Messages) -> Result<HashSet<String>, RecordError> {
    let mut found = HashSet::new();
    messages.each(&mut |message| {
        each_fact(&content_text(message), |_, fact| {
            found.insert(fact.to_owned());
        });
        for block in message.get("content").map_or(&[][..], Value::items) {
            if let Some(arguments) = block.get("arguments") {
                each_fact(&arguments.to_json(), |_, fact| {
                    found.insert(fact.to_owned());
                });
            }
        }
    })?;
    Ok(found)
}

/// Puts the index where it belongs: at the end of the critical context.
fn place(text: &str, label: &str, index: &str, kind: Kind) -> String {
    let next = match kind {
        Kind::History => "\n\n## Additional Notes",
        Kind::Branch => "\n\n## Next Steps",
        Kind::TurnPrefix => return format!("{text}{label}{index}"),
    };
    match text.find(next) {
        Some(at) => format!("{}{label}{index}{}", &text[..at], &text[at..]),
        None => format!("{text}{label}{index}"),
    }
}

/// What the user asked to attend to goes first.
fn attend(sections: &mut [Section], instructions: Option<&str>) {
    let words: Vec<String> = instructions
        .unwrap_or_default()
        .split(|character: char| !character.is_alphanumeric())
        .filter(|word| word.chars().count() >= 4)
        .map(str::to_lowercase)
        .collect();
    if words.is_empty() {
        return;
    }
    for line in sections.iter_mut().flat_map(|section| &mut section.lines) {
        let low = line.text.to_lowercase();
        if words.iter().any(|word| low.contains(word.as_str())) {
            line.rank = line.rank.saturating_add(STANDING / 2);
        }
    }
}

fn history(digest: &Digest, previous: &Previous) -> Vec<Section> {
    let mut goal = goal("## Goal", digest, 22);
    let earlier = std::mem::take(&mut goal.lines);
    add_previous(&mut goal, previous, Part::Goal, 0);
    earlier.into_iter().for_each(|line| goal.add(line.text, line.rank));
    let mut constraints = Section::new("## Constraints & Preferences", Mark::Dash, 16);
    add_previous(&mut constraints, previous, Part::Constraints, 0);
    add_rules(&mut constraints, digest);
    let mut done = done("### Done", digest, 20);
    let made = std::mem::take(&mut done.lines);
    add_previous(&mut done, previous, Part::Done, 0);
    made.into_iter().for_each(|line| done.add(line.text, line.rank));
    let mut blocked = Section::new("### Blocked", Mark::Dash, 8);
    for line in previous.part(Part::Blocked) {
        let resolved =
            |command: &Command| !command.failed && !command.line.is_empty() && line.contains(&command.line);
        if !digest.commands.iter().any(resolved) {
            blocked.add(line, 1);
        }
    }
    add_blocked(&mut blocked, digest);
    let mut critical = Section::new(context::HEADING, Mark::Dash, 10);
    add_previous(&mut critical, previous, Part::Critical, 0);
    // A question waits until the user goes on.
    if digest.question.is_some() || !digest.requests.is_empty() {
        critical.lines.retain(|line| !line.text.starts_with(QUESTION));
    }
    if let Some(question) = &digest.question {
        critical.add(format!("{QUESTION} {question}"), STANDING);
    }
    let mut decisions = Section::new("## Key Decisions", Mark::Dash, 10);
    add_previous(&mut decisions, previous, Part::Decisions, 0);
    add_decisions(&mut decisions, digest);
    let mut notes = Section::new("## Additional Notes", Mark::Dash, 4);
    add_previous(&mut notes, previous, Part::Notes, 0);
    notes.lines.retain(|line| !line.text.starts_with(COUNTED));
    notes.add(counted(digest), STANDING);
    vec![
        goal,
        constraints,
        Section::new("## Progress", Mark::Nothing, 0),
        done,
        in_progress(digest, previous, 6),
        blocked,
        decisions,
        next_steps(digest, previous, 8),
        critical,
        notes,
    ]
}

fn branch(digest: &Digest) -> Vec<Section> {
    let previous = Previous::default();
    let mut constraints = Section::new("## Constraints & Preferences", Mark::Dash, 16);
    add_rules(&mut constraints, digest);
    let mut blocked = Section::new("### Blocked", Mark::Dash, 10);
    add_blocked(&mut blocked, digest);
    let mut decisions = Section::new("## Key Decisions", Mark::Dash, 12);
    add_decisions(&mut decisions, digest);
    vec![
        goal("## Goal", digest, 22),
        constraints,
        Section::new("## Progress", Mark::Nothing, 0),
        done("### Done", digest, 24),
        in_progress(digest, &previous, 8),
        blocked,
        decisions,
        Section::new(context::HEADING, Mark::Dash, 0),
        next_steps(digest, &previous, 8),
    ]
}

fn turn_prefix(digest: &Digest) -> Vec<Section> {
    let mut so_far = done("## So Far", digest, 40);
    so_far.mark = Mark::Dash;
    add_blocked(&mut so_far, digest);
    for (n, words) in digest.last_words.iter().enumerate() {
        so_far.add(words.clone(), n as u32);
    }
    let mut later = Section::new("## Needed Later", Mark::Dash, 25);
    add_rules(&mut later, digest);
    for (what, why) in digest.decisions.iter().rev().take(6).rev() {
        later.add(format!("{what} {why}"), 1);
    }
    for step in &digest.steps {
        later.add(step.clone(), 2);
    }
    if let Some(question) = &digest.question {
        later.add(format!("{QUESTION} {question}"), STANDING);
    }
    vec![goal("## Request", digest, 35), so_far, later]
}

/// Stands before the question that waits.
const QUESTION: &str = "Waits for the user's answer:";
/// Begins the line of counts.
const COUNTED: &str = "Summarised ";

/// The user's requests: the newest whole, earlier ones by their first sentence.
fn goal(heading: &'static str, digest: &Digest, weight: u64) -> Section {
    let mut goal = Section::new(heading, Mark::Dash, weight);
    let n = digest.requests.len();
    for (at, request) in digest.requests.iter().enumerate() {
        if at + 1 == n {
            // The newest is never taken for a repetition of an earlier one.
            goal.lines.retain(|line| !request.contains(&line.text));
            goal.lines.push(section::Line { text: request.clone(), rank: STANDING });
        } else {
            let first =
                sentences(request).first().copied().unwrap_or_else(|| request.lines().next().unwrap_or(""));
            let rank = if at == 0 { STANDING / 4 } else { at as u32 };
            goal.add(take_units(first, 240), rank);
        }
    }
    goal
}

fn add_previous(section: &mut Section, previous: &Previous, part: Part, rank: u32) {
    for (n, line) in previous.part(part).enumerate() {
        let standing = if is_rule(line) && part == Part::Constraints { STANDING / 2 } else { 0 };
        section.add(line, rank + n as u32 + standing);
    }
}

fn add_rules(section: &mut Section, digest: &Digest) {
    for (n, rule) in digest.rules.iter().enumerate() {
        section.add(format!("\"{rule}\""), STANDING / 2 + n as u32);
    }
    for (n, wish) in digest.wishes.iter().enumerate() {
        section.add(format!("\"{wish}\""), 1000 + n as u32);
    }
}

/// Files changed, commands that succeeded, todo items that are done.
fn done(heading: &'static str, digest: &Digest, weight: u64) -> Section {
    let mut done = Section::new(heading, Mark::Done, weight);
    let older = digest.changes.len().saturating_sub(MOST_LINES);
    for (n, change) in digest.changes.iter().enumerate().skip(older) {
        let verb = if change.is_new { "wrote" } else { "edited" };
        let times = if change.n > 1 { format!(", {} times", change.n) } else { String::new() };
        let why = change.why.as_deref().map_or(String::new(), |why| format!(": {}", take_units(why, 160)));
        done.add(format!("{verb} {}{times}{why}", change.path), 1000 + n as u32);
    }
    let telling = |command: &&Command| !command.failed && is_telling(&command.line);
    for (n, command) in digest
        .commands
        .iter()
        .rev()
        .filter(telling)
        .take(MOST_LINES)
        .collect::<Vec<_>>()
        .into_iter()
        .rev()
        .enumerate()
    {
        let said = command.said.as_deref().map_or(String::new(), |said| format!(": {said}"));
        done.add(format!("ran `{}`{said}", command.line), 2000 + n as u32);
    }
    for (text, _) in digest.todos.iter().filter(|(_, is_done)| *is_done) {
        done.add(text.clone(), 500);
    }
    done
}

/// Commands whose success says something: tests, builds, commits, installations.
fn is_telling(line: &str) -> bool {
    const WORDS: [&str; 20] = [
        "test", "build", "check", "commit", "push", "lint", "install", "make", "clippy", "fmt", "tsc",
        "migrate", "deploy", "publish", "merge", "rebase", "bench", "compile", "docker", "pytest",
    ];
    // A path that holds such a word says nothing, and neither does an expression that is searched for.
    let plain = line.split([' ', ';', '&', '|']).filter(|part| {
        part.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b':' | b'_'))
            && !part.starts_with('-')
    });
    let searches = ["grep", "rg", "sed", "find", "cat", "ls", "head", "tail", "awk"];
    let first = line.split([' ', ';']).next().unwrap_or_default();
    !searches.contains(&first) && plain.into_iter().any(|part| WORDS.iter().any(|word| part.contains(word)))
}

fn in_progress(digest: &Digest, previous: &Previous, weight: u64) -> Section {
    let mut section = Section::new("### In Progress", Mark::Open, weight);
    for (text, _) in digest.todos.iter().filter(|(_, is_done)| !is_done) {
        section.add(text.clone(), 1000);
    }
    let last_words = digest.last_words.iter().filter(|words| digest.question.as_ref() != Some(*words));
    let last_words: Vec<&String> = last_words.collect();
    for (n, words) in last_words.iter().rev().take(4).rev().enumerate() {
        section.add(words.as_str(), n as u32);
    }
    if digest.last_words.is_empty() && digest.todos.is_empty() {
        add_previous(&mut section, previous, Part::InProgress, 0);
    }
    section
}

/// Commands and calls that failed and never succeeded after.
fn add_blocked(section: &mut Section, digest: &Digest) {
    for (n, failure) in digest.failures.iter().enumerate() {
        section.add(format!("{} `{}`: {}", failure.tool, failure.about, failure.said), 10 + n as u32);
    }
    for (n, command) in digest.commands.iter().filter(|command| command.failed).enumerate() {
        let said = command.said.as_deref().unwrap_or("failed");
        section.add(format!("`{}`: {said}", command.line), 1000 + n as u32);
    }
}

fn add_decisions(section: &mut Section, digest: &Digest) {
    let older = digest.decisions.len().saturating_sub(MOST_LINES);
    for (n, (what, why)) in digest.decisions.iter().enumerate().skip(older) {
        section.add(format!("**{what}**: {why}"), 1000 + n as u32);
    }
}

fn next_steps(digest: &Digest, previous: &Previous, weight: u64) -> Section {
    let mut section = Section::new("## Next Steps", Mark::Number, weight);
    for (n, step) in digest.steps.iter().enumerate() {
        section.add(step.clone(), 1000 - n.min(900) as u32);
    }
    for (text, _) in digest.todos.iter().filter(|(_, is_done)| !is_done) {
        section.add(text.clone(), 50);
    }
    if section.lines.is_empty() {
        add_previous(&mut section, previous, Part::NextSteps, 0);
    }
    section
}

fn counted(digest: &Digest) -> String {
    let mut tools = digest.tools.clone();
    tools.sort_by(|left, right| right.1.cmp(&left.1).then_with(|| left.0.cmp(&right.0)));
    let calls: Vec<String> = tools.iter().take(8).map(|(tool, n)| format!("{tool} {n}")).collect();
    match calls.is_empty() {
        true => format!("{COUNTED}{} messages.", digest.n_messages),
        false => format!("{COUNTED}{} messages; calls: {}.", digest.n_messages, calls.join(", ")),
    }
}

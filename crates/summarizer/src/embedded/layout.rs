//! Which lines stand in which section of a summary.

use session_model::text::take_units;

use super::calls::Command;
use super::context;
use super::digest::Digest;
use super::previous::{Part, Previous};
use super::section::{Line, Mark, STANDING, Section};
use super::sentences::{is_rule, is_whole, sentences};

/// Most lines of one kind that are weighed, the newest: more would not fit and each is compared with all.
const MOST_LINES: usize = 150;
/// Most sentences of the last answer that are shown.
const MOST_LAST_WORDS: usize = 4;

pub(super) fn history(digest: &Digest, previous: &Previous) -> Vec<Section> {
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
        if !digest.calls.commands.iter().any(resolved) {
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
    add_report(&mut critical, digest);
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

pub(super) fn branch(digest: &Digest) -> Vec<Section> {
    let previous = Previous::default();
    let mut constraints = Section::new("## Constraints & Preferences", Mark::Dash, 16);
    add_rules(&mut constraints, digest);
    let mut blocked = Section::new("### Blocked", Mark::Dash, 10);
    add_blocked(&mut blocked, digest);
    let mut decisions = Section::new("## Key Decisions", Mark::Dash, 12);
    add_decisions(&mut decisions, digest);
    let mut critical = Section::new(context::HEADING, Mark::Dash, 6);
    add_report(&mut critical, digest);
    vec![
        goal("## Goal", digest, 22),
        constraints,
        Section::new("## Progress", Mark::Nothing, 0),
        done("### Done", digest, 24),
        in_progress(digest, &previous, 8),
        blocked,
        decisions,
        critical,
        next_steps(digest, &previous, 8),
    ]
}

pub(super) fn turn_prefix(digest: &Digest) -> Vec<Section> {
    let mut so_far = done("## So Far", digest, 40);
    so_far.mark = Mark::Dash;
    add_blocked(&mut so_far, digest);
    for (n, words) in last_words(digest).enumerate() {
        so_far.add(words, n as u32);
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

/// Stands before what the last answer reports, once work has ended.
const REPORTED: &str = "Last answer:";

/// What the last answer reports, if no work is under way.
fn add_report(section: &mut Section, digest: &Digest) {
    if !digest.last_words.is_empty() {
        section.lines.retain(|line| !line.text.starts_with(REPORTED));
    }
    if !digest.is_under_way {
        for (n, words) in last_words(digest).enumerate() {
            section.add(format!("{REPORTED} {words}"), 1000 + n as u32);
        }
    }
}

/// The user's requests: the newest whole, earlier ones by their first sentence.
fn goal(heading: &'static str, digest: &Digest, weight: u64) -> Section {
    let mut goal = Section::new(heading, Mark::Dash, weight);
    let n = digest.requests.len();
    let older = n.saturating_sub(MOST_LINES);
    for (at, request) in digest.requests.iter().enumerate().filter(|(at, _)| *at == 0 || *at >= older) {
        if at + 1 == n {
            // The newest is never taken for a repetition of an earlier one.
            goal.lines.retain(|line| !request.contains(&line.text));
            goal.lines.push(Line { text: request.clone(), rank: STANDING });
        } else {
            let first = telling_sentence(request);
            let rank = if at == 0 { STANDING / 4 } else { at as u32 };
            // A command of the agent's program is no request.
            if !first.starts_with('/') || first.contains(' ') {
                goal.add(take_units(first, 240), rank);
            }
        }
    }
    goal
}

/// The first sentence of some length: "Good." says nothing.
pub(super) fn telling_sentence(request: &str) -> &str {
    let said = sentences(request);
    let is_long = |sentence: &&&str| sentence.chars().count() >= if sentence.is_ascii() { 15 } else { 6 };
    let telling = said.iter().find(is_long).or(said.first());
    telling.copied().unwrap_or_else(|| request.lines().next().unwrap_or_default())
}

fn add_previous(section: &mut Section, previous: &Previous, part: Part, rank: u32) {
    for (n, line) in previous.part(part).enumerate() {
        let standing = if is_rule(line) && part == Part::Constraints { STANDING / 2 } else { 0 };
        section.add(line, rank + n as u32 + standing);
    }
}

fn add_rules(section: &mut Section, digest: &Digest) {
    let older = |lines: &[String]| lines.len().saturating_sub(MOST_LINES);
    for (n, rule) in digest.rules.iter().enumerate().skip(older(&digest.rules)) {
        section.add(format!("\"{rule}\""), STANDING / 2 + n as u32);
    }
    for (n, wish) in digest.wishes.iter().enumerate().skip(older(&digest.wishes)) {
        section.add(format!("\"{wish}\""), 1000 + n as u32);
    }
}

/// Files changed, commands that succeeded, todo items that are done.
fn done(heading: &'static str, digest: &Digest, weight: u64) -> Section {
    let mut done = Section::new(heading, Mark::Done, weight);
    let older = digest.calls.changes.len().saturating_sub(MOST_LINES);
    for (n, change) in digest.calls.changes.iter().enumerate().skip(older) {
        done.add(change.line(), 2001 + 2 * (n - older) as u32);
    }
    let telling = |command: &&Command| !command.failed && is_telling(&command.line);
    for (n, command) in digest
        .calls
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
        done.add(format!("ran `{}`{said}", command.line), 2000 + 2 * n as u32);
    }
    for (text, _) in digest.todos.iter().filter(|(_, is_done)| *is_done) {
        done.add(text.clone(), 500);
    }
    done
}

/// Commands whose success says something: tests, builds, commits, installations. Searches are none, whatever they look for.
pub(super) fn is_telling(line: &str) -> bool {
    const ALWAYS: [&str; 14] = [
        "make", "pytest", "tsc", "jest", "vitest", "eslint", "biome", "prettier", "ruff", "mypy", "gradle",
        "mvn", "ctest", "docker",
    ];
    const TELLING: [&str; 18] = [
        "test", "build", "check", "commit", "push", "lint", "install", "clippy", "fmt", "migrate", "deploy",
        "publish", "merge", "rebase", "bench", "compile", "tag", "release",
    ];
    const SEARCHES: [&str; 12] =
        ["grep", "rg", "sed", "find", "cat", "ls", "head", "tail", "awk", "echo", "cd", "which"];
    line.split(['|', ';', '&']).any(|part| {
        let mut words = part
            .split_whitespace()
            .skip_while(|word| word.contains('=') || *word == "sudo" || *word == "time");
        let Some(program) = words.next() else { return false };
        let name = program.rsplit('/').next().unwrap_or(program);
        let is_plain = |word: &&str| {
            !word.starts_with('-')
                && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-:_".contains(&byte))
        };
        let says =
            |word: &str| word.split(['-', ':', '_']).any(|it| TELLING.contains(&it) || ALWAYS.contains(&it));
        !SEARCHES.contains(&name) && (ALWAYS.contains(&name) || words.filter(is_plain).take(3).any(says))
    })
}

fn in_progress(digest: &Digest, previous: &Previous, weight: u64) -> Section {
    let mut section = Section::new("### In Progress", Mark::Open, weight);
    for (text, _) in digest.todos.iter().filter(|(_, is_done)| !is_done) {
        section.add(text.clone(), 1000);
    }
    if digest.is_under_way {
        for (n, words) in last_words(digest).enumerate() {
            section.add(words, n as u32);
        }
    }
    if digest.last_words.is_empty() && digest.todos.is_empty() {
        add_previous(&mut section, previous, Part::InProgress, 0);
    }
    section
}

/// What the last answer says, without announcements and without the question that waits.
fn last_words(digest: &Digest) -> impl Iterator<Item = &str> {
    let words = digest.last_words.iter().map(String::as_str);
    let said: Vec<&str> =
        words.filter(|words| digest.question.as_deref() != Some(*words) && is_whole(words)).collect();
    let first = said.len().saturating_sub(MOST_LAST_WORDS);
    said.into_iter().skip(first)
}

/// Commands and calls that failed and never succeeded after.
fn add_blocked(section: &mut Section, digest: &Digest) {
    let failures = digest.calls.failures();
    let older = failures.len().saturating_sub(MOST_LINES);
    for (n, failure) in failures.into_iter().enumerate().skip(older) {
        section.add(format!("{} `{}`: {}", failure.tool, failure.about, failure.said), 10 + n as u32);
    }
    let failed: Vec<&Command> = digest.calls.commands.iter().filter(|command| command.failed).collect();
    for (n, command) in failed.iter().enumerate().skip(failed.len().saturating_sub(MOST_LINES)) {
        let said = command.said.as_deref().unwrap_or("failed");
        section.add(format!("`{}`: {said}", command.line), 1000 + n as u32);
    }
}

fn add_decisions(section: &mut Section, digest: &Digest) {
    let older = digest.decisions.len().saturating_sub(MOST_LINES);
    for (n, (what, why)) in digest.decisions.iter().enumerate().skip(older) {
        let why = if why.is_empty() { String::new() } else { format!(": {why}") };
        section.add(format!("**{what}**{why}"), 1000 + n as u32);
    }
}

fn next_steps(digest: &Digest, previous: &Previous, weight: u64) -> Section {
    let mut section = Section::new("## Next Steps", Mark::Number, weight);
    for (n, step) in digest.steps.iter().enumerate() {
        section.add(step.trim_end_matches([':', '：']), 1000 - n.min(900) as u32);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_builds_and_commits_tell_something_and_searches_do_not() {
        for line in [
            "cargo test -p a",
            "cd x && npm run build:all",
            "PORT=1 make",
            "git commit -m x",
            "go vet && go test ./...",
        ] {
            assert!(is_telling(line), "{line}");
        }
        for line in
            ["grep -n test src", "sed -n 1,4p build.rs", "cat tests/a.rs | head", "ls test", "git log"]
        {
            assert!(!is_telling(line), "{line}");
        }
    }
}

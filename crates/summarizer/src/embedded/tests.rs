//! The summarizer on the example sessions: what it must hold, and what it must never do.

use session_model::text::units;
use session_model::value::Value;

use super::{EmbeddedInput, Kind, expanded, facts_index, short_summary};
use crate::material::Messages;

const SESSIONS: [&str; 4] = [
    include_str!("../../../../fixtures/summary-rate-limit/session.jsonl"),
    include_str!("../../../../fixtures/summary-invoice-import/session.jsonl"),
    include_str!("../../../../fixtures/summary-scripts/session.jsonl"),
    include_str!("../../../../fixtures/summary-parser/session.jsonl"),
];

fn messages(session: &str) -> Vec<Value<'_>> {
    session
        .lines()
        .filter_map(|line| Value::parse(line).expect("valid JSON").get("message").cloned())
        .collect()
}

static NO_MESSAGES: Vec<Value<'static>> = Vec::new();

fn input(messages: &dyn Messages, limit_tokens: u64) -> EmbeddedInput<'_> {
    EmbeddedInput {
        kind: Kind::History,
        messages,
        kept: &NO_MESSAGES,
        previous_summary: None,
        instructions: None,
        limit_tokens,
    }
}

fn summarize(input: &EmbeddedInput<'_>) -> String {
    super::summarize(input).expect("the messages are in memory")
}

#[track_caller]
fn holds(session: &str, lines: &[&str]) {
    let messages = messages(session);
    let summary = summarize(&input(&messages, 1200));
    for line in lines {
        assert!(summary.contains(line), "{line} is not in:\n{summary}");
    }
}

#[test]
fn requests_prohibitions_and_the_question_survive_word_for_word() {
    holds(
        SESSIONS[0],
        &[
            "- Good. The limits must come from config/tenants.toml, reloaded on SIGHUP. Do not log tenant names, they are personal data.",
            "\"Never change the public error codes in docs/errors.md, clients match on them.\"",
            "Waits for the user's answer: Should a SIGHUP with a bad file also set the health check on port 9090 to degraded?",
        ],
    );
    holds(SESSIONS[1], &["\"Don't touch anything under migrations/, the auditors froze it.\""]);
    holds(
        SESSIONS[2],
        &[
            "不要修改数据库表结构。",
            "Никогда не меняй формат тела ответа.",
            "ممنوع استخدام الشبكة.",
            "هل تريد أن أصلح FindPage أم أن أتجاهل المؤشر في writePage؟",
        ],
    );
}

#[test]
fn what_was_repaired_is_not_blocked_and_what_was_not_is() {
    let messages = messages(SESSIONS[0]);
    let summary = summarize(&input(&messages, 1200));
    let blocked = summary.split("### Blocked\n").nth(1).and_then(|rest| rest.split("\n\n").next());
    let blocked = blocked.expect("the section is there");
    assert!(blocked.contains("cargo test -p gateway reload") && !blocked.contains("E0433"), "{blocked}");
}

#[test]
fn never_over_the_limit_and_always_the_same() {
    for session in SESSIONS {
        let messages = messages(session);
        for limit in (0..700).step_by(23).chain([1000, 4000]) {
            for kind in [Kind::History, Kind::TurnPrefix, Kind::Branch] {
                let input = EmbeddedInput { kind, ..input(&messages, limit) };
                let summary = summarize(&input);
                assert!(units(&summary) <= limit * 4, "{kind:?} {limit}");
                assert_eq!(summary, summarize(&input));
            }
            assert!(units(&short_summary(&messages, &NO_MESSAGES, limit).expect("in memory")) <= limit * 4);
            let index = facts_index(&messages, &NO_MESSAGES, limit, "").expect("in memory");
            assert!(units(&index) <= limit * 4);
        }
    }
}

#[test]
fn the_index_is_never_longer_than_everything_else() {
    for session in SESSIONS {
        let messages = messages(session);
        for limit in [300, 700, 1200, 2000, 4000] {
            let summary = summarize(&input(&messages, limit));
            let index = summary
                .split("\n\nIndex of facts:")
                .nth(1)
                .map_or("", |rest| rest.split("\n\n").next().unwrap_or(""));
            assert!(units(index) * 2 <= units(&summary), "{limit}:\n{summary}");
        }
    }
}

#[test]
fn no_line_stands_twice() {
    for session in SESSIONS {
        let messages = messages(session);
        let summary = summarize(&input(&messages, 2000));
        let mut lines: Vec<&str> = summary.lines().filter(|line| line.len() > 12).collect();
        let n_lines = lines.len();
        lines.sort_unstable();
        lines.dedup();
        assert_eq!(lines.len(), n_lines, "{summary}");
    }
}

#[test]
fn a_file_that_is_changed_again_after_a_compaction_has_one_line() {
    let messages = messages(SESSIONS[0]);
    let first = summarize(&input(&&messages[..19], 1500));
    let second =
        summarize(&EmbeddedInput { previous_summary: Some(&first), ..input(&&messages[19..], 1500) });
    let lines: Vec<&str> = second
        .lines()
        .filter(|line| line.contains("crates/gateway/src/bucket.rs") && line.starts_with("- [x] wrote"))
        .collect();
    assert_eq!(
        lines,
        [
            "- [x] wrote crates/gateway/src/bucket.rs, 3 times: The cap is applied before the elapsed time is added."
        ]
    );
}

#[test]
fn finished_work_is_no_work_under_way() {
    let messages = messages(SESSIONS[3]);
    let summary = summarize(&input(&messages, 1200));
    assert!(summary.contains("### In Progress\n(none)\n"), "{summary}");
    assert!(summary.contains("- Last answer: I have not pushed anything."), "{summary}");
    let before = summarize(&input(&&messages[..messages.len() - 1], 1200));
    assert!(!before.contains("Last answer:"), "{before}");
}

#[test]
fn nothing_is_invented() {
    for session in SESSIONS {
        let messages = messages(session);
        let mut source = String::new();
        messages.iter().for_each(|message| each_string(message, &mut source));
        let source = words(&source);
        let summary = summarize(&input(&messages, 2000));
        let (sections, index) = summary.split_once("Index of facts:").unwrap_or((&summary, ""));
        for line in
            sections.lines().filter(|line| !line.starts_with('#') && !line.starts_with("- Summarised "))
        {
            let line = line.trim_start_matches(|it: char| it.is_ascii_digit() || "-.[x] ".contains(it));
            // Folded paths are looked for below.
            if line.starts_with("Read ") {
                continue;
            }
            let own = [
                "wrote ",
                "edited ",
                "ran ",
                "Also ran, newest last:",
                "The user said:",
                "Last answer:",
                "Waits for the user's answer:",
                "(none)",
            ];
            let line = own.iter().find_map(|own| line.strip_prefix(own)).unwrap_or(line);
            let line = (2..9).fold(line.to_owned(), |line, n| line.replace(&format!(", {n} times"), ":"));
            for piece in
                line.split(['`', '*', ':', '"', '…']).filter(|piece| !matches!(piece.trim(), "gave" | "has"))
            {
                assert!(source.contains(&words(piece)), "{piece} is not in the messages");
            }
        }
        let read: String = sections
            .lines()
            .filter(|line| line.starts_with("- Read "))
            .map(|line| format!("{line}\n"))
            .collect();
        let folded = format!("## Critical Context\n{read}\nIndex of facts:{index}");
        for fact in expanded(&folded).lines().skip(folded.lines().count()) {
            assert!(source.contains(&words(fact)), "{fact} is not in the messages");
        }
    }
}

#[test]
fn five_compactions_keep_the_prohibitions_of_the_first() {
    let first = messages(SESSIONS[0]);
    let later = messages(SESSIONS[1]);
    let mut summary = summarize(&input(&first, 1500));
    for part in later.chunks(8).take(4) {
        let previous = summary;
        summary = summarize(&EmbeddedInput { previous_summary: Some(&previous), ..input(&part, 1500) });
    }
    let constraints = summary.split("\n## ").find(|section| section.starts_with("Constraints"));
    let constraints = constraints.expect("the section is there");
    assert!(!summary.contains("Should a SIGHUP"), "the user has gone on:\n{summary}");
    for kept in ["Never change the public error codes in docs/errors.md", "Do not log tenant names"] {
        assert_eq!(constraints.matches(kept).count(), 1, "{kept}:\n{summary}");
    }
}

fn each_string(value: &Value<'_>, out: &mut String) {
    match value {
        Value::String(text) => {
            out.push_str(&text.text());
            out.push('\n');
        }
        Value::Array(items) => items.iter().for_each(|item| each_string(item, out)),
        Value::Object(object) => object.iter().for_each(|(_, value)| each_string(value, out)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Deep(_) => {}
    }
}

/// Letters and digits alone, one space between words.
fn words(text: &str) -> String {
    let words = text.split(|character: char| !character.is_alphanumeric()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join(" ")
}

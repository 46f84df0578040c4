//! Damaged files: each problem is told once, with its line, and reading stays within bounds (spec 1.1, 1.5, 8.2).
#![expect(clippy::disallowed_methods, reason = "tests read the sessions of a folder")]

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use session_gen::{Dialect, Shape, damage, generate};
use session_model::agent_message::agent_messages;
use session_model::error::Problem;
use session_model::repair::repair;
use session_model::session::Session;
use session_model::validate::validate;

const HEADER: &str = r#"{"type":"session","version":3,"id":"s"}"#;

fn entry(id: &str, parent: &str) -> String {
    let parent = if parent.is_empty() { "null".to_owned() } else { format!("{parent:?}") };
    format!(
        r#"{{"type":"message","id":"{id}","parentId":{parent},"message":{{"role":"user","content":"{id}"}}}}"#
    )
}

/// `kind@line entry unreachable`, for each problem.
fn described(problems: &[Problem]) -> Vec<String> {
    let words = |problem: &Problem| {
        let entry = problem.entry.as_deref().unwrap_or("-");
        format!("{}@{} {entry} {}", problem.kind.name(), problem.line, problem.unreachable)
    };
    problems.iter().map(words).collect()
}

#[track_caller]
fn check(lines: &[&str], expected: &[&str]) {
    let file = format!("{HEADER}\n{}", lines.join("\n"));
    let (_, problems) = Session::read(file.as_bytes()).expect("a session");
    assert_eq!(described(&problems), expected, "{file}");
}

#[test]
fn each_damage_is_told_once_where_it_is() {
    let (a, b, c) = (entry("a", ""), entry("b", "a"), entry("c", "b"));
    let whole = entry("t", "a");
    let torn = &whole[..40];
    check(&[&a, &b, ""], &[]);
    check(&[&a, &format!("{b}{c}"), ""], &["glued_records@3 - 0"]);
    check(&[&a, &format!("{torn}{b}"), &c], &["torn_record@3 - 0"]);
    check(&[&a, torn], &["torn_tail@3 - 0"]);
    check(&[&a, "\0\0\0", &b], &["nul_run@3 - 0"]);
    check(&[&a, "junk", "[1]", "null", &b], &["junk@3 - 0", "junk@4 - 0", "junk@5 - 0"]);
    check(&[&a, HEADER, &b], &["extra_header@3 - 0"]);
    check(&[&a, r#"{"type":"message"}"#], &["missing_id@3 - 0"]);
    check(&[&a, &entry("a", ""), &b], &["duplicate_id@2 a 1"]);
}

#[test]
fn broken_links_say_how_many_entries_became_unreachable() {
    let (a, d) = (entry("a", ""), entry("d", ""));
    check(&[&a, &entry("b", "gone"), &entry("c", "b"), &d], &["missing_parent@3 b 2"]);
    check(&[&entry("b", "x"), &entry("c", "y"), &d], &["missing_parent@2 b 1", "missing_parent@3 c 1"]);
    check(&[&entry("a", "a"), &entry("b", "a"), &d], &["cycle@2 a 2"]);
    check(&[&entry("a", "c"), &entry("b", "a"), &entry("c", "b"), &entry("e", "b"), &d], &["cycle@2 a 4"]);
    // Two roots are no problem.
    check(&[&a, &d, &entry("e", "a")], &[]);
}

#[track_caller]
fn check_told_once(file: &[u8], context: &str) {
    let Ok((session, problems)) = Session::read(file) else { return };
    let mut seen = HashSet::new();
    for problem in &problems {
        let before = &file[..problem.offset as usize];
        let line = before.iter().filter(|byte| **byte == b'\n').count() as u64 + 1;
        assert_eq!(problem.line, line, "{context}: {problem:?}");
        assert!(seen.insert((problem.kind, problem.offset, &problem.entry)), "{context}: {problem:?} twice");
    }
    let sequence = session.branch(None).effective();
    validate(&sequence);
    agent_messages(&sequence, file).expect("the records are in the file");
    let repaired = repair(file).expect("a session can be repaired");
    let (after, _) = Session::read(&repaired.bytes).expect("a session");
    assert!(after.entries.len() >= session.entries.len(), "{context}");
}

#[test]
fn problems_of_damaged_sessions_are_told_once_on_their_line() {
    for seed in 0..400 {
        let dialect = if seed % 2 == 0 { Dialect::Omp } else { Dialect::Pi };
        let session = generate(seed, &Shape::everything(dialect));
        check_told_once(&damage(seed, session.as_bytes()), &format!("seed {seed}"));
    }
}

/// Sessions of real agents, where they lie beside the project.
#[test]
fn problems_of_damaged_real_sessions_are_told_once_on_their_line() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus");
    let mut folders = vec![corpus];
    let mut files: Vec<PathBuf> = Vec::new();
    while let Some(folder) = folders.pop() {
        let Ok(entries) = folder.read_dir() else {
            eprintln!("SKIPPED: there is no folder {}", folder.display());
            return;
        };
        for path in entries.map(|entry| entry.expect("an entry").path()) {
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    files.retain(|file| file.extension().is_some_and(|it| it == "jsonl"));
    files.sort();
    for (seed, path) in (0..).zip(files) {
        let file = std::fs::read(&path).expect("a file");
        if file.len() > 400_000 {
            continue;
        }
        check_told_once(&file, &path.display().to_string());
        for n in 0..8 {
            check_told_once(&damage(seed * 8 + n, &file), &format!("{} damaged {n}", path.display()));
        }
    }
}

#[test]
fn a_hundred_thousand_levels_need_no_stack() {
    let (open, close) = ("[".repeat(100_000), "]".repeat(100_000));
    let objects = format!("{}1{}", r#"{"a":"#.repeat(100_000), "}".repeat(100_000));
    let file = [
        HEADER.to_owned(),
        format!(
            r#"{{"type":"message","id":"a","parentId":null,"message":{{"role":"user","content":{open}{close}}}}}"#
        ),
        format!(
            r#"{{"type":"message","id":"b","parentId":"a","message":{{"role":"assistant","content":[{{"type":"toolCall","id":"1","name":"x","arguments":{objects}}}]}}}}"#
        ),
        format!(
            r#"{{"type":"compaction","id":"c","parentId":"b","summary":{open}{close},"firstKeptEntryId":"a"}}"#
        ),
        // Never closed.
        open,
    ]
    .join("\n");
    check_told_once(file.as_bytes(), "deep");
}

#[test]
fn chains_stars_and_circles_of_many_entries_are_walked_in_no_time() {
    const N: usize = 60_000;
    type ParentOf = fn(usize) -> Option<usize>;
    let shapes: [(ParentOf, usize, usize); 4] = [
        (|n| n.checked_sub(1), N, 0),
        (|n| (n + 1 < N).then_some(n + 1), 1, 0),
        (|n| (n > 0).then_some(0), 2, 0),
        (|n| Some(n.checked_sub(1).unwrap_or(N - 1)), N, 1),
    ];
    for (parent_of, n_on_branch, n_problems) in shapes {
        let mut file = HEADER.to_owned() + "\n";
        for n in 0..N {
            let parent = parent_of(n).map_or_else(String::new, |parent| parent.to_string());
            file += &(entry(&n.to_string(), &parent) + "\n");
        }
        let (session, problems) = Session::read(file.as_bytes()).expect("a session");
        assert_eq!((session.branch(None).entries.len(), problems.len()), (n_on_branch, n_problems));
        assert_eq!(repair(file.as_bytes()).expect("a session").steps.len(), n_problems);
    }
}

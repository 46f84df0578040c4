//! `undo`: takes back a write of the library's, byte for byte.

use sesstool::disk::{Intent, Target, append, read};

use crate::support::{TestEnv, session};

fn append_to(env: &TestEnv, name: &str) {
    let path = env.work().join(name);
    let file = read::whole(&path).expect("the session");
    let target =
        Target { path: &path, fingerprint: file.fingerprint().expect("it is a file"), bytes: Some(&file) };
    let record =
        br#"{"type":"custom","id":"aaaaaaaa","parentId":null,"timestamp":"2026-01-02T03:04:05.000Z"}"#;
    let record = [record, &b"\n"[..]].concat();
    append(&target, &record, &Intent { command: "compact", time: "2026-01-02T03:04:05.000Z" })
        .expect("appended");
}

#[test]
fn an_append_is_taken_back_once() {
    let env = TestEnv::new();
    env.write("a.jsonl", session("a"));
    append_to(&env, "a.jsonl");
    assert_ne!(env.read("a.jsonl"), session("a"));
    let ran = env.run(["undo", "a.jsonl"]);
    assert_eq!(ran.quiet_status(), Some(0));
    assert_eq!(ran.stdout, "took back compact of 2026-01-02T03:04:05.000Z\n");
    assert_eq!(env.read("a.jsonl"), session("a"));
    let again = env.run(["undo", "a.jsonl"]);
    assert_eq!((again.status, &*again.stdout), (Some(0), ""));
    assert_eq!(again.stderr, "a.jsonl: skipped: nothing to undo\n");
}

#[test]
fn json_says_the_same() {
    let env = TestEnv::new();
    env.write("a.jsonl", session("a"));
    append_to(&env, "a.jsonl");
    let ran = env.run(["undo", "--json", "a.jsonl"]);
    assert_eq!(ran.quiet_status(), Some(0));
    assert_eq!((ran.fields("status"), ran.fields("command")), (vec!["done".into()], vec!["compact".into()]));
    let again = env.run(["undo", "--json", "a.jsonl"]);
    assert_eq!(
        (again.fields("status"), again.fields("reason")),
        (vec!["skipped".into()], vec!["nothing_to_undo".into()])
    );
}

#[test]
fn what_was_changed_since_is_refused_and_stays() {
    let env = TestEnv::new();
    env.write("a.jsonl", session("a"));
    append_to(&env, "a.jsonl");
    let changed = env.read("a.jsonl") + "{\"type\":\"custom\",\"id\":\"bbbbbbbb\"}\n";
    env.write("a.jsonl", &changed);
    let ran = env.run(["undo", "a.jsonl"]);
    assert_eq!((ran.status, &*ran.stdout), (Some(1), ""));
    assert!(ran.stderr.contains("a.jsonl: cannot undo: "), "{}", ran.stderr);
    assert_eq!(env.read("a.jsonl"), changed);
}

#[test]
fn a_file_is_needed_and_a_folder_or_standard_input_is_none() {
    let env = TestEnv::new();
    env.write("s/a.jsonl", session("a"));
    assert_eq!(env.run(["undo"]).status, Some(2));
    assert_eq!(env.run(["undo", "-"]).status, Some(2));
    assert_eq!(env.run(["undo", "missing.jsonl"]).status, Some(2));
    assert_ne!(env.run(["undo", "s"]).status, Some(0));
}

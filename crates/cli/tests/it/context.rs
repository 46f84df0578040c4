//! `sesstool context`: formats, faults on standard error, leaves.

use crate::sessions::{omp, pi, with_entry};
use crate::support::{TestEnv, session};

#[test]
fn prints_model_messages_one_a_line() {
    let env = TestEnv::new();
    env.write("a.jsonl", session("one"));
    let ran = env.run(["context", "--format", "jsonl", "a.jsonl"]);
    let roles = ran.fields("role");
    assert_eq!(
        (ran.quiet_status(), roles),
        (Some(0), ["user", "assistant", "toolResult", "assistant"].map(str::to_owned).to_vec())
    );
}

#[test]
fn json_has_the_state_beside_the_messages() {
    let env = TestEnv::new();
    env.write("a.jsonl", session("one"));
    let record = &env.run(["context", "--json", "a.jsonl"]).json()[0];
    assert_eq!(record["models"]["default"], "anthropic/claude-sonnet-4-5");
    assert_eq!((record["thinkingLevel"].as_str(), record["mode"].as_str()), (Some("off"), Some("none")));
    assert_eq!(record["messages"].as_array().map(Vec::len), Some(4));
    assert_eq!(record["leafId"], "00000005");
}

#[test]
fn text_titles_each_message() {
    let env = TestEnv::new();
    env.write("a.jsonl", session("one"));
    let ran = env.run(["context", "a.jsonl"]);
    insta::assert_snapshot!(ran.stdout, @r#"
    ── 001 user  00000002  4 tokens
    What is in src?

    ── 002 assistant  00000003  9 tokens  anthropic/claude-sonnet-4-5
    Let me look.
    call bash (call_1):
    {"command":"ls src"}

    ── 003 toolResult  00000004  4 tokens  bash
    main.rs
    lib.rs

    ── 004 assistant  00000005  3 tokens  anthropic/claude-sonnet-4-5
    Two files.
    "#);
}

#[test]
fn faults_are_said_and_the_context_is_printed_nevertheless() {
    let env = TestEnv::new();
    let file = with_entry(
        &session("one"),
        "x1",
        "message",
        r#""message":{"role":"toolResult","toolCallId":"gone","toolName":"t","content":[]}"#,
    );
    env.write("a.jsonl", file);
    let ran = env.run(["context", "--format", "jsonl", "a.jsonl"]);
    assert_eq!((ran.status, ran.stdout.lines().count()), (Some(0), 5));
    assert!(
        ran.stderr.contains("fault: a tool result without an earlier call at entry x1 (call gone)"),
        "{}",
        ran.stderr
    );
}

#[test]
fn a_leaf_on_another_branch_than_the_newest_message_is_said() {
    let env = TestEnv::new();
    let mut file = session("one");
    file.push_str("{\"type\":\"label\",\"id\":\"l1\",\"parentId\":\"00000002\",\"timestamp\":\"2026-01-03T00:00:00.000Z\",\"targetId\":\"00000002\",\"label\":\"x\"}\n");
    env.write("a.jsonl", file);
    let ran = env.run(["context", "--format", "jsonl", "a.jsonl"]);
    assert_eq!(ran.stdout.lines().count(), 1);
    assert!(ran.stderr.contains("give --leaf 00000005"), "{}", ran.stderr);
    let other = env.run(["context", "--format", "jsonl", "--leaf", "00000005", "a.jsonl"]);
    assert_eq!((other.quiet_status(), other.stdout.lines().count()), (Some(0), 4));
}

#[test]
fn request_bodies_are_json_for_each_api() {
    let env = TestEnv::new();
    env.write("a.jsonl", omp("one", 3));
    env.write("b.jsonl", pi("two", 3));
    for (format, list) in
        [("anthropic", "messages"), ("openai", "messages"), ("responses", "input"), ("gemini", "contents")]
    {
        for file in ["a.jsonl", "b.jsonl"] {
            let ran = env.run(["context", "--format", format, file]);
            let body: serde_json::Value = serde_json::from_str(&ran.stdout).expect("one JSON object");
            assert!(body[list].as_array().is_some_and(|list| list.len() >= 12), "{format}: {body}");
        }
    }
    assert_eq!(env.run(["context", "--agent", "--format", "gemini", "a.jsonl"]).status, Some(2));
}

/// A session that is long enough to be written while it is read, with what is read in a special way.
#[test]
fn a_request_body_names_the_model_that_was_set_last() {
    let env = TestEnv::new();
    let model = |file: &str| {
        env.write("a.jsonl", file);
        env.run(["context", "--format", "openai", "a.jsonl"]).fields("model")
    };
    let old = omp("one", 3);
    assert_eq!(model(&old), ["claude-sonnet-4-5"]);
    let changed = with_entry(&old, "m1", "model_change", r#""model":"openai/gpt-5""#);
    assert_eq!(model(&changed), ["gpt-5"]);
    let other_role =
        with_entry(&changed, "m2", "model_change", r#""model":"openai/gpt-5-mini","role":"smol""#);
    assert_eq!(model(&other_role), ["gpt-5"]);
    let of_pi = with_entry(&pi("two", 3), "m1", "model_change", r#""provider":"openai","modelId":"gpt-5""#);
    assert_eq!(model(&of_pi), ["gpt-5"]);
}

fn large_session() -> Vec<u8> {
    let mut file = session("one");
    for n in 0..12 {
        let text = format!("number {n}: é\\n\\u001b[31m\\\"quoted\\\" ").repeat(15_000);
        let fields = format!(r#""message":{{"role":"user","content":[{{"type":"text","text":"{text}"}}]}}"#);
        file = with_entry(&file, &format!("b{n}"), "message", &fields);
    }
    let edit = r#""targetId":"b3","replacement":{"content":[{"type":"text","text":"put in its place"}]}"#;
    file = with_entry(&file, "edit1", "context_edit", edit);
    file = with_entry(&file, "edit2", "context_edit", r#""targetId":"b4","replacement":null"#);
    let compaction = r#""summary":"what was","firstKeptEntryId":"b1","tokensBefore":9"#;
    file = with_entry(&file, "c1", "compaction", compaction);
    file = with_entry(&file, "last", "message", r#""message":{"role":"user","content":"not UTF-8: ?"}"#);
    let mut bytes = file.into_bytes();
    let at = bytes.iter().rposition(|byte| *byte == b'?').expect("it was just written");
    bytes[at] = 0xFF;
    bytes
}

#[test]
fn a_large_session_is_printed_as_one_in_memory_is() {
    let env = TestEnv::new();
    let bytes = large_session();
    assert!(bytes.len() > 5 << 20, "{}", bytes.len());
    env.write("large.jsonl", &bytes);
    for words in ["text", "markdown", "jsonl"] {
        for more in [&[][..], &["--agent"], &["--leaf", "b7"]] {
            let arguments = |path| [&["context", "--format", words, path], more].concat();
            let from_file = env.run(arguments("large.jsonl"));
            // What comes through a pipe is in memory as a whole.
            let from_pipe = env.run_with_input(arguments("-"), &bytes);
            assert!(from_file.stdout == from_pipe.stdout, "{words} {more:?}");
            assert!(from_file.stdout.len() > 1 << 20, "{words} {more:?}");
            assert_eq!((from_file.status, from_pipe.status), (Some(0), Some(0)));
        }
    }
}

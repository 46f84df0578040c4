//! Automatic maintenance where a hook or a model has a say: silent overflows, cancels, failures, what is kept from a compaction before.

use serde_json::{Value, json};

use crate::sessions::{append_turns, last_id, omp, pi, with_entry};
use crate::support::{TestEnv, entries};

/// Events of `compact --auto` with these flags, in their order.
fn events(env: &TestEnv, flags: &[&str]) -> (Option<i32>, Vec<Value>) {
    env.write("events.jsonl", "");
    let ran = env
        .run(["compact", "--auto", "-q", "--events", "events.jsonl"].iter().chain(flags).chain(&["a.jsonl"]));
    (ran.status, entries(&env.read("events.jsonl")))
}

#[test]
fn a_silent_overflow_compacts_and_removes_nothing() {
    let answer = |role_fields: &str| {
        format!(
            r#""message":{{"role":"assistant","content":[{{"type":"text","text":"An answer that was cut by the server."}}],"provider":"anthropic","model":"claude-sonnet-4-5","stopReason":"stop"{role_fields}}}"#
        )
    };
    for file in [omp("one", 60), pi("one", 60)] {
        let env = TestEnv::new();
        let usage =
            r#","usage":{"input":250000,"output":10,"cacheRead":0,"cacheWrite":0,"totalTokens":250010}"#;
        let old = with_entry(&file, "f1", "message", &answer(usage));
        env.write("a.jsonl", &old);
        let (status, events) = events(&env, &[]);
        assert_eq!(status, Some(0));
        assert_eq!(events[0]["reason"], "overflow");
        let end = events.last().expect("an end");
        assert_eq!((&end["type"], &end["willRetry"]), (&"auto_compaction_end".into(), &false.into()));
        let new = env.read("a.jsonl");
        let added = entries(&new[old.len()..]);
        assert_eq!(added.len(), 1, "one compaction and no edit");
        assert_eq!((&added[0]["type"], &added[0]["parentId"]), (&"compaction".into(), &"f1".into()));
        let context = env.run(["context", "--format", "jsonl", "a.jsonl"]);
        assert!(context.stdout.contains("An answer that was cut by the server."));
    }
}

#[test]
fn a_hook_that_cancels_ends_it_as_aborted() {
    let env = TestEnv::new();
    let old = omp("one", 60);
    env.write("a.jsonl", &old);
    let flags = ["--threshold-tokens", "100", "--hook", r#"session_before_compact=echo '{"cancel":true}'"#];
    let (status, events) = events(&env, &flags);
    assert_eq!(status, Some(0));
    let kinds: Vec<&Value> = events.iter().map(|event| &event["type"]).collect();
    assert_eq!(kinds, ["auto_compaction_start", "auto_compaction_end"]);
    let end = &events[1];
    assert_eq!((&end["aborted"], &end["willRetry"], end.get("result")), (&true.into(), &false.into(), None));
    assert_eq!(env.read("a.jsonl"), old);
}

#[test]
fn a_failure_at_a_threshold_says_so() {
    let env = TestEnv::new();
    let old = omp("one", 60);
    env.write("a.jsonl", &old);
    let (status, events) = events(&env, &["--threshold-tokens", "100", "--summarizer-command", "exit 9"]);
    assert_eq!(status, Some(1));
    let end = events.last().expect("an end");
    assert!(
        end["errorMessage"].as_str().is_some_and(|text| text.starts_with("Auto-compaction failed: ")),
        "{end}"
    );
    assert_eq!(
        (&end["willRetry"], &end["aborted"], &end["action"]),
        (&false.into(), &false.into(), &events[0]["action"])
    );
    assert_eq!(env.read("a.jsonl"), old);
}

#[test]
fn the_whole_stream_of_one_compaction() {
    let env = TestEnv::new();
    env.write("a.jsonl", omp("one", 60));
    let script = r#"cat > /dev/null; echo '{"summary":"Short."}'"#;
    let (status, mut events) = events(&env, &["--threshold-tokens", "100", "--summarizer-command", script]);
    assert_eq!(status, Some(0));
    assert!(events.iter().all(|event| event["sessionFile"] == "a.jsonl"));
    let last = entries(&env.read("a.jsonl")).pop().expect("an entry");
    let end = events.pop().expect("an end");
    let start = events.remove(0);
    assert_eq!(
        start,
        json!({"type": "auto_compaction_start", "reason": "threshold", "action": "context-full", "sessionFile": "a.jsonl"})
    );
    assert!(events.iter().all(|event| event["type"] == "progress"), "{events:?}");
    for field in ["summary", "shortSummary", "firstKeptEntryId", "tokensBefore", "details"] {
        assert_eq!(end["result"][field], last[field], "{field}");
    }
    assert_eq!(
        (&end["aborted"], &end["willRetry"], end.get("errorMessage")),
        (&false.into(), &false.into(), None)
    );
}

#[test]
fn the_message_to_go_on_is_a_user_message_in_files_of_pi() {
    let env = TestEnv::new();
    env.write("a.jsonl", pi("one", 60));
    let ran =
        env.run(["compact", "--auto", "-q", "--append-continue", "--threshold-tokens", "100", "a.jsonl"]);
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    let mut all = entries(&env.read("a.jsonl"));
    let (last, before) = (all.pop().expect("an entry"), all.pop().expect("an entry"));
    assert_eq!((&last["message"]["role"], &before["type"]), (&"user".into(), &"compaction".into()));
    assert_eq!(last["parentId"], before["id"]);
    assert_eq!(
        last["message"]["content"],
        json!([{"type": "text", "text": "Continue if you have next steps."}])
    );
    // One undo takes both back.
    assert_eq!(env.run(["undo", "-q", "a.jsonl"]).status, Some(0));
    assert_eq!(env.read("a.jsonl"), pi("one", 60));
}

#[test]
fn what_a_compaction_has_preserved_goes_on_but_for_the_providers_own_history() {
    let env = TestEnv::new();
    let old = omp("one", 40);
    let kept = r#""summary":"Before.","firstKeptEntryId":"u35","tokensBefore":90000,"preserveData":{"mine":{"a":1},"yours":[2],"openaiRemoteCompaction":{"provider":"openai","replacementHistory":[]}}"#;
    let mut file = with_entry(&old, "c1", "compaction", kept);
    let parent = last_id(&file);
    append_turns(&mut file, &parent, 40, 40);
    env.write("a.jsonl", &file);
    let hook = r#"session.compacting=echo '{"preserveData":{"yours":[3],"new":true}}'"#;
    let script = r#"cat > /dev/null; echo '{"summary":"Short."}'"#;
    let ran = env.run(["compact", "-q", "--summarizer-command", script, "--hook", hook, "a.jsonl"]);
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    let last = entries(&env.read("a.jsonl")).pop().expect("an entry");
    assert_eq!(last["preserveData"], json!({"mine": {"a": 1}, "yours": [3], "new": true}));
}

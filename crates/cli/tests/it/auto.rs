//! `compact --auto`: overflow recovery, pruning first, thresholds, idle, events (spec 6.4).

use serde_json::json;

use crate::sessions::{omp, pi, with_entry};
use crate::support::{TestEnv, entries};

const TOO_LONG: &str = r#""message":{"role":"assistant","content":[],"provider":"anthropic","model":"claude-sonnet-4-5","stopReason":"error","errorMessage":"prompt is too long: 219898 tokens > 200000 maximum"}"#;

#[test]
fn after_an_overflow_the_failed_message_is_in_the_file_and_not_in_the_context() {
    for (file, kinds) in
        [(omp("one", 60), vec!["compaction"]), (pi("one", 60), vec!["context_edit", "compaction"])]
    {
        let env = TestEnv::new();
        let old = with_entry(&file, "f1", "message", TOO_LONG);
        env.write("a.jsonl", &old);
        let ran = env.run(["compact", "--auto", "--json", "-q", "--events", "events.jsonl", "a.jsonl"]);
        assert_eq!(ran.status, Some(0), "{}", ran.stderr);
        let record = &ran.json()[0];
        assert_eq!((&record["trigger"], &record["willRetry"]), (&"overflow".into(), &true.into()));
        let new = env.read("a.jsonl");
        assert!(new.starts_with(&old));
        let added = entries(&new[old.len()..]);
        assert_eq!(
            added.iter().map(|entry| entry["type"].as_str().expect("a type")).collect::<Vec<_>>(),
            kinds
        );
        let context = env.run(["context", "--agent", "--format", "jsonl", "a.jsonl"]);
        assert!(!context.stdout.contains("prompt is too long"), "{}", context.stdout);
        let events = entries(&env.read("events.jsonl"));
        assert_eq!(events[0]["type"], "auto_compaction_start");
        assert_eq!(events[0]["reason"], "overflow");
        let end = events.last().expect("an event");
        assert_eq!(
            (&end["type"], &end["aborted"], &end["willRetry"]),
            (&"auto_compaction_end".into(), &false.into(), &true.into())
        );
        assert_eq!(end["result"]["firstKeptEntryId"], added.last().expect("an entry")["firstKeptEntryId"]);
        // A second run finds nothing more to do.
        let again = env.run(["compact", "--auto", "-q", "--json", "a.jsonl"]);
        assert_eq!(again.json()[0]["status"], "skipped", "{}", again.stdout);
        assert_eq!(env.read("a.jsonl"), new);
    }
}

#[test]
fn other_failures_and_aborted_answers_are_left_alone() {
    let env = TestEnv::new();
    let other = TOO_LONG.replace("prompt is too long: 219898 tokens > 200000 maximum", "429 rate limit");
    let aborted = TOO_LONG.replace(r#""stopReason":"error""#, r#""stopReason":"aborted""#);
    env.write("a.jsonl", with_entry(&omp("one", 60), "f1", "message", &other));
    env.write("b.jsonl", with_entry(&omp("two", 60), "f1", "message", &aborted));
    let ran =
        env.run(["compact", "--auto", "-q", "--json", "--context-window", "1000", "a.jsonl", "b.jsonl"]);
    assert_eq!(
        (ran.status, ran.fields("reason")),
        (Some(0), vec!["failed".to_owned(), "aborted".to_owned()])
    );
}

#[test]
fn thresholds_decide_and_the_agent_is_asked_to_go_on() {
    let env = TestEnv::new();
    env.write("a.jsonl", omp("one", 60));
    let auto = |flags: &[&str]| {
        env.run(["compact", "--auto", "-q", "--json"].iter().chain(flags).chain(&["a.jsonl"]))
    };
    assert_eq!(auto(&[]).fields("reason"), ["below_threshold"]);
    assert_eq!(
        auto(&["--context-window", "70000", "--threshold-percent", "99"]).fields("reason"),
        ["below_threshold"]
    );
    env.write_settings(r#"{"compaction":{"enabled":false}}"#);
    assert_eq!(auto(&["--threshold-tokens", "100"]).fields("reason"), ["disabled"]);
    env.write_settings("{}");
    let ran = auto(&["--threshold-tokens", "100", "--append-continue"]);
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    let record = &ran.json()[0];
    assert_eq!(record["trigger"], "threshold");
    assert_eq!(
        (&record["willRetry"], &record["continuePrompt"]),
        (&false.into(), &"Continue if you have next steps.".into())
    );
    let file = env.read("a.jsonl");
    let last = entries(&file).pop().expect("an entry");
    assert_eq!(last["message"]["role"], "developer");
    assert_eq!(
        last["message"]["content"],
        json!([{"type": "text", "text": "Continue if you have next steps."}])
    );
}

#[test]
fn an_unknown_window_is_said() {
    let env = TestEnv::new();
    env.write("a.jsonl", omp("one", 3).replace("claude-sonnet-4-5", "nobody-knows"));
    let ran = env.run(["compact", "--auto", "a.jsonl"]);
    assert_eq!(ran.status, Some(0));
    assert!(ran.stderr.contains("the window of anthropic/nobody-knows is not known"), "{}", ran.stderr);
}

#[test]
fn pruning_comes_first_and_may_be_enough() {
    let env = TestEnv::new();
    let old = omp("one", 60);
    env.write("a.jsonl", &old);
    let flags = ["--protect", "1000", "--min-savings", "0", "--threshold-tokens", "100000", "a.jsonl"];
    let ran = env.run(["compact", "--auto", "-q", "--json"].iter().chain(&flags));
    let record = &ran.json()[0];
    assert!(
        record["pruned"]["results"].as_u64().is_some_and(|n| n > 30) && record.get("entryId").is_none(),
        "{record}"
    );
    assert!(env.read("a.jsonl").contains("prunedAt"));
    assert_eq!(env.read("a.jsonl.bak"), old);
    // Both at once are one change, and one undo takes it back.
    env.write("b.jsonl", &old);
    let flags = ["--protect", "1000", "--min-savings", "0", "--threshold-tokens", "1000", "b.jsonl"];
    let ran = env.run(["compact", "--auto", "-q", "--json"].iter().chain(&flags));
    let record = &ran.json()[0];
    assert!(
        record["pruned"]["results"].as_u64().is_some_and(|n| n > 30) && record["entryId"].is_string(),
        "{record}"
    );
    assert_eq!(env.run(["undo", "-q", "b.jsonl"]).status, Some(0));
    assert_eq!(env.read("b.jsonl"), old);
}

#[test]
fn idle_compacts_what_is_large_also_where_automatic_compaction_is_off() {
    let env = TestEnv::new();
    env.write_settings(r#"{"compaction":{"enabled":false}}"#);
    env.write("a.jsonl", omp("one", 60));
    assert_eq!(
        env.run(["compact", "--idle", "-q", "--json", "a.jsonl"]).fields("reason"),
        ["below_threshold"]
    );
    let ran = env.run(["compact", "--idle", "-q", "--json", "--idle-threshold-tokens", "1000", "a.jsonl"]);
    let record = &ran.json()[0];
    assert_eq!((&record["trigger"], record.get("continuePrompt")), (&"idle".into(), None));
}

#[test]
fn a_failure_is_an_event_with_the_words_of_its_kind() {
    let env = TestEnv::new();
    let old = with_entry(&omp("one", 60), "f1", "message", TOO_LONG);
    env.write("a.jsonl", &old);
    let ran = env.run(["compact", "--auto", "--events", "-", "--summarizer-command", "exit 9", "a.jsonl"]);
    assert_eq!(ran.status, Some(1));
    let end = ran.json().into_iter().rfind(|event| event["type"] == "auto_compaction_end").expect("an end");
    assert!(
        end["errorMessage"]
            .as_str()
            .is_some_and(|text| text.starts_with("Context overflow recovery failed: ")),
        "{end}"
    );
    assert_eq!((&end["willRetry"], &end["aborted"]), (&false.into(), &false.into()));
    assert_eq!(env.read("a.jsonl"), old);
}

#[test]
fn check_says_what_auto_would_do_by_its_exit_status() {
    let env = TestEnv::new();
    env.write("a.jsonl", omp("one", 60));
    let due = env.run(["check", "--json", "--threshold-tokens", "100", "a.jsonl"]);
    assert_eq!((due.status, due.fields("reason")), (Some(0), vec!["threshold".to_owned()]));
    let not = env.run(["check", "--json", "a.jsonl"]);
    assert_eq!((not.status, not.fields("reason")), (Some(1), vec!["below_threshold".to_owned()]));
    assert_eq!(env.run(["check", "missing.jsonl"]).status, Some(2));
    env.write("b.jsonl", with_entry(&omp("two", 3), "f1", "message", TOO_LONG));
    assert_eq!(env.run(["check", "--json", "b.jsonl"]).fields("reason"), ["overflow"]);
}

//! Hooks: what they are given, what their answers do, and what their failures do not (spec 6.3).

use serde_json::Value;

use crate::sessions::omp;
use crate::support::{Ran, TestEnv, last_entry};

fn compact(env: &TestEnv, hooks: &[&str]) -> Ran {
    let mut args = vec!["compact", "--json"];
    for hook in hooks {
        args.extend(["--hook", hook]);
    }
    args.push("a.jsonl");
    env.run(args)
}

fn given(env: &TestEnv, file: &str) -> Value {
    serde_json::from_str(&env.read(file)).expect("JSON")
}

#[test]
fn a_cancel_ends_it_and_the_chain() {
    let env = TestEnv::new();
    let old = omp("one", 60);
    env.write("a.jsonl", &old);
    let ran = compact(
        &env,
        &[
            r#"session_before_compact=cat > given.json; echo '{"cancel":true}'"#,
            "session_before_compact=touch second",
        ],
    );
    assert_eq!((ran.status, ran.fields("reason")), (Some(0), vec!["cancelled_by_hook".to_owned()]));
    assert_eq!(env.read("a.jsonl"), old);
    assert!(!env.work().join("second").exists());
    let given = given(&env, "given.json");
    assert_eq!(given["type"], "session_before_compact");
    assert_eq!(given["sessionFile"], "a.jsonl");
    assert_eq!(given["branchEntries"].as_array().map(Vec::len), Some(241));
    let preparation = &given["preparation"];
    let lengths: usize = ["messagesToSummarize", "turnPrefixMessages", "recentMessages"]
        .iter()
        .map(|part| preparation[part].as_array().map_or(0, Vec::len))
        .sum();
    assert_eq!(lengths, 240);
    assert!(
        preparation["fileOps"]["edited"]
            .as_array()
            .is_some_and(|files| files.contains(&"src/part_0.rs".into()))
    );
    assert_eq!(preparation["settings"]["keepRecentTokens"], 20000);
}

#[test]
fn a_whole_compaction_is_taken_as_it_is() {
    let env = TestEnv::new();
    env.write("a.jsonl", omp("one", 60));
    let answer = r#"session_before_compact=echo '{"compaction":{"summary":"Mine.","firstKeptEntryId":"u58","tokensBefore":7,"details":{"x":1},"preserveData":{"k":2}}}'"#;
    let told = "session_compact=cat > told.json";
    let ran = compact(&env, &[answer, told]);
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    let entry = last_entry(&env.read("a.jsonl"));
    assert_eq!(entry["summary"], "Mine.");
    assert_eq!((&entry["firstKeptEntryId"], &entry["tokensBefore"]), (&"u58".into(), &7.into()));
    assert_eq!(
        (&entry["details"], &entry["preserveData"]),
        (&serde_json::json!({"x": 1}), &serde_json::json!({"k": 2}))
    );
    assert_eq!(entry["fromExtension"], true);
    let told = given(&env, "told.json");
    assert_eq!((&told["compactionEntry"]["id"], &told["fromExtension"]), (&entry["id"], &true.into()));
}

#[test]
fn a_first_kept_entry_off_the_branch_fails() {
    let env = TestEnv::new();
    let old = omp("one", 60);
    env.write("a.jsonl", &old);
    let ran = compact(
        &env,
        &[
            r#"session_before_compact=echo '{"compaction":{"summary":"Mine.","firstKeptEntryId":"nope","tokensBefore":7}}'"#,
        ],
    );
    assert_eq!(ran.status, Some(1));
    assert!(ran.stderr.contains(r#"first kept entry "nope" is not on the branch"#), "{}", ran.stderr);
    assert_eq!(env.read("a.jsonl"), old);
    // A result without its call is a fault that the context had not before.
    let orphan = compact(
        &env,
        &[
            r#"session_before_compact=echo '{"compaction":{"summary":"Mine.","firstKeptEntryId":"r58","tokensBefore":7}}'"#,
        ],
    );
    assert_eq!(orphan.status, Some(1));
    assert!(
        orphan.stderr.contains("a tool result without an earlier call at entry r58"),
        "{}",
        orphan.stderr
    );
    assert_eq!(env.read("a.jsonl"), old);
}

#[test]
fn prompt_context_and_preserve_data_go_into_the_request_and_the_entry() {
    let env = TestEnv::new();
    env.write("a.jsonl", omp("one", 60));
    let compacting = r#"session.compacting=cat > given.json; echo '{"prompt":"SAY IT","context":["line one","line two"],"preserveData":{"k":[1]}}'"#;
    let script = r#"cat > $(mktemp asked.XXXXXX); echo '{"summary":"ok"}'"#;
    let ran = env.run(["compact", "--summarizer-command", script, "--hook", compacting, "a.jsonl"]);
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    let names = env.names();
    let mut asked = names.iter().filter(|name| name.starts_with("asked.")).map(|name| env.read(name));
    let first = asked.find(|request| request.contains("SAY IT")).expect("a request");
    let first: Value = serde_json::from_str(&first).expect("JSON");
    let prompt = first["prompt"].as_str().expect("a prompt");
    assert!(
        prompt.ends_with("<additional-context>\n- line one\n- line two\n</additional-context>\n\nSAY IT"),
        "{prompt}"
    );
    assert_eq!(last_entry(&env.read("a.jsonl"))["preserveData"], serde_json::json!({"k": [1]}));
    let given = given(&env, "given.json");
    assert_eq!(given["sessionId"], "one");
    assert!(given["messages"].as_array().is_some_and(|messages| messages.len() > 100));
}

#[test]
fn a_hook_that_fails_before_the_write_leaves_the_file_alone() {
    let env = TestEnv::new();
    let old = omp("one", 60);
    env.write("a.jsonl", &old);
    for (hook, words) in [
        ("echo broken >&2; exit 3", "ended with exit status 3: broken"),
        ("kill -9 $$", "was ended by a signal"),
        ("echo nonsense", "its answer is no JSON"),
        ("echo '[1]'", "its answer is no JSON object"),
        (r#"echo '{"compaction":{}}'"#, r#"no string "summary""#),
    ] {
        let ran = compact(&env, &[&format!("session_before_compact={hook}")]);
        assert_eq!(ran.status, Some(1), "{hook}");
        assert!(ran.stderr.contains(words), "{hook}: {}", ran.stderr);
        assert_eq!(ran.stderr.lines().count(), 2, "{}", ran.stderr);
        assert_eq!(env.read("a.jsonl"), old);
    }
}

#[test]
fn a_hook_that_takes_too_long_is_killed() {
    let env = TestEnv::new();
    let old = omp("one", 60);
    env.write("a.jsonl", &old);
    env.write_settings(r#"{"hooks":{"session_before_compact":[{"command":"sleep 30","timeoutMs":200}]}}"#);
    let ran = env.run(["compact", "a.jsonl"]);
    assert_eq!(ran.status, Some(1));
    assert!(ran.stderr.contains("no answer within"), "{}", ran.stderr);
    assert_eq!(env.read("a.jsonl"), old);
}

#[test]
fn a_hook_that_fails_after_the_write_is_reported_and_the_write_stays() {
    let env = TestEnv::new();
    env.write("a.jsonl", omp("one", 60));
    let ran = compact(&env, &["session_compact=exit 5"]);
    assert_eq!(ran.status, Some(0));
    let warnings = ran.json()[0]["warnings"].to_string();
    assert!(
        warnings.contains("ended with exit status 5") && warnings.contains("what was written stays"),
        "{warnings}"
    );
    assert_eq!(last_entry(&env.read("a.jsonl"))["type"], "compaction");
}

#[test]
fn no_output_is_no_opinion_and_the_last_opinion_wins() {
    let env = TestEnv::new();
    env.write("a.jsonl", omp("one", 60));
    let with = |summary: &str| {
        format!(
            r#"session_before_compact=echo '{{"compaction":{{"summary":"{summary}","firstKeptEntryId":"u58","tokensBefore":7}}}}'"#
        )
    };
    let ran = compact(&env, &[&with("first"), &with("second"), "session_before_compact=true"]);
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    assert_eq!(last_entry(&env.read("a.jsonl"))["summary"], "second");
}

#[test]
fn tree_hooks_are_asked_and_told() {
    let env = TestEnv::new();
    let old = omp("one", 6);
    env.write("a.jsonl", &old);
    let cancelled = env.run([
        "branch",
        "--to",
        "b1",
        "-s",
        "--json",
        "--hook",
        r#"session_before_tree=cat > given.json; echo '{"cancel":true}'"#,
        "a.jsonl",
    ]);
    assert_eq!(cancelled.fields("reason"), ["cancelled_by_hook"]);
    assert_eq!(env.read("a.jsonl"), old);
    let preparation = &given(&env, "given.json")["preparation"];
    assert_eq!(
        (&preparation["targetId"], &preparation["oldLeafId"], &preparation["commonAncestorId"]),
        (&"b1".into(), &"b5".into(), &"b1".into())
    );
    assert_eq!(
        (preparation["entriesToSummarize"].as_array().map(Vec::len), &preparation["userWantsSummary"]),
        (Some(16), &true.into())
    );
    let own = r#"session_before_tree=echo '{"summary":{"summary":"As it was.","details":{"x":1}}}'"#;
    let ran = env.run([
        "branch",
        "--to",
        "b1",
        "-s",
        "-q",
        "--hook",
        own,
        "--hook",
        "session_tree=cat > told.json",
        "a.jsonl",
    ]);
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    let entry = last_entry(&env.read("a.jsonl"));
    assert_eq!(
        (&entry["summary"], &entry["details"], &entry["fromExtension"]),
        (&"As it was.".into(), &serde_json::json!({"x": 1}), &true.into())
    );
    let told = given(&env, "told.json");
    assert_eq!(
        (&told["newLeafId"], &told["oldLeafId"], &told["fromExtension"]),
        (&entry["id"], &"b5".into(), &true.into())
    );
    // Without a wish for a summary a hook's is not used.
    env.write("a.jsonl", &old);
    env.run(["branch", "--to", "b1", "-q", "--hook", own, "a.jsonl"]);
    assert_eq!(env.read("a.jsonl"), old);
}

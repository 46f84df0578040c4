//! `sesstool branch`: where the summary hangs, and what is said without one.

use crate::sessions::{omp, pi};
use crate::support::{TestEnv, last_entry};

#[test]
fn the_summary_hangs_at_the_target() {
    for (file, from) in [(omp("one", 12), "b3"), (pi("one", 12), "b11")] {
        let env = TestEnv::new();
        env.write("a.jsonl", &file);
        let ran = env.run(["branch", "--to", "b3", "--summarize", "--json", "a.jsonl"]);
        assert_eq!(ran.status, Some(0), "{}", ran.stderr);
        let record = &ran.json()[0];
        assert_eq!(
            (record["abandonedEntries"].as_u64(), record["newLeafId"].as_str()),
            (Some(32), Some("b3"))
        );
        let new = env.read("a.jsonl");
        assert!(new.starts_with(&file));
        let entry = last_entry(&new);
        assert_eq!(
            (entry["type"].as_str(), entry["parentId"].as_str()),
            (Some("branch_summary"), Some("b3"))
        );
        assert_eq!(entry["fromId"], from);
        assert!(
            entry["summary"].as_str().is_some_and(|text| text.contains("<modified-files>\nsrc/part_10.rs\n"))
        );
        assert_eq!(entry["details"]["modifiedFiles"].as_array().map(Vec::len), Some(8));
        let context = env.run(["context", "--format", "jsonl", "a.jsonl"]);
        assert_eq!(context.stdout.lines().count(), 17);
    }
}

#[test]
fn a_user_message_is_left_for_its_parent_and_its_text_is_handed_back() {
    let env = TestEnv::new();
    env.write("a.jsonl", omp("one", 3));
    let ran = env.run(["branch", "--to", "u1", "--summarize", "a.jsonl"]);
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.contains("\nPlease do step 1"), "{}", ran.stdout);
    assert_eq!(last_entry(&env.read("a.jsonl"))["parentId"], "b0");
}

#[test]
fn without_a_summary_nothing_is_written_unless_a_label_is() {
    let env = TestEnv::new();
    let old = omp("one", 3);
    env.write("a.jsonl", &old);
    let ran = env.run(["branch", "--to", "b0", "a.jsonl"]);
    assert_eq!(ran.status, Some(0));
    assert!(ran.stderr.contains("give --summarize or --label"), "{}", ran.stderr);
    assert_eq!(env.read("a.jsonl"), old);
    assert_eq!(env.run(["branch", "-q", "--to", "b0", "--label", "here", "a.jsonl"]).status, Some(0));
    let entry = last_entry(&env.read("a.jsonl"));
    assert_eq!(
        (&entry["type"], &entry["targetId"], &entry["parentId"], &entry["label"]),
        (&"label".into(), &"b0".into(), &"b0".into(), &"here".into())
    );
}

#[test]
fn being_there_already_and_an_unknown_target_are_said() {
    let env = TestEnv::new();
    env.write("a.jsonl", omp("one", 3));
    let there = env.run(["branch", "--to", "b2", "--json", "a.jsonl"]);
    assert_eq!((there.status, there.fields("reason")), (Some(0), vec!["already_there".to_owned()]));
    assert_eq!(env.run(["branch", "--to", "nowhere", "a.jsonl"]).status, Some(1));
    let small = env.run(["branch", "--to", "b0", "--summarize", "--context-window", "1000", "a.jsonl"]);
    assert_eq!(small.status, Some(1));
    assert!(small.stderr.contains("leaves no room in a window of 1000 tokens"), "{}", small.stderr);
}

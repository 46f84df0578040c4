//! `sesstool prune`: what changes, what does not, and the way back.

use serde_json::Value;

use crate::sessions::{append_turns, last_id, omp, pi};
use crate::support::TestEnv;

const ALL: [&str; 4] = ["--protect", "1000", "--min-savings", "0"];

#[test]
fn blanks_old_results_in_place_and_leaves_every_other_byte() {
    let env = TestEnv::new();
    let old = omp("one", 20);
    env.write("a.jsonl", &old);
    let ran = env.run(["prune", "--json", "a.jsonl"].iter().chain(&ALL));
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    let record = &ran.json()[0];
    let blanked: Vec<&str> = record["blanked"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|it| it["id"].as_str().expect("an id"))
        .collect();
    assert!(blanked.len() > 10 && blanked[0] == "r0", "{blanked:?}");
    let new = env.read("a.jsonl");
    for (before, after) in old.lines().zip(new.lines()) {
        let value: Value = serde_json::from_str(before).expect("JSON");
        let id = value["id"].as_str().unwrap_or_default();
        if !blanked.contains(&id) {
            assert_eq!(before, after);
            continue;
        }
        let tokens = before
            .split(r#""text":""#)
            .nth(1)
            .and_then(|rest| rest.split('"').next())
            .expect("a text")
            .len()
            .div_ceil(4);
        let content =
            format!(r#""content":[{{"type":"text","text":"[Output truncated - {tokens} tokens]"}}]"#);
        assert!(after.contains(&content), "{after}");
        assert!(after.contains(r#""prunedAt":"#));
        assert!(after.starts_with(&before[..before.find(r#""content""#).expect("content")]));
    }
    assert_eq!(env.read("a.jsonl.bak"), old);
    let again = env.run(["prune", "-q", "--json", "a.jsonl"].iter().chain(&ALL));
    assert_eq!(again.fields("reason"), ["nothing_to_prune"]);
    assert_eq!(env.read("a.jsonl"), new);
}

#[test]
fn append_only_writes_context_edits_for_pi_and_refuses_oh_my_pi() {
    let env = TestEnv::new();
    let old = pi("one", 20);
    env.write("a.jsonl", &old);
    let ran = env.run(["prune", "-q", "--append-only", "a.jsonl"].iter().chain(&ALL));
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    let new = env.read("a.jsonl");
    assert!(new.starts_with(&old));
    assert!(new[old.len()..].lines().all(|line| line.starts_with(r#"{"type":"context_edit""#)));
    let context = env.run(["context", "--format", "jsonl", "a.jsonl"]);
    assert!(context.stdout.contains("[Output truncated - "), "{}", context.stdout);
    assert_eq!(
        env.run(["prune", "-q", "--json", "--append-only", "a.jsonl"].iter().chain(&ALL)).fields("reason"),
        ["nothing_to_prune"]
    );
    env.write("b.jsonl", omp("two", 20));
    let refused = env.run(["prune", "--append-only", "b.jsonl"].iter().chain(&ALL));
    assert_eq!(refused.status, Some(1));
    assert!(refused.stderr.contains("does not know context edits"), "{}", refused.stderr);
}

#[test]
fn prune_append_prune_and_undo_twice_keeps_what_was_appended() {
    let env = TestEnv::new();
    let first = omp("one", 20);
    env.write("a.jsonl", &first);
    let prune = || assert_eq!(env.run(["prune", "-q", "a.jsonl"].iter().chain(&ALL)).status, Some(0));
    let append = |from: usize| {
        let mut file = env.read("a.jsonl");
        let leaf = last_id(&file);
        let old = file.len();
        append_turns(&mut file, &leaf, from, 10);
        env.write("a.jsonl", &file);
        file[old..].to_owned()
    };
    prune();
    let later = append(20);
    prune();
    let latest = append(30);
    assert_eq!(env.run(["undo", "-q", "a.jsonl"]).status, Some(0));
    assert!(env.read("a.jsonl").ends_with(&format!("{later}{latest}")));
    assert_eq!(env.run(["undo", "-q", "a.jsonl"]).status, Some(0));
    assert_eq!(env.read("a.jsonl"), format!("{first}{later}{latest}"));
    assert_eq!(env.run(["undo", "--json", "a.jsonl"]).fields("reason"), ["nothing_to_undo"]);
}

#[test]
fn savings_below_the_minimum_change_nothing() {
    let env = TestEnv::new();
    let old = omp("one", 20);
    env.write("a.jsonl", &old);
    let ran = env.run(["prune", "a.jsonl"]);
    assert_eq!((ran.status, &*ran.stdout), (Some(0), ""));
    assert!(ran.stderr.contains("at least 20 000 are wanted"), "{}", ran.stderr);
    assert_eq!(env.read("a.jsonl"), old);
    let protected =
        env.run(["prune", "-n", "--json", "--protect-tool", "edit", "a.jsonl"].iter().chain(&ALL));
    assert_eq!(protected.json()[0]["stays"]["protected_tool"]["results"], 20);
}

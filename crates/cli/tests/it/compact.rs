//! `sesstool compact`: the main job, with the embedded summarizer and with a command in a model's place.

use serde_json::Value;

use crate::sessions::{append_turns, last_id, omp, pi, with_entry};
use crate::support::{TestEnv, last_entry};

#[test]
fn works_with_nothing_configured_and_says_how_to_use_a_model() {
    let env = TestEnv::new();
    let old = omp("one", 60);
    env.write("a.jsonl", &old);
    let ran = env.run(["compact", "a.jsonl"]);
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.contains("by embedded"), "{}", ran.stdout);
    assert!(ran.stderr.contains("--model NAME/ID"), "{}", ran.stderr);
    let new = env.read("a.jsonl");
    assert!(new.starts_with(&old), "the old bytes stay");
    let entry = last_entry(&new);
    assert_eq!(entry["type"], "compaction");
    assert_eq!(entry["parentId"], "b59");
    assert!(entry["details"]["modifiedFiles"].as_array().is_some_and(|files| files.len() > 20));
    assert!(entry.get("fromExtension").is_none());
    assert!(entry["summary"].as_str().is_some_and(|text| text.contains("<modified-files>\nsrc/part_0.rs\n")));
}

#[test]
fn a_second_run_changes_nothing() {
    let env = TestEnv::new();
    env.write("a.jsonl", omp("one", 60));
    env.run(["compact", "a.jsonl"]);
    let once = env.read("a.jsonl");
    let again = env.run(["compact", "--json", "a.jsonl"]);
    assert_eq!((again.status, again.fields("reason")), (Some(0), vec!["already_compacted".to_owned()]));
    assert_eq!(env.run(["compact", "--fail-on-skip", "-q", "a.jsonl"]).status, Some(1));
    assert_eq!(env.read("a.jsonl"), once);
}

#[test]
fn equal_input_gives_equal_bytes() {
    let env = TestEnv::new();
    let compacted = |name: &str| {
        env.write(name, pi("one", 60));
        let ran =
            env.command(["compact", name]).env("SOURCE_DATE_EPOCH", "1700000000").output().expect("it runs");
        assert!(ran.status.success());
        env.read(name)
    };
    let first = compacted("a.jsonl");
    assert_eq!(first, compacted("b.jsonl"));
    assert_eq!(last_entry(&first)["timestamp"], "2023-11-14T22:13:20.000Z");
}

#[test]
fn a_dry_run_writes_nothing_and_explains_by_entry() {
    let env = TestEnv::new();
    let old = omp("one", 60);
    env.write("a.jsonl", &old);
    let ran = env.run(["compact", "-n", "--explain", "--json", "a.jsonl"]);
    let record = &ran.json()[0];
    assert_eq!((record["dryRun"].as_bool(), record["status"].as_str()), (Some(true), Some("done")));
    let ids = |part: &str| -> Vec<String> {
        let entries = record["explanation"][part].as_array().expect("a list");
        entries.iter().map(|entry| entry["id"].as_str().expect("an id").to_owned()).collect()
    };
    let all: Vec<String> = [ids("history"), ids("turnPrefix"), ids("kept")].concat();
    let expected: Vec<String> =
        (0..60).flat_map(|n| ["u", "a", "r", "b"].map(|role| format!("{role}{n}"))).collect();
    assert_eq!(all, expected);
    assert_eq!(env.read("a.jsonl"), old);
    assert!(!env.work().join("a.jsonl.undo").exists());
}

#[test]
fn output_leaves_the_input_alone_and_standard_input_works() {
    let env = TestEnv::new();
    let old = omp("one", 60);
    env.write("a.jsonl", &old);
    assert_eq!(env.run(["compact", "-q", "-o", "b.jsonl", "a.jsonl"]).status, Some(0));
    assert_eq!(env.read("a.jsonl"), old);
    assert_eq!(last_entry(&env.read("b.jsonl"))["type"], "compaction");
    let again = env.run(["compact", "-q", "-o", "b.jsonl", "a.jsonl"]);
    assert_eq!(again.status, Some(1));
    assert!(again.stderr.contains("the file exists"), "{}", again.stderr);
    assert_eq!(env.run_with_input(["compact", "-q", "-o", "c.jsonl", "-"], old.as_bytes()).status, Some(0));
    assert_eq!(last_entry(&env.read("c.jsonl"))["type"], "compaction");
    let refused = env.run_with_input(["compact", "-"], old.as_bytes());
    assert_eq!(refused.status, Some(2), "{}", refused.stderr);
}

#[test]
fn a_command_can_summarise_and_is_asked_with_json() {
    let env = TestEnv::new();
    env.write("a.jsonl", omp("one", 60));
    let script =
        r###"cat > $(mktemp asked.XXXXXX); printf %s '{"summary":"## Goal\nthe parser","more":1}'"###;
    let ran = env.run(["compact", "--summarizer-command", script, "--instructions", "the lexer", "a.jsonl"]);
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    let names = env.names();
    let asked = names.iter().filter(|name| name.starts_with("asked."));
    let requests: Vec<Value> =
        asked.map(|name| serde_json::from_str(&env.read(name)).expect("JSON")).collect();
    assert!(requests.len() >= 2, "{names:?}");
    assert!(requests.iter().all(|request| request["systemPrompt"].is_string()));
    let prompts: Vec<&str> =
        requests.iter().map(|request| request["prompt"].as_str().expect("a prompt")).collect();
    assert!(prompts.iter().any(|prompt| prompt.ends_with("Additional focus: the lexer")));
    let entry = last_entry(&env.read("a.jsonl"));
    assert!(entry["summary"].as_str().is_some_and(|text| text.starts_with("## Goal\nthe parser")));
    assert_eq!(entry["shortSummary"], "## Goal\nthe parser");
}

#[test]
fn a_summarizer_that_fails_leaves_the_file_as_it_was() {
    let env = TestEnv::new();
    let old = omp("one", 60);
    for command in ["exit 3", "echo nonsense", r#"echo '{"summary":""}'"#, r#"echo '{"summary":5}'"#] {
        env.write("a.jsonl", &old);
        let ran = env.run(["compact", "--summarizer-command", command, "a.jsonl"]);
        assert_eq!((ran.status, &*ran.stdout), (Some(1), ""), "{command}");
        let lines: Vec<&str> = ran.stderr.lines().collect();
        assert!(
            lines.len() == 2 && lines[0].starts_with("error: a.jsonl: ") && lines[1].starts_with("hint: "),
            "{lines:?}"
        );
        assert_eq!(env.read("a.jsonl"), old, "{command}");
        let rescued =
            env.run(["compact", "--summarizer-command", command, "--fallback", "embedded", "a.jsonl"]);
        assert_eq!(rescued.status, Some(0), "{command}: {}", rescued.stderr);
        assert!(rescued.stdout.contains("the embedded summarizer took over"), "{}", rescued.stdout);
    }
}

#[test]
fn a_summary_that_saves_nothing_is_an_error_of_a_model() {
    let env = TestEnv::new();
    let old = omp("one", 60);
    env.write("a.jsonl", &old);
    let long = r#"printf '{"summary":"'; head -c 200000 /dev/zero | tr '\0' x; printf '"}'"#;
    let ran = env.run(["compact", "--summarizer-command", long, "--reserve-tokens", "200000", "a.jsonl"]);
    assert_eq!(ran.status, Some(1), "{}", ran.stdout);
    assert!(ran.stderr.contains("the context would not shrink"), "{}", ran.stderr);
    assert_eq!(env.read("a.jsonl"), old);
}

#[test]
fn the_number_of_folded_requests_is_what_the_dry_run_announced() {
    let env = TestEnv::new();
    // About eight million characters.
    let mut file = omp("big", 0);
    append_turns(&mut file, "m0", 0, 2100);
    env.write("big.jsonl", &file);
    let script = r#"cat > /dev/null; echo x >> asked.txt; printf '{"summary":"'; head -c 30000 /dev/zero | tr '\0' 'y'; printf '"}'"#;
    let flags = ["--summarizer-command", script, "--context-window", "128000", "--json", "-q", "big.jsonl"];
    let announced = env.run(["compact", "-n"].iter().chain(&flags)).json()[0]["requests"]
        .as_array()
        .expect("requests")
        .len();
    let ran = env.run(["compact"].iter().chain(&flags));
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    assert!(announced > 10, "{announced}");
    assert_eq!(env.read("asked.txt").lines().count(), announced);
    assert_eq!(last_entry(&env.read("big.jsonl"))["type"], "compaction");
}

#[test]
fn an_old_file_is_rewritten_with_a_backup_and_undone_byte_for_byte() {
    let env = TestEnv::new();
    let old = omp("one", 60).replace(r#""version":3"#, r#""version":2"#);
    env.write("a.jsonl", &old);
    let ran = env.run(["compact", "a.jsonl"]);
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.contains("rewritten from version 2 as version 3"), "{}", ran.stdout);
    assert_eq!(env.read("a.jsonl.bak"), old);
    assert!(env.read("a.jsonl").contains(r#""version":3"#));
    assert_eq!(env.run(["undo", "a.jsonl"]).status, Some(0));
    assert_eq!(env.read("a.jsonl"), old);
}

#[test]
fn glued_records_get_lines_of_their_own() {
    let env = TestEnv::new();
    let mut glued = omp("one", 60);
    let at = glued.rfind("\n{\"type\":\"message\",\"id\":\"r5\"").expect("the entry");
    glued.replace_range(at..=at, "");
    env.write("a.jsonl", &glued);
    let ran = env.run(["compact", "a.jsonl"]);
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.contains("lines of their own"), "{}", ran.stdout);
    let new = env.read("a.jsonl");
    assert!(new.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()));
    assert_eq!(env.read("a.jsonl.bak"), glued);
}

#[test]
fn another_branch_can_be_compacted_and_a_wrong_leaf_is_named() {
    let env = TestEnv::new();
    env.write("a.jsonl", omp("one", 60));
    assert_eq!(env.run(["compact", "-q", "--leaf", "b50", "a.jsonl"]).status, Some(0));
    assert_eq!(last_entry(&env.read("a.jsonl"))["parentId"], "b50");
    let wrong = env.run(["compact", "--leaf", "zzz", "a.jsonl"]);
    assert_eq!(wrong.status, Some(1));
    assert!(
        wrong.stderr.contains(r#"no entry has the id "zzz""#) && wrong.stderr.contains("hint: leaves are"),
        "{}",
        wrong.stderr
    );
}

#[test]
fn fifty_compactions_in_a_row_stay_bounded() {
    let env = TestEnv::new();
    let mut file = pi("long", 30);
    let mut largest = 0;
    for round in 0..50 {
        env.write("a.jsonl", &file);
        let ran = env.run(["compact", "-q", "--json", "--keep-recent-tokens", "4000", "a.jsonl"]);
        assert_eq!(ran.status, Some(0), "{}", ran.stderr);
        let record = &ran.json()[0];
        assert_eq!(record["status"], "done", "{record}");
        file = env.read("a.jsonl");
        let entry = last_entry(&file);
        let summary = entry["summary"].as_str().expect("a summary");
        assert_eq!(summary.matches("<modified-files>").count(), 1, "file lists are not stacked");
        largest = largest.max(record["estimateAfter"].as_u64().expect("a number"));
        append_turns(&mut file, &last_id(&env.read("a.jsonl")), 30 + round * 6, 6);
    }
    // The kept tail, and a summary of two parts at most.
    assert!(largest < 4000 + 2000 + 6000 + 2000, "{largest}");
}

#[test]
fn settings_can_come_from_the_environment() {
    let env = TestEnv::new();
    env.write("a.jsonl", omp("one", 60));
    let mut command = env.command(["compact", "-n", "--explain", "--json", "a.jsonl"]);
    let ran = crate::support::Ran::of(
        command.env("SESSTOOL_COMPACTION_KEEP_RECENT_TOKENS", "1000").output().expect("it runs"),
    );
    assert_eq!(ran.json()[0]["explanation"]["keepBudget"], 1000);
}

#[test]
fn a_label_after_a_compaction_is_nothing_new() {
    let env = TestEnv::new();
    env.write("a.jsonl", omp("one", 60));
    env.run(["compact", "-q", "a.jsonl"]);
    env.write("a.jsonl", with_entry(&env.read("a.jsonl"), "l1", "label", r#""targetId":"u1","label":"x""#));
    assert_eq!(env.run(["compact", "--json", "-q", "a.jsonl"]).fields("reason"), ["already_compacted"]);
}

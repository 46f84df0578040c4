//! The examples of docs/hooks.md do what they say.
#![expect(clippy::disallowed_methods, reason = "tests read the document and make the scripts")]

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::sessions::{omp, with_entry};
use crate::support::{Ran, TestEnv};

/// The example under a heading: its event and its script.
fn example(heading: &str) -> (String, String) {
    let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/hooks.md");
    let text = std::fs::read_to_string(document).expect("the document");
    let section = text.split("\n### ").find(|section| section.starts_with(heading)).expect("the heading");
    let event =
        section.split("<!-- hook: ").nth(1).and_then(|rest| rest.split(" -->").next()).expect("an event");
    let script = section.split("```sh\n").nth(1).and_then(|rest| rest.split("```").next()).expect("a script");
    (event.to_owned(), script.to_owned())
}

fn has_jq() -> bool {
    Command::new("jq").arg("--version").output().is_ok()
}

/// Runs the program with an example as its hook.
fn run(env: &TestEnv, heading: &str, args: &[&str]) -> Ran {
    let (event, script) = example(heading);
    env.write("hook.sh", script);
    let hook = format!("{event}=sh hook.sh");
    let path = std::env::var("PATH").expect("a path");
    let mut command = env.command(args.iter().chain(&["--hook", &hook]));
    Ran::of(command.env("PATH", path).output().expect("the program starts"))
}

fn last_entry(env: &TestEnv) -> Value {
    serde_json::from_str(env.read("a.jsonl").lines().last().expect("a line")).expect("JSON")
}

#[test]
fn examples_that_ask_are_cancelled_answered_and_added_to() {
    if !has_jq() {
        eprintln!("jq is not installed: the examples of docs/hooks.md were not run");
        return;
    }
    let env = TestEnv::new();
    let finished = omp("one", 60);
    let waiting = with_entry(&finished, "w1", "message", r#""message":{"role":"user","content":"And now?"}"#);
    env.write("a.jsonl", &waiting);
    let ran = run(&env, "Leave sessions alone", &["compact", "--json", "a.jsonl"]);
    assert_eq!(
        (ran.status, ran.fields("reason")),
        (Some(0), vec!["cancelled_by_hook".to_owned()]),
        "{}",
        ran.stderr
    );
    env.write("a.jsonl", &finished);
    let ran = run(&env, "Leave sessions alone", &["compact", "--json", "a.jsonl"]);
    assert_eq!(ran.fields("status"), ["done"], "{}", ran.stderr);

    env.write("a.jsonl", &finished);
    let ran = run(&env, "Write the summary oneself", &["compact", "-q", "a.jsonl"]);
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    let summary = last_entry(&env)["summary"].as_str().expect("a summary").to_owned();
    assert!(summary.starts_with("## Requests\n- Please do step 0"), "{summary}");

    env.write("a.jsonl", &finished);
    let ran = run(&env, "Keep a log", &["compact", "-q", "a.jsonl"]);
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    let id = last_entry(&env)["id"].as_str().expect("an id").to_owned();
    assert!(env.read("compactions.log").starts_with(&format!("a.jsonl\t{id}\t")));

    env.write("a.jsonl", &finished);
    let ran =
        run(&env, "Never leave a branch", &["branch", "--to", "b3", "--label", "x", "--json", "a.jsonl"]);
    assert_eq!(ran.fields("reason"), ["cancelled_by_hook"], "{}", ran.stderr);
    let ran = run(&env, "Never leave a branch", &["branch", "--to", "b3", "-s", "--json", "a.jsonl"]);
    assert_eq!(ran.fields("status"), ["done"], "{}", ran.stderr);
}

#[test]
fn lines_of_context_reach_the_request_and_data_the_entry() {
    let env = TestEnv::new();
    env.write("a.jsonl", omp("one", 60));
    let script = r#"cat > $(mktemp asked.XXXXXX); echo '{"summary":"ok"}'"#;
    let ran =
        run(&env, "Add what the project", &["compact", "-q", "--summarizer-command", script, "a.jsonl"]);
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    let names = env.names();
    let mut asked = names.iter().filter(|name| name.starts_with("asked.")).map(|name| env.read(name));
    assert!(asked.any(|request| request.contains("- The build is started with make, never with cargo.")));
    assert_eq!(last_entry(&env)["preserveData"]["ticketSystem"], "https://tickets.example");
}

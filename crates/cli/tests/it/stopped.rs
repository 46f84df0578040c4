//! Signals while something is waited for: a retry, a hook, an answer, in the middle of a batch. It ends soon, with 130, and no session
//! has changed that is not reported as done.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::server::{Answer, Server};
use crate::sessions::omp;
use crate::support::{Ran, TestEnv, entries};

/// The requirement is a second; what is waited for would take a minute, and a machine may be busy.
const SOON: Duration = Duration::from_secs(20);

fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill").args([name, &child.id().to_string()]).status().expect("kill runs");
    assert!(sent.success());
}

fn started(env: &TestEnv, args: &[&str]) -> Child {
    let mut command = env.command(args);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts")
}

/// Sends the signal and waits for the end.
#[track_caller]
fn stopped(child: Child, name: &str) -> Ran {
    let begun = Instant::now();
    signal(&child, name);
    let ran = Ran::of(child.wait_with_output().expect("it ends"));
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
    assert_eq!(ran.status, Some(130), "{}", ran.stderr);
    ran
}

#[track_caller]
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what} does not come");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn events(env: &TestEnv, kind: &str) -> Vec<Value> {
    entries(&env.read("events.jsonl")).into_iter().filter(|event| event["type"] == kind).collect()
}

#[test]
fn both_signals_end_a_wait_for_a_retry() {
    for name in ["-INT", "-TERM"] {
        let env = TestEnv::new();
        let old = omp("one", 60);
        env.write("a.jsonl", &old);
        env.write("events.jsonl", "");
        let service = Server::start(|_| {
            Answer::whole(429, &[("retry-after", "60")], r#"{"error":{"message":"slow down"}}"#)
        });
        let child = started(
            &env,
            &["compact", "--events", "events.jsonl", "-m", "local/m", "--base-url", &service.url, "a.jsonl"],
        );
        until("a retry", || !events(&env, "auto_retry_start").is_empty());
        stopped(child, name);
        assert_eq!(env.read("a.jsonl"), old);
        assert_eq!(env.names(), ["a.jsonl", "events.jsonl"]);
        let (starts, ends) = (events(&env, "auto_retry_start"), events(&env, "auto_retry_end"));
        assert_eq!(starts.len(), ends.len(), "each start has its end");
        assert_eq!(
            (&starts[0]["attempt"], &starts[0]["maxAttempts"], &starts[0]["delayMs"]),
            (&1.into(), &3.into(), &60_000.into())
        );
        assert!(starts[0]["errorMessage"].as_str().is_some_and(|text| text.contains("slow down")));
        assert_eq!((&ends[0]["success"], &ends[0]["attempt"]), (&false.into(), &1.into()));
        assert!(ends[0]["finalError"].as_str().is_some_and(|text| text.contains("cancelled")), "{}", ends[0]);
    }
}

#[test]
fn a_retry_that_helps_is_told_with_its_end() {
    let env = TestEnv::new();
    env.write("a.jsonl", omp("one", 60));
    env.write_settings(r#"{"retry":{"baseDelayMs":1}}"#);
    let service = Server::start(|asked| match asked.number {
        0 => Answer::error(503, "a moment"),
        _ => Answer::chat("A summary.", 10, 5),
    });
    let ran = env.run([
        "compact",
        "--events",
        "events.jsonl",
        "-m",
        "local/m",
        "--base-url",
        &service.url,
        "a.jsonl",
    ]);
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    let (starts, ends) = (events(&env, "auto_retry_start"), events(&env, "auto_retry_end"));
    assert_eq!((starts.len(), ends.len()), (1, 1));
    assert_eq!((&ends[0]["success"], ends[0].get("finalError")), (&true.into(), None));
}

#[test]
fn a_signal_ends_a_hook_with_all_that_it_has_started() {
    let env = TestEnv::new();
    let old = omp("one", 60);
    env.write("a.jsonl", &old);
    // A child of the hook's shell says who it is and stays.
    let hook = "session_before_compact=sh -c 'echo $$ > pid.txt; sleep 61.25; true'";
    let child = started(&env, &["compact", "--hook", hook, "a.jsonl"]);
    until("the hook", || env.names().contains(&"pid.txt".to_owned()) && env.read("pid.txt").ends_with('\n'));
    let pid = env.read("pid.txt").trim().to_owned();
    stopped(child, "-TERM");
    assert_eq!(env.read("a.jsonl"), old);
    let is_there = || {
        Command::new("kill").args(["-0", &pid]).stderr(Stdio::null()).status().expect("kill runs").success()
    };
    until("the end of the hook", || !is_there());
}

#[test]
fn a_signal_ends_a_branch_summary_in_mid_request() {
    let env = TestEnv::new();
    let old = omp("one", 30);
    env.write("a.jsonl", &old);
    let service = Server::start(|_| Answer::hang());
    let child = started(
        &env,
        &["branch", "-s", "-m", "local/m", "--base-url", &service.url, "--to", "b3", "a.jsonl"],
    );
    service.wait_for(1);
    stopped(child, "-INT");
    assert_eq!((env.read("a.jsonl"), env.names()), (old, vec!["a.jsonl".to_owned()]));
}

#[test]
fn a_batch_of_a_hundred_stops_and_only_reported_files_have_changed() {
    let env = TestEnv::new();
    let old = omp("one", 40);
    for n in 0..100 {
        env.write(&format!("s/{n:03}.jsonl"), &old);
    }
    // Each compaction makes two requests or three; so a few files are done, and then nothing moves.
    let server = Server::start(|asked| match asked.number {
        0..9 => Answer::summary("Done so far."),
        _ => Answer::hang(),
    });
    let child = started(&env, &["compact", "--json", "-j", "4", "--remote-endpoint", &server.url, "s"]);
    server.wait_for(13);
    let records = stopped(child, "-INT").json();
    let done = records.iter().filter(|record| record["status"] == "done");
    let reported: Vec<&str> = done.map(|record| record["file"].as_str().expect("a name")).collect();
    for n in 0..100 {
        let name = format!("s/{n:03}.jsonl");
        let is_reported = reported.contains(&name.as_str());
        assert_eq!(env.read(&name) != old, is_reported, "{name}");
    }
    let leftovers: Vec<_> = std::fs::read_dir(env.work().join("s"))
        .expect("the folder")
        .filter_map(|entry| entry.expect("an entry").file_name().into_string().ok())
        .filter(|name| !name.ends_with(".jsonl") && !name.ends_with(".jsonl.undo"))
        .collect();
    assert_eq!(leftovers, Vec::<String>::new());
}

//! Two programs on one folder, and a writer that appends all the while: no entry is lost or doubled.
#![expect(clippy::disallowed_methods, reason = "tests make and read the files that the program works on")]

use std::collections::HashMap;
use std::io::Write;

use crate::sessions::{append_turns, last_id, omp, pi};
use crate::support::{Ran, TestEnv};

const N_FILES: usize = 6;

/// How often each id is there; every line must be whole.
#[track_caller]
fn ids(file: &str) -> HashMap<String, usize> {
    assert!(file.ends_with('\n'));
    let mut counts = HashMap::new();
    for line in file.lines() {
        let value: serde_json::Value =
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        *counts.entry(value["id"].as_str().expect("an id").to_owned()).or_default() += 1;
    }
    counts
}

/// A run in which files may be refused because another process was faster, but nothing else may happen.
#[track_caller]
fn check_run(ran: &Ran) {
    assert!(matches!(ran.status, Some(0 | 1)), "{:?} {}", ran.status, ran.stderr);
    for record in ran.json() {
        let message = record["message"].as_str().unwrap_or_default();
        let is_known = record["status"] != "failed"
            || ["has changed", "locked by another process", "open for writing"]
                .iter()
                .any(|it| message.contains(it));
        assert!(is_known, "{record}");
    }
}

#[test]
fn two_programs_on_one_folder_lose_and_double_nothing() {
    let env = TestEnv::new();
    let mut expected: Vec<HashMap<String, usize>> = Vec::new();
    for n in 0..N_FILES {
        let file = if n % 2 == 0 { omp("s", 10) } else { pi("s", 10) };
        env.write(&format!("x/{n}.jsonl"), &file);
        expected.push(ids(&file));
    }
    let compact = ["compact", "-q", "--json", "--keep-recent-tokens", "1500", "x"];
    let prune = ["prune", "-q", "--json", "--protect", "300", "--min-savings", "0", "x"];
    for round in 0..6 {
        std::thread::scope(|scope| {
            let runs: Vec<_> = [&compact[..], &prune[..], &compact[..]]
                .into_iter()
                .map(|args| {
                    let env = &env;
                    scope.spawn(move || env.run(args))
                })
                .collect();
            // An agent that opens the file for each entry.
            for (n, expected) in expected.iter_mut().enumerate() {
                let path = env.work().join(format!("x/{n}.jsonl"));
                let mut lines = String::new();
                append_turns(&mut lines, &last_id(&omp("s", 10)), 100 + round, 1);
                let mut file = std::fs::OpenOptions::new().append(true).open(path).expect("the session");
                for line in lines.split_inclusive('\n') {
                    file.write_all(line.as_bytes()).expect("an entry");
                }
                expected.extend(ids(&lines));
            }
            for run in runs {
                check_run(&run.join().expect("a run"));
            }
        });
    }
    // What an old file got after its replacement is carried over by the next writing command.
    check_run(&env.run(compact));
    for (n, expected) in expected.iter().enumerate() {
        let now = ids(&env.read(format!("x/{n}.jsonl")));
        for (id, count) in &now {
            assert_eq!(*count, 1, "{n}: {id} is doubled");
        }
        for id in expected.keys() {
            assert!(now.contains_key(id), "{n}: {id} is lost");
        }
    }
}

//! Other processes that write the same session: a second sesstool, an agent.

use super::*;

#[test]
fn two_processes_lose_and_double_no_entry() {
    let folder = tempfile::tempdir().unwrap();
    let path = session(folder.path());
    let children: Vec<_> =
        ["p", "q"].map(|name| start_child(&[], &format!("many {name}"), &path).spawn().unwrap()).into();
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let now = text(&path);
    let mut found: Vec<&str> = now.lines().skip(2).collect();
    let mut wanted: Vec<String> = ["p", "q"]
        .iter()
        .flat_map(|name| (0..30).map(move |n| format!("{{\"id\":\"{name}-{n}\"}}")))
        .collect();
    found.sort_unstable();
    wanted.sort_unstable();
    assert_eq!(found, wanted);
}

/// A process that keeps the session open, appends a line every few milliseconds and ends when told.
fn live_writer(path: &Path, n: usize) -> std::process::Child {
    let script = "exec 9>>\"$1\"; echo open; i=0; while [ $i -lt $2 ]; do echo \"{\\\"id\\\":\\\"w$i\\\"}\" >&9; sleep 0.01; i=$((i+1)); done";
    let mut child = Command::new("sh")
        .args(["-c", script, "sh"])
        .arg(path)
        .arg(n.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut word = [0; 5];
    std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut word).unwrap();
    child
}

#[track_caller]
fn check_written_once(path: &Path, n: usize) {
    let now = text(path);
    for i in 0..n {
        let line = format!("{{\"id\":\"w{i}\"}}");
        assert_eq!(now.lines().filter(|it| **it == line).count(), 1, "{line} in\n{now}");
    }
}

#[test]
fn a_live_writer_is_named_and_loses_nothing_to_a_forced_replacement() {
    let folder = tempfile::tempdir().unwrap();
    let path = session(folder.path());
    let mut agent = live_writer(&path, 60);
    assert!(
        matches!(prune(&path, "1"), Err(DiskError::OpenForWriting { pids, .. }) if pids.contains(&agent.id()))
    );
    let written = loop {
        match append_text(&path, RECORD) {
            Ok(written) => break written,
            Err(DiskError::Changed { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    };
    assert!(written.writers.pids.contains(&agent.id()), "{written:?}");
    let options = ReplaceOptions { force: true, watch: Duration::from_secs(60), ..ReplaceOptions::default() };
    let replaced = loop {
        match replace_with(&path, &options, |it| it.replace("\"a\"", "\"a\",\"p\":1")) {
            Ok(replaced) => break replaced,
            Err(DiskError::Changed { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    };
    assert!(replaced.carried.bytes > 0, "{replaced:?}");
    assert_eq!(replaced.carried.still_open, Vec::<u32>::new());
    agent.wait().unwrap();
    check_written_once(&path, 60);
    assert_eq!(text(&path).matches(RECORD).count(), 1);
}

#[test]
fn what_is_written_after_the_watch_is_carried_over_by_the_next_command() {
    let folder = tempfile::tempdir().unwrap();
    let path = session(folder.path());
    let mut agent = live_writer(&path, 60);
    let options = ReplaceOptions { force: true, watch: Duration::ZERO, ..ReplaceOptions::default() };
    let replaced = loop {
        match replace_with(&path, &options, |it| it.replace("\"a\"", "\"a\",\"p\":1")) {
            Ok(replaced) => break replaced,
            Err(DiskError::Changed { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    };
    assert!(replaced.carried.still_open.contains(&agent.id()), "{replaced:?}");
    agent.wait().unwrap();
    let settled = settle(&path, INTENT.time).unwrap();
    assert!(settled.carried_bytes > 0);
    check_written_once(&path, 60);
    assert_eq!(settle(&path, INTENT.time).unwrap(), Settled::default());
    assert_eq!(names(folder.path()), ["s.jsonl", "s.jsonl.bak", "s.jsonl.undo"]);
}

#[test]
fn lines_that_were_carried_over_and_pruned_since_are_not_carried_over_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = session(folder.path());
    let old = std::fs::File::open(&path).unwrap();
    let mut agent = Command::new("sh")
        .args(["-c", "exec cat >>\"$1\"", "sh"])
        .arg(&path)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = agent.stdin.take().unwrap();
    let mut write = |text: String| {
        let wanted = old.metadata().unwrap().len() + text.len() as u64;
        input.write_all(text.as_bytes()).unwrap();
        while old.metadata().unwrap().len() < wanted {
            std::thread::sleep(Duration::from_millis(1));
        }
    };
    write("{\"id\":\"first\"}\n".to_owned());
    let options = ReplaceOptions { force: true, watch: Duration::ZERO, ..ReplaceOptions::default() };
    let forced = |from: &str, to: &str| replace_with(&path, &options, |it| it.replace(from, to)).unwrap();
    forced("\"a\"", "\"a\",\"p\":1");
    for n in 0..5 {
        write(format!("{{\"id\":\"w{n}\"}}\n{{\"id\":\"torn"));
        settle(&path, INTENT.time).unwrap();
        assert!(text(&path).ends_with(&format!("{{\"id\":\"w{n}\"}}\n")), "{}", text(&path));
        write(format!("{n}\"}}\n"));
        forced(&format!("\"w{n}\""), &format!("\"w{n}\",\"p\":1"));
        forced(&format!("\"torn{n}\""), &format!("\"torn{n}\",\"p\":1"));
    }
    drop(input);
    agent.wait().unwrap();
    settle(&path, INTENT.time).unwrap();
    let now = text(&path);
    for n in 0..5 {
        for id in [format!("\"w{n}\",\"p\":1"), format!("\"torn{n}\",\"p\":1")] {
            assert_eq!(now.matches(&id).count(), 1, "{id}: {now}");
        }
    }
    assert_eq!(now.lines().count(), 13, "{now}");
    assert!(!names(folder.path()).iter().any(|name| name.contains("sesstool-old")));
}

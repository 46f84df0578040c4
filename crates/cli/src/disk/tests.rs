//! The whole module under faults: kills and errors at every step, full disks, permissions, links, live writers.

mod live_writers;

use super::fault::{self, Fault};
use super::*;
use std::ffi::OsStr;
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

const OLD: &str = "{\"type\":\"session\",\"id\":\"s\"}\n{\"id\":\"a\"}\n";
const NEW: &str = "{\"type\":\"session\",\"id\":\"s\"}\n{\"id\":\"a\",\"prunedAt\":1}\n";
const RECORD: &str = "{\"id\":\"c\",\"type\":\"compaction\"}\n";
const INTENT: Intent<'static> = Intent { command: "test", time: "2026-01-02T03:04:05.678Z" };

fn append_text(path: &Path, text: &str) -> Result<Written, DiskError> {
    settle(path, INTENT.time)?;
    let bytes = read::whole(path)?;
    let fingerprint = bytes.fingerprint().unwrap();
    append(&Target { path, fingerprint, bytes: Some(&bytes) }, text.as_bytes(), &INTENT)
}

fn replace_with(
    path: &Path,
    options: &ReplaceOptions,
    change: impl FnOnce(&str) -> String,
) -> Result<Replaced, DiskError> {
    settle(path, INTENT.time)?;
    let bytes = read::whole(path)?;
    let text = change(std::str::from_utf8(&bytes).unwrap());
    let target = Target { path, fingerprint: bytes.fingerprint().unwrap(), bytes: None };
    replace(&target, |to| to.write_all(text.as_bytes()), |_| Ok(()), &INTENT, options)
}

fn prune(path: &Path, mark: &str) -> Result<Replaced, DiskError> {
    replace_with(path, &ReplaceOptions::default(), |text| {
        text.replacen("\"a\"", &format!("\"a\",\"p\":{mark}"), 1)
    })
}

fn take_back(path: &Path) -> Result<Undone, DiskError> {
    undo(path, INTENT.time, false, WATCH)
}

fn session(folder: &Path) -> PathBuf {
    let path = folder.join("s.jsonl");
    std::fs::write(&path, OLD).unwrap();
    path
}

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        std::fs::read_dir(folder).unwrap().map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// One kind of write, on a session that `prepare` has made ready: the texts before and after it.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Append,
    Replace,
    UndoAppend,
    UndoReplace,
}

const KINDS: [Kind; 4] = [Kind::Append, Kind::Replace, Kind::UndoAppend, Kind::UndoReplace];

impl Kind {
    fn prepare(self, path: &Path) {
        match self {
            Self::Append | Self::Replace => {}
            Self::UndoAppend => drop(append_text(path, RECORD).unwrap()),
            Self::UndoReplace => {
                drop(replace_with(path, &ReplaceOptions::default(), |_| NEW.into()).unwrap())
            }
        }
    }

    fn run(self, path: &Path) -> Result<(), DiskError> {
        match self {
            Self::Append => append_text(path, RECORD).map(drop),
            Self::Replace => replace_with(path, &ReplaceOptions::default(), |_| NEW.into()).map(drop),
            Self::UndoAppend | Self::UndoReplace => take_back(path).map(drop),
        }
    }

    fn before_and_after(self) -> (String, String) {
        let appended = format!("{OLD}{RECORD}");
        match self {
            Self::Append => (OLD.into(), appended),
            Self::Replace => (OLD.into(), NEW.into()),
            Self::UndoAppend => (appended, OLD.into()),
            Self::UndoReplace => (NEW.into(), OLD.into()),
        }
    }

    /// After an interruption: old, new, or (append) a torn tail; after settling old or new, and nothing lies about.
    #[track_caller]
    fn check_interrupted(self, path: &Path, context: &str) -> Settled {
        let (old, new) = self.before_and_after();
        let now = text(path);
        let is_torn = self == Self::Append && now.starts_with(&old) && new.starts_with(&now);
        assert!(now == old || now == new || is_torn, "{self:?} {context}: {now}");
        let done = settle(path, INTENT.time).unwrap();
        assert_eq!(done.torn_bytes > 0, is_torn && now != old && now != new, "{self:?} {context}: {done:?}");
        let settled = text(path);
        assert!(settled == old || settled == new, "{self:?} {context}: settled {settled}");
        assert!(now == settled || now != new, "{self:?} {context}: settling lost a finished write");
        // The next write and its undo work as if nothing had been.
        append_text(path, "{\"id\":\"z\"}\n").unwrap();
        assert_eq!(text(path), format!("{settled}{{\"id\":\"z\"}}\n"), "{self:?} {context}");
        take_back(path).unwrap();
        assert_eq!(text(path), settled, "{self:?} {context}");
        let hidden: Vec<String> =
            names(path.parent().unwrap()).into_iter().filter(|it| it.contains("sesstool-old")).collect();
        assert_eq!(hidden, Vec::<String>::new(), "{self:?} {context}");
        done
    }
}

/// Not a test of its own: the process that the tests below start and kill.
#[test]
#[ignore = "started by other tests"]
#[expect(clippy::disallowed_methods, reason = "this is how the parent says what to do")]
fn child() {
    let Ok(job) = std::env::var("SESSTOOL_TEST_JOB") else { return };
    let words: Vec<&str> = job.split(' ').collect();
    let path = PathBuf::from(std::env::var_os("SESSTOOL_TEST_PATH").unwrap());
    let kind = |word: &str| *KINDS.iter().find(|it| format!("{it:?}") == word).unwrap();
    match words[..] {
        ["kill", word, at] => {
            fault::arm(Some((at.parse().unwrap(), Fault::Kill)));
            kind(word).run(&path).unwrap();
        }
        ["try", word] => {
            if let Err(error) = kind(word).run(&path) {
                eprintln!("{error}");
                std::process::exit(3);
            }
        }
        ["churn"] => {
            std::fs::write(path.with_extension("ready"), "").unwrap();
            for n in 0.. {
                let _ = append_text(&path, &format!("{{\"id\":\"r{n}\"}}\n"));
                let _ = prune(&path, &n.to_string());
                let _ = take_back(&path);
            }
        }
        ["many", name] => {
            for n in 0..30 {
                loop {
                    match append_text(&path, &format!("{{\"id\":\"{name}-{n}\"}}\n")) {
                        Ok(_) => break,
                        Err(DiskError::Changed { .. } | DiskError::Busy { .. }) => {}
                        Err(error) => panic!("{error}"),
                    }
                }
                if n % 5 == 0 {
                    let _ = prune(&path, &n.to_string());
                }
            }
        }
        _ => panic!("unknown job {job}"),
    }
}

fn start_child(prefix: &[&str], job: &str, path: &Path) -> Command {
    let this = std::env::current_exe().unwrap();
    let mut command = match prefix {
        [] => Command::new(&this),
        [program, rest @ ..] => {
            let mut command = Command::new(program);
            command.args(rest).arg(&this);
            command
        }
    };
    command
        .args(["--exact", "disk::tests::child", "--ignored", "--test-threads=1", "--nocapture"])
        .env("SESSTOOL_TEST_JOB", job)
        .env("SESSTOOL_TEST_PATH", path)
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    command
}

#[test]
fn a_kill_at_any_point_leaves_the_old_file_or_the_new_one() {
    for kind in KINDS {
        let mut at = 0;
        let mut n_torn = 0;
        loop {
            let folder = tempfile::tempdir().unwrap();
            let path = session(folder.path());
            kind.prepare(&path);
            let done =
                start_child(&[], &format!("kill {kind:?} {at}"), &path).output().unwrap().status.success();
            if done {
                assert!(at >= 6, "{kind:?} passed only {at} points");
                assert_eq!(text(&path), kind.before_and_after().1);
                break;
            }
            let settled = kind.check_interrupted(&path, &format!("killed at {at}"));
            n_torn += usize::from(settled.torn_bytes > 0);
            at += 1;
        }
        assert_eq!(n_torn > 0, kind == Kind::Append, "{kind:?}: {n_torn} torn tails");
    }
}

#[test]
fn an_error_at_any_point_leaves_the_old_file_or_the_new_one() {
    // ENOSPC, EACCES, EROFS, EIO.
    for number in [28, 13, 30, 5] {
        for kind in KINDS {
            let mut at = 0;
            loop {
                let folder = tempfile::tempdir().unwrap();
                let path = session(folder.path());
                kind.prepare(&path);
                fault::arm(Some((at, Fault::Fail(number))));
                let result = kind.run(&path);
                let n_points = fault::passed().len();
                fault::arm(None);
                if result.is_err() && matches!(kind, Kind::Append | Kind::Replace) {
                    assert_eq!(text(&path), OLD, "{kind:?} failed at {at}");
                }
                if n_points <= at {
                    result.unwrap();
                    assert!(at >= 6, "{kind:?} passed only {at} points");
                    break;
                }
                kind.check_interrupted(&path, &format!("error {number} at {at}"));
                at += 1;
            }
        }
    }
}

#[test]
fn a_kill_at_a_random_moment_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = session(folder.path());
    let mut seed = 0x9e37_79b9_u64;
    for round in 0..200 {
        let ready = path.with_extension("ready");
        let _ = std::fs::remove_file(&ready);
        let mut child = start_child(&[], "churn", &path).stderr(Stdio::null()).spawn().unwrap();
        while !ready.exists() {
            std::thread::sleep(Duration::from_millis(1));
        }
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        std::thread::sleep(Duration::from_micros(seed >> 50));
        child.kill().unwrap();
        child.wait().unwrap();
        settle(&path, INTENT.time).unwrap();
        let now = text(&path);
        assert!(
            now.starts_with("{\"type\":\"session\",\"id\":\"s\"}\n{\"id\":\"a\""),
            "round {round}: {now}"
        );
        for line in now.lines() {
            serde_json::from_str::<serde_json::Value>(line).expect("every line is whole");
        }
        assert!(now.ends_with('\n'), "round {round}");
        for name in names(folder.path()) {
            let is_known = ["s.jsonl", "s.ready"].contains(&name.as_str()) || is_own_file(OsStr::new(&name));
            assert!(is_known, "round {round}: {name}");
            if round % 20 == 19 && name != "s.jsonl" {
                std::fs::remove_file(folder.path().join(name)).unwrap();
            }
        }
        if round % 20 == 19 {
            std::fs::write(&path, OLD).unwrap();
        }
    }
}

#[test]
fn undo_twice_keeps_what_was_appended_between_two_replacements() {
    let folder = tempfile::tempdir().unwrap();
    let path = session(folder.path());
    let add = |line: &str| {
        let mut file = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(line.as_bytes()).unwrap();
    };
    prune(&path, "1").unwrap();
    add("{\"id\":\"x\"}\n");
    prune(&path, "2").unwrap();
    add("{\"id\":\"y\"}\n");
    assert_eq!(take_back(&path).unwrap().kept_bytes, 11);
    assert_eq!(
        text(&path),
        format!("{}{{\"id\":\"x\"}}\n{{\"id\":\"y\"}}\n", OLD.replace("\"a\"", "\"a\",\"p\":1"))
    );
    assert_eq!(take_back(&path).unwrap().kept_bytes, 22);
    assert_eq!(text(&path), format!("{OLD}{{\"id\":\"x\"}}\n{{\"id\":\"y\"}}\n"));
    assert!(matches!(take_back(&path), Err(DiskError::NothingToUndo { .. })));
    assert_eq!(names(folder.path()), ["s.jsonl", "s.jsonl.bak", "s.jsonl.bak.2", "s.jsonl.undo"]);
}

#[test]
fn undo_of_an_append_refuses_once_the_file_has_changed() {
    let folder = tempfile::tempdir().unwrap();
    let path = session(folder.path());
    append_text(&path, RECORD).unwrap();
    let longer = format!("{OLD}{RECORD}{{\"id\":\"later\"}}\n");
    std::fs::write(&path, &longer).unwrap();
    assert!(matches!(take_back(&path), Err(DiskError::CannotUndo { .. })));
    assert_eq!(text(&path), longer);
}

#[test]
fn undo_of_a_replacement_refuses_a_changed_file_a_changed_backup_and_no_backup() {
    let folder = tempfile::tempdir().unwrap();
    let path = session(folder.path());
    prune(&path, "1").unwrap();
    let pruned = text(&path);
    std::fs::write(&path, pruned.replace("\"p\":1", "\"p\":9")).unwrap();
    assert!(matches!(take_back(&path), Err(DiskError::CannotUndo { .. })));
    std::fs::write(&path, &pruned).unwrap();
    std::fs::write(folder.path().join("s.jsonl.bak"), "other").unwrap();
    assert!(matches!(take_back(&path), Err(DiskError::CannotUndo { .. })));
    let options = ReplaceOptions { backup: Backup::None, ..ReplaceOptions::default() };
    replace_with(&path, &options, |_| NEW.into()).unwrap();
    assert!(matches!(take_back(&path), Err(DiskError::CannotUndo { .. })));
    assert_eq!(text(&path), NEW);
}

#[test]
fn append_gives_a_record_a_line_of_its_own_and_undo_restores_the_missing_line_feed() {
    let folder = tempfile::tempdir().unwrap();
    let path = session(folder.path());
    std::fs::write(&path, OLD.trim_end()).unwrap();
    let written = append_text(&path, RECORD).unwrap();
    assert_eq!((written.offset, written.length), (OLD.len() as u64 - 1, RECORD.len() as u64 + 1));
    assert_eq!(text(&path), format!("{OLD}{RECORD}"));
    take_back(&path).unwrap();
    assert_eq!(text(&path), OLD.trim_end());
}

#[test]
fn refuses_a_file_that_changed_since_it_was_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = session(folder.path());
    let bytes = read::whole(&path).unwrap();
    let target = Target { path: &path, fingerprint: bytes.fingerprint().unwrap(), bytes: Some(&bytes) };
    std::fs::write(&path, format!("{OLD}{{}}\n")).unwrap();
    let options = ReplaceOptions::default();
    assert!(matches!(append(&target, RECORD.as_bytes(), &INTENT), Err(DiskError::Changed { .. })));
    let result = replace(&target, |_| Ok(()), |_| Ok(()), &INTENT, &options);
    assert!(matches!(result, Err(DiskError::Changed { .. })));
    assert_eq!(names(folder.path()), ["s.jsonl"]);
}

#[test]
fn refuses_a_result_that_the_caller_finds_bad_and_records_that_are_not_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = session(folder.path());
    let bytes = read::whole(&path).unwrap();
    let target = Target { path: &path, fingerprint: bytes.fingerprint().unwrap(), bytes: None };
    let result = replace(
        &target,
        |to| to.write_all(b"less\n"),
        |new| Err(std::fs::read_to_string(new).unwrap()),
        &INTENT,
        &ReplaceOptions::default(),
    );
    assert!(matches!(result, Err(DiskError::Refused { reason, .. }) if reason == "less\n"));
    for records in [&b""[..], b"{}", b"\xff\n"] {
        assert!(matches!(append(&target, records, &INTENT), Err(DiskError::NotRecords { .. })));
    }
    assert_eq!((text(&path).as_str(), names(folder.path())), (OLD, vec!["s.jsonl".to_owned()]));
}

#[test]
fn follows_links_and_names_what_is_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = session(folder.path());
    let elsewhere = tempfile::tempdir().unwrap();
    let link = elsewhere.path().join("link.jsonl");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    prune(&link, "1").unwrap();
    append_text(&link, RECORD).unwrap();
    assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(text(&path), format!("{}{RECORD}", OLD.replace("\"a\"", "\"a\",\"p\":1")));
    assert_eq!(names(elsewhere.path()), ["link.jsonl"]);

    let dangling = folder.path().join("d.jsonl");
    std::os::unix::fs::symlink(folder.path().join("none"), &dangling).unwrap();
    assert!(matches!(append_text(&dangling, RECORD), Err(DiskError::DanglingLink { .. })));
    assert!(matches!(append_text(folder.path(), RECORD), Err(DiskError::NotAFile { .. })));
    assert!(matches!(append_text(&folder.path().join("none"), RECORD), Err(DiskError::NotFound { .. })));
}

#[test]
fn a_folder_in_the_place_of_the_undo_log_stops_the_write_before_it_begins() {
    let folder = tempfile::tempdir().unwrap();
    let path = session(folder.path());
    std::fs::create_dir(folder.path().join("s.jsonl.undo")).unwrap();
    assert!(matches!(append_text(&path, RECORD), Err(DiskError::NotAFile { .. })));
    assert!(matches!(prune(&path, "1"), Err(DiskError::NotAFile { .. })));
    assert_eq!((text(&path).as_str(), names(folder.path()).len()), (OLD, 2));
}

#[test]
fn leaves_a_read_only_file_alone_and_a_file_with_two_names_unless_forced() {
    let folder = tempfile::tempdir().unwrap();
    let path = session(folder.path());
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o444)).unwrap();
    assert!(matches!(append_text(&path, RECORD), Err(DiskError::ReadOnly { .. })));
    assert!(matches!(prune(&path, "1"), Err(DiskError::ReadOnly { .. })));
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
    let second = folder.path().join("second.jsonl");
    std::fs::hard_link(&path, &second).unwrap();
    assert!(matches!(prune(&path, "1"), Err(DiskError::HardLinked { links: 2, .. })));
    replace_with(&path, &ReplaceOptions { force: true, ..ReplaceOptions::default() }, |_| NEW.into())
        .unwrap();
    assert_eq!((text(&path).as_str(), text(&second).as_str()), (NEW, OLD));
    for name in ["s.jsonl", "s.jsonl.bak", "s.jsonl.undo"] {
        assert_eq!(std::fs::metadata(folder.path().join(name)).unwrap().mode() & 0o777, 0o640, "{name}");
    }
}

#[test]
fn backups_go_to_the_named_folder_and_never_over_another() {
    let folder = tempfile::tempdir().unwrap();
    let path = session(folder.path());
    let backups = tempfile::tempdir().unwrap();
    std::fs::write(backups.path().join("s.jsonl.bak"), "mine").unwrap();
    let options =
        ReplaceOptions { backup: Backup::In(backups.path().to_owned()), ..ReplaceOptions::default() };
    let replaced = replace_with(&path, &options, |_| NEW.into()).unwrap();
    assert_eq!(replaced.backup, Some(backups.path().join("s.jsonl.bak.2")));
    assert_eq!(text(&backups.path().join("s.jsonl.bak")), "mine");
    take_back(&path).unwrap();
    assert_eq!(text(&path), OLD);
}

/// Runs as root only; elsewhere says so.
fn mounted(options: &str) -> Option<tempfile::TempDir> {
    let folder = tempfile::tempdir().unwrap();
    let status = Command::new("mount")
        .args(["-t", "tmpfs", "-o", options, "tmpfs"])
        .arg(folder.path())
        .stderr(Stdio::null())
        .status();
    if status.is_ok_and(|it| it.success()) {
        return Some(folder);
    }
    eprintln!("SKIPPED: this machine does not let us mount a file system");
    None
}

struct Unmount<'a>(&'a Path);

impl Drop for Unmount<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0).status();
    }
}

#[test]
fn a_full_disk_leaves_the_old_file() {
    let Some(folder) = mounted("size=256k") else { return };
    let _unmount = Unmount(folder.path());
    let path = session(folder.path());
    let filler = folder.path().join("filler");
    let big = format!("{{\"id\":\"big\",\"x\":\"{}\"}}\n", "x".repeat(60_000));
    let mut steps = Vec::new();
    // From no room at all to enough for the record in the log and half of it in the file.
    for pages in [64, 50, 44, 40, 37, 36] {
        let _ = std::fs::write(&filler, vec![1; pages * 4096]);
        let appended = append_text(&path, &big);
        let Err(DiskError::Io { doing, .. }) = &appended else { panic!("{pages}: {appended:?}") };
        steps.push(*doing);
        assert_eq!(text(&path), OLD, "{pages}");
        let replaced = replace_with(&path, &ReplaceOptions::default(), |it| format!("{it}{}", big.repeat(4)));
        assert!(matches!(&replaced, Err(DiskError::Io { .. })), "{pages}: {replaced:?}");
        assert_eq!(text(&path), OLD, "{pages}");
        let left: Vec<String> =
            names(folder.path()).into_iter().filter(|it| !it.ends_with(".undo")).collect();
        assert_eq!(left, ["filler", "s.jsonl"], "{pages}");
        let _ = std::fs::remove_file(folder.path().join("s.jsonl.undo"));
    }
    for step in ["write the undo record", "append to the file"] {
        assert!(steps.contains(&step), "{steps:?}");
    }
    std::fs::remove_file(&filler).unwrap();
    append_text(&path, &big).unwrap();
    assert_eq!(text(&path), format!("{OLD}{big}"));
}

#[test]
fn a_read_only_file_system_is_an_error_and_no_more() {
    let Some(folder) = mounted("size=256k") else { return };
    let _unmount = Unmount(folder.path());
    let path = session(folder.path());
    let status = Command::new("mount").args(["-o", "remount,ro"]).arg(folder.path()).status().unwrap();
    assert!(status.success());
    for result in [append_text(&path, RECORD).map(drop), prune(&path, "1").map(drop)] {
        let error = result.unwrap_err();
        assert!(error.hint().is_some_and(|it| it.contains("can be written")), "{error}");
    }
    assert_eq!((text(&path).as_str(), names(folder.path()).len()), (OLD, 1));
}

#[test]
fn without_permission_nothing_changes() {
    let folder = tempfile::tempdir().unwrap();
    let path = session(folder.path());
    let nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
    // The test binary itself must be reachable for that user.
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let works = start_child(&nobody, "none", &path).output().is_ok_and(|it| it.status.code() == Some(101));
    if !works {
        eprintln!("SKIPPED: this machine does not let us run as another user");
        return;
    }
    // First the file forbids, then (file writable, folder not) the undo record.
    for mode in [0o644, 0o666] {
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        for kind in ["Append", "Replace"] {
            let output = start_child(&nobody, &format!("try {kind}"), &path).output().unwrap();
            let words = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(3), "{mode:o} {kind}: {words}");
            assert!(words.contains("ermission denied"), "{mode:o} {kind}: {words}");
            assert_eq!((text(&path).as_str(), names(folder.path()).len()), (OLD, 1));
        }
    }
}

#[test]
fn readers_give_the_same_bytes_and_the_same_fingerprint() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("big.jsonl");
    let bytes: Vec<u8> = (0..700_001_u32).map(|n| (n % 251) as u8).collect();
    std::fs::write(&path, &bytes).unwrap();
    let whole = read::whole(&path).unwrap();
    assert!(whole[..] == bytes[..] && whole.as_ptr().addr().is_multiple_of(64));
    let mut streamed = Vec::new();
    let fingerprint = read::stream(&path, |chunk| {
        streamed.extend_from_slice(chunk);
        std::ops::ControlFlow::Continue(())
    })
    .unwrap();
    assert!(streamed == bytes);
    let lines = read::FileLines::open(&path).unwrap();
    let mut range = vec![9; 3];
    lines.read_range(262_140, 10, &mut range).unwrap();
    assert_eq!(range, bytes[262_140..262_150]);
    assert!(matches!(lines.read_range(700_000, 2, &mut range), Err(DiskError::Changed { .. })));
    assert_eq!((whole.fingerprint(), lines.fingerprint()), (Some(&fingerprint), &fingerprint));
    assert_eq!(&read::from_reader(&bytes[..]).unwrap()[..], &bytes[..]);
}

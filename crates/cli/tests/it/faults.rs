//! The program under faults: killed, out of space, out of rights, in places that are no files. After each the session is the old one or
//! the new one, or, in an append, the old one with a torn tail that the next writing command removes (spec 8.1).
#![expect(clippy::disallowed_methods, reason = "tests make and read the files that the program works on")]

use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::sessions::{omp, pi};
use crate::support::{Ran, TestEnv, program};

const COMPACT: &[&str] = &["compact", "-q", "--keep-recent-tokens", "2000", "a.jsonl"];
const PRUNE: &[&str] = &["prune", "-q", "--protect", "1000", "--min-savings", "0", "a.jsonl"];
const UNDO: &[&str] = &["undo", "-q", "a.jsonl"];

/// A command, what must have been run before it, and whether it appends.
type Write = (&'static [&'static str], Option<&'static [&'static str]>, bool);

const WRITES: &[Write] =
    &[(COMPACT, None, true), (PRUNE, None, false), (UNDO, Some(COMPACT), false), (UNDO, Some(PRUNE), false)];

struct Case {
    env: TestEnv,
    args: &'static [&'static str],
    before: Option<&'static [&'static str]>,
    appends: bool,
    old: String,
    new: String,
}

impl Case {
    /// A session before a write, and what the write makes of it when nothing goes wrong.
    fn new(write: Write) -> Case {
        let (args, before, appends) = write;
        let undisturbed = Case::prepared(before);
        assert_eq!(run(&undisturbed, args, None).quiet_status(), Some(0));
        let env = Case::prepared(before);
        let (old, new) = (env.read("a.jsonl"), undisturbed.read("a.jsonl"));
        assert_ne!(old, new);
        Case { env, args, before, appends, old, new }
    }

    /// The same session once more.
    fn again(&self) -> Case {
        let env = Case::prepared(self.before);
        assert_eq!(env.read("a.jsonl"), self.old);
        Case { env, old: self.old.clone(), new: self.new.clone(), ..*self }
    }

    fn prepared(before: Option<&[&str]>) -> TestEnv {
        let env = TestEnv::new();
        env.write("a.jsonl", omp("s", 8));
        if let Some(before) = before {
            assert_eq!(run(&env, before, None).status, Some(0));
        }
        env
    }

    /// What must hold after a fault, and after the next writing command.
    #[track_caller]
    fn check(&self, context: &str) -> &'static str {
        let now = self.env.read("a.jsonl");
        let is_torn = self.appends && now.starts_with(&self.old) && self.new.starts_with(&now);
        assert!(now == self.old || now == self.new || is_torn, "{:?} {context}: {now}", self.args);
        let next = run(&self.env, COMPACT, None);
        assert_eq!(next.status, Some(0), "{:?} {context}: {}", self.args, next.stderr);
        let after = self.env.read("a.jsonl");
        let kept = if now == self.new { &self.new } else { &self.old };
        assert!(after.starts_with(kept.as_str()), "{:?} {context}: {after}", self.args);
        check_lines(&after);
        for name in self.env.names() {
            let is_known = name == "a.jsonl" || name.starts_with("a.jsonl.bak") || name == "a.jsonl.undo";
            assert!(is_known, "{:?} {context}: {name} is left", self.args);
        }
        match now {
            now if now == self.old => "old",
            now if now == self.new => "new",
            _ => "torn",
        }
    }
}

/// Runs a command at a fixed time, with a fault if one is given.
fn run(env: &TestEnv, args: &[&str], fault: Option<String>) -> Ran {
    let mut command = env.command(args);
    command.env("SOURCE_DATE_EPOCH", "1770000000");
    if let Some(fault) = fault {
        command.env("SESSTOOL_FAULT", fault);
    }
    Ran::of(command.output().expect("the program starts"))
}

#[track_caller]
fn check_lines(file: &str) {
    assert!(file.ends_with('\n'), "{file}");
    for line in file.lines() {
        serde_json::from_str::<serde_json::Value>(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    }
}

/// One line that says what, with the file, and at most one hint.
#[track_caller]
fn check_message(ran: &Ran) {
    let lines: Vec<&str> = ran.stderr.lines().collect();
    assert!(
        matches!(lines[..], [_] | [_, _]) && lines[0].contains("a.jsonl"),
        "status {:?}: {}",
        ran.status,
        ran.stderr
    );
    assert!(lines.get(1).is_none_or(|line| line.contains("hint: ")), "{}", ran.stderr);
    assert!(!ran.stderr.contains("panicked"), "{}", ran.stderr);
}

#[test]
fn a_kill_at_any_point_leaves_the_old_session_or_the_new_one() {
    for &write in WRITES {
        let mut outcomes = std::collections::BTreeMap::new();
        let first = Case::new(write);
        for at in 0.. {
            let case = first.again();
            let ran = run(&case.env, case.args, Some(format!("kill:{at}")));
            if ran.status == Some(0) {
                assert!(at >= 6, "{:?} passes only {at} points", case.args);
                assert_eq!(case.env.read("a.jsonl"), case.new);
                break;
            }
            assert_eq!(ran.status, None, "{:?} at {at}: {}", case.args, ran.stderr);
            *outcomes.entry(case.check(&format!("killed at {at}"))).or_insert(0) += 1;
        }
        assert!(outcomes.contains_key("old") && outcomes.contains_key("new"), "{:?}: {outcomes:?}", write.0);
        assert_eq!(outcomes.contains_key("torn"), write.2, "{:?}: {outcomes:?}", write.0);
    }
}

#[test]
fn an_error_at_any_point_is_one_line_and_leaves_the_old_session_or_the_new_one() {
    // ENOSPC and EINTR, EACCES and EROFS; the unit tests of `disk` have each with each.
    for (&write, numbers) in WRITES.iter().zip([[28, 4], [13, 30]]) {
        let first = Case::new(write);
        for number in numbers {
            for at in 0.. {
                let case = first.again();
                let ran = run(&case.env, case.args, Some(format!("fail:{at}:{number}")));
                match ran.status {
                    Some(0) => {}
                    Some(1) => {
                        check_message(&ran);
                        assert_eq!(
                            case.env.read("a.jsonl"),
                            case.old,
                            "{:?} error {number} at {at}",
                            case.args
                        );
                    }
                    other => panic!("{:?} error {number} at {at}: {other:?} {}", case.args, ran.stderr),
                }
                let is_past = ran.status == Some(0) && case.env.read("a.jsonl") == case.new;
                case.check(&format!("error {number} at {at}"));
                if is_past && at > 24 {
                    break;
                }
            }
        }
    }
}

#[test]
fn a_kill_at_a_random_moment_loses_nothing() {
    let mut seed = 0x9e37_79b9_u64;
    let mut n_killed = 0;
    for round in 0..300 {
        let env = TestEnv::new();
        let old = if round % 2 == 0 { omp("s", 12) } else { pi("s", 12) };
        env.write("a.jsonl", &old);
        let args = if round % 3 == 0 { PRUNE } else { COMPACT };
        let mut command = env.command(args);
        let mut child =
            command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the program starts");
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        std::thread::sleep(Duration::from_micros((seed >> 33) % 60_000));
        child.kill().expect("it may have ended, but it is not waited for yet");
        n_killed += usize::from(child.wait().expect("a child").code().is_none());
        let next = run(&env, COMPACT, None);
        assert_eq!(next.status, Some(0), "round {round}: {}", next.stderr);
        let after = env.read("a.jsonl");
        check_lines(&after);
        for line in old.lines() {
            let id: serde_json::Value = serde_json::from_str(line).expect("JSON");
            let id = format!("\"id\":{}", id["id"]);
            assert_eq!(after.matches(&id).count(), 1, "round {round}: {id}");
        }
        assert!(after.matches(r#""type":"compaction""#).count() <= 2, "round {round}");
    }
    assert!(n_killed > 30, "only {n_killed} of 300 runs were killed");
}

/// The program in a shell with a limit on the size of files; with `ignored`, the signal that comes with it is.
fn run_with_file_limit(env: &TestEnv, args: &[&str], blocks: u64, ignored: bool) -> Ran {
    let trap = if ignored { "trap '' XFSZ;" } else { "" };
    let script = format!("{trap} ulimit -f {blocks}; exec \"$@\"");
    let mut command = Command::new("bash");
    command.args(["-c", &script, "bash"]).arg(program()).args(args);
    command
        .current_dir(env.work())
        .env_clear()
        .env("HOME", env.home())
        .env("SOURCE_DATE_EPOCH", "1770000000");
    Ran::of(command.output().expect("a shell"))
}

#[test]
fn a_limit_on_the_size_of_files_leaves_the_old_session() {
    for ignored in [true, false] {
        for &write in &WRITES[..2] {
            let first = Case::new(write);
            for blocks in [0, 1, 2, 8, 30, 35, 36, 37, 40, 70] {
                let case = first.again();
                let ran = run_with_file_limit(&case.env, case.args, blocks, ignored);
                match ran.status {
                    Some(0) => {}
                    Some(1) => {
                        check_message(&ran);
                        assert_eq!(case.env.read("a.jsonl"), case.old);
                    }
                    None if !ignored => {}
                    other => panic!("{:?} {blocks}: {other:?} {}", case.args, ran.stderr),
                }
                case.check(&format!("limit of {blocks} blocks, ignored {ignored}"));
            }
        }
    }
}

/// Mounts a small file system on the working directory; `None` where that is not allowed.
struct Mounted(std::path::PathBuf);

impl Mounted {
    fn new(folder: &Path, options: &str) -> Option<Mounted> {
        let status = Command::new("mount")
            .args(["-t", "tmpfs", "-o", options, "tmpfs"])
            .arg(folder)
            .stderr(Stdio::null())
            .status();
        if status.is_ok_and(|status| status.success()) {
            return Some(Mounted(folder.to_owned()));
        }
        eprintln!("SKIPPED: this machine does not let us mount a file system");
        None
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn a_full_disk_leaves_the_old_session() {
    for args in [COMPACT, PRUNE] {
        let mut n_refused = 0;
        // From no free page to enough for the new file, the record and the backup.
        for free_pages in 0..24 {
            let env = TestEnv::new();
            let Some(_mounted) = Mounted::new(&env.work(), "size=256k") else { return };
            let old = omp("s", 8);
            env.write("a.jsonl", &old);
            // Fills the disk, then gives back what is to be free.
            let filler = env.work().join("filler");
            let _ = std::fs::write(&filler, vec![0; 256 << 10]);
            let file = std::fs::OpenOptions::new().write(true).open(&filler).expect("the filler");
            let length = file.metadata().expect("a file").len();
            file.set_len(length - free_pages * 4096).expect("it gets shorter");
            let ran = run(&env, args, None);
            if ran.status == Some(0) {
                check_lines(&env.read("a.jsonl"));
                continue;
            }
            n_refused += 1;
            check_message(&ran);
            assert_eq!((ran.status, env.read("a.jsonl")), (Some(1), old), "{args:?} {free_pages}");
        }
        assert!(n_refused > 0, "{args:?}");
    }
}

#[test]
fn a_read_only_file_system_leaves_the_session_and_is_said() {
    let env = TestEnv::new();
    let Some(mounted) = Mounted::new(&env.work(), "size=1m") else { return };
    let old = omp("s", 8);
    env.write("a.jsonl", &old);
    let status = Command::new("mount").args(["-o", "remount,ro"]).arg(&mounted.0).status();
    assert!(status.is_ok_and(|status| status.success()));
    for args in [COMPACT, PRUNE] {
        let ran = run(&env, args, None);
        assert_eq!(ran.status, Some(1));
        check_message(&ran);
        assert_eq!((env.read("a.jsonl"), env.names()), (old.clone(), vec!["a.jsonl".to_owned()]));
    }
    assert_eq!(env.run(["context", "a.jsonl"]).quiet_status(), Some(0));
}

/// Runs the program as a user without rights; `None` where that cannot be done.
fn run_as_nobody(env: &TestEnv, args: &[&str]) -> Option<Ran> {
    // The program may lie where that user cannot go.
    let copy = env.home().join("sesstool");
    std::fs::copy(program(), &copy).expect("a copy");
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(copy).args(args);
    command.current_dir(env.work()).env_clear().env("HOME", env.home());
    let ran = Ran::of(command.output().ok()?);
    let is_skipped = ran.stderr.starts_with("setpriv:");
    if is_skipped {
        eprintln!("SKIPPED: this user cannot become another: {}", ran.stderr);
    }
    (!is_skipped).then_some(ran)
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("our own file");
}

#[test]
fn without_permission_the_session_stays_and_is_named() {
    let env = TestEnv::new();
    let old = omp("s", 8);
    let file = env.write("a.jsonl", &old);
    let folder = env.work();
    set_mode(folder.parent().expect("a parent"), 0o755);
    for (of_folder, of_file) in
        [(0o755, 0o644), (0o755, 0o666), (0o777, 0o644), (0o755, 0o600), (0o700, 0o666)]
    {
        set_mode(&file, of_file);
        set_mode(&folder, of_folder);
        for args in [COMPACT, PRUNE] {
            let Some(ran) = run_as_nobody(&env, args) else { return };
            let now = env.read("a.jsonl");
            // Where the folder lets others write, a replacement would take the file from its owner: it is refused as well.
            assert_eq!(ran.status.filter(|status| *status < 3), ran.status, "{}", ran.stderr);
            if ran.status == Some(0) {
                check_lines(&now);
                env.write("a.jsonl", &old);
                continue;
            }
            check_message(&ran);
            assert_eq!(now, old, "{of_folder:o} {of_file:o} {args:?}");
        }
    }
}

#[test]
fn a_file_that_nobody_may_write_to_is_refused_even_for_root() {
    let env = TestEnv::new();
    let old = omp("s", 8);
    let file = env.write("a.jsonl", &old);
    set_mode(&file, 0o444);
    for args in [COMPACT, PRUNE] {
        let ran = run(&env, args, None);
        assert_eq!(ran.status, Some(1), "{args:?}");
        check_message(&ran);
    }
    assert_eq!((env.read("a.jsonl"), env.names()), (old, vec!["a.jsonl".to_owned()]));
}

#[test]
fn a_folder_or_a_link_to_nowhere_in_place_of_the_session_is_said() {
    let env = TestEnv::new();
    std::fs::create_dir(env.work().join("a.jsonl")).expect("a folder");
    for args in [COMPACT, PRUNE, UNDO] {
        let ran = run(&env, args, None);
        assert!(matches!(ran.status, Some(1 | 2)), "{args:?}");
        check_message(&ran);
    }
    std::fs::remove_dir(env.work().join("a.jsonl")).expect("it is empty");
    symlink("nowhere.jsonl", env.work().join("a.jsonl")).expect("a link");
    for args in [COMPACT, PRUNE, UNDO] {
        let ran = run(&env, args, None);
        assert!(matches!(ran.status, Some(1 | 2)), "{args:?}");
        check_message(&ran);
    }
    assert_eq!(env.names(), ["a.jsonl"]);
}

#[test]
fn a_link_is_followed_to_the_session_and_stays_a_link() {
    for args in [COMPACT, PRUNE] {
        let env = TestEnv::new();
        let old = omp("s", 8);
        let real = env.write("there/real.jsonl", &old);
        symlink("there/real.jsonl", env.work().join("a.jsonl")).expect("a link");
        set_mode(&real, 0o640);
        let owner = real.metadata().expect("a file").uid();
        assert_eq!(run(&env, args, None).quiet_status(), Some(0));
        assert!(env.work().join("a.jsonl").symlink_metadata().expect("a link").is_symlink());
        assert_ne!(env.read("there/real.jsonl"), old);
        let metadata = real.metadata().expect("a file");
        assert_eq!((metadata.mode() & 0o777, metadata.uid()), (0o640, owner));
        assert_eq!(run(&env, UNDO, None).quiet_status(), Some(0));
        assert_eq!(env.read("there/real.jsonl"), old);
    }
}

#[test]
fn what_is_no_session_is_never_written_to() {
    let slot = format!("{:<253}\"}}\n", r#"{"type":"title","v":1,"title":"t","pad":""#);
    let entries = omp("s", 8).split_once('\n').expect("a header").1.to_owned();
    let without_id = omp("s", 8).replacen("\"id\":\"s\",", "", 1);
    let others: [(&str, &[u8]); 7] = [
        ("entries only", entries.as_bytes()),
        ("a slot without a header", &[slot.as_bytes(), entries.as_bytes()].concat()),
        ("a header without an id", without_id.as_bytes()),
        ("nothing", b""),
        ("no JSON", b"hello\nworld\n"),
        ("other JSON", b"[1,2]\n{\"a\":1}\n"),
        ("binary", &[0, 159, 146, 150, 0, 10, 255]),
    ];
    for (what, bytes) in others {
        let env = TestEnv::new();
        let file = env.write("a.jsonl", bytes);
        for args in
            [COMPACT, PRUNE, &["compact", "--auto", "-q", "a.jsonl"], &["compact", "--idle", "-q", "a.jsonl"]]
        {
            let ran = run(&env, args, None);
            assert_eq!(ran.status, Some(1), "{what} {args:?}: {}", ran.stderr);
            check_message(&ran);
        }
        assert_eq!(std::fs::read(&file).expect("a file"), bytes, "{what}");
        assert_eq!(env.names(), ["a.jsonl"], "{what}");
    }
}

#[test]
fn output_never_goes_over_the_session_even_with_force() {
    let env = TestEnv::new();
    let old = omp("s", 8);
    env.write("a.jsonl", &old);
    symlink("a.jsonl", env.work().join("link.jsonl")).expect("a link");
    for output in [&["-o", "./a.jsonl"][..], &["-o", "link.jsonl"], &["--output-dir", "."]] {
        for args in [COMPACT, PRUNE] {
            let ran = run(&env, &[args, output, &["--force"]].concat(), None);
            assert_eq!(ran.status, Some(1), "{output:?} {args:?}");
            assert!(ran.stderr.contains("this is the session itself"), "{}", ran.stderr);
            assert_eq!(env.read("a.jsonl"), old);
        }
    }
}

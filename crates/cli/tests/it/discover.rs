//! Paths, folders, lists and standard input, by way of `inspect`.

use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;

use crate::support::{Ran, TestEnv, program, session};

#[test]
fn folders_are_walked_for_sessions_only() {
    let env = TestEnv::new();
    for name in [
        "s/b.jsonl",
        "s/a.jsonl",
        "s/deep/er/c.jsonl",
        "s/a.jsonl.bak",
        "s/a.jsonl.bak.2",
        "s/a.jsonl.undo",
        "s/a.jsonl.reset.2026",
        "s/a.jsonl.tmp",
        "s/.a.jsonl.sesstool-tmp",
        "s/.hidden.jsonl",
        "s/notes.txt",
    ] {
        env.write(name, session("x"));
    }
    let ran = env.run(["inspect", "--json", "s"]);
    assert_eq!(ran.quiet_status(), Some(0));
    assert_eq!(ran.fields("file"), ["s/a.jsonl", "s/b.jsonl", "s/deep/er/c.jsonl"]);
    let named = env.run(["inspect", "--json", "s/a.jsonl.bak", "s/.hidden.jsonl"]);
    assert_eq!(named.quiet_status(), Some(0));
    assert_eq!(named.fields("status"), ["done", "done"]);
}

#[test]
fn a_folder_without_sessions_is_an_error_line_and_the_rest_goes_on() {
    let env = TestEnv::new();
    env.write("empty/notes.txt", "");
    env.write("a.jsonl", session("a"));
    let ran = env.run(["inspect", "--json", "empty", "missing", "a.jsonl"]);
    assert_eq!(ran.status, Some(1));
    assert_eq!(ran.fields("file"), ["empty", "missing", "a.jsonl"]);
    assert_eq!(ran.fields("status"), ["failed", "failed", "done"]);
    assert_eq!(
        ran.fields("message")[..2],
        ["empty: no sessions in this folder", "missing: no such file or folder"]
    );
    assert_eq!(env.run(["inspect", "empty"]).status, Some(2));
}

#[test]
fn results_come_in_the_order_of_the_arguments() {
    let env = TestEnv::new();
    let names: Vec<_> = (0..40).map(|number| format!("{number}.jsonl")).collect();
    for (number, name) in names.iter().enumerate() {
        // The later ones are larger, so that they are begun first.
        env.write(name, session("x") + &"\n".repeat(number * 1000));
    }
    let ran =
        env.run(["inspect", "--json", "--jobs", "7"].into_iter().chain(names.iter().map(String::as_str)));
    assert_eq!(ran.quiet_status(), Some(0));
    assert_eq!(ran.fields("file"), names);
}

#[test]
fn a_file_that_is_named_twice_is_read_once() {
    let env = TestEnv::new();
    env.write("s/a.jsonl", session("a"));
    std::os::unix::fs::symlink("a.jsonl", env.work().join("s/link.jsonl")).expect("a link");
    let ran = env.run(["inspect", "--json", "s/a.jsonl", "s", "./s/../s/a.jsonl", "s/link.jsonl"]);
    assert_eq!(ran.quiet_status(), Some(0));
    assert_eq!(ran.fields("file"), ["s/a.jsonl"]);
}

#[test]
fn a_loop_of_links_and_a_link_to_nowhere_do_no_harm() {
    let env = TestEnv::new();
    env.write("s/a.jsonl", session("a"));
    std::os::unix::fs::symlink("..", env.work().join("s/up")).expect("a link");
    std::os::unix::fs::symlink("nowhere", env.work().join("s/broken.jsonl")).expect("a link");
    let ran = env.run(["inspect", "--json", "s"]);
    assert_eq!(ran.status, Some(1));
    assert_eq!(ran.fields("file"), ["s/a.jsonl", "s/broken.jsonl"]);
    assert_eq!(ran.fields("status"), ["done", "failed"]);
}

#[test]
fn lists_are_read_by_line_or_by_nul_from_a_file_or_standard_input() {
    let env = TestEnv::new();
    let odd = std::ffi::OsStr::from_bytes(b"odd \n\xff.jsonl");
    env.write("a.jsonl", session("a"));
    env.write("b.jsonl", session("b"));
    std::os::unix::fs::symlink("b.jsonl", env.work().join(odd)).expect("a link with an odd name");
    let by_line = env.run_with_input(["inspect", "--json", "--files-from", "-"], b"b.jsonl\n\na.jsonl");
    assert_eq!(by_line.quiet_status(), Some(0));
    assert_eq!(by_line.fields("file"), ["b.jsonl", "a.jsonl"]);
    env.write("list", b"odd \n\xff.jsonl\0a.jsonl\0");
    let by_nul = env.run(["inspect", "--json", "--files-from", "list", "-0"]);
    assert_eq!(by_nul.quiet_status(), Some(0));
    assert_eq!(by_nul.fields("file"), ["odd \n\u{fffd}.jsonl", "a.jsonl"]);
    assert_eq!(by_nul.fields("status"), ["done", "done"]);
}

#[test]
fn an_empty_list_is_nothing_to_do_and_a_missing_one_an_error() {
    let env = TestEnv::new();
    let empty = env.run_with_input(["inspect", "--files-from", "-"], b"");
    assert_eq!((empty.status, &*empty.stdout), (Some(0), ""));
    let missing = env.run(["inspect", "--files-from", "nowhere"]);
    assert_eq!(missing.status, Some(2));
    assert!(missing.stderr.starts_with("error: nowhere: no such file\n"), "{}", missing.stderr);
    assert_eq!(env.run(["inspect", "-0"]).status, Some(2));
    assert_eq!(env.run(["inspect", "-", "--files-from", "-"]).status, Some(2));
}

#[test]
fn standard_input_is_one_session() {
    let env = TestEnv::new();
    let ran = env.run_with_input(["inspect", "--json", "-", "-"], session("from-stdin").as_bytes());
    assert_eq!(ran.quiet_status(), Some(0));
    assert_eq!((ran.fields("file"), ran.fields("id")), (vec!["-".to_owned()], vec!["from-stdin".to_owned()]));
    let junk = env.run_with_input(["inspect", "-"], b"hello\n");
    assert_eq!(junk.status, Some(1));
    assert!(junk.stderr.starts_with("error: standard input: not a session"), "{}", junk.stderr);
}

#[test]
fn a_pipe_or_a_device_is_no_session_file() {
    let env = TestEnv::new();
    let ran = env.run(["inspect", "--json", "/dev/null"]);
    assert_eq!(ran.status, Some(1));
    assert_eq!(ran.fields("message"), ["/dev/null: not a regular file"]);
}

#[test]
fn what_may_not_be_read_is_named_and_the_rest_goes_on() {
    let env = TestEnv::new();
    for name in ["s/a.jsonl", "s/b.jsonl", "s/locked/c.jsonl"] {
        env.write(name, session("x"));
    }
    let forbid = |name: &str| {
        let nothing = std::fs::Permissions::from_mode(0o000);
        std::fs::set_permissions(env.work().join(name), nothing).expect("it is ours");
    };
    forbid("s/a.jsonl");
    forbid("s/locked");
    let mut command = env.command(["inspect", "--json", "s"]);
    if is_root() {
        // Root may read everything, so the program runs as nobody, from where nobody may run it.
        let copy = env.work().join("sesstool");
        std::fs::copy(program(), &copy).expect("a copy");
        let open = std::fs::Permissions::from_mode(0o755);
        let outer = env.work().join("..").canonicalize().expect("it exists");
        std::fs::set_permissions(outer, open).expect("it is ours");
        command = std::process::Command::new(copy);
        command.args(["inspect", "--json", "s"]).current_dir(env.work()).uid(65534).gid(65534);
        command.env_clear().env("HOME", env.home());
    }
    let ran = Ran::of(command.output().expect("it starts"));
    let open = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(env.work().join("s/locked"), open).expect("it is ours");
    assert_eq!(ran.status, Some(1), "{}", ran.stderr);
    assert_eq!(ran.fields("file"), ["s/a.jsonl", "s/b.jsonl", "s"]);
    assert_eq!(ran.fields("status"), ["failed", "done", "failed"]);
    let messages = ran.fields("message");
    assert!(messages[0].starts_with("s/a.jsonl: cannot open the file: Permission denied"), "{messages:?}");
    assert!(messages[2].starts_with("s/locked: cannot look into the folder: "), "{messages:?}");
}

fn is_root() -> bool {
    let id = std::process::Command::new("id").arg("-u").output().expect("id starts");
    id.stdout == b"0\n"
}

//! What concerns every command: exit statuses, streams, pipes, signals, colours.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use crate::support::{Ran, TestEnv, program, session};

#[test]
fn wrong_usage_is_2_and_help_is_0() {
    let env = TestEnv::new();
    assert_eq!(env.run(["inspect", "--no-such-flag"]).status, Some(2));
    assert_eq!(env.run(["no-such-command"]).status, Some(2));
    assert_eq!(env.run::<&str>([]).status, Some(2));
    assert_eq!(env.run(["inspect", "--jobs", "0"]).status, Some(2));
    let help = env.run(["--help"]);
    assert_eq!(help.quiet_status(), Some(0));
    assert!(help.stdout.contains("Usage: sesstool"), "{}", help.stdout);
    let version = env.run(["-V"]);
    assert_eq!((version.quiet_status(), &*version.stdout), (Some(0), "sesstool 0.1.0\n"));
}

#[test]
fn every_command_has_a_help_text_with_an_example() {
    let env = TestEnv::new();
    for command in sesstool::command().get_subcommands() {
        let help = env.run([command.get_name(), "--help"]);
        assert_eq!(help.quiet_status(), Some(0), "{}", command.get_name());
        assert!(help.stdout.contains("sesstool "), "{}", help.stdout);
        assert!(help.stdout.contains("Example"), "{}", help.stdout);
    }
}

#[test]
fn some_failed_is_1_and_nothing_that_could_be_run_is_2() {
    let env = TestEnv::new();
    env.write("good.jsonl", session("a"));
    env.write("junk.jsonl", "{\"type\":\"message\"}\n{}\n");
    assert_eq!(env.run(["inspect", "good.jsonl"]).quiet_status(), Some(0));
    assert_eq!(env.run(["inspect", "good.jsonl", "missing.jsonl"]).status, Some(1));
    assert_eq!(env.run(["inspect", "junk.jsonl"]).status, Some(1));
    assert_eq!(env.run(["inspect", "missing.jsonl"]).status, Some(2));
}

#[test]
fn an_error_is_one_line_and_a_hint_on_standard_error() {
    let env = TestEnv::new();
    env.write("junk.jsonl", "{\"type\":\"message\"}\n{}\n");
    let ran = env.run(["inspect", "junk.jsonl"]);
    assert_eq!(ran.stdout, "");
    assert!(ran.stderr.starts_with("error: junk.jsonl: not a session: line "), "{}", ran.stderr);
    assert_eq!(ran.stderr.lines().count(), 2, "{}", ran.stderr);
    assert!(ran.stderr.lines().nth(1).is_some_and(|line| line.starts_with("hint: ")), "{}", ran.stderr);
}

#[test]
fn a_closed_standard_output_ends_quietly() {
    let env = TestEnv::new();
    env.write("a.jsonl", session("a"));
    env.write("b.jsonl", session("b"));
    for args in [&["inspect", "."][..], &["inspect", ".", "--json"], &["models"], &["--help"], &["man"]] {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let output = env.command(args).stdout(writer).stderr(Stdio::piped()).output().expect("it starts");
        assert_eq!(Ran::of(output).quiet_status(), Some(0), "{args:?}");
    }
}

#[test]
fn a_closed_standard_error_is_no_panic() {
    let env = TestEnv::new();
    env.write("a.jsonl", session("a"));
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let mut command = env.command(["inspect", "a.jsonl", "missing.jsonl"]);
    let output = command.stderr(writer).stdout(Stdio::piped()).output().expect("it starts");
    let ran = Ran::of(output);
    assert_eq!(ran.status, Some(1));
    assert!(ran.stdout.contains("a.jsonl"), "{}", ran.stdout);
}

#[test]
fn a_full_device_is_an_error() {
    let env = TestEnv::new();
    let full = std::path::Path::new("/dev/full");
    if !full.exists() {
        return;
    }
    #[expect(clippy::disallowed_methods, reason = "the device stands for a full disk")]
    let device = std::fs::OpenOptions::new().write(true).open(full).expect("the device opens");
    let output = env.command(["settings"]).stdout(device).stderr(Stdio::piped()).output().expect("it starts");
    let ran = Ran::of(output);
    assert_eq!(ran.status, Some(1));
    assert!(ran.stderr.contains("error: standard output: "), "{}", ran.stderr);
}

#[test]
fn a_signal_ends_the_run_with_130() {
    let env = TestEnv::new();
    env.write("a.jsonl", session("a"));
    for signal in ["-INT", "-TERM"] {
        let mut command = env.command(["inspect", "--json", "--jobs", "1", "a.jsonl", "-"]);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        // The first record is out, so that the signals are listened to and standard input is next.
        let mut line = String::new();
        let stdout = child.stdout.as_mut().expect("it is piped");
        BufReader::new(stdout).read_line(&mut line).expect("the first record");
        assert!(line.contains("\"a.jsonl\""), "{line}");
        let kill = std::process::Command::new("kill").args([signal, &child.id().to_string()]).status();
        assert!(kill.expect("kill starts").success());
        let stdin = child.stdin.take();
        let output = child.wait_with_output().expect("it ends");
        drop(stdin);
        assert_eq!(Ran::of(output).status, Some(130), "{signal}");
    }
}

#[test]
fn colours_follow_the_flag_and_no_color() {
    let env = TestEnv::new();
    env.write("a.jsonl", session("a"));
    let has_colour = |variables: &[(&str, &str)], flags: &[&str]| {
        let mut command = env.command(["inspect", "a.jsonl"]);
        command.args(flags).envs(variables.iter().copied());
        let ran = Ran::of(command.output().expect("it starts"));
        assert_eq!(ran.quiet_status(), Some(0));
        ran.stdout.contains('\u{1b}')
    };
    assert!(!has_colour(&[], &[]));
    assert!(has_colour(&[], &["--color", "always"]));
    assert!(has_colour(&[("CLICOLOR_FORCE", "1")], &[]));
    assert!(!has_colour(&[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")], &[]));
    assert!(!has_colour(&[("CLICOLOR_FORCE", "1")], &["--color", "never"]));
}

#[test]
fn quiet_leaves_errors_and_data() {
    let env = TestEnv::new();
    env.write_settings(r#"{"colour": 1}"#);
    env.write("a.jsonl", session("a"));
    let ran = env.run(["inspect", "a.jsonl", "missing.jsonl", "--quiet"]);
    assert!(ran.stdout.contains("a.jsonl"), "{}", ran.stdout);
    assert_eq!(ran.stderr.lines().next(), Some("error: missing.jsonl: no such file or folder"));
}

#[test]
fn the_program_starts_without_a_home_and_in_a_folder_that_is_gone() {
    let env = TestEnv::new();
    let session = env.write("a.jsonl", session("a"));
    env.write("gone/x", "");
    let script =
        format!("cd gone && rm -r ../gone && exec {} inspect {}", program().display(), session.display());
    let mut command = std::process::Command::new("sh");
    command.args(["-c", &script]).current_dir(env.work()).env_remove("HOME");
    let ran = Ran::of(command.output().expect("it starts"));
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
}

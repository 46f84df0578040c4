//! `settings`: values with their sources, warnings, errors.

use crate::support::{Ran, TestEnv};

#[test]
fn every_value_has_its_source() {
    let env = TestEnv::new();
    let file = env.write_settings(r#"{"compaction":{"reserveTokens":1000,"keepRecentTokens":2000}}"#);
    let mut command = env.command(["settings", "--json", "--tokenizer", "o200k_base"]);
    command.env("SESSTOOL_COMPACTION_KEEP_RECENT_TOKENS", "3000");
    let ran = Ran::of(command.output().expect("it starts"));
    assert_eq!(ran.status, Some(0));
    assert_eq!(ran.stderr, format!("settings file: {}\n", file.display()));
    let of = |name: &str| {
        let records = ran.json();
        let record = records.iter().find(|record| record["name"] == name).expect("a setting").clone();
        (record["value"].to_string(), record["source"].to_string(), record["setBy"].to_string())
    };
    let text = |a: &str, b: &str, c: &str| (a.to_owned(), format!("\"{b}\""), format!("\"{c}\""));
    assert_eq!(of("compaction.reserveTokens"), text("1000", "file", &file.display().to_string()));
    assert_eq!(
        of("compaction.keepRecentTokens"),
        text("3000", "variable", "SESSTOOL_COMPACTION_KEEP_RECENT_TOKENS")
    );
    assert_eq!(of("tokenizer"), text("\"o200k_base\"", "flag", "--tokenizer"));
    assert_eq!(of("retry.maxRetries"), ("3".to_owned(), "\"default\"".to_owned(), "null".to_owned()));
}

#[test]
fn the_text_is_a_table_of_what_was_asked_for() {
    let env = TestEnv::new();
    env.write_settings(r#"{"prune":{"protectedTools":[]}}"#);
    let ran = env.run(["settings", "prune", "-q"]);
    assert_eq!(ran.quiet_status(), Some(0));
    let rows: Vec<Vec<_>> =
        ran.stdout.lines().map(|line| line.split_whitespace().take(3).collect()).collect();
    let file = env.home().join(".config/sesstool/settings.json").display().to_string();
    assert_eq!(
        rows,
        [
            vec!["name", "value", "from"],
            vec!["prune.protectTokens", "40000", "default"],
            vec!["prune.minimumSavings", "20000", "default"],
            vec!["prune.protectedTools", "-", &file],
        ]
    );
    assert_eq!(env.run(["settings", "nonsense"]).status, Some(2));
}

#[test]
fn unknown_keys_are_warned_about_and_those_of_the_agents_are_not() {
    let env = TestEnv::new();
    let file =
        env.write_settings(r#"{"theme":"dark","compaction":{"handoffSaveToDisk":true,"resreveTokens":1}}"#);
    let ran = env.run(["settings", "tokenizer"]);
    assert_eq!(ran.status, Some(0));
    let file = file.display();
    assert_eq!(
        ran.stderr,
        format!(
            "warning: {file}: unknown key \"compaction.resreveTokens\" is ignored\nsettings file: {file}\n"
        )
    );
}

#[test]
fn a_bad_value_is_an_error_that_names_file_and_key() {
    let env = TestEnv::new();
    env.write("s.json", r#"{"retry":{"maxRetries":"often"}}"#);
    for command in ["settings", "inspect"] {
        let ran = env.run([command, "--settings", "s.json"]);
        assert_eq!((ran.status, &*ran.stdout), (Some(2), ""));
        assert!(
            ran.stderr.starts_with(
                "error: s.json: retry.maxRetries: expected a whole number, found \"often\"\nhint: "
            ),
            "{}",
            ran.stderr
        );
    }
    assert_eq!(env.run(["settings", "--settings", "missing.json"]).status, Some(2));
}

#[test]
fn the_working_directory_has_no_say() {
    let env = TestEnv::new();
    for name in
        ["settings.json", ".config/sesstool/settings.json", "sesstool/settings.json", ".sesstool.json"]
    {
        env.write(name, r#"{"compaction":{"reserveTokens":1}}"#);
    }
    let mut command = env.command(["settings", "compaction.reserveTokens", "-q"]);
    command.env("XDG_CONFIG_HOME", ".").env("HOME", ".");
    let ran = Ran::of(command.output().expect("it starts"));
    assert_eq!(ran.quiet_status(), Some(0));
    assert!(ran.stdout.contains("  16384  default  "), "{}", ran.stdout);
}

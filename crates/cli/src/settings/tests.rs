//! Precedence, sources, warnings and errors of settings.

use std::path::Path;

use super::*;
use crate::exit::Status;

struct Home(tempfile::TempDir);

impl Home {
    fn with(settings: &str) -> Home {
        let home = Home(tempfile::tempdir().expect("a temporary folder"));
        let file = home.file();
        std::fs::create_dir_all(file.parent().expect("a folder")).expect("made");
        #[expect(clippy::disallowed_methods, reason = "a test makes the file that is read")]
        std::fs::write(file, settings).expect("written");
        home
    }

    fn file(&self) -> PathBuf {
        self.0.path().join(".config/sesstool/settings.json")
    }

    fn resolve(
        &self,
        variables: &[(&str, &str)],
        flags: &[&dyn Flags],
    ) -> Result<(Settings, Vec<String>), CommandError> {
        let home = self.0.path().to_str().expect("UTF-8");
        let env = Env::of_pairs(Path::new("/"), variables.iter().copied().chain([("HOME", home)]));
        Settings::resolve(&env, None, &Globals::default(), flags)
    }

    #[track_caller]
    fn settings(&self, variables: &[(&str, &str)], flags: &[&dyn Flags]) -> Settings {
        let (settings, warnings) = self.resolve(variables, flags).expect("settings that resolve");
        assert_eq!(warnings, Vec::<String>::new());
        settings
    }
}

#[test]
fn flags_win_over_variables_those_over_the_file_that_over_defaults() {
    let home = Home::with(
        r#"{"compaction":{"reserveTokens":1000,"keepRecentTokens":2000.0,"thresholdPercent":80}}"#,
    );
    let flags = CompactionFlags { keep_recent_tokens: Some(7), ..CompactionFlags::default() };
    let variables =
        [("SESSTOOL_COMPACTION_KEEP_RECENT_TOKENS", "5"), ("SESSTOOL_COMPACTION_RESERVE_TOKENS", "6")];
    let settings = home.settings(&variables, &[&flags]);
    let source = |name: &str| settings.get(name).source.clone();
    assert_eq!(
        settings.compaction(),
        CompactionSettings {
            reserve_tokens: 6,
            keep_recent_tokens: 7,
            threshold_percent: Some(80.0),
            ..CompactionSettings::default()
        }
    );
    assert_eq!(source("compaction.keepRecentTokens"), Source::Flag("--keep-recent-tokens"));
    assert_eq!(
        source("compaction.reserveTokens"),
        Source::Variable("SESSTOOL_COMPACTION_RESERVE_TOKENS".into())
    );
    assert_eq!(source("compaction.thresholdPercent"), Source::File(home.file()));
    assert_eq!(source("compaction.enabled"), Source::Default);
}

#[test]
fn without_anything_the_defaults_of_the_libraries_hold() {
    let home = Home::with("{}");
    let settings = home.settings(&[], &[]);
    assert_eq!(settings.compaction(), CompactionSettings::default());
    assert_eq!(settings.branch_summary(), BranchSummarySettings::default());
    assert_eq!(settings.prune(), PruneSettings::default());
    assert_eq!(settings.retry(), RetrySettings::default());
    assert_eq!(settings.tokenizer(), Tokenizer::Units);
    assert_eq!(settings.summary_source(), SummarySource::Embedded);
    assert_eq!((settings.summary_tokens(), settings.concurrency()), (4000, 4));
    assert_eq!((settings.context_window(), settings.base_url()), (None, None));
    assert!(!settings.falls_back_to_embedded());
    assert!(HOOK_EVENTS.iter().all(|event| settings.hooks(event).is_empty()));
}

#[test]
fn keys_of_the_agents_pass_and_others_are_named() {
    let home = Home::with(
        r#"{"theme":"dark","statusLine":{"preset":"x"},"compaction":{"handoffSaveToDisk":true,"reserveToken":1},
            "retry":{"provider":{"timeoutMs":1}},"branchSummary":{"skipPrompt":true},"colour":1}"#,
    );
    let (_, warnings) = home.resolve(&[("SESSTOOL_COMPACT", "1")], &[]).expect("unknown keys are no errors");
    let file = home.file();
    assert_eq!(
        warnings,
        [
            format!("{}: unknown key \"compaction.reserveToken\" is ignored", file.display()),
            format!("{}: unknown key \"colour\" is ignored", file.display()),
            "SESSTOOL_COMPACT: no setting has this variable; it is ignored".to_owned(),
        ]
    );
}

#[track_caller]
fn check_wrong(settings: &str, expected: &str) {
    let home = Home::with(settings);
    let error = home.resolve(&[], &[]).expect_err("a wrong value");
    assert_eq!(error.message, format!("{}: {expected}", home.file().display()));
    assert_eq!(error.status(), Status::Usage);
}

#[test]
fn bad_values_name_file_and_key() {
    check_wrong(
        r#"{"compaction":{"reserveTokens":"many"}}"#,
        "compaction.reserveTokens: expected a whole number of at least 1, found \"many\"",
    );
    check_wrong(
        r#"{"compaction":{"keepRecentTokens":1.5}}"#,
        "compaction.keepRecentTokens: expected a whole number, found 1.5",
    );
    check_wrong(r#"{"retry":{"enabled":1}}"#, "retry.enabled: expected true or false, found 1");
    check_wrong(r#"{"compaction":true}"#, "compaction: expected an object, found true");
    check_wrong(
        r#"{"prune":{"protectedTools":["a",1]}}"#,
        "prune.protectedTools: expected a list of texts, found [\"a\",1]",
    );
    check_wrong(
        r#"{"tokenizer":"gpt2"}"#,
        "tokenizer: expected one of units, o200k_base, cl100k_base, found \"gpt2\"",
    );
    check_wrong("[]", "the settings are no JSON object");
    check_wrong("{", "no JSON: EOF while parsing an object at line 1 column 1");
}

#[test]
fn bad_variables_and_flags_are_named() {
    let home = Home::with("{}");
    let error = |variables: &[(&str, &str)], flags: &[&dyn Flags]| {
        home.resolve(variables, flags).expect_err("a wrong value").message
    };
    assert_eq!(
        error(&[("SESSTOOL_RETRY_MAX_RETRIES", "-1")], &[]),
        "SESSTOOL_RETRY_MAX_RETRIES: expected a whole number, found -1.0"
    );
    let flags = CompactionFlags { reserve_tokens: Some(0), ..CompactionFlags::default() };
    assert_eq!(error(&[], &[&flags]), "--reserve-tokens: expected a whole number of at least 1, found 0");
}

#[test]
fn thresholds_of_zero_and_less_are_unset() {
    let home = Home::with(r#"{"compaction":{"thresholdPercent":-1,"thresholdTokens":0}}"#);
    assert_eq!(home.settings(&[], &[]).compaction(), CompactionSettings::default());
    let flags = CompactionFlags { threshold_tokens: Some(-1), ..CompactionFlags::default() };
    let variables = [("SESSTOOL_COMPACTION_THRESHOLD_TOKENS", "9")];
    assert_eq!(home.settings(&variables, &[]).compaction().threshold_tokens, Some(9));
    assert_eq!(home.settings(&variables, &[&flags]).compaction().threshold_tokens, None);
}

#[test]
fn strategy_off_means_not_enabled_unless_someone_nearer_says_otherwise() {
    let home = Home::with(r#"{"compaction":{"strategy":"off","enabled":true}}"#);
    assert!(!home.settings(&[], &[]).compaction().enabled);
    assert!(home.settings(&[("SESSTOOL_COMPACTION_ENABLED", "yes")], &[]).compaction().enabled);
    let other = Home::with(r#"{"compaction":{"strategy":"handoff"}}"#);
    assert!(other.settings(&[], &[]).compaction().enabled);
}

#[test]
fn the_summarizer_named_nearest_to_the_user_is_taken() {
    let home = Home::with(
        r#"{"models":{"candidates":["anthropic/a","openai/b"]},"compaction":{"remoteEndpoint":"http://r"}}"#,
    );
    let source = |variables: &[(&str, &str)], flags: SummarizerFlags| {
        home.settings(variables, &[&flags]).summary_source()
    };
    let none = SummarizerFlags::default;
    assert_eq!(source(&[], none()), SummarySource::Remote("http://r".into()));
    assert_eq!(
        source(&[("SESSTOOL_COMPACTION_REMOTE_ENABLED", "0")], none()),
        SummarySource::Models(vec!["anthropic/a".into(), "openai/b".into()])
    );
    assert_eq!(source(&[("SESSTOOL_MODELS_COMMAND", "cat")], none()), SummarySource::Command("cat".into()));
    let model = SummarizerFlags { model: vec!["google/c".into()], ..none() };
    assert_eq!(
        source(&[("SESSTOOL_MODELS_COMMAND", "cat")], model),
        SummarySource::Models(vec!["google/c".into()])
    );
    let embedded = SummarizerFlags { summarizer: Some(flags::Embedded::Embedded), ..none() };
    assert_eq!(source(&[("SESSTOOL_MODELS_COMMAND", "cat")], embedded), SummarySource::Embedded);
    let remote = SummarizerFlags { remote_endpoint: Some("http://f".into()), ..none() };
    assert_eq!(
        source(&[("SESSTOOL_COMPACTION_REMOTE_ENABLED", "0")], remote),
        SummarySource::Remote("http://f".into())
    );
}

#[test]
fn hooks_are_texts_or_objects_and_flags_take_their_place() {
    let home = Home::with(
        r#"{"hooks":{"timeoutMs":5000,"session_compact":"one","session.compacting":["two",{"command":"three","timeoutMs":1}]}}"#,
    );
    let hook =
        |command: &str, ms| HookCommand { command: command.into(), timeout: Duration::from_millis(ms) };
    let settings = home.settings(&[], &[]);
    assert_eq!(settings.hooks("session_compact"), [hook("one", 5000)]);
    assert_eq!(settings.hooks("session.compacting"), [hook("two", 5000), hook("three", 1)]);
    let flags = HookFlags { hook: vec![("session_compact".into(), "four".into())] };
    assert_eq!(home.settings(&[], &[&flags]).hooks("session_compact"), [hook("four", 5000)]);
    let variables = [("SESSTOOL_HOOKS_SESSION_COMPACTING", "five, six")];
    assert_eq!(home.settings(&variables, &[]).hooks("session.compacting"), [hook("five, six", 5000)]);
}

#[test]
fn a_protected_tool_is_added_to_those_that_are_set() {
    let home = Home::with(r#"{"prune":{"protectedTools":["read"]}}"#);
    let flags = PruneFlags { protect_tool: vec!["bash".into(), "read".into()], ..PruneFlags::default() };
    assert_eq!(home.settings(&[], &[&flags]).prune().protected_tools, ["read", "bash"]);
    let variables = [("SESSTOOL_PRUNE_PROTECTED_TOOLS", "a, b,")];
    assert_eq!(home.settings(&variables, &[]).prune().protected_tools, ["a", "b"]);
}

#[test]
fn no_two_settings_share_a_variable_and_defaults_are_of_their_kind() {
    let mut variables: Vec<_> = TABLE.iter().map(Row::variable).collect();
    variables.sort();
    variables.dedup();
    assert_eq!(variables.len(), TABLE.len());
    for row in TABLE {
        assert_eq!(row.kind.check(&(row.default)()), Ok((row.default)()), "{}", row.name);
    }
}

#[test]
fn the_file_is_never_looked_for_by_a_relative_folder() {
    let env = |pairs: &[(&str, &str)]| Env::of_pairs(Path::new("/work"), pairs.iter().copied());
    assert_eq!(user_file(&env(&[("XDG_CONFIG_HOME", "conf"), ("HOME", ".")])), None);
    assert_eq!(
        user_file(&env(&[("XDG_CONFIG_HOME", "conf"), ("HOME", "/h")])),
        Some("/h/.config/sesstool/settings.json".into())
    );
    assert_eq!(
        user_file(&env(&[("XDG_CONFIG_HOME", "/c"), ("HOME", "/h")])),
        Some("/c/sesstool/settings.json".into())
    );
}

#[test]
fn a_file_that_was_asked_for_must_be_there() {
    let env = Env::of_pairs(Path::new("/"), [("HOME", "/nowhere")]);
    let error = Settings::resolve(&env, Some(Path::new("/nowhere/s.json")), &Globals::default(), &[]);
    assert_eq!(error.expect_err("it is not there").message, "/nowhere/s.json: no such file");
    let (settings, _) = Settings::resolve(&env, None, &Globals::default(), &[]).expect("defaults");
    assert_eq!(settings.file, Some(("/nowhere/.config/sesstool/settings.json".into(), false)));
}

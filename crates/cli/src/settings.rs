//! Flags, `SESSTOOL_*` variables, file and defaults → resolved settings; nothing is resolved later (spec 6.5).

use std::path::{Path, PathBuf};
use std::time::Duration;

use compaction_core::settings::{BranchSummarySettings, CompactionSettings};
use pruning::settings::PruneSettings;
use serde_json::Value;
use session_model::tokens::Tokenizer;
use summarizer::retry::RetrySettings;

use crate::args::Globals;
use crate::env::Env;
use crate::exit::{CommandError, ErrorKind};

mod agent_keys;
mod file;
mod flags;
mod table;
#[cfg(test)]
mod tests;

pub use flags::{BranchFlags, CompactionFlags, Flags, HookFlags, Override, PruneFlags, SummarizerFlags};
pub use table::{HOOK_EVENTS, Kind, Row, TABLE};

/// Every setting with its value and where that comes from.
#[derive(Clone, Debug)]
pub struct Settings {
    /// In the order of [`TABLE`].
    values: Vec<Resolved>,
    /// The file that was looked for, and whether it was there; none if no configuration folder is known.
    pub file: Option<(PathBuf, bool)>,
}

/// One setting, resolved.
#[derive(Clone, Debug, PartialEq)]
pub struct Resolved {
    /// What it is.
    pub row: &'static Row,
    /// Its value; null if it is not set and has no default.
    pub value: Value,
    /// Where the value comes from.
    pub source: Source,
}

/// Where a value comes from. Later ones win.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// Nobody set it.
    Default,
    /// The settings file.
    File(PathBuf),
    /// This environment variable.
    Variable(String),
    /// This flag.
    Flag(&'static str),
}

impl Source {
    /// The layer in machine-readable output.
    pub fn name(&self) -> &'static str {
        match self {
            Source::Default => "default",
            Source::File(_) => "file",
            Source::Variable(_) => "variable",
            Source::Flag(_) => "flag",
        }
    }

    fn layer(&self) -> u8 {
        match self {
            Source::Default => 0,
            Source::File(_) => 1,
            Source::Variable(_) => 2,
            Source::Flag(_) => 3,
        }
    }
}

impl std::fmt::Display for Source {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Source::Default => formatter.write_str("default"),
            Source::File(path) => write!(formatter, "{}", path.display()),
            Source::Variable(name) => formatter.write_str(name),
            Source::Flag(flag) => formatter.write_str(flag),
        }
    }
}

/// Who is to write the summaries (spec 5.3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SummarySource {
    /// The one that needs no model.
    Embedded,
    /// These models, `NAME/ID`, in this order.
    Models(Vec<String>),
    /// The service at this address.
    Remote(String),
    /// This shell command.
    Command(String),
}

/// A hook of one event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookCommand {
    /// For the shell.
    pub command: String,
    /// How long it may take.
    pub timeout: Duration,
}

impl Settings {
    /// Resolves all settings. `file` is `--settings`; without it the user's configuration folder is looked into, never
    /// the working directory. The second value holds warnings about keys and variables that nobody knows.
    ///
    /// # Errors
    /// A file that was asked for is not there, cannot be read or is no JSON object; a bad value, by file and key.
    pub fn resolve(
        env: &Env,
        file: Option<&Path>,
        globals: &Globals,
        flags: &[&dyn Flags],
    ) -> Result<(Settings, Vec<String>), CommandError> {
        let defaults =
            TABLE.iter().map(|row| Resolved { row, value: (row.default)(), source: Source::Default });
        let mut settings = Settings { values: defaults.collect(), file: None };
        let mut warnings = Vec::new();
        let path = file.map(Path::to_owned).or_else(|| user_file(env));
        if let Some(path) = path {
            let values = file::read(&path, file.is_some(), &mut warnings).map_err(as_usage)?;
            settings.file = Some((path.clone(), values.is_some()));
            for (at, value) in values.into_iter().flatten() {
                settings.values[at].value = value;
                settings.values[at].source = Source::File(path.clone());
            }
        }
        settings.take_variables(env, &mut warnings)?;
        settings.take_flags(globals)?;
        for flags in flags {
            settings.take_flags(*flags)?;
        }
        Ok((settings, warnings))
    }

    /// All settings, in the order of [`TABLE`].
    pub fn all(&self) -> &[Resolved] {
        &self.values
    }

    /// A setting by its name, e.g. `compaction.reserveTokens`.
    pub fn get(&self, name: &str) -> &Resolved {
        &self.values[table::position(name).expect("the name is a row of the table")]
    }

    /// Settings of compactions.
    pub fn compaction(&self) -> CompactionSettings {
        // "off" says the same as `enabled: false`; of two that disagree the one nearer to the user wins.
        let strategy = self.get("compaction.strategy");
        let enabled = self.get("compaction.enabled");
        let is_off = strategy.value == "off" && strategy.source.layer() >= enabled.source.layer();
        CompactionSettings {
            enabled: self.flag("compaction.enabled") && !is_off,
            reserve_tokens: self.number("compaction.reserveTokens"),
            keep_recent_tokens: self.number("compaction.keepRecentTokens"),
            auto_continue: self.flag("compaction.autoContinue"),
            threshold_percent: self.get("compaction.thresholdPercent").value.as_f64(),
            threshold_tokens: self.get("compaction.thresholdTokens").value.as_u64(),
            idle_threshold_tokens: self.number("compaction.idleThresholdTokens"),
        }
    }

    /// Settings of branch summaries.
    pub fn branch_summary(&self) -> BranchSummarySettings {
        BranchSummarySettings {
            enabled: self.flag("branchSummary.enabled"),
            reserve_tokens: self.number("branchSummary.reserveTokens"),
        }
    }

    /// Settings of pruning.
    pub fn prune(&self) -> PruneSettings {
        PruneSettings {
            protect_tokens: self.number("prune.protectTokens"),
            minimum_savings: self.number("prune.minimumSavings"),
            protected_tools: self.list("prune.protectedTools"),
        }
    }

    /// When a failed request is sent again.
    pub fn retry(&self) -> RetrySettings {
        RetrySettings {
            enabled: self.flag("retry.enabled"),
            max_retries: u32::try_from(self.number("retry.maxRetries")).unwrap_or(u32::MAX),
            base_delay: Duration::from_millis(self.number("retry.baseDelayMs")),
        }
    }

    /// How tokens are estimated.
    pub fn tokenizer(&self) -> Tokenizer {
        match self.get("tokenizer").value.as_str() {
            Some("o200k_base") => Tokenizer::O200kBase,
            Some("cl100k_base") => Tokenizer::Cl100kBase,
            _ => Tokenizer::Units,
        }
    }

    /// Who writes the summaries: of all ways that are named, the one that is named nearest to the user; at the same
    /// distance the embedded summarizer goes before a command, that before the remote endpoint, that before models.
    pub fn summary_source(&self) -> SummarySource {
        let named = |name| Some(self.get(name)).filter(|it| is_given(&it.value));
        let remote_enabled = self.get("compaction.remoteEnabled");
        let ways = [
            named("models.summarizer").map(|it| (it.source.layer(), SummarySource::Embedded)),
            named("models.command").map(|it| (it.source.layer(), SummarySource::Command(text(&it.value)))),
            named("compaction.remoteEndpoint")
                .filter(|it| {
                    remote_enabled.value != false || remote_enabled.source.layer() < it.source.layer()
                })
                .map(|it| (it.source.layer(), SummarySource::Remote(text(&it.value)))),
            named("models.candidates")
                .map(|it| (it.source.layer(), SummarySource::Models(self.list("models.candidates")))),
        ];
        // `max_by_key` takes the last of equals.
        let nearest = ways.into_iter().flatten().rev().max_by_key(|(layer, _)| *layer);
        nearest.map_or(SummarySource::Embedded, |(_, way)| way)
    }

    /// Another address for the models of `--model`.
    pub fn base_url(&self) -> Option<String> {
        self.get("models.baseUrl").value.as_str().map(str::to_owned)
    }

    /// The window of the model, in tokens, where it is given and need not be looked up.
    pub fn context_window(&self) -> Option<u64> {
        self.get("models.contextWindow").value.as_u64()
    }

    /// Whether the embedded summarizer takes over when every other way has failed.
    pub fn falls_back_to_embedded(&self) -> bool {
        self.get("models.fallback").value == "embedded"
    }

    /// The size that the embedded summarizer aims at, in tokens.
    pub fn summary_tokens(&self) -> u64 {
        self.number("models.summaryTokens")
    }

    /// Requests that may be under way at the same time.
    pub fn concurrency(&self) -> usize {
        usize::try_from(self.number("models.concurrency")).unwrap_or(usize::MAX)
    }

    /// A folder with prompts in place of the built-in ones; `~` is expanded.
    pub fn prompts_dir(&self, env: &Env) -> Option<PathBuf> {
        self.get("models.promptsDir").value.as_str().map(|folder| env.expand(Path::new(folder)))
    }

    /// The hooks of an event of [`HOOK_EVENTS`], in order.
    pub fn hooks(&self, event: &str) -> Vec<HookCommand> {
        let timeout = self.number("hooks.timeoutMs");
        let hooks = &self.get(&format!("hooks.{event}")).value;
        let command = |hook: &Value| HookCommand {
            command: text(hook.get("command").unwrap_or(hook)),
            timeout: Duration::from_millis(hook.get("timeoutMs").and_then(Value::as_u64).unwrap_or(timeout)),
        };
        hooks.as_array().into_iter().flatten().map(command).collect()
    }

    fn take_variables(&mut self, env: &Env, warnings: &mut Vec<String>) -> Result<(), CommandError> {
        for name in env.names_with(table::PREFIX) {
            let Some(value) = env.text(&name) else { continue };
            let Some(at) = TABLE.iter().position(|row| row.variable() == name) else {
                warnings.push(format!("{name}: no setting has this variable; it is ignored"));
                continue;
            };
            let parsed = TABLE[at].kind.parse(&value);
            self.values[at].value = parsed.map_err(|wrong| {
                CommandError::usage(format!("{name}: {wrong}")).hint("correct or unset the variable")
            })?;
            self.values[at].source = Source::Variable(name);
        }
        Ok(())
    }

    fn take_flags(&mut self, flags: &dyn Flags) -> Result<(), CommandError> {
        for Override { name, flag, mut value, adds } in flags.overrides() {
            let at = table::position(name).expect("flags name rows of the table");
            if let (true, Some(more), Some(set)) = (adds, value.as_array(), self.values[at].value.as_array())
            {
                let more = more.iter().filter(|item| !set.contains(item));
                value = set.iter().chain(more).cloned().collect();
            }
            let checked = TABLE[at].kind.check(&value);
            self.values[at].value = checked
                .map_err(|wrong| CommandError::usage(format!("{flag}: {wrong}")).hint("see --help"))?;
            self.values[at].source = Source::Flag(flag);
        }
        Ok(())
    }

    fn flag(&self, name: &str) -> bool {
        self.get(name).value == true
    }

    fn number(&self, name: &str) -> u64 {
        self.get(name).value.as_u64().expect("values are checked when they are taken")
    }

    fn list(&self, name: &str) -> Vec<String> {
        self.get(name).value.as_array().into_iter().flatten().map(text).collect()
    }
}

/// The settings file of the user: `$XDG_CONFIG_HOME/sesstool/settings.json`, else under `~/.config`. Relative folders
/// are not taken, since they would lead to the working directory.
pub fn user_file(env: &Env) -> Option<PathBuf> {
    let absolute = |path: PathBuf| Some(path).filter(|path| path.is_absolute());
    let config = env.get("XDG_CONFIG_HOME").map(PathBuf::from).and_then(absolute);
    let config = config.or_else(|| env.home().and_then(absolute).map(|home| home.join(".config")))?;
    Some(config.join("sesstool/settings.json"))
}

fn is_given(value: &Value) -> bool {
    match value {
        Value::String(text) => !text.is_empty() && text != "auto",
        Value::Array(items) => !items.is_empty(),
        _ => false,
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn as_usage(error: CommandError) -> CommandError {
    CommandError { kind: ErrorKind::Usage, ..error }
}

//! Flags that set settings, in groups that commands take as they need them.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use super::table::HOOK_EVENTS;
use crate::args::Globals;

/// A setting that a flag sets.
#[derive(Clone, Debug, PartialEq)]
pub struct Override {
    /// The setting.
    pub name: &'static str,
    /// The flag, for errors and as the value's source.
    pub flag: &'static str,
    /// Its value.
    pub value: Value,
    /// Whether it is a list that is added to what is set, instead of taking its place.
    pub adds: bool,
}

/// A group of flags that set settings.
pub trait Flags {
    /// The settings that the user set with these flags.
    fn overrides(&self) -> Vec<Override>;
}

/// How much is compacted, and when.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Compaction")]
pub struct CompactionFlags {
    /// Tokens left free for the answer; also sizes the summaries [default: 16384]
    #[arg(long, value_name = "N")]
    pub reserve_tokens: Option<u64>,
    /// Tokens of recent context that stay verbatim [default: 20000]
    #[arg(long, value_name = "N")]
    pub keep_recent_tokens: Option<u64>,
    /// Due when this percentage of the window is used
    #[arg(long, value_name = "PERCENT", allow_negative_numbers = true)]
    pub threshold_percent: Option<f64>,
    /// Due above this many tokens; goes before the percentage
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub threshold_tokens: Option<i64>,
    /// What --idle compacts [default: 200000]
    #[arg(long, value_name = "N")]
    pub idle_threshold_tokens: Option<u64>,
    /// Window of the model in tokens, where it is not known or other than known
    #[arg(long, value_name = "N")]
    pub context_window: Option<u64>,
}

/// What is pruned.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Pruning")]
pub struct PruneFlags {
    /// Tokens of the newest tool output that stay [default: 40000]
    #[arg(long, value_name = "N")]
    pub protect: Option<u64>,
    /// Prune only if it saves this many tokens [default: 20000]
    #[arg(long, value_name = "N")]
    pub min_savings: Option<u64>,
    /// Never blank results of this tool either, beside skill, read, or what the settings name
    #[arg(long, value_name = "NAME")]
    pub protect_tool: Vec<String>,
}

/// How branches are summarised.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Branches")]
pub struct BranchFlags {
    /// Tokens of the model's window that the request leaves free; half of it is the summary's limit [default: 16384]
    #[arg(long, value_name = "N")]
    pub reserve_tokens: Option<u64>,
    /// Window of the model in tokens, where it is not known or other than known
    #[arg(long, value_name = "N")]
    pub context_window: Option<u64>,
}

/// Who summarises.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Summaries")]
pub struct SummarizerFlags {
    /// Summarise with this model, e.g. anthropic/claude-sonnet-4-5; repeat it for ones to fall back to
    #[arg(short, long, value_name = "NAME/ID")]
    pub model: Vec<String>,
    /// Address of the model's service, for a name that is not known or another place; NAME=URL (several with blanks between) where models of several providers are asked: a key goes to no address but its own
    #[arg(long, value_name = "URL")]
    pub base_url: Option<String>,
    /// Use this summarizer whatever else is set
    #[arg(long, value_name = "NAME", conflicts_with_all = ["model", "summarizer_command", "remote_endpoint"])]
    pub summarizer: Option<Embedded>,
    /// Summarise with a command: JSON with systemPrompt and prompt in, JSON with summary out
    #[arg(long, value_name = "CMD", conflicts_with_all = ["model", "remote_endpoint"])]
    pub summarizer_command: Option<String>,
    /// Summarise with a service that takes and gives the same JSON
    #[arg(long, value_name = "URL", conflicts_with = "model")]
    pub remote_endpoint: Option<String>,
    /// Who summarises when all others have failed
    #[arg(long, value_name = "NAME")]
    pub fallback: Option<Fallback>,
    /// Size that the embedded summarizer aims at, in tokens [default: 4000]
    #[arg(long, value_name = "N")]
    pub summary_tokens: Option<u64>,
    /// Requests at the same time [default: 4]
    #[arg(long, value_name = "N")]
    pub concurrency: Option<u64>,
    /// Folder with prompts of your own; what it lacks is taken from the built-in ones
    #[arg(long, value_name = "DIR")]
    pub prompts: Option<PathBuf>,
}

/// Values of `--summarizer`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Embedded {
    /// The built-in one: no model, no network, no key.
    Embedded,
}

/// Values of `--fallback`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Fallback {
    /// The failure stands.
    None,
    /// The built-in one: no model, no network, no key.
    Embedded,
}

/// Commands that are asked and told.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Hooks")]
pub struct HookFlags {
    /// Run a command at an event, e.g. session_before_compact=./check.sh; in place of those of the settings
    #[arg(long, value_name = "EVENT=CMD", value_parser = hook)]
    pub hook: Vec<(String, String)>,
}

impl Flags for Globals {
    fn overrides(&self) -> Vec<Override> {
        let mut set = Set::default();
        set.some("tokenizer", "--tokenizer", self.tokenizer.map(|name| name.wire()));
        set.0
    }
}

impl Flags for CompactionFlags {
    fn overrides(&self) -> Vec<Override> {
        let mut set = Set::default();
        set.some("compaction.reserveTokens", "--reserve-tokens", self.reserve_tokens);
        set.some("compaction.keepRecentTokens", "--keep-recent-tokens", self.keep_recent_tokens);
        set.some("compaction.thresholdPercent", "--threshold-percent", self.threshold_percent);
        set.some("compaction.thresholdTokens", "--threshold-tokens", self.threshold_tokens);
        set.some("compaction.idleThresholdTokens", "--idle-threshold-tokens", self.idle_threshold_tokens);
        set.some("models.contextWindow", "--context-window", self.context_window);
        set.0
    }
}

impl Flags for BranchFlags {
    fn overrides(&self) -> Vec<Override> {
        let mut set = Set::default();
        set.some("branchSummary.reserveTokens", "--reserve-tokens", self.reserve_tokens);
        set.some("models.contextWindow", "--context-window", self.context_window);
        set.0
    }
}

impl Flags for PruneFlags {
    fn overrides(&self) -> Vec<Override> {
        let mut set = Set::default();
        set.some("prune.protectTokens", "--protect", self.protect);
        set.some("prune.minimumSavings", "--min-savings", self.min_savings);
        set.list("prune.protectedTools", "--protect-tool", &self.protect_tool);
        set.0.iter_mut().filter(|it| it.name == "prune.protectedTools").for_each(|it| it.adds = true);
        set.0
    }
}

impl Flags for SummarizerFlags {
    fn overrides(&self) -> Vec<Override> {
        let mut set = Set::default();
        set.list("models.candidates", "--model", &self.model);
        set.some("models.baseUrl", "--base-url", self.base_url.as_deref());
        set.some("models.summarizer", "--summarizer", self.summarizer.map(|_| "embedded"));
        set.some("models.command", "--summarizer-command", self.summarizer_command.as_deref());
        set.some("compaction.remoteEndpoint", "--remote-endpoint", self.remote_endpoint.as_deref());
        let fallback = self.fallback.map(|fallback| match fallback {
            Fallback::None => "none",
            Fallback::Embedded => "embedded",
        });
        set.some("models.fallback", "--fallback", fallback);
        set.some("models.summaryTokens", "--summary-tokens", self.summary_tokens);
        set.some("models.concurrency", "--concurrency", self.concurrency);
        set.some(
            "models.promptsDir",
            "--prompts",
            self.prompts.as_deref().map(|path| path.to_string_lossy()),
        );
        set.0
    }
}

impl Flags for HookFlags {
    fn overrides(&self) -> Vec<Override> {
        let mut set = Set::default();
        for (event, name) in HOOK_EVENTS.iter().zip(HOOK_SETTINGS) {
            let commands = self.hook.iter().filter(|(of, _)| of == event).map(|(_, command)| command.clone());
            set.list(name, "--hook", &commands.collect::<Vec<_>>());
        }
        set.0
    }
}

/// The settings of [`HOOK_EVENTS`], in the same order.
const HOOK_SETTINGS: [&str; 5] = [
    "hooks.session_before_compact",
    "hooks.session.compacting",
    "hooks.session_compact",
    "hooks.session_before_tree",
    "hooks.session_tree",
];

#[derive(Default)]
struct Set(Vec<Override>);

impl Set {
    fn some(&mut self, name: &'static str, flag: &'static str, value: Option<impl serde::Serialize>) {
        if let Some(value) = value {
            self.0.push(Override { name, flag, value: json!(value), adds: false });
        }
    }

    fn list(&mut self, name: &'static str, flag: &'static str, values: &[String]) {
        if !values.is_empty() {
            self.0.push(Override { name, flag, value: json!(values), adds: false });
        }
    }
}

fn hook(text: &str) -> Result<(String, String), String> {
    let (event, command) = text.split_once('=').ok_or("expected EVENT=CMD")?;
    if !HOOK_EVENTS.contains(&event) {
        return Err(format!("no event {event:?}; there are {}", HOOK_EVENTS.join(", ")));
    }
    if command.trim().is_empty() {
        return Err("the command is empty".to_owned());
    }
    Ok((event.to_owned(), command.to_owned()))
}

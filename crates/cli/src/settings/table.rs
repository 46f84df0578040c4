//! The one table of settings: name, kind, default, meaning. A new setting is one row here.

use compaction_core::settings::{BranchSummarySettings, CompactionSettings};
use pruning::settings::PruneSettings;
use serde_json::{Value, json};
use summarizer::retry::RetrySettings;

/// What every variable's name begins with.
pub(super) const PREFIX: &str = "SESSTOOL_";

/// Events that hooks can be set for (spec 6.3).
pub const HOOK_EVENTS: [&str; 5] = [
    "session_before_compact",
    "session.compacting",
    "session_compact",
    "session_before_tree",
    "session_tree",
];

/// A setting.
#[derive(Debug)]
pub struct Row {
    /// Its place in the file, e.g. `compaction.reserveTokens`. What follows the first point is one key.
    pub name: &'static str,
    /// What it can be.
    pub kind: Kind,
    /// Its value if nobody sets it; null for none.
    pub default: fn() -> Value,
    /// What it does, in a few words.
    pub meaning: &'static str,
}

impl PartialEq for Row {
    fn eq(&self, other: &Row) -> bool {
        self.name == other.name
    }
}

impl Row {
    /// The section and the key within it; settings outside sections have no section.
    pub fn section_and_key(&self) -> (Option<&'static str>, &'static str) {
        match self.name.split_once('.') {
            Some((section, key)) => (Some(section), key),
            None => (None, self.name),
        }
    }

    /// Its environment variable: `SESSTOOL_` and the name in capitals, words parted by `_`.
    pub fn variable(&self) -> String {
        let mut variable = PREFIX.to_owned();
        for character in self.name.chars() {
            if character.is_ascii_uppercase() {
                variable.push('_');
            }
            variable.push(if character == '.' { '_' } else { character.to_ascii_uppercase() });
        }
        variable
    }
}

/// What a setting can be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// true or false.
    Flag,
    /// A whole number of at least this.
    Count(u64),
    /// A whole number; 0 and less mean unset.
    OptionalCount,
    /// A number; 0 and less mean unset.
    OptionalNumber,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// Any text; empty means unset.
    Text,
    /// Texts; in a variable parted by commas.
    List,
    /// Commands: a text, or a list of texts and of objects with `command` and `timeoutMs`.
    Hooks,
}

/// The largest whole number that JSON's readers agree on.
const MOST: f64 = 9_007_199_254_740_991.0;

impl Kind {
    /// A value of this kind in its one form, from a file or a flag.
    ///
    /// # Errors
    /// What was expected and what was found, in words.
    pub fn check(self, value: &Value) -> Result<Value, String> {
        let wrong = || Err(format!("expected {}, found {}", self.words(), short(value)));
        Ok(match (self, value) {
            (Kind::OptionalCount | Kind::OptionalNumber | Kind::Text, Value::Null) => Value::Null,
            (Kind::Flag, Value::Bool(_)) => value.clone(),
            (Kind::Count(least), Value::Number(_)) => match whole(value) {
                Some(number) if number >= least => json!(number),
                _ => return wrong(),
            },
            (Kind::OptionalCount | Kind::OptionalNumber, Value::Number(number))
                if number.as_f64().is_some_and(|number| number <= 0.0) =>
            {
                Value::Null
            }
            (Kind::OptionalCount, Value::Number(_)) => match whole(value) {
                Some(number) => json!(number),
                None => return wrong(),
            },
            (Kind::OptionalNumber, Value::Number(_)) => value.clone(),
            (Kind::Choice(words), Value::String(text)) if words.contains(&&**text) => value.clone(),
            (Kind::Text, Value::String(text)) if text.is_empty() => Value::Null,
            (Kind::Text, Value::String(_)) => value.clone(),
            (Kind::List, Value::Array(items)) if items.iter().all(Value::is_string) => value.clone(),
            (Kind::Hooks, Value::String(_)) => json!([value]),
            (Kind::Hooks, Value::Array(hooks)) if hooks.iter().all(is_hook) => value.clone(),
            _ => return wrong(),
        })
    }

    /// A value of this kind from the text of a variable.
    ///
    /// # Errors
    /// As [`Kind::check`].
    pub fn parse(self, text: &str) -> Result<Value, String> {
        let trimmed = text.trim();
        let value = match self {
            Kind::Flag => match trimmed.to_ascii_lowercase().as_str() {
                "1" | "true" | "yes" | "on" => json!(true),
                "0" | "false" | "no" | "off" => json!(false),
                _ => json!(text),
            },
            Kind::Count(_) | Kind::OptionalCount | Kind::OptionalNumber => match trimmed.parse::<u64>() {
                Ok(number) => json!(number),
                Err(_) => trimmed.parse::<f64>().map_or(json!(text), |number| json!(number)),
            },
            Kind::Choice(_) | Kind::Text => json!(trimmed),
            Kind::List => {
                let parts = trimmed.split(',').map(str::trim).filter(|part| !part.is_empty());
                Value::Array(parts.map(Value::from).collect())
            }
            Kind::Hooks => json!([trimmed]),
        };
        self.check(&value)
    }

    /// In words, for errors and documentation.
    pub fn words(self) -> String {
        match self {
            Kind::Flag => "true or false".to_owned(),
            Kind::Count(0) | Kind::OptionalCount => "a whole number".to_owned(),
            Kind::Count(least) => format!("a whole number of at least {least}"),
            Kind::OptionalNumber => "a number".to_owned(),
            Kind::Choice(words) => format!("one of {}", words.join(", ")),
            Kind::Text => "a text".to_owned(),
            Kind::List => "a list of texts".to_owned(),
            Kind::Hooks => "a command or a list of commands".to_owned(),
        }
    }
}

/// The row of this name.
pub(super) fn position(name: &str) -> Option<usize> {
    TABLE.iter().position(|row| row.name == name)
}

fn whole(value: &Value) -> Option<u64> {
    value.as_u64().filter(|number| *number as f64 <= MOST).or_else(|| {
        let number = value.as_f64()?;
        (number.fract() == 0.0 && (0.0..=MOST).contains(&number)).then_some(number as u64)
    })
}

fn is_hook(hook: &Value) -> bool {
    let timeout = hook.get("timeoutMs");
    hook.is_string()
        || hook.get("command").is_some_and(Value::is_string)
            && timeout.is_none_or(|timeout| whole(timeout).is_some())
}

/// A value as an error shows it: whole if it is short.
fn short(value: &Value) -> String {
    let json = value.to_string();
    if json.chars().count() <= 60 {
        json
    } else {
        format!("{}…", json.chars().take(60).collect::<String>())
    }
}

macro_rules! table {
    ($($name:literal $kind:expr, $default:expr, $meaning:literal;)*) => {
        /// Every setting.
        pub const TABLE: &[Row] =
            &[$(Row { name: $name, kind: $kind, default: || json!($default), meaning: $meaning },)*];
    };
}

fn compaction() -> CompactionSettings {
    CompactionSettings::default()
}

table! {
    "compaction.enabled" Kind::Flag, compaction().enabled, "compact automatically at all";
    "compaction.strategy" Kind::Text, Value::Null, "\"off\" means the same as enabled: false";
    "compaction.reserveTokens" Kind::Count(1), compaction().reserve_tokens,
        "tokens left free for the answer; also sizes the summaries";
    "compaction.keepRecentTokens" Kind::Count(0), compaction().keep_recent_tokens,
        "tokens of recent context that stay verbatim";
    "compaction.autoContinue" Kind::Flag, compaction().auto_continue,
        "ask the agent to go on after an automatic compaction";
    "compaction.thresholdPercent" Kind::OptionalNumber, compaction().threshold_percent,
        "compact when this percentage of the window is used";
    "compaction.thresholdTokens" Kind::OptionalCount, compaction().threshold_tokens,
        "compact above this many tokens; goes before the percentage";
    "compaction.idleThresholdTokens" Kind::Count(0), compaction().idle_threshold_tokens,
        "what compact --idle compacts";
    "compaction.remoteEnabled" Kind::Flag, true, "use the remote endpoint, if there is one";
    "compaction.remoteEndpoint" Kind::Text, Value::Null, "address of a service that summarises";
    "branchSummary.enabled" Kind::Flag, BranchSummarySettings::default().enabled,
        "summarise a branch that is left without being asked";
    "branchSummary.reserveTokens" Kind::Count(1), BranchSummarySettings::default().reserve_tokens,
        "tokens of the window that the request leaves free";
    "retry.enabled" Kind::Flag, RetrySettings::default().enabled, "send failed requests again";
    "retry.maxRetries" Kind::Count(0), RetrySettings::default().max_retries, "how often, after the first time";
    "retry.baseDelayMs" Kind::Count(0), RetrySettings::default().base_delay.as_millis() as u64,
        "wait before the first; each further one waits twice as long";
    "prune.protectTokens" Kind::Count(0), PruneSettings::default().protect_tokens,
        "tokens of the newest tool output that stay";
    "prune.minimumSavings" Kind::Count(0), PruneSettings::default().minimum_savings,
        "prune only if it saves this many tokens";
    "prune.protectedTools" Kind::List, PruneSettings::default().protected_tools,
        "tools whose results are never blanked";
    "models.candidates" Kind::List, Value::Array(Vec::new()), "models that summarise, NAME/ID, in order";
    "models.baseUrl" Kind::Text, Value::Null, "address of the first of them and of names that are not known";
    "models.contextWindow" Kind::OptionalCount, Value::Null, "window of the model, in tokens";
    "models.summarizer" Kind::Choice(&["auto", "embedded"]), "auto", "\"embedded\" uses no model whatever is set";
    "models.command" Kind::Text, Value::Null, "command that summarises";
    "models.fallback" Kind::Choice(&["none", "embedded"]), "none", "who summarises when all others have failed";
    "models.summaryTokens" Kind::Count(1), 4000, "size that the embedded summarizer aims at";
    "models.concurrency" Kind::Count(1), 4, "requests at the same time";
    "models.promptsDir" Kind::Text, Value::Null, "folder with prompts of your own";
    "hooks.session_before_compact" Kind::Hooks, Value::Array(Vec::new()), "commands that may cancel or give a compaction";
    "hooks.session.compacting" Kind::Hooks, Value::Array(Vec::new()), "commands that may change the request";
    "hooks.session_compact" Kind::Hooks, Value::Array(Vec::new()), "commands that are told of a compaction";
    "hooks.session_before_tree" Kind::Hooks, Value::Array(Vec::new()), "commands that may cancel leaving a branch";
    "hooks.session_tree" Kind::Hooks, Value::Array(Vec::new()), "commands that are told of a branch that was left";
    "hooks.timeoutMs" Kind::Count(1), 60_000, "how long a hook may take";
    "tokenizer" Kind::Choice(&["units", "o200k_base", "cl100k_base"]), "units", "how tokens are estimated";
}

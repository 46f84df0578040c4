//! Commands that are asked before something is written and told of it after (spec 6.3).

use std::path::Path;

use session_model::value::{Object, Value};
use summarizer::cancel::Cancel;
use summarizer::provider::process::{self, RunError};

use crate::exit::CommandError;
use crate::settings::{HookCommand, Settings};

/// What happens that hooks can be asked about or told of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A compaction is about to be made.
    BeforeCompact,
    /// Its requests are about to be made.
    Compacting,
    /// A compaction was written.
    Compact,
    /// A branch is about to be left.
    BeforeTree,
    /// A branch was left.
    Tree,
}

impl Event {
    /// The name in settings, flags and in `type`.
    pub fn name(self) -> &'static str {
        match self {
            Event::BeforeCompact => "session_before_compact",
            Event::Compacting => "session.compacting",
            Event::Compact => "session_compact",
            Event::BeforeTree => "session_before_tree",
            Event::Tree => "session_tree",
        }
    }
}

/// The hooks of a run, for one session.
#[derive(Clone, Copy, Debug)]
pub struct Hooks<'a> {
    /// Where the commands are.
    pub settings: &'a Settings,
    /// The session.
    pub file: &'a Path,
    /// Stops a hook that runs.
    pub cancel: &'a Cancel,
}

/// What hooks say to something that is about to happen.
#[derive(Clone, Debug, PartialEq)]
pub enum Opinion {
    /// None has an opinion.
    None,
    /// It must not happen.
    Cancel,
    /// The last answer.
    Answer(Value<'static>),
}

impl Hooks<'_> {
    /// Whether anything would be run; what a hook is given need not be made otherwise.
    pub fn has(&self, event: Event) -> bool {
        !self.settings.hooks(event.name()).is_empty()
    }

    /// Asks the hooks of an event in their order. The last answer counts; a cancel ends the chain.
    ///
    /// # Errors
    /// A hook fails, takes too long, or answers something that is no JSON object.
    pub fn ask(&self, event: Event, given: Object<'static>) -> Result<Opinion, CommandError> {
        let input = self.input(event, given);
        let mut opinion = Opinion::None;
        for hook in self.settings.hooks(event.name()) {
            let Some(answer) = self.run(event, &hook, &input)? else { continue };
            if answer.get("cancel").and_then(Value::as_bool) == Some(true) {
                return Ok(Opinion::Cancel);
            }
            opinion = Opinion::Answer(answer);
        }
        Ok(opinion)
    }

    /// Tells the hooks of an event what has happened. What goes wrong comes back as warnings: it cannot be taken back by them.
    pub fn tell(&self, event: Event, given: Object<'static>) -> Vec<String> {
        let input = self.input(event, given);
        let hooks = self.settings.hooks(event.name());
        hooks
            .iter()
            .filter_map(|hook| self.run(event, hook, &input).err())
            .map(|error| format!("{}; what was written stays", error.message))
            .collect()
    }

    fn input(&self, event: Event, mut given: Object<'static>) -> String {
        given.set("type", event.name());
        given.set("sessionFile", self.file.to_string_lossy().into_owned());
        let mut input = Value::Object(given).to_json();
        input.push('\n');
        input
    }

    fn run(
        &self,
        event: Event,
        hook: &HookCommand,
        input: &str,
    ) -> Result<Option<Value<'static>>, CommandError> {
        let failed = |reason: String| {
            CommandError::in_file(self.file, format!("hook {:?} of {}: {reason}", hook.command, event.name()))
                .hint("correct the hook, or run without it")
        };
        let output = match process::run(&hook.command, input.as_bytes(), hook.timeout, self.cancel) {
            Ok(output) => output,
            Err(RunError::Cancelled) => return Err(CommandError::interrupted()),
            Err(error) => return Err(failed(error.to_string())),
        };
        if output.code != Some(0) {
            let how = output.code.map_or_else(
                || "was ended by a signal".to_owned(),
                |code| format!("ended with exit status {code}"),
            );
            let said = output.stderr.trim().lines().last().map_or(String::new(), |line| format!(": {line}"));
            return Err(failed(format!("{how}{said}")));
        }
        let text = String::from_utf8_lossy(&output.stdout);
        let text = text.trim();
        if text.is_empty() {
            return Ok(None);
        }
        let value = Value::parse(text)
            .map_err(|error| failed(format!("its answer is no JSON, at byte {}", error.at)))?
            .into_owned();
        if value.as_object().is_none() {
            return Err(failed("its answer is no JSON object".to_owned()));
        }
        Ok(Some(value))
    }
}

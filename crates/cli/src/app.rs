//! What every command gets: the environment, the global flags, the printer, the switch that a signal turns.

use summarizer::cancel::Cancel;

use crate::args::Globals;
use crate::env::Env;
use crate::exit::CommandError;
use crate::printer::Printer;
use crate::session_file::ReadOptions;
use crate::settings::{Flags, Settings};

/// The surroundings of a run.
#[derive(Debug)]
pub struct App {
    /// Environment variables, home and working directory.
    pub env: Env,
    /// What the user typed that concerns every command.
    pub globals: Globals,
    /// Standard output and standard error.
    pub printer: Printer,
    /// Turned by Ctrl-C and SIGTERM once [`crate::signals::listen`] was called.
    pub cancel: Cancel,
}

impl App {
    /// The surroundings of this process.
    pub fn new(globals: Globals) -> App {
        let env = Env::of_process();
        let printer = Printer::new(&globals);
        App { env, globals, printer, cancel: Cancel::new() }
    }

    /// Resolves the settings of a command: defaults, file, variables, then `flags`. Unknown keys are warned about.
    ///
    /// # Errors
    /// A settings file that cannot be read, or a bad value anywhere.
    pub fn settings(&self, flags: &[&dyn Flags]) -> Result<Settings, CommandError> {
        let (settings, warnings) =
            Settings::resolve(&self.env, self.globals.settings.as_deref(), &self.globals, flags)?;
        for warning in warnings {
            self.printer.warn(&warning);
        }
        Ok(settings)
    }

    /// How sessions are read, by these settings and the global flags.
    pub fn read_options(&self, settings: &Settings) -> ReadOptions {
        ReadOptions { tokenizer: settings.tokenizer(), dialect: self.globals.dialect.map(Into::into) }
    }
}

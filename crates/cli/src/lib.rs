//! The sesstool command: everything that touches the machine around the libraries that know what a session says.
//!
//! ```text
//! args ─ discover ─ batch ─ commands/NAME ─ report ─ printer
//!  typed   files    workers   one file        record   stdout, stderr
//! ```

use std::ffi::OsString;

use clap::{CommandFactory, FromArgMatches};

pub mod agents;
pub mod app;
pub mod args;
pub mod base_urls;
pub mod batch;
pub mod commands;
pub mod discover;
pub mod disk;
pub mod env;
pub mod events;
pub mod exit;
pub mod figures;
pub mod fold_estimate;
pub mod hooks;
pub mod leaf;
pub mod model_window;
pub mod panics;
pub mod printer;
pub mod progress_words;
pub mod prompts;
pub mod prune_bytes;
pub mod report;
pub mod session_file;
pub mod settings;
pub mod signals;
pub mod stamp;
pub mod summaries;
pub mod table;
pub mod write;
pub mod written;

use app::App;
use args::Cli;
use exit::{CommandError, Status};

/// The command line as clap knows it, for documentation.
pub fn command() -> clap::Command {
    Cli::command()
}

/// Runs the command line `args`, the program's name first, and says how it ended. Prints, never panics.
pub fn run(args: impl IntoIterator<Item = OsString>) -> Status {
    panics::install();
    let cli = match Cli::command().try_get_matches_from(args) {
        Ok(matches) => Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit()),
        Err(error) => {
            // A reader that is gone does not want the help text either.
            let _ = error.print();
            return if error.use_stderr() { Status::Usage } else { Status::Done };
        }
    };
    let (globals, command) = (cli.globals, cli.command);
    let app = App::new(globals);
    let status = match panics::catch(|| command.run(&app)) {
        Ok(status) => status,
        Err(error) => {
            app.printer.error(&error);
            error.status()
        }
    };
    if app.cancel.is_cancelled() {
        app.printer.error(&CommandError::interrupted());
        return Status::Interrupted;
    }
    status
}

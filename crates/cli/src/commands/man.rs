//! `sesstool man`: manual pages.

use clap::Args;
use clap_mangen::Man;

use crate::app::App;
use crate::exit::{CommandError, Status};

/// Print a manual page
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sesstool man | man -l -
  sesstool man compact > ~/.local/share/man/man1/sesstool-compact.1")]
pub struct ManArgs {
    /// The page of this subcommand, instead of the one of sesstool
    pub command: Option<String>,
}

/// Runs the command.
///
/// # Errors
/// There is no such subcommand, or standard output cannot be written.
pub fn run(app: &App, args: &ManArgs) -> Result<Status, CommandError> {
    let mut root = crate::command();
    // Only a built command knows the global flags of its subcommands.
    root.build();
    let command = match &args.command {
        None => root,
        Some(name) => match root.find_subcommand(name) {
            Some(found) => found.clone(),
            None => return Err(unknown(name)),
        },
    };
    let mut page = Vec::new();
    Man::new(command).render(&mut page).map_err(|error| CommandError::output(&error))?;
    app.printer.data(|out| out.write_all(&page))?;
    Ok(Status::Done)
}

/// An error that names the subcommands that there are.
pub(super) fn unknown(name: &str) -> CommandError {
    let root = crate::command();
    let names: Vec<_> = root.get_subcommands().map(clap::Command::get_name).collect();
    CommandError::usage(format!("no subcommand {name:?}")).hint(format!("there are {}", names.join(", ")))
}

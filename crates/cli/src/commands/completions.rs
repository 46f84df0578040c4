//! `sesstool completions`: a script for the shell.

use clap::Args;
use clap_complete::Shell;

use crate::app::App;
use crate::exit::{CommandError, Status};

/// Print a completion script for a shell
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sesstool completions bash > ~/.local/share/bash-completion/completions/sesstool
  sesstool completions zsh > ~/.zfunc/_sesstool
  sesstool completions fish > ~/.config/fish/completions/sesstool.fish")]
pub struct CompletionsArgs {
    /// The shell
    pub shell: Shell,
}

/// Runs the command.
///
/// # Errors
/// Standard output cannot be written.
pub fn run(app: &App, args: &CompletionsArgs) -> Result<Status, CommandError> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut crate::command(), "sesstool", &mut script);
    app.printer.data(|out| out.write_all(&script))?;
    Ok(Status::Done)
}

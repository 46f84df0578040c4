//! `sesstool schema`: what `--json` prints, as a JSON schema.

use clap::Args;

use crate::app::App;
use crate::exit::{CommandError, Status};

/// Print the JSON schema of what a command prints with --json
#[derive(Debug, Args)]
#[command(after_help = "Each line that the command prints is one object of the schema.

Examples:
  sesstool schema inspect
  sesstool schema                the schemas of all commands, by name")]
pub struct SchemaArgs {
    /// The command; without it, all
    pub command: Option<String>,
}

/// Runs the command.
///
/// # Errors
/// The command has no `--json`, or standard output cannot be written.
pub fn run(app: &App, args: &SchemaArgs) -> Result<Status, CommandError> {
    let mut schemas = super::schemas();
    let value = match &args.command {
        None => schemas.into_iter().map(|(name, schema)| (name.to_owned(), schema.to_value())).collect(),
        Some(name) => match schemas.iter().position(|(known, _)| known == name) {
            Some(at) => schemas.swap_remove(at).1.to_value(),
            None => {
                let names: Vec<_> = schemas.iter().map(|(name, _)| *name).collect();
                return Err(CommandError::usage(format!("{name:?} has no schema"))
                    .hint(format!("there are {}", names.join(", "))));
            }
        },
    };
    app.printer.data(|out| {
        serde_json::to_writer_pretty(&mut *out, &value)?;
        out.write_all(b"\n")
    })?;
    Ok(Status::Done)
}

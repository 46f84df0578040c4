//! The subcommands: one enum, one match.

use clap::Subcommand;
use schemars::{Schema, schema_for};

use crate::app::App;
use crate::exit::{CommandError, Status};
use crate::report::Record;

pub mod completions;
pub mod inspect;
pub mod man;
pub mod models;
pub mod schema;
pub mod settings;
pub mod undo;

/// What sesstool can do.
#[derive(Debug, Subcommand)]
#[expect(missing_docs, reason = "the documentation of its arguments is that of a variant, and its help text")]
pub enum Command {
    Inspect(inspect::InspectArgs),
    Undo(undo::UndoArgs),
    Settings(settings::SettingsArgs),
    Models(models::ModelsArgs),
    Schema(schema::SchemaArgs),
    Completions(completions::CompletionsArgs),
    Man(man::ManArgs),
}

impl Command {
    /// Runs the command.
    ///
    /// # Errors
    /// What ends the whole run; the failure of one file among several does not.
    pub fn run(self, app: &App) -> Result<Status, CommandError> {
        match self {
            Command::Inspect(args) => inspect::run(app, &args),
            Command::Undo(args) => undo::run(app, &args),
            Command::Settings(args) => settings::run(app, &args),
            Command::Models(args) => models::run(app, &args),
            Command::Schema(args) => schema::run(app, &args),
            Command::Completions(args) => completions::run(app, &args),
            Command::Man(args) => man::run(app, &args),
        }
    }
}

/// The schema of one line of `--json`, by command.
pub(crate) fn schemas() -> Vec<(&'static str, Schema)> {
    vec![
        ("inspect", schema_for!(Record<inspect::Inspection>)),
        ("models", schema_for!(models::ModelRecord)),
        ("settings", schema_for!(settings::SettingRecord)),
        ("undo", schema_for!(Record<undo::Undo>)),
    ]
}

//! The subcommands: one enum, one match.

use clap::Subcommand;
use schemars::{Schema, schema_for};

use crate::app::App;
use crate::exit::{CommandError, Status};
use crate::report::Record;

pub mod branch;
pub mod check;
pub mod compact;
pub mod completions;
pub mod context;
pub mod doctor;
pub mod inspect;
pub mod man;
pub mod models;
pub mod prompt;
pub mod prune;
pub mod schema;
pub mod settings;
pub mod undo;

/// What sesstool can do.
#[derive(Debug, Subcommand)]
#[expect(missing_docs, reason = "the documentation of its arguments is that of a variant, and its help text")]
pub enum Command {
    Compact(compact::CompactArgs),
    Prune(prune::PruneArgs),
    Context(context::ContextArgs),
    Inspect(inspect::InspectArgs),
    Check(check::CheckArgs),
    Prompt(prompt::PromptArgs),
    Branch(branch::BranchArgs),
    Doctor(doctor::DoctorArgs),
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
            Command::Compact(args) => compact::run(app, &args),
            Command::Prune(args) => prune::run(app, &args),
            Command::Context(args) => context::run(app, &args),
            Command::Check(args) => check::run(app, &args),
            Command::Branch(args) => branch::run(app, &args),
            Command::Prompt(args) => prompt::run(app, &args),
            Command::Inspect(args) => inspect::run(app, &args),
            Command::Doctor(args) => doctor::run(app, &args),
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
        ("branch", schema_for!(Record<branch::Branching>)),
        ("check", schema_for!(Record<check::Check>)),
        ("compact", schema_for!(Record<compact::Maintenance>)),
        ("doctor", schema_for!(Record<doctor::Diagnosis>)),
        ("inspect", schema_for!(Record<inspect::Inspection>)),
        ("models", schema_for!(models::ModelRecord)),
        ("prompt", schema_for!(Record<prompt::PromptFacts>)),
        ("prune", schema_for!(Record<prune::Prune>)),
        ("settings", schema_for!(settings::SettingRecord)),
        ("undo", schema_for!(Record<undo::Undo>)),
    ]
}

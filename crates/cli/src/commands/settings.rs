//! `sesstool settings`: every setting, its value, and where that comes from.

use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::app::App;
use crate::exit::{CommandError, Status};
use crate::settings::Source;
use crate::table::Table;

/// Print every setting with the source of its value
///
/// Flags go before SESSTOOL_* variables, those before the settings file, that before the defaults. The file is
/// ~/.config/sesstool/settings.json (or under $XDG_CONFIG_HOME, or --settings FILE), in the shape of the agents' own
/// settings: {"compaction": {"reserveTokens": 20000}}. It is never looked for in the working directory.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sesstool settings
  SESSTOOL_COMPACTION_RESERVE_TOKENS=20000 sesstool settings compaction
  sesstool settings --json")]
pub struct SettingsArgs {
    /// Only settings whose name contains this
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
}

/// One setting in machine-readable output.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SettingRecord {
    /// Its name: section and key in the file.
    pub name: &'static str,
    /// Its value; null if it is not set.
    pub value: Value,
    /// `default`, `file`, `variable` or `flag`.
    pub source: &'static str,
    /// The file, variable or flag that set it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub set_by: Option<String>,
    /// The variable that would set it.
    pub variable: String,
    /// What it can be.
    pub expects: String,
    /// What it does.
    pub meaning: &'static str,
}

/// Runs the command.
///
/// # Errors
/// The settings cannot be resolved, or standard output cannot be written.
pub fn run(app: &App, args: &SettingsArgs) -> Result<Status, CommandError> {
    let settings = app.settings(&[])?;
    let wanted = args.name.as_deref().unwrap_or_default().to_lowercase();
    let chosen: Vec<_> =
        settings.all().iter().filter(|it| it.row.name.to_lowercase().contains(&wanted)).collect();
    if chosen.is_empty() {
        return Err(CommandError::usage(format!("no setting has {wanted:?} in its name"))
            .hint("sesstool settings prints all"));
    }
    match &settings.file {
        Some((path, true)) => app.printer.say(&format!("settings file: {}", path.display())),
        Some((path, false)) => {
            app.printer.say(&format!("settings file: {} (does not exist)", path.display()))
        }
        None => app.printer.say("settings file: none, since there is no home directory"),
    }
    if app.globals.json {
        app.printer.data(|out| {
            for it in &chosen {
                let record = SettingRecord {
                    name: it.row.name,
                    value: it.value.clone(),
                    source: it.source.name(),
                    set_by: (it.source != Source::Default).then(|| it.source.to_string()),
                    variable: it.row.variable(),
                    expects: it.row.kind.words(),
                    meaning: it.row.meaning,
                };
                serde_json::to_writer(&mut *out, &record)?;
                out.write_all(b"\n")?;
            }
            Ok(())
        })?;
        return Ok(Status::Done);
    }
    let mut table = Table::new(&["name", "value", "from", "meaning"]);
    for it in &chosen {
        let value = match &it.value {
            Value::Null => "-".to_owned(),
            Value::String(text) => text.clone(),
            Value::Array(items) if items.is_empty() => "-".to_owned(),
            value => value.to_string(),
        };
        table.row([it.row.name.to_owned(), value, it.source.to_string(), it.row.meaning.to_owned()]);
    }
    app.printer.data(|out| table.write(out, app.printer.paint()))?;
    Ok(Status::Done)
}

//! `sesstool models`: what is known of models and their providers.

use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;
use summarizer::models::{self, Model};
use summarizer::provider;

use crate::app::App;
use crate::exit::{CommandError, Status};
use crate::figures::grouped;
use crate::table::Table;

/// List the models whose window, output limit and price are known
///
/// Other models work too: give --base-url for a provider that is not listed, and --context-window where it matters.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sesstool models sonnet 4
  sesstool models --providers")]
pub struct ModelsArgs {
    /// Only models whose name contains all these words
    #[arg(value_name = "WORD")]
    pub words: Vec<String>,
    /// List the providers that are known by name, and whether their key is set
    #[arg(long, conflicts_with = "words")]
    pub providers: bool,
}

/// One model in machine-readable output; prices are US dollars for a million tokens.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModelRecord {
    /// As `--model` takes it.
    pub model: String,
    /// The most tokens of a request.
    pub window: u64,
    /// The most tokens of an answer, where it is known.
    pub max_output: Option<u64>,
    /// Price of a request, where it is known.
    pub input_price: Option<f64>,
    /// Price of an answer, where it is known.
    pub output_price: Option<f64>,
}

/// A provider in machine-readable output.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ProviderRecord {
    provider: &'static str,
    base_url: &'static str,
    key_variable: &'static str,
    needs_key: bool,
    has_key: bool,
}

/// Runs the command.
///
/// # Errors
/// No model matches, or standard output cannot be written.
pub fn run(app: &App, args: &ModelsArgs) -> Result<Status, CommandError> {
    if args.providers {
        return providers(app);
    }
    let words: Vec<_> = args.words.iter().map(|word| word.to_lowercase()).collect();
    let matches = |model: &&Model| {
        let name = format!("{}/{}", model.provider, model.id).to_lowercase();
        words.iter().all(|word| name.contains(word.as_str()))
    };
    let found: Vec<_> = models::all().iter().filter(matches).collect();
    if found.is_empty() {
        return Err(CommandError::new(format!("no known model has {:?} in its name", args.words.join(" ")))
            .hint("unknown models work too, with --context-window and, for other providers, --base-url"));
    }
    if app.globals.json {
        json_lines(app, found.iter().map(|model| record(model)))?;
        return Ok(Status::Done);
    }
    let mut table = Table::new(&["model", ">window", ">output", ">$/M in", ">$/M out"]);
    let price = |price: Option<f64>| price.map_or_else(|| "-".to_owned(), |price| format!("{price:.2}"));
    for model in &found {
        let it = record(model);
        let output = it.max_output.map_or_else(|| "-".to_owned(), grouped);
        table.row([it.model, grouped(it.window), output, price(it.input_price), price(it.output_price)]);
    }
    app.printer.data(|out| table.write(out, app.printer.paint()))?;
    for line in models::source() {
        app.printer.detail(line);
    }
    Ok(Status::Done)
}

fn providers(app: &App) -> Result<Status, CommandError> {
    let records = provider::TABLE.iter().map(|row| ProviderRecord {
        provider: row.name,
        base_url: row.base_url,
        key_variable: row.key_variable,
        needs_key: row.needs_key,
        has_key: app.env.get(row.key_variable).is_some(),
    });
    if app.globals.json {
        json_lines(app, records)?;
        return Ok(Status::Done);
    }
    let mut table = Table::new(&["provider", "address", "key in", "key"]);
    for it in records {
        let key = match (it.has_key, it.needs_key) {
            (true, _) => "set",
            (false, true) => "missing",
            (false, false) => "not needed",
        };
        table.row([
            it.provider.to_owned(),
            it.base_url.to_owned(),
            it.key_variable.to_owned(),
            key.to_owned(),
        ]);
    }
    app.printer.data(|out| table.write(out, app.printer.paint()))?;
    Ok(Status::Done)
}

fn record(model: &Model) -> ModelRecord {
    ModelRecord {
        model: format!("{}/{}", model.provider, model.id),
        window: model.window,
        max_output: model.max_output,
        input_price: model.price.map(|price| price.input),
        output_price: model.price.map(|price| price.output),
    }
}

fn json_lines(app: &App, records: impl Iterator<Item = impl Serialize>) -> Result<(), CommandError> {
    app.printer.data(|out| {
        for record in records {
            serde_json::to_writer(&mut *out, &record)?;
            out.write_all(b"\n")?;
        }
        Ok(())
    })
}

//! `cargo xtask models`: writes the table of models' windows, limits and prices from a registry package.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

/// The package that the facts come from, and the file in it.
const PACKAGE: &str = "litellm";
const FILE: &str = "litellm/model_prices_and_context_window_backup.json";
/// Versions that still know the models of old sessions, oldest first; what a newer one says stands.
const OLDER: &[&str] = &["1.59.0", "1.80.0"];
const LICENSE: &str = "MIT";
/// Where the table goes.
const TABLE: &str = "crates/summarizer/src/models.tsv";
const COLUMNS: &str = "provider\tid\twindow\tmax_output\tinput_price\toutput_price\tcache_read_price\tcache_write_price\tleast_effort";
/// The package's names of providers, and ours.
const PROVIDERS: &[(&str, &str)] = &[
    ("anthropic", "anthropic"),
    ("openai", "openai"),
    ("gemini", "google"),
    ("openrouter", "openrouter"),
    ("groq", "groq"),
    ("xai", "xai"),
    ("cerebras", "cerebras"),
    ("mistral", "mistral"),
    ("deepseek", "deepseek"),
];
/// Parts of ids of models that answer with something other than text, or judge text.
const OTHER_USES: &[&str] =
    &["audio", "tts", "lyria", "prompt-guard", "moderation", "ft:", "realtime", "robotics"];

/// Options of the chore.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The version of the package; the newest if it is not given
    #[arg(long)]
    version: Option<String>,
}

/// Downloads the package, converts it and writes the table.
pub(crate) fn run(args: &Args) -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("xtask lies in the workspace")?;
    let mut rows = Rows::new();
    let mut versions = Vec::new();
    for version in OLDER.iter().copied().map(Some).chain([args.version.as_deref()]) {
        let folder = root.join("target/xtask/models").join(version.unwrap_or("newest"));
        let version = fetch(version, &folder)?;
        let json: Value =
            serde_json::from_str(&read(&folder.join(FILE))?).context("the package's file is no JSON")?;
        rows.extend(convert(&json)?);
        versions.push(version);
    }
    write(&root.join(TABLE), &table(&rows, &versions))?;
    println!("{TABLE}: {} models from {PACKAGE} {}", rows.len(), versions.join(", "));
    Ok(())
}

/// Puts the package into `folder` and gives its version.
fn fetch(version: Option<&str>, folder: &Path) -> Result<String> {
    if folder.exists() {
        std::fs::remove_dir_all(folder)?;
    }
    std::fs::create_dir_all(folder)?;
    let package = version.map_or_else(|| PACKAGE.to_owned(), |version| format!("{PACKAGE}=={version}"));
    python(
        &["-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", "--dest", "."],
        &package,
        folder,
    )?;
    let wheel = only_wheel(folder)?;
    python(&["-m", "zipfile", "-e", &wheel], ".", folder)?;
    facts(folder)
}

fn python(arguments: &[&str], last: &str, folder: &Path) -> Result<()> {
    let status =
        Command::new("python3").args(arguments).arg(last).current_dir(folder).status().context("python3")?;
    ensure!(status.success(), "python3 {} {last}: {status}", arguments.join(" "));
    Ok(())
}

fn only_wheel(folder: &Path) -> Result<String> {
    for file in std::fs::read_dir(folder)? {
        let name = file?.file_name().to_string_lossy().into_owned();
        if name.ends_with(".whl") {
            return Ok(name);
        }
    }
    bail!("{}: no wheel was downloaded", folder.display())
}

type Rows = BTreeMap<(String, String), String>;

/// The version that the package states, if its licence is the known one.
fn facts(folder: &Path) -> Result<String> {
    let mut metadata: Option<PathBuf> = None;
    for file in std::fs::read_dir(folder)? {
        let path = file?.path();
        if path.extension().is_some_and(|extension| extension == "dist-info") {
            metadata = Some(path.join("METADATA"));
        }
    }
    let text = read(&metadata.context("the package has no METADATA")?)?;
    let field = |name: &str| {
        text.lines()
            .take_while(|line| !line.is_empty())
            .find_map(|line| line.strip_prefix(name))
            .map(str::trim)
    };
    let version = field("Version:").context("METADATA names no version")?;
    let license = field("License-Expression:").or(field("License:")).context("METADATA names no licence")?;
    ensure!(
        license == LICENSE,
        "the licence has changed to {license}: read it before the table is taken over"
    );
    Ok(version.to_owned())
}

fn convert(json: &Value) -> Result<Rows> {
    let mut rows = Rows::new();
    for (name, model) in json.as_object().context("the package's file is no object")? {
        let Some((theirs, ours)) =
            PROVIDERS.iter().find(|(theirs, _)| model["litellm_provider"].as_str() == Some(theirs))
        else {
            continue;
        };
        let id = name.strip_prefix(&format!("{theirs}/")).unwrap_or(name);
        let is_chat = matches!(model["mode"].as_str(), Some("chat" | "responses"));
        if !is_chat || OTHER_USES.iter().any(|part| id.contains(part)) || id.contains(['\t', '\n', '#']) {
            continue;
        }
        let count = |field: &str| model[field].as_u64().filter(|n| *n > 0);
        let Some(window) = count("max_input_tokens").or_else(|| count("max_tokens")) else {
            continue;
        };
        // A larger window at another price is had only with a header that sesstool does not send.
        let window = if *ours == "anthropic" && !model["input_cost_per_token_above_200k_tokens"].is_null() {
            window.min(200_000)
        } else {
            window
        };
        let mut row = format!("{ours}\t{id}\t{window}\t");
        let max_output = count("max_output_tokens").map(|n| n.to_string()).unwrap_or_default();
        row.push_str(&max_output);
        for field in [
            "input_cost_per_token",
            "output_cost_per_token",
            "cache_read_input_token_cost",
            "cache_creation_input_token_cost",
        ] {
            write!(row, "\t{}", model[field].as_f64().map(per_million).unwrap_or_default())?;
        }
        write!(row, "\t{}", least_effort(ours, id, model))?;
        rows.insert(((*ours).to_owned(), id.to_owned()), row);
    }
    ensure!(rows.len() > 100, "only {} models were found: the package's form has changed", rows.len());
    Ok(rows)
}

fn table(rows: &Rows, versions: &[String]) -> String {
    let mut table = format!(
        "# Windows, output limits (tokens) and prices (US dollars per million tokens) of chat models.\n\
         # Written by `cargo xtask models` from the package {PACKAGE} {} (licence {LICENSE}); not edited by hand.\n\
         {COLUMNS}\n",
        versions.join(", ")
    );
    for row in rows.values() {
        table.push_str(row);
        table.push('\n');
    }
    table
}

/// Dollars for a million tokens, without the tail of a binary fraction.
fn per_million(per_token: f64) -> String {
    let text = format!("{:.6}", per_token * 1e6);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn least_effort(provider: &str, id: &str, model: &Value) -> &'static str {
    let flag = |name: &str| model[name] == true;
    if provider != "openai" || !flag("supports_reasoning") {
        ""
    } else if flag("supports_none_reasoning_effort") {
        "none"
    } else if flag("supports_minimal_reasoning_effort") {
        "minimal"
    } else if id.contains("-pro") || id.contains("chat") || id.contains("deep-research") {
        // They take no such setting, or only higher ones.
        ""
    } else {
        "low"
    }
}

#[expect(clippy::disallowed_methods, reason = "a chore reads what it has downloaded")]
fn read(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).with_context(|| path.display().to_string())
}

#[expect(clippy::disallowed_methods, reason = "a chore writes a file of the repository")]
fn write(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text).with_context(|| path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn prices_have_no_binary_tail() {
        assert_eq!([per_million(3e-6), per_million(2.8e-7), per_million(0.0)], ["3", "0.28", "0"]);
    }

    #[test]
    fn the_least_effort_follows_the_flags() {
        let none = json!({"supports_reasoning": true, "supports_none_reasoning_effort": true});
        let minimal = json!({"supports_reasoning": true, "supports_minimal_reasoning_effort": true});
        let plain = json!({"supports_reasoning": true});
        assert_eq!(least_effort("openai", "a", &none), "none");
        assert_eq!(least_effort("openai", "a", &minimal), "minimal");
        assert_eq!(least_effort("openai", "o3", &plain), "low");
        assert_eq!(least_effort("openai", "gpt-5-pro", &plain), "");
        assert_eq!(least_effort("openai", "gpt-4", &json!({})), "");
        assert_eq!(least_effort("google", "a", &none), "");
    }

    #[test]
    fn a_package_in_another_form_is_refused() {
        let error = convert(&json!({"x": {"mode": "chat"}})).unwrap_err();
        assert!(error.to_string().contains("only 0 models"));
    }
}

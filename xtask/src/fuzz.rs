//! Builds the fuzzer with every check switched on, and runs it.

use std::process::Command;

use anyhow::{Context, ensure};

/// What is handed on to the fuzzer, e.g. `--seconds 20`, `--records 10000000`, `--only SEED`; `--help` shows all
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Args {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    args: Vec<String>,
}

/// Runs it to its end.
///
/// # Errors
/// It cannot be built, or it found something.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let status = Command::new("cargo")
        .args(["run", "--quiet", "--package", "fuzz", "--profile", "fuzz", "--"])
        .args(&args.args)
        .status()
        .context("cargo")?;
    ensure!(status.success(), "the fuzzer ended with {status}");
    Ok(())
}

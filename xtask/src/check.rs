//! `cargo xtask check`: everything that must hold before a change is taken.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};

use crate::files;

/// Steps that have to pass, in the order in which they find most for their time.
const STEPS: [&[&str]; 8] = [
    &["fmt", "--all", "--check"],
    &["xtask", "tidy"],
    &["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"],
    &["xtask", "fixtures", "--check"],
    &["xtask", "docs", "--check"],
    &["test", "--workspace", "--locked"],
    &["xtask", "fuzz", "--seconds", "20"],
    &["doc", "--workspace", "--no-deps", "--locked"],
];
/// Tools that are used where they are installed.
const OPTIONAL: [&[&str]; 3] = [&["deny", "check"], &["machete"], &["typos"]];

/// Runs all steps, and stops at the first that fails.
///
/// # Errors
/// A step fails.
pub(crate) fn run() -> Result<()> {
    let root = files::root()?;
    for step in STEPS {
        cargo(&root, step)?;
    }
    for step in OPTIONAL {
        if is_installed(step[0]) {
            cargo(&root, step)?;
        } else {
            println!("skipped: cargo {} is not installed", step[0]);
        }
    }
    println!("everything holds");
    Ok(())
}

fn cargo(root: &Path, step: &[&str]) -> Result<()> {
    let words = step.join(" ");
    println!("== cargo {words}");
    let started = Instant::now();
    let status = Command::new("cargo")
        .args(step)
        .current_dir(root)
        .env("RUSTDOCFLAGS", "-Dwarnings")
        .status()
        .context("cargo")?;
    ensure!(status.success(), "cargo {words}: {status}");
    println!("   {:.0} s", started.elapsed().as_secs_f64());
    Ok(())
}

fn is_installed(tool: &str) -> bool {
    let asked =
        Command::new("cargo").args([tool, "--version"]).stdout(Stdio::null()).stderr(Stdio::null()).status();
    asked.is_ok_and(|status| status.success())
}

//! Do two builds of sesstool say the same, byte for byte? For changes that must change nothing but the time.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Result, bail};
use session_gen::{Shape, damage, generate};

use super::material::Material;

/// Commands that only read. What they print must be the same; the clock is in none of it.
const COMMANDS: &[&str] = &[
    "check",
    "check --json",
    "check --idle --json",
    "prune --dry-run --json",
    "inspect",
    "inspect --json",
    "context",
    "context --json",
    "context --format jsonl",
    "context --format jsonl --agent",
    "context --format markdown",
    "context --format anthropic",
    "context --format responses",
];

/// Sessions of each shape.
const N_GENERATED: u64 = 60;

/// Compares `old` with `new` on the sessions of these folders and on generated ones.
///
/// # Errors
/// They differ, or cannot be run.
pub(super) fn run(old: &Path, new: &Path, material: &Material, folders: &[PathBuf]) -> Result<()> {
    let mut sessions = vec![material.large(1)?, material.large(20)?, material.small()?];
    for seed in 0..N_GENERATED {
        for (name, shape) in [("pi", Shape::pi()), ("omp", Shape::omp())] {
            let session = generate(seed, &shape).into_bytes();
            sessions.push(material.kept(&format!("compare/{name}-{seed}.jsonl"), || session.clone())?);
            let damaged = damage(seed, &session);
            sessions.push(material.kept(&format!("compare/{name}-{seed}-damaged.jsonl"), || damaged)?);
        }
    }
    for folder in folders {
        let walk = walkdir::WalkDir::new(folder).sort_by_file_name();
        for item in walk {
            let path = item?.into_path();
            if path.extension().is_some_and(|extension| extension == "jsonl") {
                sessions.push(path);
            }
        }
    }
    let mut differences = Vec::new();
    for session in &sessions {
        for words in COMMANDS {
            if said(old, words, session)? != said(new, words, session)? {
                differences.push(format!("{words}: {}", session.display()));
            }
        }
    }
    let n_compared = sessions.len() * COMMANDS.len();
    println!("{n_compared} answers about {} sessions, {} different", sessions.len(), differences.len());
    if !differences.is_empty() {
        differences.truncate(20);
        bail!("{}", differences.join("\n"));
    }
    Ok(())
}

/// What a command prints about a session, and how it ends.
fn said(program: &Path, words: &str, session: &Path) -> Result<(Vec<u8>, Vec<u8>, Option<i32>)> {
    let mut command = Command::new(program);
    command.args(words.split(' ')).arg(session).env("NO_COLOR", "1").stdin(Stdio::null());
    let output = command.output()?;
    Ok((output.stdout, output.stderr, output.status.code()))
}

//! Chores.

mod docs;
mod e2e_llm;
mod models;

use clap::Parser;

/// The project's own chores
#[derive(Debug, Parser)]
enum Chore {
    /// Write the documentation that is generated from code
    Docs(docs::Args),
    /// Ask a real llama-server with a small model, built on first use
    E2eLlm(e2e_llm::Args),
    /// Write the table of models' windows, limits and prices from a registry package
    Models(models::Args),
}

fn main() -> anyhow::Result<()> {
    match Chore::parse() {
        Chore::Docs(args) => docs::run(&args),
        Chore::E2eLlm(args) => e2e_llm::run(&args),
        Chore::Models(args) => models::run(&args),
    }
}

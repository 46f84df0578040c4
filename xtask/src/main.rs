//! Chores.

mod bench;
mod check;
mod conformance;
mod docs;
mod e2e_llm;
mod files;
mod fixtures;
mod fuzz;
mod limits;
mod live_writers;
mod models;
mod recall;
mod reference;
mod repaired;
mod tidy;

use clap::Parser;

/// The project's own chores
#[derive(Debug, Parser)]
enum Chore {
    /// Everything that must hold before a change is taken
    Check,
    /// Measure how fast sesstool is
    Bench(bench::Args),
    /// Compare sesstool's answers with those of the reference programs
    Conformance(conformance::Args),
    /// Write the documentation that is generated from code
    Docs(docs::Args),
    /// Ask a real llama-server with a small model, built on first use
    E2eLlm(e2e_llm::Args),
    /// Write what sesstool makes of every fixture, or check it
    Fixtures(fixtures::Args),
    /// Run mutated sessions through the libraries
    Fuzz(fuzz::Args),
    /// Measure time and memory on hostile and huge sessions
    Limits(limits::Args),
    /// Let the agents write to sessions while sesstool changes them
    LiveWriters(live_writers::Args),
    /// Write the table of models' windows, limits and prices from a registry package
    Models(models::Args),
    /// Let the agents open repaired sessions
    Repaired(repaired::Args),
    /// Measure how much of what is needed later the summaries hold
    Recall(recall::Args),
    /// What the house style asks for and no compiler checks
    Tidy,
}

fn main() -> anyhow::Result<()> {
    match Chore::parse() {
        Chore::Check => check::run(),
        Chore::Bench(args) => bench::run(&args),
        Chore::Conformance(args) => conformance::run(&args),
        Chore::Docs(args) => docs::run(&args),
        Chore::E2eLlm(args) => e2e_llm::run(&args),
        Chore::Fixtures(args) => fixtures::run(&args),
        Chore::Fuzz(args) => fuzz::run(&args),
        Chore::Limits(args) => limits::run(&args),
        Chore::LiveWriters(args) => live_writers::run(&args),
        Chore::Models(args) => models::run(&args),
        Chore::Repaired(args) => repaired::run(&args),
        Chore::Recall(args) => recall::run(&args),
        Chore::Tidy => tidy::run(),
    }
}

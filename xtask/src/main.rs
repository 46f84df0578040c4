//! Chores.

mod models;

use clap::Parser;

/// The project's own chores
#[derive(Debug, Parser)]
enum Chore {
    /// Write the table of models' windows, limits and prices from a registry package
    Models(models::Args),
}

fn main() -> anyhow::Result<()> {
    match Chore::parse() {
        Chore::Models(args) => models::run(&args),
    }
}

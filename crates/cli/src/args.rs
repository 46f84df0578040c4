//! The global flags and the flags of paths: what the user typed, nothing resolved.

use std::path::PathBuf;

use clap::{Args, Parser, ValueEnum};
use session_model::dialect::Dialect;
use session_model::tokens::Tokenizer;

use crate::commands::Command;

/// Compacts, prunes and shows the saved sessions of the coding agents pi and oh-my-pi
///
/// A session is a file of JSON Lines that the agents keep in ~/.pi/agent/sessions and ~/.omp/agent/sessions. Reading
/// commands never change it; writing commands keep what is needed to take the change back (sesstool undo).
#[derive(Debug, Parser)]
#[command(name = "sesstool", version, max_term_width = 110, disable_help_subcommand = true)]
#[command(after_help = "Examples:
  sesstool inspect                      the newest session of this project
  sesstool compact session.jsonl        summarise the older part; needs no model and no key
  sesstool check ~/.pi/agent/sessions   which sessions are due?

Exit status: 0 done, 1 some files failed, 2 wrong usage or nothing could be run, 130 interrupted.")]
pub struct Cli {
    /// What concerns every command.
    #[command(flatten)]
    pub globals: Globals,
    /// What is to be done.
    #[command(subcommand)]
    pub command: Command,
}

/// Flags that every command takes.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Global options")]
pub struct Globals {
    /// Files worked on at the same time [default: one per processor]
    #[arg(short, long, global = true, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub jobs: Option<u16>,
    /// Print one JSON object per session
    #[arg(long, global = true)]
    pub json: bool,
    /// Print errors only, beside the data
    #[arg(short, long, global = true)]
    pub quiet: bool,
    /// Print more about what is done
    #[arg(short, long, global = true, conflicts_with = "quiet")]
    pub verbose: bool,
    /// When to use colours; NO_COLOR is respected
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto", hide_default_value = true)]
    pub color: Color,
    /// Take the file for one of this agent, whatever its marks say
    #[arg(long, global = true, value_name = "AGENT")]
    pub dialect: Option<DialectName>,
    /// How tokens are counted where the provider's count is not known [default: units]
    #[arg(long, global = true, value_name = "NAME")]
    pub tokenizer: Option<TokenizerName>,
    /// Read this settings file instead of the user's
    #[arg(long, global = true, value_name = "FILE")]
    pub settings: Option<PathBuf>,
}

impl Globals {
    /// How many files are worked on at the same time.
    pub fn jobs(&self) -> usize {
        match self.jobs {
            Some(jobs) => usize::from(jobs),
            None => std::thread::available_parallelism().map_or(1, usize::from),
        }
    }
}

/// Values of `--color`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On a terminal.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// Values of `--dialect`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DialectName {
    /// pi.
    Pi,
    /// oh-my-pi.
    Omp,
}

impl From<DialectName> for Dialect {
    fn from(name: DialectName) -> Dialect {
        match name {
            DialectName::Pi => Dialect::Pi,
            DialectName::Omp => Dialect::OhMyPi,
        }
    }
}

/// Values of `--tokenizer`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TokenizerName {
    /// Four UTF-16 units are a token, as the agents estimate.
    #[value(name = "units")]
    Units,
    /// OpenAI's vocabulary `o200k_base`.
    #[value(name = "o200k_base", alias = "o200k")]
    O200kBase,
    /// OpenAI's vocabulary `cl100k_base`.
    #[value(name = "cl100k_base", alias = "cl100k")]
    Cl100kBase,
}

impl TokenizerName {
    /// As the settings file spells it.
    pub fn wire(self) -> &'static str {
        match self {
            TokenizerName::Units => "units",
            TokenizerName::O200kBase => "o200k_base",
            TokenizerName::Cl100kBase => "cl100k_base",
        }
    }

    /// The tokenizer of this name.
    pub fn tokenizer(self) -> Tokenizer {
        match self {
            TokenizerName::Units => Tokenizer::Units,
            TokenizerName::O200kBase => Tokenizer::O200kBase,
            TokenizerName::Cl100kBase => Tokenizer::Cl100kBase,
        }
    }
}

/// Where sessions are to be found.
#[derive(Clone, Debug, Default, Args)]
pub struct PathArgs {
    /// Session files, folders (walked for *.jsonl), or - for one session on standard input
    #[arg(value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// Read more paths from this file, one a line; - is standard input
    #[arg(long, value_name = "FILE")]
    pub files_from: Option<PathBuf>,
    /// The paths of --files-from end in NUL, as find -print0 writes them
    #[arg(short = '0', long, requires = "files_from")]
    pub null: bool,
}

/// For commands that change files.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct SkipArgs {
    /// Exit with 1 if a file was skipped because there was nothing to do
    #[arg(long)]
    pub fail_on_skip: bool,
}

//! `cargo xtask fixtures`: writes what sesstool makes of every fixture, or checks that it still makes the same.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use compaction_core::settings::CompactionSettings;
use pruning::settings::PruneSettings;
use serde::Deserialize;
use session_model::dialect::Dialect;
use session_model::entry::EntryNo;
use session_model::session::Session;

use crate::files;

mod outputs;

/// Options of the chore.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Write nothing; fail if anything would change
    #[arg(long)]
    check: bool,
    /// Only fixtures whose names contain this
    filter: Option<String>,
}

/// A fixture: a session, what makes it special, and what comes out of it.
#[derive(Debug)]
pub(crate) struct Case {
    /// The folder's name.
    pub(crate) name: String,
    folder: PathBuf,
    options: Options,
}

/// `case.json`: what is expected, and with which settings.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
struct Options {
    /// Which outputs are kept.
    expect: Vec<Output>,
    /// Id of the last entry of the branch.
    leaf: Option<String>,
    /// `pi` or `omp`, in place of what the marks say.
    dialect: Option<String>,
    keep_recent_tokens: Option<u64>,
    reserve_tokens: Option<u64>,
    protect_tokens: Option<u64>,
    minimum_savings: Option<u64>,
    /// Id of the entry that the user goes to.
    target: Option<String>,
    /// Tokens of the model's window, for a branch summary and for folding.
    window: Option<u64>,
    instructions: Option<String>,
}

/// An output of a fixture.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "kebab-case")]
enum Output {
    /// Agent messages.
    Agent,
    /// Model messages.
    Context,
    /// State of the branch.
    State,
    /// Faults and notes.
    Validate,
    /// Problems of the file.
    Problems,
    /// What a compaction would do.
    Prepare,
    /// The requests of that compaction.
    Requests,
    /// The entry that comes of it.
    Compaction,
    /// What pruning does.
    Prune,
    /// What is left behind when the branch is left, and the request for its summary.
    Branch,
}

impl Output {
    fn file(self) -> &'static str {
        match self {
            Output::Agent => "agent.jsonl",
            Output::Context => "context.jsonl",
            Output::State => "state.json",
            Output::Validate => "validate.txt",
            Output::Problems => "problems.txt",
            Output::Prepare => "prepare.txt",
            Output::Requests => "requests.txt",
            Output::Compaction => "compaction.json",
            Output::Prune => "prune.txt",
            Output::Branch => "branch.txt",
        }
    }
}

impl Case {
    /// All fixtures below `folder`; those of the embedded summarizer have a form of their own.
    ///
    /// # Errors
    /// A fixture without `case.json`, `README.md` or `session.jsonl`.
    pub(crate) fn all(folder: &Path) -> Result<Vec<Case>> {
        let mut cases = Vec::new();
        let mut names: Vec<PathBuf> =
            std::fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
        names.sort();
        for folder in names.into_iter().filter(|path| path.is_dir()) {
            let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if name.starts_with("summary-") {
                continue;
            }
            for file in ["session.jsonl", "README.md", "case.json"] {
                ensure!(folder.join(file).is_file(), "fixtures/{name} has no {file}");
            }
            let text = files::read(&folder.join("case.json"))?;
            let options: Options =
                serde_json::from_str(&text).with_context(|| format!("fixtures/{name}/case.json"))?;
            ensure!(!options.expect.is_empty(), "fixtures/{name}/case.json expects nothing");
            cases.push(Case { name, folder, options });
        }
        Ok(cases)
    }

    /// The session's file.
    pub(crate) fn session(&self) -> PathBuf {
        self.folder.join("session.jsonl")
    }

    /// The settings of compactions.
    pub(crate) fn compaction(&self) -> CompactionSettings {
        let default = CompactionSettings::default();
        CompactionSettings {
            keep_recent_tokens: self.options.keep_recent_tokens.unwrap_or(default.keep_recent_tokens),
            reserve_tokens: self.options.reserve_tokens.unwrap_or(default.reserve_tokens),
            ..default
        }
    }

    /// The settings of pruning.
    pub(crate) fn pruning(&self) -> PruneSettings {
        let default = PruneSettings::default();
        PruneSettings {
            protect_tokens: self.options.protect_tokens.unwrap_or(default.protect_tokens),
            minimum_savings: self.options.minimum_savings.unwrap_or(default.minimum_savings),
            ..default
        }
    }

    /// The last entry of the branch, if it is not the file's.
    ///
    /// # Errors
    /// It is not in the session.
    pub(crate) fn leaf(&self, session: &Session) -> Result<Option<EntryNo>> {
        self.named(session, self.options.leaf.as_deref())
    }

    /// Where the user goes.
    ///
    /// # Errors
    /// It is not in the session.
    pub(crate) fn target(&self, session: &Session) -> Result<Option<EntryNo>> {
        self.named(session, self.options.target.as_deref())
    }

    fn named(&self, session: &Session, id: Option<&str>) -> Result<Option<EntryNo>> {
        id.map(|id| session.find(id).with_context(|| format!("fixtures/{}: no entry {id}", self.name)))
            .transpose()
    }

    /// The dialect that the case asks for.
    ///
    /// # Errors
    /// An unknown name.
    fn dialect(&self) -> Result<Option<Dialect>> {
        self.options
            .dialect
            .as_deref()
            .map(|name| match name {
                "pi" => Ok(Dialect::Pi),
                "omp" => Ok(Dialect::OhMyPi),
                _ => bail!("fixtures/{}: no dialect {name}", self.name),
            })
            .transpose()
    }

    /// The files that belong into `expected/`.
    fn outputs(&self) -> Result<BTreeMap<String, String>> {
        let bytes = files::read_bytes(&self.session())?;
        let mut made = BTreeMap::new();
        for &output in &self.options.expect {
            let text =
                outputs::make(self, output, &bytes).with_context(|| format!("fixtures/{}", self.name))?;
            made.insert(output.file().to_owned(), text);
        }
        Ok(made)
    }
}

/// Writes or checks the outputs of all fixtures.
pub(crate) fn run(args: &Args) -> Result<()> {
    let root = files::root()?;
    let mut stale = Vec::new();
    let mut n_files = 0;
    let wanted = |case: &Case| args.filter.as_deref().is_none_or(|filter| case.name.contains(filter));
    let cases: Vec<Case> = Case::all(&root.join("fixtures"))?.into_iter().filter(wanted).collect();
    for case in &cases {
        let folder = case.folder.join("expected");
        let outputs = case.outputs()?;
        n_files += outputs.len();
        for (name, text) in &outputs {
            let path = folder.join(name);
            if files::read(&path).is_ok_and(|old| old == *text) {
                continue;
            }
            stale.push(path.clone());
            if !args.check {
                files::write(&path, text)?;
            }
        }
        for path in files::below(&folder, |_| true) {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if !outputs.contains_key(&name) {
                stale.push(path.clone());
                if !args.check {
                    files::remove(&path)?;
                }
            }
        }
    }
    for path in &stale {
        println!("{} {}", if args.check { "stale:" } else { "wrote" }, path.display());
    }
    println!("{} fixtures, {n_files} expected files", cases.len());
    ensure!(
        !args.check || stale.is_empty(),
        "{} expected files differ; run cargo xtask fixtures and read the change",
        stale.len()
    );
    Ok(())
}

//! The sessions that are compared: fixtures, the corpus of real ones, and generated ones.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use compaction_core::settings::CompactionSettings;
use pruning::settings::PruneSettings;
use session_gen::{Dialect, Random, Shape, damage, generate};
use session_model::entry::EntryNo;
use session_model::session::Session;

use super::subject::Subject;
use crate::files;
use crate::fixtures::Case;

/// A way to generate sessions.
#[derive(Clone, Debug)]
pub(crate) struct Generator {
    /// The name that `--shape` takes.
    pub(crate) name: &'static str,
    /// What the sessions are like.
    pub(crate) shape: Shape,
    /// Whether their files are damaged.
    pub(crate) damaged: bool,
}

/// All ways to generate sessions.
pub(crate) fn generators() -> Vec<Generator> {
    let generator = |name, shape| Generator { name, shape, damaged: false };
    let long = |shape| Shape { steps: (20, 90), compaction: 0.02, ..shape };
    vec![
        generator("omp", Shape::omp()),
        generator("omp-plain", plain(Shape::omp())),
        generator("omp-measured", Shape { usage: 1.0, old_version: 0.0, ..Shape::omp() }),
        generator("omp-long", long(plain(Shape::omp()))),
        generator("pi", Shape::pi()),
        generator(
            "pi-plain",
            plain(Shape { context_edit: 0.0, system: 0.0, full_output_path: 0.0, ..Shape::pi() }),
        ),
        generator("pi-unmeasured", Shape { usage: 0.0, ..Shape::pi() }),
        generator("pi-unmeasured-plain", Shape { usage: 0.0, ..plain(Shape::pi()) }),
        Generator { name: "omp-damaged", shape: Shape::omp(), damaged: true },
        Generator { name: "pi-damaged", shape: Shape::pi(), damaged: true },
    ]
}

/// Without what makes the programs count otherwise, so that most answers must be equal without an excuse.
fn plain(shape: Shape) -> Shape {
    Shape {
        compaction: 0.0,
        custom_message: 0.0,
        developer: 0.0,
        file_mention: 0.0,
        execution: if shape.dialect == Dialect::Pi { shape.execution } else { 0.0 },
        odd_execution: 0.0,
        image: 0.0,
        missing_result: 0.0,
        orphan_result: 0.0,
        interjection: 0.0,
        pruned: 0.0,
        odd_usage: 0.0,
        branch_summary: 0.0,
        metadata: 0.02,
        ..shape
    }
}

impl Generator {
    /// The session of a seed, and what it is asked about: small budgets, so that there is something to cut.
    pub(crate) fn subject(&self, seed: u64, folder: &Path) -> Subject {
        let mut bytes = generate(seed, &self.shape).into_bytes();
        if self.damaged {
            bytes = damage(seed, &bytes);
        }
        let mut random = Random::new(seed ^ 0x5e55_1014);
        let keep = [1, 40, 200, 500, 1000, 3000, 20_000][random.below(7)];
        let (protect, minimum) =
            [(0, 0), (300, 0), (1000, 200), (3000, 1000), (40_000, 20_000)][random.below(5)];
        let entries = Session::read(&bytes).map_or(0, |(session, _)| session.entries.len());
        let some = |random: &mut Random| (entries > 0).then(|| random.below(entries) as EntryNo);
        let target = some(&mut random);
        // Most are asked about as they are; the rest about another branch.
        let leaf = if random.chance(0.15) && !self.damaged { some(&mut random) } else { None };
        let name = format!("{} --seed {seed}", self.name);
        Subject {
            path: folder.join(format!("{}-{seed}.jsonl", self.name)),
            name,
            bytes,
            compaction: CompactionSettings { keep_recent_tokens: keep, ..CompactionSettings::default() },
            pruning: PruneSettings {
                protect_tokens: protect,
                minimum_savings: minimum,
                ..PruneSettings::default()
            },
            leaf,
            target,
            is_damaged: self.damaged,
            written: None,
        }
    }
}

/// The repository's fixtures, each as its case says.
pub(crate) fn fixtures(root: &Path) -> Result<Vec<Subject>> {
    let mut subjects = Vec::new();
    for case in Case::all(&root.join("fixtures"))? {
        let bytes = files::read_bytes(&case.session())?;
        let Ok((session, _)) = Session::read(&bytes) else { continue };
        subjects.push(Subject {
            name: format!("fixtures/{}", case.name),
            path: case.session(),
            bytes,
            compaction: case.compaction(),
            pruning: case.pruning(),
            leaf: case.leaf(&session)?,
            target: case.target(&session)?.or_else(|| middle(&session)),
            is_damaged: false,
            written: None,
        });
    }
    Ok(subjects)
}

/// Real sessions: each with the default budgets, and with small ones.
pub(crate) fn corpus(folder: &Path) -> Result<Vec<Subject>> {
    let paths = files::below(folder, |path| path.extension().is_some_and(|extension| extension == "jsonl"));
    ensure!(!paths.is_empty(), "no sessions in {}", folder.display());
    let mut subjects = Vec::new();
    for path in paths {
        let bytes = files::read_bytes(&path)?;
        let (session, _) = Session::read(&bytes).with_context(|| path.display().to_string())?;
        let name = path.strip_prefix(folder).unwrap_or(&path).display().to_string();
        for (keep, protect, minimum) in [(20_000, 40_000, 20_000), (2000, 1000, 0)] {
            subjects.push(Subject {
                name: format!("corpus/{name} keeping {keep}"),
                path: path.clone(),
                bytes: bytes.clone(),
                compaction: CompactionSettings { keep_recent_tokens: keep, ..CompactionSettings::default() },
                pruning: PruneSettings {
                    protect_tokens: protect,
                    minimum_savings: minimum,
                    ..PruneSettings::default()
                },
                leaf: None,
                target: middle(&session),
                is_damaged: false,
                written: None,
            });
        }
    }
    Ok(subjects)
}

/// An entry in the middle of the file.
fn middle(session: &Session) -> Option<EntryNo> {
    Some(session.last_entry()? / 2)
}

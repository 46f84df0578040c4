//! `cargo xtask conformance`: sesstool's answers against those of the two reference programs (spec 2.6).

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Result, ensure};
use rayon::prelude::*;

use crate::files;
use crate::reference::{Answer, Program, Question, Reference, References};

mod branches;
pub(crate) mod canonical;
mod compare;
mod deviations;
mod questions;
mod report;
mod requests;
mod sources;
mod subject;
mod verdict;
mod writes;

use report::Report;
use subject::{Reading, Subject};
use verdict::{Sheet, Verdict};

/// Bytes and sessions that are dealt with at once: enough to keep both programs busy, little enough for the memory.
const BATCH_BYTES: usize = 6_000_000;
const BATCH_SESSIONS: usize = 200;

/// Options of the chore.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Which sessions to compare; all if none is named
    #[arg(long, value_enum)]
    only: Vec<Source>,
    /// How many sessions are generated for each shape
    #[arg(long, default_value_t = 600)]
    generated: u64,
    /// Folder with real sessions
    #[arg(long, default_value = "../shared/corpus")]
    corpus: PathBuf,
    /// Compare one generated session
    #[arg(long, requires = "shape")]
    seed: Option<u64>,
    /// Generate sessions of this shape alone
    #[arg(long)]
    shape: Option<String>,
    /// Compare the sessions whose names contain this
    #[arg(long)]
    name: Option<String>,
    /// Print every comparison, and keep the session's file
    #[arg(long)]
    explain: bool,
    /// Write the summary into docs/conformance.md
    #[arg(long)]
    write: bool,
}

/// Where sessions come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Source {
    Fixtures,
    Corpus,
    Generated,
}

/// Compares everything, and fails if anything is different.
pub(crate) fn run(args: &Args) -> Result<()> {
    let root = files::root()?;
    let folder = root.join("target/conformance");
    std::fs::create_dir_all(&folder)?;
    let started = Instant::now();
    let mut asker = Asker::new(References::install()?)?;
    let mut report = Report::default();
    for (title, subjects) in sources(args, &root, &folder)? {
        report.begin(title);
        for batch in batches(subjects) {
            compare_batch(&mut asker, batch, &folder, args.explain, &mut report)?;
        }
        eprintln!("{}", report.progress());
    }
    print!("{}", report.text());
    println!("{:.0} s", started.elapsed().as_secs_f64());
    if args.write {
        files::write(&root.join("docs/conformance.md"), report.markdown())?;
    }
    ensure!(report.n_sessions() > 0, "there was nothing to compare");
    ensure!(report.n_different() == 0, "{} answers differ", report.n_different());
    Ok(())
}

type Subjects = Box<dyn Iterator<Item = Subject>>;

fn sources(args: &Args, root: &Path, folder: &Path) -> Result<Vec<(String, Subjects)>> {
    let wants = |source| (args.only.is_empty() && args.shape.is_none()) || args.only.contains(&source);
    let named = |subjects: Vec<Subject>| -> Subjects {
        let name = args.name.clone().unwrap_or_default();
        Box::new(subjects.into_iter().filter(move |subject| subject.name.contains(&name)))
    };
    let mut sources: Vec<(String, Subjects)> = Vec::new();
    if wants(Source::Fixtures) {
        sources.push(("fixtures".to_owned(), named(sources::fixtures(root)?)));
    }
    if wants(Source::Corpus) {
        let corpus = root.join(&args.corpus);
        ensure!(
            corpus.is_dir(),
            "no real sessions in {}; give --corpus, or --only fixtures",
            corpus.display()
        );
        sources.push(("real sessions".to_owned(), named(sources::corpus(&corpus)?)));
    }
    if wants(Source::Generated) || args.shape.is_some() {
        let generators: Vec<_> = sources::generators()
            .into_iter()
            .filter(|generator| args.shape.as_deref().is_none_or(|shape| shape == generator.name))
            .collect();
        ensure!(!generators.is_empty(), "no shape {}", args.shape.as_deref().unwrap_or_default());
        for generator in generators {
            let seeds = match args.seed {
                Some(seed) => seed..seed + 1,
                None => 0..args.generated,
            };
            let (title, folder) = (format!("generated: {}", generator.name), folder.to_owned());
            sources.push((title, Box::new(seeds.map(move |seed| generator.subject(seed, &folder)))));
        }
    }
    Ok(sources)
}

fn batches(subjects: Subjects) -> impl Iterator<Item = Vec<Subject>> {
    let mut subjects = subjects.peekable();
    std::iter::from_fn(move || {
        let mut batch: Vec<Subject> = Vec::new();
        let mut n_bytes = 0;
        while batch.len() < BATCH_SESSIONS
            && let Some(subject) =
                subjects.next_if(|next| batch.is_empty() || n_bytes + next.bytes.len() <= BATCH_BYTES)
        {
            n_bytes += subject.bytes.len();
            batch.push(subject);
        }
        (!batch.is_empty()).then_some(batch)
    })
}

/// Both programs, each of which answers in its own process.
struct Asker {
    r13: Reference,
    p1: Reference,
}

impl Asker {
    fn new(references: References) -> Result<Asker> {
        Ok(Asker { r13: references.start(Program::R13)?, p1: references.start(Program::P1)? })
    }

    /// The answers of both, asked at the same time.
    fn ask(&mut self, r13: &[Question], p1: &[Question]) -> Result<(Vec<Answer>, Vec<Answer>)> {
        std::thread::scope(|scope| {
            let theirs = scope.spawn(|| self.p1.ask(p1));
            let answers = self.r13.ask(r13)?;
            let theirs = theirs.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            Ok((answers, theirs))
        })
    }
}

fn compare_batch(
    asker: &mut Asker,
    subjects: Vec<Subject>,
    folder: &Path,
    keeps_files: bool,
    report: &mut Report,
) -> Result<()> {
    let written: Vec<Subject> = subjects
        .par_iter()
        .flat_map_iter(|subject| {
            Reading::of(subject).map(|reading| writes::written(&reading, folder)).unwrap_or_default()
        })
        .collect();
    let subjects: Vec<Subject> = subjects.into_iter().chain(written).collect();
    let ours: Vec<&Subject> = subjects.iter().filter(|subject| subject.path.starts_with(folder)).collect();
    for subject in &ours {
        files::write(&subject.path, &subject.bytes)?;
    }
    let readings: Vec<Reading<'_>> = subjects.iter().filter_map(Reading::of).collect();
    let asked = |program| -> Vec<Vec<Question>> {
        readings.par_iter().map(|reading| questions::questions(reading, program)).collect()
    };
    let (r13, p1) = (asked(Program::R13), asked(Program::P1));
    let (r13_answers, p1_answers) = asker.ask(&r13.concat(), &p1.concat())?;
    let mut sheets: Vec<Sheet> = readings.iter().map(|_| Sheet::default()).collect();
    for (program, questions, answers) in [(Program::R13, &r13, r13_answers), (Program::P1, &p1, p1_answers)] {
        let mut answers = answers.into_iter();
        let answers: Vec<Vec<Answer>> =
            questions.iter().map(|questions| answers.by_ref().take(questions.len()).collect()).collect();
        sheets.par_iter_mut().enumerate().for_each(|(at, sheet)| {
            for (question, answer) in questions[at].iter().zip(&answers[at]) {
                compare::compare(&readings[at], program, question, answer, sheet);
            }
        });
    }
    let n_refused = subjects.len() - readings.len();
    report.refused(n_refused);
    for (reading, mut sheet) in readings.iter().zip(sheets) {
        sheet.overrule();
        let is_different =
            sheet.findings.iter().any(|finding| matches!(finding.verdict, Verdict::Different(_)));
        report.take(reading.subject, &sheet, keeps_files);
        if reading.subject.path.starts_with(folder) && !is_different && !keeps_files {
            files::remove(&reading.subject.path)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;

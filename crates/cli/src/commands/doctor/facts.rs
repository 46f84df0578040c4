//! What the doctor found and did, as text and as JSON.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;
use session_model::branch::Branch;
use session_model::error::{NotASession, Problem};
use session_model::repair::{BYTE_ORDER_MARK, Step};
use session_model::text::shown;
use session_model::validate::validate;

use super::words;
use crate::figures::count;
use crate::printer::Paint;
use crate::report::{Facts, named};
use crate::session_file::SessionFile;

/// How many of one kind are printed for a person; a broken file can have a million.
const SHOWN: usize = 10;

/// What is wrong with a session.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Diagnosis {
    /// Whether nothing is wrong. Notes are no harm.
    pub healthy: bool,
    /// Damage of the file, in its order.
    pub problems: Vec<ProblemFact>,
    /// What a provider would refuse in the context.
    pub faults: Vec<FindingFact>,
    /// What a provider may find odd in the context.
    pub notes: Vec<FindingFact>,
    /// What the user should know.
    pub warnings: Vec<String>,
    /// Entries that could be read.
    pub entries: u64,
    /// Entries on the branch that was looked at.
    pub branch_entries: u64,
    /// The repaired copy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repair: Option<Repair>,
    /// The session as it was named, for the text.
    #[serde(skip)]
    pub name: String,
}

/// One damage.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProblemFact {
    /// `no_header`, or one of the kinds that reading reports, e.g. `torn_record`.
    pub kind: &'static str,
    /// Line, from 1.
    pub line: u64,
    /// Offset of the first byte concerned.
    pub offset: u64,
    /// Id of the entry concerned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entry: Option<String>,
    /// In words.
    pub message: String,
    /// Entries that no branch reaches any more because of this.
    pub unreachable: u64,
    /// What it does to the context.
    pub effect: &'static str,
    /// What can be done.
    pub remedy: &'static str,
}

/// Something about a tool call or its result.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FindingFact {
    /// For programs, e.g. `call_without_result`.
    pub kind: &'static str,
    /// Line, from 1.
    pub line: u64,
    /// Id of the entry concerned.
    pub entry: String,
    /// The tool call.
    pub call: String,
    /// In words.
    pub message: String,
    /// What can be done.
    pub remedy: &'static str,
}

/// The repaired copy.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Repair {
    /// The copy.
    pub output: String,
    /// Where what is no entry went, if there was something.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aside: Option<String>,
    /// What was done.
    pub steps: Vec<StepFact>,
    /// Problems and faults that the copy still has.
    pub left: Vec<String>,
}

/// One thing that was done.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StepFact {
    /// For programs, e.g. `own_line`.
    pub kind: &'static str,
    /// Line of the session, from 1; 0 where it has none.
    pub line: u64,
    /// Id of the entry concerned, in the copy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entry: Option<String>,
    /// In words.
    pub message: &'static str,
}

impl Diagnosis {
    /// Says so if the file begins with a byte order mark: reading skips it, but pi does not.
    pub(super) fn note_mark(&mut self, start: &[u8]) {
        if start.starts_with(BYTE_ORDER_MARK) {
            self.warnings.push(
                "the file begins with a byte order mark: pi does not open it; --repair drops it".to_owned(),
            );
        }
    }

    /// Whether nothing is wrong, or nothing is left of it in the repaired copy.
    pub(super) fn is_well(&self) -> bool {
        self.healthy || self.repair.as_ref().is_some_and(|repair| repair.left.is_empty())
    }
}

impl Repair {
    pub(super) fn new(output: &Path, aside: Option<&Path>, steps: &[Step], left: &Diagnosis) -> Repair {
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let steps = steps.iter().map(|step| StepFact {
            kind: step.kind.name(),
            line: step.line,
            entry: step.entry.clone(),
            message: step.kind.words(),
        });
        let problems = left.problems.iter().map(|problem| problem.message.clone());
        let faults = left.faults.iter().map(|fault| fault.message.clone());
        Repair {
            output: text(output),
            aside: aside.map(text),
            steps: steps.collect(),
            left: problems.chain(faults).collect(),
        }
    }
}

/// What is wrong with a session and the context of `branch`.
pub(super) fn diagnosis(
    file: &SessionFile,
    branch: &Branch<'_>,
    mut problems: Vec<Problem>,
    elsewhere: Option<String>,
) -> Diagnosis {
    let session = branch.session;
    let sequence = branch.effective();
    problems.extend(sequence.problem.clone());
    problems.sort_by_key(|problem| (problem.offset, problem.kind));
    let (faults, notes): (Vec<_>, Vec<_>) = validate(&sequence)
        .into_iter()
        .map(|finding| {
            let line = session.entry(finding.entry).span.line;
            let (entry, call) = (session.id(finding.entry), session.name(finding.call));
            let fact = FindingFact {
                kind: finding.kind.name(),
                line,
                entry: entry.to_owned(),
                call: call.to_owned(),
                message: format!(
                    "line {line}: {} (entry {}, call {})",
                    finding.kind,
                    shown(entry),
                    shown(call)
                ),
                remedy: words::of_finding(finding.kind),
            };
            (finding.kind.is_fault(), fact)
        })
        .partition(|(is_fault, _)| *is_fault);
    let facts = |list: Vec<(bool, FindingFact)>| list.into_iter().map(|(_, fact)| fact).collect();
    let problems: Vec<ProblemFact> = problems.iter().map(problem_fact).collect();
    Diagnosis {
        healthy: problems.is_empty() && faults.is_empty(),
        problems,
        faults: facts(faults),
        notes: facts(notes),
        warnings: elsewhere.into_iter().collect(),
        entries: session.entries.len() as u64,
        branch_entries: branch.entries.len() as u64,
        repair: None,
        name: named(&file.path),
    }
}

/// A file without a header.
pub(super) fn no_session(file: &SessionFile, error: &NotASession) -> Diagnosis {
    let problem = ProblemFact {
        kind: "no_header",
        line: 1,
        offset: 0,
        entry: None,
        message: error.to_string(),
        unreachable: 0,
        effect: "no agent opens the file, and sesstool never writes to it",
        remedy: "--repair makes a header, if the file holds entries",
    };
    Diagnosis {
        healthy: false,
        problems: vec![problem],
        faults: Vec::new(),
        notes: Vec::new(),
        warnings: Vec::new(),
        entries: 0,
        branch_entries: 0,
        repair: None,
        name: named(&file.path),
    }
}

fn problem_fact(problem: &Problem) -> ProblemFact {
    let (effect, remedy) = words::of_problem(problem.kind);
    ProblemFact {
        kind: problem.kind.name(),
        line: problem.line,
        offset: problem.offset,
        entry: problem.entry.clone(),
        message: problem.to_string(),
        unreachable: problem.unreachable,
        effect,
        remedy,
    }
}

/// Prints the first of each kind, and how many more there are.
struct Few<'a> {
    n: BTreeMap<&'static str, u64>,
    out: &'a mut dyn Write,
}

impl Few<'_> {
    fn item(&mut self, kind: &'static str, lines: &[&str]) -> io::Result<()> {
        let n = self.n.entry(kind).or_default();
        *n += 1;
        if *n > SHOWN as u64 {
            return Ok(());
        }
        for (at, line) in lines.iter().enumerate() {
            let indent = if at == 0 { "  " } else { "      " };
            writeln!(self.out, "{indent}{}", shown(line))?;
        }
        Ok(())
    }

    fn rest(self) -> io::Result<()> {
        for (kind, n) in self.n {
            if n > SHOWN as u64 {
                writeln!(self.out, "  … and {} more of {kind}", n - SHOWN as u64)?;
            }
        }
        Ok(())
    }
}

impl Facts for Diagnosis {
    fn write_text(&self, out: &mut dyn Write, paint: Paint) -> io::Result<()> {
        let name = paint.bold(shown(&self.name)).to_string();
        let n_wrong = (self.problems.len() + self.faults.len()) as u64;
        if self.healthy {
            writeln!(out, "{name}: nothing is wrong")?;
        } else {
            writeln!(
                out,
                "{name}: {}, {}; {} of {} on the branch",
                count(self.problems.len() as u64, "problem"),
                count(self.faults.len() as u64, "fault"),
                self.branch_entries,
                count(self.entries, "entry"),
            )?;
        }
        let mut few = Few { n: BTreeMap::new(), out };
        for problem in &self.problems {
            let effect = format!("effect: {}", problem.effect);
            let remedy = format!("remedy: {}", problem.remedy);
            few.item(problem.kind, &[&problem.message, &effect, &remedy])?;
        }
        for fault in &self.faults {
            let effect = "effect: a provider refuses the context";
            let remedy = format!("remedy: {}", fault.remedy);
            few.item(fault.kind, &[&fault.message, effect, &remedy])?;
        }
        for note in &self.notes {
            few.item(note.kind, &[&format!("note: {}", note.message)])?;
        }
        for warning in &self.warnings {
            few.item("warning", &[&format!("note: {warning}")])?;
        }
        few.rest()?;
        let Some(repair) = &self.repair else { return Ok(()) };
        writeln!(out, "  repaired copy: {}", shown(&repair.output))?;
        if let Some(aside) = &repair.aside {
            writeln!(out, "  set aside: {}", shown(aside))?;
        }
        let mut few = Few { n: BTreeMap::new(), out };
        for step in &repair.steps {
            let line = if step.line > 0 { format!("line {}: ", step.line) } else { String::new() };
            let entry = step.entry.as_ref().map_or_else(String::new, |entry| format!(" (entry {entry})"));
            few.item(step.kind, &[&format!("{line}{}{entry}", step.message)])?;
        }
        for left in &repair.left {
            few.item("left", &[&format!("left: {left}")])?;
        }
        few.rest()?;
        let n_left = repair.left.len() as u64;
        match n_left {
            0 => writeln!(out, "  all {} repaired", count(n_wrong, "problem")),
            n => writeln!(out, "  {} left", count(n, "problem")),
        }
    }
}

//! `sesstool prune`: old tool results are blanked.

use std::collections::BTreeMap;
use std::io::{self, Write};

use clap::Args;
use pruning::apply::context_edits;
use pruning::plan::{PrunePlan, Verdict};
use pruning::settings::PruneSettings;
use schemars::JsonSchema;
use serde::Serialize;
use session_model::branch::Branch;
use session_model::dialect::Dialect;
use session_model::entry::EntryNo;
use session_model::sequence::Sequence;
use session_model::session::Session;
use session_model::text::shown;
use session_model::value::Value;

use crate::app::App;
use crate::args::{PathArgs, SkipArgs};
use crate::batch::Worker;
use crate::discover::{Stdin, Without, discover};
use crate::exit::{CommandError, Status};
use crate::figures::{bytes, count, grouped};
use crate::printer::Paint;
use crate::prune_bytes::prune_bytes;
use crate::report::{Facts, Outcome, Reporter, Skipped};
use crate::session_file::{Loaded, ReadOptions, SessionFile};
use crate::settings::PruneFlags;
use crate::write::{self, Change, WriteArgs, WriteReport};
use crate::written::WriteFacts;
use crate::{batch, leaf, stamp};

/// Blank old tool results, so that the context shrinks without a summary
///
/// The newest tool output stays, and so do all results of protected tools. Nothing is done unless it saves enough.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sesstool prune -n session.jsonl            what would be blanked
  sesstool prune session.jsonl               the old file stays as session.jsonl.bak
  sesstool prune --protect 10000 --min-savings 0 ~/.pi/agent/sessions")]
pub struct PruneArgs {
    #[command(flatten)]
    paths: PathArgs,
    /// Append context edits instead of changing lines; for files of pi
    #[arg(long)]
    append_only: bool,
    /// The branch to prune, by its last entry [default: the last entry of the file]
    #[arg(long, value_name = "ID")]
    leaf: Option<String>,
    #[command(flatten)]
    prune: PruneFlags,
    #[command(flatten)]
    write: WriteArgs,
    #[command(flatten)]
    skip: SkipArgs,
}

/// Width of the first column of the text.
const WIDTH: usize = 16;

/// What pruning did, or would do.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Prune {
    /// Whether nothing was written because of --dry-run.
    pub dry_run: bool,
    /// Tool results that were blanked, or would be, oldest first.
    pub blanked: Vec<Blanked>,
    /// Estimated tokens that all candidates save, blanked or not.
    pub tokens_saved: u64,
    /// Bytes that the file shrinks by; negative if it grows. Absent where nothing was changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_saved: Option<i64>,
    /// Tokens that must be saved.
    pub minimum_savings: u64,
    /// Results that stay, and their tokens, by reason: `recent`, `protected_tool`, `pruned`, `edited`, `small`.
    pub stays: BTreeMap<&'static str, Stays>,
    /// Tokens of the provider's prompt cache that the next request pays for again: all behind the first change.
    pub uncached_tokens: u64,
    /// Where it was written, and what there is to say of it.
    #[serde(flatten)]
    pub written: WriteFacts,
    /// The session as it was named, for the text.
    #[serde(skip)]
    pub name: String,
}

/// A tool result that is blanked.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Blanked {
    /// The entry.
    pub id: String,
    /// The tool.
    pub tool: String,
    /// Estimated tokens before.
    pub tokens: u64,
    /// Estimated tokens saved.
    pub saves: u64,
}

/// Results that stay for one reason.
#[derive(Clone, Copy, Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Stays {
    /// How many.
    pub results: usize,
    /// Their estimated tokens.
    pub tokens: u64,
}

impl Facts for Prune {
    fn write_text(&self, out: &mut dyn Write, paint: Paint) -> io::Result<()> {
        let name = paint.bold(shown(&self.name)).to_string();
        let results = count(self.blanked.len() as u64, "tool result");
        if self.blanked.is_empty() {
            writeln!(
                out,
                "{name}: nothing to prune; {} could be saved, {} are wanted",
                count(self.tokens_saved, "token"),
                grouped(self.minimum_savings)
            )?;
        } else {
            let done = if self.dry_run { "would blank" } else { "blanked" };
            write!(out, "{name}: {done} {results}, about {} saved", count(self.tokens_saved, "token"))?;
            match self.bytes_saved {
                Some(saved) if saved > 0 => writeln!(out, ", {}", bytes(saved.unsigned_abs()))?,
                _ => writeln!(out)?,
            }
            let mut tools: BTreeMap<&str, Stays> = BTreeMap::new();
            for blanked in &self.blanked {
                let of_tool = tools.entry(&blanked.tool).or_default();
                of_tool.results += 1;
                of_tool.tokens += blanked.tokens;
            }
            for (tool, of_tool) in tools {
                let tokens = count(of_tool.tokens, "token");
                writeln!(out, "  {:16} {:>5} {tokens}", shown(tool), of_tool.results)?;
            }
            let again = count(self.uncached_tokens, "token");
            writeln!(out, "  cache            the next request pays for {again} again")?;
        }
        for (reason, stays) in &self.stays {
            let tokens = count(stays.tokens, "token");
            writeln!(out, "  stay: {reason:15} {:>5} {tokens}", stays.results)?;
        }
        self.written.write_files(out, WIDTH)?;
        self.written.write_warnings(out, paint, WIDTH)
    }
}

/// Runs the command.
///
/// # Errors
/// Wrong usage or settings, or standard output cannot be written.
pub fn run(app: &App, args: &PruneArgs) -> Result<Status, CommandError> {
    let settings = app.settings(&[&args.prune])?;
    let without = if args.write.dry_run { Without::All } else { Without::Nothing };
    let stdin =
        if args.write.dry_run || args.write.output.is_some() { Stdin::Allowed } else { Stdin::Refused };
    let items = discover(app, &args.paths, stdin, without)?;
    args.write.check(items.len())?;
    let work = Work {
        app,
        args,
        settings: settings.prune(),
        read: app.read_options(&settings),
        now_ms: stamp::now_ms(&app.env)?,
    };
    let mut reporter = Reporter::new(app, false);
    batch::map(
        app,
        &items,
        |file, worker| work.one(file, worker),
        |item, result| reporter.take(item, result),
    )?;
    Ok(reporter.status(args.skip.fail_on_skip))
}

struct Work<'a> {
    app: &'a App,
    args: &'a PruneArgs,
    settings: PruneSettings,
    read: ReadOptions,
    now_ms: i64,
}

impl Work<'_> {
    fn one(&self, file: &SessionFile, worker: &Worker<'_>) -> Result<Outcome<Prune>, CommandError> {
        if self.args.write.dry_run {
            let (session, _, _) = file.index(self.read, worker)?;
            let branch = self.branch(file, &session)?;
            self.check_dialect(file, &session)?;
            let plan = pruning::plan(&branch.effective(), &self.settings);
            return Ok(self.outcome(file, &session, &branch, &plan, None));
        }
        write::until_unchanged(|| self.attempt(file, worker))
    }

    fn branch<'s>(&self, file: &SessionFile, session: &'s Session) -> Result<Branch<'s>, CommandError> {
        let branch = leaf::branch(&file.path, session, self.args.leaf.as_deref())?;
        if self.args.leaf.is_none()
            && let Some(note) = leaf::elsewhere(session, &branch)
        {
            self.app.printer.warn(&format!("{}: {note}", file.path.display()));
        }
        Ok(branch)
    }

    fn check_dialect(&self, file: &SessionFile, session: &Session) -> Result<(), CommandError> {
        if self.args.append_only && session.dialect == Dialect::OhMyPi {
            return Err(CommandError::in_file(&file.path, "oh-my-pi does not know context edits")
                .hint("prune it without --append-only; the old file stays as a backup"));
        }
        Ok(())
    }

    fn attempt(&self, file: &SessionFile, worker: &Worker<'_>) -> Result<Outcome<Prune>, CommandError> {
        if !self.args.write.leaves_input_alone() {
            write::settle(self.app, file, self.now_ms)?;
        }
        let loaded = file.load(self.read, worker)?;
        let branch = self.branch(file, &loaded.session)?;
        self.check_dialect(file, &loaded.session)?;
        let plan = pruning::plan(&branch.effective(), &self.settings);
        if !plan.is_worth_it {
            return Ok(self.outcome(file, &loaded.session, &branch, &plan, None));
        }
        if worker.is_cancelled() {
            return Err(CommandError::interrupted());
        }
        let written = if self.args.append_only {
            self.append_edits(file, &loaded, &branch, &plan)?
        } else {
            self.replace(file, &loaded, &branch, &plan)?
        };
        Ok(self.outcome(file, &loaded.session, &branch, &plan, Some(written)))
    }

    fn replace(
        &self,
        file: &SessionFile,
        loaded: &Loaded,
        branch: &Branch<'_>,
        plan: &PrunePlan,
    ) -> Result<(WriteReport, i64), CommandError> {
        let pruned = prune_bytes(file, loaded, branch, plan, self.now_ms, self.read)?;
        let saved = loaded.bytes.len() as i64 - pruned.bytes.len() as i64;
        let change = self.change(&[]);
        let mut report =
            write::put(file, loaded, |out| out.write_all(&pruned.bytes), change, &self.args.write)?;
        report.warnings.extend(write::rewrite_reason(&loaded.session, branch));
        Ok((report, saved))
    }

    fn append_edits(
        &self,
        file: &SessionFile,
        loaded: &Loaded,
        branch: &Branch<'_>,
        plan: &PrunePlan,
    ) -> Result<(WriteReport, i64), CommandError> {
        let edits = context_edits(&loaded.session, plan, branch.leaf(), self.now_ms);
        let records: Vec<String> = edits.iter().map(Value::to_json).collect();
        let records: Vec<&str> = records.iter().map(String::as_str).collect();
        let grown: usize = records.iter().map(|record| record.len() + 1).sum();
        let report = write::add_records(file, loaded, branch, self.change(&records), &self.args.write)?;
        Ok((report, -(grown as i64)))
    }

    fn change<'c>(&self, records: &'c [&'c str]) -> Change<'c> {
        Change { command: "prune", time_ms: self.now_ms, records }
    }

    fn outcome(
        &self,
        file: &SessionFile,
        session: &Session,
        branch: &Branch<'_>,
        plan: &PrunePlan,
        written: Option<(WriteReport, i64)>,
    ) -> Outcome<Prune> {
        let (report, saved) =
            written.map_or((WriteReport::default(), None), |(report, saved)| (report, Some(saved)));
        let mut facts = Prune {
            dry_run: self.args.write.dry_run,
            blanked: blanked(session, plan),
            tokens_saved: plan.savings,
            bytes_saved: saved,
            minimum_savings: self.settings.minimum_savings,
            stays: stays(plan),
            uncached_tokens: uncached(&branch.effective(), plan),
            written: WriteFacts::default(),
            name: crate::report::named(&file.path),
        };
        facts.written.take(report, file);
        if plan.is_worth_it {
            return Outcome::Done(facts);
        }
        let message = format!(
            "nothing to prune: {} could be saved, at least {} are wanted",
            count(plan.savings, "token"),
            grouped(self.settings.minimum_savings)
        );
        // In a dry run the user asked what is what.
        let facts = (self.args.write.dry_run || self.app.globals.json).then_some(facts);
        Outcome::Skipped(Skipped { reason: "nothing_to_prune", message, facts })
    }
}

fn blanked(session: &Session, plan: &PrunePlan) -> Vec<Blanked> {
    plan.candidates()
        .map(|result| Blanked {
            id: session.id(result.entry).to_owned(),
            tool: result.tool.map_or("", |tool| session.name(tool)).to_owned(),
            tokens: result.estimate,
            saves: result.verdict.savings(),
        })
        .collect()
}

fn stays(plan: &PrunePlan) -> BTreeMap<&'static str, Stays> {
    let mut stays: BTreeMap<&'static str, Stays> = BTreeMap::new();
    for result in &plan.results {
        if plan.is_worth_it && matches!(result.verdict, Verdict::Candidate { .. }) {
            continue;
        }
        let of_reason = stays.entry(result.verdict.name()).or_default();
        of_reason.results += 1;
        of_reason.tokens += result.estimate;
    }
    stays
}

/// Tokens of the context behind the first blanked result, it included, as they are after pruning.
fn uncached(sequence: &Sequence<'_>, plan: &PrunePlan) -> u64 {
    let blanked: BTreeMap<EntryNo, u64> =
        plan.candidates().map(|result| (result.entry, result.verdict.savings())).collect();
    let context = sequence.items.iter().filter(|item| sequence.reaches_model(item));
    context
        .skip_while(|item| !blanked.contains_key(&item.entry))
        .map(|item| item.estimate - blanked.get(&item.entry).copied().unwrap_or(0))
        .sum()
}

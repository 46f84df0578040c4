//! What is reported of a compaction, as text and as JSON.

use std::io::{self, Write};

use schemars::JsonSchema;
use serde::Serialize;
use session_model::text::shown;

use crate::figures::{count, grouped};
use crate::printer::Paint;
use crate::report::Facts;
use crate::written::WriteFacts;

/// Width of the first column of the text, in the reports of branches too.
pub(crate) const WIDTH: usize = 11;

/// What was done to a session.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Maintenance {
    /// It was compacted, perhaps after pruning.
    Compacted(Box<Compaction>),
    /// It was pruned, and that was enough.
    Pruned(PrunedOnly),
}

impl Facts for Maintenance {
    fn write_text(&self, out: &mut dyn Write, paint: Paint) -> io::Result<()> {
        match self {
            Maintenance::Compacted(compaction) => compaction.write_text(out, paint),
            Maintenance::Pruned(pruned) => pruned.write_text(out, paint),
        }
    }
}

/// What automatic maintenance did where pruning was enough.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PrunedOnly {
    /// Whether nothing was written because of --dry-run.
    pub dry_run: bool,
    /// What was pruned.
    pub pruned: PrunedFacts,
    /// Tokens of the context after.
    pub context_tokens: u64,
    /// Where it was written, and what there is to say of it.
    #[serde(flatten)]
    pub written: WriteFacts,
    /// The session as it was named, for the text.
    #[serde(skip)]
    pub name: String,
}

impl PrunedOnly {
    fn write_text(&self, out: &mut dyn Write, paint: Paint) -> io::Result<()> {
        let done = if self.dry_run { "would prune" } else { "pruned" };
        writeln!(
            out,
            "{}: {done} {}, {} saved; {} left, no compaction due",
            paint.bold(shown(&self.name)),
            count(self.pruned.results as u64, "tool result"),
            count(self.pruned.tokens_saved, "token"),
            grouped(self.context_tokens),
        )?;
        self.written.write_files(out, WIDTH)?;
        self.written.write_warnings(out, paint, WIDTH)
    }
}

/// What a compaction did, or would do.
#[derive(Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Compaction {
    /// Why it was made: `manual`, `overflow`, `threshold`, `idle`.
    pub trigger: &'static str,
    /// Whether nothing was written because of --dry-run.
    pub dry_run: bool,
    /// Id of the new entry; absent in a dry run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entry_id: Option<String>,
    /// The entry that the kept tail begins with.
    pub first_kept_entry_id: String,
    /// Tokens of the context before: measured where that is known, else estimated.
    pub tokens_before: u64,
    /// Whether `tokensBefore` rests on what a provider counted.
    pub is_measured: bool,
    /// Estimated tokens of the context before.
    pub estimate_before: u64,
    /// Estimated tokens of the context after; absent in a dry run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimate_after: Option<u64>,
    /// Estimated tokens of the new summary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary_tokens: Option<u64>,
    /// A few sentences.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub short_summary: Option<String>,
    /// Messages summarised as history.
    pub history_messages: usize,
    /// Messages summarised as the first part of a split turn.
    pub turn_prefix_messages: usize,
    /// Messages kept.
    pub kept_messages: usize,
    /// Estimated tokens of the kept messages.
    pub kept_tokens: u64,
    /// Bytes of the records of the kept messages.
    pub kept_bytes: u64,
    /// Bytes of images in the kept messages.
    pub kept_image_bytes: u64,
    /// Whether the cut splits a turn.
    pub is_split_turn: bool,
    /// Files read and not changed.
    pub files_read: usize,
    /// Files changed.
    pub files_modified: usize,
    /// Who summarised, or would.
    pub summarizer: String,
    /// Requests to models, or how many there would be.
    pub requests: Vec<RequestFacts>,
    /// US dollars for the requests that were made, where the prices are known; in a dry run an estimate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub price: Option<f64>,
    /// Tool results blanked before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pruned: Option<PrunedFacts>,
    /// Whether the caller should send the last request again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub will_retry: Option<bool>,
    /// What the agent is asked after an automatic compaction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub continue_prompt: Option<String>,
    /// Where it was written, and what there is to say of it.
    #[serde(flatten)]
    pub written: WriteFacts,
    /// With --explain: the entries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explanation: Option<Explanation>,
    /// The session as it was named, for the text.
    #[serde(skip)]
    pub name: String,
}

/// One request to a model.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RequestFacts {
    /// What it was for: `history`, `turn_prefix`, `short`, `branch`.
    pub kind: &'static str,
    /// Who answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Estimated tokens of the request.
    pub estimated_prompt_tokens: u64,
    /// Prompt tokens as the provider counted them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt_tokens: Option<u64>,
    /// Answer tokens as the provider counted them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// Attempts that failed before.
    pub failures: Vec<String>,
}

impl RequestFacts {
    /// Writes what requests used and cost in one line, none if there are none; in a dry run the cost is an estimate.
    pub(crate) fn write_all(
        requests: &[RequestFacts],
        price: Option<f64>,
        dry_run: bool,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        if requests.is_empty() {
            return Ok(());
        }
        let sum = |of: fn(&RequestFacts) -> u64| requests.iter().map(of).sum::<u64>();
        let counted = sum(|request| request.prompt_tokens.unwrap_or(0));
        let prompt = if counted > 0 { counted } else { sum(|request| request.estimated_prompt_tokens) };
        let n_requests = count(requests.len() as u64, "request");
        write!(out, "  {:WIDTH$} {n_requests}, {} in", "models", grouped(prompt))?;
        if counted > 0 {
            write!(out, ", {} out", grouped(sum(|request| request.output_tokens.unwrap_or(0))))?;
        }
        if let Some(price) = price {
            write!(out, ", {}${price:.4}", if dry_run { "about " } else { "" })?;
        }
        writeln!(out)
    }

    /// A request that would be made.
    pub(crate) fn planned(request: crate::fold_estimate::EstimatedRequest) -> RequestFacts {
        RequestFacts {
            kind: request.kind.name(),
            model: None,
            estimated_prompt_tokens: request.prompt,
            prompt_tokens: None,
            output_tokens: None,
            failures: Vec::new(),
        }
    }
}

/// What pruning did before the compaction.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PrunedFacts {
    /// Tool results that were blanked.
    pub results: usize,
    /// Estimated tokens saved.
    pub tokens_saved: u64,
}

/// The entries of each part, by id.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    /// Tokens that the kept tail was cut for.
    pub keep_budget: u64,
    /// Summarised as history.
    pub history: Vec<ExplainedEntry>,
    /// Summarised as the first part of a split turn.
    pub turn_prefix: Vec<ExplainedEntry>,
    /// Kept.
    pub kept: Vec<ExplainedEntry>,
}

/// A message and what it costs.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExplainedEntry {
    /// The entry.
    pub id: String,
    /// The message's role.
    pub role: &'static str,
    /// Estimated tokens.
    pub tokens: u64,
}

impl Compaction {
    fn write_text(&self, out: &mut dyn Write, paint: Paint) -> io::Result<()> {
        let name = shown(&self.name);
        let done = if self.dry_run { "would compact" } else { "compacted" };
        let about = if self.is_measured { "" } else { "about " };
        write!(out, "{}: {done} {about}{}", paint.bold(name), count(self.tokens_before, "token"))?;
        match (self.estimate_after, self.dry_run) {
            (Some(after), _) if !self.is_measured => writeln!(out, " to about {}", grouped(after))?,
            (Some(after), _) => writeln!(
                out,
                "; estimated {} before, {} after",
                grouped(self.estimate_before),
                grouped(after)
            )?,
            (None, _) => writeln!(out, "; about {} stay verbatim", grouped(self.kept_tokens))?,
        }
        let messages = |n: usize| count(n as u64, "message");
        let verb = if self.dry_run { "summarise" } else { "summarised" };
        write!(out, "  {verb:11} {}", messages(self.history_messages + self.turn_prefix_messages))?;
        if self.is_split_turn {
            write!(out, ", {} of them the first part of a turn", self.turn_prefix_messages)?;
        }
        if let Some(tokens) = self.summary_tokens {
            write!(out, ", in {}", count(tokens, "token"))?;
        }
        writeln!(out, ", by {}", shown(&self.summarizer))?;
        writeln!(
            out,
            "  {:11} {} from {}, about {}, {}",
            if self.dry_run { "keep" } else { "kept" },
            messages(self.kept_messages),
            self.first_kept_entry_id,
            count(self.kept_tokens, "token"),
            crate::figures::bytes(self.kept_bytes),
        )?;
        if self.kept_image_bytes > 0 {
            writeln!(out, "  {:11} {} of them", "images", crate::figures::bytes(self.kept_image_bytes))?;
        }
        if self.files_read + self.files_modified > 0 {
            writeln!(out, "  {:11} {} modified, {} read", "files", self.files_modified, self.files_read)?;
        }
        if let Some(pruned) = &self.pruned {
            let results = count(pruned.results as u64, "tool result");
            writeln!(out, "  {:11} {results}, {} saved", "pruned", count(pruned.tokens_saved, "token"))?;
        }
        RequestFacts::write_all(&self.requests, self.price, self.dry_run, out)?;
        if let Some(short) = &self.short_summary {
            writeln!(out, "  {:11} {}", "in short", shown(short))?;
        }
        if let Some(explanation) = &self.explanation {
            explanation.write_text(out, paint)?;
        }
        self.written.write_files(out, WIDTH)?;
        if self.will_retry == Some(true) {
            writeln!(out, "  {:11} send the last request again", "next")?;
        }
        if let Some(prompt) = &self.continue_prompt {
            writeln!(out, "  {:11} {}", "continue", shown(prompt))?;
        }
        self.written.write_warnings(out, paint, WIDTH)
    }
}

impl Explanation {
    fn write_text(&self, out: &mut dyn Write, paint: Paint) -> io::Result<()> {
        writeln!(out, "  {:11} {}", "budget", count(self.keep_budget, "token"))?;
        let parts = [("history", &self.history), ("turn prefix", &self.turn_prefix), ("kept", &self.kept)];
        for (name, entries) in parts.iter().filter(|(_, entries)| !entries.is_empty()) {
            let tokens = entries.iter().map(|entry| entry.tokens).sum();
            writeln!(out, "  {}", paint.bold(format!("{name}: {}", count(tokens, "token"))))?;
            for entry in *entries {
                writeln!(out, "    {:10} {:17} {:>9}", shown(&entry.id), entry.role, grouped(entry.tokens))?;
            }
        }
        Ok(())
    }
}

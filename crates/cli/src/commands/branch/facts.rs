//! What is reported of a branch that was left, as text and as JSON.

use std::io::{self, Write};

use schemars::JsonSchema;
use serde::Serialize;
use session_model::text::shown;

use crate::commands::compact::{RequestFacts, WIDTH};
use crate::figures::count;
use crate::printer::Paint;
use crate::report::Facts;
use crate::written::WriteFacts;

/// What leaving a branch did, or would do.
#[derive(Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Branching {
    /// Whether nothing was written because of --dry-run.
    pub dry_run: bool,
    /// The leaf that was left.
    pub old_leaf_id: Option<String>,
    /// The entry that the session goes on from; null at the root.
    pub new_leaf_id: Option<String>,
    /// The deepest entry on both branches; null if they have different roots.
    pub common_ancestor_id: Option<String>,
    /// Entries left behind.
    pub abandoned_entries: usize,
    /// Messages that the summary is made of.
    pub summarized_messages: usize,
    /// Id of the summary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary_entry_id: Option<String>,
    /// The summary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// Its estimated tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary_tokens: Option<u64>,
    /// Who summarised, or would.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summarizer: Option<String>,
    /// Requests to models, or how many there would be.
    pub requests: Vec<RequestFacts>,
    /// US dollars for them, where the prices are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub price: Option<f64>,
    /// Id of the label entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label_entry_id: Option<String>,
    /// Text of the message that was gone to, for editing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Where it was written, and what there is to say of it.
    #[serde(flatten)]
    pub written: WriteFacts,
    /// The session as it was named, for the text.
    #[serde(skip)]
    pub name: String,
}

impl Facts for Branching {
    fn write_text(&self, out: &mut dyn Write, paint: Paint) -> io::Result<()> {
        let id =
            |id: &Option<String>| id.as_deref().map_or("the root".to_owned(), |id| shown(id).into_owned());
        let verb = if self.dry_run { "would leave" } else { "left" };
        writeln!(
            out,
            "{}: {verb} {} for {}; {} behind",
            paint.bold(shown(&self.name)),
            id(&self.old_leaf_id),
            id(&self.new_leaf_id),
            count(self.abandoned_entries as u64, "entry")
        )?;
        if let Some(summarizer) = &self.summarizer {
            write!(out, "  {:11} {}", "summarised", count(self.summarized_messages as u64, "message"))?;
            if let Some(tokens) = self.summary_tokens {
                write!(out, ", in {}", count(tokens, "token"))?;
            }
            writeln!(out, ", by {}", shown(summarizer))?;
        }
        RequestFacts::write_all(&self.requests, self.price, self.dry_run, out)?;
        for (name, value) in [("summary", &self.summary_entry_id), ("label", &self.label_entry_id)] {
            if let Some(value) = value {
                writeln!(out, "  {name:WIDTH$} {}", shown(value))?;
            }
        }
        self.written.write_files(out, WIDTH)?;
        self.written.write_warnings(out, paint, WIDTH)?;
        if let Some(text) = &self.text {
            writeln!(
                out,
                "\n{}",
                text.lines().map(|line| shown(line).into_owned()).collect::<Vec<_>>().join("\n")
            )?;
        }
        Ok(())
    }
}

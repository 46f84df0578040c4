//! The facts of one session for a person.

use std::io::{self, Write};

use session_model::text::shown;

use super::facts::{Inspection, NextCompaction};
use super::tree;
use crate::figures::{bytes, count, grouped};
use crate::printer::Paint;
use crate::report::Facts;
use crate::table::Table;

/// Lines of a list that can be long; `--json` has all.
const LIST: usize = 12;

impl Facts for Inspection {
    fn write_text(&self, out: &mut dyn Write, paint: Paint) -> io::Result<()> {
        if let Some(lines) = &self.tree_lines {
            return tree::write(lines, out, paint);
        }
        self.head(out, paint)?;
        self.messages(out, paint)?;
        self.branches(out, paint)?;
        self.context(out, paint)?;
        self.faults(out, paint)
    }
}

impl Inspection {
    fn head(&self, out: &mut dyn Write, paint: Paint) -> io::Result<()> {
        let mut line = |name: &str, value: &str| {
            writeln!(out, "{} {}", paint.bold(format_args!("{name:<10}")), shown(value))
        };
        line("session", &self.id)?;
        if let Some(title) = &self.title {
            line("title", title)?;
        }
        if let Some(cwd) = &self.cwd {
            line("directory", cwd)?;
        }
        if let Some(parent) = &self.parent_session {
            line("forked from", parent)?;
        }
        let agent = if self.dialect == "pi" { "pi" } else { "oh-my-pi" };
        line("agent", &format!("{agent}, version {}", self.version))?;
        let times = [("began", &self.began), ("newest", &self.newest_entry)];
        for (name, time) in times.into_iter().filter_map(|(name, time)| Some((name, time.as_ref()?))) {
            line(name, time)?;
        }
        line(
            "file",
            &format!(
                "{}, {}, {}",
                bytes(self.bytes),
                count(self.lines, "line"),
                count(self.entries, "entry")
            ),
        )?;
        let kinds = self.entry_types.iter().map(|(kind, number)| format!("{} {kind}", grouped(*number)));
        if !self.entry_types.is_empty() {
            line("entries", &kinds.collect::<Vec<_>>().join(", "))?;
        }
        Ok(())
    }

    fn messages(&self, out: &mut dyn Write, paint: Paint) -> io::Result<()> {
        if !self.messages.is_empty() {
            writeln!(out)?;
            let mut table = Table::new(&["messages", ">number", ">tokens", ">bytes"]);
            for it in &self.messages {
                table.row([it.role.to_owned(), grouped(it.number), grouped(it.tokens), bytes(it.bytes)]);
            }
            table.write(out, paint)?;
        }
        if !self.tools.is_empty() {
            writeln!(out)?;
            let mut table =
                Table::new(&["tools", ">calls", ">results", ">errors", ">pruned", ">tokens", ">bytes"]);
            for it in self.tools.iter().take(LIST) {
                let numbers = [it.calls, it.results, it.errors, it.pruned, it.tokens].map(grouped);
                table.row([it.tool.clone()].into_iter().chain(numbers).chain([bytes(it.bytes)]));
            }
            table.write(out, paint)?;
            more(out, paint, self.tools.len(), "more tool")?;
        }
        if !self.models.is_empty() {
            writeln!(out)?;
            let mut table = Table::new(&[
                "models",
                ">answers",
                ">failed",
                ">input",
                ">cached",
                ">cache write",
                ">output",
            ]);
            for it in self.models.iter().take(LIST) {
                let numbers = [it.answers, it.failures, it.input, it.cache_read, it.cache_write, it.output]
                    .map(grouped);
                table.row([it.model.clone()].into_iter().chain(numbers));
            }
            table.write(out, paint)?;
            more(out, paint, self.models.len(), "more model")?;
        }
        Ok(())
    }

    fn branches(&self, out: &mut dyn Write, paint: Paint) -> io::Result<()> {
        if self.leaves.len() > 1 || self.newest_message_leaf.is_some() {
            writeln!(out)?;
            let mut table = Table::new(&["leaves", ">entries", "time", "what", "label"]);
            for it in self.leaves.iter().rev().take(LIST) {
                let mark = if it.is_default { " *" } else { "" };
                table.row([
                    format!("{}{mark}", it.id),
                    grouped(it.entries),
                    it.time.clone().unwrap_or_default(),
                    it.what.to_owned(),
                    it.label.clone().unwrap_or_default(),
                ]);
            }
            table.write(out, paint)?;
            more(out, paint, self.leaves.len(), "more leaf")?;
            writeln!(out, "{}", paint.dim("* commands take this one unless --leaf names another"))?;
            if let Some(newest) = &self.newest_message_leaf {
                let note = format!(
                    "the newest message is on another branch; for that give --leaf {}",
                    shown(newest)
                );
                writeln!(out, "{} {note}", paint.notice("note:"))?;
            }
        }
        if !self.compactions.is_empty() {
            writeln!(out)?;
            let mut table = Table::new(&[
                "compactions",
                "time",
                ">tokens before",
                ">summary",
                ">kept entries",
                "kept from",
            ]);
            let skipped = self.compactions.len().saturating_sub(LIST);
            for it in &self.compactions[skipped..] {
                table.row([
                    it.id.clone(),
                    it.time.clone().unwrap_or_default(),
                    it.tokens_before.map_or_else(|| "-".to_owned(), |tokens| grouped(tokens as u64)),
                    grouped(it.summary_tokens),
                    grouped(it.kept_entries),
                    it.first_kept_entry_id.clone().unwrap_or_else(|| "-".to_owned()),
                ]);
            }
            table.write(out, paint)?;
            more(out, paint, self.compactions.len(), "earlier compaction")?;
        }
        Ok(())
    }

    fn context(&self, out: &mut dyn Write, paint: Paint) -> io::Result<()> {
        let it = &self.context;
        writeln!(out)?;
        let mut line =
            |name: &str, value: &str| writeln!(out, "{} {value}", paint.bold(format_args!("{name:<10}")));
        let messages = count(it.messages, "message");
        line(
            "context",
            &format!(
                "{messages} of {} on the branch, {}",
                count(it.branch_entries, "entry"),
                bytes(it.bytes)
            ),
        )?;
        let measured = match (&it.measured_tokens, &it.measured_at) {
            (Some(tokens), Some(at)) => {
                format!("{} measured at {}", grouped(*tokens as u64), shown(at))
            }
            _ => "no count of the provider that still holds".to_owned(),
        };
        line(
            "tokens",
            &format!("{}; {measured}, {} estimated", grouped(it.tokens), grouped(it.estimated_tokens)),
        )?;
        if let Some(model) = &it.model {
            let window = match it.window {
                Some(0) | None => "window not known".to_owned(),
                Some(window) => {
                    let percent = it.tokens.saturating_mul(100) / window;
                    format!("window of {}, {percent} % used", count(window, "token"))
                }
            };
            line("model", &format!("{}; {window}", shown(model)))?;
        }
        if it.images > 0 {
            line("images", &format!("{}, {}", count(it.images, "image"), bytes(it.image_bytes)))?;
        }
        if it.pruned_results > 0 {
            line("pruned", &count(it.pruned_results, "tool result"))?;
        }
        line("compact", &self.next_compaction.words())
    }

    fn faults(&self, out: &mut dyn Write, paint: Paint) -> io::Result<()> {
        if !self.problems.is_empty() {
            writeln!(out, "\n{}", paint.bold("problems"))?;
            for problem in self.problems.iter().take(LIST) {
                writeln!(out, "{}", shown(&problem.message))?;
            }
            more(out, paint, self.problems.len(), "more problem")?;
        }
        if !self.findings.is_empty() {
            writeln!(out, "\n{}", paint.bold("would a provider take the context?"))?;
            for finding in self.findings.iter().take(LIST) {
                let word = if finding.is_fault {
                    paint.alarm("fault:").to_string()
                } else {
                    paint.notice("note:").to_string()
                };
                let (entry, call) = (shown(&finding.entry), shown(&finding.call));
                writeln!(
                    out,
                    "{word} line {}: {} (entry {entry}, call {call})",
                    finding.line, finding.message
                )?;
            }
            more(out, paint, self.findings.len(), "more finding")?;
        }
        Ok(())
    }
}

impl NextCompaction {
    fn words(&self) -> String {
        let (Some(entry), Some(line)) = (&self.first_kept_entry_id, self.first_kept_line) else {
            return match self.skipped {
                Some("already_compacted") => "nothing new since the newest compaction".to_owned(),
                _ => "nothing to compact: all of it would be kept".to_owned(),
            };
        };
        let split = match self.turn_prefix_messages {
            0 => String::new(),
            prefix => format!(", {} of them from a turn that is split,", grouped(prefix)),
        };
        format!(
            "would summarise {} ({}){split} and keep {} ({}) from line {line}, entry {}",
            count(self.summarized_messages, "message"),
            count(self.summarized_tokens, "token"),
            count(self.kept_messages, "message"),
            count(self.kept_tokens, "token"),
            shown(entry),
        )
    }
}

/// Says how much of a list was not shown.
fn more(out: &mut dyn Write, paint: Paint, length: usize, noun: &str) -> io::Result<()> {
    match length.saturating_sub(LIST) {
        0 => Ok(()),
        rest => {
            writeln!(out, "{}", paint.dim(format_args!("… {}, see --json", count(rest as u64, noun))))
        }
    }
}

//! The tree of a session: all nodes for programs, folded lines for a person.

use std::collections::BTreeMap;
use std::io::{self, Write};

use schemars::JsonSchema;
use serde::Serialize;
use session_model::branch::Branch;
use session_model::entry::{EntryKind, EntryNo, Parent};
use session_model::message::Role;
use session_model::session::Session;
use session_model::text::shown;
use session_model::time::iso;

use super::gather::{Links, what};
use crate::figures::{self, count};
use crate::printer::Paint;

/// User messages that a chain shows at its start and at its end; what is between is folded.
const SHOWN_AT_ENDS: usize = 4;
/// Deeper branches are drawn at this depth, or a hostile file would be all indentation.
const DEEPEST: usize = 12;
/// Characters of a message that are shown.
const PREVIEW: usize = 72;

/// One entry in machine-readable output.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TreeNode {
    /// Its id.
    pub id: String,
    /// The entry that it hangs on; absent at a root.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_id: Option<String>,
    /// Its type.
    pub r#type: &'static str,
    /// The role of a message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<&'static str>,
    /// Its line in the file.
    pub line: u64,
    /// Its time, ISO 8601.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<String>,
    /// Tokens of what it gives the model, by estimate.
    pub tokens: u64,
    /// Its label.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// How a user message begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preview: Option<String>,
}

/// A line of the tree.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TreeLine {
    depth: usize,
    /// Whether it begins a side branch.
    begins: bool,
    text: String,
    /// Behind the text and less bright: id and time.
    note: String,
    weight: Weight,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Weight {
    Folded,
    Usual,
    Strong,
}

/// All entries, in the order of the file.
pub(super) fn nodes(session: &Session) -> Vec<TreeNode> {
    let labels = session.labels();
    let node = |number: EntryNo| {
        let entry = session.entry(number);
        TreeNode {
            id: session.id(number).to_owned(),
            parent_id: match entry.parent {
                Parent::Root => None,
                Parent::Entry(parent) => Some(session.id(parent).to_owned()),
                Parent::Missing(name) => Some(session.name(name).to_owned()),
            },
            r#type: entry.kind.wire(),
            role: entry.message().map(|message| message.role.wire()),
            line: entry.span.line,
            time: entry.time_ms().map(iso),
            tokens: entry.estimate,
            label: labels.get(&number).cloned(),
            preview: preview(session, number),
        }
    };
    (0..session.entries.len() as EntryNo).map(node).collect()
}

/// The tree, folded: users' messages, summaries, labels, branch points and leaves, and how much is between them.
pub(super) fn lines(branch: &Branch<'_>) -> Vec<TreeLine> {
    let session = branch.session;
    let links = Links::of(session);
    let labels = session.labels();
    let mut children: Vec<Vec<EntryNo>> = vec![Vec::new(); session.entries.len()];
    let mut open: Vec<(EntryNo, usize, bool)> = Vec::new();
    for number in 0..session.entries.len() as EntryNo {
        match session.entry(number).parent {
            Parent::Entry(parent) => children[parent as usize].push(number),
            Parent::Root | Parent::Missing(_) => open.push((number, 0, false)),
        }
    }
    open.reverse();
    let mut on_branch = vec![false; session.entries.len()];
    branch.entries.iter().for_each(|&entry| on_branch[entry as usize] = true);
    let mut drawn =
        Drawing { session, labels: &labels, links: &links, leaf: branch.leaf(), lines: Vec::new() };
    while let Some((start, depth, begins)) = open.pop() {
        let mut chain = vec![start];
        while let [only] = *children[chain[chain.len() - 1] as usize] {
            chain.push(only);
        }
        drawn.chain(&chain, depth, begins);
        let mut next = children[chain[chain.len() - 1] as usize].clone();
        // The branch that is looked at goes straight on, below the others.
        next.sort_by_key(|&child| on_branch[child as usize]);
        let straight = next.pop();
        open.extend(straight.map(|child| (child, depth, false)));
        open.extend(next.into_iter().rev().map(|child| (child, depth + 1, true)));
    }
    drawn.lines
}

struct Drawing<'a> {
    session: &'a Session,
    labels: &'a BTreeMap<EntryNo, String>,
    links: &'a Links,
    leaf: Option<EntryNo>,
    lines: Vec<TreeLine>,
}

impl Drawing<'_> {
    /// Entries that hang on each other without a branch.
    fn chain(&mut self, chain: &[EntryNo], depth: usize, begins: bool) {
        let users: Vec<usize> = (0..chain.len()).filter(|&at| self.is_user(chain[at])).collect();
        let is_long = users.len() > 2 * SHOWN_AT_ENDS + 1;
        let in_middle =
            |at: usize| is_long && users[SHOWN_AT_ENDS] <= at && at < users[users.len() - SHOWN_AT_ENDS];
        let first_line = self.lines.len();
        let mut folded: Vec<EntryNo> = Vec::new();
        for (at, &number) in chain.iter().enumerate() {
            let stands_out = self.stands_out(number) || at + 1 == chain.len();
            if stands_out || self.is_user(number) && !in_middle(at) {
                self.fold(&mut folded, depth);
                self.entry(number, depth);
            } else {
                folded.push(number);
            }
        }
        self.fold(&mut folded, depth);
        if let Some(line) = self.lines.get_mut(first_line) {
            line.begins = begins;
        }
    }

    fn is_user(&self, number: EntryNo) -> bool {
        self.session.entry(number).message().is_some_and(|message| message.role == Role::User)
    }

    fn stands_out(&self, number: EntryNo) -> bool {
        let kind = self.session.entry(number).kind;
        let stands_out =
            matches!(kind, EntryKind::Compaction | EntryKind::BranchSummary | EntryKind::ResetBoundary);
        stands_out
            || self.leaf == Some(number)
            || self.labels.contains_key(&number)
            || self.links.n_children[number as usize] != 1
    }

    fn fold(&mut self, folded: &mut Vec<EntryNo>, depth: usize) {
        if folded.is_empty() {
            return;
        }
        let tokens: u64 = folded.iter().map(|&number| self.session.entry(number).estimate).sum();
        let n_users = folded.iter().filter(|&&number| self.is_user(number)).count();
        let mut text = format!("… {}", count(folded.len() as u64, "entry"));
        if n_users > 0 {
            text.push_str(&format!(", {} of the user", count(n_users as u64, "message")));
        }
        if tokens > 0 {
            text.push_str(&format!(", {}", count(tokens, "token")));
        }
        folded.clear();
        self.lines.push(TreeLine { depth, begins: false, text, note: String::new(), weight: Weight::Folded });
    }

    fn entry(&mut self, number: EntryNo, depth: usize) {
        let session = self.session;
        let entry = session.entry(number);
        let mut text = what(session, number).to_owned();
        match (entry.kind, entry.compaction()) {
            (EntryKind::Compaction, Some(facts)) => {
                if let Some(before) = facts.tokens_before.filter(|before| *before > 0.0) {
                    text.push_str(&format!(" of {}", count(before as u64, "token")));
                }
                text.push_str(&format!(" to {}", figures::grouped(entry.estimate)));
            }
            _ => {
                if let Some(preview) = preview(session, number) {
                    text.push_str(&format!(" {}", shortened(&preview)));
                } else if let Some(tool) = entry.message().and_then(|message| message.tool) {
                    text.push_str(&format!(" {}", shown(session.name(tool))));
                }
            }
        }
        if let Some(label) = self.labels.get(&number) {
            text.push_str(&format!(" [{}]", shortened(label)));
        }
        let mut note = shown(session.id(number)).into_owned();
        if let Some(time_ms) = entry.time_ms() {
            note.push_str(&format!(" {}", figures::minute(time_ms)));
        }
        if self.leaf == Some(number) {
            note.push_str(" ← leaf");
        } else if self.links.n_children[number as usize] == 0 {
            note.push_str(" ← other leaf");
        }
        let weight = if self.stands_out(number) { Weight::Strong } else { Weight::Usual };
        self.lines.push(TreeLine { depth, begins: false, text, note, weight });
    }
}

/// Writes the lines with their branches drawn.
pub(super) fn write(lines: &[TreeLine], out: &mut dyn Write, paint: Paint) -> io::Result<()> {
    for line in lines {
        let depth = line.depth.min(DEEPEST);
        let bars = "│ ".repeat(depth.saturating_sub(usize::from(line.begins)));
        let begins = if line.begins { "├─" } else { "" };
        write!(out, "{}", paint.dim(format_args!("{bars}{begins}")))?;
        if line.depth > DEEPEST {
            write!(out, "{}", paint.dim(format_args!("({}) ", line.depth)))?;
        }
        match line.weight {
            Weight::Folded => write!(out, "{}", paint.dim(&line.text))?,
            Weight::Usual => write!(out, "{}", line.text)?,
            Weight::Strong => write!(out, "{}", paint.bold(&line.text))?,
        }
        if line.note.is_empty() {
            writeln!(out)?;
        } else {
            writeln!(out, "  {}", paint.dim(&line.note))?;
        }
    }
    Ok(())
}

fn preview(session: &Session, number: EntryNo) -> Option<String> {
    session.entry(number).message()?.preview.map(|preview| session.name(preview).to_owned())
}

/// One line of it, fit for a terminal.
fn shortened(text: &str) -> String {
    let text = shown(text);
    match text.char_indices().nth(PREVIEW) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.into_owned(),
    }
}

//! Fills the room that the sections leave with what carries most for its length: sentences of the agent, commands, files that
//! were read, and lines of outputs.

use std::borrow::Cow;
use std::collections::{BTreeMap, BinaryHeap, HashSet};

use memchr::memmem;
use session_model::error::RecordError;
use session_model::text::units;
use session_model::value::Value;

use super::calls::Command;
use super::digest::Digest;
use super::fold::token;
use super::layout::is_telling;
use super::rank::Ranks;
use super::section::{Section, cost, write};
use super::sentences::is_whole;
use crate::material::Messages;
use crate::transcript::content_text;

/// The section that takes it.
pub(super) const HEADING: &str = "## Critical Context";
/// Most sentences and commands that are weighed, the newest of each.
const MOST_LINES: usize = 1000;
/// Bytes of outputs that are searched for telling lines, of the newest ones, and of each its start.
const SEARCHED: usize = 128 << 10;
const SEARCHED_OF_ONE: usize = 16 << 10;
/// Lines of an output that are quoted, and how long they are, in bytes.
const QUOTED_LINES: usize = 3;
const QUOTED_PARTS: usize = 8;
const QUOTED_LENGTHS: std::ops::RangeInclusive<usize> = 16..=200;
/// What a line of an output is worth beside a sentence with the same facts: it says less.
const QUOTED_FACTOR: f64 = 0.5;
/// What a piece of a list is worth beside a whole sentence.
const SCRAP_FACTOR: f64 = 0.3;
/// What a whole command is worth beyond its facts, if it is the newest; the tenth before it has half of that.
const COMMAND_WORTH: f64 = 1.0;
/// Share of the room that files read may take, in percent.
const READS_PERCENT: u64 = 20;
/// Share of it that commands may take, in percent.
const COMMANDS_PERCENT: u64 = 40;
/// Least chance for a unit of text: below that a line says nothing.
const LEAST_WORTH: f64 = 0.0002;

/// What a line is, in the order in which they are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Group {
    Said,
    Read,
    Gave,
    Ran,
}

/// A line that may be taken.
struct Candidate {
    group: Group,
    /// Its place in the group.
    place: usize,
    text: String,
    /// Bytes before what is quoted, which a line that follows one of the same output need not say again.
    lead: usize,
    price: u64,
    /// Places of its facts in the ranks.
    facts: Vec<usize>,
    factor: f64,
    own_worth: f64,
}

/// Lines that may be added to what the sections say, weighed once.
pub(super) struct Filler<'r> {
    ranks: &'r Ranks<'r>,
    candidates: Vec<Candidate>,
}

impl<'r> Filler<'r> {
    /// Weighs all lines.
    ///
    /// # Errors
    /// A record that cannot be read again.
    pub(super) fn of(
        digest: &Digest,
        ranks: &'r Ranks<'r>,
        messages: &dyn Messages,
    ) -> Result<Filler<'r>, RecordError> {
        let mut candidates = Vec::new();
        said(digest, ranks, &mut candidates);
        read(digest, ranks, &mut candidates);
        gave(digest, ranks, messages, &mut candidates)?;
        ran(digest, ranks, &mut candidates);
        Ok(Filler { ranks, candidates })
    }

    /// The sections as text, with lines added until `limit` units are used.
    pub(super) fn filled(&self, sections: &[Section], limit: u64) -> String {
        let text = write(sections);
        let room = limit.saturating_sub(units(&text));
        let mut sections = sections.to_vec();
        let headings = [HEADING, "## Needed Later"];
        if let Some(section) = sections.iter_mut().find(|section| headings.contains(&section.heading)) {
            let (ran, other): (Vec<&Candidate>, Vec<&Candidate>) =
                self.chosen(&text, room).into_iter().partition(|candidate| candidate.group == Group::Ran);
            let mut before = None;
            for candidate in other {
                let output = (candidate.lead > 0).then_some(candidate.place / QUOTED_PARTS);
                match section.lines.last_mut() {
                    // Lines of one output stand together.
                    Some(line) if output.is_some() && output == before => {
                        line.text.push_str(", ");
                        line.text.push_str(&candidate.text[candidate.lead..]);
                    }
                    _ => section.add_unlike(candidate.text.clone(), 1),
                }
                before = output;
            }
            if !ran.is_empty() {
                let commands: Vec<&str> = ran.iter().map(|candidate| candidate.text.as_str()).collect();
                section.add_unlike(format!("{RAN}{}", commands.join(", ")), 1);
            }
        }
        let mut text = write(&sections);
        text.truncate(text.trim_end().len());
        text
    }

    /// Takes what is worth most for its length, again and again; what has been said since makes the others worth less.
    fn chosen(&self, text: &str, mut room: u64) -> Vec<&Candidate> {
        let mut known = vec![false; self.ranks.facts.len()];
        for place in self.ranks.places_in(text) {
            known[place] = true;
        }
        let mut for_reads = room * READS_PERCENT / 100;
        let mut for_commands = room * COMMANDS_PERCENT / 100;
        room = room.saturating_sub(units(RAN) + 3);
        let worth = |candidate: &Candidate, known: &[bool]| {
            let new = candidate.facts.iter().filter(|place| !known[**place]);
            let sum: f64 = new.map(|&place| self.ranks.facts[place].chance).sum();
            (sum * candidate.factor + candidate.own_worth) / candidate.price as f64
        };
        let mut open: BinaryHeap<Weighed> = BinaryHeap::new();
        for (at, candidate) in self.candidates.iter().enumerate() {
            if candidate.price <= room {
                open.push(Weighed { worth: worth(candidate, &known), at });
            }
        }
        let mut taken = Vec::new();
        while let Some(Weighed { worth: before, at }) = open.pop() {
            let candidate = &self.candidates[at];
            let allowed = match candidate.group {
                Group::Read => room.min(for_reads),
                Group::Ran => room.min(for_commands),
                Group::Said | Group::Gave => room,
            };
            if candidate.price > allowed {
                continue;
            }
            let now = worth(candidate, &known);
            if now < before && open.peek().is_some_and(|next| next.worth > now) {
                open.push(Weighed { worth: now, at });
                continue;
            }
            if now < LEAST_WORTH {
                break;
            }
            if memmem::find(text.as_bytes(), candidate.core().as_bytes()).is_some() {
                continue;
            }
            taken.push(at);
            room -= candidate.price;
            match candidate.group {
                Group::Read => for_reads -= candidate.price,
                Group::Ran => for_commands -= candidate.price,
                Group::Said | Group::Gave => {}
            }
            candidate.facts.iter().for_each(|&place| known[place] = true);
        }
        let mut chosen: Vec<&Candidate> = taken.into_iter().map(|at| &self.candidates[at]).collect();
        chosen.sort_by_key(|candidate| (candidate.group, candidate.place));
        chosen
    }
}

/// A candidate in the order of its worth, of equal ones the newer first.
struct Weighed {
    worth: f64,
    at: usize,
}

impl Ord for Weighed {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.worth.total_cmp(&other.worth).then(self.at.cmp(&other.at))
    }
}

impl PartialOrd for Weighed {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Weighed {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Weighed {}

impl Candidate {
    /// What must not be in the text already.
    fn core(&self) -> &str {
        match self.group {
            Group::Ran => self.text.trim_matches('`'),
            Group::Said | Group::Read | Group::Gave => &self.text,
        }
    }

    fn new(group: Group, place: usize, text: String, ranks: &Ranks<'_>) -> Candidate {
        let (price, facts) = (cost(&text), ranks.places_in(&text));
        Candidate { group, place, text, lead: 0, price, facts, factor: 1.0, own_worth: 0.0 }
    }
}

/// What the agent said that holds facts.
fn said(digest: &Digest, ranks: &Ranks<'_>, candidates: &mut Vec<Candidate>) {
    let older = digest.telling.len().saturating_sub(MOST_LINES);
    for (place, sentence) in digest.telling.iter().enumerate().skip(older) {
        let mut candidate = Candidate::new(Group::Said, place, sentence.clone(), ranks);
        candidate.factor = if is_whole(sentence) { 1.0 } else { SCRAP_FACTOR };
        candidates.push(candidate);
    }
}

/// Files that were read, those of a folder in one line.
fn read(digest: &Digest, ranks: &Ranks<'_>, candidates: &mut Vec<Candidate>) {
    let mut folders: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for path in &digest.calls.reads {
        let (folder, file) = path.split_at(path.rfind('/').map_or(0, |at| at + 1));
        folders.entry(folder).or_default().push(file);
    }
    for (place, (folder, mut files)) in folders.into_iter().enumerate() {
        files.sort_unstable();
        let mut candidate =
            Candidate::new(Group::Read, place, format!("{READ}{}", token(folder, &files)), ranks);
        candidate.facts =
            ranks.places_in(&files.iter().map(|file| format!("{folder}{file} ")).collect::<String>());
        candidates.push(candidate);
    }
}

/// Begins the line of commands.
pub(super) const RAN: &str = "Also ran, newest last: ";
/// Begins a line about files that were read.
pub(super) const READ: &str = "Read ";

/// Lines of outputs, and of what was put into files, that hold many facts. A few lines of one output are taken together.
fn gave(
    digest: &Digest,
    ranks: &Ranks<'_>,
    messages: &dyn Messages,
    candidates: &mut Vec<Candidate>,
) -> Result<(), RecordError> {
    let mut left = SEARCHED;
    let of_one = SEARCHED_OF_ONE.max(SEARCHED / digest.calls.outputs.len().max(1));
    for (place, output) in digest.calls.outputs.iter().enumerate().rev() {
        if left == 0 {
            break;
        }
        let mut text = String::new();
        messages.at(output.at, &mut |message| {
            let whole = if output.is_written { put(message, &output.about) } else { content_text(message) };
            text.push_str(&whole[..whole.floor_char_boundary(of_one.min(left))]);
        })?;
        left -= text.len();
        let mut lines: Vec<(f64, usize, &str)> = Vec::new();
        let mut seen = HashSet::new();
        for (number, line) in text.lines().flat_map(pieces).enumerate() {
            let line = line.trim();
            if !QUOTED_LENGTHS.contains(&line.len()) || line.contains('`') || !seen.insert(line) {
                continue;
            }
            let sum: f64 = ranks.places_in(line).iter().map(|&place| ranks.facts[place].chance).sum();
            if sum > 0.0 {
                lines.push((sum / (units(line) + 4) as f64, number, line));
            }
        }
        lines.sort_by(|left, right| right.0.total_cmp(&left.0).then(left.1.cmp(&right.1)));
        for (part, lines) in lines.chunks_mut(QUOTED_LINES).take(QUOTED_PARTS).enumerate() {
            lines.sort_by_key(|line| line.1);
            let quoted: Vec<String> = lines.iter().map(|(_, _, line)| format!("`{line}`")).collect();
            let verb = if output.is_written { "has" } else { "gave" };
            let lead = format!("`{}` {verb} ", output.about);
            let text = format!("{lead}{}", quoted.join(", "));
            let mut candidate = Candidate::new(Group::Gave, place * QUOTED_PARTS + part, text, ranks);
            candidate.factor = QUOTED_FACTOR;
            candidate.lead = lead.len();
            candidates.push(candidate);
        }
    }
    Ok(())
}

/// A line, or the parts of one that is too long to be quoted, divided where a word or a value ends.
fn pieces(line: &str) -> impl Iterator<Item = &str> {
    let mut rest = line;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = if rest.len() <= *QUOTED_LENGTHS.end() {
            rest.len()
        } else {
            let most = rest.floor_char_boundary(*QUOTED_LENGTHS.end());
            rest[..most].rfind([' ', ',', ';', '>', '}']).map_or(most, |at| at + 1)
        };
        let (piece, after) = rest.split_at(end);
        rest = after;
        Some(piece)
    })
}

/// What the calls of a message put into a file.
fn put<'m>(message: &'m Value<'_>, path: &str) -> Cow<'m, str> {
    let mut all = String::new();
    for block in message.get("content").map_or(&[][..], Value::items) {
        let Some(arguments) = block.get("arguments") else { continue };
        let field = |name: &str| arguments.text(name);
        let of = field("path").or_else(|| field("file_path")).or_else(|| field("file"));
        if of.is_some_and(|of| of == path) {
            let texts = ["content", "newText", "new_string", "new_text"].iter().find_map(|name| field(name));
            all.push_str(&texts.unwrap_or_default());
            all.push('\n');
        }
    }
    Cow::Owned(all)
}

/// Commands that worked.
fn ran(digest: &Digest, ranks: &Ranks<'_>, candidates: &mut Vec<Candidate>) {
    let worked = |command: &&Command| !command.failed && !command.line.is_empty();
    let commands: Vec<&Command> = digest.calls.commands.iter().filter(worked).collect();
    let n = commands.len();
    for (place, command) in commands.iter().enumerate().skip(n.saturating_sub(MOST_LINES)) {
        let mut candidate = Candidate::new(Group::Ran, place, format!("`{}`", command.line), ranks);
        candidate.price = units(&candidate.text) + 2;
        let worth = if is_telling(&command.line) { COMMAND_WORTH } else { COMMAND_WORTH / 3.0 };
        candidate.own_worth = worth / (1.0 + (n - place - 1) as f64 / 10.0);
        candidates.push(candidate);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::embedded::section::Mark;

    #[test]
    fn fills_with_sentences_files_and_commands_that_hold_facts() {
        let json = r#"[{"role":"assistant","content":[{"type":"text","text":"Nothing here. The loop is in src/main_loop.rs and calls run_all. Fine."},
            {"type":"toolCall","id":"1","name":"bash","arguments":{"command":"rg -n run_all"}},
            {"type":"toolCall","id":"2","name":"read","arguments":{"path":"src/other.rs"}}]},
            {"role":"toolResult","toolCallId":"1","isError":false,"content":"src/main_loop.rs:4"},
            {"role":"toolResult","toolCallId":"2","isError":false,"content":"fn two_of_them() {}\n}"}]"#;
        let messages = Value::parse(json).expect("valid JSON");
        let messages = messages.items();
        let digest = Digest::of(&messages).expect("in memory");
        let ranks = Ranks::of(&digest, &HashSet::new(), &crate::embedded::Weights::default());
        let sections = [Section::new(HEADING, Mark::Dash, 1)];
        let filler = Filler::of(&digest, &ranks, &messages).expect("in memory");
        let text = filler.filled(&sections, 1000);
        let expected = "## Critical Context\n- The loop is in src/main_loop.rs and calls run_all.\n- Read src/other.rs\n\
            - `src/other.rs` gave `fn two_of_them() {}`\n- Also ran, newest last: `rg -n run_all`";
        assert_eq!(text, expected);
    }
}

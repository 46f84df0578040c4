//! Fills the room that the sections leave with what carries most: whole commands, and sentences of the agent full of facts.

use std::collections::HashSet;

use session_model::text::units;

use super::digest::Digest;
use super::facts::each_fact;
use super::index::score;
use super::section::{Section, write};

/// The section that takes it.
pub(super) const HEADING: &str = "## Critical Context";
/// Share of the room that commands may take, in percent.
const COMMANDS_PERCENT: u64 = 30;
/// Most sentences that are weighed, the newest.
const MOST_SENTENCES: usize = 4000;

/// Adds lines until `limit` units are used.
pub(super) fn fill(sections: &mut [Section], digest: &Digest, kept: &HashSet<String>, limit: u64) {
    let text = write(sections);
    let mut room = limit.saturating_sub(units(&text));
    let headings = [HEADING, "## Needed Later"];
    let Some(section) = sections.iter_mut().find(|section| headings.contains(&section.heading)) else {
        return;
    };
    let mut for_commands = room * COMMANDS_PERCENT / 100;
    let mut lines: Vec<String> = Vec::new();
    for command in digest.commands.iter().rev().filter(|command| !command.failed && !command.line.is_empty())
    {
        let line = format!("Ran `{}`.", command.line);
        let price = units(&line) + 8;
        if price <= for_commands && !text.contains(&command.line) {
            for_commands -= price;
            room -= price;
            lines.push(line);
        }
    }
    lines.reverse();
    let mut known: HashSet<String> = HashSet::new();
    for held in lines.iter().map(String::as_str).chain([&*text]) {
        each_fact(held, |_, fact| {
            known.insert(fact.to_owned());
        });
    }
    let sentences = telling(digest, &text, kept, &mut known, room);
    for line in sentences.into_iter().chain(lines) {
        section.add(line, 1);
    }
}

/// The sentences that hold most facts which nothing holds yet, in the order in which they were said.
fn telling(
    digest: &Digest,
    text: &str,
    kept: &HashSet<String>,
    known: &mut HashSet<String>,
    mut room: u64,
) -> Vec<String> {
    let older = digest.telling.len().saturating_sub(MOST_SENTENCES);
    let sentences = &digest.telling[older..];
    let worth = |sentence: &str, known: &HashSet<String>| {
        let mut sum = 0.0;
        each_fact(sentence, |_, fact| {
            if let Some(weight) = digest.facts.get(fact)
                && !known.contains(fact)
                && !kept.contains(fact)
            {
                sum += score(digest, fact, weight);
            }
        });
        sum / (units(sentence) + 8) as f64
    };
    let mut order: Vec<(f64, usize)> =
        sentences.iter().enumerate().map(|(at, sentence)| (worth(sentence, known), at)).collect();
    order.sort_by(|left, right| right.0.total_cmp(&left.0).then(right.1.cmp(&left.1)));
    let mut chosen = Vec::new();
    for (at_first, at) in order {
        let sentence = &sentences[at];
        let price = units(sentence) + 8;
        // What others have said since makes a sentence worth less.
        let is_worth_it = at_first > 0.0 && worth(sentence, known) >= at_first / 2.0;
        if price > room || !is_worth_it || text.contains(sentence.as_str()) {
            continue;
        }
        room -= price;
        each_fact(sentence, |_, fact| {
            known.insert(fact.to_owned());
        });
        chosen.push(at);
    }
    chosen.sort_unstable();
    chosen.into_iter().map(|at| sentences[at].clone()).collect()
}

#[cfg(test)]
mod tests {
    use session_model::value::Value;

    use super::*;
    use crate::embedded::section::Mark;

    #[test]
    fn fills_with_whole_commands_and_sentences_that_hold_facts() {
        let json = r#"[{"role":"assistant","content":[{"type":"text","text":"Nothing here. The loop is in src/main_loop.rs and calls run_all. Fine."},
            {"type":"toolCall","id":"1","name":"bash","arguments":{"command":"rg -n run_all"}}]},
            {"role":"toolResult","toolCallId":"1","isError":false,"content":"src/main_loop.rs:4"}]"#;
        let messages = Value::parse(json).expect("valid JSON");
        let digest = Digest::of(&messages.items()).expect("in memory");
        let mut sections = [Section::new(HEADING, Mark::Dash, 1)];
        fill(&mut sections, &digest, &HashSet::new(), 1000);
        let lines: Vec<&str> = sections[0].lines.iter().map(|line| line.text.as_str()).collect();
        assert_eq!(lines, ["The loop is in src/main_loop.rs and calls run_all.", "Ran `rg -n run_all`."]);
    }
}

//! Damaged sessions are repaired and opened by the agents' own session managers: they must see the context that sesstool sees.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use session_gen::{Shape, damage, generate};
use session_model::agent_message::agent_messages;
use session_model::entry::EntryNo;
use session_model::message::Role;
use session_model::repair::repair;
use session_model::session::{Records, Session};
use session_model::value::Value;

use crate::conformance::canonical::{first_difference, lines};
use crate::files;
use crate::reference::{Answer, Program, Question, References};

/// Let the agents open repaired sessions
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Damaged sessions of each agent
    #[arg(long, value_name = "N", default_value_t = 300)]
    sessions: u64,
}

/// A repaired session and the seed that it comes from.
struct Case {
    seed: u64,
    bytes: Vec<u8>,
    steps: Vec<&'static str>,
}

/// Runs the comparison.
///
/// # Errors
/// An agent sees something else, or cannot open a file.
pub(crate) fn run(args: &Args) -> Result<()> {
    let references = References::install()?;
    let folder = files::scratch("repaired")?;
    let mut bad = Vec::new();
    for program in Program::ALL {
        let mut reference = references.start(program)?;
        let cases: Vec<Case> = (0..args.sessions).filter_map(|seed| case(program, seed)).collect();
        let mut questions = Vec::new();
        for case in &cases {
            let file = folder.join(format!("{}-{}.jsonl", program.name(), case.seed));
            files::write(&file, &case.bytes)?;
            questions.push(Question { kind: "open", file, args: "{}".to_owned() });
        }
        let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
        let mut n_same = 0;
        for (case, answer) in cases.iter().zip(reference.ask(&questions)?) {
            case.steps.iter().for_each(|kind| *kinds.entry(kind).or_default() += 1);
            match verdict(case, &answer)? {
                None => n_same += 1,
                Some(words) => {
                    bad.push(format!("{} seed {}: {words} ({:?})", program.name(), case.seed, case.steps))
                }
            }
        }
        println!(
            "{}: {n_same} of {} repaired sessions are seen alike; {kinds:?}",
            program.name(),
            cases.len()
        );
    }
    for words in &bad {
        println!("{words}");
    }
    std::fs::remove_dir_all(&folder)?;
    ensure!(bad.is_empty(), "{} sessions are seen otherwise", bad.len());
    Ok(())
}

/// What is different; `None` if nothing is.
fn verdict(case: &Case, answer: &Answer) -> Result<Option<String>> {
    let Answer::Said(line) = answer else { return Ok(Some(format!("{answer:?}"))) };
    let value = Value::parse(line).map_err(|error| anyhow::anyhow!("no JSON at byte {}", error.at))?;
    let theirs = value.get("ok").and_then(|ok| ok.get("context")).and_then(|it| it.get("messages"));
    let (session, _) = Session::read(&case.bytes)?;
    let ours: Vec<Value<'_>> = agent_messages(&session.branch(None).effective(), &case.bytes[..])?
        .into_iter()
        .map(|message| message.value)
        .collect();
    let (ours, theirs) = (lines(&ours), lines(theirs.map_or(&[][..], Value::items)));
    Ok((ours != theirs).then(|| first_difference(&ours, &theirs)))
}

/// A session that was damaged and repaired; `None` if there was nothing to repair, or what is left is no question of repair: an
/// assistant message without costs is one that oh-my-pi's session manager cannot add up.
fn case(program: Program, seed: u64) -> Option<Case> {
    let shape = match program {
        Program::R13 => Shape { usage: 1.0, odd_usage: 0.0, ..Shape::omp() },
        Program::P1 => Shape::pi(),
    };
    let damaged = damage(seed, generate(seed, &shape).as_bytes());
    let repaired = repair(&damaged).ok().filter(|repaired| !repaired.steps.is_empty())?;
    let (session, _) = Session::read(&repaired.bytes).ok()?;
    if program == Program::R13
        && !(0..session.entries.len() as EntryNo).all(|entry| has_cost(&session, &repaired.bytes, entry))
    {
        return None;
    }
    let steps = repaired.steps.iter().map(|step| step.kind.name()).collect();
    Some(Case { seed, bytes: repaired.bytes.into_owned(), steps })
}

fn has_cost(session: &Session, bytes: &[u8], entry: EntryNo) -> bool {
    if session.entry(entry).message().is_none_or(|message| message.role != Role::Assistant) {
        return true;
    }
    let Ok(text) = bytes.text(session.entry(entry).span) else { return false };
    let Ok(record) = Value::parse(&text) else { return false };
    let usage = record.get("message").and_then(|message| message.get("usage"));
    usage
        .and_then(|usage| usage.get("cost"))
        .and_then(|cost| cost.get("total"))
        .and_then(Value::as_number)
        .is_some()
}

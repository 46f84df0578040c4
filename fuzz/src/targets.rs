//! What an input goes through, and what must hold for each: a broken promise panics.

use std::collections::HashSet;

use compaction_core::prepare;
use compaction_core::settings::CompactionSettings;
use pruning::apply::{context_edits, pruned_record};
use pruning::settings::PruneSettings;
use session_gen::Random;
use session_model::agent_message::agent_messages;
use session_model::error::{Problem, ProblemKind};
use session_model::migrate;
use session_model::model_message::model_message;
use session_model::prompts::Prompts;
use session_model::reader::SessionReader;
use session_model::repair::repair;
use session_model::session::Session;
use session_model::state::State;
use session_model::tokens::Tokenizer;
use session_model::validate::validate;
use session_model::value::Value;

/// A target.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target {
    pub(crate) name: &'static str,
    /// Whether it is the one that every input goes through.
    pub(crate) is_reader: bool,
    /// Takes the input and its seed; gives the number of records that it read.
    pub(crate) run: fn(&[u8], u64) -> u64,
}

/// All targets.
pub(crate) const ALL: &[Target] = &[
    Target { name: "reading", is_reader: true, run: reading },
    Target { name: "splitting", is_reader: false, run: splitting },
    Target { name: "values", is_reader: false, run: values },
    Target { name: "context", is_reader: false, run: context },
    Target { name: "preparation", is_reader: false, run: preparation },
    Target { name: "pruning", is_reader: false, run: prune },
    Target { name: "rewriting", is_reader: false, run: rewriting },
    Target { name: "repair", is_reader: false, run: repairing },
];

/// The target with this name.
pub(crate) fn find(name: &str) -> Result<Target, String> {
    let names = || ALL.iter().map(|target| target.name).collect::<Vec<_>>().join(", ");
    ALL.iter().find(|target| target.name == name).copied().ok_or_else(|| format!("there are {}", names()))
}

/// Each problem is there once and names the line that its offset is on.
fn reading(input: &[u8], _: u64) -> u64 {
    let Ok((session, problems)) = Session::read(input) else { return lines(input) };
    let mut seen = HashSet::new();
    let (mut line, mut at) = (1, 0);
    for problem in &problems {
        let offset = problem.offset as usize;
        assert!(offset <= input.len(), "{problem:?} is behind the end");
        line += input[at..offset].iter().filter(|byte| **byte == b'\n').count() as u64;
        at = offset;
        assert_eq!(problem.line, line, "{problem:?}");
        let key = (problem.kind, problem.offset, problem.entry.clone());
        assert!(seen.insert(key), "{problem:?} is reported twice");
    }
    for entry in &session.entries {
        let end = entry.span.offset + entry.span.len;
        assert!(end <= input.len() as u64 && entry.span.len >= 2, "{entry:?}");
    }
    // Records, and lines that are none.
    (session.entries.len() as u64).max(lines(input))
}

fn lines(input: &[u8]) -> u64 {
    input.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).count() as u64
}

/// However the file is cut into chunks, the same is read.
fn splitting(input: &[u8], seed: u64) -> u64 {
    let whole = described(Session::read(input).ok());
    let mut random = Random::new(seed);
    let mut reader = SessionReader::new(Tokenizer::Units);
    let mut rest = input;
    while !rest.is_empty() {
        let (chunk, later) = rest.split_at(random.between(1, 300).min(rest.len()));
        reader.push(chunk);
        rest = later;
    }
    assert_eq!(described(reader.finish().ok()), whole);
    0
}

fn described(read: Option<(Session, Vec<Problem>)>) -> Option<(Vec<String>, Vec<Problem>, String)> {
    read.map(|(session, problems)| {
        let entries = session.entries.iter().map(|entry| format!("{entry:?}")).collect();
        (entries, problems, format!("{:?}", session.header))
    })
}

/// What parses prints, and what is printed parses to the same.
fn values(input: &[u8], _: u64) -> u64 {
    for line in String::from_utf8_lossy(input).lines() {
        let Ok(value) = Value::parse(line) else { continue };
        let printed = value.to_json();
        let again = Value::parse(&printed).expect("what was printed is JSON");
        assert_eq!(again.to_json(), printed);
    }
    0
}

/// The context of each leaf, as the agent holds it and as the model gets it.
fn context(input: &[u8], _: u64) -> u64 {
    let Ok((session, _)) = Session::read(input) else { return 0 };
    let prompts = Prompts::default();
    for leaf in session.leaves().into_iter().take(4).map(Some).chain([None]) {
        let branch = session.branch(leaf);
        let sequence = branch.effective();
        let _ = (validate(&sequence), sequence.estimate(), State::of(&branch));
        let messages = agent_messages(&sequence, input).expect("the records are in the file");
        for message in messages {
            let _ = model_message(message.value, &prompts);
        }
    }
    0
}

/// A cut never separates a call from its result, and keeps all of the window, once.
fn preparation(input: &[u8], seed: u64) -> u64 {
    let Ok((session, _)) = Session::read(input) else { return 0 };
    let sequence = session.branch(None).effective();
    let keep = [0, 1, 100, 2000, 20_000, u64::MAX][(seed % 6) as usize];
    let settings = CompactionSettings { keep_recent_tokens: keep, ..CompactionSettings::default() };
    let Ok(preparation) = prepare(&sequence, &settings) else { return 0 };
    let cut: HashSet<u32> = preparation.recent.iter().map(|item| item.entry).collect();
    let _ = preparation.recent_tokens();
    let mut callers = std::collections::HashMap::new();
    for item in &sequence.items {
        for call in sequence.calls(item) {
            callers.insert(call.id, item.entry);
        }
        let caller = sequence.message(item).and_then(|message| callers.get(&message.answers?));
        if let Some(caller) = caller {
            let is_apart = cut.contains(&item.entry) && !cut.contains(caller);
            assert!(!is_apart, "the cut is between {} and its call", session.id(item.entry));
        }
    }
    0
}

/// Every byte but those of the blanked records stays, and nothing more is to be done then.
fn prune(input: &[u8], _: u64) -> u64 {
    let Ok((session, _)) = Session::read(input) else { return 0 };
    let branch = session.branch(None);
    let settings = PruneSettings { protect_tokens: 20, minimum_savings: 0, ..PruneSettings::default() };
    let plan = pruning::plan(&branch.effective(), &settings);
    let _ = context_edits(&session, &plan, branch.leaf(), 5);
    let mut changed = input.to_vec();
    let mut results: Vec<_> = plan.candidates().collect();
    results.sort_by_key(|result| std::cmp::Reverse(session.entry(result.entry).span.offset));
    for result in results {
        let span = session.entry(result.entry).span;
        let range = span.offset as usize..(span.offset + span.len) as usize;
        let record = pruned_record(&input[range.clone()], result, 5).expect("a tool result is an object");
        assert!(!record.contains(&b'\n'));
        changed.splice(range, record);
    }
    let (after, _) = Session::read(&changed).expect("still a session");
    assert_eq!(after.entries.len(), session.entries.len());
    assert_eq!(pruning::plan(&after.branch(None).effective(), &settings).candidates().count(), 0);
    0
}

/// Rewriting adds line ends and fields of old versions, and loses nothing.
fn rewriting(input: &[u8], _: u64) -> u64 {
    let Ok((session, _)) = Session::read(input) else { return 0 };
    let without = |bytes: &[u8]| bytes.iter().copied().filter(|byte| *byte != b'\n').collect::<Vec<u8>>();
    let lines = migrate::own_lines(input, &session);
    assert_eq!(without(&lines), without(input));
    let current = migrate::to_current(input, &session);
    let (after, _) = Session::read(&current).expect("still a session");
    assert_eq!(after.entries.len(), session.entries.len());
    assert!(after.recovered.is_empty(), "{:?}", after.recovered);
    for entry in 0..session.entries.len() as u32 {
        assert_eq!(session.id(entry), after.id(entry));
    }
    0
}

/// What is repaired is whole, has every entry that could be read, and is repaired no further.
fn repairing(input: &[u8], _: u64) -> u64 {
    let Ok(repaired) = repair(input) else { return 0 };
    let (after, problems) = Session::read(&repaired.bytes).expect("a repaired file is a session");
    let left: Vec<_> = problems.iter().filter(|it| it.kind != ProblemKind::UnknownVersion).collect();
    assert!(left.is_empty(), "{left:?}");
    if let Ok((before, _)) = Session::read(input) {
        let lost = (0..before.entries.len() as u32).find(|&entry| !after.has_id(before.id(entry)));
        assert!(lost.is_none(), "{:?} is lost", lost.map(|entry| before.id(entry)));
    }
    let again = repair(&repaired.bytes).expect("a session");
    assert!(again.steps.is_empty(), "{:?} after {:?}", again.steps, repaired.steps);
    assert!(again.bytes == repaired.bytes, "changed once more");
    0
}

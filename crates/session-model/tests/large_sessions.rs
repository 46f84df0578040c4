//! Sessions too large for a fixture's file: a million entries, one huge entry, deep nesting (spec 8.2).

use std::fmt::Write as _;

use session_model::agent_message::agent_messages;
use session_model::entry::EntryNo;
use session_model::model_message::model_message;
use session_model::prompts::Prompts;
use session_model::reader::SessionReader;
use session_model::session::Session;
use session_model::tokens::Tokenizer;
use session_model::validate::validate;

const HEADER: &str = "{\"type\":\"session\",\"version\":3,\"id\":\"s\"}\n";

#[test]
fn a_branch_of_a_million_tiny_entries_is_walked_to_its_root() {
    const N_ENTRIES: EntryNo = 1_000_000;
    let mut reader = SessionReader::new(Tokenizer::Units);
    reader.push(HEADER.as_bytes());
    let mut chunk = String::new();
    for n in 0..N_ENTRIES {
        let parent = n.checked_sub(1).map_or("null".to_owned(), |parent| format!("\"{parent:x}\""));
        writeln!(chunk, "{{\"type\":\"label\",\"id\":\"{n:x}\",\"parentId\":{parent}}}")
            .expect("a string takes all");
        if chunk.len() > 1 << 16 {
            reader.push(chunk.as_bytes());
            chunk.clear();
        }
    }
    reader.push(chunk.as_bytes());
    let (session, problems) = reader.finish().expect("a session");
    assert_eq!(problems, []);
    let branch = session.branch(None);
    assert_eq!(branch.entries.len(), N_ENTRIES as usize);
    assert_eq!((branch.entries[0], branch.leaf()), (0, Some(N_ENTRIES - 1)));
    assert_eq!(session.leaves(), [N_ENTRIES - 1]);
}

#[test]
fn a_huge_entry_is_measured_without_its_text() {
    const N_UNITS: u64 = 64_000_000;
    let mut reader = SessionReader::new(Tokenizer::Units);
    reader.push(HEADER.as_bytes());
    reader.push(
        b"{\"type\":\"message\",\"id\":\"1\",\"parentId\":null,\"message\":{\"role\":\"user\",\"content\":\"",
    );
    let part = "x".repeat(1 << 16);
    let mut left = N_UNITS as usize;
    while left > 0 {
        let n = left.min(part.len());
        reader.push(&part.as_bytes()[..n]);
        left -= n;
    }
    reader.push(b"\"}}\n");
    let (session, problems) = reader.finish().expect("a session");
    assert_eq!(problems, []);
    assert_eq!(session.entry(0).estimate, N_UNITS / 4);
}

/// A session in which `value` stands as a tool call's arguments, as a result's details and as a field that nobody knows.
fn with_value(value: &str) -> String {
    let call = format!(
        "{{\"type\":\"message\",\"id\":\"1\",\"parentId\":null,\"message\":{{\"role\":\"assistant\",\"content\":[{{\"type\":\"toolCall\",\"id\":\"k\",\"name\":\"t\",\"arguments\":{{\"a\":{value}}}}}]}}}}"
    );
    let result = format!(
        "{{\"type\":\"message\",\"id\":\"2\",\"parentId\":\"1\",\"odd\":{value},\"message\":{{\"role\":\"toolResult\",\"toolCallId\":\"k\",\"toolName\":\"t\",\"content\":[],\"details\":{value}}}}}"
    );
    format!("{HEADER}{call}\n{result}\n")
}

#[test]
fn nesting_of_a_hundred_thousand_levels_overflows_no_stack() {
    for (open, close) in [("[", "]"), ("{\"n\":", "}")] {
        let value = format!("{}0{}", open.repeat(100_000), close.repeat(100_000));
        let file = with_value(&value);
        let (session, problems) = Session::read(file.as_bytes()).expect("a session");
        assert_eq!(problems, []);
        let sequence = session.branch(None).effective();
        assert_eq!(validate(&sequence), []);
        let messages = agent_messages(&sequence, file.as_bytes()).expect("the records are there");
        let prompts = Prompts::default();
        let texts: Vec<String> = messages
            .into_iter()
            .filter_map(|message| model_message(message.value, &prompts))
            .map(|message| message.to_json())
            .collect();
        assert_eq!(texts.len(), 2);
        assert!(texts.iter().all(|text| text.contains(&value)), "the value is handed on as it is");
        // Name `t` and `{"a":…}`.
        assert_eq!(session.entry(0).estimate, (1 + 6 + value.len() as u64).div_ceil(4));
    }
}

#[test]
fn nesting_that_never_ends_is_a_problem_of_its_line() {
    let file = format!(
        "{HEADER}{{\"type\":\"label\",\"id\":\"1\",\"parentId\":null,\"x\":{}\n",
        "[".repeat(100_000)
    );
    let (session, problems) = Session::read(file.as_bytes()).expect("a session");
    assert_eq!((session.entries.len(), problems.len()), (0, 1));
}

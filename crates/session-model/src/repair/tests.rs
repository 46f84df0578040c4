//! Damage of each kind, and damage at random: what comes out is whole, keeps what could be read, and stays as it is.

use session_gen::{Shape, damage, generate};

use super::*;
use crate::validate::validate;

const HEADER: &str =
    r#"{"type":"session","version":3,"id":"s","timestamp":"2026-01-02T03:04:05.000Z","cwd":"/p"}"#;

fn user(id: &str, parent: &str) -> String {
    let parent = if parent.is_empty() { "null".to_owned() } else { format!("{parent:?}") };
    format!(
        r#"{{"type":"message","id":"{id}","parentId":{parent},"timestamp":"2026-01-02T03:04:06.000Z","message":{{"role":"user","content":"{id}"}}}}"#
    )
}

fn calls(id: &str, parent: &str, calls: &[&str], stop: &str) -> String {
    let calls: Vec<String> = calls
        .iter()
        .map(|id| format!(r#"{{"type":"toolCall","id":"{id}","name":"bash","arguments":{{}}}}"#))
        .collect();
    format!(
        r#"{{"type":"message","id":"{id}","parentId":"{parent}","timestamp":"2026-01-02T03:04:07.000Z","message":{{"role":"assistant","content":[{}],"stopReason":"{stop}"}}}}"#,
        calls.join(",")
    )
}

fn result(id: &str, parent: &str, call: &str) -> String {
    format!(
        r#"{{"type":"message","id":"{id}","parentId":"{parent}","timestamp":"2026-01-02T03:04:08.000Z","message":{{"role":"toolResult","toolCallId":"{call}","toolName":"bash","content":[{{"type":"text","text":"{id}"}}],"isError":false}}}}"#
    )
}

/// The branch of the repaired file, one word an entry (`made` for one that the repair put in), and the steps.
#[track_caller]
fn check(file: &[u8], branch: &str, steps: &str) -> Repaired<'static> {
    let repaired = repair(file).expect("it can be repaired");
    let known = Session::read(file).map(|(session, _)| session).ok();
    let (session, problems) = Session::read(&repaired.bytes).expect("a session");
    assert_eq!(problems, [], "{}", String::from_utf8_lossy(&repaired.bytes));
    let sequence = session.branch(None).effective();
    let faults: Vec<_> = validate(&sequence).into_iter().filter(|it| it.kind.is_fault()).collect();
    assert_eq!(faults, [], "{}", String::from_utf8_lossy(&repaired.bytes));
    let words: Vec<&str> = sequence
        .branch
        .iter()
        .map(|&entry| session.id(entry))
        .map(|id| if known.as_ref().is_none_or(|known| known.has_id(id)) { id } else { "made" })
        .collect();
    assert_eq!(words.join(" "), branch, "{}", String::from_utf8_lossy(&repaired.bytes));
    let done: Vec<String> =
        repaired.steps.iter().map(|step| format!("{}@{}", step.kind.name(), step.line)).collect();
    assert_eq!(done.join(" "), steps);
    let again = repair(&repaired.bytes).expect("a session");
    assert_eq!((again.steps.len(), &again.bytes), (0, &repaired.bytes));
    Repaired { bytes: Cow::Owned(repaired.bytes.into_owned()), aside: repaired.aside, steps: repaired.steps }
}

fn file(lines: &[String]) -> Vec<u8> {
    let mut file = HEADER.to_owned() + "\n";
    lines.iter().for_each(|line| file += &format!("{line}\n"));
    file.into_bytes()
}

#[test]
fn a_healthy_file_is_borrowed() {
    let healthy = file(&[user("a", ""), user("b", "a")]);
    let repaired = repair(&healthy).expect("a session");
    assert!(matches!(repaired.bytes, Cow::Borrowed(_)));
    assert!(repaired.steps.is_empty() && repaired.aside.is_empty());
}

#[test]
fn an_older_version_is_no_damage_and_is_rewritten_only_with_another() {
    let old = "{\"type\":\"session\",\"id\":\"s\"}\n{\"type\":\"message\",\"message\":{\"role\":\"user\",\"content\":\"a\"}}\n";
    assert!(matches!(repair(old.as_bytes()).expect("a session").bytes, Cow::Borrowed(_)));
    let kinds: Vec<_> = repair(format!("{old}junk").as_bytes()).expect("a session").steps;
    assert_eq!(kinds.iter().map(|step| step.kind.name()).collect::<Vec<_>>(), ["migrated", "set_aside"]);
}

#[test]
fn crlf_and_blank_lines_are_no_damage_and_a_byte_order_mark_goes() {
    let healthy = format!("{HEADER}\r\n\r\n{}\r\n \n{}", user("a", ""), user("b", "a"));
    assert!(matches!(repair(healthy.as_bytes()).expect("a session").bytes, Cow::Borrowed(_)));
    let repaired = check(format!("\u{FEFF}{healthy}").as_bytes(), "a b", "mark_dropped@1");
    assert_eq!(&repaired.bytes[..], healthy.as_bytes());
    let repaired = check(format!("\u{FEFF}\u{FEFF}{healthy}").as_bytes(), "a b", "mark_dropped@1");
    assert_eq!(&repaired.bytes[..], healthy.as_bytes());
}

#[test]
fn glued_records_and_what_stands_behind_a_torn_one_get_their_own_lines() {
    let glued = file(&[user("a", "") + &user("b", "a"), user("c", "b")]);
    check(&glued, "a b c", "own_line@2 own_line@2");
    let torn = r#"{"type":"message","id":"x","parentId":"a","message":{"role":"user","content":"cut of"#;
    let tear = file(&[user("a", ""), torn.to_owned() + &user("c", "a"), user("d", "c")]);
    let repaired = check(&tear, "a c d", "set_aside@3 own_line@3");
    assert_eq!(String::from_utf8_lossy(&repaired.aside), format!("{torn}\n"));
}

#[test]
fn torn_tails_nul_runs_junk_and_second_headers_go_aside() {
    let mut bytes = file(&[user("a", ""), "\0\0\0\0".into(), "junk".into(), HEADER.into(), user("b", "a")]);
    bytes.extend_from_slice(br#"{"type":"message","id":"c","#);
    let repaired = check(&bytes, "a b", "set_aside@3 set_aside@4 set_aside@5 set_aside@7");
    let aside = format!("\0\0\0\0\njunk\n{HEADER}\n{{\"type\":\"message\",\"id\":\"c\",\n");
    assert_eq!(String::from_utf8_lossy(&repaired.aside), aside);
    assert_eq!(&repaired.bytes[..], file(&[user("a", ""), user("b", "a")]));
}

#[test]
fn bytes_that_are_not_utf8_become_replacement_characters() {
    let mut bytes = file(&[user("a", "")]);
    bytes.extend_from_slice(&user("b", "a").replace(":\"b\"}", ":\"?\"}").into_bytes());
    let at = bytes.iter().rposition(|byte| *byte == b'?').expect("it is there");
    bytes[at] = 0xFF;
    let repaired = check(&bytes, "a b", "made_utf8@3");
    assert!(String::from_utf8(repaired.bytes.into_owned()).expect("UTF-8").contains("\u{FFFD}"));
}

#[test]
fn missing_parents_are_joined_to_the_entry_before() {
    let bytes = file(&[user("a", ""), user("b", "gone"), user("c", "b")]);
    check(&bytes, "a b c", "parent_joined@3");
    check(&file(&[user("a", "gone"), user("b", "a")]), "a b", "parent_joined@2");
}

#[test]
fn circles_are_cut_where_they_point_forward() {
    check(&file(&[user("a", ""), user("b", "c"), user("c", "b")]), "a b c", "cycle_cut@3");
    check(&file(&[user("a", "a"), user("b", "a")]), "a b", "cycle_cut@2");
    check(&file(&[user("a", "b"), user("b", "c"), user("c", "a")]), "b a c", "cycle_cut@3");
}

#[test]
fn of_entries_with_one_id_the_earlier_are_renamed_and_keep_their_children() {
    let bytes = file(&[user("x", ""), user("a", "x"), user("x", "a"), user("b", "x")]);
    let repaired = check(&bytes, "made a x b", "id_renamed@2");
    assert_eq!(Session::read(&repaired.bytes).expect("a session").0.entries.len(), 4);
}

#[test]
fn a_compaction_follows_the_entry_that_it_keeps_from_to_its_new_id() {
    let compaction = r#"{"type":"compaction","id":"c","parentId":"a","timestamp":"2026-01-02T03:04:08.000Z","summary":"s","firstKeptEntryId":"x","tokensBefore":1}"#;
    let bytes = file(&[user("x", ""), user("a", "x"), compaction.to_owned(), user("x", ""), user("b", "c")]);
    let repaired = check(&bytes, "made a c b", "id_renamed@2");
    let (session, _) = Session::read(&repaired.bytes).expect("a session");
    assert_eq!(session.branch(None).effective().items.len(), 4);
}

#[test]
fn a_compaction_that_keeps_from_nowhere_says_that_it_keeps_nothing() {
    let compaction = r#"{"type":"compaction","id":"c","parentId":"a","timestamp":"2026-01-02T03:04:08.000Z","summary":"s","firstKeptEntryId":"gone","tokensBefore":1}"#;
    check(&file(&[user("a", ""), compaction.to_owned(), user("b", "c")]), "a c b", "kept_dropped@3");
}

#[test]
fn an_entry_without_an_id_gets_one_behind_the_entry_before() {
    let lost = r#"{"type":"message","timestamp":"2026-01-02T03:04:06.000Z","message":{"role":"user","content":"?"}}"#;
    check(&file(&[user("a", ""), lost.to_owned()]), "a made", "id_given@3");
    check(&file(&[user("a", ""), r#"{"note":1}"#.to_owned(), user("b", "a")]), "a b", "set_aside@3");
}

#[test]
fn calls_without_results_get_one_behind_those_that_have() {
    let bytes = file(&[
        user("a", ""),
        calls("b", "a", &["1", "2"], "toolUse"),
        result("r", "b", "1"),
        user("c", "r"),
    ]);
    let bytes = [bytes, calls("d", "c", &[], "stop").into_bytes()].concat();
    let repaired = check(&bytes, "a b r made c d", "result_made@4");
    assert!(String::from_utf8_lossy(&repaired.bytes).contains(calls::NO_RESULT));
    let failed = file(&[user("a", ""), calls("b", "a", &["1", "2"], "aborted")]);
    check(&failed, "a b made made", "result_made@3 result_made@3");
}

#[test]
fn two_calls_with_one_id_in_one_message_are_left_as_they_are() {
    let bytes = file(&[
        user("a", ""),
        calls("b", "a", &["1", "1"], "toolUse"),
        result("r", "b", "1"),
        user("c", "r"),
    ]);
    let bytes = [bytes, calls("d", "c", &[], "stop").into_bytes()].concat();
    assert!(matches!(repair(&bytes).expect("a session").bytes, Cow::Borrowed(_)));
}

#[test]
fn results_without_a_call_stay_as_entries_that_no_model_sees() {
    let bytes = file(&[user("a", ""), result("r", "a", "?"), user("b", "r")]);
    let repaired = check(&bytes, "a r b", "result_retired@3");
    let text = String::from_utf8_lossy(&repaired.bytes);
    assert!(text.contains(r#""data":{"role":"toolResult","toolCallId":"?""#), "{text}");
    let twice = file(&[
        user("a", ""),
        calls("b", "a", &["1"], "toolUse"),
        result("r", "b", "1"),
        result("q", "r", "1"),
        user("c", "q"),
    ]);
    check(&twice, "a b r q c", "result_retired@5");
}

#[test]
fn a_result_behind_the_next_answer_moves_to_its_call() {
    let bytes = file(&[
        user("a", ""),
        calls("b", "a", &["1"], "toolUse"),
        calls("c", "b", &[], "stop"),
        result("r", "c", "1"),
        user("d", "r"),
    ]);
    let repaired = check(&bytes, "a b made c r d", "result_moved@3 result_retired@5");
    let text = String::from_utf8_lossy(&repaired.bytes);
    assert_eq!(text.matches(r#""text":"r""#).count(), 2, "{text}");
}

#[test]
fn a_header_is_made_from_what_the_entries_say() {
    let entries = format!("{}\n{}\n", user("a", ""), user("b", "a"));
    let repaired = check(entries.as_bytes(), "a b", "header_made@0");
    let (session, _) = Session::read(&repaired.bytes).expect("a session");
    assert_eq!(session.header.timestamp.as_deref(), Some("2026-01-02T03:04:06.000Z"));
    assert_eq!(session.header.version, 3);
    assert!(repaired.bytes.ends_with(entries.as_bytes()));
    // A header without an id, one that stands too late, and one behind the title slot.
    check(
        entries.replacen('{', "{\"type\":\"session\",\"version\":3}\n{", 1).as_bytes(),
        "a b",
        "header_made@0 set_aside@1",
    );
    check(format!("{entries}{HEADER}\n").as_bytes(), "a b", "header_made@0 set_aside@3");
    let slot = format!("{:<253}\"}}", r#"{"type":"title","v":1,"title":"t","pad":""#);
    let (session, _) =
        Session::read(&check(format!("{slot}\n{entries}").as_bytes(), "a b", "header_made@0").bytes)
            .expect("a session");
    assert!(session.header.has_title_slot);
}

#[test]
fn what_has_no_entry_is_no_session() {
    for other in ["", "{\"a\":1}\n", "hello\n", "{\"type\":\"event\",\"id\":\"x\"}\n", "\0\0\0"] {
        assert!(repair(other.as_bytes()).is_err(), "{other}");
    }
}

#[test]
fn title_slots_get_their_width() {
    for title in ["t", &"é".repeat(200), &"\\u0007".repeat(90)] {
        let slot = format!(r#"{{"type":"title","v":1,"title":"{title}","updatedAt":"x","pad":""}}"#);
        let repaired =
            check(format!("{slot}\n{HEADER}\n{}\n", user("a", "")).as_bytes(), "a", "slot_padded@1");
        assert_eq!(repaired.bytes.iter().position(|byte| *byte == b'\n'), Some(255));
    }
    let slot = r#"{"type":"title","v":1,"title":"t","pad":""}"#;
    let late = format!("\n \r\n\n{slot}\n{HEADER}\n{}\n", user("a", ""));
    let repaired = check(late.as_bytes(), "a", "slot_padded@4");
    assert_eq!(repaired.bytes.iter().position(|byte| *byte == b'\n'), Some(255));
}

#[test]
fn random_damage_is_repaired_and_loses_no_entry() {
    for seed in 0..600 {
        let shape = match seed % 3 {
            0 => Shape::omp(),
            1 => Shape::pi(),
            _ => Shape::everything(session_gen::Dialect::Omp),
        };
        let damaged = damage(seed, generate(seed, &shape).as_bytes());
        let Ok(repaired) = repair(&damaged) else { continue };
        let (session, problems) = Session::read(&repaired.bytes).expect("a session");
        let left: Vec<_> =
            problems.iter().filter(|it| it.kind != crate::error::ProblemKind::UnknownVersion).collect();
        assert!(left.is_empty(), "seed {seed}: {left:?}");
        let sequence = session.branch(None).effective();
        let faults: Vec<_> = validate(&sequence).into_iter().filter(|it| it.kind.is_fault()).collect();
        assert_eq!((faults, &sequence.problem), (Vec::new(), &None), "seed {seed}");
        let again = repair(&repaired.bytes).expect("a session");
        assert_eq!((again.steps, &again.bytes), (Vec::new(), &repaired.bytes), "seed {seed}");
        if let Ok((old, _)) = Session::read(&damaged) {
            assert!(session.entries.len() >= old.entries.len(), "seed {seed}");
            let lost = (0..old.entries.len() as u32).find(|&entry| !session.has_id(old.id(entry)));
            assert_eq!(lost, None, "seed {seed}");
        }
    }
}

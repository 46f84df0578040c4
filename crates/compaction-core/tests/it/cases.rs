//! Shapes that users have met (spec 3.3 to 3.5).

use crate::sketch::prepared;

#[track_caller]
fn check(lines: &[&str], keep: u64, expected: &str) {
    assert_eq!(prepared(lines, keep), expected);
}

#[test]
fn cuts_where_the_budget_is_reached() {
    let lines =
        ["u1 user 10", "a1 assistant 10", "u2 user 10", "a2 assistant 10", "u3 user 10", "a3 assistant 10"];
    check(&lines, 20, "u1 a1 u2 a2 |  | from u3: u3 a3");
    check(&lines, 21, "u1 a1 | u2 | from a2: a2 u3 a3");
    check(&lines, 10, "u1 a1 u2 a2 | u3 | from a3: a3");
}

#[test]
fn a_budget_that_is_never_reached_leaves_nothing_to_do() {
    check(&["u1 user 10", "a1 assistant 10"], 1000, "nothing to compact");
    check(&[], 10, "nothing to compact");
    check(&["l label"], 10, "nothing to compact");
}

#[test]
fn what_the_previous_compaction_kept_is_in_the_window() {
    let lines = [
        "u1 user 10",
        "a1 assistant 10",
        "u2 user 10",
        "a2 assistant 10",
        "u3 user 10",
        "a3 assistant 10",
        "c1 compaction u2",
        "u4 user 10",
        "a4 assistant 10",
    ];
    check(&lines, 20, "u2 a2 u3 a3 |  | from u4: u4 a4");
    check(&lines, 40, "u2 a2 |  | from u3: u3 a3 u4 a4");
}

#[test]
fn results_larger_than_the_budget_stay_with_their_calls() {
    let lines = [
        "u1 user 10",
        "a1 assistant 10",
        "u2 user 10",
        "a2 assistant 10 c1 c2 c3 c4",
        "r1 result c1 5500",
        "r2 result c2 5500",
        "r3 result c3 5500",
        "r4 result c4 5500",
    ];
    check(&lines, 20_000, "u1 a1 | u2 | from a2: a2 r1 r2 r3 r4");
    check(&lines, 100, "u1 a1 | u2 | from a2: a2 r1 r2 r3 r4");
}

#[test]
fn an_entry_between_a_call_and_its_result_is_no_cut() {
    let lines = ["u1 user 10", "a1 assistant 10 c1", "m1 message 10", "r1 result c1 10", "a2 assistant 10"];
    check(&lines, 25, "u1 a1 | m1 r1 | from a2: a2");
    let lines = ["u1 user 10", "a1 assistant 10 c1", "k1 compaction a1", "r1 result c1 10", "u2 user 10"];
    check(&lines, 15, "a1 r1 |  | from u2: u2");
    check(&lines, 25, "nothing to compact");
}

#[test]
fn a_call_that_never_gets_a_result_forbids_nothing() {
    let lines = ["u1 user 10", "a1 assistant 10 c1", "u2 user 10", "a2 assistant 10"];
    check(&lines, 20, "u1 a1 |  | from u2: u2 a2");
}

#[test]
fn messages_of_extensions_are_counted() {
    let mut lines = vec!["u1 user 10".to_owned()];
    lines.extend((0..20).map(|n| format!("m{n} message 1500")));
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let shown = prepared(&lines, 3000);
    assert!(shown.ends_with("|  | from m18: m18 m19"), "{shown}");
}

#[test]
fn one_long_turn_is_split() {
    let mut lines = vec!["u1 user 10".to_owned()];
    for n in 0..50 {
        lines.push(format!("a{n} assistant 10 c{n}"));
        lines.push(format!("r{n} result c{n} 100"));
    }
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let shown = prepared(&lines, 200);
    assert!(shown.starts_with(" | u1 a0 r0 ") && shown.ends_with("from a49: a49 r49"), "{shown}");
}

#[test]
fn metadata_before_a_turn_is_kept_with_it_and_splits_nothing() {
    let lines = ["u1 user 10", "a1 assistant 10", "m model", "l label", "u2 user 10", "a2 assistant 10"];
    check(&lines, 20, "u1 a1 |  | from m: u2 a2");
}

#[test]
fn the_budget_is_scaled_by_what_was_measured() {
    // 40 estimated tokens were measured as 80, so that 20 tokens are kept as 10.
    let lines = ["u1 user 10", "a1 assistant 10", "u2 user 10", "a2 assistant 10 usage=80"];
    check(&lines, 20, "u1 a1 | u2 | from a2: a2");
    // What was measured before a compaction says nothing any more.
    let lines =
        ["u1 user 10", "a1 assistant 10 usage=8000", "c compaction u1", "u2 user 10", "a2 assistant 10"];
    check(&lines, 20, "u1 a1 |  | from u2: u2 a2");
}

#[test]
fn nothing_new_for_the_model_means_already_compacted() {
    let lines = ["u1 user 10", "a1 assistant 10", "c compaction u1"];
    check(&lines, 1, "already compacted");
    let lines = ["u1 user 10", "a1 assistant 10", "c compaction u1", "l label", "m model", "x excluded 10"];
    check(&lines, 1, "already compacted");
}

#[test]
fn a_reset_leaves_no_previous_compaction() {
    let lines = ["u1 user 10", "c compaction u1", "r reset", "u2 user 10", "a2 assistant 10", "u3 user 10"];
    check(&lines, 10, "u2 a2 |  | from u3: u3");
    let lines = ["u1 user 10", "r reset", "u2 user 10", "c compaction u2", "u3 user 10"];
    check(&lines, 10, "u2 |  | from u3: u3");
}

#[test]
fn what_never_reaches_the_model_is_no_cut_and_costs_nothing() {
    let lines = ["u1 user 10", "a1 assistant 10", "x excluded 1000", "a2 assistant 10"];
    check(&lines, 10, " | u1 a1 x | from a2: a2");
    check(&lines, 15, " | u1 | from a1: a1 x a2");
}

#[test]
fn file_mentions_and_developer_messages_start_no_turn() {
    let lines = ["u1 user 10", "a1 assistant 10", "u2 user 10", "f mention 10", "a2 assistant 10"];
    check(&lines, 15, "u1 a1 | u2 | from f: f a2");
    let lines = ["u1 user 10", "a1 assistant 10", "d developer 10", "a2 assistant 10"];
    check(&lines, 15, " | u1 a1 | from d: d a2");
}

#[test]
fn bash_custom_messages_and_branch_summaries_start_turns() {
    for start in ["s bash 10", "s custom 10", "s message 10", "s branch 10"] {
        let lines = ["u1 user 10", "a1 assistant 10", start, "a2 assistant 10"];
        check(&lines, 15, "u1 a1 |  | from s: s a2");
    }
}

#[test]
fn system_messages_are_in_no_list() {
    let lines = ["s system 10", "u1 user 10", "a1 assistant 10", "s2 system 10", "u2 user 10"];
    check(&lines, 10, "u1 a1 |  | from u2: u2");
}

#[test]
fn an_omitted_attempt_behind_the_cut_lets_the_request_before_it_be_summarised() {
    let lines = ["u1 user 10", "a1 assistant 10", "u2 user 500", "a2 failed 10", "o omit a2"];
    check(&lines, 100, "u1 a1 | u2 | from a2: ");
}

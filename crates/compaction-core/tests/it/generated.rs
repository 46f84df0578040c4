//! Shapes of the known cases that are too large for a fixture's file: made here (spec 3.4, 3.5).

use crate::sketch::prepared;

fn prepared_of(lines: &[String], keep: u64) -> String {
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    prepared(&lines, keep)
}

/// Ids `PREFIX FROM` to `PREFIX TO`, without the last, each through `name`.
fn ids(range: std::ops::Range<usize>, name: impl Fn(usize) -> String) -> String {
    range.map(name).collect::<Vec<_>>().join(" ")
}

#[test]
fn a_tail_of_851_messages_of_an_extension_respects_the_budget() {
    let mut lines = vec!["u1 user 10".to_owned(), "a1 assistant 10".to_owned()];
    // 6000 characters each; fourteen of them are the first to reach 20 000 tokens.
    lines.extend((0..851).map(|n| format!("m{n} message 1500")));
    let message = |n| format!("m{n}");
    let expected = format!("u1 a1 {} |  | from m837: {}", ids(0..837, message), ids(837..851, message));
    assert_eq!(prepared_of(&lines, 20_000), expected);
}

#[test]
fn one_request_with_200_tool_turns_is_cut_at_an_answer() {
    let mut lines = vec!["u1 user 10".to_owned()];
    for n in 0..200 {
        lines.push(format!("a{n} assistant 9 c{n}"));
        lines.push(format!("r{n} result c{n} 90"));
    }
    // A turn costs 9 + 1 + 90 tokens: the budget is reached at the answer of the tenth from the end.
    let turn = |n| format!("a{n} r{n}");
    let expected = format!(" | u1 {} | from a190: {}", ids(0..190, turn), ids(190..200, turn));
    assert_eq!(prepared_of(&lines, 1000), expected);
    // As much as the next result more: reached at that result, so the cut is at the answer behind it.
    assert_eq!(prepared_of(&lines, 1090), expected);
}

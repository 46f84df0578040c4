//! What automatic maintenance decides, and leaving a branch (spec 6.1, 6.2, 6.4).

use compaction_core::branch_summary::{BranchSkip, navigate, prepare_branch};
use compaction_core::maintenance::{Reason, Rest, Step, due, first_step};
use compaction_core::settings::{BranchSummarySettings, CompactionSettings};
use compaction_core::usage::context_tokens;
use session_model::session::Session;

use crate::sketch::session;

fn read(file: &str) -> Session {
    Session::read(file.as_bytes()).expect("a session").0
}

fn failed_with(words: &str, lines: &[&str]) -> String {
    session(lines)
        .replace(r#""stopReason":"error""#, &format!(r#""stopReason":"error","errorMessage":"{words}""#))
}

#[test]
fn the_context_is_what_was_measured_and_what_came_after() {
    let lines = ["u1 user 10", "a1 assistant 10 usage=500", "u2 user 10", "x excluded 99"];
    let session = read(&session(&lines));
    assert_eq!(context_tokens(&session.branch(None).effective()), 510);
}

#[test]
fn usage_of_zero_and_usage_before_an_edit_are_not_trusted() {
    let lines = ["u1 user 10", "a1 assistant 10 usage=0"];
    assert_eq!(context_tokens(&read(&session(&lines)).branch(None).effective()), 20);
    let lines = ["u1 user 10", "a1 assistant 10 usage=500", "u2 user 10", "o omit u1"];
    assert_eq!(context_tokens(&read(&session(&lines)).branch(None).effective()), 20);
}

#[test]
fn what_was_pruned_since_is_taken_off_the_measured_size() {
    let lines = ["u1 user 10", "a1 assistant 10 c1", "r1 result c1 1000", "a2 assistant 10 usage=1500"];
    let file = session(&lines);
    let before = context_tokens(&read(&file).branch(None).effective());
    let blanked = file
        .replace(&"x".repeat(4000), "[Output truncated - 1000 tokens]")
        .replace(r#""toolName":"t""#, r#""toolName":"t","prunedAt":1767229200000"#);
    let session = read(&blanked);
    assert_eq!((before, context_tokens(&session.branch(None).effective())), (1500, 1500 - (1000 - 8)));
}

#[test]
fn an_overflow_comes_first() {
    let words = "prompt is too long: 219898 tokens > 200000 maximum";
    let file = failed_with(words, &["u1 user 10", "f failed 0", "l label"]);
    let session = read(&file);
    let sequence = session.branch(None).effective();
    let step = first_step(&sequence, &CompactionSettings::default(), None);
    let Step::Recover(overflow) = step else { panic!("{step:?}") };
    assert_eq!(session.id(overflow.entry), "f");
    assert!(overflow.is_error && overflow.can_leave);
}

#[test]
fn an_overflow_of_another_model_or_before_a_compaction_is_history() {
    let words = "prompt is too long: 219898 tokens > 200000 maximum";
    let model = r#""provider":"q","model":"n","stopReason":"error""#;
    let file = failed_with(words, &["u1 user 10", "f failed 0", "m model"]);
    let file = file.replace(r#""stopReason":"error""#, model);
    let step = first_step(&read(&file).branch(None).effective(), &CompactionSettings::default(), None);
    assert_eq!(step, Step::Nothing(Rest::Failed));
    let file = failed_with(words, &["u1 user 10", "f failed 0", "c compaction u1", "u2 user 1"]);
    let step = first_step(&read(&file).branch(None).effective(), &CompactionSettings::default(), None);
    assert_eq!(step, Step::PruneAndCheck);
}

#[test]
fn a_silent_overflow_needs_the_window() {
    let session = read(&session(&["u1 user 10", "a1 assistant 10 usage=5000"]));
    let sequence = session.branch(None).effective();
    let settings = CompactionSettings::default();
    assert!(
        matches!(first_step(&sequence, &settings, Some(4000)), Step::Recover(overflow) if !overflow.is_error && !overflow.can_leave)
    );
    assert_eq!(first_step(&sequence, &settings, Some(5000)), Step::PruneAndCheck);
    assert_eq!(first_step(&sequence, &settings, None), Step::PruneAndCheck);
}

#[test]
fn nothing_is_due_in_an_unknown_window_unless_the_session_rests() {
    let session = read(&session(&["u1 user 10", "a1 assistant 10 usage=250000"]));
    let sequence = session.branch(None).effective();
    let settings = CompactionSettings::default();
    assert_eq!(due(&sequence, &settings, None, false), None);
    assert_eq!(due(&sequence, &settings, Some(200_000), false), Some(Reason::Threshold));
    assert_eq!(due(&sequence, &settings, Some(1_000_000), false), None);
    assert_eq!(due(&sequence, &settings, None, true), Some(Reason::Idle));
}

#[test]
fn leaving_a_branch_abandons_what_is_not_on_both() {
    let lines = [
        "u1 user 10",
        "a1 assistant 10",
        "u2 user 10",
        "a2 assistant 10",
        "u3<a1 user 10",
        "a3 assistant 10",
    ];
    let session = read(&session(&lines));
    let at = |id: &str| session.find(id).expect("an entry");
    let ids = |entries: &[u32]| entries.iter().map(|&entry| session.id(entry).to_owned()).collect::<Vec<_>>();
    assert_eq!(navigate(&session, Some(at("a3")), at("a3")), None);
    let move_ = navigate(&session, Some(at("a3")), at("a2")).expect("a move");
    assert_eq!(
        (ids(&move_.abandoned), move_.common_ancestor),
        (vec!["u3".to_owned(), "a3".to_owned()], Some(at("a1")))
    );
    assert_eq!((move_.new_leaf, move_.gives_text_back), (Some(at("a2")), false));
    let root = navigate(&session, Some(at("a3")), at("u1")).expect("a move");
    assert_eq!((root.new_leaf, root.gives_text_back, ids(&root.abandoned).len()), (None, true, 3));
}

#[test]
fn a_branch_request_takes_the_newest_that_fit() {
    let lines = ["u1 user 10", "a1 assistant 10 c1", "r1 result c1 2000", "u2 user 300", "a2 assistant 200"];
    let session = read(&session(&lines));
    let entries = session.branch(None).entries;
    let settings = BranchSummarySettings { reserve_tokens: 1000, ..BranchSummarySettings::default() };
    let with = |window| prepare_branch(&session, &entries, &settings, Some(window));
    let taken = |window| {
        let preparation = with(window).expect("something to summarise");
        let ids: Vec<&str> = preparation.messages.iter().map(|item| session.id(item.entry)).collect();
        (ids.join(" "), preparation.cuts_newest)
    };
    assert_eq!(taken(1100), ("a2".to_owned(), true));
    assert_eq!(taken(1300), ("a2".to_owned(), false));
    assert_eq!(taken(1500), ("u2 a2".to_owned(), false));
    // A long result counts as what is shown of it.
    assert_eq!(taken(2013), ("r1 u2 a2".to_owned(), false));
    assert_eq!(with(1000).err(), Some(BranchSkip::NoBudget { reserve: 1000, window: 1000 }));
    assert_eq!(prepare_branch(&session, &[], &settings, None).err(), Some(BranchSkip::NothingToSummarize));
}

//! Which results are candidates, by example and over generated sessions (spec part 4).

use pruning::apply::{context_edits, pruned_record};
use pruning::plan::{PrunePlan, Verdict, plan};
use pruning::settings::PruneSettings;
use session_gen::{Dialect, Shape, generate};
use session_model::session::{Records, Session};
use session_model::validate::new_faults;
use session_model::value::Value;

/// A session of results: `TOOL TOKENS`, each after a call of its own; `pruned TOKENS` for one that is blanked already.
fn session(results: &[(&str, u64)]) -> String {
    let mut file = r#"{"type":"session","version":3,"id":"s"}"#.to_owned();
    let mut parent = "null".to_owned();
    for (n, (tool, tokens)) in results.iter().enumerate() {
        let text = "x".repeat(4 * *tokens as usize);
        let pruned = if *tool == "pruned" { r#","prunedAt":5"# } else { "" };
        file.push_str(&format!(
            r#"
{{"type":"message","id":"a{n}","parentId":{parent},"message":{{"role":"assistant","content":[{{"type":"toolCall","id":"c{n}","name":"{tool}","arguments":{{}}}}]}}}}
{{"type":"message","id":"r{n}","parentId":"a{n}","message":{{"role":"toolResult","toolCallId":"c{n}","toolName":"{tool}","content":[{{"type":"text","text":"{text}"}}]{pruned}}}}}"#
        ));
        parent = format!("\"r{n}\"");
    }
    file
}

fn settings(protect: u64, minimum: u64) -> PruneSettings {
    PruneSettings { protect_tokens: protect, minimum_savings: minimum, ..PruneSettings::default() }
}

#[track_caller]
fn check(results: &[(&str, u64)], settings: &PruneSettings, savings: u64, verdicts: &str) {
    let file = session(results);
    let (session, _) = Session::read(file.as_bytes()).expect("a session");
    let plan = plan(&session.branch(None).effective(), settings);
    let shown: Vec<&str> = plan.results.iter().rev().map(|result| result.verdict.name()).collect();
    assert_eq!((shown.join(" "), plan.savings), (verdicts.to_owned(), savings));
}

#[test]
fn the_newest_tokens_of_tool_output_stay() {
    check(
        &[("bash", 1000), ("bash", 1000), ("bash", 1000)],
        &settings(1500, 0),
        992,
        "candidate recent recent",
    );
    check(
        &[("bash", 1000), ("bash", 1000), ("bash", 1000)],
        &settings(1000, 0),
        1984,
        "candidate candidate recent",
    );
    check(&[("bash", 1000)], &settings(0, 0), 992, "candidate");
}

#[test]
fn protected_tools_stay_and_fill_the_protected_part() {
    check(
        &[("bash", 1000), ("read", 1000), ("bash", 10)],
        &settings(1000, 0),
        992,
        "candidate protected_tool recent",
    );
}

#[test]
fn the_walk_goes_on_past_results_that_are_blanked_already() {
    check(
        &[("bash", 1000), ("pruned", 5), ("bash", 1000)],
        &settings(500, 0),
        992,
        "candidate pruned recent",
    );
}

#[test]
fn a_result_no_larger_than_the_notice_stays() {
    // "[Output truncated - 8 tokens]" has 29 characters, which are 8 tokens; with 9 tokens it has as many.
    check(
        &[("bash", 3), ("bash", 8), ("bash", 9), ("bash", 1)],
        &settings(1, 0),
        1,
        "small small candidate recent",
    );
}

#[test]
fn less_than_the_minimum_is_left_alone_and_exactly_the_minimum_is_not() {
    let results = [("bash", 20_009), ("bash", 40_000)];
    let file = session(&results);
    let (session, _) = Session::read(file.as_bytes()).expect("a session");
    let sequence = session.branch(None).effective();
    let saves = plan(&sequence, &settings(40_000, 0)).savings;
    assert_eq!(saves, 20_000);
    let is_worth_it = |minimum| plan(&sequence, &settings(40_000, minimum)).is_worth_it;
    assert_eq!((is_worth_it(20_000), is_worth_it(20_001)), (true, false));
    assert_eq!(plan(&sequence, &settings(40_000, 20_001)).candidates().count(), 0);
}

#[test]
fn what_the_model_no_longer_sees_is_not_looked_at() {
    let file = format!(
        "{}\n{}",
        session(&[("bash", 1000), ("bash", 1000), ("bash", 1000)]),
        r#"{"type":"compaction","id":"k","parentId":"r2","summary":"s","firstKeptEntryId":"a2","tokensBefore":1}"#
    );
    let (session, _) = Session::read(file.as_bytes()).expect("a session");
    let plan = plan(&session.branch(None).effective(), &settings(0, 0));
    assert_eq!(plan.results.len(), 1);
}

#[test]
fn strings_images_and_empty_content_are_pruned_by_what_they_cost() {
    let file = session(&[("bash", 1000), ("bash", 1000), ("bash", 1000)]);
    let text = "x".repeat(4000);
    let file = file
        .replacen(&format!(r#"[{{"type":"text","text":"{text}"}}]"#), &format!("\"{text}\""), 1)
        .replacen(
            &format!(r#"[{{"type":"text","text":"{text}"}}]"#),
            r#"[{"type":"text","text":"ab"},{"type":"image","data":"aaaa","mimeType":"image/png"}]"#,
            1,
        );
    let (session, _) = Session::read(file.as_bytes()).expect("a session");
    let sequence = session.branch(None).effective();
    let plan = plan(&sequence, &settings(1000, 0));
    let candidates: Vec<(u64, String)> = plan
        .candidates()
        .map(|result| {
            let span = session.entry(result.entry).span;
            let old = file.as_bytes()[span.offset as usize..(span.offset + span.len) as usize].to_vec();
            let new = pruned_record(&old, result, 77).expect("a message");
            (result.estimate, String::from_utf8(new).expect("UTF-8"))
        })
        .collect();
    assert_eq!(candidates.iter().map(|(estimate, _)| *estimate).collect::<Vec<_>>(), [1000, 1201]);
    assert_eq!(
        candidates[1].1,
        r#"{"type":"message","id":"r1","parentId":"a1","message":{"role":"toolResult","toolCallId":"c1","toolName":"bash","content":[{"type":"text","text":"[Output truncated - 1201 tokens]"}],"prunedAt":77}}"#
    );
    assert!(
        candidates[0].1.contains(r#""content":[{"type":"text","text":"[Output truncated - 1000 tokens]"}]"#)
    );
}

/// The file with a plan carried out in place.
fn pruned(file: &str, session: &Session, plan: &PrunePlan) -> String {
    let mut changed = file.as_bytes().to_vec();
    let mut results: Vec<_> = plan.candidates().collect();
    results.sort_by_key(|result| std::cmp::Reverse(session.entry(result.entry).span.offset));
    for result in results {
        let span = session.entry(result.entry).span;
        let range = span.offset as usize..(span.offset + span.len) as usize;
        let new = pruned_record(&changed[range.clone()], result, 1_900_000_000_000).expect("a message");
        changed.splice(range, new);
    }
    String::from_utf8(changed).expect("UTF-8")
}

#[test]
fn pruning_changes_candidates_only_and_a_second_run_nothing() {
    let mut n_pruned = 0;
    for seed in 0..300 {
        for shape in
            [Shape::omp(), Shape::pi(), Shape::everything(Dialect::Omp), Shape::everything(Dialect::Pi)]
        {
            let file = generate(seed, &shape);
            let (session, _) = Session::read(file.as_bytes()).expect("a session");
            if session.needs_migration() {
                // Ids of version 1 come from the content; such a file is rewritten before it is pruned.
                continue;
            }
            let sequence = session.branch(None).effective();
            let settings = settings(seed % 700, 0);
            let plan_before = plan(&sequence, &settings);
            let blanked: Vec<u64> =
                plan_before.candidates().map(|result| session.entry(result.entry).span.line).collect();
            n_pruned += blanked.len();
            let new = pruned(&file, &session, &plan_before);
            for (n, (old, new)) in file.split('\n').zip(new.split('\n')).enumerate() {
                assert_eq!(old == new, !blanked.contains(&(n as u64 + 1)), "seed {seed} line {}", n + 1);
            }
            let (after, _) = Session::read(new.as_bytes()).expect("a session");
            let after = after.branch(None).effective();
            assert!(new_faults(&sequence, &after).is_empty(), "seed {seed}");
            assert_eq!(plan(&after, &settings).candidates().count(), 0, "seed {seed}");
            assert_eq!(
                sequence.estimate() - after.estimate(),
                if plan_before.is_worth_it { plan_before.savings } else { 0 }
            );
        }
    }
    assert!(n_pruned > 1000, "{n_pruned}");
}

#[test]
fn context_edits_say_the_same_as_changed_lines() {
    let mut n_edits = 0;
    for seed in 0..200 {
        let file = generate(seed, &Shape::pi());
        let (session, _) = Session::read(file.as_bytes()).expect("a session");
        if session.needs_migration() {
            continue;
        }
        let branch = session.branch(None);
        let settings = settings(seed % 700, 0);
        let plan = plan(&branch.effective(), &settings);
        let edits: Vec<String> = context_edits(&session, &plan, branch.leaf(), 1_900_000_000_000)
            .iter()
            .map(Value::to_json)
            .collect();
        n_edits += edits.len();
        let appended = format!("{}\n{}", file.trim_end_matches('\n'), edits.join("\n"));
        let contents = |file: &str| -> Vec<String> {
            let (session, _) = Session::read(file.as_bytes()).expect("a session");
            let sequence = session.branch(None).effective();
            let messages = session_model::agent_message::agent_messages(&sequence, file.as_bytes());
            let messages = messages.expect("the records are there");
            messages
                .iter()
                .map(|message| message.value.get("content").map_or(String::new(), Value::to_json))
                .collect()
        };
        assert_eq!(contents(&appended), contents(&pruned(&file, &session, &plan)), "seed {seed}");
        let (after, _) = Session::read(appended.as_bytes()).expect("a session");
        let again = pruning::plan(&after.branch(None).effective(), &settings);
        assert!(
            again.results.iter().all(|result| !matches!(result.verdict, Verdict::Candidate { .. })),
            "seed {seed}"
        );
        assert!(Records::text(appended.as_bytes(), after.entries[0].span).is_ok());
    }
    assert!(n_edits > 200, "{n_edits}");
}

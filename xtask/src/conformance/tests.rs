//! The comparison itself is honest: a wrong answer is seen, and a deviation is met only where its shape is.

use std::path::{Path, PathBuf};

use session_model::prompts::Prompts;
use session_model::sequence::Item;
use session_model::value::Value;
use summarizer::provider::Request;

use super::deviations::{self, Walk};
use super::subject::{Reading, Subject};
use super::verdict::{Deviation, Finding, Sheet, Topic, Verdict};
use super::{compare, questions, requests, sources};
use crate::files;
use crate::fixtures::Case;
use crate::reference::{Answer, Program, Question};

/// A session that a compaction divides.
fn subject() -> Subject {
    let generator =
        sources::generators().into_iter().find(|it| it.name == "omp-plain").expect("there is such a shape");
    let mut subject = generator.subject(3, Path::new("/nowhere"));
    subject.compaction.keep_recent_tokens = 40;
    (subject.pruning.protect_tokens, subject.pruning.minimum_savings) = (0, 0);
    (subject.leaf, subject.target) = (None, Some(0));
    subject
}

fn question(kind: &'static str) -> Question {
    Question { kind, file: PathBuf::from("/nowhere"), args: "{}".to_owned() }
}

fn findings(subject: &Subject, kind: &'static str, answer: &Answer) -> Vec<Finding> {
    let reading = Reading::of(subject).expect("a session");
    let mut sheet = Sheet::default();
    compare::compare(&reading, Program::R13, &question(kind), answer, &mut sheet);
    sheet.findings
}

/// `right` must be equal in all that `kind` compares, and each of `wrong` must be seen as different in something.
#[track_caller]
fn check(kind: &'static str, right: &str, wrong: &[(&str, &str)]) {
    let subject = subject();
    let said = |ok: &str| Answer::Said(format!(r#"{{"id":0,"ok":{ok}}}"#));
    let equal = findings(&subject, kind, &said(right));
    assert!(equal.iter().all(|finding| finding.verdict == Verdict::Equal), "{equal:#?}");
    for (old, new) in wrong {
        assert!(right.contains(old), "the answer has no {old}");
        let seen = findings(&subject, kind, &said(&right.replacen(old, new, 1)));
        let is_seen = seen.iter().any(|finding| matches!(finding.verdict, Verdict::Different(_)));
        assert!(is_seen, "{old} → {new}: {seen:#?}");
    }
}

#[test]
fn one_flipped_byte_of_a_message_is_reported() {
    let subject = subject();
    let reading = Reading::of(&subject).expect("a session");
    let messages: Vec<String> = compare::agent_context(&reading).iter().map(Value::to_json).collect();
    let line = format!(
        r#"{{"id":0,"ok":{{"entries":{},"context":{{"messages":[{}]}}}}}}"#,
        reading.session.entries.len(),
        messages.join(",")
    );
    let verdicts = |line: &str| -> Vec<Verdict> {
        findings(&subject, "context", &Answer::Said(line.to_owned()))
            .into_iter()
            .map(|it| it.verdict)
            .collect()
    };
    assert_eq!(verdicts(&line)[..2], [Verdict::Equal, Verdict::Equal]);
    // Letters of texts only, so that what comes out is still JSON.
    let starts: Vec<usize> = line.match_indices("\"text\":\"").map(|(at, found)| at + found.len()).collect();
    let letters = starts.into_iter().filter(|&at| line.as_bytes()[at].is_ascii_alphabetic());
    let mut n_flipped = 0;
    for at in letters {
        let mut wrong = line.clone().into_bytes();
        wrong[at] ^= 1;
        let seen = verdicts(&String::from_utf8(wrong).expect("only ASCII was changed"));
        assert!(matches!(seen[1], Verdict::Different(_)), "byte {at}: {seen:?}");
        n_flipped += 1;
    }
    assert!(n_flipped > 10, "{n_flipped} texts are too few to tell");
}

#[test]
fn a_wrong_preparation_is_reported() {
    let subject = subject();
    let reading = Reading::of(&subject).expect("a session");
    let ours = reading.preparation().expect("there is something to compact");
    let places = |items: &[Item]| questions::message_places(&reading, items).to_json();
    let last = ours.history.last().expect("there is a history").entry;
    let right = format!(
        r#"{{"firstKept":{},"messagesToSummarize":{},"turnPrefixMessages":{},"recentMessages":{},"isSplitTurn":{},"tokensBefore":{},"fileOps":{}}}"#,
        ours.first_kept,
        places(&ours.history),
        places(&ours.turn_prefix),
        places(&ours.recent),
        ours.is_split_turn,
        ours.measured.map_or(ours.tokens_before, |measured| measured.context_tokens as u64),
        compare::details(&ours.file_ops.lists()).to_json(),
    );
    // Tokens before are what was measured: that they are given without what follows is a deviation of its own.
    let first_kept = format!(r#""firstKept":{}"#, ours.first_kept);
    let file = r#""readFiles":["#;
    let reading_excuses = findings(&subject, "prepare", &Answer::Said(format!(r#"{{"ok":{right}}}"#)));
    assert!(
        !reading_excuses.iter().any(|it| matches!(it.verdict, Verdict::Different(_))),
        "{reading_excuses:#?}"
    );
    for (old, new) in [
        (first_kept.as_str(), r#""firstKept":1"#),
        (&*format!("{last}]"), "9999]"),
        (file, r#""readFiles":["made-up.rs","#),
        (r#""recentMessages":["#, r#""recentMessages":[0,"#),
    ] {
        assert!(right.contains(old), "the answer has no {old}");
        let wrong = right.replacen(old, new, 1).replace(",]", "]");
        let seen = findings(&subject, "prepare", &Answer::Said(format!(r#"{{"ok":{wrong}}}"#)));
        let is_seen = seen.iter().any(|finding| matches!(finding.verdict, Verdict::Different(_)));
        assert!(is_seen, "{old} → {new}: {seen:#?}");
    }
}

#[test]
fn a_wrong_pruning_is_reported() {
    let subject = subject();
    let reading = Reading::of(&subject).expect("a session");
    let plan = pruning::plan(&reading.sequence(), &subject.pruning);
    let changed: Vec<String> = plan
        .candidates()
        .map(|result| {
            let notice = session_model::message::pruned_notice(result.estimate);
            format!(r#"{{"place":{},"content":[{{"type":"text","text":"{notice}"}}]}}"#, result.entry)
        })
        .collect();
    assert!(changed.len() > 1, "there are results to prune");
    let all = changed.join(",");
    let fewer = format!(r#"{{"changed":[{}]}}"#, changed[1..].join(","));
    check(
        "prune",
        &format!(r#"{{"changed":[{all}]}}"#),
        &[("tokens]", "token]"), ("truncated - ", "truncated - 1")],
    );
    let seen = findings(&subject, "prune", &Answer::Said(format!(r#"{{"ok":{fewer}}}"#)));
    assert!(matches!(seen[0].verdict, Verdict::Different(_)), "{seen:?}");
}

#[test]
fn one_flipped_byte_of_a_request_is_reported() {
    let ours = Request {
        system: Prompts::default().text(session_model::prompts::PromptName::System),
        prompt: "<conversation>\n[User]: go\n</conversation>\n\nSummarise.".to_owned(),
        max_output_tokens: 100,
    };
    let asked = |prompt: &str| -> Vec<Verdict> {
        let mut theirs = session_model::value::Object::new();
        theirs.set("system", ours.system.clone());
        theirs.set("prompt", prompt.to_owned());
        theirs.set("maxTokens", 100.0);
        let mut sheet = Sheet::default();
        requests::one(Topic::Requests, (&ours, None), &theirs.into(), false, &mut sheet);
        sheet.findings.into_iter().map(|finding| finding.verdict).collect()
    };
    assert!(asked(&ours.prompt).iter().all(|verdict| *verdict == Verdict::Equal));
    for at in 0..ours.prompt.len() {
        let mut wrong = ours.prompt.clone().into_bytes();
        wrong[at] ^= 1;
        let wrong = String::from_utf8(wrong).expect("only ASCII was changed");
        assert!(asked(&wrong).iter().any(|verdict| matches!(verdict, Verdict::Different(_))), "{wrong}");
    }
}

#[test]
fn a_missing_answer_is_a_difference() {
    for answer in [Answer::Lost, Answer::Failed("no".to_owned()), Answer::Said("no JSON".to_owned())] {
        let seen = findings(&subject(), "prepare", &answer);
        assert!(
            matches!(seen[..], [Finding { topic: Topic::CutPoint, verdict: Verdict::Different(_), .. }]),
            "{seen:?}"
        );
    }
}

/// The deviations whose shape a fixture has.
fn shapes(name: &str) -> Vec<Deviation> {
    let root = files::root().expect("the workspace");
    let case = Case::all(&root.join("fixtures"))
        .expect("fixtures")
        .into_iter()
        .find(|case| case.name == name)
        .expect("there is such a fixture");
    let bytes = files::read_bytes(&case.session()).expect("its session");
    let (session, _) = session_model::session::Session::read(&bytes).expect("a session");
    let sequence = session.branch(None).effective();
    let walk = Walk::of(&sequence, &case.compaction());
    let first_kept = compaction_core::prepare(&sequence, &case.compaction()).map(|it| it.cut).ok();
    [
        (Deviation::D1, deviations::d1(&sequence)),
        (Deviation::D2, deviations::d2(&walk)),
        (Deviation::D3, first_kept.is_some_and(|cut| deviations::d3(&sequence, cut))),
        (Deviation::D4, deviations::d4(&sequence, &walk, Program::R13)),
        (Deviation::D5, deviations::d5(&sequence, &walk)),
        (Deviation::D6, deviations::d6(&sequence)),
        (Deviation::D9, deviations::d9(&sequence)),
        (Deviation::D12, deviations::d12(&session, &sequence.branch)),
        (Deviation::D15, deviations::d15(&session)),
        (Deviation::D21, deviations::d21(&session, &sequence.branch)),
        (Deviation::D22, deviations::d22(&sequence)),
    ]
    .into_iter()
    .filter_map(|(deviation, has)| has.then_some(deviation))
    .collect()
}

#[test]
fn a_deviation_is_met_where_its_shape_is_and_nowhere_else() {
    use Deviation::{D1, D2, D3, D4, D5, D6, D9, D12, D15, D21, D22};
    // D9 is the fallback to the estimate where nothing was measured.
    assert_eq!(shapes("keep-budget-scaled-for-dense-text"), []);
    assert_eq!(shapes("kept-messages-enter-second-summary"), [D1, D9]);
    assert_eq!(shapes("results-larger-than-the-keep-budget"), [D2, D9, D12]);
    assert_eq!(shapes("metadata-before-a-user-message"), [D3, D9]);
    assert_eq!(shapes("images-of-the-user-are-counted"), [D4, D9]);
    assert_eq!(shapes("custom-message-between-a-call-and-its-result"), [D3, D4, D5, D9, D12]);
    assert_eq!(shapes("results-smaller-than-their-notice"), [D6, D9, D12]);
    assert_eq!(shapes("two-records-on-one-line"), [D9, D15]);
    assert_eq!(shapes("compaction-made-by-an-extension"), [D1, D9, D12, D21]);
    assert_eq!(shapes("metadata-after-a-compaction"), [D1, D9, D22]);
}

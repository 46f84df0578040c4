//! Leaving a branch: what is left behind, and the request for its summary.

use compaction_core::branch_summary::{navigate, prepare_branch};
use compaction_core::settings::BranchSummarySettings;
use session_model::message::Role;
use session_model::value::Value;
use summarizer::material::branch_messages;
use summarizer::provider::Request;
use summarizer::request::{Frame, Kind, RequestOptions};
use summarizer::transcript::transcript;

use super::canonical::canonical;
use super::compare::details;
use super::deviations;
use super::questions::{WIDE_WINDOW, place};
use super::requests;
use super::subject::Reading;
use super::verdict::{Deviation, Sheet, Topic, Verdict};
use crate::reference::Program;

/// Output limit of R13's branch summaries; ours is larger (D12).
const THEIR_LIMIT: u64 = 2048;

/// Compares what is left behind; with R13 also the request.
pub(crate) fn branch(reading: &Reading<'_>, program: Program, theirs: &Value<'_>, sheet: &mut Sheet) {
    let session = &reading.session;
    let Some(target) = reading.subject.target else { return };
    let Some(navigation) = navigate(session, session.branch(reading.subject.leaf).leaf(), target) else {
        return;
    };
    let key = (program, Topic::Abandoned);
    let ancestor = navigation.common_ancestor.map_or(Value::Null, place);
    let their_ancestor = theirs.get("commonAncestor").map(canonical).unwrap_or_default();
    sheet.compare(key, &canonical(&ancestor), &their_ancestor, &[]);
    let abandoned = Value::Array(navigation.abandoned.iter().copied().map(place).collect());
    let their_abandoned = theirs.get("abandoned").map(canonical).unwrap_or_default();
    sheet.compare(key, &canonical(&abandoned), &their_abandoned, &[]);
    if program == Program::R13 {
        request(reading, &navigation.abandoned, theirs, sheet);
    }
}

fn request(
    reading: &Reading<'_>,
    abandoned: &[session_model::entry::EntryNo],
    theirs: &Value<'_>,
    sheet: &mut Sheet,
) {
    let session = &reading.session;
    let key = (Program::R13, Topic::BranchRequest);
    let has_d12 = deviations::d12(session, abandoned);
    let settings = BranchSummarySettings::default();
    let prepared = prepare_branch(session, abandoned, &settings, Some(WIDE_WINDOW));
    let asked = theirs.get("requests").map_or(&[][..], Value::items);
    let Ok(prepared) = prepared else {
        let ours = "nothing to summarise";
        let excuses: &[Deviation] = if has_d12 { &[Deviation::D12] } else { &[] };
        sheet.compare(key, ours, if asked.is_empty() { ours } else { "a request" }, excuses);
        return;
    };
    let messages =
        branch_messages(&prepared, reading.records(), &reading.prompts).expect("the records are in memory");
    let options = RequestOptions::default();
    // R13's own limit, so that the rest can be compared.
    let frame = Frame { prompts: &reading.prompts, options: &options, max_output_tokens: THEIR_LIMIT };
    let made = |keep: &dyn Fn(Role) -> bool| -> Request {
        let kept: Vec<Value<'_>> = messages
            .iter()
            .filter(|message| message.text("role").is_some_and(|role| keep(Role::from_wire(&role))))
            .cloned()
            .collect();
        frame.request(Kind::Branch, &transcript(&kept), None)
    };
    // D12: tool results are ours alone. D17: developer messages are.
    let ours = made(&|role| role != Role::ToolResult);
    let lean = made(&|role| !matches!(role, Role::ToolResult | Role::Developer));
    let only_ours = messages.iter().all(|message| {
        message
            .text("role")
            .is_some_and(|role| matches!(Role::from_wire(&role), Role::ToolResult | Role::Developer))
    });
    match asked {
        [theirs] => requests::one(Topic::BranchRequest, (&ours, Some(&lean)), theirs, false, sheet),
        [] if only_ours => {
            sheet.add(Program::R13, Topic::BranchRequest, Verdict::Explained([Deviation::D12].into()));
        }
        _ => {
            let words = format!("one request of ours, {} of theirs", asked.len());
            sheet.add(Program::R13, Topic::BranchRequest, Verdict::Different(words));
        }
    }
    let mut excuses = Vec::new();
    if has_d12 {
        excuses.push(Deviation::D12);
    }
    if deviations::d21(session, abandoned) {
        excuses.push(Deviation::D21);
    }
    let files = theirs.get("files").map(canonical).unwrap_or_default();
    sheet.compare(key, &canonical(&details(&prepared.file_ops.lists())), &files, &excuses);
}

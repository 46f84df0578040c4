//! From a plan to changed records, or to context edits that say the same (spec part 4).

use session_model::edit::{FieldChange, change_bytes};
use session_model::entry::{EntryKind, EntryNo, Stamp};
use session_model::message::pruned_notice;
use session_model::session::Session;
use session_model::value::{Object, Value};

use crate::plan::{PrunePlan, ToolResult};

/// The record of a blanked tool result, every other byte of it kept; `None` if it is no record of a message.
pub fn pruned_record(record: &[u8], result: &ToolResult, pruned_at_ms: i64) -> Option<Vec<u8>> {
    let content = notice_blocks(result).to_json();
    let time = pruned_at_ms.to_string();
    let edits = [
        (&["message", "content"][..], FieldChange::Set(&content)),
        (&["message", "prunedAt"][..], FieldChange::Set(&time)),
    ];
    change_bytes(record, &edits).ok()
}

/// The time that blanked results get: never earlier than the newest entry (spec 3.2).
pub fn pruned_at(session: &Session, now_ms: i64) -> i64 {
    session.newest_time_ms().map_or(now_ms, |newest| newest.max(now_ms))
}

/// Context edits that put the notices into the place of the candidates, each a child of the one before, the first of `leaf`.
pub fn context_edits(
    session: &Session,
    plan: &PrunePlan,
    leaf: Option<EntryNo>,
    time_ms: i64,
) -> Vec<Value<'static>> {
    let mut edits = Vec::new();
    let mut taken: std::collections::HashSet<String> = std::collections::HashSet::new();
    let mut parent = leaf.map(|leaf| session.id(leaf).to_owned());
    for result in plan.candidates() {
        let make = |stamp: &Stamp| {
            let mut edit = stamp.head(EntryKind::ContextEdit, parent.as_deref());
            edit.set("targetId", session.id(result.entry).to_owned());
            let mut replacement = Object::new();
            replacement.set("content", notice_blocks(result));
            edit.set("replacement", replacement);
            Value::Object(edit)
        };
        let is_taken = |id: &str| session.has_id(id) || taken.contains(id);
        let (stamp, edit) = Stamp::entry(time_ms, is_taken, make);
        edits.push(edit);
        taken.insert(stamp.id.clone());
        parent = Some(stamp.id);
    }
    edits
}

/// The content of a blanked result.
fn notice_blocks(result: &ToolResult) -> Value<'static> {
    let mut block = Object::new();
    block.set("type", "text");
    block.set("text", pruned_notice(result.estimate));
    Value::Array(vec![Value::Object(block)])
}

//! From the effective sequence to agent messages: what the agent holds in memory of a branch, one message an entry (spec 2.1, 2.3).

use crate::dialect::Dialect;
use crate::entry::{Entry, EntryKind};
use crate::error::RecordError;
use crate::message::Role;
use crate::sequence::{Item, Part, Sequence, Share};
use crate::session::Records;
use crate::value::{Object, Value};

/// An agent message and the entry that gives it.
#[derive(Clone, Debug)]
pub struct AgentMessage<'r> {
    /// Its place in the effective sequence.
    pub item: Item,
    /// The message, in the form that the agent which wrote the file gives it.
    pub value: Value<'r>,
}

/// All agent messages of the context, in its order.
///
/// # Errors
/// A record that cannot be read again.
pub fn agent_messages<'r, R: Records + ?Sized>(
    sequence: &Sequence<'_>,
    records: &'r R,
) -> Result<Vec<AgentMessage<'r>>, RecordError> {
    let mut messages = Vec::with_capacity(sequence.items.len() + 1);
    for item in sequence.items.iter().filter(|item| item.part != Part::KeptElsewhere) {
        if let Some(value) = compaction_system_message(sequence, item) {
            messages.push(AgentMessage { item: *item, value });
        }
        if let Some(value) = agent_message(sequence, item, records)? {
            messages.push(AgentMessage { item: *item, value });
        }
    }
    Ok(messages)
}

/// The fold of system messages that a compaction of pi hands on: it stands before the summary.
pub fn compaction_system_message(sequence: &Sequence<'_>, item: &Item) -> Option<Value<'static>> {
    let compaction = (item.part == Part::Summary).then(|| sequence.entry(item).compaction()).flatten()?;
    let json = compaction.system_message.as_deref()?;
    Some(Value::parse(json).expect("the reader has printed it").into_owned())
}

/// The message that an item gives the agent; `None` if it gives none.
///
/// # Errors
/// The item's record cannot be read again.
pub fn agent_message<'r, R: Records + ?Sized>(
    sequence: &Sequence<'_>,
    item: &Item,
    records: &'r R,
) -> Result<Option<Value<'r>>, RecordError> {
    if item.share == Share::Nothing {
        return Ok(None);
    }
    let session = sequence.session;
    let entry = sequence.entry(item);
    let record = records.value(entry.span)?;
    let message = match entry.kind {
        EntryKind::Message => message_of(record, session.header.version),
        EntryKind::CustomMessage => Some(custom_message(&record, entry, session.dialect)),
        EntryKind::BranchSummary => Some(branch_summary(&record, entry)),
        EntryKind::Compaction => Some(compaction_summary(&record, entry, session.dialect)),
        EntryKind::ContextEdit
        | EntryKind::ResetBoundary
        | EntryKind::ModelChange
        | EntryKind::ThinkingLevelChange
        | EntryKind::ServiceTierChange
        | EntryKind::ModeChange
        | EntryKind::McpToolSelection
        | EntryKind::TtsrInjection
        | EntryKind::SessionInit
        | EntryKind::SessionInfo
        | EntryKind::TitleChange
        | EntryKind::Label
        | EntryKind::Custom
        | EntryKind::Usage
        | EntryKind::ModelUsage
        | EntryKind::CredentialPin
        | EntryKind::Unknown => None,
    };
    let Some(Value::Object(mut message)) = message else { return Ok(None) };
    if session.dialect == Dialect::Pi && message.get("content").is_none_or(Value::is_null) {
        fill_content(&mut message, entry.kind);
    }
    if let Share::Edited(edit) = item.share {
        let edit = records.value(session.entry(edit).span)?;
        if let Some(content) = edit.get("replacement").and_then(|replacement| replacement.get("content")) {
            let role = message.get("role").and_then(Value::as_str).map(|role| Role::from_wire(&role));
            message.set("content", replaced_content(content.clone(), role));
        }
    }
    Ok(Some(Value::Object(message)))
}

/// The message of a message entry. Files older than version 3 have custom messages under another role (spec 1.2).
fn message_of(record: Value<'_>, version: u32) -> Option<Value<'_>> {
    let Value::Object(mut record) = record else { return None };
    let mut message = record.remove("message")?;
    if version < 3
        && message.text("role").as_deref() == Some("hookMessage")
        && let Value::Object(object) = &mut message
    {
        object.set("role", "custom");
    }
    Some(message)
}

/// pi puts empty content where there is none.
fn fill_content(message: &mut Object<'_>, kind: EntryKind) {
    match message.get("role").and_then(Value::as_str).map(|role| Role::from_wire(&role)) {
        Some(Role::System) => message.set("content", ""),
        Some(Role::User | Role::Assistant | Role::ToolResult) => {
            message.set("content", Value::Array(Vec::new()));
        }
        Some(Role::Custom) if kind == EntryKind::CustomMessage => {
            message.set("content", Value::Array(Vec::new()));
        }
        _ => {}
    }
}

fn custom_message<'r>(record: &Value<'r>, entry: &Entry, dialect: Dialect) -> Value<'r> {
    let mut message = of_role(Role::Custom);
    let attribution: &[&str] = match dialect {
        Dialect::Pi => &[],
        Dialect::OhMyPi => &["attribution"],
    };
    copy(record, &["customType", "content", "display", "details"], &mut message);
    copy(record, attribution, &mut message);
    finish(message, entry)
}

fn branch_summary<'r>(record: &Value<'r>, entry: &Entry) -> Value<'r> {
    let mut message = of_role(Role::BranchSummary);
    copy(record, &["summary", "fromId"], &mut message);
    finish(message, entry)
}

fn compaction_summary<'r>(record: &Value<'r>, entry: &Entry, dialect: Dialect) -> Value<'r> {
    let mut message = of_role(Role::CompactionSummary);
    match dialect {
        Dialect::Pi => copy(record, &["summary", "tokensBefore"], &mut message),
        Dialect::OhMyPi => copy(record, &["summary", "shortSummary", "tokensBefore"], &mut message),
    }
    if entry.compaction().is_some_and(|facts| facts.has_remote_history) {
        let remote = record.get("preserveData").and_then(|data| data.get("openaiRemoteCompaction"));
        let remote = remote.and_then(Value::as_object).cloned().unwrap_or_default();
        let mut payload = Object::new();
        payload.set("type", "openaiResponsesHistory");
        payload.set_some("provider", remote.get("provider").cloned());
        payload.set_some("items", remote.get("replacementHistory").cloned());
        message.set("providerPayload", payload);
    }
    finish(message, entry)
}

fn of_role(role: Role) -> Object<'static> {
    let mut message = Object::new();
    message.set("role", role.wire());
    message
}

fn copy<'r>(record: &Value<'r>, fields: &[&'static str], message: &mut Object<'r>) {
    for field in fields {
        message.set_some(field, record.get(field).cloned());
    }
}

/// Messages made from entries have the entry's time; one that cannot be read is null, as JavaScript prints it.
fn finish<'r>(mut message: Object<'r>, entry: &Entry) -> Value<'r> {
    message.set("timestamp", entry.time_ms().map_or(Value::Null, |time| Value::Number(time as f64)));
    Value::Object(message)
}

/// New content in the form of the role: assistant messages and tool results have blocks only.
fn replaced_content<'r>(content: Value<'r>, role: Option<Role>) -> Value<'r> {
    match (role, content) {
        (Some(Role::Assistant | Role::ToolResult), Value::String(text)) => {
            let mut block = Object::new();
            block.set("type", "text");
            block.set("text", Value::String(text));
            Value::Array(vec![Value::Object(block)])
        }
        (_, content) => content,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::Session;

    #[track_caller]
    fn check(lines: &[&str], expected: &[&str]) {
        let file = lines.join("\n");
        let (session, _) = Session::read(file.as_bytes()).expect("a session");
        let sequence = session.branch(None).effective();
        let messages = agent_messages(&sequence, file.as_bytes()).expect("the records are there");
        let printed: Vec<String> = messages.iter().map(|message| message.value.to_json()).collect();
        assert_eq!(printed, expected);
    }

    const HEADER: &str = r#"{"type":"session","version":3,"id":"s","timestamp":"2026-01-01T00:00:00.000Z"}"#;

    #[test]
    fn entries_become_messages_in_the_form_of_oh_my_pi() {
        check(
            &[
                HEADER,
                r#"{"type":"branch_summary","id":"a","parentId":null,"timestamp":"2026-01-01T00:00:02.000Z","fromId":"root","summary":"S","details":{"readFiles":[]}}"#,
                r#"{"type":"custom_message","id":"b","parentId":"a","timestamp":"2026-01-01T00:00:03.000Z","customType":"t","content":"c","display":true,"details":{"q":1},"attribution":"user"}"#,
                r#"{"type":"compaction","id":"c","parentId":"b","timestamp":"2026-01-01T00:00:05.000Z","summary":"sum","shortSummary":"short","firstKeptEntryId":"a","tokensBefore":123}"#,
            ],
            &[
                r#"{"role":"compactionSummary","summary":"sum","shortSummary":"short","tokensBefore":123,"timestamp":1767225605000}"#,
                r#"{"role":"branchSummary","summary":"S","fromId":"root","timestamp":1767225602000}"#,
                r#"{"role":"custom","customType":"t","content":"c","display":true,"details":{"q":1},"attribution":"user","timestamp":1767225603000}"#,
            ],
        );
    }

    #[test]
    fn entries_become_messages_in_the_form_of_pi() {
        check(
            &[
                HEADER,
                r#"{"type":"message","id":"a","parentId":null,"message":{"role":"system","content":"old"}}"#,
                r#"{"type":"compaction","id":"c","parentId":"a","timestamp":"2026-01-01T00:00:05.000Z","summary":"sum","firstKeptEntryId":"a","systemMessage":{"role":"system","content":"fold"},"fromHook":true}"#,
                r#"{"type":"custom_message","id":"d","parentId":"c","timestamp":"bad","customType":"t","content":"c","attribution":"user"}"#,
                r#"{"type":"message","id":"e","parentId":"d","message":{"role":"assistant","content":[]}}"#,
                r#"{"type":"context_edit","id":"f","parentId":"e","targetId":"e","replacement":{"content":"new"}}"#,
                r#"{"type":"context_edit","id":"g","parentId":"f","targetId":"d","replacement":{"content":"other"}}"#,
            ],
            &[
                r#"{"role":"system","content":"fold"}"#,
                r#"{"role":"compactionSummary","summary":"sum","timestamp":1767225605000}"#,
                r#"{"role":"custom","customType":"t","content":"other","timestamp":null}"#,
                r#"{"role":"assistant","content":[{"type":"text","text":"new"}]}"#,
            ],
        );
    }

    #[test]
    fn a_providers_own_history_stands_for_the_kept_entries() {
        check(
            &[
                HEADER,
                r#"{"type":"message","id":"a","parentId":null,"message":{"role":"user","content":"kept"}}"#,
                r#"{"type":"compaction","id":"c","parentId":"a","timestamp":"2026-01-01T00:00:05.000Z","summary":"s","shortSummary":"t","firstKeptEntryId":"a","tokensBefore":1,"preserveData":{"openaiRemoteCompaction":{"provider":"openai","replacementHistory":[{"a":1}]}}}"#,
            ],
            &[
                r#"{"role":"compactionSummary","summary":"s","shortSummary":"t","tokensBefore":1,"providerPayload":{"type":"openaiResponsesHistory","provider":"openai","items":[{"a":1}]},"timestamp":1767225605000}"#,
            ],
        );
    }

    #[test]
    fn the_old_role_of_custom_messages_is_renamed_in_old_files_only() {
        let lines = |version| {
            [
                format!(r#"{{"type":"session","version":{version},"id":"s"}}"#),
                r#"{"type":"message","id":"a","parentId":null,"message":{"role":"hookMessage","content":"c"}}"#.to_owned(),
            ]
        };
        let old = lines(2);
        check(&[&old[0], &old[1]], &[r#"{"role":"custom","content":"c"}"#]);
        let new = lines(3);
        check(&[&new[0], &new[1]], &[r#"{"role":"hookMessage","content":"c"}"#]);
    }
}

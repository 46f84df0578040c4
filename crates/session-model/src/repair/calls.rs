//! Tool calls and results that a provider takes: each call has one result, behind it and before the next answer (spec 2.4).

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};

use super::header::quoted;
use super::{Draft, StepKind};
use crate::edit::{FieldChange, change_bytes};
use crate::entry::{EntryNo, NameNo, Stamp};
use crate::error::NotASession;
use crate::message::Role;
use crate::scan::Walker;
use crate::sequence::{Item, Sequence};
use crate::session::{Records, Session};
use crate::text::Str;
use crate::validate::{FindingKind, validate};

/// What stands in place of a result that nobody wrote down.
pub(super) const NO_RESULT: &str = "No result of this call was recorded.";

/// What happens to one record.
#[derive(Default)]
struct Change {
    /// It is a result that answers nothing.
    retired: bool,
    /// It hangs on this entry now.
    parent: Option<String>,
    /// Results that go behind it.
    behind: Vec<Made>,
}

/// A result that is put in.
struct Made {
    id: String,
    line: String,
    kind: StepKind,
}

/// Mends what [`validate`] finds on the default branch; false if there is nothing that can be mended.
pub(super) fn repair(draft: &mut Draft<'_>) -> Result<bool, NotASession> {
    let session = draft.session()?;
    let sequence = session.branch(None).effective();
    let faults: Vec<_> = validate(&sequence).into_iter().filter(|finding| finding.kind.is_fault()).collect();
    if faults.is_empty() {
        return Ok(false);
    }
    let mut changes: BTreeMap<EntryNo, Change> = BTreeMap::new();
    // Calls that want a result, with the late result if there is one.
    let mut wanted: Vec<(EntryNo, NameNo, Option<EntryNo>)> = Vec::new();
    let callers = callers(&sequence);
    let answered: HashSet<(EntryNo, NameNo)> = callers
        .iter()
        .filter_map(|(&result, &caller)| Some((caller, session.entry(result).message()?.answers?)))
        .collect();
    for fault in faults {
        match fault.kind {
            FindingKind::ResultWithoutCall | FindingKind::SecondResult => {
                changes.entry(fault.entry).or_default().retired = true;
            }
            FindingKind::SeparatedResult => {
                changes.entry(fault.entry).or_default().retired = true;
                if let Some(&caller) = callers.get(&fault.entry) {
                    wanted.push((caller, fault.call, Some(fault.entry)));
                }
            }
            // Of two calls with one id in one message the provider refuses one whatever stands behind them.
            FindingKind::CallWithoutResult | FindingKind::FailedWithCalls
                if answered.contains(&(fault.entry, fault.call)) => {}
            FindingKind::CallWithoutResult | FindingKind::FailedWithCalls => {
                wanted.push((fault.entry, fault.call, None));
            }
            FindingKind::ResultOrder | FindingKind::UserBetween => {}
        }
    }
    put_in(draft, &sequence, wanted, &mut changes);
    if changes.is_empty() {
        return Ok(false);
    }
    write(draft, &session, changes);
    Ok(true)
}

/// The assistant message that each result answers.
fn callers(sequence: &Sequence<'_>) -> HashMap<EntryNo, EntryNo> {
    let mut newest: HashMap<NameNo, EntryNo> = HashMap::new();
    let mut callers = HashMap::new();
    for item in sequence.items.iter().filter(|item| sequence.reaches_model(item)) {
        for call in sequence.calls(item) {
            newest.insert(call.id, item.entry);
        }
        let answers = sequence.message(item).filter(|message| message.role == Role::ToolResult);
        if let Some(caller) = answers.and_then(|message| newest.get(&message.answers?)) {
            callers.insert(item.entry, *caller);
        }
    }
    callers
}

/// Plans the results that are missing: behind the results that the message has already, before all else.
fn put_in(
    draft: &Draft<'_>,
    sequence: &Sequence<'_>,
    wanted: Vec<(EntryNo, NameNo, Option<EntryNo>)>,
    changes: &mut BTreeMap<EntryNo, Change>,
) {
    let session = sequence.session;
    let items: HashMap<EntryNo, Item> = sequence.items.iter().map(|item| (item.entry, *item)).collect();
    let places: HashMap<EntryNo, usize> = sequence.branch.iter().copied().zip(0..).collect();
    let mut taken = HashSet::new();
    let mut seen = HashSet::new();
    // For each message with calls: the place behind which results go, and the tools of its calls.
    let mut callers: HashMap<EntryNo, (usize, HashMap<NameNo, NameNo>)> = HashMap::new();
    for (caller, call, late) in wanted {
        // Two calls of one id in one message: one result is all that can be given.
        if !seen.insert((caller, call)) {
            continue;
        }
        let (Some(item), Some(&place)) = (items.get(&caller), places.get(&caller)) else { continue };
        let (anchor, tools) = callers.entry(caller).or_insert_with(|| {
            let tools = sequence.calls(item).iter().rev().map(|call| (call.id, call.tool)).collect();
            (last_answer(sequence, &items, place, changes), tools)
        });
        let anchor = *anchor;
        let anchor_entry = sequence.branch[anchor];
        let content = format!("{}#{}#{}", session.id(anchor_entry), session.name(call), session.id(caller));
        let time_ms = session.entry(anchor_entry).time_ms().unwrap_or(0);
        let stamp = Stamp::new(content.as_bytes(), time_ms, |id| session.has_id(id) || taken.contains(id));
        taken.insert(stamp.id.clone());
        let moved = late.and_then(|late| message_of(&draft.bytes, session, late));
        let kind = if moved.is_some() { StepKind::ResultMoved } else { StepKind::ResultMade };
        let message = moved.unwrap_or_else(|| {
            let tool = tools.get(&call).map_or("", |tool| session.name(*tool));
            format!(
                r#"{{"role":"toolResult","toolCallId":{},"toolName":{},"content":[{{"type":"text","text":"{NO_RESULT}"}}],"isError":true,"timestamp":{time_ms}}}"#,
                quoted(session.name(call)),
                quoted(tool),
            )
        });
        let behind = changes.get(&anchor_entry).and_then(|change| change.behind.last());
        let parent = behind.map_or(session.id(anchor_entry), |made| made.id.as_str());
        let line = format!(
            r#"{{"type":"message","id":"{}","parentId":{},"timestamp":"{}","message":{message}}}"#,
            stamp.id,
            quoted(parent),
            stamp.timestamp(),
        );
        if let Some(&child) = sequence.branch.get(anchor + 1) {
            changes.entry(child).or_default().parent = Some(stamp.id.clone());
        }
        changes.entry(anchor_entry).or_default().behind.push(Made { id: stamp.id, line, kind });
    }
}

/// The place on the branch of the last result that follows the message at `place` and answers it, or `place`.
fn last_answer(
    sequence: &Sequence<'_>,
    items: &HashMap<EntryNo, Item>,
    place: usize,
    changes: &BTreeMap<EntryNo, Change>,
) -> usize {
    let caller = items.get(&sequence.branch[place]);
    let calls: HashSet<NameNo> =
        caller.map(|item| sequence.calls(item).iter().map(|call| call.id).collect()).unwrap_or_default();
    let mut anchor = place;
    for (at, next) in sequence.branch.iter().enumerate().skip(place + 1) {
        let Some(item) = items.get(next) else { break };
        match sequence.message(item) {
            Some(message) if message.role == Role::ToolResult => {
                let is_retired = changes.get(next).is_some_and(|change| change.retired);
                if is_retired || !message.answers.is_some_and(|id| calls.contains(&id)) {
                    break;
                }
                anchor = at;
            }
            None if sequence.role(item).is_none() => {}
            _ => break,
        }
    }
    anchor
}

/// The message of an entry, as its record spells it.
fn message_of(bytes: &[u8], session: &Session, entry: EntryNo) -> Option<String> {
    let record = bytes.text(session.entry(entry).span).ok()?;
    let mut message = None;
    let walk = Walker::new(&record).object(|walker, key| {
        let (start, end) = walker.skip()?;
        if Str::Raw(key).is("message") {
            message = Some(walker.slice(start, end).to_owned());
        }
        Ok(())
    });
    walk.ok().and(message)
}

fn write(draft: &mut Draft<'_>, session: &Session, changes: BTreeMap<EntryNo, Change>) {
    let mut made = Vec::with_capacity(draft.bytes.len() + 256 * changes.len());
    let n_lines = session.n_lines;
    let origins: Vec<u64> = (1..=n_lines).map(|line| draft.origin(line)).collect();
    let mut new_origins = Vec::with_capacity(origins.len() + changes.len());
    let (mut at, mut next_line) = (0, 0);
    for (entry, change) in changes {
        let span = session.entry(entry).span;
        let range = span.offset as usize..(span.offset + span.len) as usize;
        made.extend_from_slice(&draft.bytes[at..range.start]);
        let record = draft.bytes[range.clone()].to_vec();
        made.extend_from_slice(&changed(&draft.bytes, session, entry, &change).unwrap_or(record));
        at = range.end;
        if change.retired {
            draft.step(StepKind::ResultRetired, span.line, Some(session.id(entry)));
        }
        // A line may end in white space before its LF.
        let line_end = memchr::memchr(b'\n', &draft.bytes[at..]).map_or(draft.bytes.len(), |lf| at + lf + 1);
        if change.behind.is_empty() {
            continue;
        }
        made.extend_from_slice(&draft.bytes[at..line_end]);
        at = line_end;
        if !made.ends_with(b"\n") {
            made.push(b'\n');
        }
        new_origins.extend_from_slice(&origins[next_line..span.line as usize]);
        next_line = span.line as usize;
        for result in change.behind {
            made.extend_from_slice(result.line.as_bytes());
            made.push(b'\n');
            new_origins.push(0);
            draft.step(result.kind, span.line, Some(&result.id));
        }
    }
    made.extend_from_slice(&draft.bytes[at..]);
    new_origins.extend_from_slice(&origins[next_line..]);
    draft.bytes = Cow::Owned(made);
    draft.origins = Some(new_origins);
}

/// The record of an entry with its new parent; one that is retired keeps its message, as data of an entry that no model sees.
fn changed(bytes: &[u8], session: &Session, entry: EntryNo, change: &Change) -> Option<Vec<u8>> {
    let span = session.entry(entry).span;
    let record = &bytes[span.offset as usize..(span.offset + span.len) as usize];
    let parent = change.parent.as_deref().map(quoted);
    let message;
    let mut edits = Vec::new();
    if let Some(parent) = &parent {
        edits.push((&["parentId"][..], FieldChange::Set(parent)));
    }
    if change.retired {
        message = message_of(bytes, session, entry)?;
        edits.push((&["type"], FieldChange::Set("\"custom\"")));
        edits.push((&["message"], FieldChange::Remove));
        edits.push((&["customType"], FieldChange::Set("\"sesstool.retired_result\"")));
        edits.push((&["data"], FieldChange::Set(&message)));
    }
    change_bytes(record, &edits).ok()
}

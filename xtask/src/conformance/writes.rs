//! The other direction: what sesstool writes is opened by the agent that wrote the session.

use std::path::Path;

use compaction_core::compaction_entry::{Content, finish, previous};
use compaction_core::maintenance::{Leave, Step, first_step, leave};
use compaction_core::preparation::prepare;

use super::subject::{Reading, Subject};
use super::verdict::Topic;

/// Later than any session, so that no time of ours comes before one of theirs.
const NOW: i64 = 1_800_000_000_000;

/// The subject with a compaction behind it, and the subject pruned, if there is something to do.
pub(crate) fn written(reading: &Reading<'_>, folder: &Path) -> Vec<Subject> {
    let subject = reading.subject;
    // A branch that is not the file's last cannot be told to the session managers; damage is mended by the command, not here;
    // older versions are rewritten by it first.
    let is_whole = reading.session.recovered.is_empty() && !reading.session.needs_migration();
    if subject.leaf.is_some() || subject.is_damaged || !is_whole {
        return Vec::new();
    }
    let made = [
        (Topic::OpenedCompacted, "compacted", compacted(reading)),
        (Topic::OpenedPruned, "pruned", pruned(reading)),
        (Topic::OpenedRecovered, "recovered", recovered(reading)),
    ];
    made.into_iter()
        .filter_map(|(topic, word, bytes)| {
            let stem = subject.name.replace(|character: char| !character.is_ascii_alphanumeric(), "-");
            Some(Subject {
                name: format!("{} ({word})", subject.name),
                path: folder.join(format!("{stem}.{word}.jsonl")),
                bytes: bytes?,
                written: Some(topic),
                ..subject.clone()
            })
        })
        .collect()
}

fn compacted(reading: &Reading<'_>) -> Option<Vec<u8>> {
    let preparation = reading.preparation().ok()?;
    let previous = previous(&preparation.sequence, reading.records()).ok()?;
    let content = Content::Made {
        summary: "## Goal\nA summary.".to_owned(),
        short_summary: Some("In short.".to_owned()),
        preserve_data: None,
    };
    // What does not shrink the context is refused, and then there is nothing to open.
    let entry = finish(&preparation, previous.as_ref(), &content, &reading.prompts, NOW).ok()?;
    let mut bytes = reading.subject.bytes.clone();
    if bytes.last() != Some(&b'\n') {
        bytes.push(b'\n');
    }
    bytes.extend_from_slice(entry.record.as_bytes());
    bytes.push(b'\n');
    Some(bytes)
}

/// The subject with an answer that the context was too long for, and what the recovery from it writes (spec 6.4): the answer stays
/// in the file and leaves the context.
fn recovered(reading: &Reading<'_>) -> Option<Vec<u8>> {
    let leaf = reading.session.last_entry()?;
    let failed = format!(
        r#"{{"type":"message","id":"failed00","parentId":"{}","timestamp":"2027-01-01T00:00:00.000Z","message":{{"role":"assistant","content":[],"api":"anthropic-messages","provider":"anthropic","model":"m","usage":{{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"totalTokens":0,"cost":{{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}}}},"stopReason":"error","errorMessage":"prompt is too long: 219898 tokens > 200000 maximum","timestamp":1}}}}"#,
        reading.session.id(leaf)
    );
    let session = reading.session.with_records(&[&failed]).ok()?;
    let sequence = session.branch(None).effective();
    let Step::Recover(overflow) = first_step(&sequence, &reading.subject.compaction, None) else {
        return None;
    };
    let mut records = vec![failed];
    let edited;
    let branch = match leave(&sequence, overflow.entry, NOW) {
        Leave::AtParent => session.branch(Some(leaf)),
        Leave::Omit { edit } => {
            let record = edit.to_json();
            edited = session.with_records(&[&record]).ok()?;
            records.push(record);
            edited.branch(None)
        }
    };
    let preparation = prepare(&branch.effective(), &reading.subject.compaction).ok()?;
    let previous = previous(&preparation.sequence, reading.records()).ok()?;
    let summary = "## Goal\nA summary.".to_owned();
    let content = Content::Made { summary, short_summary: None, preserve_data: None };
    let entry = finish(&preparation, previous.as_ref(), &content, &reading.prompts, NOW).ok()?;
    records.push(entry.record);
    let mut bytes = reading.subject.bytes.clone();
    if bytes.last() != Some(&b'\n') {
        bytes.push(b'\n');
    }
    for record in records {
        bytes.extend_from_slice(record.as_bytes());
        bytes.push(b'\n');
    }
    Some(bytes)
}

fn pruned(reading: &Reading<'_>) -> Option<Vec<u8>> {
    let plan = pruning::plan(&reading.sequence(), &reading.subject.pruning);
    let mut bytes = reading.subject.bytes.clone();
    let mut results: Vec<_> = plan.candidates().collect();
    if results.is_empty() {
        return None;
    }
    // From the end, so that the places of those before stay.
    results.sort_by_key(|result| std::cmp::Reverse(reading.session.entry(result.entry).span.offset));
    for result in results {
        let span = reading.session.entry(result.entry).span;
        let start = usize::try_from(span.offset).ok()?;
        let place = start..start + usize::try_from(span.len).ok()?;
        let changed = pruning::apply::pruned_record(&reading.subject.bytes[place.clone()], result, NOW)?;
        bytes.splice(place, changed);
    }
    Some(bytes)
}

//! The header of a file that has none: moved to the front, given an id, or made from what the entries say (spec 1.2).

use std::borrow::Cow;

use super::lines::{Listed, listed};
use super::{Draft, StepKind};
use crate::edit::{FieldChange, change_bytes};
use crate::entry::EntryKind;
use crate::error::NotASession;
use crate::text::write_json_string;
use crate::value::Value;

/// Puts a header where it belongs.
///
/// # Errors
/// `error`, if there is no entry of a known type: then the file is something else.
pub(super) fn make(draft: &mut Draft<'_>, error: &NotASession) -> Result<(), NotASession> {
    let bytes = &draft.bytes[..];
    let records = listed(bytes);
    let is_known = |record: &&Listed| EntryKind::from_wire(&record.kind) != EntryKind::Unknown;
    let Some(first) = records.iter().find(is_known) else { return Err(error.clone()) };

    let made_id = made_id(bytes);
    let of_type_session = || records.iter().filter(|record| record.kind == "session");
    let header = match of_type_session().find(|record| record.has_id).or(of_type_session().next()) {
        Some(found) if found.has_id => bytes[found.range()].to_vec(),
        Some(found) => change_bytes(&bytes[found.range()], &[(&["id"], FieldChange::Set(&quoted(&made_id)))])
            .map_err(|_| error.clone())?,
        None => {
            let text = |record: &Listed| {
                let text = String::from_utf8_lossy(&bytes[record.range()]).into_owned();
                let value = Value::parse(&text).ok()?;
                value.text("timestamp").map(Cow::into_owned)
            };
            let time = records.iter().filter(|record| record.has_time).find_map(text).unwrap_or_default();
            // Entries of version 1 have no ids.
            let version = if first.has_id { "\"version\":3," } else { "" };
            format!(
                "{{\"type\":\"session\",{version}\"id\":{},\"timestamp\":{},\"cwd\":\"\"}}",
                quoted(&made_id),
                quoted(&time)
            )
            .into_bytes()
        }
    };

    let slot = records.first().filter(|record| record.kind == "title" && record.span.offset == 0);
    let mut made = Vec::with_capacity(bytes.len() + header.len() + 2);
    let mut origins = Vec::new();
    let rest = match slot {
        Some(slot) => {
            made.extend_from_slice(&bytes[slot.range()]);
            made.push(b'\n');
            origins.push(1);
            let rest = slot.range().end;
            if bytes[rest..].starts_with(b"\n") { rest + 1 } else { rest }
        }
        None => 0,
    };
    made.extend_from_slice(&header);
    made.push(b'\n');
    made.extend_from_slice(&bytes[rest..]);
    origins.push(0);
    let first_line = if rest > 0 && bytes[..rest].ends_with(b"\n") { 2 } else { 1 };
    let n_lines = memchr::memchr_iter(b'\n', &bytes[rest..]).count() as u64 + 1;
    origins.extend(first_line..first_line + n_lines);
    draft.bytes = Cow::Owned(made);
    draft.origins = Some(origins);
    draft.step(StepKind::HeaderMade, 0, None);
    Ok(())
}

/// An id in the form that agents give sessions, always the same for the same bytes.
fn made_id(bytes: &[u8]) -> String {
    let hash = blake3::hash(bytes).to_hex();
    format!("{}-{}-{}-{}-{}", &hash[..8], &hash[8..12], &hash[12..16], &hash[16..20], &hash[20..32])
}

pub(super) fn quoted(text: &str) -> String {
    let mut json = String::new();
    write_json_string(text, &mut json);
    json
}

//! A pruned session as bytes: the blanked records changed in place, every other byte as it was (spec part 4).

use pruning::apply::{pruned_at, pruned_record};
use pruning::plan::PrunePlan;
use session_model::branch::Branch;
use session_model::session::Session;
use session_model::text::shown;
use session_model::validate::new_faults;

use crate::exit::CommandError;
use crate::session_file::{Loaded, ReadOptions, SessionFile};
use crate::write;

/// A session after pruning.
#[derive(Debug)]
pub struct Pruned {
    /// All bytes of the file.
    pub bytes: Vec<u8>,
    /// What they say.
    pub session: Session,
}

/// Blanks the candidates of `plan`. A file of an older version, or with records that the agent would not read, is rewritten first.
///
/// # Errors
/// The context would have a fault that it had not before.
pub fn prune_bytes(
    file: &SessionFile,
    loaded: &Loaded,
    branch: &Branch<'_>,
    plan: &PrunePlan,
    now_ms: i64,
    read: ReadOptions,
) -> Result<Pruned, CommandError> {
    let rewritten;
    let (base, session) = if write::rewrite_reason(&loaded.session, branch).is_some() {
        let bytes = write::rewritten(&loaded.bytes, &loaded.session);
        let session = file.parse(&bytes, read)?;
        rewritten = bytes;
        (&rewritten[..], Some(session))
    } else {
        (&loaded.bytes[..], None)
    };
    let session = session.as_ref().unwrap_or(&loaded.session);
    let time = pruned_at(session, now_ms);
    let mut changes = Vec::new();
    for result in plan.candidates() {
        let id = loaded.session.id(result.entry);
        let Some(entry) = session.find(id) else { continue };
        let span = session.entry(entry).span;
        let start = span.offset as usize;
        let old = &base[start..start + span.len as usize];
        changes.extend(pruned_record(old, result, time).map(|record| (span, record)));
    }
    changes.sort_by_key(|(span, _)| span.offset);
    let mut bytes = Vec::with_capacity(base.len());
    let mut at = 0;
    for (span, record) in &changes {
        let start = span.offset as usize;
        bytes.extend_from_slice(&base[at..start]);
        bytes.extend_from_slice(record);
        at = start + span.len as usize;
    }
    bytes.extend_from_slice(&base[at..]);
    let pruned = file.parse(&bytes, read)?;
    let leaf = branch.leaf().and_then(|leaf| pruned.find(loaded.session.id(leaf)));
    let faults = new_faults(&branch.effective(), &pruned.branch(leaf).effective());
    if let Some(fault) = faults.first() {
        let id = shown(pruned.id(fault.entry)).into_owned();
        return Err(CommandError::in_file(
            &file.path,
            format!("pruning would leave {} at entry {id}", fault.kind),
        )
        .hint("nothing was written; please report this"));
    }
    Ok(Pruned { bytes, session: pruned })
}

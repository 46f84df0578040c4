//! Which branch of a session is meant: the last entry's, or the one that `--leaf` names (spec 1.5).

use std::path::Path;

use session_model::branch::Branch;
use session_model::entry::{EntryNo, Parent};
use session_model::session::Session;

use crate::exit::CommandError;
use crate::figures::count;

/// Leaves that an error names at most.
const SHOWN_LEAVES: usize = 5;

/// The branch that ends at the entry with this id, or at the last entry. The start of an id is enough if only one begins so.
///
/// # Errors
/// No entry has this id, or several begin with it.
pub fn branch<'s>(path: &Path, session: &'s Session, leaf: Option<&str>) -> Result<Branch<'s>, CommandError> {
    match leaf {
        None => Ok(session.branch(None)),
        Some(id) => Ok(session.branch(Some(entry(path, session, id)?))),
    }
}

/// The entry with this id, or the only one whose id begins so.
///
/// # Errors
/// There is none, or there are several.
pub fn entry(path: &Path, session: &Session, id: &str) -> Result<EntryNo, CommandError> {
    if let Some(entry) = session.find(id) {
        return Ok(entry);
    }
    let entries = 0..session.entries.len() as EntryNo;
    let mut found: Vec<EntryNo> =
        entries.filter(|&entry| !id.is_empty() && session.id(entry).starts_with(id)).collect();
    found.dedup_by_key(|entry| session.id(*entry));
    match found[..] {
        [only] => Ok(only),
        [] => {
            Err(CommandError::in_file(path, format!("no entry has the id \"{id}\""))
                .hint(leaves_hint(session)))
        }
        _ => Err(CommandError::in_file(
            path,
            format!("{} have ids that begin with \"{id}\"", count(found.len() as u64, "entry")),
        )
        .hint("give more of the id")),
    }
}

fn leaves_hint(session: &Session) -> String {
    let leaves = session.leaves();
    let mut ids: Vec<&str> = leaves.iter().rev().take(SHOWN_LEAVES).map(|&leaf| session.id(leaf)).collect();
    if leaves.len() > SHOWN_LEAVES {
        ids.push("…");
    }
    if ids.is_empty() {
        return "the session has no entries".to_owned();
    }
    format!("leaves are {}; sesstool inspect --tree shows all entries", ids.join(", "))
}

/// What to say when the default leaf is on another branch than the newest message: `None` if it is not.
pub fn elsewhere(session: &Session, branch: &Branch<'_>) -> Option<String> {
    let newest = session.newest_message()?;
    if branch.entries.contains(&newest) {
        return None;
    }
    let of_newest = leaf_behind(session, newest);
    Some(format!(
        "the last entry {} is not on the branch with the newest message; for that give --leaf {}",
        session.id(branch.leaf()?),
        session.id(of_newest)
    ))
}

/// The last leaf that hangs on `entry`, by way of others or none; `entry` itself if nothing hangs on it.
pub fn leaf_behind(session: &Session, entry: EntryNo) -> EntryNo {
    let mut hangs = vec![false; session.entries.len()];
    hangs[entry as usize] = true;
    let mut last = entry;
    for number in 0..session.entries.len() as EntryNo {
        if let Parent::Entry(parent) = session.entry(number).parent
            && hangs[parent as usize]
        {
            hangs[number as usize] = true;
            last = number;
        }
    }
    last
}

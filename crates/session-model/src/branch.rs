//! A branch: the entries from a root to a leaf.

use crate::entry::{EntryNo, Parent};
use crate::sequence::Sequence;
use crate::session::Session;

/// The entries from the root to a leaf, in this order.
#[derive(Clone, Debug)]
pub struct Branch<'s> {
    /// The session that it is in.
    pub session: &'s Session,
    /// Its entries, root first.
    pub entries: Vec<EntryNo>,
}

impl<'s> Branch<'s> {
    /// Walks from `leaf` to its root. A cycle stops the walk, a missing parent ends it; reading has reported both.
    pub(crate) fn new(session: &'s Session, leaf: Option<EntryNo>) -> Self {
        let mut entries = Vec::new();
        let mut seen = vec![false; session.entries.len()];
        let mut at = leaf;
        while let Some(entry) = at {
            if std::mem::replace(&mut seen[entry as usize], true) {
                break;
            }
            entries.push(entry);
            at = match session.entry(entry).parent {
                Parent::Entry(parent) => Some(parent),
                Parent::Root | Parent::Missing(_) => None,
            };
        }
        entries.reverse();
        Branch { session, entries }
    }

    /// The last entry; none in a session without entries.
    pub fn leaf(&self) -> Option<EntryNo> {
        self.entries.last().copied()
    }

    /// The effective sequence: what the model sees of it, and what is between (spec 2.1).
    pub fn effective(&self) -> Sequence<'s> {
        Sequence::new(self)
    }

    /// Whether one of its records is of the kind that the agent would not read: glued to another, or behind a torn one.
    pub fn has_recovered_records(&self) -> bool {
        if self.session.recovered.is_empty() {
            return false;
        }
        let recovered: std::collections::HashSet<u64> =
            self.session.recovered.iter().map(|span| span.offset).collect();
        self.entries.iter().any(|&entry| recovered.contains(&self.session.entry(entry).span.offset))
    }
}

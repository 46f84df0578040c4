//! Ties entries to their parents, and says where the tree is broken: all in time linear in the number of entries (spec 1.5).

use crate::entry::{EntryNo, Parent};
use crate::error::{Problem, ProblemKind};
use crate::session::{NO_ENTRY, Session};

/// Fills in the index by id, makes entries of parents that are given by name, and reports duplicate ids, missing parents and
/// cycles.
pub(crate) fn link(session: &mut Session, problems: &mut Vec<Problem>) {
    for number in 0..session.entries.len() as EntryNo {
        let place = session.entry(number).id.place();
        let earlier = std::mem::replace(&mut session.by_id[place], number);
        if earlier != NO_ENTRY {
            problems.push(problem(session, earlier, ProblemKind::DuplicateId, 1));
        }
    }
    let mut all_behind_parents = true;
    let by_id = &session.by_id;
    for (number, entry) in session.entries.iter_mut().enumerate() {
        let Parent::Missing(name) = entry.parent else { continue };
        let parent = by_id[name.place()];
        if parent != NO_ENTRY {
            entry.parent = Parent::Entry(parent);
        }
        // NO_ENTRY is no earlier entry.
        all_behind_parents &= (parent as usize) < number;
    }
    // Where each parent is an earlier entry, each walk ends at a root.
    if !all_behind_parents {
        broken_links(session, problems);
    }
}

/// What the walk from an entry towards the root ends at.
#[derive(Clone, Copy, PartialEq)]
enum End {
    Unknown,
    /// On the walk that is under way.
    Open,
    Root,
    /// At this entry, whose parent is missing or which closes a cycle.
    Broken(EntryNo),
}

fn broken_links(session: &Session, problems: &mut Vec<Problem>) {
    let mut ends = vec![End::Unknown; session.entries.len()];
    let mut walk = Vec::new();
    let mut broken: Vec<(EntryNo, ProblemKind)> = Vec::new();
    for start in 0..session.entries.len() as EntryNo {
        let mut at = start;
        let end = loop {
            match ends[at as usize] {
                End::Unknown => {}
                End::Open => {
                    broken.push((at, ProblemKind::Cycle));
                    break End::Broken(at);
                }
                known => break known,
            }
            ends[at as usize] = End::Open;
            walk.push(at);
            match session.entry(at).parent {
                Parent::Root => break End::Root,
                Parent::Missing(_) => {
                    broken.push((at, ProblemKind::MissingParent));
                    break End::Broken(at);
                }
                Parent::Entry(parent) => at = parent,
            }
        };
        walk.drain(..).for_each(|entry| ends[entry as usize] = end);
    }
    let mut n_unreachable = std::collections::HashMap::new();
    for end in ends {
        if let End::Broken(entry) = end {
            *n_unreachable.entry(entry).or_insert(0) += 1;
        }
    }
    problems.extend(
        broken.into_iter().map(|(entry, kind)| {
            problem(session, entry, kind, n_unreachable.get(&entry).copied().unwrap_or(0))
        }),
    );
}

fn problem(session: &Session, entry: EntryNo, kind: ProblemKind, unreachable: u64) -> Problem {
    let span = session.entry(entry).span;
    Problem {
        kind,
        line: span.line,
        offset: span.offset,
        entry: Some(session.id(entry).to_owned()),
        unreachable,
    }
}

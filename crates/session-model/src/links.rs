//! Ties entries to their parents, and says where the tree is broken: all in time linear in the number of entries (spec 1.5).

use crate::entry::{EntryNo, NameNo, Parent};
use crate::error::{Problem, ProblemKind};
use crate::session::Session;

/// Fills in the index by id and the parents, and reports duplicate ids, missing parents and cycles.
pub(crate) fn link(session: &mut Session, parents: &[Option<NameNo>], problems: &mut Vec<Problem>) {
    for number in 0..session.entries.len() as EntryNo {
        let id = session.entry(number).id;
        if let Some(earlier) = session.by_id[id.0 as usize].replace(number) {
            problems.push(problem(session, earlier, ProblemKind::DuplicateId, 1));
        }
    }
    for (number, parent) in parents.iter().enumerate() {
        session.entries[number].parent = match parent {
            None => Parent::Root,
            Some(name) => session.by_name(*name).map_or(Parent::Missing(*name), Parent::Entry),
        };
    }
    broken_links(session, problems);
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

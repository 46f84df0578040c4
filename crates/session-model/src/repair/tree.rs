//! Ids that are unique, parents that are there, and no circles: in time linear in the number of entries (spec 1.5).

use std::borrow::Cow;
use std::collections::HashMap;

use super::header::quoted;
use super::{Draft, StepKind};
use crate::edit::{FieldChange, FieldEdit, change_bytes};
use crate::entry::{EntryKind, EntryNo, NameNo, Parent, Stamp};
use crate::error::NotASession;
use crate::session::{Records, Session};
use crate::value::Value;

/// Mends the tree of a draft whose records stand on lines of their own.
pub(super) fn repair(draft: &mut Draft<'_>) -> Result<(), NotASession> {
    let session = draft.session()?;
    let tree = Tree::new(&session);
    let mended = tree.mended(draft);
    write(draft, &session, mended);
    drop(session);
    kept_entry(draft)
}

/// New field values of entries, by entry.
pub(super) type Changes = Vec<(EntryNo, Vec<(&'static str, String)>)>;

/// Writes changed fields into their records. `changes` are in the order of the file.
pub(super) fn write(draft: &mut Draft<'_>, session: &Session, changes: Changes) {
    if changes.is_empty() {
        return;
    }
    let mut made = Vec::with_capacity(draft.bytes.len() + 64 * changes.len());
    let mut at = 0;
    for (entry, fields) in changes {
        let span = session.entry(entry).span;
        let range = span.offset as usize..(span.offset + span.len) as usize;
        let paths: Vec<[&str; 1]> = fields.iter().map(|(name, _)| [*name]).collect();
        let edits: Vec<FieldEdit<'_>> = paths
            .iter()
            .zip(&fields)
            .map(|(path, (_, json))| (&path[..], FieldChange::Set(json.as_str())))
            .collect();
        let changed =
            change_bytes(&draft.bytes[range.clone()], &edits).expect("the reader took it for an object");
        made.extend_from_slice(&draft.bytes[at..range.start]);
        made.extend_from_slice(&changed);
        at = range.end;
    }
    made.extend_from_slice(&draft.bytes[at..]);
    draft.bytes = Cow::Owned(made);
}

struct Tree<'s> {
    session: &'s Session,
    /// Entries with an id that another has too, in the order of the file.
    doubles: HashMap<NameNo, Vec<EntryNo>>,
    /// New ids of those that are not the last with theirs.
    renamed: HashMap<EntryNo, String>,
}

impl<'s> Tree<'s> {
    fn new(session: &'s Session) -> Self {
        let entries = 0..session.entries.len() as EntryNo;
        let mut doubles: HashMap<NameNo, Vec<EntryNo>> = HashMap::new();
        for entry in entries.clone() {
            let id = session.entry(entry).id;
            if session.by_name(id) != Some(entry) {
                doubles.entry(id).or_default().push(entry);
            }
        }
        let mut taken = std::collections::HashSet::new();
        let mut renamed = HashMap::new();
        for entry in entries {
            let Some(list) = doubles.get_mut(&session.entry(entry).id) else { continue };
            if session.by_name(session.entry(entry).id) != Some(entry) {
                let content = format!("{}#{}", session.id(entry), renamed.len());
                let stamp = Stamp::new(content.as_bytes(), 0, |id| session.has_id(id) || taken.contains(id));
                taken.insert(stamp.id.clone());
                renamed.insert(entry, stamp.id);
            } else {
                list.push(entry);
            }
        }
        Tree { session, doubles, renamed }
    }

    /// Which entry an id means when the entry `at` says it: of several the last before it, else the first behind it.
    fn meant(&self, id: NameNo, at: EntryNo) -> Option<EntryNo> {
        let Some(list) = self.doubles.get(&id) else { return self.session.by_name(id) };
        let n_before = list.partition_point(|&entry| entry < at);
        let behind = list[n_before..].iter().find(|&&entry| entry != at);
        n_before.checked_sub(1).map(|last| list[last]).or(behind.copied()).or(Some(at))
    }

    fn id(&self, entry: EntryNo) -> &str {
        self.renamed.get(&entry).map_or_else(|| self.session.id(entry), String::as_str)
    }

    fn mended(&self, draft: &mut Draft<'_>) -> Changes {
        let session = self.session;
        let n_entries = session.entries.len();
        let mut steps = Vec::new();
        let mut parents: Vec<Option<EntryNo>> = Vec::with_capacity(n_entries);
        for entry in 0..n_entries as EntryNo {
            parents.push(match session.entry(entry).parent {
                Parent::Root => None,
                Parent::Entry(parent) => self.meant(session.entry(parent).id, entry),
                Parent::Missing(_) => {
                    steps.push((entry, StepKind::ParentJoined));
                    entry.checked_sub(1)
                }
            });
        }
        cut_circles(&mut parents, |entry| steps.push((entry, StepKind::CycleCut)));
        steps.extend(self.renamed.keys().map(|&entry| (entry, StepKind::IdRenamed)));
        steps.sort_unstable();
        for (entry, kind) in steps {
            draft.step(kind, session.entry(entry).span.line, Some(self.id(entry)));
        }

        let mut changes = Changes::new();
        for (entry, parent) in (0..n_entries as EntryNo).zip(parents) {
            let mut fields = Vec::new();
            if let Some(id) = self.renamed.get(&entry) {
                fields.push(("id", quoted(id)));
            }
            let id = parent.map(|parent| self.id(parent));
            if id != session.parent_name(session.entry(entry)).map(|name| session.name(name)) {
                fields.push(("parentId", id.map_or_else(|| "null".to_owned(), quoted)));
            }
            if !self.doubles.is_empty() {
                self.references(entry, &draft.bytes, &mut fields);
            }
            if !fields.is_empty() {
                changes.push((entry, fields));
            }
        }
        changes
    }

    /// Fields other than the parent that name an entry which has another id now.
    fn references(&self, entry: EntryNo, bytes: &[u8], fields: &mut Vec<(&'static str, String)>) {
        let session = self.session;
        let field = match session.entry(entry).kind {
            EntryKind::Compaction => "firstKeptEntryId",
            EntryKind::ContextEdit | EntryKind::Label => "targetId",
            EntryKind::BranchSummary => "fromId",
            _ => return,
        };
        let Ok(text) = bytes.text(session.entry(entry).span) else { return };
        let Ok(record) = Value::parse(&text) else { return };
        let Some(name) = record.text(field).and_then(|id| session.name_no(&id)) else { return };
        if !self.doubles.contains_key(&name) {
            return;
        }
        // A compaction that names itself keeps nothing.
        let names_itself = name == session.entry(entry).id && field == "firstKeptEntryId";
        let meant = if names_itself { Some(entry) } else { self.meant(name, entry) };
        if let Some(id) = meant.and_then(|entry| self.renamed.get(&entry)) {
            fields.push((field, quoted(id)));
        }
    }
}

/// Joins the entries of circles to others: each circle has a link that points to a later entry, or to itself. All links that
/// point back are a forest; the others are added one by one, and one that would close a circle leads to the entry before instead.
fn cut_circles(parents: &mut [Option<EntryNo>], mut cut: impl FnMut(EntryNo)) {
    let mut tops: Vec<EntryNo> = (0..parents.len() as EntryNo).collect();
    for (entry, parent) in (0..).zip(parents.iter()) {
        if let Some(parent) = *parent
            && parent < entry
        {
            tops[entry as usize] = parent;
        }
    }
    for entry in 0..parents.len() as EntryNo {
        let Some(parent) = parents[entry as usize].filter(|parent| *parent >= entry) else { continue };
        let mut joined = parent;
        if top(&mut tops, parent) == entry {
            cut(entry);
            match entry.checked_sub(1).filter(|&before| top(&mut tops, before) != entry) {
                Some(before) => joined = before,
                None => {
                    parents[entry as usize] = None;
                    continue;
                }
            }
        }
        parents[entry as usize] = Some(joined);
        tops[entry as usize] = joined;
    }
}

/// The root of an entry's tree. The way to it gets shorter each time it is gone.
fn top(tops: &mut [EntryNo], entry: EntryNo) -> EntryNo {
    let mut at = entry;
    while tops[at as usize] != at {
        let above = tops[tops[at as usize] as usize];
        tops[at as usize] = above;
        at = above;
    }
    at
}

/// A compaction that keeps from an entry which is not on its branch keeps nothing: now it says so itself.
fn kept_entry(draft: &mut Draft<'_>) -> Result<(), NotASession> {
    let session = draft.session()?;
    let sequence = session.branch(None).effective();
    let (Some(_), Some(compaction)) = (&sequence.problem, sequence.compaction) else { return Ok(()) };
    let id = session.id(compaction);
    draft.step(StepKind::KeptDropped, session.entry(compaction).span.line, Some(id));
    write(draft, &session, vec![(compaction, vec![("firstKeptEntryId", quoted(id))])]);
    Ok(())
}

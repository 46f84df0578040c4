//! Older file versions → the current one, in memory and as bytes (spec 1.2).

use std::ops::Range;

use crate::edit::{FieldChange, FieldEdit, change_bytes};
use crate::entry::{Entry, EntryKind, EntryNo, Facts, NameNo, Parent};
use crate::message::Role;
use crate::record::Span;
use crate::scan::Walker;
use crate::session::Session;
use crate::text::{Str, write_json_string};

/// The id of an entry of a version 1 file, which has none: made from position and content, so that it is the same each time.
pub(crate) fn made_id(number: EntryNo, record: &str, taken: impl Fn(&str) -> bool) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&number.to_le_bytes());
    hasher.update(record.as_bytes());
    loop {
        let id = hasher.finalize().to_hex()[..8].to_owned();
        if !taken(&id) {
            return id;
        }
        hasher.update(b"taken");
    }
}

/// Turns the kept indexes of version 1 compactions into ids: an index counts all objects of the file, the header as 0. One that
/// is out of range, the header, or a later entry leaves no id.
pub(crate) fn kept_by_index(
    entries: &mut [Entry],
    kept_indexes: &[(EntryNo, Option<f64>)],
    no_entries: &[usize],
) {
    for &(compaction, index) in kept_indexes {
        let kept: Option<NameNo> = index
            .filter(|index| *index >= 0.0 && index.fract() == 0.0)
            .and_then(|index| entry_at(index as usize, no_entries))
            .filter(|kept| *kept <= compaction)
            .map(|kept| entries[kept as usize].id);
        if let Facts::Compaction(facts) = &mut entries[compaction as usize].facts
            && facts.first_kept.is_none()
        {
            facts.first_kept = kept;
        }
    }
}

/// The entry that is the object at `index`, where the objects at `no_entries` are none.
fn entry_at(index: usize, no_entries: &[usize]) -> Option<EntryNo> {
    let n_before = no_entries.binary_search(&index).err()?;
    EntryNo::try_from(index - n_before).ok()
}

/// The bytes of a session in the current version, and each record that the agents would not read on a line of its own (spec 1.2,
/// 1.6). Lines that need no change keep their bytes, and what cannot be read stays where it is. `session` must have been read
/// from `bytes`.
pub fn to_current(bytes: &[u8], session: &Session) -> Vec<u8> {
    let mut current = Vec::with_capacity(bytes.len() + 64 * session.entries.len());
    write_current(bytes, session, |part| current.extend_from_slice(part));
    current
}

/// As [`to_current`], handed out part by part.
pub fn write_current(bytes: &[u8], session: &Session, out: impl FnMut(&[u8])) {
    let mut writer = LineWriter::new(bytes, session, out);
    if session.needs_migration() {
        writer.replace(session.header.span, |record| {
            change_bytes(record, &[(&["version"], FieldChange::Set("3"))]).ok()
        });
        for number in 0..session.entries.len() as EntryNo {
            writer.replace(session.entry(number).span, |record| current_entry(session, number, record));
        }
    }
    writer.finish();
}

/// The same bytes with each recovered record (glued to another, or behind a torn one) on a line of its own, so that the agents
/// read it (spec 1.6). Nothing but line ends is added.
pub fn own_lines(bytes: &[u8], session: &Session) -> Vec<u8> {
    let mut lines = Vec::with_capacity(bytes.len() + 2 * session.recovered.len());
    LineWriter::new(bytes, session, |part| lines.extend_from_slice(part)).finish();
    lines
}

/// The record of an entry in the current version; `None` if it needs no change.
fn current_entry(session: &Session, number: EntryNo, record: &[u8]) -> Option<Vec<u8>> {
    let entry = session.entry(number);
    let json = |id: &str| {
        let mut json = String::new();
        write_json_string(id, &mut json);
        json
    };
    let (id, parent, kept);
    let mut edits: Vec<FieldEdit<'_>> = Vec::new();
    if session.header.version < 2 {
        id = json(session.id(number));
        parent = match entry.parent {
            Parent::Entry(parent) => json(session.id(parent)),
            Parent::Root | Parent::Missing(_) => "null".to_owned(),
        };
        edits.push((&["id"], FieldChange::Set(&id)));
        edits.push((&["parentId"], FieldChange::Set(&parent)));
        if let Some(compaction) = entry.compaction() {
            edits.push((&["firstKeptEntryIndex"], FieldChange::Remove));
            if let Some(first_kept) = compaction.first_kept {
                kept = json(session.name(first_kept));
                edits.push((&["firstKeptEntryId"], FieldChange::Set(&kept)));
            }
        }
    }
    if is_hook_message(entry, record) {
        edits.push((&["message", "role"], FieldChange::Set("\"custom\"")));
    }
    if edits.is_empty() {
        return None;
    }
    change_bytes(record, &edits).ok()
}

/// Whether a message has the role that version 3 calls `custom`.
fn is_hook_message(entry: &Entry, record: &[u8]) -> bool {
    if entry.kind != EntryKind::Message || entry.message().is_none_or(|message| message.role != Role::Custom)
    {
        return false;
    }
    let record = String::from_utf8_lossy(record);
    let mut is_hook = false;
    let walk = Walker::new(&record).object(|walker, key| {
        if !Str::Raw(key).is("message") || walker.peek() != b'{' {
            return walker.skip().map(|_| ());
        }
        walker.object(|walker, key| {
            let is_role = Str::Raw(key).is("role");
            match walker.string_or_skip()? {
                Some(scan) if is_role => is_hook = Str::Raw(walker.raw(&scan)).is("hookMessage"),
                _ => {}
            }
            Ok(())
        })
    });
    walk.is_ok() && is_hook
}

/// Copies the bytes of a file, with other records in the place of some, and line ends around recovered ones.
struct LineWriter<'b, F> {
    bytes: &'b [u8],
    /// Spans that need a line of their own and are not written yet.
    recovered: &'b [Span],
    /// Offset behind what is written.
    at: usize,
    /// Whether something other than white space has been written of the current line.
    in_line: bool,
    /// Whether the last record written ends its line.
    breaks: bool,
    out: F,
}

impl<'b, F: FnMut(&[u8])> LineWriter<'b, F> {
    fn new(bytes: &'b [u8], session: &'b Session, out: F) -> Self {
        LineWriter { bytes, recovered: &session.recovered, at: 0, in_line: false, breaks: false, out }
    }

    /// Puts what `change` makes of the record at `span` in its place. Spans come in the order of the file.
    fn replace(&mut self, span: Span, change: impl FnOnce(&[u8]) -> Option<Vec<u8>>) {
        let Some(range) = self.range(span) else { return };
        let Some(changed) = change(&self.bytes[range.clone()]) else { return };
        self.copy_recovered(span.offset);
        if self.recovered.first() == Some(&span) {
            self.recovered = &self.recovered[1..];
            self.own_line(range, &changed);
        } else {
            self.copy(range.start);
            (self.out)(&changed);
            self.in_line = true;
            self.at = range.end;
        }
    }

    fn finish(mut self) {
        self.copy_recovered(u64::MAX);
        self.copy(self.bytes.len());
    }

    /// Copies everything up to the last recovered record before `offset`.
    fn copy_recovered(&mut self, offset: u64) {
        while let Some((&span, rest)) = self.recovered.split_first() {
            if span.offset >= offset {
                return;
            }
            self.recovered = rest;
            if let Some(range) = self.range(span) {
                let bytes = self.bytes;
                self.own_line(range.clone(), &bytes[range]);
            }
        }
    }

    fn own_line(&mut self, range: Range<usize>, record: &[u8]) {
        self.copy(range.start);
        if self.in_line {
            (self.out)(b"\n");
        }
        (self.out)(record);
        (self.in_line, self.breaks) = (true, true);
        self.at = range.end;
    }

    /// Copies the bytes up to `end`.
    fn copy(&mut self, end: usize) {
        let part = &self.bytes[self.at..end];
        if part.is_empty() {
            return;
        }
        let rest_of_line = &part[..memchr::memchr(b'\n', part).unwrap_or(part.len())];
        if self.breaks && !is_blank(rest_of_line) {
            (self.out)(b"\n");
            self.in_line = false;
        }
        (self.out)(part);
        if let Some(line_end) = memchr::memrchr(b'\n', part) {
            self.in_line = !is_blank(&part[line_end + 1..]);
        } else {
            // A byte order mark before the first record is no part of a line.
            let is_mark = self.at == 0 && part.strip_prefix(b"\xEF\xBB\xBF").is_some_and(is_blank);
            self.in_line |= !is_blank(part) && !is_mark;
        }
        // White space behind the record leaves it open whether something follows on its line.
        self.breaks = self.breaks && rest_of_line.len() == part.len() && is_blank(part);
        self.at = end;
    }

    fn range(&self, span: Span) -> Option<Range<usize>> {
        let start = usize::try_from(span.offset).ok()?;
        let end = start.checked_add(usize::try_from(span.len).ok()?)?;
        (start >= self.at && end <= self.bytes.len()).then_some(start..end)
    }
}

fn is_blank(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| matches!(byte, b' ' | b'\t' | b'\r'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent_message::agent_messages;
    use crate::error::ProblemKind;
    use session_gen::{Shape, damage, generate};

    #[track_caller]
    fn check(rewrite: impl Fn(&[u8], &Session) -> Vec<u8>, file: &str, expected: &str) {
        let (session, _) = Session::read(file.as_bytes()).expect("a session");
        let rewritten = rewrite(file.as_bytes(), &session);
        assert_eq!(String::from_utf8_lossy(&rewritten), expected);
    }

    #[test]
    fn version_1_gets_ids_parents_and_kept_ids() {
        let file = concat!(
            "{\"type\":\"session\",\"id\":\"s\", \"cwd\":\"/\"}\r\n",
            "{\"type\":\"message\",\"message\":{\"role\":\"user\",\"content\":\"a\",\"n\":1.0}}\n",
            "junk\n",
            "{\"type\":\"message\",\"message\":{\"role\":\"hookMessage\",\"content\":\"b\"}}\n",
            "{\"type\":\"compaction\",\"summary\":\"s\",\"firstKeptEntryIndex\":2,\"tokensBefore\":1e3}\n",
            "{\"type\":\"compaction\",\"summary\":\"s\",\"firstKeptEntryIndex\":9}",
        );
        let (session, _) = Session::read(file.as_bytes()).expect("a session");
        let id = |entry| session.id(entry).to_owned();
        let expected = format!(
            concat!(
                "{{\"type\":\"session\",\"id\":\"s\", \"cwd\":\"/\",\"version\":3}}\r\n",
                "{{\"type\":\"message\",\"message\":{{\"role\":\"user\",\"content\":\"a\",\"n\":1.0}},\"id\":\"{0}\",\"parentId\":null}}\n",
                "junk\n",
                "{{\"type\":\"message\",\"message\":{{\"role\":\"custom\",\"content\":\"b\"}},\"id\":\"{1}\",\"parentId\":\"{0}\"}}\n",
                "{{\"type\":\"compaction\",\"summary\":\"s\",\"tokensBefore\":1e3,\"id\":\"{2}\",\"parentId\":\"{1}\",\"firstKeptEntryId\":\"{1}\"}}\n",
                "{{\"type\":\"compaction\",\"summary\":\"s\",\"id\":\"{3}\",\"parentId\":\"{2}\"}}",
            ),
            id(0),
            id(1),
            id(2),
            id(3)
        );
        check(to_current, file, &expected);
    }

    #[test]
    fn version_2_changes_only_its_header_and_hook_messages() {
        let kept = "{\"type\":\"message\",\"id\":\"1\",\"parentId\":null,\"message\":{\"role\":\"user\",\"content\":\"hookMessage\"}}\n";
        let hook = |role: &str| {
            format!(
                "{{\"type\":\"message\",\"id\":\"2\",\"parentId\":\"1\",\"message\":{{\"role\": \"{role}\",\"content\":[]}}}}\n"
            )
        };
        check(
            to_current,
            &format!("{{\"type\":\"session\",\"version\":2,\"id\":\"s\"}}\n{kept}{}", hook("hookMessage")),
            &format!("{{\"type\":\"session\",\"version\":3,\"id\":\"s\"}}\n{kept}{}", hook("custom")),
        );
    }

    #[test]
    fn recovered_records_get_lines_of_their_own() {
        let header = "{\"type\":\"session\",\"version\":3,\"id\":\"s\"}";
        let entry = |id: &str| format!("{{\"type\":\"custom\",\"id\":\"{id}\",\"parentId\":null}}");
        let (a, b, c) = (entry("a"), entry("b"), entry("c"));
        check(own_lines, &format!("{header}\n{a}{b}\n{c}"), &format!("{header}\n{a}\n{b}\n{c}"));
        check(own_lines, &format!("{header}\n{a}  {b} \r\n"), &format!("{header}\n{a}  \n{b} \r\n"));
        check(own_lines, &format!("{header}{a}"), &format!("{header}\n{a}"));
        check(own_lines, &format!("\u{FEFF}{header}{a}"), &format!("\u{FEFF}{header}\n{a}"));
        let torn = "{\"type\":\"custom\",\"x\":\"ab";
        check(own_lines, &format!("{header}\n{torn}{a}\n"), &format!("{header}\n{torn}\n{a}\n"));
        check(
            own_lines,
            &format!("{header}\n\0\0{a}{torn}{b}junk\n{c}\n"),
            &format!("{header}\n\0\0\n{a}\n{torn}\n{b}\njunk\n{c}\n"),
        );
        check(own_lines, &format!("{header}\n{a}\n junk\n"), &format!("{header}\n{a}\n junk\n"));
    }

    #[test]
    fn old_records_that_share_a_line_are_changed_and_parted() {
        let file = concat!(
            "{\"type\":\"session\",\"version\":2,\"id\":\"s\"}{\"type\":\"message\",\"id\":\"1\",\"parentId\":null,",
            "\"message\":{\"role\":\"hookMessage\",\"content\":\"\"}} junk\n",
        );
        check(
            to_current,
            file,
            concat!(
                "{\"type\":\"session\",\"version\":3,\"id\":\"s\"}\n{\"type\":\"message\",\"id\":\"1\",\"parentId\":null,",
                "\"message\":{\"role\":\"custom\",\"content\":\"\"}}\n junk\n",
            ),
        );
    }

    /// What a rewriting must not change: kinds, ids, parents, estimates and the context.
    fn meaning(bytes: &[u8], session: &Session) -> (Vec<String>, Vec<String>) {
        let entries = (0..session.entries.len() as EntryNo)
            .map(|number| {
                let entry = session.entry(number);
                let parent = match entry.parent {
                    Parent::Root => "root",
                    Parent::Entry(parent) => session.id(parent),
                    Parent::Missing(name) => session.name(name),
                };
                format!("{} {} {parent} {}", entry.kind.wire(), session.id(number), entry.estimate)
            })
            .collect();
        let sequence = session.branch(None).effective();
        let messages = agent_messages(&sequence, bytes).expect("the records are there");
        (entries, messages.iter().map(|message| message.value.to_json()).collect())
    }

    #[track_caller]
    fn keeps_its_meaning(file: &[u8], seed: u64) {
        let Ok((session, problems)) = Session::read(file) else { return };
        let rewritten = to_current(file, &session);
        let (current, left) = Session::read(&rewritten).expect("still a session");
        assert_eq!(meaning(file, &session), meaning(&rewritten, &current), "seed {seed}");
        assert_eq!(current.header.version, 3);
        assert_eq!(current.recovered, [], "seed {seed}");
        assert_eq!(to_current(&rewritten, &current), rewritten, "seed {seed}");
        let count = |problems: &[crate::error::Problem], kind| {
            problems.iter().filter(|problem| problem.kind == kind).count()
        };
        for kind in [ProblemKind::InvalidUtf8, ProblemKind::NulRun, ProblemKind::MissingParent] {
            assert!(count(&left, kind) >= count(&problems, kind).min(1), "seed {seed}");
        }
        let lines = own_lines(file, &session);
        let lf_free = |bytes: &[u8]| bytes.iter().copied().filter(|byte| *byte != b'\n').collect::<Vec<u8>>();
        assert_eq!(lf_free(&lines), lf_free(file), "seed {seed}");
        if session.recovered.is_empty() {
            assert_eq!(lines, file, "seed {seed}");
        }
    }

    #[test]
    fn rewritten_sessions_mean_the_same() {
        for seed in 0..150 {
            let mut shape = if seed % 2 == 0 { Shape::omp() } else { Shape::pi() };
            shape.old_version = 0.8;
            let file = generate(seed, &shape).replace("\"role\":\"custom\"", "\"role\":\"hookMessage\"");
            keeps_its_meaning(file.as_bytes(), seed);
            keeps_its_meaning(&damage(seed, file.as_bytes()), seed);
        }
    }
}

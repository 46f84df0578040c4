//! A whole session from a damaged one: the repaired bytes, what was set aside, and what was done (spec 1, 2.4). The given bytes stay.

mod calls;
mod header;
mod lines;
mod tree;

use std::borrow::Cow;

use crate::error::NotASession;
use crate::migrate;
use crate::session::Session;

/// A repaired session.
#[derive(Clone, Debug)]
pub struct Repaired<'b> {
    /// The file as it should be; borrowed if nothing was wrong with it.
    pub bytes: Cow<'b, [u8]>,
    /// What could not stay in it, one piece a line, in the order of the file.
    pub aside: Vec<u8>,
    /// What was done, in the order of the passes.
    pub steps: Vec<Step>,
}

/// One thing that was done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// What it was.
    pub kind: StepKind,
    /// Line of the given file, from 1; 0 where it has none.
    pub line: u64,
    /// Id of the entry concerned, as the repaired file has it.
    pub entry: Option<String>,
}

/// What a repair can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StepKind {
    /// A header was put in front.
    HeaderMade,
    /// The file was rewritten as version 3.
    Migrated,
    /// A byte order mark was dropped, before which pi finds no header.
    MarkDropped,
    /// The title slot got its width.
    SlotPadded,
    /// A record got a line of its own.
    OwnLine,
    /// Bytes that are no entry went to the side file.
    SetAside,
    /// Bytes that are not UTF-8 became U+FFFD, as every reader takes them; the old line went to the side file.
    MadeUtf8,
    /// An entry got an id.
    IdGiven,
    /// An entry whose id a later one has too got another, and what meant it follows.
    IdRenamed,
    /// An entry was joined to the nearest one before it.
    ParentJoined,
    /// A circle of parents was cut.
    CycleCut,
    /// A compaction that keeps from an entry which is not there keeps nothing now, as it was read.
    KeptDropped,
    /// A call without a result got one that says so.
    ResultMade,
    /// A result that stood too late was put behind its call.
    ResultMoved,
    /// A result that answers nothing became an entry which the model does not see.
    ResultRetired,
}

impl StepKind {
    /// The name in machine-readable output.
    pub fn name(self) -> &'static str {
        match self {
            StepKind::HeaderMade => "header_made",
            StepKind::Migrated => "migrated",
            StepKind::MarkDropped => "mark_dropped",
            StepKind::SlotPadded => "slot_padded",
            StepKind::OwnLine => "own_line",
            StepKind::SetAside => "set_aside",
            StepKind::MadeUtf8 => "made_utf8",
            StepKind::IdGiven => "id_given",
            StepKind::IdRenamed => "id_renamed",
            StepKind::ParentJoined => "parent_joined",
            StepKind::CycleCut => "cycle_cut",
            StepKind::KeptDropped => "kept_dropped",
            StepKind::ResultMade => "result_made",
            StepKind::ResultMoved => "result_moved",
            StepKind::ResultRetired => "result_retired",
        }
    }

    /// The same for a person.
    pub fn words(self) -> &'static str {
        match self {
            StepKind::HeaderMade => "a header was put in front",
            StepKind::Migrated => "the file was rewritten as version 3",
            StepKind::MarkDropped => "the byte order mark at the start was dropped",
            StepKind::SlotPadded => "the title slot was made 256 bytes wide",
            StepKind::OwnLine => "the record got a line of its own",
            StepKind::SetAside => "what is no entry went to the side file",
            StepKind::MadeUtf8 => "bytes that are not UTF-8 became U+FFFD",
            StepKind::IdGiven => "the entry got an id",
            StepKind::IdRenamed => "the entry got another id, and what meant it follows",
            StepKind::ParentJoined => "the entry was joined to the nearest one before it",
            StepKind::CycleCut => "the circle of parents was cut here",
            StepKind::KeptDropped => "the compaction now says that it keeps nothing, as it was read",
            StepKind::ResultMade => "an error result was put behind the call",
            StepKind::ResultMoved => "the result was put behind its call",
            StepKind::ResultRetired => "the result became an entry that the model does not see",
        }
    }
}

/// What some editors put before the first byte. Reading skips it (spec 1.1).
pub const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// How often calls and results are looked at again: a repair of one can show another.
const ROUNDS: usize = 8;

/// The bytes on their way to the repaired ones.
struct Draft<'b> {
    bytes: Cow<'b, [u8]>,
    /// For each line, the one of the given file that it comes from (0: none); absent as long as they are the same.
    origins: Option<Vec<u64>>,
    aside: Vec<u8>,
    steps: Vec<Step>,
}

/// Repairs a session: each entry is kept, and the context of the branch that ends at the last entry is one that a provider takes.
/// Repairing what came out changes nothing.
///
/// # Errors
/// [`NotASession`] if there is neither a header nor an entry of a known type, from which one could be made.
pub fn repair(bytes: &[u8]) -> Result<Repaired<'_>, NotASession> {
    let mut draft =
        Draft { bytes: Cow::Borrowed(bytes), origins: None, aside: Vec::new(), steps: Vec::new() };
    let mut rest = bytes;
    while let Some(behind) = rest.strip_prefix(BYTE_ORDER_MARK) {
        rest = behind;
    }
    if rest.len() < bytes.len() {
        draft.bytes = Cow::Borrowed(rest);
        draft.step(StepKind::MarkDropped, 1, None);
    }
    let session = match Session::read(&draft.bytes) {
        Ok((session, _)) => session,
        Err(error) => {
            header::make(&mut draft, &error)?;
            Session::read(&draft.bytes)?.0
        }
    };
    if session.needs_migration() {
        if is_whole(&draft, &session) {
            return Ok(Repaired { bytes: draft.bytes, aside: draft.aside, steps: draft.steps });
        }
        draft.bytes = Cow::Owned(migrate::to_current(&draft.bytes, &session));
        draft.step(StepKind::Migrated, session.header.span.line, None);
    }
    drop(session);
    lines::repair(&mut draft)?;
    tree::repair(&mut draft)?;
    for _ in 0..ROUNDS {
        if !calls::repair(&mut draft)? {
            break;
        }
    }
    Ok(Repaired { bytes: draft.bytes, aside: draft.aside, steps: draft.steps })
}

/// Whether nothing is wrong that would need the current version: an older one is no damage.
fn is_whole(draft: &Draft<'_>, session: &Session) -> bool {
    let problems = Session::read(&draft.bytes).map_or(1, |(_, problems)| problems.len());
    let sequence = session.branch(None).effective();
    problems == 0
        && sequence.problem.is_none()
        && crate::validate::validate(&sequence).iter().all(|finding| !finding.kind.is_fault())
}

impl Draft<'_> {
    fn session(&self) -> Result<Session, NotASession> {
        Session::read(&self.bytes).map(|(session, _)| session)
    }

    /// Notes what was done at a line of the draft.
    fn step(&mut self, kind: StepKind, line: u64, entry: Option<&str>) {
        let line = self.origin(line);
        self.steps.push(Step { kind, line, entry: entry.map(str::to_owned) });
    }

    fn origin(&self, line: u64) -> u64 {
        let Some(origins) = &self.origins else { return line };
        line.checked_sub(1).and_then(|at| origins.get(at as usize)).copied().unwrap_or(0)
    }

    /// Puts a piece into the side file, on a line of its own.
    fn set_aside(&mut self, piece: &[u8]) {
        self.aside.extend_from_slice(piece);
        if !piece.ends_with(b"\n") {
            self.aside.push(b'\n');
        }
    }
}

#[cfg(test)]
mod tests;

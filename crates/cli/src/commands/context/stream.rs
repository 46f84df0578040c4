//! Contexts of large sessions: indexed first, then written message by message while the file is read again.

use std::io::{self, Write};

use session_model::agent_message::{AgentMessage, agent_message, compaction_system_message};
use session_model::record::Span;
use session_model::sequence::{Item, Part, Sequence, Share};
use session_model::session::{Fetched, Session};

use super::{ContextArgs, Format, MessageWriter, notes};
use crate::batch::Worker;
use crate::disk::DiskError;
use crate::disk::read::{FileLines, Window};
use crate::exit::CommandError;
use crate::leaf;
use crate::session_file::{ReadOptions, SessionFile};

/// Shorter files are written by the thread that reads them, from memory.
const LARGE: u64 = 4 << 20;
/// How often a file is indexed that is appended to meanwhile.
const TRIES: usize = 4;
/// Text that is written at once.
const PORTION: usize = 256 << 10;

/// Whether the context of a file is written while it is read.
pub(super) fn is_for(format: Format, file: &SessionFile) -> bool {
    matches!(format, Format::Text | Format::Markdown | Format::Jsonl) && file.n_bytes >= LARGE
}

/// A session whose messages stay in the file.
pub(super) struct Indexed {
    file: SessionFile,
    leaf: Option<String>,
    session: Session,
    lines: FileLines,
}

/// Reads the index of a file, and finds out what is to be said of its context.
///
/// # Errors
/// As [`SessionFile::index`]; the leaf is not there; the file was changed meanwhile.
pub(super) fn index(
    args: &ContextArgs,
    read: ReadOptions,
    file: &SessionFile,
    worker: &Worker<'_>,
) -> Result<(Indexed, Vec<String>), CommandError> {
    // An agent may append between the two openings; then they are of different lengths, and it is tried again.
    let mut n_tries = 0;
    let (lines, session, problems) = loop {
        n_tries += 1;
        let lines = FileLines::open(&file.path).map_err(CommandError::from)?;
        let (session, problems, fingerprint) = file.index(read, worker)?;
        if fingerprint.as_ref() == Some(lines.fingerprint()) {
            break (lines, session, problems);
        }
        if n_tries == TRIES {
            return Err(CommandError::from(DiskError::Changed { path: file.path.clone() }));
        }
    };
    let branch = leaf::branch(&file.path, &session, args.leaf.as_deref())?;
    let notes = notes(args, &problems, &branch, &branch.effective());
    Ok((Indexed { file: file.clone(), leaf: args.leaf.clone(), session, lines }, notes))
}

impl Indexed {
    /// Writes all messages.
    ///
    /// # Errors
    /// Outside: `out` takes no more. Inside: the file cannot be read again as it was.
    pub(super) fn write(
        &self,
        mut writer: MessageWriter<'_>,
        out: &mut dyn Write,
    ) -> io::Result<Result<(), CommandError>> {
        let branch = match leaf::branch(&self.file.path, &self.session, self.leaf.as_deref()) {
            Ok(branch) => branch,
            Err(error) => return Ok(Err(error)),
        };
        let sequence = branch.effective();
        let (mut window, mut edits) = (Window::new(&self.lines), Window::new(&self.lines));
        writer.begin(&self.session);
        for item in sequence.items.iter().filter(|item| item.part != Part::KeptElsewhere) {
            if let Some(value) = compaction_system_message(&sequence, item) {
                writer.message(&self.session, AgentMessage { item: *item, value });
            }
            if let Err(error) = self.item(&sequence, item, [&mut window, &mut edits], &mut writer) {
                return Ok(Err(error));
            }
            if writer.text.len() >= PORTION {
                out.write_all(writer.text.as_bytes())?;
                writer.text.clear();
            }
        }
        out.write_all(writer.text.as_bytes())?;
        Ok(self.lines.verify().map_err(CommandError::from))
    }

    /// Writes what an item gives.
    fn item(
        &self,
        sequence: &Sequence<'_>,
        item: &Item,
        windows: [&mut Window<'_>; 2],
        writer: &mut MessageWriter<'_>,
    ) -> Result<(), CommandError> {
        let edit = match item.share {
            Share::Nothing => return Ok(()),
            Share::Own => item.entry,
            Share::Edited(edit) => edit,
        };
        let spans = [item.entry, edit].map(|entry| self.session.entry(entry).span);
        let [own, other] = windows;
        let fetched = match item.share {
            Share::Edited(_) => vec![(spans[0], fetch(own, spans[0])?), (spans[1], fetch(other, spans[1])?)],
            Share::Own | Share::Nothing => vec![(spans[0], fetch(own, spans[0])?)],
        };
        let records = Fetched(&fetched);
        let message = agent_message(sequence, item, &records)
            .map_err(|error| CommandError::from((&*self.file.path, error)))?;
        if let Some(value) = message {
            writer.message(&self.session, AgentMessage { item: *item, value });
        }
        Ok(())
    }
}

fn fetch<'w>(window: &'w mut Window<'_>, span: Span) -> Result<&'w [u8], CommandError> {
    window.fetch(span.offset, span.len as usize).map_err(CommandError::from)
}

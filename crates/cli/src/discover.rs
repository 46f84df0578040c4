//! Paths and lists → session files, in the order in which the user named them (spec part 7).

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::Metadata;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use walkdir::WalkDir;

use crate::agents;
use crate::app::App;
use crate::args::PathArgs;
use crate::disk::{self, read};
use crate::exit::CommandError;
use crate::session_file::SessionFile;

/// Something that was named: a file to work on, or why there is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// As the user named it, or found in a folder that the user named.
    pub path: PathBuf,
    /// The file, or what is wrong with the path.
    pub file: Result<SessionFile, CommandError>,
}

/// What a command does without a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Without {
    /// Takes the newest session of the working directory's project, else the newest of all.
    Newest,
    /// Takes all sessions in the agents' own folders.
    All,
    /// Refuses: it would write.
    Nothing,
}

/// Whether a command may read a session from standard input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stdin {
    /// `-` is one session.
    Allowed,
    /// `-` is an error, since there is no file to write to.
    Refused,
}

/// The files that `args` name. Each path that cannot be used is an item of its own; a file named twice is taken once.
///
/// # Errors
/// There is no path where one is needed, no session anywhere, or the list of `--files-from` cannot be read.
pub fn discover(
    app: &App,
    args: &PathArgs,
    stdin: Stdin,
    without: Without,
) -> Result<Vec<Item>, CommandError> {
    let mut found = Found { stdin, items: Vec::new(), seen: HashSet::new() };
    let from_stdin = args.files_from.as_deref() == Some(Path::new("-"));
    if from_stdin && args.paths.iter().any(|path| path == Path::new("-")) {
        return Err(CommandError::usage("standard input cannot be both a session and the list of files"));
    }
    for path in &args.paths {
        found.take(path);
    }
    if let Some(list) = &args.files_from {
        let paths = paths_in(list, args.null)?;
        if paths.is_empty() {
            app.printer.say("the list of files is empty");
        }
        for path in &paths {
            found.take(path);
        }
    } else if args.paths.is_empty() {
        match without {
            Without::Newest => found.file(&agents::newest(app)?),
            Without::All => agents::all(app)?.iter().for_each(|path| found.file(path)),
            Without::Nothing => {
                return Err(CommandError::usage("no session given")
                    .hint("name a session file, a folder, or --files-from FILE"));
            }
        }
    }
    Ok(found.items)
}

/// Session files in a folder, sorted by path: `*.jsonl`, without hidden files and what sesstool itself puts there.
/// The second list holds what could not be looked into.
pub fn walk(folder: &Path, depth: usize) -> (Vec<PathBuf>, Vec<CommandError>) {
    let (mut files, mut errors) = (Vec::new(), Vec::new());
    for entry in WalkDir::new(folder).max_depth(depth).sort_by_file_name() {
        match entry {
            Ok(entry) => {
                let is_file = !entry.file_type().is_dir() && (entry.depth() > 0);
                if is_file && is_session_name(entry.file_name()) {
                    files.push(entry.into_path());
                }
            }
            Err(error) => {
                let path = error.path().unwrap_or(folder).to_owned();
                let reason = error.io_error().map_or_else(|| error.to_string(), ToString::to_string);
                errors.push(
                    CommandError::in_file(&path, format!("cannot look into the folder: {reason}"))
                        .hint("check the permissions of the folder"),
                );
            }
        }
    }
    (files, errors)
}

fn is_session_name(name: &OsStr) -> bool {
    let bytes = name.as_bytes();
    bytes.ends_with(b".jsonl") && !bytes.starts_with(b".") && !disk::is_own_file(name)
}

struct Found {
    stdin: Stdin,
    items: Vec<Item>,
    /// Device and inode of what is there already.
    seen: HashSet<(u64, u64)>,
}

impl Found {
    /// A file, a folder, or `-`.
    fn take(&mut self, path: &Path) {
        if path == Path::new("-") {
            return self.standard_input();
        }
        match std::fs::metadata(path) {
            Ok(metadata) if metadata.is_dir() => self.folder(path),
            Ok(metadata) => self.existing(path, &metadata),
            Err(_) => self.file(path),
        }
    }

    fn standard_input(&mut self) {
        // No file has this pair, and a second `-` would find nothing left.
        if self.seen.insert((u64::MAX, u64::MAX)) {
            let file = match self.stdin {
                Stdin::Allowed => Ok(SessionFile::stdin()),
                Stdin::Refused => Err(CommandError::in_file(Path::new("-"), "this command writes to a file")
                    .hint("name the session file")),
            };
            self.items.push(Item { path: "-".into(), file });
        }
    }

    fn folder(&mut self, folder: &Path) {
        let (files, errors) = walk(folder, usize::MAX);
        if files.is_empty() && errors.is_empty() {
            let error = CommandError::in_file(folder, "no sessions in this folder")
                .hint("sessions in folders are files named *.jsonl");
            self.items.push(Item { path: folder.to_owned(), file: Err(error) });
        }
        for file in &files {
            self.file(file);
        }
        for error in errors {
            self.items.push(Item { path: folder.to_owned(), file: Err(error) });
        }
    }

    fn file(&mut self, path: &Path) {
        match std::fs::metadata(path) {
            Ok(metadata) => self.existing(path, &metadata),
            Err(error) => {
                let error = match error.kind() {
                    std::io::ErrorKind::NotFound => CommandError::in_file(path, "no such file or folder"),
                    _ => CommandError::in_file(path, error),
                };
                self.items.push(Item { path: path.to_owned(), file: Err(error) });
            }
        }
    }

    fn existing(&mut self, path: &Path, metadata: &Metadata) {
        if self.seen.insert((metadata.dev(), metadata.ino())) {
            let modified_ms = metadata.mtime() * 1000 + metadata.mtime_nsec() / 1_000_000;
            let file = SessionFile {
                path: path.to_owned(),
                n_bytes: metadata.len(),
                modified_ms: Some(modified_ms),
            };
            self.items.push(Item { path: path.to_owned(), file: Ok(file) });
        }
    }
}

/// The paths in a list. Names are bytes: whatever the file system allows, other than the separator.
fn paths_in(list: &Path, null: bool) -> Result<Vec<PathBuf>, CommandError> {
    let bytes = if list == Path::new("-") {
        read::from_reader(std::io::stdin().lock()).map_err(|error| CommandError::in_file(list, error))
    } else {
        read::whole(list).map_err(CommandError::from)
    };
    let bytes = bytes.map_err(|error| CommandError { kind: crate::exit::ErrorKind::Usage, ..error })?;
    let separator = if null { 0 } else { b'\n' };
    let names = bytes.split(|byte| *byte == separator).filter(|name| !name.is_empty());
    Ok(names.map(|name| PathBuf::from(OsStr::from_bytes(name))).collect())
}

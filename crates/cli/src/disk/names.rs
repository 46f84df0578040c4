//! The names of the files that we put beside a session.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// Between the session's name and the length at which its old file was left behind.
const OLD: &str = ".sesstool-old-";

/// `NAME.undo`, beside the session.
pub(super) fn undo_log(session: &Path) -> PathBuf {
    session.with_file_name(joined("", session, ".undo"))
}

/// `.NAME.sesstool-tmp`: the new file before the rename. One name is enough, since its maker holds the lock.
pub(super) fn temporary(session: &Path) -> PathBuf {
    session.with_file_name(joined(".", session, ".sesstool-tmp"))
}

/// `.NAME.sesstool-old-LENGTH-INODE`: a second name of the file that a rename takes the place of, kept while it is watched. All
/// up to that length is in the session.
pub(super) fn left_behind(session: &Path, length: u64, inode: u64) -> PathBuf {
    session.with_file_name(joined(".", session, &format!("{OLD}{length}-{inode}")))
}

/// The length in a name made by [`left_behind`] for this session.
pub(super) fn left_behind_length(session: &Path, name: &OsStr) -> Option<u64> {
    let prefix = joined(".", session, OLD);
    let numbers = name.as_encoded_bytes().strip_prefix(prefix.as_encoded_bytes())?;
    length_of(std::str::from_utf8(numbers).ok()?)
}

/// The n-th backup name, from 1: `NAME.bak`, `NAME.bak.2`, …
pub(super) fn backup(session: &Path, folder: Option<&Path>, number: u32) -> PathBuf {
    let name = match number {
        1 => joined("", session, ".bak"),
        n => joined("", session, &format!(".bak.{n}")),
    };
    match folder {
        Some(folder) => folder.join(name),
        None => session.with_file_name(name),
    }
}

/// Whether a file of this name is a backup, an undo record or a temporary file of ours, so that folder walks pass
/// over it (spec 8.1).
pub fn is_own_file(name: &OsStr) -> bool {
    let name = name.as_encoded_bytes();
    if name.starts_with(b".") {
        let text = String::from_utf8_lossy(name);
        return text.ends_with(".sesstool-tmp")
            || text.rsplit_once(OLD).is_some_and(|(_, numbers)| length_of(numbers).is_some());
    }
    let stem = match name.iter().rposition(|byte| *byte == b'.') {
        Some(dot) if is_number(&name[dot + 1..]) => &name[..dot],
        _ => return name.ends_with(b".jsonl.undo") || name.ends_with(b".jsonl.bak"),
    };
    stem.ends_with(b".jsonl.bak")
}

/// The first of two numbers with a dash between.
fn length_of(numbers: &str) -> Option<u64> {
    let (length, inode) = numbers.split_once('-')?;
    if is_number(inode.as_bytes()) && is_number(length.as_bytes()) { length.parse().ok() } else { None }
}

fn is_number(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().all(u8::is_ascii_digit)
}

fn joined(before: &str, session: &Path, after: &str) -> OsString {
    let mut name = OsString::from(before);
    name.push(session.file_name().expect("a resolved path of a regular file ends in a name"));
    name.push(after);
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, expected: bool) {
        assert_eq!(is_own_file(OsStr::new(name)), expected, "{name}");
    }

    #[test]
    fn knows_every_name_it_makes_and_no_session() {
        let session = Path::new("/x/2026_a.jsonl");
        for path in [
            undo_log(session),
            temporary(session),
            left_behind(session, 12, 5),
            backup(session, None, 1),
            backup(session, Some(Path::new("/b")), 12),
        ] {
            check(path.file_name().unwrap().to_str().unwrap(), true);
        }
        for name in ["a.jsonl", ".a.jsonl", "bak.jsonl", "a.bak.jsonl", "a.jsonl.bak.x", "undo", "a.2", ""] {
            check(name, false);
        }
        let old = left_behind(session, 77, 5);
        assert_eq!(left_behind_length(session, old.file_name().unwrap()), Some(77));
        assert_eq!(left_behind_length(Path::new("/x/a.jsonl"), old.file_name().unwrap()), None);
    }
}

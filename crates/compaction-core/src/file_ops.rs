//! Files read and modified by what is summarised, carried over earlier summaries (spec 3.6).

use std::cmp::Ordering;

use session_model::entry::SummaryFacts;
use session_model::message::{FileAction, FileOp};
use session_model::prompts::Prompts;
use session_model::sequence::{Item, Sequence};

/// Files by what was done to them; each list sorted and without repeats.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileOps {
    /// Paths that were read.
    pub read: Vec<String>,
    /// Paths that were written.
    pub written: Vec<String>,
    /// Paths that were edited.
    pub edited: Vec<String>,
}

/// The two lists that a summary ends with, and that `details` has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileLists {
    /// Paths that were read and not modified.
    pub read: Vec<String>,
    /// Paths that were written or edited.
    pub modified: Vec<String>,
}

impl FileOps {
    /// Takes over the lists of an earlier summary, unless an extension made it (spec D21).
    pub fn inherit(&mut self, summary: &SummaryFacts) {
        if !summary.from_extension {
            self.read.extend(summary.read_files.iter().cloned());
            self.edited.extend(summary.modified_files.iter().cloned());
        }
    }

    /// Takes the files that the items' tool calls touch.
    pub fn collect<'i>(&mut self, sequence: &Sequence<'_>, items: impl IntoIterator<Item = &'i Item>) {
        for item in items {
            let nested = sequence.message(item).map_or(&[][..], |message| &message.nested_files);
            let files =
                sequence.calls(item).iter().filter_map(|call| call.file).chain(nested.iter().copied());
            files.for_each(|FileOp { action, path }| self.add(action, sequence.session.name(path)));
        }
    }

    /// Takes one file.
    pub fn add(&mut self, action: FileAction, path: &str) {
        let list = match action {
            FileAction::Read => &mut self.read,
            FileAction::Write => &mut self.written,
            FileAction::Edit => &mut self.edited,
        };
        list.push(path.to_owned());
    }

    /// Sorts the lists and drops repeats.
    #[must_use]
    pub fn sorted(mut self) -> Self {
        for list in [&mut self.read, &mut self.written, &mut self.edited] {
            sort(list);
        }
        self
    }

    /// Files read only, and files modified.
    pub fn lists(&self) -> FileLists {
        let mut modified: Vec<String> = self.written.iter().chain(&self.edited).cloned().collect();
        sort(&mut modified);
        let is_modified = |path: &String| modified.binary_search_by(|other| by_units(other, path)).is_ok();
        let mut read: Vec<String> = self.read.iter().filter(|path| !is_modified(path)).cloned().collect();
        sort(&mut read);
        FileLists { read, modified }
    }
}

fn sort(paths: &mut Vec<String>) {
    paths.sort_unstable_by(|left, right| by_units(left, right));
    paths.dedup();
}

/// The order of JavaScript's `sort`: by UTF-16 units.
fn by_units(left: &str, right: &str) -> Ordering {
    left.encode_utf16().cmp(right.encode_utf16())
}

/// `summary` with one set of file blocks at its end, whatever blocks it had before (spec 3.6).
pub fn with_file_blocks(summary: &str, files: &FileLists, prompts: &Prompts) -> String {
    let mut text = without_file_blocks(summary);
    let blocks = prompts.file_operations(&files.read, &files.modified);
    if !blocks.is_empty() {
        if !text.is_empty() {
            text.push_str("\n\n");
        }
        text.push_str(&blocks);
    }
    text
}

/// `summary` without its closed file blocks and the white space behind each, and without white space at its end. A tag that is
/// never closed is text.
pub fn without_file_blocks(summary: &str) -> String {
    let mut text = summary.to_owned();
    for (open, close) in [("<read-files>", "</read-files>"), ("<modified-files>", "</modified-files>")] {
        text = without_blocks(&text, open, close);
    }
    text.truncate(text.trim_end_matches(is_space).len());
    text
}

fn without_blocks(text: &str, open: &str, close: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(open) {
        let Some(end) = rest[start + open.len()..].find(close) else { break };
        kept.push_str(&rest[..start]);
        rest = rest[start + open.len() + end + close.len()..].trim_start_matches(is_space);
    }
    kept.push_str(rest);
    kept
}

/// White space as JavaScript's expressions know it.
fn is_space(character: char) -> bool {
    session_model::tidy::is_js_space(character)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lists(read: &[&str], modified: &[&str]) -> FileLists {
        let own = |paths: &[&str]| paths.iter().map(|path| (*path).to_owned()).collect();
        FileLists { read: own(read), modified: own(modified) }
    }

    #[test]
    fn a_modified_file_is_not_listed_as_read() {
        let own = |paths: &[&str]| paths.iter().map(|path| (*path).to_owned()).collect::<Vec<_>>();
        let ops =
            FileOps { read: own(&["b", "a", "c"]), written: own(&["c"]), edited: own(&["a", "d", "a"]) };
        assert_eq!(ops.sorted().lists(), lists(&["b"], &["a", "c", "d"]));
    }

    #[test]
    fn paths_sort_by_utf16_units() {
        let ops = FileOps { read: vec!["\u{ff5e}".to_owned(), "😀".to_owned()], ..FileOps::default() };
        assert_eq!(ops.lists().read, ["😀", "\u{ff5e}"]);
    }

    #[test]
    fn old_blocks_give_way_to_one_set_at_the_end() {
        let prompts = Prompts::default();
        let old = "## Goal\nx\n\n<read-files>\na\n</read-files>\n<modified-files>\nb\n</modified-files>\n\ntail <read-files> open";
        assert_eq!(
            with_file_blocks(old, &lists(&["r"], &["m"]), &prompts),
            "## Goal\nx\n\ntail <read-files> open\n\n<read-files>\nr\n</read-files>\n<modified-files>\nm\n</modified-files>"
        );
        assert_eq!(with_file_blocks("x \n", &lists(&[], &[]), &prompts), "x");
    }

    #[test]
    fn blocks_end_at_the_first_closing_tag() {
        assert_eq!(without_file_blocks("<read-files>a</read-files> b</read-files>"), "b</read-files>");
        assert_eq!(without_file_blocks("a <read-files>"), "a <read-files>");
    }
}

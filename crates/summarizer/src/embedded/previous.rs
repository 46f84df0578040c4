//! What an earlier summary says, ours or a model's: its sections line by line, and the facts of its index.

use super::context::READ;
use super::fold::words;
use super::sentences::without_marks;

/// Stands before the index in a summary.
pub(super) const INDEX_LABEL: &str = "Index of facts:";

/// Sections that an earlier summary can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part {
    Goal,
    Constraints,
    Done,
    InProgress,
    Blocked,
    Decisions,
    NextSteps,
    Critical,
    Notes,
}

/// An earlier summary, taken apart.
#[derive(Debug, Default)]
pub(super) struct Previous {
    lines: Vec<(Part, String)>,
    /// Paths and names of its index, written out.
    pub(super) indexed: Vec<String>,
    /// Files that it says were read.
    pub(super) reads: Vec<String>,
}

impl Previous {
    /// Takes a summary apart. What stands under no known heading is a note.
    pub(super) fn of(summary: &str) -> Previous {
        let mut previous = Previous::default();
        let mut part = Part::Notes;
        let mut in_index = false;
        let mut folders: Vec<(usize, String)> = Vec::new();
        for line in summary.lines() {
            let text = line.trim();
            if text.starts_with('#') || is_bold_heading(text) {
                part = heading(text, part);
                in_index = false;
                continue;
            }
            if text == INDEX_LABEL {
                in_index = true;
                continue;
            }
            if in_index {
                expand(line, &mut folders, &mut previous.indexed);
                continue;
            }
            let item = without_marks(text);
            // Drawings and fences of code lose their sense line by line.
            let is_drawn = item.starts_with(['│', '├', '└', '┌', '|']) || item.starts_with("```");
            let is_empty = !item.chars().any(char::is_alphanumeric);
            if is_empty || item == "(none)" || is_drawn {
                continue;
            }
            if let (Some(files), Part::Critical) = (item.strip_prefix(READ), part)
                && !files.contains(' ')
            {
                previous.reads.extend(words(files));
                continue;
            }
            // A line without a mark goes on with the one before.
            let goes_on = line.starts_with("  ") && !is_item(text);
            match previous.lines.last_mut() {
                Some((last, text)) if goes_on && *last == part => {
                    text.push('\n');
                    text.push_str(item);
                }
                _ => previous.lines.push((part, item.to_owned())),
            }
        }
        previous
    }

    /// Everything that it says, a text at a time.
    pub(super) fn facts(&self) -> impl Iterator<Item = &str> {
        let lines = self.lines.iter().map(|(_, line)| line);
        lines.chain(&self.indexed).chain(&self.reads).map(String::as_str)
    }

    /// Takes the lines of a section out for which `take` gives something.
    pub(super) fn take<T>(&mut self, part: Part, take: impl Fn(&str) -> Option<T>) -> Vec<T> {
        let mut taken = Vec::new();
        self.lines.retain(|(of, line)| match take(line).filter(|_| *of == part) {
            Some(it) => {
                taken.push(it);
                false
            }
            None => true,
        });
        taken
    }

    /// The lines of a section, oldest first.
    pub(super) fn part(&self, part: Part) -> impl Iterator<Item = &str> {
        self.lines.iter().filter(move |(of, _)| *of == part).map(|(_, line)| line.as_str())
    }
}

fn is_item(text: &str) -> bool {
    text.starts_with(['-', '*', '•']) || text.starts_with(|first: char| first.is_ascii_digit())
}

fn is_bold_heading(text: &str) -> bool {
    text.starts_with("**") && text.ends_with("**") && text.len() < 60
}

fn heading(text: &str, before: Part) -> Part {
    let low = text.to_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| low.contains(word));
    if has(&["goal", "request", "task"]) {
        Part::Goal
    } else if has(&["constraint", "preference"]) {
        Part::Constraints
    } else if has(&["in progress", "current"]) {
        Part::InProgress
    } else if has(&["done", "so far", "completed", "progress"]) {
        Part::Done
    } else if has(&["blocked"]) {
        Part::Blocked
    } else if has(&["decision"]) {
        Part::Decisions
    } else if has(&["next step"]) {
        Part::NextSteps
    } else if has(&["critical", "needed later", "context"]) {
        Part::Critical
    } else if text.starts_with("###") {
        before
    } else {
        Part::Notes
    }
}

/// Writes a line of an index out: every path whole.
fn expand(line: &str, folders: &mut Vec<(usize, String)>, out: &mut Vec<String>) {
    let depth = line.len() - line.trim_start().len();
    let text = line.trim().trim_start_matches("- ");
    folders.retain(|(of, _)| *of < depth);
    let base = folders.last().map_or("", |(_, path)| path.as_str());
    match text.split_once(':') {
        Some((folder, files)) if folder.ends_with('/') => {
            let path = format!("{base}{folder}");
            out.extend(words(files).map(|file| format!("{path}{file}")));
            folders.push((depth, path));
        }
        Some(("Files" | "Names" | "Values", facts)) => out.extend(words(facts)),
        _ if !text.is_empty() => out.push(format!("{base}{text}")),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_and_index_are_found_again() {
        let previous = Previous::of(
            "## Goal\n- Build it\n  and test it\n\n## Progress\n### Done\n- [x] a\n### Blocked\n(none)\n\n## Critical Context\n- here\n\nIndex of facts:\n- src/: {a,b}.rs\n  - c/d.rs\n- Names: parse_it runIt\n- https://x.example/y",
        );
        let lines = |part| previous.part(part).collect::<Vec<_>>();
        assert_eq!(lines(Part::Goal), ["Build it\nand test it"]);
        assert_eq!((lines(Part::Done), lines(Part::Blocked)), (vec!["a"], vec![]));
        assert_eq!(lines(Part::Critical), ["here"]);
        assert_eq!(
            previous.indexed,
            ["src/a.rs", "src/b.rs", "src/c/d.rs", "parse_it", "runIt", "https://x.example/y"]
        );
    }
}

//! How lists of paths and names are shortened, as shells do it (`src/{main,lib}.rs`), and how they are read again.

use std::collections::BTreeMap;

/// Files of one folder that still fit into the line of the folder above.
const FEW_FILES: usize = 3;
/// Shortest beginning that names may share.
const SHORTEST_PREFIX: usize = 3;

/// A folder of paths.
#[derive(Debug, Default)]
struct Folder<'p> {
    folders: BTreeMap<&'p str, Folder<'p>>,
    files: Vec<&'p str>,
}

/// Writes paths as a tree, a line for each folder with more than a few files: `- folder/: {a,b}.rs inner/c.rs`.
pub(super) fn write_paths(paths: &[&str], text: &mut String) {
    let mut root = Folder::default();
    for path in paths {
        let mut folder = &mut root;
        let mut rest = *path;
        while let Some((name, below)) = rest.split_once('/') {
            folder = folder.folders.entry(name).or_default();
            rest = below;
        }
        folder.files.push(rest);
    }
    root.write("Files", 0, text);
}

impl<'p> Folder<'p> {
    fn write(&self, label: &str, depth: usize, text: &mut String) {
        let mut inline = files(&self.files);
        let mut lines: Vec<(String, &Folder<'p>)> = Vec::new();
        for (name, folder) in &self.folders {
            let (path, inner) = folder.only(name);
            if inner.folders.is_empty() && inner.files.len() <= FEW_FILES {
                inline.push(token(&path, &inner.files));
            } else {
                lines.push((path, inner));
            }
        }
        let below = if label == "Files" { 0 } else { depth + 1 };
        if !inline.is_empty() || below > 0 {
            let gap = if inline.is_empty() { "" } else { " " };
            text.push_str(&format!("{}- {label}:{gap}{}\n", "  ".repeat(depth), inline.join(" ")));
        }
        for (path, inner) in lines {
            inner.write(&path, below, text);
        }
    }

    /// A folder with nothing but one other folder is written together with it.
    fn only(&self, name: &str) -> (String, &Folder<'p>) {
        let mut path = format!("{name}/");
        let mut folder = self;
        while folder.files.is_empty() && folder.folders.len() == 1 {
            let Some((name, inner)) = folder.folders.first_key_value() else { break };
            path.push_str(name);
            path.push('/');
            folder = inner;
        }
        (path, folder)
    }
}

/// The few files of a folder in one word: `folder/{a,b}.rs`.
pub(super) fn token(path: &str, inside: &[&str]) -> String {
    match files(inside).as_slice() {
        [one] => format!("{path}{one}"),
        _ => format!("{path}{{{}}}", inside.join(",")),
    }
}

/// Files of one folder, those with the same ending together: `{a,b}.rs`.
fn files(names: &[&str]) -> Vec<String> {
    let mut by_ending: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for name in names {
        let (stem, ending) = match name.rfind('.') {
            Some(at) if at > 0 => name.split_at(at),
            _ => (*name, ""),
        };
        by_ending.entry(ending).or_default().push(stem);
    }
    let mut words = Vec::new();
    for (ending, stems) in by_ending {
        match stems.as_slice() {
            [] => {}
            [stem] => words.push(format!("{stem}{ending}")),
            _ if ending.is_empty() => words.extend(stems.iter().map(|stem| (*stem).to_owned())),
            _ => words.push(format!("{{{}}}{ending}", stems.join(","))),
        }
    }
    words
}

/// Sorted names in one line, beginnings that they share written once: `is_{empty,valid}`.
pub(super) fn names(sorted: &[&str]) -> String {
    let mut words: Vec<String> = Vec::new();
    let mut at = 0;
    while at < sorted.len() {
        let name = sorted[at];
        let (mut best, mut n_best, mut saved_best) = (0, 1, 2);
        for cut in cuts(name) {
            let shared = sorted[at..].iter().take_while(|other| splits_at(other, &name[..cut])).count();
            let saved = shared.saturating_sub(1) * cut;
            if saved > saved_best {
                (best, n_best, saved_best) = (cut, shared, saved);
            }
        }
        if n_best > 1 {
            let ends: Vec<&str> = sorted[at..at + n_best].iter().map(|other| &other[best..]).collect();
            words.push(format!("{}{{{}}}", &name[..best], ends.join(",")));
        } else {
            words.push(name.to_owned());
        }
        at += n_best;
    }
    words.join(" ")
}

/// Where a name may be cut: between its words, and at its end.
fn cuts(name: &str) -> impl Iterator<Item = usize> {
    (SHORTEST_PREFIX..=name.len()).filter(|&at| is_cut(name, at))
}

fn is_cut(name: &str, at: usize) -> bool {
    let bytes = name.as_bytes();
    if !bytes.is_ascii() || at > bytes.len() {
        return false;
    }
    let [before, after] = [at.checked_sub(1).and_then(|at| bytes.get(at)), bytes.get(at)];
    match (before, after) {
        (_, None) | (Some(b'_'), _) | (_, Some(b'_')) => true,
        (Some(before), Some(after)) => !before.is_ascii_uppercase() && after.is_ascii_uppercase(),
        (None, _) => false,
    }
}

fn splits_at(name: &str, prefix: &str) -> bool {
    name.starts_with(prefix) && is_cut(name, prefix.len())
}

/// The words of a list, each written out. Lists with commas are read too.
pub(super) fn words(list: &str) -> impl Iterator<Item = String> {
    list.split_whitespace()
        .map(|word| word.trim_end_matches(','))
        .filter(|word| !word.is_empty())
        .flat_map(unfolded)
}

/// What a word with braces stands for.
pub(super) fn unfolded(word: &str) -> Vec<String> {
    let parts = word.split_once('{').and_then(|(head, rest)| {
        let (inside, tail) = rest.split_once('}')?;
        Some((head, inside, tail))
    });
    match parts {
        Some((head, inside, tail)) => inside.split(',').map(|it| format!("{head}{it}{tail}")).collect(),
        None => vec![word.to_owned()],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(paths: &[&str], expected: &str) {
        let mut text = String::new();
        write_paths(paths, &mut text);
        assert_eq!(text, expected);
    }

    #[test]
    fn paths_fold_by_folder_and_ending() {
        check(
            &["a/b/c.rs", "a/b/d.rs", "a/b/e/f.rs", "a/b/g.md", "a/b/h.md", "x.rs", "y/z/only.rs"],
            "- Files: x.rs y/z/only.rs\n- a/b/: {g,h}.md {c,d}.rs e/f.rs\n",
        );
        check(&["a/b.rs", "a/c.rs", "a/d.md"], "- Files: a/{b.rs,c.rs,d.md}\n");
        check(
            &["a/1.c", "a/b/1.rs", "a/b/2.rs", "a/b/3.rs", "a/b/4.rs"],
            "- a/: 1.c\n  - b/: {1,2,3,4}.rs\n",
        );
    }

    #[test]
    fn names_share_their_beginnings() {
        let listed = ["ArcSwap", "is_empty", "is_valid", "readFile", "readFileSync", "run"];
        assert_eq!(names(&listed), "ArcSwap is_{empty,valid} readFile{,Sync} run");
        assert_eq!(words(&names(&listed)).collect::<Vec<_>>(), listed);
    }

    #[test]
    fn lists_with_commas_are_read_too() {
        assert_eq!(words("a.rs, b/{c,d}.rs").collect::<Vec<_>>(), ["a.rs", "b/c.rs", "b/d.rs"]);
    }
}

//! `cargo xtask tidy`: what the house style asks for and no compiler checks.

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use session_model::prompts::PromptName;

use crate::files;

/// Most lines that a source file may have.
const MOST_LINES: usize = 600;
/// Words that mark unfinished work; in pieces, so that this file has none.
const UNFINISHED: [&str; 5] = [
    concat!("dbg", "!("),
    concat!("todo", "!("),
    concat!("unimplemented", "!("),
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
];

/// Checks everything and names all that is wrong.
///
/// # Errors
/// Something is wrong.
pub(crate) fn run() -> Result<()> {
    let root = files::root()?;
    let mut faults = Vec::new();
    for path in sources(&root) {
        source(&path, &files::read(&path)?, &mut faults);
    }
    architecture(&root, &files::read(&root.join("ARCHITECTURE.md"))?, &mut faults);
    prompts(&root, &mut faults);
    fixtures(&root, &mut faults)?;
    for fault in &faults {
        println!("{}", fault.strip_prefix(&format!("{}/", root.display())).unwrap_or(fault));
    }
    ensure!(faults.is_empty(), "{} things are untidy", faults.len());
    println!("tidy");
    Ok(())
}

/// The project's own source files.
fn sources(root: &Path) -> Vec<PathBuf> {
    ["crates", "xtask", "fuzz"]
        .into_iter()
        .flat_map(|folder| {
            files::below(&root.join(folder), |path| {
                let is_built = path.components().any(|part| part.as_os_str() == "target");
                !is_built && path.extension().is_some_and(|extension| extension == "rs")
            })
        })
        .collect()
}

/// A file says first what it owns, is not too long, and is finished.
fn source(path: &Path, text: &str, faults: &mut Vec<String>) {
    let name = path.display();
    if !text.starts_with("//! ") {
        faults.push(format!("{name}: does not open with a //! sentence"));
    }
    let n_lines = text.lines().count();
    if n_lines >= MOST_LINES {
        faults.push(format!("{name}: {n_lines} lines; fewer than {MOST_LINES} are wanted"));
    }
    for (number, line) in text.lines().enumerate() {
        if let Some(word) = UNFINISHED.iter().find(|word| line.contains(**word)) {
            faults.push(format!("{name}:{}: {word}", number + 1));
        }
    }
}

/// ARCHITECTURE.md names every crate, and no file that is not there.
fn architecture(root: &Path, text: &str, faults: &mut Vec<String>) {
    let crates = folders(&root.join("crates"));
    for folder in &crates {
        if !text.contains(&format!("`{folder}`")) && !text.contains(&format!("`crates/{folder}`")) {
            faults.push(format!("ARCHITECTURE.md: does not name crates/{folder}"));
        }
    }
    // Every second piece stands between backticks.
    for word in text.split('`').skip(1).step_by(2) {
        let Some((folder, _)) = word.split_once('/') else { continue };
        let is_path = !word.contains([' ', '{', '<', '*', '…', '|', ':', '(']);
        let place = if crates.iter().any(|it| it == folder) {
            root.join("crates").join(word)
        } else if ["xtask", "docs", "prompts", "fixtures", "crates", "fuzz"].contains(&folder) {
            root.join(word)
        } else {
            continue;
        };
        if is_path && !place.exists() {
            faults.push(format!("ARCHITECTURE.md: {word} is not there"));
        }
    }
}

fn folders(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.is_dir())
        .filter_map(|path| Some(path.file_name()?.to_string_lossy().into_owned()))
        .collect();
    names.sort();
    names
}

/// Every file in `prompts/` is one that is compiled in.
fn prompts(root: &Path, faults: &mut Vec<String>) {
    let folder = root.join("prompts");
    for path in files::below(&folder, |_| true) {
        let name = path.strip_prefix(&folder).unwrap_or(&path).to_string_lossy().replace('\\', "/");
        if PromptName::from_file(&name).is_none() {
            faults.push(format!("prompts/{name}: no prompt has this name"));
        }
    }
}

/// Every fixture has expected outputs, and the table of fixtures names none that is not there.
fn fixtures(root: &Path, faults: &mut Vec<String>) -> Result<()> {
    let folder = root.join("fixtures");
    let names = folders(&folder);
    for name in &names {
        let has_any = |part: &str| !files::below(&folder.join(name).join(part), |_| true).is_empty();
        if !name.starts_with("summary-") && !has_any("expected") {
            faults.push(format!("fixtures/{name}: nothing is expected of it"));
        }
    }
    for line in files::read(&folder.join("README.md"))?.lines().filter(|line| line.starts_with("| ")) {
        let Some((number, rest)) = line[2..].split_once(" | ") else { continue };
        if number.parse::<u32>().is_err() {
            continue;
        }
        for word in rest.split('`').skip(1).step_by(2) {
            let exists = match word.strip_suffix('…') {
                Some(start) => names.iter().any(|name| name.starts_with(start)),
                None => names.iter().any(|name| name == word),
            };
            let is_name = word.contains('-')
                && !word.contains(' ')
                && !folders(&root.join("crates")).contains(&word.to_owned());
            if is_name && !exists {
                faults.push(format!("fixtures/README.md: case {number} names {word}, which is not there"));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let mut faults = Vec::new();
        source(Path::new("a.rs"), text, &mut faults);
        assert_eq!(faults, expected);
    }

    #[test]
    fn a_source_file_says_what_it_owns_and_is_finished() {
        check("//! Owns something.\n", &[]);
        check("use std;\n", &["a.rs: does not open with a //! sentence"]);
        let unfinished = format!("//! Owns something.\nfn f() {{ {}) }}\n", UNFINISHED[1]);
        check(&unfinished, &[&format!("a.rs:2: {}", UNFINISHED[1])]);
        let long = format!("//! Owns something.\n{}", "\n".repeat(MOST_LINES));
        check(&long, &["a.rs: 601 lines; fewer than 600 are wanted"]);
    }
}

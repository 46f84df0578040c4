//! The parts of docs/summaries.md that are written here.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::files;

/// Begin and end of a part; the words between name it.
const TABLES: [&str; 2] =
    ["<!-- tables, written by `cargo xtask recall --write` -->", "<!-- end of tables -->"];
const EXAMPLES: [&str; 2] =
    ["<!-- examples, written by `cargo xtask recall --examples` -->", "<!-- end of examples -->"];

/// Writes the tables.
///
/// # Errors
/// The document cannot be read or written, or has no place for them.
pub(super) fn write_tables(tables: &str) -> Result<()> {
    write(TABLES, tables)
}

/// Writes the summaries of the example sessions.
///
/// # Errors
/// As [`write_tables`], and an example that is no session.
pub(super) fn write_examples(summary: impl Fn(&Path) -> Result<String>) -> Result<()> {
    let mut out = String::new();
    for path in files::below(&files::root()?.join("fixtures"), is_example) {
        let name = path.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
        out.push_str(&format!("### {name}\n\n````markdown\n{}\n````\n\n", summary(&path)?));
    }
    write(EXAMPLES, &out)
}

fn document() -> Result<PathBuf> {
    Ok(files::root()?.join("docs/summaries.md"))
}

fn write([begin, end]: [&str; 2], part: &str) -> Result<()> {
    let path = document()?;
    let text = files::read(&path)?;
    let missing = || format!("docs/summaries.md has no line {begin}");
    let (before, rest) = text.split_once(begin).with_context(missing)?;
    let (_, after) = rest.split_once(end).with_context(|| format!("docs/summaries.md has no line {end}"))?;
    files::write(&path, format!("{before}{begin}\n\n{}\n\n{end}{after}", part.trim_end()))
}

fn is_example(path: &Path) -> bool {
    let folder = path.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
    path.ends_with("session.jsonl") && folder.starts_with("summary-")
}

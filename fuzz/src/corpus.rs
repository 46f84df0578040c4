//! What mutation begins with: the sessions of `fuzz/corpus`, more from folders that are named, and generated ones.

use std::path::{Path, PathBuf};

/// No more than this of one file: inputs are small, so that there are many.
const MOST_BYTES: usize = 24 << 10;

/// Sessions to begin with.
pub(crate) struct Corpus {
    /// Whole lines of each file, from its start.
    pub(crate) files: Vec<Vec<u8>>,
}

impl Corpus {
    /// The sessions of the checked-in folder and of `more`.
    pub(crate) fn load(more: &[PathBuf]) -> Corpus {
        let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus")];
        folders.extend_from_slice(more);
        let mut paths = Vec::new();
        folders.iter().for_each(|folder| collect(folder, &mut paths));
        paths.sort();
        let files: Vec<Vec<u8>> = paths.iter().map(|path| start_of(path)).collect();
        assert!(!files.is_empty(), "there are no sessions in {folders:?}");
        Corpus { files }
    }
}

fn collect(folder: &Path, paths: &mut Vec<PathBuf>) {
    let entries = folder.read_dir().unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    for entry in entries {
        let path = entry.expect("an entry of a folder").path();
        if path.is_dir() {
            collect(&path, paths);
        } else if path.extension().is_some_and(|it| it == "jsonl") {
            paths.push(path);
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "the corpus is files")]
fn start_of(path: &Path) -> Vec<u8> {
    let mut bytes = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    if bytes.len() > MOST_BYTES {
        let end = bytes[..MOST_BYTES].iter().rposition(|byte| *byte == b'\n').map_or(MOST_BYTES, |lf| lf + 1);
        bytes.truncate(end);
    }
    bytes
}

//! The sessions that are measured on: generated once, kept in the cache.

use std::path::{Path, PathBuf};

use anyhow::Result;
use session_gen::{Random, Shape, generate, large};

use crate::files;

/// Where the sessions are.
#[derive(Debug)]
pub(super) struct Material {
    folder: PathBuf,
}

/// Sessions of a folder.
pub(super) const N_FILES: usize = 2000;

impl Material {
    /// In the repository's cache.
    pub(super) fn new(root: &Path) -> Material {
        Material { folder: root.join(".cache/bench/sessions") }
    }

    /// A session with the mix of bytes that real ones have.
    ///
    /// # Errors
    /// It cannot be written.
    pub(super) fn large(&self, megabytes: usize) -> Result<PathBuf> {
        self.made(&format!("large-2-{megabytes}.jsonl"), || large(7, megabytes * 1_000_000))
    }

    /// A session of many short messages.
    ///
    /// # Errors
    /// It cannot be written.
    pub(super) fn short_entries(&self, n_entries: usize) -> Result<PathBuf> {
        self.made(&format!("entries-{n_entries}.jsonl"), || short_entries(n_entries))
    }

    /// A small session with all that a session can have.
    ///
    /// # Errors
    /// It cannot be written.
    pub(super) fn small(&self) -> Result<PathBuf> {
        self.made("small.jsonl", || generate(3, &Shape::omp()))
    }

    /// A folder of sessions of very different lengths, about 140 KB in the mean.
    ///
    /// # Errors
    /// They cannot be written.
    pub(super) fn folder(&self) -> Result<PathBuf> {
        let folder = self.folder.join("folder");
        let mut random = Random::new(5);
        for n in 0..N_FILES {
            let n_bytes = match random.below(100) {
                0..70 => random.between(5_000, 60_000),
                70..97 => random.between(60_000, 600_000),
                _ => random.between(600_000, 2_000_000),
            };
            self.made(&format!("folder/{n:04}.jsonl"), || large(n as u64, n_bytes))?;
        }
        Ok(folder)
    }

    fn made(&self, name: &str, make: impl FnOnce() -> String) -> Result<PathBuf> {
        self.kept(name, || make().into_bytes())
    }

    /// The file of this name, made if it is not there.
    ///
    /// # Errors
    /// It cannot be written.
    pub(super) fn kept(&self, name: &str, make: impl FnOnce() -> Vec<u8>) -> Result<PathBuf> {
        let path = self.folder.join(name);
        if !path.exists() {
            files::write(&path, make())?;
        }
        Ok(path)
    }
}

fn short_entries(n_entries: usize) -> String {
    let mut out = String::from(
        "{\"type\":\"session\",\"version\":3,\"id\":\"short\",\"timestamp\":\"2026-01-01T00:00:00.000Z\",\"cwd\":\"/\"}\n",
    );
    for n in 0..n_entries {
        let parent = n.checked_sub(1).map_or("null".to_owned(), |before| format!("\"{before:08x}\""));
        let role = if n % 2 == 0 { "user" } else { "assistant" };
        out.push_str(&format!(
            "{{\"type\":\"message\",\"id\":\"{n:08x}\",\"parentId\":{parent},\"timestamp\":\"2026-01-01T00:00:00.000Z\",\
             \"message\":{{\"role\":\"{role}\",\"content\":[{{\"type\":\"text\",\"text\":\"number {n}\"}}]}}}}\n"
        ));
    }
    out
}

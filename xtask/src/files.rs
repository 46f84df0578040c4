//! The files that chores read and write.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// The repository's root.
///
/// # Errors
/// This crate does not lie in it.
pub(crate) fn root() -> Result<PathBuf> {
    Ok(Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("xtask lies in the workspace")?.to_owned())
}

/// The bytes of a file.
///
/// # Errors
/// It cannot be read.
#[expect(clippy::disallowed_methods, reason = "a chore reads files of the repository")]
pub(crate) fn read_bytes(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).with_context(|| path.display().to_string())
}

/// The text of a file.
///
/// # Errors
/// It cannot be read.
#[expect(clippy::disallowed_methods, reason = "a chore reads files of the repository")]
pub(crate) fn read(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).with_context(|| path.display().to_string())
}

/// Writes a file, its folder too.
///
/// # Errors
/// It cannot be written.
#[expect(clippy::disallowed_methods, reason = "a chore writes files of the repository")]
pub(crate) fn write(path: &Path, bytes: impl AsRef<[u8]>) -> Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::write(path, bytes).with_context(|| path.display().to_string())
}

/// Removes a file that is no longer wanted.
///
/// # Errors
/// It cannot be removed.
#[expect(clippy::disallowed_methods, reason = "a chore removes files that it wrote")]
pub(crate) fn remove(path: &Path) -> Result<()> {
    std::fs::remove_file(path).with_context(|| path.display().to_string())
}

/// Everything below a folder that `wanted` accepts by its path, sorted.
pub(crate) fn below(folder: &Path, wanted: impl Fn(&Path) -> bool) -> Vec<PathBuf> {
    walkdir::WalkDir::new(folder)
        .sort_by_file_name()
        .into_iter()
        .filter_map(|entry| Some(entry.ok()?.into_path()))
        .filter(|path| path.is_file() && wanted(path))
        .collect()
}

/// The optimised program of the workspace, built if need be.
///
/// # Errors
/// It cannot be built.
pub(crate) fn release_program() -> Result<PathBuf> {
    let root = root()?;
    let status = std::process::Command::new("cargo")
        .args(["build", "--quiet", "--release", "--package", "sesstool"])
        .current_dir(&root)
        .status()
        .context("cargo")?;
    anyhow::ensure!(status.success(), "the program cannot be built");
    Ok(root.join("target/release/sesstool"))
}

/// An empty folder in the repository's cache.
///
/// # Errors
/// It cannot be made.
pub(crate) fn scratch(name: &str) -> Result<PathBuf> {
    let folder = root()?.join(".cache").join(format!("{name}-{}", std::process::id()));
    if folder.exists() {
        std::fs::remove_dir_all(&folder)?;
    }
    std::fs::create_dir_all(&folder)?;
    Ok(folder)
}

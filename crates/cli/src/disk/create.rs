//! Writing a session to a new file, whole or not at all. It is for its owner alone, as what agents write down often is.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use super::error::{DiskError, io_error};
use super::guard::sync_folder;

/// Writes what `write_new` writes to `path`. A file that is there already is an error unless `force`; on any error the folder
/// is as it was.
///
/// # Errors
/// The file is there, or a step of writing it fails.
pub fn create(
    path: &Path,
    write_new: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    force: bool,
) -> Result<(), DiskError> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let cannot = || io_error(path, "write the file");
    let mut new = tempfile::Builder::new().prefix(".sesstool-").tempfile_in(folder).map_err(cannot())?;
    let mut out = BufWriter::new(new.as_file_mut());
    write_new(&mut out).and_then(|()| out.flush()).map_err(cannot())?;
    drop(out);
    new.as_file().sync_all().map_err(cannot())?;
    let put = if force { new.persist(path) } else { new.persist_noclobber(path) };
    put.map_err(|error| match error.error.kind() {
        io::ErrorKind::AlreadyExists => DiskError::Exists { path: path.to_owned() },
        _ => cannot()(error.error),
    })?;
    sync_folder(path).map_err(cannot())
}

/// Opens a file that lines are appended to, and makes it if it is not there.
///
/// # Errors
/// The file cannot be opened.
pub fn open_log(path: &Path) -> Result<std::fs::File, DiskError> {
    let open = std::fs::OpenOptions::new().create(true).append(true).open(path);
    open.map_err(io_error(path, "open the file"))
}

//! Images that the agent keeps in files beside its data (spec 1.4).

use std::path::PathBuf;

use crate::agents;
use crate::app::App;
use crate::disk::read;

/// Largest image file that is read.
const LARGEST: u64 = 64 << 20;

/// The bytes behind `blob:sha256:HEX`; `None` if they are not there. Anything but 64 hex digits is no name of a file.
pub(super) fn resolve(app: &App, reference: &str) -> Option<Vec<u8>> {
    let name = reference.strip_prefix("blob:sha256:")?;
    if name.len() != 64 || !name.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let folders = agents::session_folders(&app.env);
    let blobs = folders.iter().filter_map(|sessions| Some(sessions.parent()?.join("blobs")));
    blobs.map(|folder: PathBuf| folder.join(name)).find_map(|file| {
        let size = std::fs::metadata(&file).ok()?.len();
        (size <= LARGEST).then(|| read::whole(&file).ok().map(|bytes| bytes.to_vec()))?
    })
}

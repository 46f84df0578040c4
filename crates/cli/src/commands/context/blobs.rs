//! Images that the agent keeps in files beside its data (spec 1.4).

use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::agents;
use crate::app::App;
use crate::disk::read;

/// Largest image file that is read.
const LARGEST: u64 = 64 << 20;

/// The base64 data behind `blob:sha256:HEX`; `None` if it is not there. Anything but 64 hex digits is no name of a file.
pub(super) fn resolve(app: &App, reference: &str) -> Option<String> {
    let name = reference.strip_prefix("blob:sha256:")?;
    if name.len() != 64 || !name.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let folders = agents::session_folders(&app.env);
    let blobs = folders.iter().filter_map(|sessions| Some(sessions.parent()?.join("blobs")));
    blobs.map(|folder: PathBuf| folder.join(name)).find_map(|file| {
        let size = std::fs::metadata(&file).ok()?.len();
        let bytes = if size <= LARGEST { read::whole(&file).ok()? } else { return None };
        Some(STANDARD.encode(&*bytes))
    })
}

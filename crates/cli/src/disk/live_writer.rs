//! Which other processes have a file open for writing.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

/// The processes that have one file open for writing, as far as the system tells us.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Writers {
    /// Process ids, sorted, without our own.
    pub pids: Vec<u32>,
    /// Whether every process could be looked at; other users' processes can hide.
    pub complete: bool,
}

/// Looks through `/proc`. Where there is none, nothing is found and `complete` is false.
///
/// One look can miss a process that moves its handle to a lower number meanwhile (shells do so around a
/// redirection), and can find a child of ours that has not yet begun its own program and so still has our handles.
/// So three looks in a row must find nobody, or find the same process.
pub(super) fn writers_of(file: &Metadata) -> Writers {
    let mut found = look(file);
    let mut n_same = 1;
    let mut suspect = found.clone();
    for pause in [1, 3, 7, 2, 5, 11, 3, 7, 13, 17] {
        if n_same == 3 {
            return found;
        }
        std::thread::sleep(Duration::from_millis(pause));
        let next = look(file);
        let is_same = next.pids.is_empty() == found.pids.is_empty()
            && (next.pids.is_empty() || next.pids.iter().any(|pid| found.pids.contains(pid)));
        n_same = if is_same { n_same + 1 } else { 1 };
        found = next;
        if !found.pids.is_empty() {
            suspect = found.clone();
        }
    }
    // Processes that come and go all the time count as writers.
    suspect
}

fn look(file: &Metadata) -> Writers {
    let wanted = (file.dev(), file.ino());
    let mut found = Writers { pids: Vec::new(), complete: true };
    let Ok(processes) = std::fs::read_dir("/proc") else {
        return Writers::default();
    };
    if !std::path::Path::new("/proc/self/fdinfo").exists() {
        return Writers::default();
    }
    for process in processes.flatten() {
        let Some(pid) = process.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        if pid == std::process::id() {
            continue;
        }
        let handles = match std::fs::read_dir(process.path().join("fd")) {
            Ok(handles) => handles,
            // A process that is gone has nothing open.
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
                found.complete = false;
                continue;
            }
            Err(_) => continue,
        };
        let writes = handles.flatten().any(|handle| {
            std::fs::metadata(handle.path()).is_ok_and(|it| (it.dev(), it.ino()) == wanted)
                && is_writable(&process.path().join("fdinfo").join(handle.file_name()))
        });
        if writes {
            found.pids.push(pid);
        }
    }
    found.pids.sort_unstable();
    found
}

/// Reads the open flags; what cannot be read counts as a writer, to be on the safe side.
fn is_writable(info: &std::path::Path) -> bool {
    let Ok(text) = std::fs::read_to_string(info) else { return true };
    let flags = text.lines().find_map(|line| line.strip_prefix("flags:"));
    // The two lowest bits are the access mode; zero is read-only.
    flags.and_then(|it| u64::from_str_radix(it.trim(), 8).ok()).is_none_or(|flags| flags & 3 != 0)
}

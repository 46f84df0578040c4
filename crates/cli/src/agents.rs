//! Where the agents keep their sessions: their folders, environment variables and settings.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::app::App;
use crate::discover::walk;
use crate::disk::read::{self, FileLines};
use crate::env::Env;
use crate::exit::CommandError;
use crate::figures::count;

/// Sessions of agents are in a folder per project; what is deeper belongs to their subagents.
const PROJECT_DEPTH: usize = 2;
/// A header is at most a title slot and a line; longer ones are not worth reading for a guess.
const HEADER_BYTES: usize = 16 * 1024;

/// Folders in which the agents keep sessions, whether they exist or not.
///
/// oh-my-pi: `PI_CODING_AGENT_DIR`, else `$XDG_DATA_HOME/omp` where that exists, else `~/.omp/agent` (`PI_CONFIG_DIR`
/// names another than `.omp`). pi: `PI_CODING_AGENT_SESSION_DIR`, else `sessionDir` of its settings, else
/// `PI_CODING_AGENT_DIR` or `~/.pi/agent`.
pub fn session_folders(env: &Env) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    let mut add = |folder: PathBuf| {
        if !folders.contains(&folder) {
            folders.push(folder);
        }
    };
    let agent_folder = env.path("PI_CODING_AGENT_DIR");
    if let Some(folder) = &agent_folder {
        add(folder.join("sessions"));
    }
    if let Some(folder) = env.path("PI_CODING_AGENT_SESSION_DIR") {
        add(folder);
    }
    if let Some(home) = env.home() {
        let omp = home.join(env.get("PI_CONFIG_DIR").unwrap_or(".omp".as_ref()));
        if let Some(data) = env.path("XDG_DATA_HOME").map(|data| data.join("omp"))
            && data.is_dir()
        {
            add(data.join("sessions"));
        }
        add(omp.join("agent/sessions"));
        let pi = home.join(".pi/agent");
        for folder in agent_folder.iter().chain([&pi]) {
            if let Some(sessions) = session_dir_setting(env, &folder.join("settings.json")) {
                add(sessions);
            }
        }
        add(pi.join("sessions"));
    }
    folders
}

/// `sessionDir` in pi's settings. Whatever is wrong with that file is pi's business.
fn session_dir_setting(env: &Env, file: &Path) -> Option<PathBuf> {
    let bytes = read::whole(file).ok()?;
    let settings: serde_json::Value = serde_json::from_slice(&bytes).ok()?;
    let folder = settings.get("sessionDir")?.as_str().filter(|folder| !folder.is_empty())?;
    Some(env.expand(Path::new(folder)))
}

/// All sessions in the agents' own folders, each folder sorted by path; said on standard error.
///
/// # Errors
/// There are none.
pub fn all(app: &App) -> Result<Vec<PathBuf>, CommandError> {
    let mut files = Vec::new();
    for folder in existing_folders(app)? {
        let (in_folder, errors) = walk(&folder, usize::MAX);
        errors.iter().for_each(|error| app.printer.warn(&error.message));
        app.printer.say(&format!("{} in {}", count(in_folder.len() as u64, "session"), folder.display()));
        files.extend(in_folder);
    }
    if files.is_empty() { Err(none_found(app)) } else { Ok(files) }
}

/// The newest session of the working directory's project, by its header, else the newest of all; said on standard error.
/// A project is the folder that an agent was started in, with what is below it.
///
/// # Errors
/// There is no session at all.
pub fn newest(app: &App) -> Result<PathBuf, CommandError> {
    let mut files: Vec<(SystemTime, PathBuf)> = Vec::new();
    for folder in existing_folders(app)? {
        for path in walk(&folder, PROJECT_DEPTH).0 {
            let modified = std::fs::metadata(&path).and_then(|metadata| metadata.modified());
            files.extend(modified.ok().map(|modified| (modified, path)));
        }
    }
    files.sort_by(|a, b| b.cmp(a));
    let (which, found) = match of_project(&app.env, &files) {
        Some(found) => ("the newest session of this project", found),
        None => match files.first() {
            Some((_, found)) => ("the newest session (this project has none)", found.as_path()),
            None => return Err(none_found(app)),
        },
    };
    app.printer.say(&format!("{which}: {}", found.display()));
    Ok(found.to_owned())
}

/// Of files that are sorted newest first, the first whose project is nearest to the working directory.
fn of_project<'f>(env: &Env, files: &'f [(SystemTime, PathBuf)]) -> Option<&'f Path> {
    let logical = env.get("PWD").map(Path::new);
    let here: Vec<&Path> = env.cwd().into_iter().chain(logical).collect();
    // Everything is below these, so that a session begun there says nothing about a project.
    let home = env.home();
    let is_project = |folder: &Path| folder.parent().is_some() && home.as_deref() != Some(folder);
    let mut nearest: Option<(usize, &Path)> = None;
    for (_, path) in files {
        let Some(project) = cwd_of(path) else { continue };
        if here.contains(&project.as_path()) {
            return Some(path);
        }
        let depth = project.components().count();
        let is_above = is_project(&project) && here.iter().any(|here| here.starts_with(&project));
        if is_above && nearest.is_none_or(|(known, _)| known < depth) {
            nearest = Some((depth, path));
        }
    }
    nearest.map(|(_, path)| path)
}

/// The working directory that a session's header names.
fn cwd_of(path: &Path) -> Option<PathBuf> {
    let file = FileLines::open(path).ok()?;
    let length =
        usize::try_from(file.fingerprint().length).map_or(HEADER_BYTES, |length| length.min(HEADER_BYTES));
    let mut start = Vec::new();
    file.read_range(0, length, &mut start).ok()?;
    let mut lines = start.split(|byte| *byte == b'\n').take(2);
    let header = lines.find_map(|line| {
        let value: serde_json::Value = serde_json::from_slice(line).ok()?;
        (value.get("type")?.as_str()? == "session").then_some(value)
    })?;
    Some(PathBuf::from(header.get("cwd")?.as_str()?))
}

fn existing_folders(app: &App) -> Result<Vec<PathBuf>, CommandError> {
    let folders: Vec<_> = session_folders(&app.env).into_iter().filter(|folder| folder.is_dir()).collect();
    if folders.is_empty() { Err(none_found(app)) } else { Ok(folders) }
}

fn none_found(app: &App) -> CommandError {
    let folders = session_folders(&app.env);
    let names: Vec<_> = folders.iter().map(|folder| folder.display().to_string()).collect();
    CommandError::usage(format!("no sessions in {}", names.join(", ")))
        .hint("name a session file or a folder")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pairs: &[(&str, &str)], expected: &[&str]) {
        let env = Env::of_pairs(Path::new("/cwd"), pairs.iter().copied());
        assert_eq!(session_folders(&env), expected.iter().map(PathBuf::from).collect::<Vec<_>>());
    }

    #[test]
    fn folders_follow_the_agents_variables() {
        check(&[("HOME", "/h")], &["/h/.omp/agent/sessions", "/h/.pi/agent/sessions"]);
        check(
            &[("HOME", "/h"), ("PI_CONFIG_DIR", ".mine"), ("PI_CODING_AGENT_SESSION_DIR", "~/s")],
            &["/h/s", "/h/.mine/agent/sessions", "/h/.pi/agent/sessions"],
        );
        check(
            &[("HOME", "/h"), ("PI_CODING_AGENT_DIR", "agents")],
            &["/cwd/agents/sessions", "/h/.omp/agent/sessions", "/h/.pi/agent/sessions"],
        );
    }
}

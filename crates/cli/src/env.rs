//! The only reads of the environment: variables, home, working directory.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// The environment, as it was when the process began.
#[derive(Clone, Debug, Default)]
pub struct Env {
    variables: BTreeMap<OsString, OsString>,
    cwd: Option<PathBuf>,
}

impl Env {
    /// Of this process.
    pub fn of_process() -> Env {
        Env { variables: std::env::vars_os().collect(), cwd: std::env::current_dir().ok() }
    }

    /// Made of pairs, for tests.
    pub fn of_pairs<'a>(cwd: &Path, pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Env {
        let variables = pairs.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        Env { variables, cwd: Some(cwd.to_owned()) }
    }

    /// A variable that is set and not empty.
    pub fn get(&self, name: &str) -> Option<&OsStr> {
        self.variables.get(OsStr::new(name)).map(OsString::as_os_str).filter(|value| !value.is_empty())
    }

    /// As [`Env::get`], as text; what is no UTF-8 comes as U+FFFD.
    pub fn text(&self, name: &str) -> Option<String> {
        self.get(name).map(|value| value.to_string_lossy().into_owned())
    }

    /// A variable that holds a path; `~` at its start is the home directory.
    pub fn path(&self, name: &str) -> Option<PathBuf> {
        self.get(name).map(|value| self.expand(Path::new(value)))
    }

    /// Names of variables that begin with `prefix`, sorted.
    pub fn names_with(&self, prefix: &str) -> Vec<String> {
        let names = self.variables.keys().map(|name| name.to_string_lossy().into_owned());
        names.filter(|name| name.starts_with(prefix)).collect()
    }

    /// The user's home directory.
    pub fn home(&self) -> Option<PathBuf> {
        self.get("HOME").map(PathBuf::from).or_else(|| etcetera::home_dir().ok())
    }

    /// The working directory; none if it has been removed.
    pub fn cwd(&self) -> Option<&Path> {
        self.cwd.as_deref()
    }

    /// `path` with `~` expanded and made absolute by the working directory.
    pub fn expand(&self, path: &Path) -> PathBuf {
        if let (Ok(rest), Some(home)) = (path.strip_prefix("~"), self.home()) {
            return home.join(rest);
        }
        self.cwd.as_ref().map_or_else(|| path.to_owned(), |cwd| cwd.join(path))
    }
}

//! `TestEnv`: a home and a working directory of its own for each test, and the real program in them.
#![expect(clippy::disallowed_methods, reason = "tests make and read the files that the program works on")]

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A home, a working directory, and nothing else from the machine.
pub(crate) struct TestEnv {
    folder: tempfile::TempDir,
}

/// How a run ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Ran {
    pub(crate) status: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl TestEnv {
    pub(crate) fn new() -> TestEnv {
        let env = TestEnv { folder: tempfile::tempdir().expect("a temporary folder") };
        for folder in [env.home(), env.work()] {
            std::fs::create_dir(folder).expect("a new folder");
        }
        env
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.real().join("home")
    }

    /// The working directory of the program.
    pub(crate) fn work(&self) -> PathBuf {
        self.real().join("work")
    }

    fn real(&self) -> PathBuf {
        self.folder.path().canonicalize().expect("the folder exists")
    }

    /// Writes a file, by a path relative to the working directory, and its folders.
    pub(crate) fn write(&self, path: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.work().join(path);
        std::fs::create_dir_all(path.parent().expect("a file is in a folder")).expect("folders");
        std::fs::write(&path, text).expect("a file");
        path
    }

    /// The bytes of a file, as text.
    pub(crate) fn read(&self, path: impl AsRef<Path>) -> String {
        std::fs::read_to_string(self.work().join(path)).expect("a file")
    }

    /// The names in the working directory, sorted.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.work()).expect("a folder");
        let mut names: Vec<String> = entries
            .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    /// Writes the settings file of the user.
    pub(crate) fn write_settings(&self, text: &str) -> PathBuf {
        self.write("../home/.config/sesstool/settings.json", text);
        self.home().join(".config/sesstool/settings.json")
    }

    /// The program, ready to run.
    pub(crate) fn command<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Command {
        let mut command = Command::new(program());
        command.args(args).current_dir(self.work()).env_clear().env("HOME", self.home()).stdin(Stdio::null());
        command
    }

    /// Runs the program to its end.
    #[track_caller]
    pub(crate) fn run<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Ran {
        Ran::of(self.command(args).output().expect("the program starts"))
    }

    /// Runs the program with this on its standard input.
    #[track_caller]
    pub(crate) fn run_with_input<A: AsRef<OsStr>>(
        &self,
        args: impl IntoIterator<Item = A>,
        input: &[u8],
    ) -> Ran {
        let file = self.write("../input", input);
        let input = std::fs::File::open(file).expect("the input");
        Ran::of(self.command(args).stdin(input).output().expect("the program starts"))
    }
}

impl Ran {
    #[track_caller]
    pub(crate) fn of(output: Output) -> Ran {
        let text = |bytes| String::from_utf8(bytes).expect("UTF-8 only");
        Ran { status: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }

    /// The objects of standard output, one a line.
    #[track_caller]
    pub(crate) fn json(&self) -> Vec<serde_json::Value> {
        entries(&self.stdout)
    }

    /// Its status, if it said nothing on standard error.
    #[track_caller]
    pub(crate) fn quiet_status(&self) -> Option<i32> {
        assert_eq!(self.stderr, "");
        self.status
    }

    /// One field of each record.
    #[track_caller]
    pub(crate) fn fields(&self, name: &str) -> Vec<String> {
        let text = |value: &serde_json::Value| match &value[name] {
            serde_json::Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        self.json().iter().map(text).collect()
    }
}

/// The objects of a text, one a line.
#[track_caller]
pub(crate) fn entries(text: &str) -> Vec<serde_json::Value> {
    text.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
}

/// The last object of a text.
#[track_caller]
pub(crate) fn last_entry(text: &str) -> serde_json::Value {
    serde_json::from_str(text.lines().last().expect("a line")).expect("a line of JSON")
}

/// The program that is tested.
pub(crate) fn program() -> PathBuf {
    assert_cmd::cargo::cargo_bin!("sesstool").to_owned()
}

/// A small session of pi: a header, a question, an answer with a call, its result, an answer.
pub(crate) fn session(id: &str) -> String {
    [
        format!(r#"{{"type":"session","version":3,"id":"{id}","timestamp":"2026-01-02T03:04:05.000Z","cwd":"/project"}}"#),
        r#"{"type":"model_change","id":"00000001","parentId":null,"timestamp":"2026-01-02T03:04:05.100Z","provider":"anthropic","modelId":"claude-sonnet-4-5"}"#.to_owned(),
        r#"{"type":"message","id":"00000002","parentId":"00000001","timestamp":"2026-01-02T03:04:06.000Z","message":{"role":"user","content":"What is in src?"}}"#.to_owned(),
        r#"{"type":"message","id":"00000003","parentId":"00000002","timestamp":"2026-01-02T03:04:07.000Z","message":{"role":"assistant","content":[{"type":"text","text":"Let me look."},{"type":"toolCall","id":"call_1","name":"bash","arguments":{"command":"ls src"}}],"provider":"anthropic","model":"claude-sonnet-4-5","stopReason":"toolUse","usage":{"input":100,"output":20,"cacheRead":0,"cacheWrite":0,"totalTokens":120}}}"#.to_owned(),
        r#"{"type":"message","id":"00000004","parentId":"00000003","timestamp":"2026-01-02T03:04:08.000Z","message":{"role":"toolResult","toolCallId":"call_1","toolName":"bash","content":[{"type":"text","text":"main.rs\nlib.rs"}],"isError":false}}"#.to_owned(),
        r#"{"type":"message","id":"00000005","parentId":"00000004","timestamp":"2026-01-02T03:04:09.000Z","message":{"role":"assistant","content":[{"type":"text","text":"Two files."}],"provider":"anthropic","model":"claude-sonnet-4-5","stopReason":"stop","usage":{"input":150,"output":5,"cacheRead":0,"cacheWrite":0,"totalTokens":155}}}"#.to_owned(),
        String::new(),
    ]
    .join("\n")
}

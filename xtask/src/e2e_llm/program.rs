//! The real program against the real server: compactions, a branch, folding, a bad key, Ctrl-C.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use super::{KEY, WINDOW};
use crate::files;

/// Longer than any of the cases takes.
const PATIENCE: Duration = Duration::from_secs(300);
/// The program's way to each of the server's calls: the name of the way, and the address's path.
const WAYS: [(&str, &str); 3] =
    [("ChatCompletions", "/v1"), ("Responses", "/v1/responses"), ("Messages", "/v1/messages")];

/// What the program is run with.
struct Case<'a> {
    program: &'a Path,
    folder: PathBuf,
    port: u16,
    key: &'a str,
    /// Of the address.
    path: &'a str,
}

/// Runs every case; gives the rows of the report: way, what was done, what came.
///
/// # Errors
/// The program cannot be built, or a case ended otherwise than it should.
pub(super) fn cases(port: u16) -> Result<Vec<(String, String, String)>> {
    let program = files::release_program()?;
    let folder = files::scratch("e2e-llm")?;
    write_prompts(&folder.join("prompts"), "Say in one short sentence what this conversation is about.")?;
    write_prompts(&folder.join("long"), "Tell a very long story about a ship, with many chapters.")?;
    let mut rows = Vec::new();
    for (way, path) in WAYS {
        let case = Case { program: &program, folder: folder.clone(), port, key: KEY, path };
        for (done, run) in CASES {
            let came = run(&case).with_context(|| format!("{way}: {done}"))?;
            println!("sesstool, {way}: {done}: {came}");
            rows.push((way.to_owned(), (*done).to_owned(), came));
        }
    }
    std::fs::remove_dir_all(&folder)?;
    Ok(rows)
}

type Run = fn(&Case<'_>) -> Result<String>;

const CASES: &[(&str, Run)] = &[
    ("`compact`, a session of short turns", whole_turns),
    ("`compact`, a split turn", split_turn),
    ("`compact`, a request that the server finds too large", overflow),
    ("`branch --summarize`", branch),
    ("`compact` with a wrong key", wrong_key),
    ("`compact`, SIGINT while the answer comes", interrupted),
];

impl Case<'_> {
    fn command(&self, words: &[&str]) -> Command {
        let address = format!("http://127.0.0.1:{}{}", self.port, self.path);
        let mut command = Command::new(self.program);
        command
            .args(words)
            .args(["--model", "llama.cpp/smollm2", "--base-url", &address])
            .current_dir(&self.folder)
            .env_clear()
            .env("HOME", &self.folder)
            .env("LLAMA_API_KEY", self.key)
            .stdin(Stdio::null());
        command
    }

    fn run(&self, words: &[&str]) -> Result<Output> {
        Ok(self.command(words).output()?)
    }

    /// Compacts; gives the record.
    fn compact(&self, session: &str, more: &[&str]) -> Result<Value> {
        let file = self.write(session)?;
        let mut words = vec!["compact", "s.jsonl", "--json", "-q", "--prompts", "prompts"];
        words.extend(["--reserve-tokens", "700", "--keep-recent-tokens", "120"]);
        words.extend(more);
        let record = record(&self.run(&words)?)?;
        ensure!(files::read(&file)?.starts_with(session), "what was there has changed");
        Ok(record)
    }

    fn write(&self, session: &str) -> Result<PathBuf> {
        let file = self.folder.join("s.jsonl");
        files::write(&file, session)?;
        Ok(file)
    }
}

/// The record of a run that went well.
fn record(output: &Output) -> Result<Value> {
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{}: {errors}", output.status);
    let record: Value = serde_json::from_slice(&output.stdout)?;
    ensure!(record["status"] == "done", "{record}");
    Ok(record)
}

/// Kinds and counts of the requests, for a person.
fn requests(record: &Value) -> Result<String> {
    let all = record["requests"].as_array().context("no requests")?;
    let tokens = |name: &str| -> Result<u64> {
        all.iter().try_fold(0, |sum, request| Ok(sum + request[name].as_u64().context("not counted")?))
    };
    Ok(format!(
        "{} requests, {} tokens in, {} out",
        all.len(),
        tokens("promptTokens")?,
        tokens("outputTokens")?
    ))
}

fn whole_turns(case: &Case<'_>) -> Result<String> {
    let record = case.compact(&session(8, 1), &["--context-window", &WINDOW.to_string()])?;
    requests(&record)
}

fn split_turn(case: &Case<'_>) -> Result<String> {
    let record = case.compact(&session(3, 14), &["--context-window", &WINDOW.to_string()])?;
    let kinds: Vec<&str> = record["requests"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|request| request["kind"].as_str())
        .collect();
    ensure!(record["isSplitTurn"] == true || kinds.len() == 3, "no split turn: {record}");
    Ok(format!("both halves and the short summary: {}", requests(&record)?))
}

fn overflow(case: &Case<'_>) -> Result<String> {
    let record = case.compact(&session(120, 1), &[])?;
    let n = record["requests"].as_array().map_or(0, Vec::len);
    ensure!(n > 2, "not folded: {record}");
    Ok(format!("folded after the refusal: {}", requests(&record)?))
}

fn branch(case: &Case<'_>) -> Result<String> {
    let old = session(8, 1);
    let file = case.write(&old)?;
    let window = WINDOW.to_string();
    let words = ["branch", "s.jsonl", "--to", "a2-0", "--summarize", "--json", "-q", "--prompts", "prompts"];
    let flags = ["--reserve-tokens", "700", "--context-window", &window];
    record(&case.run(&[&words[..], &flags].concat())?)?;
    let new = files::read(&file)?;
    let added = new.strip_prefix(&old).context("what was there has changed")?;
    let entry: Value = serde_json::from_str(added)?;
    ensure!(entry["type"] == "branch_summary" && entry["parentId"] == "a2-0", "{entry}");
    Ok("the entry hangs at the target".to_owned())
}

fn wrong_key(case: &Case<'_>) -> Result<String> {
    let old = session(8, 1);
    let file = case.write(&old)?;
    let wrong = Case { key: "wrong-0123456789", folder: case.folder.clone(), ..*case };
    let output = wrong.run(&["compact", "s.jsonl", "-q", "--keep-recent-tokens", "120"])?;
    ensure!(output.status.code() == Some(1), "{}", output.status);
    ensure!(files::read(&file)? == old, "the file has changed");
    let errors = String::from_utf8(output.stderr)?;
    ensure!(!errors.contains("wrong-0123456789"), "the key is shown");
    Ok(format!(
        "exit 1, no byte changed: {}",
        errors.lines().next().unwrap_or_default().trim_start_matches("error: ")
    ))
}

fn interrupted(case: &Case<'_>) -> Result<String> {
    let old = session(8, 1);
    let file = case.write(&old)?;
    let events = case.folder.join("events.jsonl");
    files::write(&events, "")?;
    let words = ["compact", "s.jsonl", "-q", "--prompts", "long", "--events", "events.jsonl"];
    let flags = ["--reserve-tokens", "1500", "--keep-recent-tokens", "120"];
    let mut command = case.command(&[&words[..], &flags].concat());
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    let begun = Instant::now();
    let comes = |line: &str| line.contains("\"received\"") && !line.contains("\"bytes\":0,");
    while !files::read(&events)?.lines().any(comes) {
        if let Some(status) = child.try_wait()? {
            bail!("ended with {status} before the answer came");
        }
        if begun.elapsed() > PATIENCE {
            child.kill()?;
            bail!("no answer");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let signalled = Instant::now();
    ensure!(Command::new("kill").args(["-INT", &child.id().to_string()]).status()?.success(), "no signal");
    let status = child.wait()?;
    let took = signalled.elapsed();
    ensure!(status.code() == Some(130), "{status}");
    ensure!(files::read(&file)? == old, "the file has changed");
    ensure!(took < Duration::from_secs(5), "took {took:?}");
    Ok(format!("exit 130 after {} ms, no byte changed", took.as_millis()))
}

/// A session of oh-my-pi: so many turns, each a question and so many answers.
fn session(turns: usize, answers: usize) -> String {
    let mut text = String::from(
        "{\"type\":\"session\",\"version\":3,\"id\":\"e2e\",\"timestamp\":\"2026-01-02T03:00:00.000Z\",\"cwd\":\"/project\"}\n",
    );
    let mut parent = Value::Null;
    let mut entry = |id: String, message: &Value| {
        let entry = json!({"type": "message", "id": id, "parentId": parent, "timestamp": "2026-01-02T03:00:01.000Z", "message": message});
        let _ = writeln!(text, "{entry}");
        parent = json!(id);
    };
    for turn in 0..turns {
        let question = format!("Where does the river number {turn} begin, and which towns lie on it?");
        entry(format!("u{turn}"), &json!({"role": "user", "content": question}));
        for n in 0..answers {
            let words = format!(
                "River {turn} begins in the hills; town {n} lies on its left bank, behind the old mill. "
            );
            entry(
                format!("a{turn}-{n}"),
                &json!({"role": "assistant", "content": [{"type": "text", "text": words}], "provider": "llama.cpp",
                    "model": "smollm2", "stopReason": "stop"}),
            );
        }
    }
    text
}

/// Prompts that a model of this size can follow.
fn write_prompts(folder: &Path, prompt: &str) -> Result<()> {
    std::fs::create_dir_all(folder.join("compaction"))?;
    std::fs::create_dir_all(folder.join("system"))?;
    files::write(&folder.join("system/summarization-system.md"), "You answer in one short sentence.")?;
    for name in ["summary", "update-summary", "turn-prefix", "short-summary"] {
        files::write(&folder.join(format!("compaction/compaction-{name}.md")), prompt)?;
    }
    files::write(&folder.join("compaction/branch-summary.md"), prompt)
}

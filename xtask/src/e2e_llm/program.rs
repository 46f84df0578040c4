//! The real program against the real server: whole compactions, split turns, branches, folding, refusals, a signal.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use super::{KEY, Seen, Server};
use crate::files;

/// A way of speaking as the program knows it: a provider's name, and the variable of its key.
const NAMES: [(&str, &str, &str); 3] = [
    ("ChatCompletions", "llama.cpp", "LLAMA_API_KEY"),
    ("Responses", "openai", "OPENAI_API_KEY"),
    ("Messages", "anthropic", "ANTHROPIC_API_KEY"),
];
/// Prompts that a model of this size can follow, in the place of the built-in ones.
const PROMPTS: [&str; 5] = [
    "compaction/compaction-summary.md",
    "compaction/compaction-update-summary.md",
    "compaction/compaction-turn-prefix.md",
    "compaction/compaction-short-summary.md",
    "compaction/branch-summary.md",
];
const SYSTEM: &str = "system/summarization-system.md";

/// Runs all cases; each is a way, what was done, and what came.
///
/// # Errors
/// A case that came out otherwise than it should.
pub(super) fn cases(server: &Server) -> Result<Vec<Seen>> {
    let program = files::release_program()?;
    let folder = files::scratch("e2e-llm")?;
    for prompt in PROMPTS {
        files::write(
            &folder.join("own").join(prompt),
            "Say in one short sentence what this conversation is about.\n",
        )?;
        files::write(&folder.join("long").join(prompt), "Tell a very long story about a ship.\n")?;
    }
    files::write(&folder.join("own").join(SYSTEM), "You answer in one short sentence.\n")?;
    let mut seen = Vec::new();
    for (way, provider, key) in NAMES {
        let run = Runs { program: &program, folder: &folder, server, provider, key };
        let mut add = |asked: &'static str, came: Result<String>| -> Result<()> {
            let came = came.with_context(|| format!("{way}: {asked}"))?;
            println!("{way}: {asked}: {came}");
            seen.push((way.to_owned(), asked, came));
            Ok(())
        };
        add("`compact`", run.compact(&turns(6), &["--keep-recent-tokens", "150"], 2))?;
        add("`compact` within a turn", run.split_turn())?;
        add("`branch --summarize`", run.branch())?;
        add("`compact` of more than the window", run.overflow())?;
        add("`compact` with a wrong key", run.wrong_key())?;
        add("`compact`, and SIGINT at the first word", run.signal())?;
    }
    std::fs::remove_dir_all(&folder)?;
    Ok(seen)
}

struct Runs<'a> {
    program: &'a Path,
    folder: &'a Path,
    server: &'a Server,
    provider: &'a str,
    key: &'a str,
}

impl Runs<'_> {
    fn session(&self) -> PathBuf {
        self.folder.join("session.jsonl")
    }

    /// The program on a new session of this text.
    fn command(&self, session: &str, words: &[&str]) -> Result<Command> {
        for entry in std::fs::read_dir(self.folder)?.flatten() {
            // Undo records and events of the run before.
            if entry.file_type()?.is_file() {
                files::remove(&entry.path())?;
            }
        }
        files::write(&self.session(), session)?;
        let mut command = Command::new(self.program);
        command
            .args(words)
            .args(["--json", "--reserve-tokens", "400"])
            .args(["--model", &format!("{}/smollm2", self.provider)])
            .args(["--base-url", &format!("http://127.0.0.1:{}", self.server.port)])
            .arg(self.session())
            .current_dir(self.folder)
            .env_clear()
            .env("HOME", self.folder.join("home"))
            .env(self.key, KEY)
            .stdin(Stdio::null());
        Ok(command)
    }

    /// The record of a run that must go well, and the last entry of the session.
    fn done(&self, session: &str, words: &[&str]) -> Result<(Value, Value)> {
        let output = self.command(session, words)?.args(["--prompts", "own"]).output()?;
        ensure!(output.status.success(), "{}: {}", output.status, said(&output));
        let record = serde_json::from_slice(&output.stdout).context("a record")?;
        let file = files::read(&self.session())?;
        ensure!(file.starts_with(session), "the old bytes are not there any more");
        let last = serde_json::from_str(file.lines().last().context("a line")?)?;
        Ok((record, last))
    }

    fn compact(&self, session: &str, flags: &[&str], n_requests: usize) -> Result<String> {
        let (record, entry) = self.done(session, &[&["compact"], flags].concat())?;
        let requests = record["requests"].as_array().context("requests")?;
        ensure!(requests.len() == n_requests, "{} requests", requests.len());
        ensure!(entry["type"] == "compaction" && !text(&entry["summary"]).is_empty(), "{entry}");
        Ok(format!("{} requests, {}", requests.len(), tokens(requests)?))
    }

    fn split_turn(&self) -> Result<String> {
        let mut session = turns(3);
        long_turn(&mut session);
        let came = self.compact(&session, &["--keep-recent-tokens", "100"], 3)?;
        let file = files::read(&self.session())?;
        let has_both =
            file.lines().last().is_some_and(|line| line.contains("**Turn Context (split turn):**"));
        ensure!(has_both, "the summary has one part");
        Ok(format!("{came}; one summary of both parts"))
    }

    fn branch(&self) -> Result<String> {
        let (record, entry) = self.done(&turns(6), &["branch", "--summarize", "--to", "a1"])?;
        let requests = record["requests"].as_array().context("requests")?;
        ensure!(entry["type"] == "branch_summary" && entry["parentId"] == "a1", "{entry}");
        Ok(format!("{} request, {}; the summary hangs at the target", requests.len(), tokens(requests)?))
    }

    fn overflow(&self) -> Result<String> {
        let output = self
            .command(&turns(16), &["compact", "-v", "--keep-recent-tokens", "100", "--events", "events"])?
            .args(["--prompts", "own"])
            .output()?;
        ensure!(output.status.success(), "{}: {}", output.status, said(&output));
        let record: Value = serde_json::from_slice(&output.stdout).context("a record")?;
        let answered = record["requests"].as_array().context("requests")?;
        let events = files::read(&self.folder.join("events"))?;
        let asked = events.lines().filter(|line| line.contains("\"asked\"")).count();
        ensure!(asked > answered.len() && answered.len() > 2, "{asked} asked, {} answered", answered.len());
        Ok(format!("{asked} requests, of which the server refused {}", asked - answered.len()))
    }

    fn wrong_key(&self) -> Result<String> {
        let session = turns(6);
        let output = self
            .command(&session, &["compact", "--keep-recent-tokens", "150"])?
            .env(self.key, "wrong-0123456789")
            .output()?;
        ensure!(output.status.code() == Some(1), "{}", output.status);
        ensure!(files::read(&self.session())? == session, "the session has changed");
        let said = said(&output);
        ensure!(!said.contains("wrong-0123456789"), "the key is shown");
        let error = said.lines().find_map(|line| line.split_once("session.jsonl: ")).context("an error")?.1;
        Ok(format!("{error}; the session as it was"))
    }

    fn signal(&self) -> Result<String> {
        let session = turns(6);
        let child = self
            .command(&session, &["compact", "--keep-recent-tokens", "150", "--events", "events"])?
            .args(["--prompts", "long"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let begun = Instant::now();
        while !files::read(&self.folder.join("events")).is_ok_and(|events| events.contains("\"received\"")) {
            ensure!(begun.elapsed() < Duration::from_secs(120), "no word came");
            std::thread::sleep(Duration::from_millis(5));
        }
        let begun = Instant::now();
        let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status()?;
        ensure!(sent.success(), "kill: {sent}");
        let output = child.wait_with_output()?;
        let took = begun.elapsed();
        ensure!(output.status.code() == Some(130), "{}: {}", output.status, said(&output));
        ensure!(files::read(&self.session())? == session, "the session has changed");
        ensure!(took < Duration::from_secs(1), "it took {took:?}");
        Ok(format!("status 130 after {} ms; the session as it was", took.as_millis()))
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("")
}

/// Tokens in and out of requests that the server counted.
fn tokens(requests: &[Value]) -> Result<String> {
    let sum = |name: &str| requests.iter().map(|request| request[name].as_u64()).sum::<Option<u64>>();
    match (sum("promptTokens"), sum("outputTokens")) {
        (Some(input @ 1..), Some(output @ 1..)) => Ok(format!("{input} tokens in, {output} out")),
        _ => bail!("tokens are missing: {requests:?}"),
    }
}

fn entry(session: &mut String, id: &str, parent: Option<&str>, message: &Value) {
    let entry = json!({
        "type": "message", "id": id, "parentId": parent, "timestamp": "2026-01-02T03:04:05.000Z", "message": message
    });
    let _ = writeln!(session, "{entry}");
}

fn answer(text: &str) -> Value {
    json!({
        "role": "assistant", "content": [{"type": "text", "text": text}],
        "provider": "llama.cpp", "model": "smollm2", "stopReason": "stop"
    })
}

/// A session of this many turns of about 180 tokens.
fn turns(n_turns: usize) -> String {
    const TOPICS: [&str; 6] = ["the sea", "bread", "a bicycle", "the moon", "music", "rain"];
    let mut session = String::from(
        "{\"type\":\"session\",\"version\":3,\"id\":\"s\",\"timestamp\":\"2026-01-02T03:04:05.000Z\",\"cwd\":\"/p\",\"title\":\"Talk\"}\n",
    );
    let mut parent: Option<String> = None;
    for n in 0..n_turns {
        let topic = TOPICS[n % TOPICS.len()];
        let question = format!("I want to know what {topic} is good for. ").repeat(7);
        let (user, said) = (format!("u{n}"), format!("a{n}"));
        entry(&mut session, &user, parent.as_deref(), &json!({"role": "user", "content": question}));
        entry(
            &mut session,
            &said,
            Some(&user),
            &answer(&format!("People like {topic} for many reasons. ").repeat(10)),
        );
        parent = Some(said);
    }
    session
}

/// One more turn of many answers, behind three.
fn long_turn(session: &mut String) {
    entry(session, "u9", Some("a2"), &json!({"role": "user", "content": "Now tell me all about trains."}));
    let mut parent = "u9".to_owned();
    for n in 0..8 {
        let id = format!("t{n}");
        entry(session, &id, Some(&parent), &answer(&format!("Train {n} is red and fast. ").repeat(8)));
        parent = id;
    }
}

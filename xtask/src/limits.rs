//! What hostile and huge sessions cost: seconds and peak memory of each command, as the table in `docs/safety.md`.

use std::io::{BufWriter, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::files;

/// A command that takes longer is stopped and counts as a failure.
const LIMIT: Duration = Duration::from_secs(300);

/// Measure time and memory on hostile and huge sessions
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Make everything this many times smaller
    #[arg(long, value_name = "N", default_value_t = 1)]
    divide: u64,
    /// The cases whose names contain this
    #[arg(long, value_name = "TEXT", default_value = "")]
    only: String,
    /// The program that is measured [default: built from the workspace, optimised]
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
}

type Lines = dyn Fn(u64, &mut dyn Write) -> std::io::Result<()>;

/// Writes a session of each kind, runs the commands on it, prints the table.
///
/// # Errors
/// A command crashed, hung, or could not be run.
pub(crate) fn run(args: &Args) -> Result<()> {
    let program = match &args.program {
        Some(program) => program.clone(),
        None => files::release_program()?,
    };
    let folder = files::scratch("limits")?;
    println!("| session | size | command | exit | seconds | peak memory |");
    println!("|---|---|---|---|---|---|");
    let mut bad = Vec::new();
    for (name, write) in cases() {
        if !name.contains(&args.only) {
            continue;
        }
        let file = folder.join("session.jsonl");
        make(&file, args.divide.max(1), &*write)?;
        let size = file.metadata()?.len();
        for command in COMMANDS {
            let out = folder.join("out.jsonl");
            // Left over from the command before.
            let _ = std::fs::remove_dir_all(&out).or_else(|_| remove(&out));
            let _ = remove(&folder.join("out.jsonl.torn"));
            let words: Vec<String> =
                command.iter().map(|word| word.replace("OUT", &out.display().to_string())).collect();
            let run = measure(&program, &words, &file, &folder)?;
            let shown = command.iter().filter(|word| **word != "OUT").copied().collect::<Vec<_>>().join(" ");
            println!(
                "| {name} | {} MB | `{shown}` | {} | {:.2} | {} MB |",
                size / 1_000_000,
                run.ended,
                run.seconds,
                run.peak_kb / 1000
            );
            if !matches!(run.ended.as_str(), "0" | "1") {
                bad.push(format!("{name}: {shown} ended with {}", run.ended));
            }
        }
    }
    std::fs::remove_dir_all(&folder)?;
    ensure!(bad.is_empty(), "{}", bad.join("\n"));
    Ok(())
}

const COMMANDS: &[&[&str]] = &[
    &["inspect"],
    &["check"],
    &["prune", "--dry-run"],
    &["doctor"],
    &["context", "--format", "jsonl"],
    &["compact", "--output", "OUT"],
    &["doctor", "--repair", "--output", "OUT"],
];

/// How a run ended and what it cost.
struct Run {
    ended: String,
    seconds: f64,
    peak_kb: u64,
}

/// Runs the program under a shell that says how much memory its child had at most.
fn measure(program: &Path, words: &[String], file: &Path, home: &Path) -> Result<Run> {
    let start = Instant::now();
    let usage = home.join("usage");
    let mut child = Command::new("python3")
        .arg("-c")
        .arg(
            "import resource,subprocess,sys\n\
             code=subprocess.run(sys.argv[2:],stdin=subprocess.DEVNULL).returncode\n\
             peak=resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss\n\
             open(sys.argv[1],'w').write(f'{code} {peak}')",
        )
        .arg(&usage)
        .arg(program)
        .args(words)
        .arg(file)
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("HOME", home)
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .context("python3")?;
    loop {
        if child.try_wait()?.is_some() {
            break;
        }
        if start.elapsed() > LIMIT {
            let group = format!("-{}", child.id());
            Command::new("kill").args(["-9", "--", &group]).status()?;
            child.wait()?;
            return Ok(Run {
                ended: "too long".to_owned(),
                seconds: start.elapsed().as_secs_f64(),
                peak_kb: 0,
            });
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let seconds = start.elapsed().as_secs_f64();
    let said = files::read(&usage)?;
    let (ended, peak) = said.split_once(' ').context("two numbers")?;
    Ok(Run { ended: ended.to_owned(), seconds, peak_kb: peak.parse()? })
}

#[expect(clippy::disallowed_methods, reason = "a chore makes files and removes them")]
fn make(path: &Path, divide: u64, write: &Lines) -> Result<()> {
    let mut out = BufWriter::with_capacity(1 << 20, std::fs::File::create(path)?);
    out.write_all(b"{\"type\":\"session\",\"version\":3,\"id\":\"s\",\"timestamp\":\"2026-01-02T03:04:05.000Z\",\"cwd\":\"/p\"}\n")?;
    write(divide, &mut out)?;
    out.flush()?;
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "a chore makes files and removes them")]
fn remove(path: &Path) -> std::io::Result<()> {
    std::fs::remove_file(path)
}

fn cases() -> Vec<(&'static str, Box<Lines>)> {
    vec![
        (
            "a session like real ones",
            Box::new(|divide, out| {
                let session = session_gen::large(1, (1_000_000_000 / divide) as usize);
                // Its header stands there already.
                let entries = session.split_once('\n').map_or("", |(_, entries)| entries);
                out.write_all(entries.as_bytes())
            }),
        ),
        (
            "one result of 500 MB",
            Box::new(|divide, out| {
                message(out, "a", "null", r#"{"role":"user","content":"x"}"#)?;
                message(
                    out,
                    "b",
                    "\"a\"",
                    r#"{"role":"assistant","content":[{"type":"toolCall","id":"1","name":"read","arguments":{}}],"stopReason":"toolUse"}"#,
                )?;
                write!(
                    out,
                    "{{\"type\":\"message\",\"id\":\"c\",\"parentId\":\"b\",\"timestamp\":\"2026-01-02T03:04:05.000Z\",\"message\":{{\"role\":\"toolResult\",\"toolCallId\":\"1\",\"toolName\":\"read\",\"content\":[{{\"type\":\"text\",\"text\":\""
                )?;
                for _ in 0..500_000_000 / divide / 50 {
                    out.write_all(b"one line of the output of some tool, like others\\n")?;
                }
                out.write_all(b"\"}],\"isError\":false}}\n")?;
                message(out, "d", "\"c\"", r#"{"role":"user","content":"y"}"#)
            }),
        ),
        (
            "a torn line of 500 MB",
            Box::new(|divide, out| {
                for _ in 0..500_000_000 / divide / 20 {
                    out.write_all(b"{\"type\":\"x\",\"a\":[{\"b")?;
                }
                out.write_all(b"\n")?;
                message(out, "d", "null", r#"{"role":"user","content":"y"}"#)
            }),
        ),
        (
            "a million tiny entries in a chain",
            Box::new(|divide, out| chain(1_000_000 / divide, out, |n| n.wrapping_sub(1))),
        ),
        (
            "a million entries on one parent",
            Box::new(|divide, out| chain(1_000_000 / divide, out, |n| if n == 0 { u64::MAX } else { 0 })),
        ),
        (
            "a circle of a million entries",
            Box::new(|divide, out| {
                let n_entries = 1_000_000 / divide;
                chain(n_entries, out, move |n| if n == 0 { n_entries - 1 } else { n - 1 })
            }),
        ),
        (
            "a million entries whose parents are all later",
            Box::new(|divide, out| {
                let n_entries = 1_000_000 / divide;
                chain(n_entries, out, move |n| if n + 1 == n_entries { u64::MAX } else { n + 1 })
            }),
        ),
        (
            "a million entries with one id",
            Box::new(|divide, out| {
                (0..1_000_000 / divide)
                    .try_for_each(|_| message(out, "a", "null", r#"{"role":"user","content":"x"}"#))
            }),
        ),
        (
            "a comb: a chain with a leaf at each entry, the newest message elsewhere",
            Box::new(|divide, out| {
                let n_entries = 500_000 / divide;
                out.write_all(b"{\"type\":\"message\",\"id\":\"new\",\"parentId\":null,\"timestamp\":\"2026-02-02T03:04:05.000Z\",\"message\":{\"role\":\"user\",\"content\":\"x\"}}\n")?;
                chain(n_entries, out, |n| n.wrapping_sub(1))?;
                (0..n_entries).try_for_each(|n| writeln!(out, "{{\"type\":\"label\",\"id\":\"l{n:x}\",\"parentId\":\"{n:x}\",\"timestamp\":\"2020-01-02T03:04:05.000Z\",\"targetId\":\"0\",\"label\":\"x\"}}"))
            }),
        ),
        (
            "100 000 levels of arrays, and of objects",
            Box::new(|divide, out| {
                let depth = (100_000 / divide) as usize;
                let arrays =
                    format!(r#"{{"role":"user","content":{}{}}}"#, "[".repeat(depth), "]".repeat(depth));
                message(out, "a", "null", &arrays)?;
                let objects = format!(
                    r#"{{"role":"assistant","content":[{{"type":"toolCall","id":"1","name":"x","arguments":{}1{}}}],"stopReason":"toolUse"}}"#,
                    "{\"a\":".repeat(depth),
                    "}".repeat(depth)
                );
                message(out, "b", "\"a\"", &objects)?;
                message(out, "c", "\"b\"", r#"{"role":"user","content":"y"}"#)
            }),
        ),
        (
            "100 000 calls in one message, none answered",
            Box::new(|divide, out| {
                let calls: Vec<String> = (0..100_000 / divide)
                    .map(|n| format!(r#"{{"type":"toolCall","id":"{n}","name":"x","arguments":{{}}}}"#))
                    .collect();
                let calls = format!(
                    r#"{{"role":"assistant","content":[{}],"stopReason":"toolUse"}}"#,
                    calls.join(",")
                );
                message(out, "a", "null", r#"{"role":"user","content":"x"}"#)?;
                message(out, "b", "\"a\"", &calls)?;
                message(out, "c", "\"b\"", r#"{"role":"assistant","content":[],"stopReason":"stop"}"#)
            }),
        ),
        (
            "300 000 results that answer nothing",
            Box::new(|divide, out| {
                let result = r#"{"role":"toolResult","toolCallId":"?","toolName":"x","content":[{"type":"text","text":"x"}],"isError":false}"#;
                message(out, "a", "null", r#"{"role":"user","content":"x"}"#)?;
                let mut parent = "a".to_owned();
                for n in 0..300_000 / divide {
                    let id = format!("r{n}");
                    message(out, &id, &format!("\"{parent}\""), result)?;
                    parent = id;
                }
                Ok(())
            }),
        ),
    ]
}

fn message(out: &mut dyn Write, id: &str, parent: &str, message: &str) -> std::io::Result<()> {
    writeln!(
        out,
        "{{\"type\":\"message\",\"id\":\"{id}\",\"parentId\":{parent},\"timestamp\":\"2026-01-02T03:04:05.000Z\",\"message\":{message}}}"
    )
}

/// Entries with the parents that `parent` gives by number; `u64::MAX` is none.
fn chain(n_entries: u64, out: &mut dyn Write, parent: impl Fn(u64) -> u64) -> std::io::Result<()> {
    (0..n_entries).try_for_each(|n| {
        let parent = match parent(n) {
            u64::MAX => "null".to_owned(),
            parent => format!("\"{parent:x}\""),
        };
        message(out, &format!("{n:x}"), &parent, r#"{"role":"user","content":"x"}"#)
    })
}

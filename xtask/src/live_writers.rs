//! The agents' own session managers append to a session while the real program compacts and prunes it: nothing may be lost.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, bail, ensure};
use session_model::value::Value;

use crate::files;
use crate::reference::{Answer, Program, Question, Reference, References};

/// After so many rounds the agent goes home, everything is counted, and a new session begins.
const ROUNDS_OF_A_SESSION: u64 = 25;

/// Let the agents write to sessions while sesstool changes them
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Rounds with each agent
    #[arg(long, value_name = "N", default_value_t = 100)]
    rounds: u64,
    /// The program that is tested [default: built from the workspace, optimised]
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
}

/// Runs the rounds with both agents.
///
/// # Errors
/// An entry is missing or doubled, a line is torn, or a program fails.
pub(crate) fn run(args: &Args) -> Result<()> {
    let program = match &args.program {
        Some(program) => program.canonicalize().with_context(|| program.display().to_string())?,
        None => files::release_program()?,
    };
    let references = References::install()?;
    for agent in Program::ALL {
        let folder = files::scratch("live-writers")?;
        let mut test = Test {
            agent: references.start(agent)?,
            program: program.clone(),
            folder,
            random: 0x9e37_79b9 ^ agent as u64,
            ended: BTreeMap::new(),
            n_entries: 0,
        };
        let mut rounds = 0;
        while rounds < args.rounds {
            let n = ROUNDS_OF_A_SESSION.min(args.rounds - rounds);
            test.session(rounds, n, agent)
                .with_context(|| format!("{} from round {rounds}", agent.name()))?;
            rounds += n;
            println!("{}: {rounds} rounds, {} entries, {:?}", agent.name(), test.n_entries, test.ended);
        }
        std::fs::remove_dir_all(&test.folder)?;
    }
    Ok(())
}

struct Test {
    agent: Reference,
    program: PathBuf,
    folder: PathBuf,
    random: u64,
    /// How the runs of the program ended.
    ended: BTreeMap<String, u64>,
    n_entries: usize,
}

impl Test {
    /// One session from its beginning to the last count.
    fn session(&mut self, first_round: u64, n_rounds: u64, agent: Program) -> Result<()> {
        let file = self.folder.join(format!("{}-{first_round}.jsonl", agent.name()));
        files::write(&file, beginning(agent))?;
        let mut written = ids_of(&files::read_bytes(&file)?)?;
        for round in first_round..first_round + n_rounds {
            // At times the agent opens the session anew: then it has opened it just before a replacement.
            let reopen = self.below(3) == 0;
            let question =
                write_question(&file, &format!(r#"{{"turns":{},"reopen":{reopen}}}"#, 1 + self.below(4)));
            let is_done = AtomicBool::new(false);
            let mut commands: Vec<Vec<&str>> = Vec::new();
            for _ in 0..64 {
                // With a handle that stays open a forced replacement is watched for two seconds, so there are few of them.
                let is_forced = self.below(if agent == Program::R13 { 10 } else { 3 }) == 0;
                commands.push(match (self.below(2), is_forced) {
                    (0, _) => vec!["compact", "--keep-recent-tokens", "300"],
                    (_, false) => vec!["prune", "--protect", "0", "--min-savings", "0"],
                    (_, true) => vec!["prune", "--protect", "0", "--min-savings", "0", "--force"],
                });
            }
            let (program, home) = (&self.program, &self.folder);
            let reference = &mut self.agent;
            let (answers, ends) = std::thread::scope(|scope| {
                let other = scope.spawn(|| {
                    let mut ends = Vec::new();
                    for command in commands {
                        ends.push(sesstool(program, home, &command, &file));
                        if is_done.load(Ordering::Relaxed) {
                            break;
                        }
                    }
                    ends
                });
                let answers = reference.ask(std::slice::from_ref(&question));
                is_done.store(true, Ordering::Relaxed);
                (answers, other.join())
            });
            written.extend(ids_in(&answers?)?);
            for end in ends.ok().context("a thread panicked")? {
                *self.ended.entry(end?).or_default() += 1;
            }
            ids_of(&files::read_bytes(&file)?).with_context(|| format!("round {round}"))?;
        }
        self.agent.ask(&[write_question(&file, r#"{"close":true}"#)])?;
        // The next writing command carries over what went to an old file.
        sesstool(&self.program, &self.folder, &["prune", "--protect", "0", "--min-savings", "0"], &file)?;
        let there = ids_of(&files::read_bytes(&file)?)?;
        let mut counts: HashMap<&str, usize> = HashMap::new();
        there.iter().for_each(|id| *counts.entry(id).or_default() += 1);
        for id in &written {
            let count = counts.get(id.as_str()).copied().unwrap_or(0);
            ensure!(count == 1, "{}: the agent wrote {id}, and it is there {count} times", file.display());
        }
        ensure!(counts.len() == there.len(), "{}: an id is there twice", file.display());
        self.n_entries += written.len();
        let left: Vec<_> = std::fs::read_dir(&self.folder)?
            .filter_map(|entry| Some(entry.ok()?.file_name().to_string_lossy().into_owned()))
            .filter(|name| name.contains("sesstool-old") || name.ends_with("sesstool-tmp"))
            .collect();
        ensure!(left.is_empty(), "left behind: {left:?}");
        Ok(())
    }

    fn below(&mut self, end: u64) -> u64 {
        self.random =
            self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.random >> 33) % end
    }
}

/// Runs the program once and gives how it ended: `compact done`, `prune skipped`, `prune refused: open`, …
///
/// # Errors
/// It failed in a way that it should not.
fn sesstool(program: &Path, home: &Path, command: &[&str], file: &Path) -> Result<String> {
    let output = Command::new(program)
        .args(command)
        .arg("--json")
        .arg(file)
        .env_clear()
        .env("HOME", home)
        .stdin(Stdio::null())
        .output()
        .with_context(|| program.display().to_string())?;
    let (out, talk) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let value = Value::parse(out.trim_end()).unwrap_or(Value::Null);
    let status = value.text("status").unwrap_or_default().into_owned();
    let message = value.text("message").unwrap_or_default();
    let kind = match (output.status.code(), status.as_str()) {
        (Some(0), "done") => "done",
        (Some(0), "skipped") => "skipped",
        (Some(1), "failed") if message.contains("open for writing") => "refused: open",
        (Some(1), "failed") if message.contains("has changed") => "refused: changed",
        _ => bail!("{command:?} ended with {}: {out}{talk}", output.status),
    };
    let force = if command.contains(&"--force") { " --force" } else { "" };
    Ok(format!("{}{force} {kind}", command[0]))
}

fn write_question(file: &Path, args: &str) -> Question {
    Question { kind: "write", file: file.to_owned(), args: args.to_owned() }
}

fn ids_in(answers: &[Answer]) -> Result<Vec<String>> {
    let [Answer::Said(line)] = answers else { bail!("the agent said {answers:?}") };
    let value = Value::parse(line).ok().context("no JSON")?;
    let ids = value.get("ok").map_or(&[][..], Value::items);
    Ok(ids.iter().filter_map(|id| id.as_str().map(std::borrow::Cow::into_owned)).collect())
}

/// The ids of a file whose every line is one whole object.
///
/// # Errors
/// A line is not.
fn ids_of(bytes: &[u8]) -> Result<Vec<String>> {
    let text = std::str::from_utf8(bytes).context("not UTF-8")?;
    ensure!(text.ends_with('\n'), "the last line has no end");
    let mut ids = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let value =
            Value::parse(line).ok().with_context(|| format!("line {} is torn or glued", number + 1))?;
        ids.extend(value.text("id").map(std::borrow::Cow::into_owned));
    }
    Ok(ids)
}

/// A session that the agent takes for one of its own.
fn beginning(agent: Program) -> String {
    let mark = match agent {
        Program::R13 => r#""model":"x/x""#,
        Program::P1 => r#""provider":"x","modelId":"x""#,
    };
    let time = "2026-01-02T03:04:05.000Z";
    let usage = r#""usage":{"input":1,"output":1,"cacheRead":0,"cacheWrite":0,"totalTokens":2,"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}}"#;
    format!(
        "{{\"type\":\"session\",\"version\":3,\"id\":\"00000000-0000-4000-8000-000000000000\",\"timestamp\":\"{time}\",\"cwd\":\"/tmp\"}}\n\
         {{\"type\":\"model_change\",\"id\":\"00000001\",\"parentId\":null,\"timestamp\":\"{time}\",{mark}}}\n\
         {{\"type\":\"message\",\"id\":\"00000002\",\"parentId\":\"00000001\",\"timestamp\":\"{time}\",\"message\":{{\"role\":\"user\",\"content\":\"Begin.\",\"timestamp\":1}}}}\n\
         {{\"type\":\"message\",\"id\":\"00000003\",\"parentId\":\"00000002\",\"timestamp\":\"{time}\",\"message\":{{\"role\":\"assistant\",\"content\":[{{\"type\":\"text\",\"text\":\"Yes.\"}}],\"api\":\"x\",\"provider\":\"x\",\"model\":\"x\",{usage},\"stopReason\":\"stop\",\"timestamp\":2}}}}\n"
    )
}

//! Running a command with input and output as bytes: bounded in time and size, and killed with its children.

use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

use crate::cancel::Cancel;

/// The most bytes of output that are taken.
const LARGEST_OUTPUT: usize = 64 << 20;
/// How much of what a command says on its standard error is kept.
const LARGEST_COMPLAINT: usize = 2 << 10;

/// What a command left behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// Its standard output.
    pub stdout: Vec<u8>,
    /// The end of its standard error.
    pub stderr: String,
    /// Its exit code; `None` if a signal ended it.
    pub code: Option<i32>,
}

/// Why a command left nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// It could not be started.
    #[error("cannot be started: {0}")]
    Start(String),
    /// It took longer than it may, and was killed.
    #[error("no answer within {}", crate::error::Spoken(*.0))]
    TimeOut(Duration),
    /// The user or a signal stopped it, and it was killed.
    #[error("cancelled")]
    Cancelled,
    /// It printed more than 64 MiB, and was killed.
    #[error("printed more than 64 MiB")]
    TooMuch,
}

enum Event {
    Stdout(Vec<u8>),
    StdoutEnd,
    StderrEnd(Vec<u8>),
    TooMuch,
    Cancelled,
}

/// Runs a command line in the system's shell, with `input` on its standard input.
///
/// A command that ends without reading its input is not an error.
///
/// # Errors
/// If it cannot be started, takes longer than `limit`, prints too much, or `cancel` is turned. It is killed
/// then, on Unix together with what it started.
pub fn run(command_line: &str, input: &[u8], limit: Duration, cancel: &Cancel) -> Result<Output, RunError> {
    if cancel.is_cancelled() {
        return Err(RunError::Cancelled);
    }
    let mut child = shell(command_line)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| RunError::Start(error.to_string()))?;
    let (sender, events) = channel();
    let mut stdin = child.stdin.take().expect("it was asked for above");
    let stdout = child.stdout.take().expect("it was asked for above");
    let stderr = child.stderr.take().expect("it was asked for above");
    let input = input.to_vec();
    // Each pipe has a thread: a command may fill one before it reads another. They end with the pipes.
    std::thread::spawn(move || {
        // A command that does not read its input closes the pipe.
        let _ = stdin.write_all(&input);
    });
    let of_stdout = sender.clone();
    std::thread::spawn(move || read_stdout(stdout, &of_stdout));
    let of_stderr = sender.clone();
    std::thread::spawn(move || {
        let _ = of_stderr.send(Event::StderrEnd(read_tail(stderr)));
    });
    let _guard = cancel.on_cancel(move || {
        let _ = sender.send(Event::Cancelled);
    });

    let end = Instant::now().checked_add(limit);
    let (mut output, mut complaint) = (None, None);
    while output.is_none() || complaint.is_none() {
        let left = end.map_or(Duration::from_secs(3600), |end| end.saturating_duration_since(Instant::now()));
        match events.recv_timeout(left) {
            Ok(Event::Stdout(bytes)) => output = Some(bytes),
            Ok(Event::StdoutEnd) => output = output.or(Some(Vec::new())),
            Ok(Event::StderrEnd(bytes)) => complaint = Some(bytes),
            Ok(Event::TooMuch) => return stop(child, RunError::TooMuch),
            Ok(Event::Cancelled) => return stop(child, RunError::Cancelled),
            Err(_) => return stop(child, RunError::TimeOut(limit)),
        }
    }
    let code = wait(&mut child, end, cancel);
    match code {
        Ok(code) => Ok(Output {
            stdout: output.unwrap_or_default(),
            stderr: String::from_utf8_lossy(&complaint.unwrap_or_default()).into_owned(),
            code,
        }),
        Err(Ended::Cancelled) => stop(child, RunError::Cancelled),
        Err(Ended::Late) => stop(child, RunError::TimeOut(limit)),
    }
}

enum Ended {
    Cancelled,
    Late,
}

/// Waits for a command that has closed its output; most are gone by then.
fn wait(child: &mut Child, end: Option<Instant>, cancel: &Cancel) -> Result<Option<i32>, Ended> {
    let mut pause = Duration::from_millis(1);
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Ok(status.code()),
            Ok(None) => {}
            Err(_) => return Ok(None),
        }
        if end.is_some_and(|end| Instant::now() >= end) {
            return Err(Ended::Late);
        }
        if cancel.sleep(pause) {
            return Err(Ended::Cancelled);
        }
        pause = (pause * 2).min(Duration::from_millis(50));
    }
}

fn read_stdout(mut stdout: impl Read, events: &Sender<Event>) {
    let mut bytes = Vec::new();
    let limit = u64::try_from(LARGEST_OUTPUT).unwrap_or(u64::MAX) + 1;
    // What was printed before a broken pipe still counts; the command's exit code tells whether it is whole.
    let _ = stdout.by_ref().take(limit).read_to_end(&mut bytes);
    let event = if bytes.len() > LARGEST_OUTPUT { Event::TooMuch } else { Event::Stdout(bytes) };
    let _ = events.send(event);
    let _ = events.send(Event::StdoutEnd);
}

fn read_tail(mut pipe: impl Read) -> Vec<u8> {
    let mut tail = Vec::new();
    let mut buffer = [0; 4096];
    while let Ok(n @ 1..) = pipe.read(&mut buffer) {
        tail.extend_from_slice(&buffer[..n]);
        let extra = tail.len().saturating_sub(LARGEST_COMPLAINT);
        tail.drain(..extra);
    }
    tail
}

fn stop<T>(mut child: Child, error: RunError) -> Result<T, RunError> {
    kill_group(&child);
    // It may be gone already.
    let _ = child.kill();
    let _ = child.wait();
    Err(error)
}

#[cfg(unix)]
fn shell(command_line: &str) -> Command {
    use std::os::unix::process::CommandExt;
    let mut command = Command::new("sh");
    // A group of its own, so that what it starts can be killed with it.
    command.arg("-c").arg(command_line).process_group(0);
    command
}

#[cfg(unix)]
fn kill_group(child: &Child) {
    // The shell's own `kill`: there is no safe call for a group.
    let _ = Command::new("sh")
        .arg("-c")
        .arg(format!("kill -KILL -{}", child.id()))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
}

#[cfg(not(unix))]
fn shell(command_line: &str) -> Command {
    let mut command = Command::new("cmd");
    command.arg("/C").arg(command_line);
    command
}

#[cfg(not(unix))]
fn kill_group(_child: &Child) {}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    fn ran(command_line: &str, input: &[u8]) -> Output {
        run(command_line, input, LONG, &Cancel::new()).expect("the command runs")
    }

    /// A switch, and the thread that turns it when the command runs.
    fn turned_soon() -> (Cancel, std::thread::JoinHandle<()>) {
        let cancel = Cancel::new();
        let of_the_other = cancel.clone();
        let other = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(100));
            of_the_other.cancel();
        });
        (cancel, other)
    }

    #[test]
    fn input_goes_in_and_output_comes_out() {
        let output = ran("cat; echo oops >&2; exit 3", b"hello");
        assert_eq!(output, Output { stdout: b"hello".to_vec(), stderr: "oops\n".to_owned(), code: Some(3) });
    }

    #[test]
    fn large_input_and_output_do_not_block_each_other() {
        let input = vec![b'x'; 5 << 20];
        assert_eq!(ran("cat", &input).stdout.len(), input.len());
    }

    #[test]
    fn a_command_that_reads_nothing_is_fine() {
        assert_eq!(ran("echo hi", &vec![b'x'; 1 << 20]).stdout, b"hi\n");
    }

    #[test]
    fn only_the_end_of_complaints_is_kept() {
        let complaint = ran("head -c 100000 /dev/zero | tr '\\0' x >&2; printf end >&2", b"").stderr;
        assert_eq!(complaint.len(), LARGEST_COMPLAINT);
        assert!(complaint.ends_with("end"));
    }

    #[test]
    fn output_without_end_is_given_up() {
        assert_eq!(run("cat /dev/zero", b"", LONG, &Cancel::new()), Err(RunError::TooMuch));
    }

    #[test]
    fn cancelling_kills_what_has_closed_its_output_too() {
        let (cancel, other) = turned_soon();
        assert_eq!(run("exec >&- 2>&-; sleep 1000", b"", LONG, &cancel), Err(RunError::Cancelled));
        other.join().unwrap();
    }

    #[test]
    fn a_command_that_takes_too_long_is_killed_with_its_children() {
        let limit = Duration::from_millis(200);
        let error = run("sleep 1000 & sleep 1000; wait", b"", limit, &Cancel::new()).unwrap_err();
        assert_eq!(error, RunError::TimeOut(limit));
    }

    #[test]
    fn a_command_that_closes_its_output_and_stays_is_killed() {
        let limit = Duration::from_millis(200);
        let error = run("exec >&- 2>&-; sleep 1000", b"", limit, &Cancel::new()).unwrap_err();
        assert_eq!(error, RunError::TimeOut(limit));
    }

    #[test]
    fn cancelling_kills_it_at_once() {
        let (cancel, other) = turned_soon();
        assert_eq!(run("sleep 1000", b"", LONG, &cancel), Err(RunError::Cancelled));
        assert_eq!(run("echo hi", b"", LONG, &cancel), Err(RunError::Cancelled));
        other.join().unwrap();
    }
}

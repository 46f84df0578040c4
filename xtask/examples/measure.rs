//! Runs a command with its output to nowhere and prints what it cost: nanoseconds, nanoseconds to the first byte, microseconds of
//! processors, KiB of memory at most, exit status. It is small itself: what the kernel says of a child's memory is at least that of its parent.

use std::io::Read;
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let mode = arguments.next().unwrap_or_default();
    let Some(program) = arguments.next() else {
        eprintln!("measure total|first-byte PROGRAM [ARGUMENTS]");
        return ExitCode::from(2);
    };
    // A pipe only where the first byte is asked for: emptying one costs more than some of the commands do.
    let asks_first_byte = mode == "first-byte";
    let stdout = if asks_first_byte { Stdio::piped() } else { Stdio::null() };
    let began = Instant::now();
    let spawned = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(stdout)
        .stderr(Stdio::null())
        .spawn();
    let mut child = match spawned {
        Ok(child) => child,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(2);
        }
    };
    let mut first_byte = 0;
    if let Some(mut output) = child.stdout.take() {
        let mut bytes = vec![0; 1 << 16];
        let _ = output.read(&mut bytes[..1]);
        first_byte = began.elapsed().as_nanos();
        while output.read(&mut bytes).is_ok_and(|n| n > 0) {}
    }
    let status = child.wait();
    let total = began.elapsed().as_nanos();
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN);
    let memory = usage.map_or(0, |usage| usage.max_rss());
    let processors = usage.map_or(0, |usage| (usage.user_time() + usage.system_time()).num_microseconds());
    let code = status.ok().and_then(|status| status.code()).unwrap_or(-1);
    println!("{total} {first_byte} {processors} {memory} {code}");
    ExitCode::SUCCESS
}

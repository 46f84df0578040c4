//! Ctrl-C in the middle of a batch: it stops at once, and no file is half done.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::sessions::omp;
use crate::support::TestEnv;

/// A summary service that answers the first `n` requests and keeps all others waiting.
fn service(n: usize) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/summarize", listener.local_addr().expect("an address"));
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let number = count.fetch_add(1, Ordering::SeqCst);
            std::thread::spawn(move || {
                let mut seen = Vec::new();
                let mut chunk = [0; 65536];
                while let Ok(read) = stream.read(&mut chunk) {
                    seen.extend_from_slice(&chunk[..read]);
                    let text = String::from_utf8_lossy(&seen);
                    let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
                    let length = head.lines().find_map(|line| {
                        line.to_lowercase()
                            .strip_prefix("content-length:")
                            .and_then(|value| value.trim().parse::<usize>().ok())
                    });
                    if read == 0 || length.is_some_and(|length| body.len() >= length) {
                        break;
                    }
                }
                if number < n {
                    let body = r#"{"summary":"Done so far."}"#;
                    let _ = write!(
                        stream,
                        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
                        body.len()
                    );
                } else {
                    std::thread::sleep(Duration::from_secs(60));
                }
            });
        }
    });
    (url, asked)
}

#[test]
fn a_batch_of_a_hundred_stops_and_only_reported_files_have_changed() {
    let env = TestEnv::new();
    let old = omp("one", 40);
    for n in 0..100 {
        env.write(&format!("s/{n:03}.jsonl"), &old);
    }
    // Each compaction makes two requests or three; so a few files are done, and then nothing moves.
    let (url, asked) = service(9);
    let mut command = env.command(["compact", "--json", "-j", "4", "--remote-endpoint", &url, "s"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
    let begun = Instant::now();
    while asked.load(Ordering::SeqCst) < 13 {
        assert!(begun.elapsed() < Duration::from_secs(60), "the requests do not come");
        std::thread::sleep(Duration::from_millis(10));
    }
    let signalled = Instant::now();
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().expect("kill runs").success());
    let output = child.wait_with_output().expect("it ends");
    // The requirement is a second; a busy machine gets more, and a request that is waited for would take a minute.
    assert!(signalled.elapsed() < Duration::from_secs(20), "{:?}", signalled.elapsed());
    assert_eq!(output.status.code(), Some(130));
    let reported: Vec<String> = String::from_utf8(output.stdout)
        .expect("UTF-8")
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).expect("JSON"))
        .filter(|record| record["status"] == "done")
        .map(|record| record["file"].as_str().expect("a name").to_owned())
        .collect();
    for n in 0..100 {
        let name = format!("s/{n:03}.jsonl");
        let is_reported = reported.contains(&name);
        assert_eq!(env.read(&name) != old, is_reported, "{name}");
    }
    let leftovers: Vec<_> = std::fs::read_dir(env.work().join("s"))
        .expect("the folder")
        .filter_map(|entry| entry.expect("an entry").file_name().into_string().ok())
        .filter(|name| !name.ends_with(".jsonl") && !name.ends_with(".jsonl.undo"))
        .collect();
    assert_eq!(leftovers, Vec::<String>::new());
}

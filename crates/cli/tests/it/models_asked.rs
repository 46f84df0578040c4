//! Models as the program asks them: tokens and price, how many at once, what the requests hold, folding.

use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};

use crate::server::{Answer, Server};
use crate::sessions::{append_turns, last_id, omp};
use crate::support::{Ran, TestEnv};

/// An answer of Messages in one piece.
fn message(text: &str, input: u64, output: u64) -> Answer {
    Answer::json(
        200,
        &json!({"type": "message", "model": "claude-sonnet-4-5", "stop_reason": "end_turn",
            "content": [{"type": "text", "text": text}], "usage": {"input_tokens": input, "output_tokens": output}}),
    )
}

/// A session whose last turn is so long that it is cut within it.
fn split() -> String {
    let mut file = omp("split", 5);
    for n in 0..60 {
        let parent = last_id(&file);
        let words = format!("long step {n} in src/long_{n}.rs; ").repeat(60);
        file.push_str(&format!(
            "{}\n",
            json!({"type": "message", "id": format!("x{n}"), "parentId": parent, "timestamp": "2026-01-03T00:00:00.000Z",
                "message": {"role": "assistant", "content": [{"type": "text", "text": words}], "provider": "anthropic",
                    "model": "claude-sonnet-4-5", "stopReason": "stop"}})
        ));
    }
    let at = file.find("{\"type\":\"message\",\"id\":\"x0\"").expect("the entry");
    let ask = json!({"type": "message", "id": "long", "parentId": "b4", "timestamp": "2026-01-03T00:00:00.000Z",
        "message": {"role": "user", "content": "Now the long work."}});
    file.insert_str(at, &format!("{ask}\n"));
    file
}

#[test]
fn the_report_has_what_the_provider_counted_and_what_it_costs() {
    let env = TestEnv::new();
    let old = omp("one", 60);
    env.write("a.jsonl", &old);
    let server = Server::start(|_| message("A summary.", 10_000, 200));
    let run = |more: &[&str]| {
        let flags =
            ["compact", "--model", "anthropic/claude-sonnet-4-5", "--base-url", &server.url, "a.jsonl"];
        env.run(flags.iter().chain(more))
    };
    let dry = run(&["-n", "--json"]);
    assert_eq!(server.count(), 0, "a dry run asks nobody");
    let estimate = dry.json()[0]["price"].as_f64().expect("an estimate");
    let ran = run(&["--json"]);
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    let record = &ran.json()[0];
    let n = server.count();
    let requests = record["requests"].as_array().expect("requests");
    assert_eq!((requests.len(), dry.json()[0]["requests"].as_array().map(Vec::len)), (n, Some(n)));
    for request in requests {
        assert_eq!((&request["promptTokens"], &request["outputTokens"]), (&json!(10_000), &json!(200)));
        assert_eq!(request["model"], "claude-sonnet-4-5");
    }
    // 3 and 15 dollars for a million tokens.
    let expected = n as f64 * (10_000.0 * 3.0 + 200.0 * 15.0) / 1e6;
    let price = record["price"].as_f64().expect("a price");
    assert!((price - expected).abs() < 1e-9 && estimate > 0.0, "{price} {expected} {estimate}");
    env.write("a.jsonl", &old);
    let text = run(&[]);
    let line = format!("{n} requests, {n}0 000 in, {} out, ${expected:.4}", 200 * n);
    assert!(text.stdout.contains(&line), "{line}: {}", text.stdout);
}

#[test]
fn so_many_requests_are_under_way_as_were_allowed_and_no_more() {
    let env = TestEnv::new();
    for n in 0..8 {
        env.write(&format!("s/{n}.jsonl"), omp("one", 40));
    }
    let server = Server::start(|_| Answer::summary("A summary.").held());
    let mut command = env.command([
        "compact",
        "-q",
        "-j",
        "8",
        "--concurrency",
        "3",
        "--remote-endpoint",
        &server.url,
        "s",
    ]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    server.wait_for(3);
    // Time for a fourth to come, if one would.
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!((server.count(), server.at_once()), (3, 3));
    server.release(usize::MAX);
    let ran = Ran::of(child.wait_with_output().expect("it ends"));
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    assert!(server.count() >= 16);
    assert_eq!(server.most_at_once(), 3);
}

#[test]
fn both_halves_of_a_split_turn_are_asked_at_the_same_time() {
    let env = TestEnv::new();
    env.write("a.jsonl", split());
    let server = Server::start(|asked| {
        let answer = Answer::summary(&format!("Part {}.", asked.number));
        if asked.number < 2 { answer.held() } else { answer }
    });
    let mut command = env.command(["compact", "--json", "--remote-endpoint", &server.url, "a.jsonl"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    server.wait_for(2);
    assert_eq!(server.at_once(), 2);
    server.release(2);
    let ran = Ran::of(child.wait_with_output().expect("it ends"));
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    assert_eq!(server.count(), 3);
    let file = env.read("a.jsonl");
    let entry: Value = serde_json::from_str(file.lines().last().expect("a line")).expect("JSON");
    let summary = entry["summary"].as_str().expect("a summary");
    assert!(summary.contains("Part 0.") && summary.contains("Part 1."), "{summary}");
}

#[test]
fn when_one_half_fails_the_other_request_is_closed_and_nothing_is_written() {
    let env = TestEnv::new();
    let old = split();
    env.write("a.jsonl", &old);
    let asked_both = std::sync::Arc::new(std::sync::Barrier::new(2));
    let server = Server::start(move |asked| {
        asked_both.wait();
        if asked.prompt().contains("long step 0") {
            Answer::error(400, "no such thing")
        } else {
            Answer::hang()
        }
    });
    let ran = env.run(["compact", "--remote-endpoint", &server.url, "a.jsonl"]);
    assert_eq!(ran.status, Some(1), "{}", ran.stdout);
    assert!(ran.stderr.contains("no such thing"), "{}", ran.stderr);
    server.wait_for_left(1);
    assert_eq!((server.count(), env.read("a.jsonl") == old), (2, true));
}

#[test]
fn own_prompts_are_what_is_asked() {
    let env = TestEnv::new();
    env.write("a.jsonl", omp("one", 60));
    env.write("p/compaction/compaction-summary.md", "Tell it in the manner of the sea.");
    env.write("p/system/summarization-system.md", "You are a lighthouse.");
    let server = Server::start(|_| Answer::summary("A summary."));
    let ran = env.run(["compact", "-q", "--prompts", "p", "--remote-endpoint", &server.url, "a.jsonl"]);
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    let asked = server.asked();
    let own = |asked: &&crate::server::Asked| asked.prompt().ends_with("Tell it in the manner of the sea.");
    assert_eq!((asked.iter().filter(own).count(), asked.len()), (1, 3));
    assert!(asked.iter().all(|asked| asked.body["systemPrompt"] == "You are a lighthouse."));
}

#[test]
fn the_remote_endpoint_gets_every_request_and_nothing_but_two_texts() {
    let env = TestEnv::new();
    env.write("a.jsonl", split());
    let server = Server::start(|_| Answer::json(200, &json!({"summary": "A summary.", "more": [1]})));
    let url = format!("{}/deep/path?q=1", server.url);
    let mut command = env.command(["compact", "-q", "--remote-endpoint", &url, "a.jsonl"]);
    command.env("OPENAI_API_KEY", "sk-secret-1").env("SESSTOOL_MODELS_CANDIDATES", "openai/gpt-5");
    let ran = Ran::of(command.output().expect("it starts"));
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    let asked = server.asked();
    assert_eq!(asked.len(), 3);
    for asked in &asked {
        assert_eq!((&*asked.method, &*asked.path), ("POST", "/deep/path?q=1"));
        assert_eq!(asked.header("content-type"), Some("application/json"));
        let mut names: Vec<_> = asked.body.as_object().expect("an object").keys().collect();
        names.sort();
        assert_eq!(names, ["prompt", "systemPrompt"]);
        assert!(asked.headers.iter().all(|(_, value)| !value.contains("secret")), "{:?}", asked.headers);
    }
}

#[test]
fn facts_are_put_behind_the_models_summary() {
    let env = TestEnv::new();
    env.write("a.jsonl", omp("one", 60));
    let server = Server::start(|_| Answer::summary("A summary."));
    let ran = env.run(["compact", "-q", "--facts", "200", "--remote-endpoint", &server.url, "a.jsonl"]);
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    let file = env.read("a.jsonl");
    let entry: Value = serde_json::from_str(file.lines().last().expect("a line")).expect("JSON");
    let summary = entry["summary"].as_str().expect("a summary");
    let facts = summary.find("\n\nIndex of facts:\n- src/").expect("a block");
    let words = summary.rfind("A summary.").expect("the model's words");
    let files = summary.find("<modified-files>").expect("the file list");
    assert!(words < facts && facts < files, "{summary}");
}

#[test]
fn eight_million_characters_take_as_many_requests_as_the_dry_run_announced() {
    let env = TestEnv::new();
    let mut file = omp("big", 0);
    append_turns(&mut file, "m0", 0, 2100);
    assert!(file.len() > 8_000_000, "{}", file.len());
    env.write("big.jsonl", &file);
    // Longer than its limit: what is merged is at most that.
    let server = Server::start(|_| Answer::chat(&"word and\n".repeat(6000), 100_000, 13_000));
    let flags = [
        "--model",
        "my/big",
        "--base-url",
        &server.url,
        "--context-window",
        "128000",
        "--json",
        "-q",
        "big.jsonl",
    ];
    let dry = env.run(["compact", "-n"].iter().chain(&flags));
    let announced = dry.json()[0]["requests"].as_array().expect("requests").len();
    assert!(announced > 10, "{announced}");
    let ran = env.run(["compact"].iter().chain(&flags));
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    let asked = server.asked();
    assert_eq!(asked.len(), announced);
    let most = asked.iter().map(|asked| asked.prompt().len()).max().expect("requests");
    assert!(most < 128_000 * 4 && most > 300_000, "{most}");
    // Every message that goes is in one of the requests.
    let all: Vec<&str> = asked.iter().map(|asked| asked.prompt()).collect();
    for n in (0..2000).step_by(50) {
        let step = format!("src/part_{n}.rs;");
        assert!(all.iter().any(|prompt| prompt.contains(&step)), "{step}");
    }
}

#[test]
fn a_provider_that_overflows_gets_smaller_windows() {
    let env = TestEnv::new();
    env.write("a.jsonl", omp("one", 80));
    let server = Server::start(|asked| {
        let length = asked.prompt().len();
        if length > 60_000 {
            Answer::error(
                400,
                "maximum context length is 15000 tokens, your messages resulted in 60000 tokens",
            )
        } else {
            Answer::chat("A summary.", 10, 10)
        }
    });
    let ran = env.run(["compact", "-q", "--model", "my/x", "--base-url", &server.url, "a.jsonl"]);
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    let lengths: Vec<usize> = server.asked().iter().map(|asked| asked.prompt().len()).collect();
    // The halves of a split turn come in any order.
    assert!(lengths.iter().max().is_some_and(|most| *most > 60_000), "{lengths:?}");
    assert!(lengths.iter().filter(|length| **length <= 60_000).count() >= 4, "{lengths:?}");
}

#[test]
fn a_silent_overflow_is_recovered_from_with_a_model_and_removes_nothing() {
    let env = TestEnv::new();
    // The last answer was made, and its provider counted more than the window holds.
    let old = omp("one", 60);
    let at = old.rfind("\"stopReason\":\"stop\"").expect("an answer");
    let usage = r#""usage":{"input":210000,"output":5,"cacheRead":0,"cacheWrite":0,"totalTokens":210005},"#;
    let old = format!("{}{usage}{}", &old[..at], &old[at..]);
    env.write("a.jsonl", &old);
    let server = Server::start(|_| Answer::summary("A summary."));
    let flags = [
        "compact",
        "--auto",
        "--json",
        "-q",
        "--context-window",
        "200000",
        "--remote-endpoint",
        &server.url,
        "a.jsonl",
    ];
    let ran = env.run(flags);
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    let record = &ran.json()[0];
    assert_eq!((&record["trigger"], &record["willRetry"]), (&json!("overflow"), &json!(false)));
    let new = env.read("a.jsonl");
    assert!(new.starts_with(&old) && server.count() > 0);
    let context = env.run(["context", "--format", "jsonl", "a.jsonl"]);
    assert!(context.stdout.contains("step 59 of the parser"));
}

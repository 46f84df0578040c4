//! Summaries from models that a real service plays: who is asked, with what key, how many at once, and what is reported.

use serde_json::{Value, json};

use crate::service::{Asked, Reply, Service, chat, failure, ok};
use crate::sessions::{append_turns, omp, with_entry};
use crate::support::{Ran, TestEnv};

const KEY: &str = "sk-local-0123456789abcdef";

/// A run with a key for `local` and `NAME=VALUE` variables besides.
#[track_caller]
fn run(env: &TestEnv, variables: &[(&str, &str)], args: &[&str]) -> Ran {
    let mut command = env.command(args);
    command.env("LOCAL_API_KEY", KEY).envs(variables.iter().copied());
    Ran::of(command.output().expect("the program starts"))
}

fn last_entry(file: &str) -> Value {
    serde_json::from_str(file.lines().last().expect("a line")).expect("JSON")
}

/// A session whose last turn is so long that the cut falls into it.
fn split_turn(id: &str) -> String {
    let mut file = omp(id, 10);
    for n in 0..60 {
        let entry = |file: &str, id: &str, message: Value| {
            with_entry(file, id, "message", &format!("\"message\":{message}"))
        };
        if n == 0 {
            file = entry(&file, "q", json!({"role": "user", "content": "Go through all parts."}));
        }
        let call = format!("c{n}");
        let text = format!("part {n} of the long turn; ").repeat(40);
        file = entry(
            &file,
            &format!("x{n}"),
            json!({"role": "assistant", "content": [{"type": "toolCall", "id": call, "name": "read", "arguments": {"path": format!("src/{n}.rs")}}], "provider": "anthropic", "model": "claude-sonnet-4-5", "stopReason": "toolUse"}),
        );
        file = entry(
            &file,
            &format!("y{n}"),
            json!({"role": "toolResult", "toolCallId": call, "toolName": "read", "content": [{"type": "text", "text": text}], "isError": false}),
        );
    }
    file
}

#[test]
fn a_key_is_sent_and_appears_nowhere() {
    let env = TestEnv::new();
    let old = omp("one", 60);
    for refuses in [true, false] {
        // Providers that show what they were sent.
        let service = Service::start(move |asked| {
            if refuses {
                failure(401, "", &format!("bad key {KEY} in {}", asked.head))
            } else {
                Reply::Whole(
                    200,
                    "content-type: application/json\r\n".to_owned(),
                    json!({"choices": [{"message": {"content": format!("Fine with {KEY}.")}, "finish_reason": "stop"}], "model": format!("m {KEY}")}).to_string(),
                )
            }
        });
        env.write("a.jsonl", &old);
        for format in ["--json", "--color=never"] {
            let args = [
                "compact",
                format,
                "-v",
                "--events",
                "events.jsonl",
                "-m",
                "local/m",
                "--base-url",
                &service.url,
                "a.jsonl",
            ];
            let ran = run(&env, &[], &args);
            assert_eq!(ran.status, Some(i32::from(refuses)), "{}", ran.stderr);
            assert!(!ran.stdout.contains(KEY) && !ran.stderr.contains(KEY), "{}\n{}", ran.stdout, ran.stderr);
            if !refuses {
                break;
            }
        }
        let sent = service.seen();
        assert!(!sent.is_empty() && sent.iter().all(|asked| asked.head.contains(&format!("Bearer {KEY}"))));
        assert!(sent.iter().all(|asked| !asked.text().contains(KEY)));
        for name in env.names() {
            assert!(!env.read(&name).contains(KEY), "{name}");
        }
        if refuses {
            assert_eq!(env.read("a.jsonl"), old);
        }
    }
    let listed = run(&env, &[], &["settings"]);
    assert!(!listed.stdout.contains(KEY) && !listed.stderr.contains(KEY));
}

#[test]
fn the_next_candidate_is_asked_and_a_failure_of_all_changes_nothing() {
    let env = TestEnv::new();
    let old = omp("one", 60);
    env.write("a.jsonl", &old);
    let service = Service::start(|asked| match asked.model() {
        "good" => chat("A summary."),
        _ => failure(400, "", "no such model"),
    });
    let asked = |models: &[&str]| {
        let mut args = vec!["compact", "--json", "--base-url", &service.url];
        models.iter().for_each(|model| args.extend(["-m", model]));
        args.push("a.jsonl");
        run(&env, &[], &args)
    };
    let ran = asked(&["local/bad", "local/worse"]);
    assert_eq!(ran.status, Some(1));
    assert_eq!(env.read("a.jsonl"), old);
    assert_eq!(env.names(), ["a.jsonl"]);
    let errors: Vec<&str> = ran.stderr.lines().filter(|line| line.starts_with("error: ")).collect();
    assert_eq!(
        errors,
        ["error: a.jsonl: local/bad: http 400: no such model; local/worse: http 400: no such model"]
    );

    let ran = asked(&["local/bad", "local/good"]);
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    let record = &ran.json()[0];
    assert_eq!(record["summarizer"], "good");
    assert!(
        record["requests"][0]["failures"][0].as_str().is_some_and(|text| text.contains("no such model")),
        "{record}"
    );
    assert!(
        last_entry(&env.read("a.jsonl"))["summary"]
            .as_str()
            .is_some_and(|text| text.starts_with("A summary."))
    );
}

#[test]
fn as_many_requests_at_once_as_allowed_and_no_more() {
    for limit in [1, 3] {
        let env = TestEnv::new();
        for n in 0..6 {
            env.write(&format!("s/{n}.jsonl"), omp(&n.to_string(), 60));
        }
        let service = Service::start(move |_| Reply::Together(limit, Box::new(chat("A summary."))));
        let at_once = limit.to_string();
        let args = [
            "compact",
            "-q",
            "-j",
            "6",
            "--concurrency",
            &at_once,
            "-m",
            "local/m",
            "--base-url",
            &service.url,
            "s",
        ];
        let ran = run(&env, &[], &args);
        assert_eq!((ran.status, service.most_at_once()), (Some(0), limit), "{}", ran.stderr);
        // Each session is cut within a turn: history, the turn's first part, the short summary.
        assert_eq!(service.seen().len(), 18);
    }
}

#[test]
fn both_parts_of_a_split_turn_are_asked_for_at_the_same_time() {
    let env = TestEnv::new();
    env.write("a.jsonl", split_turn("one"));
    let service = Service::start(|asked| {
        let text = asked.text();
        match (text.contains("Please do step"), text.contains("<previous-summary>")) {
            (_, true) => chat("In short."),
            (true, false) => Reply::Together(2, Box::new(chat("The history."))),
            (false, false) => Reply::Together(2, Box::new(chat("The turn so far."))),
        }
    });
    let args = [
        "compact",
        "--json",
        "--keep-recent-tokens",
        "3000",
        "-m",
        "local/m",
        "--base-url",
        &service.url,
        "a.jsonl",
    ];
    let ran = run(&env, &[], &args);
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    assert_eq!((service.seen().len(), service.most_at_once()), (3, 2));
    let summary = last_entry(&env.read("a.jsonl"))["summary"].as_str().expect("a summary").to_owned();
    assert!(
        summary.starts_with("The history.\n\n---\n\n**Turn Context (split turn):**\n\nThe turn so far."),
        "{summary}"
    );
    assert_eq!(ran.json()[0]["isSplitTurn"], true);
}

#[test]
fn tokens_and_their_price_are_reported() {
    let env = TestEnv::new();
    env.write("a.jsonl", omp("one", 60));
    let service = Service::start(|_| {
        ok(&json!({
            "type": "message", "model": "claude-sonnet-4-5", "stop_reason": "end_turn",
            "content": [{"type": "text", "text": "A summary."}],
            "usage": {"input_tokens": 100_000, "output_tokens": 2_000}
        }))
    });
    let flags = ["--json", "-m", "anthropic/claude-sonnet-4-5", "--base-url", &service.url, "a.jsonl"];
    let key = [("ANTHROPIC_API_KEY", "sk-ant-0123456789")];
    let dry = run(&env, &key, &["compact", "-n"].iter().chain(&flags).copied().collect::<Vec<_>>());
    let planned = &dry.json()[0];
    assert!(planned["price"].as_f64().is_some_and(|price| price > 0.0), "{planned}");
    assert!(service.seen().is_empty(), "a dry run asks nobody");
    let ran = run(&env, &key, &["compact"].iter().chain(&flags).copied().collect::<Vec<_>>());
    let record = &ran.json()[0];
    let requests = record["requests"].as_array().expect("requests");
    assert_eq!(requests.len(), planned["requests"].as_array().expect("requests").len());
    for request in requests {
        assert_eq!((&request["promptTokens"], &request["outputTokens"]), (&100_000.into(), &2_000.into()));
    }
    // Three dollars for a million tokens in, fifteen for a million out.
    let price = requests.len() as f64 * (0.1 * 3.0 + 0.002 * 15.0);
    assert!(record["price"].as_f64().is_some_and(|seen| (seen - price).abs() < 1e-9), "{record}");
    let seen = service.seen();
    assert!(
        seen.iter()
            .all(|asked| asked.line.starts_with("POST /v1/messages ")
                && asked.head.contains("sk-ant-0123456789")),
        "{seen:?}"
    );
}

#[test]
fn a_proxy_from_the_environment_is_used_and_not_for_this_machine() {
    let env = TestEnv::new();
    env.write("a.jsonl", omp("one", 60));
    let proxy = Service::start(|_| failure(403, "", "not through here"));
    let ran = run(
        &env,
        &[("HTTP_PROXY", &proxy.url), ("http_proxy", &proxy.url), ("ALL_PROXY", &proxy.url)],
        &["compact", "-m", "local/m", "--base-url", "http://summaries.example/v1", "a.jsonl"],
    );
    assert_eq!(ran.status, Some(1));
    let lines: Vec<String> = proxy.seen().into_iter().map(|asked| asked.line).collect();
    assert!(
        !lines.is_empty() && lines.iter().all(|line| line.contains("summaries.example")),
        "{lines:?}\n{}",
        ran.stderr
    );

    let n_seen = proxy.seen().len();
    let service = Service::start(|_| chat("A summary."));
    let variables = [("HTTP_PROXY", &*proxy.url), ("HTTPS_PROXY", &*proxy.url), ("ALL_PROXY", &*proxy.url)];
    let ran = run(&env, &variables, &["compact", "-m", "local/m", "--base-url", &service.url, "a.jsonl"]);
    assert_eq!((ran.status, proxy.seen().len()), (Some(0), n_seen), "{}", ran.stderr);
}

#[test]
fn an_address_is_not_told_the_key_of_another_provider() {
    let env = TestEnv::new();
    env.write("a.jsonl", omp("one", 60));
    let service = Service::start(|_| failure(400, "", "no such model"));
    let proxy = Service::start(|_| failure(403, "", "not through here"));
    let secret = "sk-ant-0123456789";
    let ran = run(
        &env,
        &[("ANTHROPIC_API_KEY", secret), ("HTTPS_PROXY", &proxy.url), ("https_proxy", &proxy.url)],
        &[
            "compact",
            "-m",
            "local/m",
            "-m",
            "anthropic/claude-sonnet-4-5",
            "--base-url",
            &service.url,
            "a.jsonl",
        ],
    );
    assert_eq!(ran.status, Some(1));
    let seen = service.seen();
    assert!(!seen.is_empty() && seen.iter().all(|asked| !asked.head.contains(secret)), "{seen:?}");
    let lines: Vec<String> = proxy.seen().into_iter().map(|asked| asked.line).collect();
    assert!(
        !lines.is_empty() && lines.iter().all(|line| line.contains("api.anthropic.com")),
        "{lines:?}\n{}",
        ran.stderr
    );
}

#[test]
fn an_address_of_the_settings_file_is_for_the_models_of_the_settings_file() {
    let env = TestEnv::new();
    env.write("a.jsonl", omp("one", 60));
    let service = Service::start(|_| chat("A summary."));
    env.write_settings(
        &json!({"models": {"candidates": ["local/of-the-file"], "baseUrl": service.url}}).to_string(),
    );
    let key = [("OPENAI_API_KEY", "sk-openai-0123456789")];
    let ran = run(&env, &key, &["compact", "-m", "openai/gpt-5", "a.jsonl"]);
    assert_eq!(ran.status, Some(2), "{}", ran.stderr);
    assert!(ran.stderr.contains("models.baseUrl was not given for openai/gpt-5"), "{}", ran.stderr);
    assert!(service.seen().is_empty());
    let args = ["compact", "-m", "openai/gpt-5", "--base-url", &service.url, "-o", "b.jsonl", "a.jsonl"];
    assert_eq!(run(&env, &key, &args).status, Some(0));
}

#[test]
fn models_and_address_come_from_flags_before_variables_before_the_file() {
    let env = TestEnv::new();
    let session = omp("one", 60);
    env.write("a.jsonl", &session);
    let service = Service::start(|_| chat("A summary."));
    env.write_settings(
        &json!({"models": {"candidates": ["local/of-the-file"], "baseUrl": service.url}}).to_string(),
    );
    let names = |ran: &Ran| -> Vec<String> {
        assert_eq!(ran.status, Some(0), "{}", ran.stderr);
        let mut names: Vec<String> = service.seen().iter().map(|asked| asked.model().to_owned()).collect();
        names.dedup();
        names
    };
    let ran = run(&env, &[], &["compact", "-o", "1.jsonl", "a.jsonl"]);
    assert_eq!(names(&ran), ["of-the-file"]);
    let variable = [("SESSTOOL_MODELS_CANDIDATES", "local/of-the-variable")];
    let ran = run(&env, &variable, &["compact", "-o", "2.jsonl", "a.jsonl"]);
    assert_eq!(names(&ran), ["of-the-file", "of-the-variable"]);
    let ran = run(&env, &variable, &["compact", "-m", "local/of-the-flag", "-o", "3.jsonl", "a.jsonl"]);
    assert_eq!(names(&ran), ["of-the-file", "of-the-variable", "of-the-flag"]);
    // An address of the machine that nobody listens on goes before the file's.
    let nobody = [("SESSTOOL_MODELS_BASE_URL", "http://127.0.0.1:9"), ("SESSTOOL_RETRY_ENABLED", "false")];
    assert_eq!(run(&env, &nobody, &["compact", "-o", "4.jsonl", "a.jsonl"]).status, Some(1));
    assert_eq!(env.read("a.jsonl"), session);
}

#[test]
fn own_prompts_are_sent_and_facts_are_put_behind_a_models_summary() {
    let env = TestEnv::new();
    env.write("a.jsonl", omp("one", 60));
    env.write("own/compaction/compaction-summary.md", "Say what the pirate did.");
    let service = Service::start(|_| chat("A summary."));
    let args = [
        "compact",
        "--prompts",
        "own",
        "--facts",
        "300",
        "-m",
        "local/m",
        "--base-url",
        &service.url,
        "a.jsonl",
    ];
    let ran = run(&env, &[], &args);
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    assert!(service.seen().iter().any(|asked| asked.text().contains("Say what the pirate did.")));
    let summary = last_entry(&env.read("a.jsonl"))["summary"].as_str().expect("a summary").to_owned();
    let (before, index) = summary.split_once("\n\nIndex of facts:\n").expect("an index");
    assert!(before.starts_with("A summary.") && index.contains("src/"), "{summary}");
}

#[test]
fn a_remote_endpoint_gets_every_request() {
    let env = TestEnv::new();
    env.write("a.jsonl", split_turn("one"));
    let service = Service::start(|_| ok(&json!({"summary": "From afar.", "other": 1})));
    let address = format!("{}/summarize", service.url);
    let args =
        ["compact", "--json", "--keep-recent-tokens", "3000", "--remote-endpoint", &address, "a.jsonl"];
    let ran = run(&env, &[], &args);
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    let seen = service.seen();
    assert_eq!(seen.len(), 3);
    for asked in &seen {
        assert!(
            asked.line.starts_with("POST /summarize ")
                && asked.body["prompt"].is_string()
                && asked.body["systemPrompt"].is_string()
        );
        assert!(!asked.head.contains(KEY));
    }
}

#[test]
fn a_provider_that_finds_requests_too_large_gets_smaller_ones() {
    let env = TestEnv::new();
    let mut file = omp("one", 0);
    append_turns(&mut file, "m0", 0, 200);
    env.write("a.jsonl", &file);
    let service = Service::start(|asked| {
        if asked.text().len() > 150_000 {
            failure(
                400,
                "",
                "This model's maximum context length is 32768 tokens. However, your messages resulted in 90000 tokens.",
            )
        } else {
            chat("A summary.")
        }
    });
    let ran = run(&env, &[], &["compact", "--json", "-m", "local/m", "--base-url", &service.url, "a.jsonl"]);
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    let sizes: Vec<usize> = service.seen().iter().map(|asked| asked.text().len()).collect();
    assert!(
        sizes.iter().any(|size| *size > 150_000) && sizes.iter().filter(|size| **size <= 150_000).count() > 2,
        "{sizes:?}"
    );
    // Every message that was to be summarised is in a request that was answered.
    let answered: String =
        service.seen().iter().map(Asked::text).filter(|text| text.len() <= 150_000).collect();
    let kept = ran.json()[0]["keptMessages"].as_u64().expect("a number") as usize;
    for n in 0..200 - kept.div_ceil(4) {
        assert!(answered.contains(&format!("Please do step {n} of the parser")), "{n}");
    }
}

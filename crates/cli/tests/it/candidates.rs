//! Which model is asked where and with what key; what happens when it fails; proxies of the environment.

use std::time::{Duration, Instant};

use crate::server::{Answer, Server};
use crate::sessions::omp;
use crate::support::{Ran, TestEnv};

const KEY: &str = "sk-live-0123456789abcdef";

/// An environment with one session, its text, and a run of `compact` on it.
fn one() -> (TestEnv, String) {
    let env = TestEnv::new();
    let old = omp("one", 60);
    env.write("a.jsonl", &old);
    (env, old)
}

fn compact(env: &TestEnv, variables: &[(&str, &str)], flags: &[&str]) -> Ran {
    let mut command = env.command(["compact"].iter().chain(flags).chain(&["a.jsonl"]));
    command.env("SESSTOOL_RETRY_BASE_DELAY_MS", "1").envs(variables.iter().copied());
    Ran::of(command.output().expect("it starts"))
}

fn count_of(server: &Server, model: &str) -> usize {
    server.asked().iter().filter(|asked| asked.model() == model).count()
}

#[test]
fn the_next_model_is_asked_when_one_fails_and_goes_on() {
    let (env, _) = one();
    let server = Server::start(|asked| match asked.model() {
        "bad" => Answer::error(400, "broken model"),
        _ => Answer::chat("A summary.", 10, 10),
    });
    let ran =
        compact(&env, &[], &["--json", "--model", "my/bad", "--model", "my/good", "--base-url", &server.url]);
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    // Three summaries, each asked of the first model first.
    assert_eq!((count_of(&server, "bad"), count_of(&server, "good")), (3, 3));
    assert!(
        ran.json()[0]["requests"].as_array().is_some_and(|all| all.iter().all(|it| it["model"] == "good"))
    );
}

#[test]
fn every_failure_leaves_the_file_as_it_was_and_is_one_line() {
    type Play = fn() -> Answer;
    let failures: [(&str, Play); 8] = [
        ("refuses", || Answer::error(400, "no\nsuch\r\nmodel")),
        ("the key", || Answer::error(401, "bad key")),
        ("busy", || Answer::error(529, "overloaded")),
        ("cut", Answer::cut),
        ("half", || {
            Answer::raw(
                "HTTP/1.1 200 X\r\ncontent-type: application/json\r\ncontent-length: 90\r\n\r\n{\"cho",
            )
            .then_cut()
        }),
        ("empty", || Answer::chat("", 10, 10)),
        ("no JSON", || Answer::whole(200, &[("content-type", "application/json")], "<html>")),
        ("elsewhere", || Answer::whole(307, &[("location", "http://elsewhere.invalid/v1")], "")),
    ];
    for (name, answer) in failures {
        let (env, old) = one();
        let server = Server::start(move |_| answer());
        let ran = compact(&env, &[], &["-q", "--model", "my/x", "--base-url", &server.url]);
        assert_eq!((ran.status, &*ran.stdout), (Some(1), ""), "{name}");
        let errors: Vec<&str> = ran.stderr.lines().filter(|line| !line.starts_with("hint: ")).collect();
        assert!(
            errors.len() == 1 && errors[0].starts_with("error: a.jsonl: my/x: "),
            "{name}: {}",
            ran.stderr
        );
        assert_eq!(env.read("a.jsonl"), old, "{name}");
        assert_eq!(env.names(), ["a.jsonl"], "{name}");
    }
}

#[test]
fn a_short_wait_that_is_asked_for_is_waited() {
    let (env, _) = one();
    let server = Server::start(|asked| match asked.number {
        0 => Answer::whole(429, &[("retry-after-ms", "700")], ""),
        _ => Answer::chat("A summary.", 10, 10),
    });
    let begun = Instant::now();
    let ran =
        compact(&env, &[], &["--events", "e.jsonl", "-q", "--model", "my/x", "--base-url", &server.url]);
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    assert!(begun.elapsed() >= Duration::from_millis(700));
    let events: Vec<serde_json::Value> =
        env.read("e.jsonl").lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let start = events.iter().find(|event| event["type"] == "auto_retry_start").expect("a retry");
    assert_eq!((start["delayMs"].as_u64(), start["attempt"].as_u64()), (Some(700), Some(1)));
    let end = events.iter().find(|event| event["type"] == "auto_retry_end").expect("its end");
    assert_eq!(end["success"], true);
}

#[test]
fn a_wait_above_thirty_seconds_is_left_for_the_next_model() {
    let (env, _) = one();
    let server = Server::start(|asked| match asked.model() {
        "busy" => Answer::whole(429, &[("retry-after", "31")], ""),
        _ => Answer::chat("A summary.", 10, 10),
    });
    let begun = Instant::now();
    let ran =
        compact(&env, &[], &["-q", "--model", "my/busy", "--model", "my/free", "--base-url", &server.url]);
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
    assert_eq!((count_of(&server, "busy"), count_of(&server, "free")), (3, 3));
}

#[test]
fn a_key_is_sent_and_is_nowhere_else() {
    // Providers echo what they were sent: in an error of one piece, of a stream, and in a header.
    let echoes: [fn(&str) -> Answer; 4] = [
        |key| Answer::error(401, &format!("the key {key} is wrong")),
        |key| Answer::error(500, &format!("oh {key}")),
        |key| Answer::whole(307, &[("location", &format!("http://{key}.invalid/?key={key}"))], ""),
        |key| Answer::events(&[serde_json::json!({"error": {"message": format!("no {key}")}})]),
    ];
    for (provider, variable) in [
        ("my", "MY_API_KEY"),
        ("openai", "OPENAI_API_KEY"),
        ("anthropic", "ANTHROPIC_API_KEY"),
        ("google", "GEMINI_API_KEY"),
    ] {
        for (n, echo) in echoes.iter().copied().enumerate() {
            let (env, old) = one();
            let server = Server::start(move |_| echo(KEY));
            let model = format!("{provider}/x");
            let flags = ["-v", "--events", "e.jsonl", "--model", &model, "--base-url", &server.url];
            let ran = compact(&env, &[(variable, KEY)], &flags);
            assert_eq!(ran.status, Some(1), "{provider} {n}");
            let asked = server.asked();
            assert!(
                asked[0].headers.iter().any(|(_, value)| value.contains(KEY)),
                "{provider}: {:?}",
                asked[0].headers
            );
            assert!(!asked[0].path.contains(KEY) && !asked[0].text().contains(KEY), "{provider}");
            for (place, text) in
                [("stdout", &ran.stdout), ("stderr", &ran.stderr), ("events", &env.read("e.jsonl"))]
            {
                assert!(!text.contains(KEY), "{provider} {n}: {place}: {text}");
            }
            assert_eq!(env.read("a.jsonl"), old);
        }
    }
}

#[test]
fn a_key_is_in_no_file_of_a_compaction_that_went_well() {
    let (env, _) = one();
    // It is shown in what is kept of an answer.
    let echo = serde_json::json!({
        "choices": [{"message": {"content": format!("A summary with {KEY}.")}, "finish_reason": "stop"}],
        "model": format!("gpt-5 of {KEY}")
    });
    let server = Server::start(move |_| Answer::json(200, &echo));
    let flags = ["-v", "--json", "--events", "e.jsonl", "--model", "openai/gpt-5", "--base-url", &server.url];
    let ran = compact(&env, &[("OPENAI_API_KEY", KEY)], &flags);
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    assert_eq!(server.asked()[0].header("authorization"), Some(&*format!("Bearer {KEY}")));
    for name in env.names() {
        assert!(!env.read(&name).contains(KEY), "{name}");
    }
    assert!(!ran.stdout.contains(KEY) && !ran.stderr.contains(KEY));
    let mut command = env.command(["settings", "-v", "--json"]);
    let shown = Ran::of(command.env("OPENAI_API_KEY", KEY).output().expect("it starts"));
    assert!(!shown.stdout.contains(KEY) && !shown.stderr.contains(KEY));
}

#[test]
fn one_address_for_models_of_several_providers_is_refused() {
    let (env, old) = one();
    let server = Server::start(|_| Answer::chat("A summary.", 10, 10));
    let keys = [("OPENAI_API_KEY", KEY), ("MY_API_KEY", "my-own-key")];
    let flags = ["--model", "my/x", "--model", "openai/gpt-5", "--base-url", &server.url];
    let ran = compact(&env, &keys, &flags);
    assert_eq!(ran.status, Some(2));
    assert_eq!(
        ran.stderr,
        "error: --base-url: one address for models of my, openai\nhint: say whose it is, for example --base-url my=URL\n"
    );
    assert_eq!((server.count(), env.read("a.jsonl")), (0, old));
}

#[test]
fn each_key_goes_to_the_address_that_was_given_for_its_provider() {
    let (env, _) = one();
    let first = Server::start(|_| Answer::error(400, "not today"));
    let second = Server::start(|_| Answer::chat("A summary.", 10, 10));
    let keys = [("OPENAI_API_KEY", KEY), ("MY_API_KEY", "my-own-key")];
    let urls = format!("my={} openai={}", first.url, second.url);
    let ran =
        compact(&env, &keys, &["-q", "--model", "my/x", "--model", "openai/gpt-5", "--base-url", &urls]);
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    let key = |server: &Server| server.asked()[0].header("authorization").map(str::to_owned);
    assert_eq!(
        (key(&first).as_deref(), key(&second)),
        (Some("Bearer my-own-key"), Some(format!("Bearer {KEY}")))
    );
    let wrong = compact(&env, &keys, &["--model", "my/x", "--base-url", "other=http://127.0.0.1:1"]);
    assert!(
        wrong.stderr.starts_with("error: --base-url: no model of \"other\" is asked\n"),
        "{}",
        wrong.stderr
    );
}

#[test]
fn a_key_does_not_go_to_an_address_of_the_settings_file_that_was_meant_for_other_models() {
    let (env, old) = one();
    let server = Server::start(|_| Answer::chat("A summary.", 10, 10));
    env.write_settings(&format!(r#"{{"models":{{"candidates":["my/x"],"baseUrl":"{}"}}}}"#, server.url));
    let keys = [("OPENAI_API_KEY", KEY)];
    let ran = compact(&env, &keys, &["--model", "openai/gpt-5"]);
    assert_eq!((ran.status, server.count()), (Some(2), 0));
    assert!(ran.stderr.contains("the key of openai is not sent"), "{}", ran.stderr);
    assert_eq!(env.read("a.jsonl"), old);
    env.write_settings(&format!(
        r#"{{"models":{{"candidates":["my/x"],"baseUrl":"openai={}"}}}}"#,
        server.url
    ));
    assert_eq!(compact(&env, &keys, &["-q", "--model", "openai/gpt-5"]).status, Some(0));
}

#[test]
fn model_and_address_come_from_the_nearest_place() {
    let (env, old) = one();
    let servers: Vec<Server> =
        (0..3).map(|_| Server::start(|_| Answer::chat("A summary.", 10, 10))).collect();
    let url = |n: usize| servers[n].url.as_str();
    env.write_settings(&format!(r#"{{"models":{{"candidates":["my/file"],"baseUrl":"{}"}}}}"#, url(0)));
    let variables = [("SESSTOOL_MODELS_CANDIDATES", "my/variable"), ("SESSTOOL_MODELS_BASE_URL", url(1))];
    type Run<'a> = (&'a [(&'a str, &'a str)], &'a [&'a str], usize, &'a str);
    let runs: [Run<'_>; 4] = [
        (&[], &[], 0, "file"),
        (&variables, &[], 1, "variable"),
        (&variables, &["--model", "my/flag", "--base-url", url(2)], 2, "flag"),
        (&variables[1..], &["--model", "my/flag"], 1, "flag"),
    ];
    for (variables, flags, at, model) in runs {
        env.write("a.jsonl", &old);
        let before: Vec<usize> = servers.iter().map(Server::count).collect();
        let ran = compact(&env, variables, &[&["-q"], flags].concat());
        assert_eq!(ran.status, Some(0), "{model}: {}", ran.stderr);
        for (n, server) in servers.iter().enumerate() {
            assert_eq!(server.count() > before[n], n == at, "{model}: server {n}");
        }
        assert_eq!(servers[at].asked().last().expect("a request").model(), model);
    }
}

#[test]
fn proxies_of_the_environment_are_used_except_where_they_are_not_wanted() {
    let model = ["-q", "--model", "my/x", "--base-url", "http://models.invalid:81/v1"];
    for variable in ["HTTP_PROXY", "http_proxy", "ALL_PROXY"] {
        let (env, old) = one();
        // A proxy that lets nobody through: what it was asked for is what counts.
        let proxy = Server::start(|_| Answer::whole(403, &[], "not through here").then_cut());
        let ran = compact(&env, &[(variable, &proxy.url), ("MY_API_KEY", KEY)], &model);
        assert_eq!(ran.status, Some(1), "{variable}");
        let asked = proxy.asked();
        assert!(!asked.is_empty(), "{variable}: {}", ran.stderr);
        for asked in asked {
            assert!(asked.path.contains("models.invalid:81"), "{variable}: {} {}", asked.method, asked.path);
            // What opens the tunnel has no business with the key.
            assert!(asked.method != "CONNECT" || asked.header("authorization").is_none());
        }
        assert_eq!(env.read("a.jsonl"), old);
        let before = proxy.count();
        let without = compact(&env, &[(variable, &proxy.url), ("NO_PROXY", "models.invalid")], &model);
        assert_eq!((without.status, proxy.count()), (Some(1), before), "{variable}");
    }
}

#[test]
fn an_address_behind_tls_goes_through_the_proxy_as_a_tunnel() {
    let (env, _) = one();
    let proxy = Server::start(|_| Answer::whole(403, &[], "").then_cut());
    let flags = ["-q", "--model", "my/x", "--base-url", "https://models.invalid/v1"];
    assert_eq!(compact(&env, &[("HTTPS_PROXY", &proxy.url)], &flags).status, Some(1));
    let asked = proxy.asked();
    assert_eq!((&*asked[0].method, &*asked[0].path), ("CONNECT", "models.invalid:443"));
}

#[test]
fn this_machine_is_asked_without_a_proxy() {
    let (env, _) = one();
    let proxy = Server::start(|_| Answer::whole(403, &[], ""));
    let server = Server::start(|_| Answer::chat("A summary.", 10, 10));
    let ran = compact(
        &env,
        &[("HTTP_PROXY", &proxy.url), ("ALL_PROXY", &proxy.url)],
        &["-q", "--model", "my/x", "--base-url", &server.url],
    );
    assert_eq!((ran.status, proxy.count()), (Some(0), 0), "{}", ran.stderr);
}

//! How a provider is opened: names, addresses, keys, proxies, secure connections.

use summarizer::error::Failure;
use summarizer::provider::{Limits, ModelSetup, Wire, open};
use summarizer::secret::Secret;

use crate::server::Server;
use crate::{KEY, ask, limits, provider};

const CHAT: Wire = Wire::ChatCompletions;

#[test]
fn setups_that_cannot_work() {
    let message = |model: &str, base_url: Option<&str>| {
        let setup = ModelSetup {
            model: model.to_owned(),
            base_url: base_url.map(str::to_owned),
            key: None,
            wire: None,
            limits: Limits::default(),
        };
        let error = open(&setup).err().unwrap();
        format!("{error} | {}", error.hint)
    };
    assert!(message("gpt-5", None).starts_with("model \"gpt-5\" is not of the form NAME/ID | "));
    assert!(message("/x", None).starts_with("model \"/x\" is not"));
    assert!(
        message("nobody/x", None).starts_with("unknown provider \"nobody\" | known are anthropic, openai, ")
    );
    assert_eq!(
        message("openai/gpt-5", None),
        "no key for openai | set the environment variable OPENAI_API_KEY"
    );
    assert!(message("x/y", Some("localhost:80")).contains("address"));
}

#[test]
fn a_proxy_under_openais_name_is_asked_for_chat_completions() {
    let server = Server::start([]);
    let setup = ModelSetup {
        model: "openai/gpt-5".to_owned(),
        base_url: Some(server.url.clone()),
        key: None,
        wire: None,
        limits: limits(),
    };
    let provider = open(&setup).unwrap();
    assert_eq!(provider.name(), "openai/gpt-5");
    ask(&*provider).unwrap_err();
    assert_eq!(server.only().line, "POST /v1/chat/completions HTTP/1.1");
    assert_eq!(server.only().header("authorization"), None);
}

#[test]
fn each_name_has_its_own_way_of_speaking() {
    for (model, line) in [
        ("anthropic/m", "POST /v1/messages HTTP/1.1"),
        ("google/m", "POST /v1beta/models/m:streamGenerateContent?alt=sse HTTP/1.1"),
        ("openrouter/m", "POST /v1/chat/completions HTTP/1.1"),
        ("nobody-knows/m", "POST /v1/chat/completions HTTP/1.1"),
    ] {
        let server = Server::start([]);
        let setup = ModelSetup {
            model: model.to_owned(),
            base_url: Some(server.url.clone()),
            key: Secret::new(KEY).unwrap(),
            wire: None,
            limits: limits(),
        };
        ask(&*open(&setup).unwrap()).unwrap_err();
        assert_eq!(server.only().line, line);
    }
}

#[test]
fn a_proxy_of_the_environment_is_not_used_for_this_machine() {
    // The environment is the process's, so another one runs a test that needs the way to be free.
    let status = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "wires::chat_completions_whole", "--quiet"])
        .env("HTTP_PROXY", "http://127.0.0.1:1")
        .env("ALL_PROXY", "http://127.0.0.1:1")
        .env_remove("NO_PROXY")
        .stdout(std::process::Stdio::null())
        .status()
        .unwrap();
    assert!(status.success());
}

#[test]
fn a_server_that_does_not_speak_tls_is_not_asked_again() {
    use std::io::{Read as _, Write as _};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    let server = std::thread::spawn(move || {
        let (mut connection, _) = listener.accept().unwrap();
        let mut hello = [0; 16 << 10];
        let n = connection.read(&mut hello).unwrap();
        connection.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").unwrap();
        hello[..n].to_vec()
    });
    let error = ask(&*provider("p/m", &url, CHAT)).unwrap_err();
    assert_eq!(error.failure, Failure::Permanent, "{error}");
    assert!(error.message.starts_with("no secure connection: "), "{error}");
    let hello = server.join().unwrap();
    assert!(
        !hello.windows(crate::KEY.len()).any(|part| part == crate::KEY.as_bytes()),
        "the key was sent in clear"
    );
}

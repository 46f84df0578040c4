//! No error, debug output or message shows a key.

use serde_json::json;
use summarizer::error::Error;
use summarizer::provider::{ModelSetup, Wire};
use summarizer::secret::Secret;

use crate::server::{Server, Step, answer, events, json as whole, stream};
use crate::{KEY, ask, limits, provider};

#[track_caller]
fn hides(what: &str) {
    assert!(!what.contains(KEY), "{what}");
}

#[test]
fn providers_that_echo_the_key_do_not_get_it_printed() {
    let echo = format!("Incorrect API key provided: {KEY}. Header was Bearer {KEY}");
    let plays = [
        whole(401, &json!({"error": {"message": echo}})),
        answer(400, &[], echo.as_bytes()),
        answer(500, &[], format!("{{\"error\":\"{echo}\"}}").as_bytes()),
        events(&[json!({"type": "error", "error": {"message": echo}})]),
        stream(&[format!("data: {KEY}\n\n").as_bytes()]),
        answer(307, &[("location", &format!("http://{KEY}.example.com/?{KEY}"))], b""),
        answer(200, &[("content-type", "application/json")], KEY.as_bytes()),
        vec![Step::Close],
        vec![Step::Send(format!("HTTP/1.1 {KEY}\r\n\r\n").into_bytes()), Step::Close],
    ];
    for play in plays {
        for wire in [Wire::Messages, Wire::Responses, Wire::ChatCompletions, Wire::Gemini] {
            let server = Server::start([play.clone(), vec![Step::Close]]);
            let error = ask(&*provider("p/m", &server.url, wire)).unwrap_err();
            hides(&format!("{error} {error:?} {error:#?}"));
            let failed = Error::Failed(vec![error]);
            hides(&format!("{failed} {failed:?} {:?}", failed.hint()));
        }
    }
}

#[test]
fn a_setup_can_be_printed() {
    let setup = ModelSetup {
        model: "openai/gpt-5".to_owned(),
        base_url: None,
        key: Secret::new(KEY).unwrap(),
        wire: None,
        limits: limits(),
    };
    hides(&format!("{setup:?} {setup:#?}"));
    assert!(format!("{setup:?}").contains("Secret(***)"));
}

//! Answers that are none: errors in each provider's words, broken streams, silence, cancelling.

use std::time::Duration;

use serde_json::{Value, json};
use summarizer::cancel::Cancel;
use summarizer::error::{Failure, ProviderError, RetryAfter};
use summarizer::provider::{Limits, Provider as _, SummarizerCommand, Wire};

use crate::server::{Play, Server, Step, answer, events, head, json as whole, open_stream, stream, then};
use crate::{ask, limits, provider, request, with_limits};

const CHAT: Wire = Wire::ChatCompletions;
const EMPTY: Failure = Failure::Empty { only_reasoning: false };
const REASONING: Failure = Failure::Empty { only_reasoning: true };

fn failing(wire: Wire, play: Play) -> ProviderError {
    let server = Server::start([play]);
    let error = ask(&*provider("p/m", &server.url, wire)).unwrap_err();
    server.only();
    error
}

#[track_caller]
fn fails(wire: Wire, play: Play, failure: Failure, message: &str) {
    let error = failing(wire, play);
    assert_eq!((error.failure, error.message.as_str()), (failure, message));
}

fn overflow(prompt_tokens: u64, window: u64) -> Failure {
    let some = |n| if n == 0 { None } else { Some(n) };
    Failure::Overflow { prompt_tokens: some(prompt_tokens), window: some(window) }
}

fn text_events(wire: Wire, text: &str) -> Vec<Value> {
    match wire {
        Wire::Messages => {
            vec![json!({"type": "content_block_delta", "delta": {"type": "text_delta", "text": text}})]
        }
        Wire::Responses => vec![json!({"type": "response.output_text.delta", "delta": text})],
        Wire::ChatCompletions => vec![json!({"choices": [{"delta": {"content": text}}]})],
        Wire::Gemini => vec![json!({"candidates": [{"content": {"parts": [{"text": text}]}}]})],
    }
}

const WIRES: [Wire; 4] = [Wire::Messages, Wire::Responses, Wire::ChatCompletions, Wire::Gemini];

/// The events of an answer that stops for `reason`, in the wire's own word for it.
fn ending(wire: Wire, reason: &str) -> Vec<Value> {
    match wire {
        Wire::Messages => vec![
            json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 1000}}),
            json!({"type": "message_stop"}),
        ],
        Wire::Responses if reason == "completed" => {
            vec![json!({"type": "response.completed", "response": {"status": "completed", "output": []}})]
        }
        Wire::Responses => vec![json!({"type": "response.incomplete", "response":
            {"status": "incomplete", "incomplete_details": {"reason": reason}, "output": []}})],
        Wire::ChatCompletions => vec![json!({"choices": [{"delta": {}, "finish_reason": reason}]})],
        Wire::Gemini => vec![json!({"candidates": [{"finishReason": reason}]})],
    }
}

fn played(wire: Wire, text: &str, reason: &str) -> Play {
    let mut all = if text.is_empty() { Vec::new() } else { text_events(wire, text) };
    all.extend(ending(wire, reason));
    events(&all)
}

#[test]
fn an_answer_at_the_output_limit() {
    for (wire, reason) in WIRES.into_iter().zip(["max_tokens", "max_output_tokens", "length", "MAX_TOKENS"]) {
        fails(
            wire,
            played(wire, "half", reason),
            Failure::CutOff,
            "the answer was cut off at the limit of 1000 tokens",
        );
    }
}

#[test]
fn an_empty_answer() {
    for (wire, reason) in WIRES.into_iter().zip(["end_turn", "completed", "stop", "STOP"]) {
        fails(wire, played(wire, "", reason), EMPTY, "the answer is empty");
        fails(wire, played(wire, " \n", reason), EMPTY, "the answer is empty");
    }
}

#[test]
fn a_refusal() {
    for (wire, reason) in WIRES.into_iter().zip(["refusal", "content_filter", "content_filter", "SAFETY"]) {
        let message = format!("the model did not answer ({reason})");
        fails(wire, played(wire, "I", reason), Failure::Refused, &message);
    }
    fails(
        CHAT,
        events(&[json!({"choices": [{"delta": {"refusal": "I won't"}, "finish_reason": "stop"}]})]),
        Failure::Refused,
        "the model did not answer (I won't)",
    );
    fails(
        Wire::Gemini,
        events(&[json!({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}})]),
        Failure::Refused,
        "the model did not answer (PROHIBITED_CONTENT)",
    );
    let refusal = json!({"status": "completed", "output": [{"type": "message", "content": [{"type": "refusal", "refusal": "no"}]}]});
    fails(Wire::Responses, whole(200, &refusal), Failure::Refused, "the model did not answer (no)");
}

#[test]
fn only_reasoning() {
    let thoughts = [
        (Wire::Messages, json!({"type": "content_block_delta", "delta": {"thinking": "hm"}}), "end_turn"),
        (
            Wire::Responses,
            json!({"type": "response.reasoning_summary_text.delta", "delta": "hm"}),
            "completed",
        ),
        (CHAT, json!({"choices": [{"delta": {"reasoning": "hm"}}]}), "stop"),
        (
            Wire::Gemini,
            json!({"candidates": [{"content": {"parts": [{"text": "hm", "thought": true}]}}]}),
            "STOP",
        ),
    ];
    for (wire, thought, reason) in thoughts {
        let all: Vec<Value> = [thought].into_iter().chain(ending(wire, reason)).collect();
        fails(wire, events(&all), REASONING, "the answer is only reasoning");
    }
    fails(
        CHAT,
        events(&[json!({"choices": [{"delta": {"reasoning_content": "hm"}, "finish_reason": "length"}]})]),
        Failure::CutOff,
        "the model reasoned until the limit of 1000 tokens and did not answer",
    );
}

#[test]
fn a_tool_call() {
    let message = "the model called a tool instead of answering";
    fails(
        CHAT,
        events(&[
            json!({"choices": [{"delta": {"content": "Let me", "tool_calls": [{"id": "1"}]}, "finish_reason": "tool_calls"}]}),
        ]),
        Failure::Refused,
        message,
    );
    fails(Wire::Messages, played(Wire::Messages, "Let me", "tool_use"), Failure::Refused, message);
    fails(
        Wire::Responses,
        whole(200, &json!({"status": "completed", "output": [{"type": "function_call", "name": "x"}]})),
        Failure::Refused,
        message,
    );
    fails(
        Wire::Gemini,
        events(&[
            json!({"candidates": [{"content": {"parts": [{"functionCall": {"name": "x"}}]}, "finishReason": "STOP"}]}),
        ]),
        Failure::Refused,
        message,
    );
}

#[test]
fn the_window_is_full_before_the_end() {
    fails(
        Wire::Messages,
        played(Wire::Messages, "half", "model_context_window_exceeded"),
        overflow(0, 0),
        "the model's window was full before the answer was complete",
    );
}

#[test]
fn an_overflow_in_each_providers_words() {
    let said =
        |wire, status, body: Value, failure| assert_eq!(failing(wire, whole(status, &body)).failure, failure);
    said(
        Wire::Messages,
        400,
        json!({"type": "error", "error": {"type": "invalid_request_error", "message": "prompt is too long: 219898 tokens > 200000 maximum"}}),
        overflow(219_898, 200_000),
    );
    said(
        Wire::Messages,
        413,
        json!({"type": "error", "error": {"type": "request_too_large", "message": "too large"}}),
        overflow(0, 0),
    );
    said(
        Wire::Responses,
        400,
        json!({"error": {"message": "Your input exceeds the context window of this model.", "code": "context_length_exceeded"}}),
        overflow(0, 0),
    );
    said(
        CHAT,
        400,
        json!({"error": {"code": 400, "message": "request (66202 tokens) exceeds the available context size (65536 tokens)", "type": "exceed_context_size_error"}}),
        overflow(66_202, 65_536),
    );
    said(
        Wire::Gemini,
        400,
        json!([{"error": {"code": 400, "message": "The input token count (1200293) exceeds the maximum number of tokens allowed (1048576).", "status": "INVALID_ARGUMENT"}}]),
        overflow(1_200_293, 1_048_576),
    );
    assert_eq!(failing(CHAT, answer(413, &[], b"")).failure, overflow(0, 0));
}

#[test]
fn an_overflow_in_the_middle_of_a_stream() {
    let error = json!({"type": "error", "error": {"code": "context_length_exceeded", "message": "Your input exceeds the context window of this model."}});
    let failed = json!({"type": "response.failed", "response": {"status": "failed", "error": {"code": "context_length_exceeded", "message": "too long"}}});
    assert_eq!(failing(Wire::Responses, events(&[error])).failure, overflow(0, 0));
    assert_eq!(failing(Wire::Responses, events(&[failed])).failure, overflow(0, 0));
}

#[test]
fn statuses_and_waits() {
    let check = |status, headers: &[(&str, &str)], body: &str, failure, retry_after: Option<RetryAfter>| {
        let error = failing(CHAT, answer(status, headers, body.as_bytes()));
        assert_eq!(
            (error.failure, error.status, error.retry_after),
            (failure, Some(status), retry_after),
            "{error}"
        );
    };
    let after = |ms| Some(RetryAfter::In(Duration::from_millis(ms)));
    check(429, &[], "", Failure::Transient, None);
    check(429, &[("Retry-After", "7")], "{}", Failure::Transient, after(7000));
    check(429, &[("retry-after-ms", "1500"), ("retry-after", "60")], "", Failure::Transient, after(1500));
    check(
        429,
        &[
            ("x-ratelimit-remaining-tokens", "0"),
            ("x-ratelimit-reset-tokens", "1m30s"),
            ("x-ratelimit-reset-requests", "1s"),
        ],
        "",
        Failure::Transient,
        after(90_000),
    );
    check(
        429,
        &[("x-ratelimit-reset", "1796103600")],
        "",
        Failure::Transient,
        Some(RetryAfter::At(1_796_103_600_000)),
    );
    check(
        429,
        &[],
        r#"{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","message":"slow","details":[{"retryDelay":"34s"}]}}"#,
        Failure::Transient,
        after(34_000),
    );
    check(429, &[], r#"{"error":{"code":"insufficient_quota","message":"pay"}}"#, Failure::UsageLimit, None);
    check(500, &[], "<html>", Failure::Transient, None);
    check(
        503,
        &[("retry-after", "2")],
        r#"{"error":{"message":"Loading model"}}"#,
        Failure::Transient,
        after(2000),
    );
    check(
        529,
        &[],
        r#"{"error":{"type":"overloaded_error","message":"Overloaded"}}"#,
        Failure::Transient,
        None,
    );
    check(401, &[], r#"{"error":{"message":"wrong"}}"#, Failure::Auth, None);
    check(404, &[], r#"{"error":"model not found"}"#, Failure::Permanent, None);
    check(404, &[("retry-after", "4")], "", Failure::Permanent, after(4000));
}

#[test]
fn an_error_in_the_middle_of_a_stream() {
    let mut overloaded = text_events(Wire::Messages, "half");
    overloaded.push(json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}));
    fails(Wire::Messages, events(&overloaded), Failure::Transient, "Overloaded");
    fails(
        Wire::Responses,
        events(&[json!({"type": "error", "code": "server_error", "message": "sorry"})]),
        Failure::Transient,
        "sorry",
    );
    fails(
        CHAT,
        events(&[
            json!({"error": {"code": 502, "message": "upstream is gone"}, "choices": [{"delta": {}, "finish_reason": "error"}]}),
        ]),
        Failure::Transient,
        "http 502: upstream is gone",
    );
    fails(
        CHAT,
        events(&[json!({"choices": [{"delta": {}, "finish_reason": "error"}]})]),
        Failure::Transient,
        "the answer ended with an error",
    );
    fails(
        Wire::Gemini,
        events(&[json!({"error": {"code": 503, "message": "busy"}})]),
        Failure::Transient,
        "http 503: busy",
    );
    // As a whole answer with a good status.
    fails(
        CHAT,
        whole(200, &json!({"error": {"message": "no", "type": "invalid_request_error"}})),
        Failure::Permanent,
        "no",
    );
}

#[test]
fn a_stream_that_ends_without_its_end() {
    for wire in WIRES {
        let play = events(&text_events(wire, "half"));
        fails(wire, play, Failure::Transient, "the connection ended before the answer was complete");
    }
}

#[test]
fn a_close_delimited_stream_that_is_cut() {
    let mut bytes = head(200, &[("content-type", "text/event-stream"), ("connection", "close")]);
    bytes.extend_from_slice(b"\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"half\"}}]}\n\n");
    let play = vec![Step::Send(bytes), Step::Close];
    fails(CHAT, play, Failure::Transient, "the connection ended before the answer was complete");
}

#[test]
fn a_connection_that_is_cut() {
    let cut = |bytes: &[u8]| then(open_stream(&[bytes]), Step::Close);
    for bytes in [&b"data: {\"choices\":[{\"delta\":{\"content\":\"half\"}}]}\n\n"[..], b"data: {\"choi", b""]
    {
        assert_eq!(failing(CHAT, cut(bytes)).failure, Failure::Transient);
    }
    // In the middle of the head, where there is no answer yet: once more.
    let half = || vec![Step::Send(b"HTTP/1.1 200 OK\r\ncontent-".to_vec()), Step::Close];
    let server = Server::start([half(), half()]);
    assert_eq!(ask(&*provider("p/m", &server.url, CHAT)).unwrap_err().failure, Failure::Transient);
    assert_eq!(server.seen().len(), 2);
    // Behind the end it does not matter.
    let done = b"data: {\"choices\":[{\"delta\":{\"content\":\"text\"},\"finish_reason\":\"stop\"}]}\n\n";
    let server = Server::start([cut(done)]);
    assert_eq!(ask(&*provider("p/m", &server.url, CHAT)).unwrap().text, "text");
}

#[test]
fn a_connection_that_breaks_before_any_answer_is_tried_once_more() {
    let good =
        || whole(200, &json!({"choices": [{"message": {"content": "text"}, "finish_reason": "stop"}]}));
    // A kept connection that the server closes after its answer, and one that it closes at once.
    let server = Server::start([then(good(), Step::Close), good()]);
    let kept = provider("p/m", &server.url, CHAT);
    assert_eq!(ask(&*kept).unwrap().text, "text");
    assert_eq!(ask(&*kept).unwrap().text, "text");
    assert_eq!(server.seen().len(), 2);

    let server = Server::start([vec![Step::Close], good()]);
    assert_eq!(ask(&*provider("p/m", &server.url, CHAT)).unwrap().text, "text");

    let server = Server::start([vec![Step::Close], vec![Step::Close], good()]);
    assert_eq!(ask(&*provider("p/m", &server.url, CHAT)).unwrap_err().failure, Failure::Transient);
    assert_eq!(server.seen().len(), 2);
}

#[test]
fn nobody_listens() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let error = ask(&*provider("ollama/m", &format!("http://127.0.0.1:{port}"), CHAT)).unwrap_err();
    assert_eq!(error.failure, Failure::Transient);
    assert!(error.to_string().starts_with("ollama/m: no connection: "), "{error}");
}

#[test]
fn silence() {
    let short = Limits { silence: Some(Duration::from_millis(150)), ..limits() };
    let half = b"data: {\"choices\":[{\"delta\":{\"content\":\"half\"}}]}\n\n";
    for play in [vec![Step::Hang], then(open_stream(&[half]), Step::Hang)] {
        let server = Server::start([play]);
        let error = ask(&*with_limits("p/m", &server.url, CHAT, short)).unwrap_err();
        assert_eq!(error.failure, Failure::Transient);
        assert!(error.message.starts_with("time-out"), "{error}");
    }
}

#[test]
fn cancelling_stops_a_request_at_once_and_the_next_one_works() {
    let half = b"data: {\"choices\":[{\"delta\":{\"content\":\"half\"}}]}\n\n";
    let good = whole(200, &json!({"choices": [{"message": {"content": "text"}, "finish_reason": "stop"}]}));
    // A close-delimited answer looks complete when its connection is closed by the cancelling.
    let mut delimited = head(200, &[("content-type", "text/event-stream"), ("connection", "close")]);
    delimited.extend_from_slice(b"\r\n");
    delimited.extend_from_slice(half);
    for play in
        [vec![Step::Hang], then(open_stream(&[half]), Step::Hang), vec![Step::Send(delimited), Step::Hang]]
    {
        let server = Server::start([play, good.clone()]);
        let provider = provider("p/m", &server.url, CHAT);
        let cancel = Cancel::new();
        std::thread::scope(|scope| {
            let asked = scope.spawn(|| provider.complete(&request(), &cancel, &|_| {}));
            while server.seen().is_empty() {
                std::thread::yield_now();
            }
            cancel.cancel();
            assert_eq!(asked.join().unwrap().unwrap_err().failure, Failure::Cancelled);
        });
        assert_eq!(provider.complete(&request(), &cancel, &|_| {}).unwrap_err().failure, Failure::Cancelled);
        assert_eq!(server.seen().len(), 1);
        assert_eq!(ask(&*provider).unwrap().text, "text");
    }
}

#[test]
fn redirects_on_the_same_host_are_followed_with_the_same_request() {
    let good = whole(200, &json!({"choices": [{"message": {"content": "text"}, "finish_reason": "stop"}]}));
    let server = Server::start([answer(307, &[("location", "/v2/chat")], b""), good]);
    assert_eq!(ask(&*provider("p/m", &server.url, CHAT)).unwrap().text, "text");
    let seen = server.seen();
    assert_eq!(seen[1].line, "POST /v2/chat HTTP/1.1");
    assert_eq!(seen[0].body, seen[1].body);
    assert_eq!(seen[0].header("authorization"), seen[1].header("authorization"));
}

#[test]
fn redirects_to_another_host_are_not_followed() {
    for status in [301, 302, 303, 307, 308] {
        let other = Server::start([]);
        let location = format!("{}/v1", other.url.replace("127.0.0.1", "localhost"));
        let same_host_other_port = Server::start([]);
        for location in [location, format!("{}/x", same_host_other_port.url), "nonsense".to_owned()] {
            let error = failing(CHAT, answer(status, &[("location", &location)], b""));
            assert_eq!((error.failure, error.status), (Failure::Permanent, Some(status)));
            assert!(error.message.ends_with("which is not the host that was asked for"), "{error}");
        }
        assert_eq!((other.seen(), same_host_other_port.seen()), (vec![], vec![]));
    }
}

#[test]
fn redirects_in_a_circle_end() {
    let server = Server::start(std::iter::repeat_n(answer(308, &[("location", "/again")], b""), 20));
    let error = ask(&*provider("p/m", &server.url, CHAT)).unwrap_err();
    assert_eq!((error.failure, error.message.as_str()), (Failure::Permanent, "redirected too often"));
    assert_eq!(server.seen().len(), 6);
}

#[test]
fn an_answer_of_ten_megabytes() {
    let text = "0123456789".repeat(1 << 20);
    let good = json!({"choices": [{"message": {"content": text}, "finish_reason": "stop"}]});
    let mut streamed: Vec<Value> = vec![json!({"choices": [{"delta": {"content": text}}]}); 2];
    streamed.extend(ending(CHAT, "stop"));
    let server = Server::start([whole(200, &good), events(&streamed)]);
    let provider = provider("p/m", &server.url, CHAT);
    assert_eq!(ask(&*provider).unwrap().text.len(), 10 << 20);
    assert_eq!(ask(&*provider).unwrap().text.len(), 20 << 20);
}

#[test]
fn an_answer_without_end_is_given_up() {
    let piece = vec![b' '; 8 << 20];
    let play = then(open_stream(&[piece.as_slice(); 10]), Step::Hang);
    assert_eq!(failing(CHAT, play).failure, Failure::Permanent);
}

#[test]
fn broken_framing_is_read_all_the_same() {
    let text = |pieces: &[&[u8]]| {
        let server = Server::start([stream(pieces)]);
        ask(&*provider("p/m", &server.url, CHAT)).unwrap().text
    };
    let crlf = b"\xef\xbb\xbf: hi\r\nevent: x\r\ndata:{\"choices\":[{\"delta\":{\"content\":\"\xc5\xbc\xc3\xb3\xf0\x9f\x98\x80\"},\"finish_reason\":\"stop\"}]}\r\n\r\ndata:[DONE]";
    let bytes: Vec<&[u8]> = crlf.chunks(1).collect();
    assert_eq!(text(&bytes), "żó😀");
    assert_eq!(text(&[crlf]), "żó😀");
    let invalid =
        b"data: {\"choices\":[{\"delta\":{\"content\":\"a\xff\xc5b\"},\"finish_reason\":\"stop\"}]}\n\n";
    assert_eq!(text(&[invalid]), "a\u{fffd}\u{fffd}b");
    let lone =
        b"data: {\"choices\":[{\"delta\":{\"content\":\"several\"},\ndata: \"finish_reason\":\"stop\"}]}\n\n";
    assert_eq!(text(&[lone]), "several");
}

#[test]
fn a_server_that_does_not_say_what_it_sends_is_understood() {
    let whole = br#"{"choices":[{"message":{"content":"text"},"finish_reason":"stop"}]}"#;
    let events = b"data: {\"choices\":[{\"delta\":{\"content\":\"text\"},\"finish_reason\":\"stop\"}]}\n\n";
    let server =
        Server::start([answer(200, &[], whole), answer(200, &[("content-type", "text/plain")], events)]);
    let provider = provider("p/m", &server.url, CHAT);
    assert_eq!(ask(&*provider).unwrap().text, "text");
    assert_eq!(ask(&*provider).unwrap().text, "text");
}

#[test]
fn what_is_no_json_is_no_answer() {
    assert_eq!(failing(CHAT, stream(&[b"data: hello\n\n"])).failure, Failure::Transient);
    assert_eq!(
        failing(CHAT, answer(200, &[("content-type", "application/json")], b"hello")).failure,
        Failure::Transient
    );
    assert_eq!(
        failing(CHAT, answer(200, &[("content-type", "text/html")], b"<html>login</html>")).failure,
        Failure::Transient
    );
}

#[test]
fn a_host_that_is_not_found_may_be_found_later() {
    let error = ask(&*provider("p/m", "http://no-such-host.invalid", CHAT)).unwrap_err();
    assert_eq!(error.failure, Failure::Transient, "{error}");
}

#[test]
fn a_command_is_stopped_too() {
    let command =
        SummarizerCommand { command_line: "sleep 1000".to_owned(), limit: Duration::from_secs(600) };
    let cancel = Cancel::new();
    std::thread::scope(|scope| {
        let asked = scope.spawn(|| command.complete(&request(), &cancel, &|_| {}));
        std::thread::sleep(Duration::from_millis(100));
        cancel.cancel();
        assert_eq!(asked.join().unwrap().unwrap_err().failure, Failure::Cancelled);
    });
}

#[test]
fn what_comes_behind_the_end_of_a_stream_is_passed_over() {
    let good = json!({"choices": [{"delta": {"content": "text"}, "finish_reason": "stop"}]});
    let text = format!("data:\n\ndata: {good}\n\ndata: [DONE]\n\ndata: {good}\n\n");
    let server = Server::start([stream(&[text.as_bytes()])]);
    assert_eq!(ask(&*provider("p/m", &server.url, CHAT)).unwrap().text, "text");
}

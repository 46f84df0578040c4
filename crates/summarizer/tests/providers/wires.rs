//! What each way of speaking sends, and how it reads whole and streamed answers.

use std::sync::Mutex;

use serde_json::{Value, json};
use summarizer::cancel::Cancel;
use summarizer::error::Failure;
use summarizer::provider::{Completion, Limits, Progress, Provider, RemoteEndpoint, Usage, Wire};

use crate::server::{Play, Server, answer, events, json as whole, stream};
use crate::{KEY, ask, provider, request};

/// Asks a server that plays `play`; gives the answer and checks what was sent.
#[track_caller]
fn check(
    wire: Wire,
    model: &str,
    play: Play,
    path: &str,
    key: (&str, &str),
    body: &Value,
    expected: &Completion,
) {
    let server = Server::start([play]);
    let found = ask(&*provider(model, &server.url, wire)).unwrap();
    assert_eq!(&found, expected);
    let seen = server.only();
    assert_eq!(seen.line, format!("POST {path} HTTP/1.1"));
    assert_eq!(&seen.body, body);
    assert_eq!(seen.header(key.0), Some(key.1));
    assert_eq!(seen.header("content-type"), Some("application/json"));
    assert_eq!(seen.header("accept"), Some("text/event-stream, application/json"));
    assert!(seen.header("user-agent").is_some_and(|agent| agent.starts_with("sesstool/")));
    assert_eq!(seen.headers.iter().filter(|(_, value)| value.contains(KEY)).count(), 1);
}

fn completion(text: &str, model: &str, usage: [Option<u64>; 4]) -> Completion {
    let [input, output, cache_read, cache_write] = usage;
    Completion {
        text: text.to_owned(),
        usage: Usage { input, output, cache_read, cache_write },
        model: model.to_owned(),
    }
}

fn bearer() -> (&'static str, String) {
    ("authorization", format!("Bearer {KEY}"))
}

#[track_caller]
fn check_anthropic(play: Play) {
    check(
        Wire::Messages,
        "anthropic/claude-x",
        play,
        "/v1/messages",
        ("x-api-key", KEY),
        &json!({
            "model": "claude-x", "max_tokens": 1000, "system": "Summarise.", "stream": true,
            "messages": [{"role": "user", "content": "<conversation>"}],
        }),
        &completion("## Goal\nżółć", "claude-x-1", [Some(12), Some(7), Some(30), Some(5)]),
    );
}

#[test]
fn anthropic_streamed() {
    check_anthropic(events(&[
        json!({"type": "message_start", "message": {"model": "claude-x-1", "usage":
            {"input_tokens": 12, "output_tokens": 1, "cache_read_input_tokens": 30, "cache_creation_input_tokens": 5}}}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "hm"}}),
        json!({"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}}),
        json!({"type": "ping"}),
        json!({"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "## Goal\n"}}),
        json!({"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "żółć"}}),
        json!({"type": "content_block_stop", "index": 1}),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 7}}),
        json!({"type": "message_stop"}),
    ]));
}

#[test]
fn anthropic_whole() {
    check_anthropic(whole(
        200,
        &json!({"type": "message", "model": "claude-x-1", "stop_reason": "end_turn",
            "content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "## Goal\nżółć"}],
            "usage": {"input_tokens": 12, "output_tokens": 7, "cache_read_input_tokens": 30, "cache_creation_input_tokens": 5}}),
    ));
}

#[test]
fn anthropic_sends_its_version_and_no_empty_system_prompt() {
    let server = Server::start([answer(500, &[], b"")]);
    let mut request = request();
    request.system.clear();
    let provider = provider("anthropic/claude-x", &server.url, Wire::Messages);
    provider.complete(&request, &Cancel::new(), &|_| {}).unwrap_err();
    let seen = server.only();
    assert_eq!(seen.header("anthropic-version"), Some("2023-06-01"));
    assert_eq!(seen.body.get("system"), None);
}

#[track_caller]
fn check_responses(play: Play) {
    let (name, key) = bearer();
    check(
        Wire::Responses,
        "openai/gpt-5",
        play,
        "/v1/responses",
        (name, &key),
        &json!({
            "model": "gpt-5", "instructions": "Summarise.", "input": [{"role": "user", "content": "<conversation>"}],
            "max_output_tokens": 1000, "store": false, "stream": true, "reasoning": {"effort": "minimal"},
        }),
        &completion("## Goal\nx", "gpt-5-2025-08-07", [Some(90), Some(20), Some(10), None]),
    );
}

fn response(text: &str) -> Value {
    json!({"id": "resp_1", "status": "completed", "model": "gpt-5-2025-08-07",
        "output": [{"type": "reasoning", "summary": []},
            {"type": "message", "content": [{"type": "output_text", "text": text}]}],
        "usage": {"input_tokens": 100, "input_tokens_details": {"cached_tokens": 10}, "output_tokens": 20}})
}

#[test]
fn responses_streamed() {
    check_responses(events(&[
        json!({"type": "response.created", "response": {"status": "in_progress"}}),
        json!({"type": "response.output_text.delta", "delta": "## Goal\n"}),
        json!({"type": "response.output_text.delta", "delta": "x"}),
        json!({"type": "response.completed", "response": response("## Goal\nx")}),
    ]));
}

#[test]
fn responses_whole() {
    check_responses(whole(200, &response("## Goal\nx")));
}

#[test]
fn responses_that_show_their_reasoning_and_responses_that_were_cancelled() {
    let mut shown = response("text");
    shown["output"][0]["summary"] = json!([{"type": "summary_text", "text": "Let me think."}]);
    let mut cancelled = response("half");
    cancelled["status"] = json!("cancelled");
    let server = Server::start([whole(200, &shown), whole(200, &cancelled)]);
    let provider = provider("openai/gpt-5", &server.url, Wire::Responses);
    assert_eq!(ask(&*provider).unwrap().text, "text");
    let error = ask(&*provider).unwrap_err();
    assert_eq!(
        (error.failure, error.message.as_str()),
        (Failure::Refused, "the model did not answer (cancelled)")
    );
}

#[test]
fn responses_that_are_called_complete_but_fill_the_limit() {
    let mut full = response("half");
    full["usage"]["output_tokens"] = json!(1000);
    let streamed = events(&[json!({"type": "response.completed", "response": full})]);
    for play in [streamed, whole(200, &full)] {
        let server = Server::start([play]);
        let error = ask(&*provider("llama.cpp/m", &server.url, Wire::Responses)).unwrap_err();
        assert_eq!(error.failure, Failure::CutOff);
    }
}

#[test]
fn responses_without_a_setting_that_the_model_refuses() {
    let refused = json!({"error": {"message": "Unsupported value: 'reasoning.effort'", "type": "invalid_request_error"}});
    let server = Server::start([whole(400, &refused), whole(200, &response("text"))]);
    assert_eq!(ask(&*provider("openai/gpt-5", &server.url, Wire::Responses)).unwrap().text, "text");
    let seen = server.seen();
    assert_eq!(seen[0].body["reasoning"], json!({"effort": "minimal"}));
    assert_eq!(seen[1].body.get("reasoning"), None);
}

#[track_caller]
fn check_chat(play: Play) {
    let (name, key) = bearer();
    check(
        Wire::ChatCompletions,
        "llama.cpp/smol",
        play,
        "/v1/chat/completions",
        (name, &key),
        &json!({
            "model": "smol", "max_tokens": 1000, "stream": true, "stream_options": {"include_usage": true},
            "messages": [{"role": "system", "content": "Summarise."}, {"role": "user", "content": "<conversation>"}],
        }),
        &completion("## Goal\nx", "smol.gguf", [Some(40), Some(9), Some(2), None]),
    );
}

#[test]
fn chat_completions_streamed() {
    check_chat(stream(&[
        b": processing\n\n",
        b"data: {\"model\":\"smol.gguf\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":null}}]}\n\n",
        b"data: {\"choices\":[{\"delta\":{\"reasoning_content\":\"hm\"}}]}\n\n",
        b"data: {\"choices\":[{\"delta\":{\"content\":\"## Goal\\n\"}}]}\n\n",
        b"data: {\"choices\":[{\"delta\":{\"content\":\"x\"},\"finish_reason\":null}]}\n\n",
        b"data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n",
        b"data: {\"choices\":[],\"usage\":{\"prompt_tokens\":42,\"completion_tokens\":9,\"prompt_tokens_details\":{\"cached_tokens\":2}}}\n\n",
        b"data: [DONE]\n\n",
    ]));
}

#[test]
fn chat_completions_whole() {
    check_chat(whole(
        200,
        &json!({"model": "smol.gguf", "choices": [{"message": {"role": "assistant", "content": "## Goal\nx", "tool_calls": []},
            "finish_reason": "stop"}], "usage": {"prompt_tokens": 42, "completion_tokens": 9,
            "prompt_tokens_details": {"cached_tokens": 2}}}),
    ));
}

#[test]
fn chat_completions_with_parts_as_content() {
    let server = Server::start([events(&[
        json!({"choices": [{"delta": {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}]}}]}),
        json!({"choices": [{"delta": {"content": [{"type": "text", "text": "text"}]}, "finish_reason": "stop"}]}),
    ])]);
    assert_eq!(ask(&*provider("mistral/m", &server.url, Wire::ChatCompletions)).unwrap().text, "text");
    assert_eq!(server.only().body.get("stream_options"), None);
}

#[test]
fn chat_completions_under_the_other_name_of_the_limit() {
    let refused = json!({"error": {"message":
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."}});
    let good = json!({"choices": [{"message": {"content": "text"}, "finish_reason": "stop"}]});
    let server = Server::start([whole(400, &refused), whole(200, &good)]);
    assert_eq!(ask(&*provider("proxy/o9", &server.url, Wire::ChatCompletions)).unwrap().text, "text");
    let seen = server.seen();
    assert_eq!(
        (&seen[0].body["max_tokens"], seen[0].body.get("max_completion_tokens")),
        (&json!(1000), None)
    );
    assert_eq!(
        (seen[1].body.get("max_tokens"), &seen[1].body["max_completion_tokens"]),
        (None, &json!(1000))
    );
}

#[test]
fn chat_completions_without_usage_where_it_is_refused() {
    let refused =
        json!({"detail": [{"loc": ["body", "stream_options"], "msg": "Extra inputs are not permitted"}]});
    let good = json!({"choices": [{"message": {"content": "text"}, "finish_reason": "stop"}]});
    let server = Server::start([whole(422, &refused), whole(200, &good)]);
    assert_eq!(ask(&*provider("proxy/x", &server.url, Wire::ChatCompletions)).unwrap().text, "text");
    assert_eq!(server.seen()[1].body.get("stream_options"), None);
}

#[test]
fn a_field_is_not_renamed_when_its_value_is_too_large() {
    let refused = json!({"error": {"message": "max_tokens must be less than or equal to 16384"}});
    let server = Server::start([whole(400, &refused)]);
    let error = ask(&*provider("proxy/x", &server.url, Wire::ChatCompletions)).unwrap_err();
    assert_eq!(error.failure, Failure::Permanent);
    server.only();
}

#[track_caller]
fn check_gemini(play: Play) {
    check(
        Wire::Gemini,
        "google/gemini-2.5-flash",
        play,
        "/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse",
        ("x-goog-api-key", KEY),
        &json!({
            "systemInstruction": {"parts": [{"text": "Summarise."}]},
            "contents": [{"role": "user", "parts": [{"text": "<conversation>"}]}],
            "generationConfig": {"maxOutputTokens": 1000, "thinkingConfig": {"thinkingBudget": 0}},
        }),
        &completion("## Goal\nx", "gemini-2.5-flash-001", [Some(95), Some(12), Some(5), None]),
    );
}

fn gemini_pieces() -> [Value; 3] {
    [
        json!({"candidates": [{"content": {"parts": [{"text": "hm", "thought": true}]}}]}),
        json!({"candidates": [{"content": {"parts": [{"text": "## Goal\n"}]}}]}),
        json!({"candidates": [{"content": {"parts": [{"text": "x"}]}, "finishReason": "STOP"}],
            "modelVersion": "gemini-2.5-flash-001", "usageMetadata": {"promptTokenCount": 100,
            "cachedContentTokenCount": 5, "candidatesTokenCount": 10, "thoughtsTokenCount": 2}}),
    ]
}

#[test]
fn gemini_streamed() {
    check_gemini(events(&gemini_pieces()));
}

#[test]
fn gemini_whole() {
    check_gemini(whole(200, &json!(gemini_pieces())));
}

#[test]
fn gemini_whole_in_one_piece() {
    check_gemini(whole(
        200,
        &json!({"candidates": [{"content": {"parts": [{"text": "## Goal\n"}, {"text": "x"}]}, "finishReason": "STOP"}],
            "modelVersion": "gemini-2.5-flash-001", "usageMetadata": {"promptTokenCount": 100,
            "cachedContentTokenCount": 5, "candidatesTokenCount": 10, "thoughtsTokenCount": 2}}),
    ));
}

#[test]
fn each_gemini_model_is_asked_to_think_as_little_as_it_can() {
    for (model, thinking) in [
        ("google/gemini-2.5-pro", json!({"thinkingBudget": 128})),
        ("google/gemini-3-pro", json!({"thinkingLevel": "low"})),
        ("google/gemini-1.5-pro", Value::Null),
    ] {
        let server = Server::start([events(&gemini_pieces())]);
        ask(&*provider(model, &server.url, Wire::Gemini)).unwrap();
        assert_eq!(server.only().body["generationConfig"]["thinkingConfig"], thinking, "{model}");
    }
}

#[test]
fn counts_beyond_all_measure_do_no_harm() {
    let server = Server::start([events(&[
        json!({"candidates": [{"content": {"parts": [{"text": "x"}]}, "finishReason": "STOP"}],
        "usageMetadata": {"promptTokenCount": 1, "cachedContentTokenCount": u64::MAX,
            "candidatesTokenCount": u64::MAX, "thoughtsTokenCount": u64::MAX}}),
    ])]);
    let usage = ask(&*provider("google/g", &server.url, Wire::Gemini)).unwrap().usage;
    assert_eq!((usage.input, usage.output, usage.prompt()), (Some(0), Some(u64::MAX), Some(u64::MAX)));
}

#[test]
fn gemini_without_a_setting_that_the_model_refuses() {
    let refused = json!({"error": {"code": 400, "message": "Thinking budget is not supported", "status": "INVALID_ARGUMENT"}});
    let server = Server::start([whole(400, &refused), events(&gemini_pieces())]);
    ask(&*provider("google/gemini-2.5-flash", &server.url, Wire::Gemini)).unwrap();
    assert_eq!(server.seen()[1].body["generationConfig"], json!({"maxOutputTokens": 1000}));
}

#[test]
fn an_id_cannot_leave_its_place_in_the_path() {
    let server = Server::start([]);
    ask(&*provider("google/../x?a=1#b", &server.url, Wire::Gemini)).unwrap_err();
    assert_eq!(
        server.only().line,
        "POST /v1beta/models/..%2Fx%3Fa%3D1%23b:streamGenerateContent?alt=sse HTTP/1.1"
    );
}

#[test]
fn a_remote_endpoint() {
    let server =
        Server::start([whole(200, &json!({"summary": "## Goal\nx", "model": "whatever", "error": null}))]);
    let endpoint = RemoteEndpoint::new(&format!("{}/summarise?v=1", server.url), Limits::default()).unwrap();
    assert_eq!(ask(&endpoint).unwrap().text, "## Goal\nx");
    let seen = server.only();
    assert_eq!(seen.line, "POST /summarise?v=1 HTTP/1.1");
    assert_eq!(seen.body, json!({"systemPrompt": "Summarise.", "prompt": "<conversation>"}));
    assert_eq!(seen.header("accept"), Some("application/json"));
    assert_eq!(seen.header("authorization"), None);
    assert!(endpoint.name().starts_with("remote endpoint 127.0.0.1:"));
}

#[test]
fn a_remote_endpoint_must_give_a_summary() {
    for (body, failure, message) in [
        (json!({"text": "x"}), Failure::Permanent, "the answer has no string \"summary\""),
        (json!({"summary": 5}), Failure::Permanent, "the answer has no string \"summary\""),
        (json!({"summary": " "}), Failure::Empty { only_reasoning: false }, "the answer is empty"),
        (
            json!({"error": "prompt is too long: 11 tokens > 10 maximum"}),
            Failure::Overflow { prompt_tokens: Some(11), window: Some(10) },
            "prompt is too long: 11 tokens > 10 maximum",
        ),
    ] {
        let server = Server::start([whole(200, &body)]);
        let error = ask(&RemoteEndpoint::new(&server.url, Limits::default()).unwrap()).unwrap_err();
        assert_eq!((error.failure, error.message.as_str()), (failure, message));
    }
}

#[test]
fn a_remote_endpoint_that_streams_is_not_understood() {
    let server = Server::start([events(&[json!({"summary": "x"})])]);
    let error = ask(&RemoteEndpoint::new(&server.url, Limits::default()).unwrap()).unwrap_err();
    assert!(error.message.starts_with("the answer is not JSON"), "{error}");
}

#[test]
fn progress_tells_what_has_arrived() {
    let server = Server::start([events(&[
        json!({"choices": [{"delta": {"reasoning": "hmm"}}]}),
        json!({"choices": [{"delta": {"content": "text"}, "finish_reason": "stop"}]}),
    ])]);
    let log = Mutex::new(Vec::new());
    let provider = provider("proxy/x", &server.url, Wire::ChatCompletions);
    let tell = |progress: Progress<'_>| {
        let line = match progress {
            Progress::Asked { provider } => format!("asked {provider}"),
            Progress::Received { text, reasoning, .. } => format!("{text} {reasoning}"),
            other => format!("{other:?}"),
        };
        log.lock().unwrap().push(line);
    };
    provider.complete(&request(), &Cancel::new(), &tell).unwrap();
    let mut log = log.into_inner().unwrap();
    assert_eq!(
        (log.first().map(String::as_str), log.last().map(String::as_str)),
        (Some("asked proxy/x"), Some("4 3"))
    );
    log.dedup();
    assert!(log.len() <= 4, "{log:?}");
}

#[cfg(unix)]
mod command {
    use super::*;
    use std::time::Duration;
    use summarizer::provider::SummarizerCommand;

    fn run(command_line: &str) -> Result<Completion, summarizer::error::ProviderError> {
        ask(&SummarizerCommand { command_line: command_line.to_owned(), limit: Duration::from_secs(60) })
    }

    #[test]
    fn gets_the_request_and_gives_the_summary() {
        let text = run(
            r#"IN=$(cat); test "$IN" = '{"systemPrompt":"Summarise.","prompt":"<conversation>"}' && echo '{"summary":"text","x":1}'"#,
        );
        assert_eq!(text.unwrap().text, "text");
    }

    #[test]
    fn failures_are_named() {
        let message = |command_line| run(command_line).unwrap_err().to_string();
        assert_eq!(message("echo broken >&2; exit 3"), "summarizer command: exit status 3: broken");
        assert_eq!(message("exit 4"), "summarizer command: exit status 4");
        assert_eq!(message("kill -9 $$"), "summarizer command: was killed");
        assert_eq!(message("echo '{}'"), "summarizer command: the answer has no string \"summary\"");
        assert_eq!(message("echo '{\"summary\":\"\"}'"), "summarizer command: the answer is empty");
        assert!(message("echo hello").starts_with("summarizer command: its output is not JSON"));
    }

    #[test]
    fn is_killed_when_it_takes_too_long() {
        let limit = Duration::from_millis(100);
        let error = ask(&SummarizerCommand { command_line: "sleep 1000".to_owned(), limit }).unwrap_err();
        assert_eq!(error.to_string(), "summarizer command: no answer within 100 ms");
    }
}

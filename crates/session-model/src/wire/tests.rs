//! Bodies against what the providers ask of them, over made-up cases and generated sessions.

use std::collections::HashSet;

use super::WireChangeKind as Kind;
use super::*;
use crate::agent_message::agent_messages;
use crate::model_message::model_message;
use crate::prompts::Prompts;
use crate::session::Session;
use session_gen::{Shape, damage, generate};

fn blob(reference: &str) -> Option<String> {
    (reference == "blob:sha256:aa").then(|| "QUFB".to_owned())
}

const OPTIONS: WireOptions<'_> = WireOptions { model: "m", max_tokens: 100, resolve: &blob };

#[track_caller]
fn check(format: WireFormat, messages: &str, expected: &str, kinds: &[Kind]) {
    let messages = Value::parse(messages).expect("valid JSON");
    let body = body(format, messages.items(), &OPTIONS);
    assert_eq!(body.json.to_json(), expected);
    assert_eq!(body.changes.iter().map(|change| change.kind).collect::<Vec<_>>(), kinds);
    validate(format, &body.json);
}

/// Fails if the provider would refuse the body.
#[track_caller]
fn validate(format: WireFormat, body: &Value<'_>) {
    let json = body.to_json();
    let again: serde_json::Value = serde_json::from_str(&json).expect("valid JSON for a strict reader");
    assert!(again.is_object());
    match format {
        WireFormat::Anthropic => validate_anthropic(body),
        WireFormat::OpenAi => validate_openai(body),
        WireFormat::Responses => validate_responses(body),
        WireFormat::Gemini => validate_gemini(body),
    }
}

fn list<'v>(value: &'v Value<'_>, key: &str) -> Vec<&'v Value<'v>> {
    value.get(key).map_or(&[][..], Value::items).iter().collect()
}

fn field(value: &Value<'_>, key: &str) -> String {
    value.text(key).unwrap_or_else(|| panic!("no {key} in {}", value.to_json())).into_owned()
}

#[track_caller]
fn validate_anthropic(body: &Value<'_>) {
    let messages = list(body, "messages");
    let tools: HashSet<String> = list(body, "tools").iter().map(|tool| field(tool, "name")).collect();
    let mut ids = HashSet::new();
    let mut waiting: Vec<String> = Vec::new();
    for (n, message) in messages.iter().enumerate() {
        let role = if n % 2 == 0 { "user" } else { "assistant" };
        assert_eq!(field(message, "role"), role, "message {n}");
        let content = list(message, "content");
        assert!(!content.is_empty(), "message {n} is empty");
        let mut answered = Vec::new();
        let mut calls = Vec::new();
        for (place, block) in content.iter().enumerate() {
            match field(block, "type").as_str() {
                "text" => assert!(!field(block, "text").trim().is_empty()),
                "image" => assert!(!field(block.get("source").expect("a source"), "data").is_empty()),
                "thinking" => assert!(role == "assistant" && !field(block, "signature").is_empty()),
                "redacted_thinking" => assert!(role == "assistant" && !field(block, "data").is_empty()),
                "tool_use" => {
                    let id = field(block, "id");
                    let is_valid = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
                    assert!(id.len() <= 64 && !id.is_empty() && id.chars().all(is_valid), "{id}");
                    assert!(role == "assistant" && ids.insert(id.clone()), "{id} twice");
                    assert!(block.get("input").expect("input").as_object().is_some());
                    assert!(tools.contains(&field(block, "name")));
                    calls.push(id);
                }
                "tool_result" => {
                    assert!(role == "user" && place == answered.len(), "results come first");
                    for part in list(block, "content") {
                        assert!(matches!(field(part, "type").as_str(), "text" | "image"));
                    }
                    assert!(!list(block, "content").is_empty());
                    answered.push(field(block, "tool_use_id"));
                }
                other => panic!("block {other}"),
            }
        }
        if role == "user" {
            assert_eq!(answered, waiting, "message {n} answers all calls");
        }
        if n + 1 == messages.len() && role == "assistant" {
            let last = content.last().expect("not empty");
            assert_eq!(field(last, "type"), "text");
            assert!(!field(last, "text").ends_with(char::is_whitespace));
        }
        waiting = calls;
    }
    assert!(waiting.is_empty());
}

#[track_caller]
fn validate_openai(body: &Value<'_>) {
    let mut waiting: Vec<String> = Vec::new();
    for (n, message) in list(body, "messages").iter().enumerate() {
        let role = field(message, "role");
        if role == "tool" {
            let id = field(message, "tool_call_id");
            assert_eq!(waiting.first(), Some(&id));
            waiting.remove(0);
            assert!(!field(message, "content").is_empty());
            continue;
        }
        assert!(waiting.is_empty(), "message {n} comes before all results");
        match role.as_str() {
            "system" => assert_eq!(n, 0),
            "developer" => assert!(
                message.get("content").expect("content").as_str().is_some()
                    || list(message, "content").iter().all(|part| field(part, "type") == "text")
            ),
            "user" => assert!(message.text("content").is_some() || !list(message, "content").is_empty()),
            "assistant" => {
                for call in list(message, "tool_calls") {
                    let function = call.get("function").expect("a function");
                    let arguments = field(function, "arguments");
                    assert!(Value::parse(&arguments).expect("JSON").as_object().is_some());
                    assert!(field(call, "id").len() <= 40);
                    waiting.push(field(call, "id"));
                }
                assert!(!waiting.is_empty() || message.text("content").is_some());
            }
            other => panic!("role {other}"),
        }
    }
    assert!(waiting.is_empty());
}

#[track_caller]
fn validate_responses(body: &Value<'_>) {
    let (mut called, mut answered) = (HashSet::new(), HashSet::new());
    let items = list(body, "input");
    for (n, item) in items.iter().enumerate() {
        match item.text("type").as_deref() {
            Some("function_call") => {
                assert!(called.insert(field(item, "call_id")));
                assert!(Value::parse(&field(item, "arguments")).is_ok());
            }
            Some("function_call_output") => {
                let id = field(item, "call_id");
                assert!(called.contains(&id) && answered.insert(id));
                assert!(item.text("output").is_some() || !list(item, "output").is_empty());
            }
            Some("reasoning") => {
                let next = items.get(n + 1).expect("something follows");
                let is_own = matches!(next.text("type").as_deref(), Some("function_call" | "reasoning"))
                    || next.text("role").as_deref() == Some("assistant");
                assert!(is_own && !field(item, "encrypted_content").is_empty());
            }
            Some(other) => panic!("item {other}"),
            None => {
                let kind = if field(item, "role") == "assistant" { "output_" } else { "input_" };
                assert!(!list(item, "content").is_empty());
                assert!(list(item, "content").iter().all(|part| field(part, "type").starts_with(kind)));
            }
        }
    }
    assert_eq!(called, answered);
}

#[track_caller]
fn validate_gemini(body: &Value<'_>) {
    let contents = list(body, "contents");
    let names = |content: &Value<'_>, key: &str| -> Vec<String> {
        list(content, "parts")
            .iter()
            .filter_map(|part| part.get(key))
            .map(|part| field(part, "name"))
            .collect()
    };
    let mut calls: Vec<String> = Vec::new();
    for (n, content) in contents.iter().enumerate() {
        let role = field(content, "role");
        assert!(n > 0 || role == "user", "the user speaks first");
        assert!(!list(content, "parts").is_empty());
        let results = names(content, "functionResponse");
        assert_eq!(results, calls, "content {n} answers all calls");
        assert!(results.is_empty() || results.len() == list(content, "parts").len());
        if role == "model" {
            assert!(n == 0 || field(contents[n - 1], "role") == "user");
        }
        calls = names(content, "functionCall");
        assert!(calls.is_empty() || role == "model");
    }
    assert!(calls.is_empty());
}

const CALL: &str = r#"{"role":"assistant","content":[{"type":"text","text":" ok "},{"type":"toolCall","id":"c.1|fc_9","name":"read","arguments":{"a":1.0}}],"api":"x","model":"m"}"#;
const RESULT: &str = r#"{"role":"toolResult","toolCallId":"c.1|fc_9","toolName":"read","content":[{"type":"text","text":"out"},{"type":"image","data":"blob:sha256:aa","mimeType":"image/png"}],"isError":true}"#;

#[test]
fn a_call_and_its_result_in_every_format() {
    let system = r#"{"role":"system","content":"sys","sections":{"s":"sec"},"toolsAdded":[{"name":"read","description":"d","parameters":{"type":"object"}}]}"#;
    let messages = format!(
        r#"[{system},{{"role":"developer","content":"dev"}},{CALL},{{"role":"user","content":"between \ud83d"}},{RESULT}]"#
    );
    check(
        WireFormat::Anthropic,
        &messages,
        r#"{"model":"m","max_tokens":100,"system":"sys\n\nsec","messages":[{"role":"user","content":[{"type":"text","text":"dev"}]},{"role":"assistant","content":[{"type":"text","text":" ok "},{"type":"tool_use","id":"c_1","name":"read","input":{"a":1}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c_1","content":[{"type":"text","text":"out"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"QUFB"}}],"is_error":true},{"type":"text","text":"between �"}]}],"tools":[{"name":"read","description":"d","input_schema":{"type":"object"}}]}"#,
        &[Kind::MovedResult],
    );
    check(
        WireFormat::OpenAi,
        &messages,
        r#"{"model":"m","max_completion_tokens":100,"messages":[{"role":"system","content":"sys\n\nsec"},{"role":"developer","content":"dev"},{"role":"assistant","content":" ok ","tool_calls":[{"id":"c_1","type":"function","function":{"name":"read","arguments":"{\"a\":1}"}}]},{"role":"tool","tool_call_id":"c_1","content":"out"},{"role":"user","content":[{"type":"text","text":"Image from the tool call c_1:"},{"type":"image_url","image_url":{"url":"data:image/png;base64,QUFB"}}]},{"role":"user","content":"between �"}],"tools":[{"type":"function","function":{"name":"read","description":"d","parameters":{"type":"object"}}}]}"#,
        &[Kind::MovedResult],
    );
    check(
        WireFormat::Responses,
        &messages,
        r#"{"model":"m","max_output_tokens":100,"instructions":"sys\n\nsec","input":[{"role":"developer","content":[{"type":"input_text","text":"dev"}]},{"role":"assistant","content":[{"type":"output_text","text":" ok "}]},{"type":"function_call","call_id":"c_1","name":"read","arguments":"{\"a\":1}"},{"type":"function_call_output","call_id":"c_1","output":[{"type":"input_text","text":"out"},{"type":"input_image","detail":"auto","image_url":"data:image/png;base64,QUFB"}]},{"role":"user","content":[{"type":"input_text","text":"between �"}]}],"tools":[{"type":"function","name":"read","description":"d","parameters":{"type":"object"},"strict":false}],"store":false}"#,
        &[Kind::MovedResult],
    );
    check(
        WireFormat::Gemini,
        &messages,
        r#"{"systemInstruction":{"parts":[{"text":"sys\n\nsec"}]},"contents":[{"role":"user","parts":[{"text":"dev"}]},{"role":"model","parts":[{"text":" ok "},{"functionCall":{"name":"read","args":{"a":1}}}]},{"role":"user","parts":[{"functionResponse":{"name":"read","response":{"error":"out"}}}]},{"role":"user","parts":[{"inlineData":{"mimeType":"image/png","data":"QUFB"}},{"text":"between �"}]}],"tools":[{"functionDeclarations":[{"name":"read","description":"d","parametersJsonSchema":{"type":"object"}}]}],"generationConfig":{"maxOutputTokens":100}}"#,
        &[Kind::MovedResult],
    );
}

#[track_caller]
fn check_changes(messages: &str, kinds: &[Kind], n_texts: usize) {
    let messages = Value::parse(messages).expect("valid JSON");
    for format in WireFormat::ALL {
        let body = body(format, messages.items(), &OPTIONS);
        let own = body.changes.iter().map(|change| change.kind).filter(|kind| {
            !matches!(kind, Kind::FirstUserMessage | Kind::DeclaredTool | Kind::EndsWithAssistant)
        });
        assert_eq!(own.collect::<Vec<_>>(), kinds, "{}", format.name());
        assert_eq!(body.json.to_json().matches("here").count(), n_texts, "{}", format.name());
        validate(format, &body.json);
    }
}

#[test]
fn failed_messages_go_with_their_results() {
    let failed = CALL.replace("\"api\"", "\"stopReason\":\"aborted\",\"api\"");
    check_changes(
        &format!(r#"[{{"role":"user","content":"here"}},{failed},{RESULT}]"#),
        &[Kind::FailedMessage, Kind::ResultOfFailed],
        1,
    );
}

#[test]
fn calls_without_results_get_one_and_other_results_go() {
    check_changes(&format!(r#"[{{"role":"user","content":"here"}},{CALL}]"#), &[Kind::MissingResult], 1);
    check_changes(
        &format!(r#"[{{"role":"user","content":"here"}},{RESULT},{CALL},{RESULT},{RESULT}]"#),
        &[Kind::OrphanResult, Kind::SecondResult],
        1,
    );
    check_changes(
        &format!(r#"[{CALL},{{"role":"assistant","content":[{{"type":"text","text":"here"}}]}},{RESULT}]"#),
        &[Kind::MovedResult],
        1,
    );
}

#[test]
fn a_call_id_that_comes_again_gets_another_one() {
    let messages = format!("[{CALL},{RESULT},{CALL},{RESULT}]");
    check_changes(&messages, &[], 0);
    let messages = Value::parse(&messages).expect("valid JSON");
    let json = body(WireFormat::Anthropic, messages.items(), &OPTIONS).json.to_json();
    assert_eq!((json.matches("\"c_1\"").count(), json.matches("\"c_1_2\"").count()), (2, 2));
}

#[test]
fn empty_content_is_left_out_or_filled() {
    check_changes(
        r#"[{"role":"user","content":" "},{"role":"user","content":null},{"role":"assistant","content":[]},{"role":"assistant","content":[{"type":"odd"}]},{"role":"assistant","content":[{"type":"thinking","thinking":"t"}]},{"role":"user","content":"here"}]"#,
        &[
            Kind::EmptyMessage,
            Kind::EmptyMessage,
            Kind::EmptyMessage,
            Kind::EmptyMessage,
            Kind::Reasoning,
            Kind::EmptyMessage,
        ],
        1,
    );
    let empty = r#"{"role":"toolResult","toolCallId":"c.1|fc_9","content":[],"isError":true}"#;
    check_changes(&format!("[{CALL},{empty}]"), &[], 0);
    let string = r#"{"role":"toolResult","toolCallId":"c.1|fc_9","content":"here"}"#;
    check_changes(&format!("[{CALL},{string}]"), &[], 1);
}

#[test]
fn images_that_cannot_be_sent_are_named() {
    check_changes(
        r#"[{"role":"user","content":[{"type":"image","data":"blob:sha256:bb","mimeType":"image/png"},{"type":"image","data":"QQ==","mimeType":"image/here+xml"}]}]"#,
        &[Kind::Image, Kind::Image],
        1,
    );
}

#[track_caller]
fn check_reasoning(format: WireFormat, api: &str, block: &str, part: Option<&str>) {
    for model in ["m", "other"] {
        let messages = format!(
            r#"[{{"role":"user","content":"x"}},{{"role":"assistant","api":"{api}","model":"{model}","content":[{block},{{"type":"text","text":"y"}}]}},{{"role":"user","content":"z"}}]"#
        );
        let messages = Value::parse(&messages).expect("valid JSON");
        let body = body(format, messages.items(), &OPTIONS);
        validate(format, &body.json);
        let part = part.filter(|_| model == "m");
        let left_out = body.changes.iter().any(|change| change.kind == Kind::Reasoning);
        assert_eq!(left_out, part.is_none());
        match part {
            Some(part) => assert!(body.json.to_json().contains(part), "{}", body.json.to_json()),
            None => assert!(!body.json.to_json().contains("SIG")),
        }
    }
}

#[test]
fn reasoning_goes_back_only_where_it_came_from() {
    let signed = r#"{"type":"thinking","thinking":"","thinkingSignature":"SIGN"}"#;
    let redacted = r#"{"type":"thinking","thinking":"","thinkingSignature":"SIG=","redacted":true}"#;
    let anthropic = "anthropic-messages";
    let thinking = r#"{"type":"thinking","thinking":"","signature":"SIGN"}"#;
    check_reasoning(WireFormat::Anthropic, anthropic, signed, Some(thinking));
    let data = r#"{"type":"redacted_thinking","data":"SIG="}"#;
    check_reasoning(WireFormat::Anthropic, anthropic, redacted, Some(data));
    check_reasoning(WireFormat::Anthropic, "openai-responses", signed, None);
    check_reasoning(WireFormat::Anthropic, anthropic, r#"{"type":"thinking","thinking":"SIG"}"#, None);
    check_reasoning(WireFormat::OpenAi, "openai-completions", signed, None);
    let thought = r#"{"thought":true,"text":"","thoughtSignature":"SIGN"}"#;
    check_reasoning(WireFormat::Gemini, "google-generative-ai", signed, Some(thought));
    let item = r#"{"type":"thinking","thinking":"","thinkingSignature":"{\"type\":\"reasoning\",\"id\":\"rs_1\",\"encrypted_content\":\"SIG\"}"}"#;
    let sent = r#"{"type":"reasoning","id":"rs_1","encrypted_content":"SIG","summary":[]}"#;
    check_reasoning(WireFormat::Responses, "openai-responses", item, Some(sent));
    check_reasoning(WireFormat::Responses, "openai-responses", signed, None);
}

#[test]
fn bodies_of_generated_sessions_are_valid() {
    let prompts = Prompts::default();
    let mut n_messages = 0;
    for seed in 0..120 {
        let shape = if seed % 2 == 0 { Shape::omp() } else { Shape::pi() };
        let mut file = generate(seed, &shape).into_bytes();
        if seed % 3 == 0 {
            file = damage(seed, &file);
        }
        let Ok((session, _)) = Session::read(&file) else { continue };
        let sequence = session.branch(None).effective();
        let agent = agent_messages(&sequence, &file[..]).expect("the records are there");
        let messages: Vec<Value<'_>> =
            agent.into_iter().filter_map(|message| model_message(message.value, &prompts)).collect();
        let models = messages.iter().filter_map(|message| message.text("model")).next_back();
        let model = models.unwrap_or_default().into_owned();
        n_messages += messages.len();
        for format in WireFormat::ALL {
            let options = WireOptions { model: &model, ..OPTIONS };
            let body = body(format, &messages, &options);
            validate(format, &body.json);
            assert!(!body.json.to_json().contains("\\ud8"), "seed {seed}");
        }
    }
    assert!(n_messages > 500);
}

//! OpenAI's Chat Completions API: results are messages of their own, and hold text only.

use super::content::{Part, data_url, images, joined_text};
use super::exchange::{Block, Exchange, NO_OUTPUT, NameRules, ToolResult, Turn, ends_with_assistant};
use super::{WireChange, WireOptions, object};
use crate::value::{Object, Value};

/// The API takes no reasoning back.
const RULES: NameRules = NameRules { id_length: 40, tool_length: 64, is_own_api: |_| false };

pub(super) fn body(
    messages: &[Value<'_>],
    options: &WireOptions<'_>,
    changes: &mut Vec<WireChange>,
) -> Value<'static> {
    let exchange = Exchange::new(messages, options, &RULES, changes);
    ends_with_assistant(&exchange.turns, changes);
    let mut list = Vec::new();
    if let Some(system) = exchange.system_text() {
        list.push(object([("role", "system".into()), ("content", system.into())]));
    }
    for turn in &exchange.turns {
        match turn {
            Turn::User { is_developer, parts } => list.push(user(*is_developer, parts)),
            Turn::Assistant { blocks, results } => {
                list.push(assistant(blocks));
                list.extend(results.iter().map(tool_result));
                list.extend(result_images(results));
            }
        }
    }
    let mut body = Object::new();
    body.set("model", options.model.to_owned());
    body.set("max_completion_tokens", options.max_tokens as f64);
    body.set("messages", list);
    let tools: Vec<Value<'static>> = exchange
        .tools(&RULES)
        .iter()
        .map(|tool| {
            let function = object([
                ("name", tool.name.clone().into()),
                ("description", tool.description()),
                ("parameters", tool.parameters()),
            ]);
            object([("type", "function".into()), ("function", function)])
        })
        .collect();
    if !tools.is_empty() {
        body.set("tools", tools);
    }
    Value::Object(body)
}

fn user(is_developer: bool, parts: &[Part]) -> Value<'static> {
    // A developer message holds text only.
    let has_images = parts.iter().any(|part| matches!(part, Part::Image { .. }));
    let role = if is_developer && !has_images { "developer" } else { "user" };
    let content = match parts {
        [Part::Text(text)] => Value::from(text.clone()),
        _ => Value::Array(parts.iter().map(part).collect()),
    };
    object([("role", role.into()), ("content", content)])
}

fn part(part: &Part) -> Value<'static> {
    match part {
        Part::Text(text) => object([("type", "text".into()), ("text", text.clone().into())]),
        Part::Image { mime_type, data } => {
            let image = object([("url", data_url(mime_type, data))]);
            object([("type", "image_url".into()), ("image_url", image)])
        }
    }
}

fn assistant(blocks: &[Block]) -> Value<'static> {
    let mut texts: Vec<&str> = Vec::new();
    let mut calls = Vec::new();
    for block in blocks {
        match block {
            Block::Text { text, .. } => texts.push(text),
            Block::Reasoning { .. } => {}
            Block::Call { id, tool, arguments, .. } => {
                let function =
                    object([("name", tool.clone().into()), ("arguments", arguments.to_json().into())]);
                calls.push(object([
                    ("id", id.clone().into()),
                    ("type", "function".into()),
                    ("function", function),
                ]));
            }
        }
    }
    let mut message = Object::new();
    message.set("role", "assistant");
    message.set("content", if texts.is_empty() { Value::Null } else { Value::from(texts.join("\n")) });
    if !calls.is_empty() {
        message.set("tool_calls", calls);
    }
    Value::Object(message)
}

fn tool_result(result: &ToolResult) -> Value<'static> {
    let text = joined_text(&result.parts);
    let text = match (text.is_empty(), images(&result.parts).is_empty()) {
        (false, _) => text,
        (true, true) => NO_OUTPUT.to_owned(),
        (true, false) => "(see the image that follows)".to_owned(),
    };
    object([("role", "tool".into()), ("tool_call_id", result.id.clone().into()), ("content", text.into())])
}

/// A user message with the images of tool results, for a result cannot hold them.
fn result_images(results: &[ToolResult]) -> Option<Value<'static>> {
    let mut parts = Vec::new();
    for result in results {
        let images = images(&result.parts);
        if !images.is_empty() {
            parts.push(Part::Text(format!("Image from the tool call {}:", result.id)));
            parts.extend(images);
        }
    }
    (!parts.is_empty()).then(|| user(false, &parts))
}

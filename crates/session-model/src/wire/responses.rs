//! OpenAI's Responses API: one flat list of messages, reasoning, calls and their outputs.

use super::content::{Part, data_url, joined_text};
use super::exchange::{Block, Exchange, NO_OUTPUT, NameRules, ToolResult, Turn, ends_with_assistant};
use super::{WireChange, WireChangeKind, WireOptions, object};
use crate::value::{Object, Value};

const RULES: NameRules =
    NameRules { id_length: 64, tool_length: 64, is_own_api: |api| api.contains("responses") };

pub(super) fn body(
    messages: &[Value<'_>],
    options: &WireOptions<'_>,
    changes: &mut Vec<WireChange>,
) -> Value<'static> {
    let exchange = Exchange::new(messages, options, &RULES, changes);
    ends_with_assistant(&exchange.turns, changes);
    let mut body = Object::new();
    body.set("model", options.model.to_owned());
    body.set("max_output_tokens", options.max_tokens as f64);
    body.set_some("instructions", exchange.system_text());
    let mut input = Vec::new();
    for turn in &exchange.turns {
        match turn {
            Turn::User { is_developer, parts } => {
                let role = if *is_developer { "developer" } else { "user" };
                let content = parts.iter().map(part).collect::<Vec<_>>();
                input.push(object([("role", role.into()), ("content", content.into())]));
            }
            Turn::Assistant { blocks, results } => {
                items(blocks, &mut input, changes);
                input.extend(results.iter().map(output));
            }
        }
    }
    body.set("input", input);
    let tools: Vec<Value<'static>> = exchange
        .tools(&RULES)
        .iter()
        .map(|tool| {
            object([
                ("type", "function".into()),
                ("name", tool.name.clone().into()),
                ("description", tool.description()),
                ("parameters", tool.parameters()),
                ("strict", false.into()),
            ])
        })
        .collect();
    if !tools.is_empty() {
        body.set("tools", tools);
    }
    // The whole conversation is in the body: the service need not keep it.
    body.set("store", false);
    Value::Object(body)
}

fn part(part: &Part) -> Value<'static> {
    match part {
        Part::Text(text) => object([("type", "input_text".into()), ("text", text.clone().into())]),
        Part::Image { mime_type, data } => object([
            ("type", "input_image".into()),
            ("detail", "auto".into()),
            ("image_url", data_url(mime_type, data)),
        ]),
    }
}

/// The items of an assistant message. Reasoning must be followed by what it led to, so the last of it goes if nothing does.
fn items(blocks: &[Block], input: &mut Vec<Value<'static>>, changes: &mut Vec<WireChange>) {
    let n_blocks =
        blocks.iter().rposition(|block| !matches!(block, Block::Reasoning { .. })).map_or(0, |at| at + 1);
    for (n, block) in blocks.iter().enumerate() {
        match block {
            Block::Text { text, .. } => {
                let content = object([("type", "output_text".into()), ("text", text.clone().into())]);
                input.push(object([("role", "assistant".into()), ("content", vec![content].into())]));
            }
            Block::Reasoning { signature, .. } => match reasoning(signature).filter(|_| n < n_blocks) {
                Some(item) => input.push(item),
                None => {
                    changes.push(WireChange { kind: WireChangeKind::Reasoning, message: None, name: None });
                }
            },
            Block::Call { id, tool, arguments, .. } => input.push(object([
                ("type", "function_call".into()),
                ("call_id", id.clone().into()),
                ("name", tool.clone().into()),
                ("arguments", arguments.to_json().into()),
            ])),
        }
    }
}

/// The reasoning item that a signature holds. Without its encrypted content the service would have to have kept it.
fn reasoning(signature: &str) -> Option<Value<'static>> {
    let item = Value::parse(signature).ok()?;
    let is_whole = item.text("type").as_deref() == Some("reasoning")
        && item.text("encrypted_content").is_some_and(|content| !content.is_empty());
    let Value::Object(mut item) = item.into_owned() else { return None };
    if !matches!(item.get("summary"), Some(Value::Array(_))) {
        item.set("summary", Vec::new());
    }
    is_whole.then_some(Value::Object(item))
}

fn output(result: &ToolResult) -> Value<'static> {
    let is_text = result.parts.iter().all(|part| matches!(part, Part::Text(_)));
    let output = match (result.parts.is_empty(), is_text) {
        (true, _) => Value::from(NO_OUTPUT),
        (false, true) => Value::from(joined_text(&result.parts)),
        (false, false) => Value::Array(result.parts.iter().map(part).collect()),
    };
    let mut item = Object::new();
    item.set("type", "function_call_output");
    item.set("call_id", result.id.clone());
    item.set("output", output);
    Value::Object(item)
}

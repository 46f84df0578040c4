//! Google's `generateContent`: user and model take turns; calls and results are matched by their order.

use super::content::{Part, images, joined_text};
use super::exchange::{Block, Exchange, FIRST_WORDS, NO_OUTPUT, NameRules, ToolResult, Turn, ends};
use super::{WireChange, WireOptions, object, push};
use crate::value::{Object, Value};

const RULES: NameRules =
    NameRules { id_length: 64, tool_length: 64, is_own_api: |api| api.starts_with("google-") };

/// What Google takes in place of the signature of a call that another model made.
const NO_SIGNATURE: &str = "skip_thought_signature_validator";

pub(super) fn body(
    messages: &[Value<'_>],
    options: &WireOptions<'_>,
    changes: &mut Vec<WireChange>,
) -> Value<'static> {
    let exchange = Exchange::new(messages, options, &RULES, changes);
    let mut body = Object::new();
    let system = exchange.system_text();
    body.set_some("systemInstruction", system.map(|system| object([("parts", vec![text(&system)].into())])));
    let mut contents: Vec<Content> = Vec::new();
    if ends(&exchange.turns, changes) {
        add(&mut contents, Kind::User, text(FIRST_WORDS));
    }
    // Only models from the third generation on insist on signatures.
    let needs_signatures = options.model.contains("gemini-3");
    for turn in &exchange.turns {
        match turn {
            Turn::User { parts, .. } => {
                parts.iter().for_each(|item| add(&mut contents, Kind::User, part(item)));
            }
            Turn::Assistant { blocks, results } => {
                model_parts(blocks, needs_signatures)
                    .into_iter()
                    .for_each(|block| add(&mut contents, Kind::Model, block));
                results.iter().for_each(|result| add(&mut contents, Kind::Results, response(result)));
                let pictures = results.iter().flat_map(|result| images(&result.parts));
                pictures.for_each(|picture| add(&mut contents, Kind::User, part(&picture)));
            }
        }
    }
    let contents = contents.into_iter().map(|content| {
        let role = if content.kind == Kind::Model { "model" } else { "user" };
        object([("role", role.into()), ("parts", content.parts)])
    });
    body.set("contents", contents.collect::<Vec<_>>());
    let declarations: Vec<Value<'static>> = exchange
        .tools(&RULES)
        .iter()
        .map(|tool| {
            object([
                ("name", tool.name.clone().into()),
                ("description", tool.description()),
                ("parametersJsonSchema", tool.parameters()),
            ])
        })
        .collect();
    if !declarations.is_empty() {
        body.set("tools", vec![object([("functionDeclarations", declarations.into())])]);
    }
    body.set("generationConfig", object([("maxOutputTokens", (options.max_tokens as f64).into())]));
    Value::Object(body)
}

/// Whose turn it is. Results go to the model in a turn that holds nothing else.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    User,
    Model,
    Results,
}

struct Content {
    kind: Kind,
    parts: Value<'static>,
}

fn add(contents: &mut Vec<Content>, kind: Kind, part: Value<'static>) {
    match contents.last_mut() {
        Some(last) if last.kind == kind => push(&mut last.parts, part),
        _ => contents.push(Content { kind, parts: Value::Array(vec![part]) }),
    }
}

fn text(text: &str) -> Value<'static> {
    object([("text", text.to_owned().into())])
}

fn part(part: &Part) -> Value<'static> {
    match part {
        Part::Text(words) => text(words),
        Part::Image { mime_type, data } => {
            let data = [("mimeType", mime_type.clone().into()), ("data", data.clone().into())];
            object([("inlineData", object(data))])
        }
    }
}

fn model_parts(blocks: &[Block], needs_signatures: bool) -> Vec<Value<'static>> {
    let mut n_calls = 0;
    let mut parts = Vec::new();
    for block in blocks {
        let mut part = Object::new();
        match block {
            Block::Text { text, signature } => {
                part.set("text", text.clone());
                part.set_some("thoughtSignature", signature.clone().filter(|signature| is_base64(signature)));
            }
            Block::Reasoning { text, signature, .. } => {
                part.set("thought", true);
                part.set("text", text.clone());
                part.set_some("thoughtSignature", Some(signature.clone()).filter(|own| is_base64(own)));
            }
            Block::Call { tool, arguments, signature, .. } => {
                n_calls += 1;
                part.set(
                    "functionCall",
                    object([("name", tool.clone().into()), ("args", arguments.clone())]),
                );
                let own = signature.clone().filter(|signature| is_base64(signature));
                let stand_in = (needs_signatures && n_calls == 1).then(|| NO_SIGNATURE.to_owned());
                part.set_some("thoughtSignature", own.or(stand_in));
            }
        }
        parts.push(Value::Object(part));
    }
    parts
}

/// Whether a stored signature is one of Google's, which are bytes.
fn is_base64(signature: &str) -> bool {
    let digits = signature.trim_end_matches('=');
    signature.len().is_multiple_of(4)
        && !digits.is_empty()
        && digits.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/'))
}

fn response(result: &ToolResult) -> Value<'static> {
    let text = joined_text(&result.parts);
    let text = match (text.is_empty(), images(&result.parts).is_empty()) {
        (false, _) => text,
        (true, true) => NO_OUTPUT.to_owned(),
        (true, false) => "(see the image that follows)".to_owned(),
    };
    let key = if result.is_error { "error" } else { "output" };
    let response = object([("name", result.tool.clone().into()), ("response", object([(key, text.into())]))]);
    object([("functionResponse", response)])
}

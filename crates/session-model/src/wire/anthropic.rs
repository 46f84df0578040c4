//! Anthropic's Messages API: user and assistant take turns, results stand in the user's turn behind the calls.

use std::collections::HashSet;

use super::content::Part;
use super::exchange::{
    Block, Exchange, FIRST_WORDS, NO_OUTPUT, NameRules, ToolResult, Turn, any_arguments, ends,
};
use super::{WireChange, WireChangeKind, WireOptions, object, push};
use crate::value::{Object, Value};

const RULES: NameRules =
    NameRules { id_length: 64, tool_length: 64, is_own_api: |api| api == "anthropic-messages" };

pub(super) fn body(
    messages: &[Value<'_>],
    options: &WireOptions<'_>,
    changes: &mut Vec<WireChange>,
) -> Value<'static> {
    let exchange = Exchange::new(messages, options, &RULES, changes);
    let mut body = Object::new();
    body.set("model", options.model.to_owned());
    body.set("max_tokens", options.max_tokens as f64);
    body.set_some("system", exchange.system_text());
    let mut turns: Vec<(&'static str, Value<'static>)> = Vec::new();
    if ends(&exchange.turns, changes) {
        add(&mut turns, "user", text(FIRST_WORDS));
    }
    let last = exchange.turns.len().saturating_sub(1);
    for (n, turn) in exchange.turns.iter().enumerate() {
        match turn {
            Turn::User { parts, .. } => {
                parts.iter().for_each(|item| add(&mut turns, "user", part(item)));
            }
            Turn::Assistant { blocks, results } => {
                let is_end = n == last && results.is_empty();
                assistant_blocks(blocks, is_end)
                    .into_iter()
                    .for_each(|block| add(&mut turns, "assistant", block));
                results.iter().for_each(|result| add(&mut turns, "user", tool_result(result)));
            }
        }
    }
    let turns =
        turns.into_iter().map(|(role, content)| object([("role", role.into()), ("content", content)]));
    body.set("messages", turns.collect::<Vec<_>>());
    let tools = tools(&exchange, changes);
    if !tools.is_empty() {
        body.set("tools", tools);
    }
    Value::Object(body)
}

/// Puts a block into the turn of `role`, a new one if the other has just spoken.
fn add(turns: &mut Vec<(&'static str, Value<'static>)>, role: &'static str, block: Value<'static>) {
    match turns.last_mut() {
        Some((last, content)) if *last == role => push(content, block),
        _ => turns.push((role, Value::Array(vec![block]))),
    }
}

fn text(text: &str) -> Value<'static> {
    object([("type", "text".into()), ("text", text.to_owned().into())])
}

fn part(part: &Part) -> Value<'static> {
    match part {
        Part::Text(words) => text(words),
        Part::Image { mime_type, data } => {
            let source = [
                ("type", "base64".into()),
                ("media_type", mime_type.clone().into()),
                ("data", data.clone().into()),
            ];
            object([("type", "image".into()), ("source", object(source))])
        }
    }
}

/// The blocks of an assistant message. One that ends the conversation may end neither in reasoning nor in white space.
fn assistant_blocks(blocks: &[Block], is_end: bool) -> Vec<Value<'static>> {
    let n_blocks = match blocks.iter().rposition(|block| !matches!(block, Block::Reasoning { .. })) {
        Some(at) if is_end => at + 1,
        _ => blocks.len(),
    };
    let block = |(n, block): (usize, &Block)| match block {
        Block::Text { text: words, .. } if is_end && n + 1 == n_blocks => text(words.trim_end()),
        Block::Text { text: words, .. } => text(words),
        Block::Reasoning { signature, is_redacted: true, .. } => {
            object([("type", "redacted_thinking".into()), ("data", signature.clone().into())])
        }
        Block::Reasoning { text, signature, is_redacted: false } => object([
            ("type", "thinking".into()),
            ("thinking", text.clone().into()),
            ("signature", signature.clone().into()),
        ]),
        Block::Call { id, tool, arguments, .. } => object([
            ("type", "tool_use".into()),
            ("id", id.clone().into()),
            ("name", tool.clone().into()),
            ("input", arguments.clone()),
        ]),
    };
    blocks[..n_blocks].iter().enumerate().map(block).collect()
}

fn tool_result(result: &ToolResult) -> Value<'static> {
    let content: Vec<Value<'static>> =
        if result.parts.is_empty() { vec![text(NO_OUTPUT)] } else { result.parts.iter().map(part).collect() };
    let mut block = Object::new();
    block.set("type", "tool_result");
    block.set("tool_use_id", result.id.clone());
    block.set("content", content);
    block.set_some("is_error", result.is_error.then_some(true));
    Value::Object(block)
}

/// The tools; those that are called but nowhere defined are declared, for calls without any tools are refused.
fn tools(exchange: &Exchange, changes: &mut Vec<WireChange>) -> Vec<Value<'static>> {
    let tool = |name: &str, description: Option<Value<'static>>, schema: Value<'static>| {
        let mut tool = Object::new();
        tool.set("name", name.to_owned());
        tool.set_some("description", description);
        tool.set("input_schema", schema);
        Value::Object(tool)
    };
    let defined = exchange.tools(&RULES);
    let mut names: HashSet<String> = defined.iter().map(|tool| tool.name.clone()).collect();
    let mut tools: Vec<Value<'static>> = defined
        .iter()
        .map(|definition| tool(&definition.name, Some(definition.description()), definition.parameters()))
        .collect();
    for turn in &exchange.turns {
        let Turn::Assistant { results, .. } = turn else { continue };
        for result in results {
            if names.insert(result.tool.clone()) {
                tools.push(tool(&result.tool, None, any_arguments()));
                let name = Some(result.tool.clone());
                changes.push(WireChange { kind: WireChangeKind::DeclaredTool, message: None, name });
            }
        }
    }
    tools
}

//! Anthropic's Messages.

use serde_json::{Value, json};

use super::Request;
use super::address::Address;
use super::http::Speaks;
use super::reply::{Reply, Reported, Stop};

pub(crate) struct Messages {
    pub(crate) id: String,
}

impl Speaks for Messages {
    fn model(&self) -> &str {
        &self.id
    }

    fn call(&self, address: &Address, request: &Request) -> (String, Value) {
        let mut body = json!({
            "model": self.id,
            "max_tokens": request.max_output_tokens,
            "messages": [{"role": "user", "content": request.prompt}],
            "stream": true,
        });
        if !request.system.is_empty() {
            body["system"] = json!(request.system);
        }
        (address.join("/v1", "/messages"), body)
    }

    fn key_header(&self) -> (&'static str, &'static str) {
        ("x-api-key", "")
    }

    fn headers(&self) -> &'static [(&'static str, &'static str)] {
        &[("anthropic-version", "2023-06-01")]
    }

    fn piece(&self, reply: &mut Reply, piece: &Value) -> Result<(), Reported> {
        match piece["type"].as_str().unwrap_or_default() {
            "message_start" => {
                let message = &piece["message"];
                reply.model = message["model"].as_str().map(str::to_owned);
                usage(reply, &message["usage"]);
            }
            "content_block_start" => block(reply, &piece["content_block"]),
            "content_block_delta" => {
                let delta = &piece["delta"];
                reply.push_text(&delta["text"]);
                reply.push_reasoning(&delta["thinking"]);
            }
            "message_delta" => {
                usage(reply, &piece["usage"]);
                stop(reply, &piece["delta"]);
            }
            "message_stop" => {
                reply.ended = true;
                reply.closed = true;
            }
            "error" => return Err(Reported::find(piece).unwrap_or_default()),
            // `ping`, and what may be added.
            _ => {}
        }
        Ok(())
    }

    fn whole(&self, reply: &mut Reply, answer: &Value) -> Result<(), Reported> {
        reply.model = answer["model"].as_str().map(str::to_owned);
        for content in answer["content"].as_array().into_iter().flatten() {
            block(reply, content);
        }
        usage(reply, &answer["usage"]);
        stop(reply, answer);
        reply.ended = answer["stop_reason"].is_string();
        Ok(())
    }
}

fn block(reply: &mut Reply, block: &Value) {
    match block["type"].as_str().unwrap_or_default() {
        "text" => reply.push_text(&block["text"]),
        "thinking" => reply.push_reasoning(&block["thinking"]),
        "redacted_thinking" => reply.push_reasoning(&block["data"]),
        "tool_use" => reply.called_tool = true,
        _ => {}
    }
}

fn stop(reply: &mut Reply, holder: &Value) {
    match holder["stop_reason"].as_str().unwrap_or_default() {
        "max_tokens" => reply.stop = Some(Stop::Length),
        "model_context_window_exceeded" => reply.stop = Some(Stop::Window),
        reason @ ("refusal" | "pause_turn") => reply.stop = Some(Stop::Refused(reason.to_owned())),
        "tool_use" => reply.called_tool = true,
        _ => {}
    }
}

/// Counts are repeated, not added up; the last one that is given stands.
fn usage(reply: &mut Reply, usage: &Value) {
    let place = &mut reply.usage;
    place.input = usage["input_tokens"].as_u64().or(place.input);
    place.output = usage["output_tokens"].as_u64().or(place.output);
    place.cache_read = usage["cache_read_input_tokens"].as_u64().or(place.cache_read);
    place.cache_write = usage["cache_creation_input_tokens"].as_u64().or(place.cache_write);
}

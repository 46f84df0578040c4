//! OpenAI's Responses.

use serde_json::{Value, json};

use super::Request;
use super::address::Address;
use super::http::Speaks;
use super::reply::{Reply, Reported, Stop};

pub(crate) struct Responses {
    pub(crate) id: String,
    /// The least effort of reasoning that the model takes: a summary needs none, and it counts as output.
    pub(crate) effort: Option<&'static str>,
}

/// The API takes no smaller limit.
const SMALLEST_LIMIT: u64 = 16;

impl Speaks for Responses {
    fn model(&self) -> &str {
        &self.id
    }

    fn call(&self, address: &Address, request: &Request) -> (String, Value) {
        let mut body = json!({
            "model": self.id,
            "input": [{"role": "user", "content": request.prompt}],
            "max_output_tokens": request.max_output_tokens.max(SMALLEST_LIMIT),
            "store": false,
            "stream": true,
        });
        if !request.system.is_empty() {
            body["instructions"] = json!(request.system);
        }
        if let Some(effort) = self.effort {
            body["reasoning"] = json!({"effort": effort});
        }
        (address.join("/v1", "/responses"), body)
    }

    fn simpler(&self, body: &Value, message: &str) -> Option<Value> {
        let message = message.to_lowercase();
        if body.get("reasoning").is_none() || !message.contains("reasoning") {
            return None;
        }
        let mut body = body.clone();
        body.as_object_mut()?.remove("reasoning");
        Some(body)
    }

    fn piece(&self, reply: &mut Reply, piece: &Value) -> Result<(), Reported> {
        match piece["type"].as_str().unwrap_or_default() {
            "response.output_text.delta" => reply.push_text(&piece["delta"]),
            "response.reasoning_text.delta" | "response.reasoning_summary_text.delta" => {
                reply.push_reasoning(&piece["delta"]);
            }
            "response.completed" | "response.incomplete" | "response.failed" => {
                reply.closed = true;
                // The last event holds the whole answer once more; what has arrived before is not doubled.
                let mut whole = Reply::default();
                self.whole(&mut whole, &piece["response"])?;
                if reply.text.is_empty() {
                    reply.text = whole.text;
                }
                reply.reasoning = reply.reasoning.max(whole.reasoning);
                reply.called_tool = whole.called_tool;
                reply.stop = whole.stop;
                reply.full_is_cut = whole.full_is_cut;
                reply.ended = whole.ended;
                reply.usage = whole.usage;
                reply.model = whole.model;
            }
            "error" => return Err(Reported::find(piece).unwrap_or_default()),
            _ => {}
        }
        Ok(())
    }

    fn whole(&self, reply: &mut Reply, answer: &Value) -> Result<(), Reported> {
        if answer["status"] == "failed" {
            return Err(Reported::find(answer).unwrap_or_default());
        }
        reply.model = answer["model"].as_str().map(str::to_owned);
        for item in answer["output"].as_array().into_iter().flatten() {
            match item["type"].as_str().unwrap_or_default() {
                "message" => {
                    for part in item["content"].as_array().into_iter().flatten() {
                        reply.push_text(&part["text"]);
                        if let Some(refusal) = part["refusal"].as_str() {
                            reply.stop = Some(Stop::Refused(crate::error::one_line(refusal)));
                        }
                    }
                }
                "reasoning" => {
                    for list in ["summary", "content"] {
                        for part in item[list].as_array().into_iter().flatten() {
                            reply.push_reasoning(&part["text"]);
                        }
                    }
                    // It may be kept back, but there was some.
                    reply.reasoning = reply.reasoning.max(1);
                }
                kind if kind.ends_with("_call") => reply.called_tool = true,
                _ => {}
            }
        }
        match answer["status"].as_str() {
            Some("completed") => {
                reply.ended = true;
                reply.full_is_cut = true;
            }
            Some("incomplete") => {
                reply.ended = true;
                let reason = answer["incomplete_details"]["reason"].as_str().unwrap_or("incomplete");
                reply.stop = Some(match reason {
                    "max_output_tokens" => Stop::Length,
                    other => Stop::Refused(other.to_owned()),
                });
            }
            Some("cancelled") => {
                reply.ended = true;
                reply.stop = Some(Stop::Refused("cancelled".to_owned()));
            }
            _ => {}
        }
        let usage = &answer["usage"];
        let cached = usage["input_tokens_details"]["cached_tokens"].as_u64();
        reply.usage.input =
            usage["input_tokens"].as_u64().map(|input| input.saturating_sub(cached.unwrap_or(0)));
        reply.usage.output = usage["output_tokens"].as_u64();
        reply.usage.cache_read = cached;
        Ok(())
    }
}

//! OpenAI's Chat Completions, which Ollama, llama.cpp, vLLM, LM Studio, OpenRouter and others speak too.

use serde_json::{Value, json};

use super::Request;
use super::address::Address;
use super::http::Speaks;
use super::reply::{Reply, Reported, Stop};

pub(crate) struct ChatCompletions {
    pub(crate) id: String,
    pub(crate) form: Form,
}

/// What of the requests a service understands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Form {
    /// The field that limits the output.
    limit: &'static str,
    /// Whether usage can be asked for in a stream.
    usage: bool,
}

const OLD_LIMIT: &str = "max_tokens";
const NEW_LIMIT: &str = "max_completion_tokens";

impl Form {
    /// Services that have kept up with OpenAI.
    pub(crate) const HOSTED: Self = Self { limit: NEW_LIMIT, usage: true };
    /// Servers that know the older field.
    pub(crate) const LOCAL: Self = Self { limit: OLD_LIMIT, usage: true };
    /// Services that refuse what they do not know.
    pub(crate) const STRICT: Self = Self { limit: OLD_LIMIT, usage: false };
}

impl Speaks for ChatCompletions {
    fn model(&self) -> &str {
        &self.id
    }

    fn call(&self, address: &Address, request: &Request) -> (String, Value) {
        let mut messages = Vec::new();
        if !request.system.is_empty() {
            messages.push(json!({"role": "system", "content": request.system}));
        }
        messages.push(json!({"role": "user", "content": request.prompt}));
        let mut body = json!({"model": self.id, "messages": messages, "stream": true});
        body[self.form.limit] = json!(request.max_output_tokens);
        if self.form.usage {
            body["stream_options"] = json!({"include_usage": true});
        }
        (address.join("/v1", "/chat/completions"), body)
    }

    fn simpler(&self, body: &Value, message: &str) -> Option<Value> {
        let message = message.to_lowercase();
        let mut simpler = body.clone();
        let fields = simpler.as_object_mut()?;
        if message.contains("stream_options") {
            fields.remove("stream_options")?;
            return Some(simpler);
        }
        let (from, to) =
            if self.form.limit == OLD_LIMIT { (OLD_LIMIT, NEW_LIMIT) } else { (NEW_LIMIT, OLD_LIMIT) };
        // "too large" also names the field, and would be no better under another name.
        let unknown =
            ["unsupported", "not supported", "unrecognized", "unknown", "extra", "not permitted", "use 'max"];
        if message.contains(from) && unknown.iter().any(|word| message.contains(word)) {
            let limit = fields.remove(from)?;
            fields.insert(to.to_owned(), limit);
            return Some(simpler);
        }
        None
    }

    fn piece(&self, reply: &mut Reply, piece: &Value) -> Result<(), Reported> {
        read(reply, piece, "delta")
    }

    fn whole(&self, reply: &mut Reply, answer: &Value) -> Result<(), Reported> {
        read(reply, answer, "message")?;
        // Some servers give no reason; an answer in one piece is complete all the same.
        reply.ended |= answer["choices"][0]["message"].is_object();
        Ok(())
    }
}

fn read(reply: &mut Reply, value: &Value, holder: &str) -> Result<(), Reported> {
    if value.get("error").is_some_and(|error| !error.is_null()) || value["object"] == "error" {
        return Err(Reported::find(value).unwrap_or_default());
    }
    if let Some(model) = value["model"].as_str().filter(|model| !model.is_empty()) {
        reply.model = Some(model.to_owned());
    }
    let choice = &value["choices"][0];
    let content = &choice[holder];
    match &content["content"] {
        Value::Array(parts) => {
            for part in parts {
                match part["type"].as_str() {
                    Some("thinking") => {
                        for thought in part["thinking"].as_array().into_iter().flatten() {
                            reply.push_reasoning(&thought["text"]);
                        }
                    }
                    _ => reply.push_text(&part["text"]),
                }
            }
        }
        text => reply.push_text(text),
    }
    // Both names are in use, sometimes for the same words.
    let named = if content["reasoning_content"].is_string() { "reasoning_content" } else { "reasoning" };
    reply.push_reasoning(&content[named]);
    if let Some(refusal) = content["refusal"].as_str().filter(|refusal| !refusal.is_empty()) {
        reply.stop = Some(Stop::Refused(crate::error::one_line(refusal)));
    }
    reply.called_tool |= content["tool_calls"].as_array().is_some_and(|calls| !calls.is_empty());
    if let Some(reason) = choice["finish_reason"].as_str().filter(|reason| !reason.is_empty()) {
        reply.ended = true;
        match reason {
            "length" | "max_tokens" | "model_length" => reply.stop = Some(Stop::Length),
            "content_filter" | "refusal" | "safety" => reply.stop = Some(Stop::Refused(reason.to_owned())),
            "tool_calls" | "function_call" => reply.called_tool = true,
            "error" => {
                return Err(Reported {
                    message: "the answer ended with an error".to_owned(),
                    kind: "server_error".to_owned(),
                    ..Reported::default()
                });
            }
            _ => {}
        }
    }
    let usage = &value["usage"];
    if usage.is_object() {
        let cached = usage["prompt_tokens_details"]["cached_tokens"].as_u64();
        reply.usage.input =
            usage["prompt_tokens"].as_u64().map(|input| input.saturating_sub(cached.unwrap_or(0)));
        reply.usage.output = usage["completion_tokens"].as_u64();
        reply.usage.cache_read = cached;
    }
    Ok(())
}

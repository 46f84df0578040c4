//! Gemini's streamGenerateContent.

use serde_json::{Value, json};

use super::Request;
use super::address::Address;
use super::http::Speaks;
use super::reply::{Reply, Reported, Stop};

pub(crate) struct Gemini {
    pub(crate) id: String,
}

impl Speaks for Gemini {
    fn model(&self) -> &str {
        &self.id
    }

    fn call(&self, address: &Address, request: &Request) -> (String, Value) {
        let mut body = json!({
            "contents": [{"role": "user", "parts": [{"text": request.prompt}]}],
            "generationConfig": {"maxOutputTokens": request.max_output_tokens},
        });
        if !request.system.is_empty() {
            body["systemInstruction"] = json!({"parts": [{"text": request.system}]});
        }
        // Reasoning counts as output, and a summary needs none.
        if let Some(thinking) = least_thinking(&self.id) {
            body["generationConfig"]["thinkingConfig"] = thinking;
        }
        let id = self.id.strip_prefix("models/").unwrap_or(&self.id);
        let url = address.join("/v1beta", &format!("/models/{}:streamGenerateContent", escaped(id)));
        let joint = if url.contains('?') { '&' } else { '?' };
        (format!("{url}{joint}alt=sse"), body)
    }

    fn key_header(&self) -> (&'static str, &'static str) {
        ("x-goog-api-key", "")
    }

    fn simpler(&self, body: &Value, message: &str) -> Option<Value> {
        if !message.to_lowercase().contains("thinking") {
            return None;
        }
        let mut body = body.clone();
        body["generationConfig"].as_object_mut()?.remove("thinkingConfig")?;
        Some(body)
    }

    fn piece(&self, reply: &mut Reply, piece: &Value) -> Result<(), Reported> {
        if piece.get("error").is_some() {
            return Err(Reported::find(piece).unwrap_or_default());
        }
        if let Some(model) = piece["modelVersion"].as_str() {
            reply.model = Some(model.to_owned());
        }
        if let Some(reason) = piece["promptFeedback"]["blockReason"].as_str() {
            reply.stop = Some(Stop::Refused(reason.to_owned()));
            reply.ended = true;
        }
        let candidate = &piece["candidates"][0];
        for part in candidate["content"]["parts"].as_array().into_iter().flatten() {
            if part["thought"] == true {
                reply.push_reasoning(&part["text"]);
            } else {
                reply.push_text(&part["text"]);
            }
            reply.called_tool |= part.get("functionCall").is_some();
        }
        if let Some(reason) = candidate["finishReason"].as_str() {
            reply.ended = true;
            match reason {
                "STOP" | "FINISH_REASON_UNSPECIFIED" => {}
                "MAX_TOKENS" => reply.stop = Some(Stop::Length),
                other => reply.stop = Some(Stop::Refused(other.to_owned())),
            }
        }
        let usage = &piece["usageMetadata"];
        if usage.is_object() {
            let count = |name: &str| usage[name].as_u64();
            let cached = count("cachedContentTokenCount");
            reply.usage.input =
                count("promptTokenCount").map(|input| input.saturating_sub(cached.unwrap_or(0)));
            let thoughts = count("thoughtsTokenCount");
            reply.usage.output = count("candidatesTokenCount")
                .or(thoughts.map(|_| 0))
                .map(|n| n.saturating_add(thoughts.unwrap_or(0)));
            reply.usage.cache_read = cached;
            if thoughts.is_some_and(|n| n > 0) {
                reply.reasoning = reply.reasoning.max(1);
            }
        }
        Ok(())
    }

    fn whole(&self, reply: &mut Reply, answer: &Value) -> Result<(), Reported> {
        // Without `alt=sse` the pieces come as one array.
        match answer.as_array() {
            Some(pieces) => pieces.iter().try_for_each(|piece| self.piece(reply, piece)),
            None => self.piece(reply, answer),
        }
    }
}

/// The setting that makes a model reason least; `None` where it is not known.
fn least_thinking(id: &str) -> Option<Value> {
    if id.contains("gemini-2.5-flash") {
        Some(json!({"thinkingBudget": 0}))
    } else if id.contains("gemini-2.5-pro") {
        Some(json!({"thinkingBudget": 128}))
    } else if id.contains("gemini-3") {
        Some(json!({"thinkingLevel": "low"}))
    } else {
        None
    }
}

/// An id as a part of a path: whatever could leave that part is escaped.
fn escaped(id: &str) -> String {
    let mut text = String::new();
    for byte in id.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._".contains(&byte) {
            text.push(char::from(byte));
        } else {
            text.push_str(&format!("%{byte:02X}"));
        }
    }
    text
}

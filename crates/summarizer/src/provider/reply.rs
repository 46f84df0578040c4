//! `Reply`: what arrives of an answer, and whether it is one (D7).

use serde_json::Value;

use super::{Completion, Usage};
use crate::error::Failure;

/// An answer as far as it has arrived.
#[derive(Debug, Default)]
pub(crate) struct Reply {
    pub(crate) text: String,
    /// Bytes of reasoning.
    pub(crate) reasoning: usize,
    /// The model called a tool, although it has none.
    pub(crate) called_tool: bool,
    pub(crate) stop: Option<Stop>,
    /// The server may call an answer complete that its limit has cut: llama-server does so over Responses. As
    /// many tokens as were allowed, to the last one, are such an answer.
    pub(crate) full_is_cut: bool,
    /// The provider has said that the answer is complete. The end of the connection says nothing.
    pub(crate) ended: bool,
    /// Nothing more comes: the connection need not be read on.
    pub(crate) closed: bool,
    pub(crate) usage: Usage,
    pub(crate) model: Option<String>,
}

/// Why a model stopped, where that is not the end of its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Stop {
    Length,
    /// The window was full before the answer was complete.
    Window,
    /// In the provider's own words.
    Refused(String),
}

/// An error that a provider reports: in the body of a failed answer, or in the middle of a stream.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Reported {
    pub(crate) message: String,
    /// `type`, `code` and `status` fields together, in lower case.
    pub(crate) kind: String,
    /// A status given in the body.
    pub(crate) status: Option<u16>,
    /// The body, for what it says about waiting.
    pub(crate) body: Box<Value>,
}

impl Reported {
    /// The error in `body`, in any of the forms in use; `None` if there is none.
    pub(crate) fn find(body: &Value) -> Option<Self> {
        // Gemini wraps an error in an array.
        let body = body.as_array().and_then(|list| list.first()).unwrap_or(body);
        let error = match &body["error"] {
            Value::Null if body["type"] == "error" || body["object"] == "error" => body,
            Value::Null => {
                // FastAPI and others.
                let detail = body.get("detail").or_else(|| body.get("message")).filter(|it| !it.is_null())?;
                return Some(Self {
                    message: words(detail),
                    body: Box::new(body.clone()),
                    ..Self::default()
                });
            }
            Value::String(text) => {
                let kind = [&body["code"], &body["type"]].map(words).join(" ").to_lowercase();
                return Some(Self {
                    message: text.clone(),
                    kind,
                    body: Box::new(body.clone()),
                    ..Self::default()
                });
            }
            error => error,
        };
        let kind = [&error["type"], &error["code"], &error["status"]].map(words).join(" ").to_lowercase();
        let message = match words(&error["message"]) {
            message if message.is_empty() => words(error),
            message => message,
        };
        let status = [&error["code"], &error["status"]].iter().find_map(|value| value.as_u64());
        let status =
            status.and_then(|status| u16::try_from(status).ok()).filter(|status| (400..600).contains(status));
        // What a gateway was told by the provider behind it says more than its own words.
        let raw = words(&error["metadata"]["raw"]);
        let message = if raw.is_empty() { message } else { format!("{message}: {raw}") };
        Some(Self { message, kind, status, body: Box::new(body.clone()) })
    }
}

fn words(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

impl Reply {
    /// Adds text, if the value is one.
    pub(crate) fn push_text(&mut self, value: &Value) {
        self.text.push_str(value.as_str().unwrap_or_default());
    }

    /// Counts reasoning, if the value is a text.
    pub(crate) fn push_reasoning(&mut self, value: &Value) {
        self.reasoning += value.as_str().unwrap_or_default().len();
    }

    /// The complete answer, or why it is none.
    pub(crate) fn finish(mut self, asked_model: &str, limit: u64) -> Result<Completion, (Failure, String)> {
        self.drop_inline_reasoning();
        if self.full_is_cut && self.stop.is_none() && self.usage.output == Some(limit) {
            self.stop = Some(Stop::Length);
        }
        let reasoned = self.reasoning > 0;
        let failure = if !self.ended {
            Some((Failure::Transient, "the connection ended before the answer was complete".to_owned()))
        } else {
            match self.stop.take() {
                Some(Stop::Refused(why)) => {
                    Some((Failure::Refused, format!("the model did not answer ({why})")))
                }
                Some(Stop::Window) => Some((
                    Failure::Overflow { prompt_tokens: self.usage.prompt(), window: None },
                    "the model's window was full before the answer was complete".to_owned(),
                )),
                Some(Stop::Length) if reasoned && self.text.trim().is_empty() => Some((
                    Failure::CutOff,
                    format!("the model reasoned until the limit of {limit} tokens and did not answer"),
                )),
                Some(Stop::Length) => {
                    Some((Failure::CutOff, format!("the answer was cut off at the limit of {limit} tokens")))
                }
                None if self.called_tool => {
                    Some((Failure::Refused, "the model called a tool instead of answering".to_owned()))
                }
                None if self.text.trim().is_empty() && reasoned => {
                    Some((Failure::Empty { only_reasoning: true }, "the answer is only reasoning".to_owned()))
                }
                None if self.text.trim().is_empty() => {
                    Some((Failure::Empty { only_reasoning: false }, "the answer is empty".to_owned()))
                }
                None => None,
            }
        };
        match failure {
            Some(failure) => Err(failure),
            None => Ok(Completion {
                text: self.text,
                usage: self.usage,
                model: self.model.unwrap_or_else(|| asked_model.to_owned()),
            }),
        }
    }

    /// Local servers send a model's reasoning as the beginning of its text, between tags.
    fn drop_inline_reasoning(&mut self) {
        let Some(after) = self.text.trim_start().strip_prefix("<think>") else {
            return;
        };
        let (reasoning, text) = after.split_once("</think>").unwrap_or((after, ""));
        self.reasoning += reasoning.len();
        self.text = text.trim_start().to_owned();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn ended(text: &str) -> Reply {
        Reply { text: text.to_owned(), ended: true, ..Reply::default() }
    }

    #[track_caller]
    fn fails(reply: Reply, failure: Failure) {
        assert_eq!(reply.finish("m", 100).unwrap_err().0, failure);
    }

    #[test]
    fn only_a_complete_answer_with_text_is_one() {
        assert_eq!(ended("text").finish("m", 100).unwrap().text, "text");
        fails(Reply { ended: false, ..ended("text") }, Failure::Transient);
        fails(ended(" \n"), Failure::Empty { only_reasoning: false });
        fails(Reply { reasoning: 5, ..ended("") }, Failure::Empty { only_reasoning: true });
        fails(Reply { called_tool: true, ..ended("let me look") }, Failure::Refused);
        fails(Reply { stop: Some(Stop::Length), ..ended("half") }, Failure::CutOff);
        let full = |full_is_cut| Reply {
            full_is_cut,
            usage: Usage { output: Some(100), ..Usage::default() },
            ..ended("half")
        };
        fails(full(true), Failure::CutOff);
        assert_eq!(full(false).finish("m", 100).unwrap().text, "half");
        assert_eq!(full(true).finish("m", 101).unwrap().text, "half");
        fails(Reply { stop: Some(Stop::Refused("x".to_owned())), ..ended("no") }, Failure::Refused);
        fails(
            Reply { stop: Some(Stop::Window), ..ended("half") },
            Failure::Overflow { prompt_tokens: None, window: None },
        );
    }

    #[test]
    fn reasoning_in_the_text_is_dropped() {
        let text = |text| ended(text).finish("m", 100).map(|completion| completion.text);
        assert_eq!(text("\n<think>hm</think>\n\nGoal").unwrap(), "Goal");
        assert_eq!(text("uses <think> tags").unwrap(), "uses <think> tags");
        fails(ended("<think>hm"), Failure::Empty { only_reasoning: true });
        fails(ended("<think>hm</think> "), Failure::Empty { only_reasoning: true });
    }

    #[track_caller]
    fn reported(body: Value, message: &str, kind: &str, status: Option<u16>) {
        let found = Reported::find(&body).map(|it| (it.message, it.kind.trim().to_owned(), it.status));
        assert_eq!(found, Some((message.to_owned(), kind.to_owned(), status)), "{body}");
    }

    #[test]
    fn errors_are_found_in_every_form() {
        reported(
            json!({"error": {"type": "overloaded_error", "message": "Overloaded"}}),
            "Overloaded",
            "overloaded_error",
            None,
        );
        reported(
            json!({"error": {"code": 400, "message": "no", "status": "INVALID_ARGUMENT"}}),
            "no",
            "400 invalid_argument",
            Some(400),
        );
        reported(
            json!([{"error": {"code": 503, "message": "busy", "status": "UNAVAILABLE"}}]),
            "busy",
            "503 unavailable",
            Some(503),
        );
        reported(json!({"error": "model not found"}), "model not found", "", None);
        reported(
            json!({"type": "error", "code": "server_error", "message": "m"}),
            "m",
            "error server_error",
            None,
        );
        reported(
            json!({"object": "error", "message": "m", "type": "BadRequestError", "code": 400}),
            "m",
            "badrequesterror 400",
            Some(400),
        );
        reported(json!({"detail": "Not Found"}), "Not Found", "", None);
        reported(
            json!({"error": {"message": "Provider returned error", "code": 502, "metadata": {"raw": "prompt is too long"}}}),
            "Provider returned error: prompt is too long",
            "502",
            Some(502),
        );
        assert_eq!(Reported::find(&json!({"choices": []})), None);
        assert_eq!(Reported::find(&json!("text")), None);
    }
}

//! A context as the body of a request to a model's API (spec 2.5).

use session_model::value::Value;
use session_model::wire::{self, WireFormat, WireOptions};

use super::{Context, ContextArgs, Format, blobs};
use crate::app::App;
use crate::model_window;

/// The API of a format, if it is one of an API.
pub(super) fn format(format: Format) -> Option<WireFormat> {
    match format {
        Format::Text | Format::Json | Format::Jsonl | Format::Markdown => None,
        Format::Anthropic => Some(WireFormat::Anthropic),
        Format::Openai => Some(WireFormat::OpenAi),
        Format::Responses => Some(WireFormat::Responses),
        Format::Gemini => Some(WireFormat::Gemini),
    }
}

/// Appends the body, and says what is not in it as it is in the context.
pub(super) fn write(
    app: &App,
    args: &ContextArgs,
    format: WireFormat,
    context: &Context<'_>,
    out: &mut Vec<u8>,
) -> Vec<String> {
    let messages: Vec<Value<'_>> = context.messages.iter().map(|message| message.value.clone()).collect();
    let current = || model_window::current_model(context.sequence).map(|(_, id)| id);
    let model = args.model.clone().or_else(current).unwrap_or_default();
    let resolve = |reference: &str| blobs::resolve(app, reference);
    let options = WireOptions { model: &model, max_tokens: args.max_tokens, resolve: &resolve };
    let body = wire::body(format, &messages, &options);
    out.extend_from_slice(body.json.to_json().as_bytes());
    out.push(b'\n');
    let mut notes: Vec<String> = body.changes.iter().map(ToString::to_string).collect();
    if model.is_empty() {
        notes.push("the session names no model; give one with --model".to_owned());
    }
    notes
}

//! Content of messages as plain parts: text and images whose data is at hand.

use super::{WireChange, WireChangeKind, WireOptions};
use crate::value::Value;

/// A part of a user message or tool result.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Part {
    Text(String),
    Image { mime_type: String, data: String },
}

const BLOB: &str = "blob:sha256:";

/// Image types that all four APIs take.
const IMAGE_TYPES: [&str; 4] = ["image/jpeg", "image/png", "image/gif", "image/webp"];

/// The text and image blocks of the content of message number `at`, without blank texts.
pub(super) fn parts(
    content: Option<&Value<'_>>,
    at: usize,
    options: &WireOptions<'_>,
    changes: &mut Vec<WireChange>,
) -> Vec<Part> {
    let mut parts = Vec::new();
    let text = |text: &str, parts: &mut Vec<Part>| {
        if !text.trim().is_empty() {
            parts.push(Part::Text(text.to_owned()));
        }
    };
    match content {
        Some(Value::String(whole)) => text(&whole.text(), &mut parts),
        Some(Value::Array(blocks)) => {
            for block in blocks {
                match block.text("type").as_deref() {
                    Some("text") => text(&block.text("text").unwrap_or_default(), &mut parts),
                    Some("image") => parts.push(image(block, options).unwrap_or_else(|placeholder| {
                        let name = Some(placeholder.clone());
                        changes.push(WireChange { kind: WireChangeKind::Image, message: Some(at), name });
                        Part::Text(format!("[image left out: {placeholder}]"))
                    })),
                    _ => {}
                }
            }
        }
        _ => {}
    }
    parts
}

/// An image with its data, or what is to be said of it.
fn image(block: &Value<'_>, options: &WireOptions<'_>) -> Result<Part, String> {
    let mime_type = block.text("mimeType").unwrap_or_default().into_owned();
    let data = block.text("data").unwrap_or_default();
    if !IMAGE_TYPES.contains(&mime_type.as_str()) {
        let shown = if mime_type.is_empty() { "no type" } else { mime_type.as_str() };
        return Err(shown.chars().take(60).collect());
    }
    let data = match data.strip_prefix(BLOB) {
        None => data.into_owned(),
        Some(hash) => match (options.resolve)(&data) {
            Some(found) => found,
            None => return Err(format!("blob {} is missing", hash.chars().take(64).collect::<String>())),
        },
    };
    if data.is_empty() { Err("no data".to_owned()) } else { Ok(Part::Image { mime_type, data }) }
}

/// The texts among the parts, a line each.
pub(super) fn joined_text(parts: &[Part]) -> String {
    let texts = parts.iter().filter_map(|part| match part {
        Part::Text(text) => Some(text.as_str()),
        Part::Image { .. } => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// The images among the parts.
pub(super) fn images(parts: &[Part]) -> Vec<Part> {
    parts.iter().filter(|part| matches!(part, Part::Image { .. })).cloned().collect()
}

/// An image as the address that OpenAI's APIs take.
pub(super) fn data_url(mime_type: &str, data: &str) -> Value<'static> {
    Value::from(format!("data:{mime_type};base64,{data}"))
}

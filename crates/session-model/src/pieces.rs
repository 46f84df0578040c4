//! What a message holds in pieces: the parts that cost tokens (spec 3.2).

use crate::message::Role;
use crate::text::Str;
use crate::value::Value;

/// A part of a message that counts.
pub enum Piece<'m, 'a> {
    /// Text.
    Text(&'m Str<'a>),
    /// A value that counts as its JSON.
    Json(&'m Value<'a>),
    /// An image.
    Image,
}

/// Hands out what a message (or the replaced content of one) holds: the parts that cost tokens, by spec 3.2.
pub fn pieces<'m, 'a>(message: &'m Value<'a>, take: &mut dyn FnMut(Piece<'m, 'a>)) {
    let role = message.text("role").map_or(Role::Unknown, |role| Role::from_wire(&role));
    let fields: &[&str] = match role {
        Role::User
        | Role::Developer
        | Role::Assistant
        | Role::ToolResult
        | Role::Custom
        | Role::FileMention => &[],
        Role::System => &["content"],
        Role::BashExecution | Role::PythonExecution if is_excluded(message) => &[],
        Role::BashExecution => &["command", "output"],
        Role::PythonExecution => &["code", "output"],
        Role::BranchSummary | Role::CompactionSummary => &["summary"],
        Role::Unknown => &[],
    };
    for name in fields {
        if let Some(Value::String(text)) = message.get(name) {
            take(Piece::Text(text));
        }
    }
    match role {
        Role::User | Role::Developer | Role::Assistant | Role::ToolResult | Role::Custom => {
            if let Some(content) = message.get("content") {
                content_pieces(content, take);
            }
        }
        Role::System => {
            for (_, section) in message
                .get("sections")
                .and_then(Value::as_object)
                .into_iter()
                .flat_map(|object| object.iter())
            {
                if let Value::String(text) = section {
                    take(Piece::Text(text));
                }
            }
            if let Some(tools) = message.get("toolsAdded") {
                take(Piece::Json(tools));
            }
        }
        Role::FileMention => {
            for file in message.get("files").map_or(&[][..], Value::items) {
                if let Some(Value::String(text)) = file.get("content") {
                    take(Piece::Text(text));
                }
                if file.get("image").is_some() {
                    take(Piece::Image);
                }
            }
        }
        Role::BashExecution
        | Role::PythonExecution
        | Role::BranchSummary
        | Role::CompactionSummary
        | Role::Unknown => {}
    }
}

/// Whether the user kept an execution from the model.
pub fn is_excluded(message: &Value<'_>) -> bool {
    message.get("excludeFromContext").and_then(Value::as_bool) == Some(true)
}

/// Hands out what a content value (a string or an array of blocks) holds.
pub fn content_pieces<'m, 'a>(content: &'m Value<'a>, take: &mut dyn FnMut(Piece<'m, 'a>)) {
    if let Value::String(text) = content {
        take(Piece::Text(text));
    }
    for block in content.items() {
        let text = match block.text("type").as_deref() {
            Some("text") => block.get("text"),
            Some("thinking") => block.get("thinking"),
            Some("image") => {
                take(Piece::Image);
                None
            }
            Some("toolCall") => {
                if let Some(arguments) = block.get("arguments") {
                    take(Piece::Json(arguments));
                }
                block.get("name")
            }
            _ => None,
        };
        if let Some(Value::String(text)) = text {
            take(Piece::Text(text));
        }
    }
}

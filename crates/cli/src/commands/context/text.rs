//! A context for a person: one titled block a message.

use std::borrow::Cow;
use std::fmt::Write as _;

use session_model::agent_message::AgentMessage;
use session_model::message::Role;
use session_model::sequence::Share;
use session_model::session::Session;
use session_model::text::shown;
use session_model::value::Value;

use crate::figures::{bytes as size, count};
use crate::printer::Paint;

/// How the text is written.
#[derive(Clone, Copy)]
pub(super) struct Style {
    pub(super) paint: Paint,
    /// Control characters of contents are spelled out there.
    pub(super) is_terminal: bool,
}

/// Appends the `n`th message, from 0.
pub(super) fn write(
    session: &Session,
    n: usize,
    message: &AgentMessage<'_>,
    style: Style,
    text: &mut String,
) {
    let Style { paint, is_terminal } = style;
    if n > 0 {
        text.push('\n');
    }
    let _ = writeln!(text, "{}", paint.bold(title(session, n, message)));
    for (label, body) in parts(&message.value) {
        if let Some(label) = label {
            let _ = writeln!(text, "{}", paint.accent(shown(&label)));
        }
        let body = if is_terminal { harmless(&body) } else { body };
        text.push_str(&body);
        if !body.is_empty() && !body.ends_with('\n') {
            text.push('\n');
        }
    }
}

fn title(session: &Session, n: usize, message: &AgentMessage<'_>) -> String {
    let value = &message.value;
    let role = value.text("role").unwrap_or_default();
    let tokens = tokens(session, message);
    let mut title = format!(
        "── {:03} {role}  {}  {}",
        n + 1,
        shown(session.id(message.item.entry)),
        count(tokens, "token")
    );
    let mut add = |words: &str| {
        title.push_str("  ");
        title.push_str(&shown(words));
    };
    match &*role {
        "assistant" => {
            if let (Some(provider), Some(model)) = (value.text("provider"), value.text("model")) {
                add(&format!("{provider}/{model}"));
            }
            match value.text("stopReason").as_deref() {
                Some("stop" | "toolUse") | None => {}
                Some(other) => add(other),
            }
        }
        "toolResult" => {
            add(&value.text("toolName").unwrap_or_default());
            if value.get("isError").and_then(Value::as_bool) == Some(true) {
                add("error");
            }
            if value.get("prunedAt").is_some() {
                add("pruned");
            }
        }
        _ => {}
    }
    title
}

/// Tokens of a message as it is printed. Those that the reading pass has counted are not counted again: what becomes the same
/// message for the model has the same pieces.
fn tokens(session: &Session, message: &AgentMessage<'_>) -> u64 {
    let AgentMessage { item, value } = message;
    let stays = session.entry(item.entry).message().is_some_and(|facts| {
        matches!(facts.role, Role::User | Role::Developer | Role::Assistant | Role::ToolResult)
            && facts.pruned_at.is_none()
    });
    if stays && item.share == Share::Own {
        debug_assert_eq!(item.estimate, session.tokenizer.message(value), "{}", session.id(item.entry));
        return item.estimate;
    }
    session.tokenizer.message(value)
}

/// The parts of a message with their labels.
pub(super) fn parts<'m>(message: &'m Value<'_>) -> Vec<(Option<String>, Cow<'m, str>)> {
    let mut parts = Vec::new();
    for field in ["command", "code", "output", "summary"] {
        if let Some(text) = message.text(field) {
            parts.push((Some(format!("{field}:")), text));
        }
    }
    match message.get("content") {
        Some(Value::String(text)) => parts.push((None, text.text())),
        Some(Value::Array(blocks)) => parts.extend(blocks.iter().map(block)),
        _ => {}
    }
    if let Some(sections) = message.get("sections").and_then(Value::as_object) {
        for (name, section) in sections.iter() {
            parts.push((Some(format!("section {}:", name.text())), section.as_str().unwrap_or_default()));
        }
    }
    for field in ["toolsAdded", "toolsRemoved"] {
        if let Some(tools) = message.get(field) {
            parts.push((Some(format!("{field}:")), tools.to_json().into()));
        }
    }
    for file in message.get("files").map_or(&[][..], Value::items) {
        let path = file.text("path").unwrap_or_default();
        parts.push((Some(format!("file {path}:")), file.text("content").unwrap_or_default()));
        parts.extend(file.get("image").filter(|image| !image.is_null()).map(block));
    }
    if let Some(error) = message.text("errorMessage") {
        parts.push((Some("error:".to_owned()), error));
    }
    parts
}

fn block<'m>(block: &'m Value<'_>) -> (Option<String>, Cow<'m, str>) {
    let kind = block.text("type").unwrap_or_default();
    match &*kind {
        "text" => (None, block.text("text").unwrap_or_default()),
        "thinking" => {
            let label =
                if block.get("thinkingSignature").is_some() { "thinking (signed):" } else { "thinking:" };
            (Some(label.to_owned()), block.text("thinking").unwrap_or_default())
        }
        "toolCall" => {
            let arguments = block.get("arguments").map_or_else(String::new, Value::to_json);
            let (id, name) = (block.text("id").unwrap_or_default(), block.text("name").unwrap_or_default());
            (Some(format!("call {name} ({id}):")), arguments.into())
        }
        "image" => (None, image(block).into()),
        other => (Some(format!("{other}:")), block.to_json().into()),
    }
}

/// An image in one line.
fn image(block: &Value<'_>) -> String {
    let kind = block.text("mimeType").unwrap_or_default();
    let data = block.text("data").unwrap_or_default();
    match data.strip_prefix("blob:") {
        Some(blob) => format!("[image {kind}, stored as {blob}]"),
        None => format!("[image {kind}, {}]", size(data.len() as u64 / 4 * 3)),
    }
}

/// Content with its control characters spelled out, line ends and tabs apart.
pub(super) fn harmless(text: &str) -> Cow<'_, str> {
    if text.split(['\n', '\t']).all(|piece| matches!(shown(piece), Cow::Borrowed(_))) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    for piece in text.split_inclusive(['\n', '\t']) {
        let body = piece.trim_end_matches(['\n', '\t']);
        out.push_str(&shown(body));
        out.push_str(&piece[body.len()..]);
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::harmless;

    #[test]
    fn only_line_ends_and_tabs_stay_control_characters() {
        assert_eq!(harmless("a\tb\n\nc\n"), "a\tb\n\nc\n");
        assert_eq!(
            harmless("\u{1b}[2J\n\t\u{7}\r\u{9b}31m\u{202e}x\n"),
            "\\u{1b}[2J\n\t\\u{7}\\r\\u{9b}31m\\u{202e}x\n"
        );
    }
}

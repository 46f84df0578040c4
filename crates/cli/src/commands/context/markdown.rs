//! A context as Markdown.

use std::fmt::Write as _;

use super::Context;
use super::text::{harmless, parts};

/// Appends the Markdown: a heading for each message, labelled parts in fences. On a terminal the control characters of contents
/// are spelled out.
pub(super) fn write(context: &Context<'_>, is_terminal: bool, out: &mut Vec<u8>) {
    let session = context.sequence.session;
    let mut text = String::new();
    if let Some(title) = session.title() {
        let _ = writeln!(text, "# {}\n", title.replace('\n', " "));
    }
    for (n, message) in context.messages.iter().enumerate() {
        let role = message.value.text("role").unwrap_or_default();
        let id = session.id(message.item.entry);
        let _ = writeln!(text, "## {} {} `{id}`\n", n + 1, heading(&role));
        for (label, body) in parts(&message.value) {
            match label {
                None if role != "toolResult" => {
                    text.push_str(body.trim_end());
                    text.push_str("\n\n");
                }
                label => {
                    if let Some(label) = label {
                        let _ = writeln!(text, "*{}*\n", label.trim_end_matches(':'));
                    }
                    let fence = fence(&body);
                    let _ = writeln!(text, "{fence}\n{}\n{fence}\n", body.trim_end_matches('\n'));
                }
            }
        }
    }
    let text = if is_terminal { harmless(&text) } else { text.into() };
    out.extend_from_slice(text.as_bytes());
}

fn heading(role: &str) -> &str {
    match role {
        "user" => "User",
        "assistant" => "Assistant",
        "developer" => "Developer",
        "system" => "System",
        "toolResult" => "Tool result",
        other => other,
    }
}

/// A fence longer than any in the text.
fn fence(text: &str) -> String {
    let mut longest = 0;
    for line in text.lines() {
        let line = line.trim_start();
        longest = longest.max(line.len() - line.trim_start_matches('`').len());
    }
    "`".repeat((longest + 1).max(3))
}

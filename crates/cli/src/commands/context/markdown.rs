//! A context as Markdown.

use std::fmt::Write as _;

use session_model::agent_message::AgentMessage;
use session_model::session::Session;

use super::text::parts;

/// Appends the session's name, if it has one.
pub(super) fn write_title(session: &Session, text: &mut String) {
    if let Some(title) = session.title() {
        let _ = writeln!(text, "# {}\n", title.replace('\n', " "));
    }
}

/// Appends the `n`th message, from 0: a heading, and labelled parts in fences.
pub(super) fn write(session: &Session, n: usize, message: &AgentMessage<'_>, text: &mut String) {
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

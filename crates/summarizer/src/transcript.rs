//! Messages → plain text, with the truncation rule (spec 5.2).

use std::borrow::Cow;

use session_model::message::Role;
use session_model::text::{take_units, units};
use session_model::value::{Object, Value};

/// UTF-16 units of a tool result that are shown.
const SHOWN_RESULT_UNITS: u64 = 2000;

/// The tags that build a request: a transcript must not be able to close or open one (spec D11).
const TAGS: [&str; 6] = [
    "<conversation>",
    "</conversation>",
    "<previous-summary>",
    "</previous-summary>",
    "<additional-context>",
    "</additional-context>",
];

/// The transcript of model messages: parts joined by a blank line.
pub fn transcript(messages: &[Value<'_>]) -> String {
    join(messages.iter().flat_map(parts))
}

/// Joins parts by a blank line.
pub fn join(parts: impl IntoIterator<Item = String>) -> String {
    let mut text = String::new();
    for part in parts {
        if !text.is_empty() {
            text.push_str("\n\n");
        }
        text.push_str(&part);
    }
    text
}

/// The parts that one model message gives; none for what a transcript does not show.
pub fn parts(message: &Value<'_>) -> Vec<String> {
    let Some(role) = message.text("role").map(|role| Role::from_wire(&role)) else { return Vec::new() };
    match role {
        Role::User | Role::Developer => {
            let text = content_text(message);
            if text.is_empty() { Vec::new() } else { vec![format!("[User]: {}", escaped(&text))] }
        }
        Role::Assistant => assistant_parts(message),
        Role::ToolResult => {
            let text = content_text(message);
            if text.is_empty() {
                Vec::new()
            } else {
                vec![format!("[Tool result]: {}", escaped(&cut(&text)))]
            }
        }
        Role::System
        | Role::BashExecution
        | Role::PythonExecution
        | Role::Custom
        | Role::FileMention
        | Role::BranchSummary
        | Role::CompactionSummary
        | Role::Unknown => Vec::new(),
    }
}

fn assistant_parts(message: &Value<'_>) -> Vec<String> {
    let (mut thinking, mut text, mut calls) = (None, None, Vec::new());
    let add = |part: &mut Option<String>, block: &Value<'_>, field: &str| {
        let added = block.text(field).unwrap_or_default();
        match part {
            Some(part) => {
                part.push('\n');
                part.push_str(&added);
            }
            None => *part = Some(added.into_owned()),
        }
    };
    if let Some(Value::String(content)) = message.get("content") {
        text = Some(content.text().into_owned());
    }
    for block in message.get("content").map_or(&[][..], Value::items) {
        match block.text("type").as_deref() {
            Some("thinking") => add(&mut thinking, block, "thinking"),
            Some("text") => add(&mut text, block, "text"),
            Some("toolCall") => calls.push(call(block)),
            _ => {}
        }
    }
    let calls = (!calls.is_empty()).then(|| calls.join("; "));
    [("[Assistant thinking]: ", thinking), ("[Assistant]: ", text), ("[Assistant tool calls]: ", calls)]
        .into_iter()
        .filter_map(|(label, part)| Some(format!("{label}{}", escaped(&part?))))
        .collect()
}

/// `name(key=JSON, …)`, keys in JavaScript's order.
fn call(block: &Value<'_>) -> String {
    let arguments = block.get("arguments").and_then(Value::as_object).map_or_else(Vec::new, Object::js_order);
    let arguments: Vec<String> =
        arguments.into_iter().map(|(key, value)| format!("{}={}", key.text(), value.to_json())).collect();
    format!("{}({})", block.text("name").unwrap_or_default(), arguments.join(", "))
}

/// A string, or the text blocks of content, joined with nothing.
pub(crate) fn content_text<'m>(message: &'m Value<'_>) -> Cow<'m, str> {
    match message.get("content") {
        Some(Value::String(text)) => text.text(),
        Some(Value::Array(blocks)) => {
            let is_text = |block: &&Value<'_>| block.text("type").as_deref() == Some("text");
            let mut texts =
                blocks.iter().filter(is_text).filter_map(|block| block.get("text").and_then(Value::as_str));
            let first = texts.next().unwrap_or_default();
            match texts.next() {
                None => first,
                Some(second) => Cow::Owned(first.into_owned() + &second + &texts.collect::<String>()),
            }
        }
        _ => Cow::Borrowed(""),
    }
}

/// The start of a tool result, and how much is missing. A surrogate pair is not split (spec D18).
fn cut(text: &str) -> Cow<'_, str> {
    let length = units(text);
    if length <= SHOWN_RESULT_UNITS {
        return Cow::Borrowed(text);
    }
    let missing = length - SHOWN_RESULT_UNITS;
    let shown = take_units(text, SHOWN_RESULT_UNITS);
    Cow::Owned(format!("{shown}\n\n[... {missing} more characters truncated]"))
}

/// The text with the `<` of every tag of a request spelled `&lt;`.
pub(crate) fn escaped(text: &str) -> Cow<'_, str> {
    let mut escaped = Cow::Borrowed(text);
    for tag in TAGS {
        if escaped.contains(tag) {
            escaped = Cow::Owned(escaped.replace(tag, &format!("&lt;{}", &tag[1..])));
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(message: &str, expected: &str) {
        assert_eq!(transcript(&[Value::parse(message).expect("valid JSON")]), expected);
    }

    #[test]
    fn every_kind_of_message_has_its_label() {
        check(r#"{"role":"user","content":"hi"}"#, "[User]: hi");
        check(
            r#"{"role":"user","content":[{"type":"text","text":"a"},{"type":"image"},{"type":"text","text":"b"}]}"#,
            "[User]: ab",
        );
        check(r#"{"role":"developer","content":"d"}"#, "[User]: d");
        check(r#"{"role":"user","content":[]}"#, "");
        check(r#"{"role":"toolResult","content":[{"type":"text","text":"r"}]}"#, "[Tool result]: r");
        check(r#"{"role":"toolResult","content":[]}"#, "");
        check(r#"{"role":"system","content":"s"}"#, "");
    }

    #[test]
    fn an_assistants_blocks_come_by_kind() {
        check(
            r#"{"role":"assistant","content":[{"type":"text","text":"t1"},{"type":"thinking","thinking":"h"},{"type":"toolCall","name":"read","arguments":{"path":"a","2":1.0,"x":{"y":[1e3]}}},{"type":"text","text":"t2"},{"type":"toolCall","name":"ls","arguments":{}}]}"#,
            "[Assistant thinking]: h\n\n[Assistant]: t1\nt2\n\n[Assistant tool calls]: read(2=1, path=\"a\", x={\"y\":[1000]}); ls()",
        );
        check(
            r#"{"role":"assistant","content":[{"type":"thinking","thinking":""}]}"#,
            "[Assistant thinking]: ",
        );
        check(r#"{"role":"assistant","content":[{"type":"robot"}]}"#, "");
    }

    #[test]
    fn a_long_result_is_cut_and_a_pair_stays_whole() {
        let message = |text: &str| format!(r#"{{"role":"toolResult","content":"{text}"}}"#);
        let a = |n: usize| "a".repeat(n);
        check(&message(&a(2000)), &format!("[Tool result]: {}", a(2000)));
        check(
            &message(&a(2003)),
            &format!("[Tool result]: {}\n\n[... 3 more characters truncated]", a(2000)),
        );
        check(
            &message(&format!("{}😀b", a(1999))),
            &format!("[Tool result]: {}\n\n[... 2 more characters truncated]", a(1999)),
        );
    }

    #[test]
    fn the_requests_own_tags_are_escaped_everywhere() {
        check(
            r#"{"role":"user","content":"a</conversation>b<previous-summary>"}"#,
            "[User]: a&lt;/conversation>b&lt;previous-summary>",
        );
        check(
            r#"{"role":"assistant","content":[{"type":"toolCall","name":"w","arguments":{"t":"</additional-context>"}}]}"#,
            r#"[Assistant tool calls]: w(t="&lt;/additional-context>")"#,
        );
    }
}

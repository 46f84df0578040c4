//! The system messages of a context as one: prompt, sections and tools as they stand after all changes (spec 1.4, 3.7).

use indexmap::IndexMap;

use crate::message::Role;
use crate::sequence::{Part, Sequence};
use crate::text::Str;
use crate::tokens::Tokenizer;
use crate::value::{Object, Value};

/// What a list of system messages comes to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SystemFold {
    /// The contents that are not empty, a blank line between them.
    pub content: String,
    /// Sections by name, in the order in which they came.
    pub sections: IndexMap<String, String>,
    /// Definitions of the tools that are left, by name.
    pub tools: IndexMap<String, Value<'static>>,
}

/// Folds the system messages among `messages`; `None` if there is none. A message without any content counts as one.
pub fn fold<'m, 'a: 'm>(messages: impl IntoIterator<Item = &'m Value<'a>>) -> Option<SystemFold> {
    let mut fold: Option<SystemFold> = None;
    for message in messages {
        if message.text("role").as_deref() == Some(Role::System.wire()) {
            fold.get_or_insert_default().add(message);
        }
    }
    fold
}

/// The fold of the system messages of a context: that of the compaction which heads it, and those that come later.
pub fn fold_of(sequence: &Sequence<'_>) -> Option<SystemFold> {
    let mut fold: Option<SystemFold> = None;
    for item in &sequence.items {
        let json = match sequence.entry(item).compaction() {
            Some(compaction) if item.part == Part::Summary => compaction.system_message.as_deref(),
            _ => sequence.message(item).and_then(|message| message.system.as_deref()),
        };
        if let Some(json) = json {
            fold.get_or_insert_default().add(&Value::parse(json).expect("the reader has been over it"));
        }
    }
    fold
}

impl SystemFold {
    fn add(&mut self, message: &Value<'_>) {
        let text = content_text(message.get("content"));
        if !text.is_empty() {
            if !self.content.is_empty() {
                self.content.push_str("\n\n");
            }
            self.content.push_str(&text);
        }
        let sections = message.get("sections").and_then(Value::as_object);
        for (name, section) in sections.into_iter().flat_map(Object::js_order) {
            match section {
                Value::String(text) => {
                    self.sections.insert(name.text().into_owned(), text.text().into_owned());
                }
                _ => {
                    self.sections.shift_remove(name.text().as_ref());
                }
            }
        }
        // A changed tool is removed and added by one message.
        for tool in message.get("toolsRemoved").map_or(&[][..], Value::items) {
            self.tools.shift_remove(tool.text("name").unwrap_or_default().as_ref());
        }
        for tool in message.get("toolsAdded").map_or(&[][..], Value::items) {
            let name = tool.text("name").unwrap_or_default().into_owned();
            self.tools.insert(name, tool.clone().into_owned());
        }
    }

    /// The whole prompt: the content, then the sections, a blank line between them.
    pub fn text(&self) -> String {
        let parts = std::iter::once(&self.content).chain(self.sections.values());
        let parts: Vec<&str> = parts.map(String::as_str).filter(|part| !part.is_empty()).collect();
        parts.join("\n\n")
    }

    /// The fold as one system message of the time `time_ms`, in milliseconds since 1970.
    pub fn to_message(&self, time_ms: i64) -> Value<'static> {
        let mut message = Object::new();
        message.set("role", Role::System.wire());
        message.set("content", self.content.clone());
        if !self.sections.is_empty() {
            let sections = self.sections.iter();
            let sections = sections.map(|(name, text)| (Str::from(name.clone()), Value::from(text.clone())));
            message.set("sections", sections.collect::<Object<'static>>());
        }
        if !self.tools.is_empty() {
            message.set("toolsAdded", self.tools.values().cloned().collect::<Vec<_>>());
        }
        message.set("timestamp", time_ms as f64);
        Value::Object(message)
    }

    /// Tokens that the fold counts: content, sections, and the tools as JSON (spec 3.2).
    pub fn estimate(&self, tokenizer: Tokenizer) -> u64 {
        tokenizer.message(&self.to_message(0))
    }
}

/// Text of a content value: a string, or the text blocks of an array, one a line.
fn content_text(content: Option<&Value<'_>>) -> String {
    match content {
        Some(Value::String(text)) => text.text().into_owned(),
        Some(Value::Array(blocks)) => {
            let texts = blocks
                .iter()
                .filter(|block| block.text("type").as_deref() == Some("text"))
                .filter_map(|block| block.text("text"));
            texts.collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::Session;

    /// The expected messages are what P1 makes of the same list.
    #[track_caller]
    fn check(messages: &str, folded: Option<&str>) {
        let messages = Value::parse(messages).expect("valid JSON");
        let fold = fold(messages.items());
        assert_eq!(fold.map(|fold| fold.to_message(5).to_json()).as_deref(), folded);
    }

    #[test]
    fn without_system_messages_there_is_no_fold() {
        check(r#"[{"role":"user","content":"x"}]"#, None);
        check(
            r#"[{"role":"system","content":null}]"#,
            Some(r#"{"role":"system","content":"","timestamp":5}"#),
        );
    }

    #[test]
    fn contents_are_joined_and_empty_ones_leave_no_gap() {
        check(
            r#"[{"role":"system","content":"a"},{"role":"user","content":"x"},{"role":"system","content":""},{"role":"system","content":[{"type":"text","text":"b"},{"type":"text","text":"c"}]}]"#,
            Some(r#"{"role":"system","content":"a\n\nb\nc","timestamp":5}"#),
        );
    }

    #[test]
    fn sections_are_patched_by_name_and_keep_their_place() {
        check(
            r#"[{"role":"system","content":"a","sections":{"x":"1","y":"2","z":"3"}},{"role":"system","content":"","sections":{"y":null,"x":"4"}},{"role":"system","content":"","sections":{"y":"5","7":"6"}}]"#,
            Some(
                r#"{"role":"system","content":"a","sections":{"7":"6","x":"4","z":"3","y":"5"},"timestamp":5}"#,
            ),
        );
        check(
            r#"[{"role":"system","content":"a","sections":{"x":"1"}},{"role":"system","content":"","sections":{"x":null}}]"#,
            Some(r#"{"role":"system","content":"a","timestamp":5}"#),
        );
    }

    #[test]
    fn tools_are_removed_before_others_are_added() {
        check(
            r#"[{"role":"system","content":"","toolsAdded":[{"name":"a","v":1},{"name":"b"},{"name":"c"}]},{"role":"system","content":"","toolsRemoved":[{"name":"a"},{"name":"b"}],"toolsAdded":[{"name":"a","v":2},{"name":"c","v":3}]}]"#,
            Some(
                r#"{"role":"system","content":"","toolsAdded":[{"name":"c","v":3},{"name":"a","v":2}],"timestamp":5}"#,
            ),
        );
    }

    #[test]
    fn the_text_of_the_prompt_is_content_and_sections() {
        let messages =
            Value::parse(r#"[{"role":"system","content":"a","sections":{"x":"1","y":"","z":"2"}}]"#)
                .expect("valid JSON");
        let fold = fold(messages.items()).expect("there is a system message");
        assert_eq!(fold.text(), "a\n\n1\n\n2");
        assert_eq!(fold.estimate(Tokenizer::Units), 1);
    }

    #[test]
    fn a_context_folds_what_its_compaction_hands_on_with_what_follows() {
        let file = concat!(
            r#"{"type":"session","version":3,"id":"s"}"#,
            "\n",
            r#"{"type":"message","id":"1","parentId":null,"message":{"role":"system","content":"old"}}"#,
            "\n",
            r#"{"type":"compaction","id":"2","parentId":"1","summary":"s","firstKeptEntryId":"1","systemMessage":{"role":"system","content":"kept","toolsAdded":[{"name":"t"}]}}"#,
            "\n",
            r#"{"type":"message","id":"3","parentId":"2","message":{"role":"system","content":"new","toolsRemoved":[{"name":"t"}]}}"#,
            "\n",
        );
        let (session, _) = Session::read(file.as_bytes()).expect("a session");
        let fold = fold_of(&session.branch(None).effective()).expect("there are system messages");
        assert_eq!((fold.content.as_str(), fold.tools.len()), ("kept\n\nnew", 0));
    }
}

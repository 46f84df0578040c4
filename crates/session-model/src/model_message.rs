//! From agent messages to model messages: user, developer, assistant, tool result and system, and nothing else (spec 2.3).

use std::borrow::Cow;

use crate::execution_text::{BashExecution, MentionedFile, PythonExecution, file_mention_text};
use crate::message::Role;
use crate::output_notice::{Diagnostics, OutputLimits, OutputMeta, ReachedLimit, Truncation};
use crate::pieces::is_excluded;
use crate::prompts::Prompts;
use crate::text::Str;
use crate::value::{Object, Value};

/// What the model gets of an agent message; `None` if it gets nothing.
pub fn model_message<'a>(agent: Value<'a>, prompts: &Prompts) -> Option<Value<'a>> {
    let role = Role::from_wire(&agent.text("role")?);
    let Value::Object(mut message) = agent else { return None };
    match role {
        Role::System | Role::Assistant => {}
        Role::User => attribute(&mut message, "user"),
        Role::Developer => attribute(&mut message, "agent"),
        Role::ToolResult => {
            if message.get("prunedAt").is_some() {
                let content = pruned_content(&message);
                message.set("content", content);
            }
            attribute(&mut message, "agent");
        }
        Role::Custom => {
            let content = blocks(message.get("content"));
            message = user(content, None, &message);
        }
        Role::BashExecution if is_excluded_object(&message) => return None,
        Role::PythonExecution if is_excluded_object(&message) => return None,
        Role::BashExecution => message = user(text_block(bash_text(&message)), Some("user"), &message),
        Role::PythonExecution => message = user(text_block(python_text(&message)), Some("user"), &message),
        Role::FileMention => message = user(mentioned_files(&message), Some("user"), &message),
        Role::BranchSummary => {
            let text = prompts.branch_summary_context(&field(&message, "summary"));
            message = user(text_block(text), Some("agent"), &message);
        }
        Role::CompactionSummary => {
            let text = prompts.compaction_summary_context(&field(&message, "summary"));
            message = user(text_block(text), Some("agent"), &message);
        }
        Role::Unknown => return None,
    }
    Some(Value::Object(message))
}

fn is_excluded_object(message: &Object<'_>) -> bool {
    message.get("excludeFromContext").and_then(Value::as_bool) == Some(true)
}

fn attribute(message: &mut Object<'_>, attribution: &'static str) {
    if message.get("attribution").is_none_or(Value::is_null) {
        message.set("attribution", attribution);
    }
}

/// A user message with this content; attribution, payload and time come from `agent`.
fn user<'a>(content: Value<'a>, attribution: Option<&'static str>, agent: &Object<'a>) -> Object<'a> {
    let mut message = Object::new();
    message.set("role", Role::User.wire());
    message.set("content", content);
    let own = agent.get("attribution").filter(|own| !own.is_null()).cloned();
    message.set_some("attribution", own.or_else(|| attribution.map(Value::from)));
    message.set_some("providerPayload", agent.get("providerPayload").cloned());
    message.set_some("timestamp", agent.get("timestamp").cloned());
    message
}

fn text_block<'a>(text: impl Into<Value<'a>>) -> Value<'a> {
    let mut block = Object::new();
    block.set("type", "text");
    block.set("text", text.into());
    Value::Array(vec![Value::Object(block)])
}

/// Content as blocks: a string is one text block, and null none.
fn blocks<'a>(content: Option<&Value<'a>>) -> Value<'a> {
    match content {
        Some(Value::String(text)) => text_block(Value::String(text.clone())),
        Some(Value::Array(items)) => Value::Array(items.clone()),
        _ => Value::Array(Vec::new()),
    }
}

/// What is left of a pruned tool result: its text as one block.
fn pruned_content<'a>(message: &Object<'a>) -> Value<'a> {
    let content = blocks(message.get("content"));
    let texts: Vec<&Str<'_>> = content
        .items()
        .iter()
        .filter(|block| block.text("type").as_deref() == Some("text"))
        .filter_map(|block| block.get("text").and_then(Value::as_string))
        .collect();
    match texts[..] {
        [] => text_block("[Output truncated]"),
        [only] if only.is_empty() => text_block("[Output truncated]"),
        [only] => text_block(Value::String(only.clone())),
        _ => {
            let joined: String = texts.iter().map(|text| text.text()).collect();
            if joined.is_empty() { text_block("[Output truncated]") } else { text_block(joined) }
        }
    }
}

fn field<'m>(message: &'m Object<'_>, name: &str) -> Cow<'m, str> {
    message.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn flag(message: &Object<'_>, name: &str) -> bool {
    message.get(name).and_then(Value::as_bool) == Some(true)
}

/// Runs `print` with the notice fields that both kinds of execution have.
struct Output<'m> {
    truncated: bool,
    full_output_path: Option<Cow<'m, str>>,
    exit_code: Option<f64>,
    cancelled: bool,
}

impl<'m> Output<'m> {
    fn of(message: &'m Object<'_>) -> Self {
        Output {
            truncated: flag(message, "truncated"),
            full_output_path: message.get("fullOutputPath").and_then(Value::as_str),
            exit_code: message.get("exitCode").and_then(Value::as_number),
            cancelled: flag(message, "cancelled"),
        }
    }
}

fn bash_text(message: &Object<'_>) -> String {
    let output = Output::of(message);
    with_meta(message.get("meta"), |meta| {
        BashExecution {
            command: &field(message, "command"),
            output: &field(message, "output"),
            exit_code: output.exit_code,
            cancelled: output.cancelled,
            truncated: output.truncated,
            full_output_path: output.full_output_path.as_deref(),
            meta,
        }
        .to_text()
    })
}

fn python_text(message: &Object<'_>) -> String {
    let output = Output::of(message);
    with_meta(message.get("meta"), |meta| {
        PythonExecution {
            code: &field(message, "code"),
            output: &field(message, "output"),
            exit_code: output.exit_code,
            cancelled: output.cancelled,
            truncated: output.truncated,
            full_output_path: output.full_output_path.as_deref(),
            meta,
        }
        .to_text()
    })
}

/// Hands `print` what the stored `meta` says (spec 2.3.1).
fn with_meta(meta: Option<&Value<'_>>, print: impl FnOnce(Option<OutputMeta<'_>>) -> String) -> String {
    let Some(meta) = meta.filter(|meta| meta.as_object().is_some()) else { return print(None) };
    let part = |name: &str| meta.get(name).filter(|part| part.as_object().is_some());
    let number = |part: Option<&Value<'_>>, name: &str| {
        part.and_then(|part| part.get(name)).and_then(Value::as_number)
    };
    let limits = part("limits");
    let reached = |name: &str| {
        let limit = limits.and_then(|limits| limits.get(name));
        Some(ReachedLimit { reached: number(limit, "reached")?, suggestion: number(limit, "suggestion")? })
    };
    let limits = OutputLimits {
        matches: reached("matchLimit"),
        results: reached("resultLimit"),
        head: reached("headLimit"),
        max_column: number(limits.and_then(|limits| limits.get("columnTruncated")), "maxColumn"),
    };
    let truncation = part("truncation");
    let artifact = truncation.and_then(|truncation| truncation.text("artifactId"));
    let range = truncation.and_then(|truncation| truncation.get("shownRange"));
    let truncation = truncation.map(|given| Truncation {
        by_bytes: given.text("truncatedBy").as_deref() == Some("bytes"),
        total_lines: number(truncation, "totalLines"),
        output_lines: number(truncation, "outputLines"),
        max_bytes: number(truncation, "maxBytes").or_else(|| number(truncation, "outputBytes")),
        shown_range: number(range, "start").zip(number(range, "end")),
        next_offset: number(truncation, "nextOffset"),
        artifact_id: artifact.as_deref(),
    });
    let diagnostics = part("diagnostics");
    let summary = diagnostics.and_then(|diagnostics| diagnostics.text("summary")).unwrap_or_default();
    let messages: Vec<Cow<'_, str>> = diagnostics
        .and_then(|diagnostics| diagnostics.get("messages"))
        .map_or(&[][..], Value::items)
        .iter()
        .filter_map(Value::as_str)
        .collect();
    let diagnostics = diagnostics.map(|_| Diagnostics {
        summary: &summary,
        messages: messages.iter().map(|message| message.as_ref()).collect(),
    });
    print(Some(OutputMeta { truncation, limits, diagnostics }))
}

fn mentioned_files<'a>(message: &Object<'a>) -> Value<'a> {
    let files = message.get("files").map_or(&[][..], Value::items);
    let texts: Vec<(Cow<'_, str>, Cow<'_, str>)> = files
        .iter()
        .map(|file| (file.text("path").unwrap_or_default(), file.text("content").unwrap_or_default()))
        .collect();
    let mentioned: Vec<MentionedFile<'_>> =
        texts.iter().map(|(path, content)| MentionedFile { path, content }).collect();
    let Value::Array(mut content) = text_block(file_mention_text(&mentioned)) else {
        unreachable!("a text block stands in an array")
    };
    content
        .extend(files.iter().filter_map(|file| file.get("image")).filter(|image| !image.is_null()).cloned());
    Value::Array(content)
}

/// Whether the model gets anything of an agent message.
pub fn reaches_model(agent: &Value<'_>) -> bool {
    match agent.text("role").map_or(Role::Unknown, |role| Role::from_wire(&role)) {
        Role::Unknown => false,
        Role::BashExecution | Role::PythonExecution => !is_excluded(agent),
        Role::User
        | Role::Developer
        | Role::System
        | Role::Assistant
        | Role::ToolResult
        | Role::Custom
        | Role::FileMention
        | Role::BranchSummary
        | Role::CompactionSummary => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(agent: &str, model: Option<&str>) {
        let value = Value::parse(agent).expect("valid JSON");
        assert_eq!(reaches_model(&value), model.is_some());
        let message = model_message(value, &Prompts::default());
        assert_eq!(message.map(|message| message.to_json()).as_deref(), model);
    }

    #[test]
    fn what_a_model_takes_goes_through() {
        let user = r#"{"role":"user","content":"x","attribution":"agent"}"#;
        check(user, Some(user));
        check(
            r#"{"role":"user","content":"x"}"#,
            Some(r#"{"role":"user","content":"x","attribution":"user"}"#),
        );
        check(
            r#"{"role":"developer","content":"x","timestamp":1}"#,
            Some(r#"{"role":"developer","content":"x","timestamp":1,"attribution":"agent"}"#),
        );
        check(
            r#"{"role":"toolResult","content":[{"type":"text","text":"a"}],"isError":false}"#,
            Some(
                r#"{"role":"toolResult","content":[{"type":"text","text":"a"}],"isError":false,"attribution":"agent"}"#,
            ),
        );
    }

    #[test]
    fn a_pruned_result_is_one_text() {
        check(
            r#"{"role":"toolResult","content":[{"type":"text","text":"a"},{"type":"image"},{"type":"text","text":"b"}],"prunedAt":1}"#,
            Some(
                r#"{"role":"toolResult","content":[{"type":"text","text":"ab"}],"prunedAt":1,"attribution":"agent"}"#,
            ),
        );
        check(
            r#"{"role":"toolResult","content":[],"prunedAt":0}"#,
            Some(
                r#"{"role":"toolResult","content":[{"type":"text","text":"[Output truncated]"}],"prunedAt":0,"attribution":"agent"}"#,
            ),
        );
    }

    #[test]
    fn an_extensions_message_is_a_users() {
        check(
            r#"{"role":"custom","customType":"k","content":"c","details":1,"timestamp":2}"#,
            Some(r#"{"role":"user","content":[{"type":"text","text":"c"}],"timestamp":2}"#),
        );
        check(r#"{"role":"hookMessage","content":null}"#, Some(r#"{"role":"user","content":[]}"#));
    }

    #[test]
    fn executions_are_told_by_the_user() {
        check(
            r#"{"role":"bashExecution","command":"ls","output":"x","exitCode":1,"timestamp":7}"#,
            Some(
                r#"{"role":"user","content":[{"type":"text","text":"Ran `ls`\n```\nx\n```\n\nCommand exited with code 1"}],"attribution":"user","timestamp":7}"#,
            ),
        );
        check(
            r#"{"role":"bashExecution","command":"ls","output":"x","meta":{"truncation":{"truncatedBy":"bytes","totalLines":9,"outputLines":2,"outputBytes":512,"artifactId":"7"}}}"#,
            Some(
                r#"{"role":"user","content":[{"type":"text","text":"Ran `ls`\n```\nx\n```\n\n[Showing 2 of 9 lines (512B limit). Read artifact://7 for full output]"}],"attribution":"user"}"#,
            ),
        );
        check(r#"{"role":"bashExecution","command":"ls","output":"x","excludeFromContext":true}"#, None);
        check(r#"{"role":"pythonExecution","code":"1","excludeFromContext":true}"#, None);
        check(r#"{"role":"robot","content":"x"}"#, None);
    }

    #[test]
    fn mentioned_files_come_with_their_images() {
        check(
            r#"{"role":"fileMention","files":[{"path":"p","content":"c"},{"path":"q","content":"","image":{"type":"image","data":"d"}}],"timestamp":10}"#,
            Some(
                r#"{"role":"user","content":[{"type":"text","text":"<system-reminder>\n<file path=\"p\">\nc\n</file>\n\n<file path=\"q\">\n</file>\n</system-reminder>"},{"type":"image","data":"d"}],"attribution":"user","timestamp":10}"#,
            ),
        );
    }

    #[test]
    fn a_summary_is_wrapped_and_keeps_the_providers_payload() {
        let prompts = Prompts::default();
        let agent = r#"{"role":"compactionSummary","summary":"s","providerPayload":{"a":1},"timestamp":3}"#;
        let message = model_message(Value::parse(agent).expect("valid JSON"), &prompts).expect("a message");
        assert_eq!(
            message.get("content").expect("blocks").items()[0].text("text"),
            Some(Cow::Owned(prompts.compaction_summary_context("s")))
        );
        assert_eq!(message.get("providerPayload").map(Value::to_json).as_deref(), Some(r#"{"a":1}"#));
        assert_eq!(message.text("attribution").as_deref(), Some("agent"));
    }
}

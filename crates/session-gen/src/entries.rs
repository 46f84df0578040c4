//! The entries of a session that are no messages: summaries, edits, what the model does not see.

use crate::json::{string, strings};
use crate::messages::{content, text};
use crate::random::Random;
use crate::shape::{Dialect, Shape};

/// The fields of an entry behind `type`, `id`, `parentId` and `timestamp`.
pub(crate) struct Fields {
    pub(crate) kind: &'static str,
    /// JSON members, each with a comma before it.
    pub(crate) members: String,
}

impl Fields {
    pub(crate) fn new(kind: &'static str, members: String) -> Self {
        Self { kind, members }
    }
}

fn details(random: &mut Random) -> String {
    let mut names = |prefix: &str| -> Vec<String> {
        let count = if random.chance(0.1) { random.between(19, 24) } else { random.below(4) };
        (0..count).map(|n| format!("{prefix}{n}.rs")).collect()
    };
    let (read, modified) = (names("old/r"), names("old/m"));
    format!(r#","details":{{"readFiles":{},"modifiedFiles":{}}}"#, strings(&read), strings(&modified))
}

fn summary(random: &mut Random, shape: &Shape) -> String {
    let mut summary = format!("## Goal\n\n\n- {}", text(random, shape));
    if random.chance(0.4) {
        summary.push_str(
            "\n\n<read-files>\nold/r0.rs\n</read-files>\n<modified-files>\nold/m0.rs\n</modified-files>",
        );
    }
    summary
}

fn extension_mark(random: &mut Random, shape: &Shape) -> &'static str {
    match (random.chance(0.2), shape.dialect) {
        (false, _) => "",
        (true, Dialect::Omp) => r#","fromExtension":true"#,
        (true, Dialect::Pi) => r#","fromHook":true"#,
    }
}

/// A compaction; `first_kept` is the JSON member that says where its kept entries begin, with a comma before it.
pub(crate) fn compaction(random: &mut Random, shape: &Shape, first_kept: &str, ms: u64) -> Fields {
    let mut members = format!(r#","summary":{}"#, string(&summary(random, shape)));
    if shape.dialect == Dialect::Omp && random.chance(0.6) {
        members.push_str(r#","shortSummary":"Did something.""#);
    }
    members.push_str(&format!(r#"{first_kept},"tokensBefore":{}"#, random.between(1000, 190_000)));
    if random.chance(0.6) {
        members.push_str(&details(random));
    }
    if random.chance(0.15) {
        members.push_str(r#","preserveData":{"note":{"deep":[1,2]}}"#);
    }
    members.push_str(extension_mark(random, shape));
    if shape.system > 0.0 && random.chance(0.4) {
        members.push_str(&format!(
            r#","systemMessage":{{"role":"system","content":{},"timestamp":{ms}}}"#,
            string(&text(random, shape))
        ));
    }
    Fields::new("compaction", members)
}

/// A summary of the branch that was left at the entry `from`.
pub(crate) fn branch_summary(random: &mut Random, shape: &Shape, from: &str) -> Fields {
    let summary = if random.chance(0.05) { String::new() } else { summary(random, shape) };
    let mut members = format!(r#","fromId":"{from}","summary":{}"#, string(&summary));
    if random.chance(0.6) {
        members.push_str(&details(random));
    }
    members.push_str(extension_mark(random, shape));
    Fields::new("branch_summary", members)
}

/// A message of an extension.
pub(crate) fn custom_message(random: &mut Random, shape: &Shape) -> Fields {
    let display = random.chance(0.5);
    let details = if random.chance(0.3) { r#","details":{"n":1}"# } else { "" };
    let members =
        format!(r#","customType":"note","content":{},"display":{display}{details}"#, content(random, shape));
    Fields::new("custom_message", members)
}

/// An edit of what the model sees of `target`.
pub(crate) fn context_edit(random: &mut Random, shape: &Shape, target: &str) -> Fields {
    let replacement = if random.chance(0.4) {
        "null".to_owned()
    } else {
        format!(r#"{{"content":{}}}"#, string(&text(random, shape)))
    };
    Fields::new("context_edit", format!(r#","targetId":"{target}","replacement":{replacement}"#))
}

/// An entry that the model does not see; `target` is some earlier entry.
pub(crate) fn metadata(random: &mut Random, shape: &Shape, target: &str) -> Fields {
    match (random.below(9), shape.dialect) {
        (0 | 1, Dialect::Omp) => {
            let role = random.pick(&["", "", r#","role":"small""#, r#","role":"default""#]);
            Fields::new("model_change", format!(r#","model":"openai/gpt-5"{role}"#))
        }
        (0 | 1, Dialect::Pi) => {
            Fields::new("model_change", r#","provider":"openai","modelId":"gpt-5""#.to_owned())
        }
        (2, _) => {
            let level = random.pick(&[r#""high""#, r#""off""#, r#""low""#]);
            Fields::new("thinking_level_change", format!(r#","thinkingLevel":{level}"#))
        }
        (3, _) => Fields::new("label", format!(r#","targetId":"{target}","label":"mark""#)),
        (4, Dialect::Pi) => Fields::new("session_info", r#","name":"a name""#.to_owned()),
        (4, Dialect::Omp) => {
            Fields::new("mode_change", r#","mode":"plan","data":{"file":"p.md"}"#.to_owned())
        }
        (5, Dialect::Omp) => {
            let tier = random.pick(&["null", r#""priority""#]);
            Fields::new("service_tier_change", format!(r#","serviceTier":{tier}"#))
        }
        (6, Dialect::Omp) => {
            Fields::new("mcp_tool_selection", r#","selectedToolNames":["mcp_a","mcp_b"]"#.to_owned())
        }
        (7, Dialect::Omp) => {
            let rule = random.pick(&["one", "two"]);
            Fields::new("ttsr_injection", format!(r#","injectedRules":["{rule}","both"]"#))
        }
        _ => Fields::new("custom", r#","customType":"state","data":{"at":[1,2,3]}"#.to_owned()),
    }
}

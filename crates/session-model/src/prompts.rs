//! `Prompts`: every template by name, compiled in from `prompts/` or given; filling them (spec 2.3, 3.6, 5.1).

use std::borrow::Cow;
use std::fmt;

use crate::tidy::tidy;

/// How many names a file list shows before the rest is only counted (spec 3.6).
const MAX_LISTED_FILES: usize = 20;

macro_rules! prompt_names {
    ($($variant:ident = $file:literal, $doc:literal;)*) => {
        /// The name of a prompt; its text is `prompts/<file>`.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum PromptName {
            $(#[doc = $doc] $variant,)*
        }

        impl PromptName {
            /// Every prompt, in the order of spec 5.1.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// Its file below the prompts folder, with `/` between the parts.
            pub fn file(self) -> &'static str {
                match self {
                    $(Self::$variant => $file,)*
                }
            }

            fn built_in(self) -> &'static str {
                match self {
                    $(Self::$variant => include_str!(concat!("../../../prompts/", $file)),)*
                }
            }
        }
    };
}

prompt_names! {
    System = "system/summarization-system.md", "The system prompt of every summary request.";
    FileOperations = "system/file-operations.md", "The file blocks behind a summary.";
    CompactionSummary = "compaction/compaction-summary.md", "Asks for the first summary.";
    CompactionUpdate = "compaction/compaction-update-summary.md", "Asks to merge new messages into a summary.";
    TurnPrefix = "compaction/compaction-turn-prefix.md", "Asks for a summary of the first part of a split turn.";
    ShortSummary = "compaction/compaction-short-summary.md", "Asks for two or three sentences.";
    CompactionContext = "compaction/compaction-summary-context.md", "Wraps a compaction's summary for the model.";
    BranchSummary = "compaction/branch-summary.md", "Asks for a summary of an abandoned branch.";
    BranchPreamble = "compaction/branch-summary-preamble.md", "Stands before a branch summary.";
    BranchContext = "compaction/branch-summary-context.md", "Wraps a branch summary for the model.";
    AutoContinue = "system/auto-continue.md", "Asks the agent to go on after an automatic compaction.";
}

impl PromptName {
    /// The prompt whose file this is, or `None`.
    pub fn from_file(file: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|name| name.file() == file)
    }
}

impl fmt::Display for PromptName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.file())
    }
}

/// The text of every prompt: ours, or the user's in its place (spec 5.1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompts {
    texts: Vec<Cow<'static, str>>,
}

impl Default for Prompts {
    /// The prompts that are compiled in.
    fn default() -> Self {
        Self { texts: PromptName::ALL.iter().map(|name| Cow::Borrowed(name.built_in())).collect() }
    }
}

impl Prompts {
    /// These prompts with one text replaced.
    #[must_use]
    pub fn with(mut self, name: PromptName, text: impl Into<String>) -> Self {
        self.texts[name as usize] = Cow::Owned(text.into());
        self
    }

    /// The template as it was written, neither filled nor tidied.
    pub fn template(&self, name: PromptName) -> &str {
        &self.texts[name as usize]
    }

    /// A prompt that takes no values, tidied: what is sent to a model.
    pub fn text(&self, name: PromptName) -> String {
        self.render(name, &[])
    }

    /// What the model sees of a compaction with this summary (spec 2.3).
    pub fn compaction_summary_context(&self, summary: &str) -> String {
        self.render(PromptName::CompactionContext, &[("summary", summary)])
    }

    /// What the model sees of a branch summary with this text (spec 2.3).
    pub fn branch_summary_context(&self, summary: &str) -> String {
        self.render(PromptName::BranchContext, &[("summary", summary)])
    }

    /// The file blocks that follow a summary, one name a line, at most twenty names each; empty without files (spec 3.6).
    pub fn file_operations(&self, read: &[String], modified: &[String]) -> String {
        let (read, modified) = (listed(read), listed(modified));
        self.render(PromptName::FileOperations, &[("readFiles", &read), ("modifiedFiles", &modified)])
    }

    fn render(&self, name: PromptName, values: &[(&str, &str)]) -> String {
        tidy(&fill(self.template(name), values))
    }
}

fn listed(names: &[String]) -> String {
    let shown = names.len().min(MAX_LISTED_FILES);
    let mut list = names[..shown].join("\n");
    if names.len() > shown {
        list.push_str(&format!("\n… ({} more files omitted)", names.len() - shown));
    }
    list
}

/// The template with `{{name}}` replaced by its value and `{{#if name}}…{{/if}}` kept only where the value is not empty.
///
/// An `#if` or `/if` alone on its line takes the line with it. Names that are not among `values`, and an `{{#if}}` that is
/// never closed, stay as they are written. Values are put in as they are and not filled again.
pub fn fill(template: &str, values: &[(&str, &str)]) -> String {
    let mut out = String::with_capacity(template.len());
    let mut open: Vec<bool> = Vec::new();
    let mut rest = 0;
    while let Some(tag) = next_tag(template, rest, values) {
        let shown = !open.contains(&false);
        let (start, end) = match tag.kind {
            TagKind::Value(_) => (tag.start, tag.end),
            // The search for the partner begins behind the tag, so an unclosed one is plain text.
            TagKind::If(_) if !has_end(template, tag.end, values) => {
                if shown {
                    out.push_str(&template[rest..tag.end]);
                }
                rest = tag.end;
                continue;
            }
            TagKind::EndIf if open.is_empty() => {
                out.push_str(&template[rest..tag.end]);
                rest = tag.end;
                continue;
            }
            TagKind::If(_) | TagKind::EndIf => own_line(template, tag.start, tag.end),
        };
        if shown {
            // A tag whose line was taken together with the one before may begin before `rest`.
            out.push_str(template.get(rest..start).unwrap_or_default());
        }
        match tag.kind {
            TagKind::Value(value) if shown => out.push_str(value),
            TagKind::Value(_) => {}
            TagKind::If(value) => open.push(!value.is_empty()),
            TagKind::EndIf => {
                open.pop();
            }
        }
        rest = end;
    }
    out.push_str(&template[rest..]);
    out
}

struct Tag<'a> {
    start: usize,
    end: usize,
    kind: TagKind<'a>,
}

enum TagKind<'a> {
    Value(&'a str),
    If(&'a str),
    EndIf,
}

/// The first tag of ours in `template` at or behind `from`.
fn next_tag<'a>(template: &str, mut from: usize, values: &[(&str, &'a str)]) -> Option<Tag<'a>> {
    let value_of =
        |name: &str| values.iter().find(|(known, _)| *known == name.trim()).map(|(_, value)| *value);
    loop {
        let start = from + template[from..].find("{{")?;
        let length = template[start..].find("}}")?;
        let inner = template[start + 2..start + length].trim();
        let kind = match inner.strip_prefix("#if ") {
            Some(name) => value_of(name).map(TagKind::If),
            None if inner == "/if" => Some(TagKind::EndIf),
            None => value_of(inner).map(TagKind::Value),
        };
        if let Some(kind) = kind {
            return Some(Tag { start, end: start + length + 2, kind });
        }
        from = start + 2;
    }
}

/// Whether the `{{#if}}` that ends at `from` is closed.
fn has_end(template: &str, mut from: usize, values: &[(&str, &str)]) -> bool {
    let mut depth = 1;
    while let Some(tag) = next_tag(template, from, values) {
        match tag.kind {
            TagKind::Value(_) => {}
            TagKind::If(_) => depth += 1,
            TagKind::EndIf => depth -= 1,
        }
        if depth == 0 {
            return true;
        }
        from = tag.end;
    }
    false
}

/// The range of a tag, widened to its whole line with the line's end if nothing else is on that line.
fn own_line(template: &str, start: usize, end: usize) -> (usize, usize) {
    let line_start = template[..start].rfind('\n').map_or(0, |at| at + 1);
    let line_end = template[end..].find('\n').map_or(template.len(), |at| end + at + 1);
    let alone = template[line_start..start].trim().is_empty() && template[end..line_end].trim().is_empty();
    if alone { (line_start, line_end) } else { (start, end) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(list: &[&str]) -> Vec<String> {
        list.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn every_built_in_prompt_is_tidy_as_it_stands() {
        for &name in PromptName::ALL {
            let template = Prompts::default().template(name).to_owned();
            if name != PromptName::FileOperations {
                assert_eq!(tidy(&template), template.trim_end(), "{name}");
            }
            assert_eq!(PromptName::from_file(name.file()), Some(name));
        }
    }

    #[test]
    fn lists_files_one_a_line_and_drops_an_empty_block() {
        let prompts = Prompts::default();
        assert_eq!(
            prompts.file_operations(&names(&["a & b", "c"]), &names(&["d"])),
            "<read-files>\na & b\nc\n</read-files>\n<modified-files>\nd\n</modified-files>"
        );
        assert_eq!(prompts.file_operations(&[], &names(&["d"])), "<modified-files>\nd\n</modified-files>");
        assert_eq!(prompts.file_operations(&names(&["a"]), &[]), "<read-files>\na\n</read-files>");
        assert_eq!(prompts.file_operations(&[], &[]), "");
    }

    #[test]
    fn lists_twenty_files_and_counts_the_rest() {
        let files: Vec<String> = (10..32).map(|n| format!("f{n}")).collect();
        let expected =
            format!("<read-files>\n{}\n… (2 more files omitted)\n</read-files>", files[..20].join("\n"));
        assert_eq!(Prompts::default().file_operations(&files, &[]), expected);
        let expected = format!("<read-files>\n{}\n</read-files>", files[..20].join("\n"));
        assert_eq!(Prompts::default().file_operations(&files[..20], &[]), expected);
    }

    #[test]
    fn tidies_the_summary_inside_its_wrapper() {
        let prompts =
            Prompts::default().with(PromptName::CompactionContext, "Before:\n\n<s>\n{{summary}}\n</s>\n");
        assert_eq!(
            prompts.compaction_summary_context("a  \n\n\n\nb\n\n- c\n"),
            "Before:\n\n<s>\na\n\nb\n- c\n</s>"
        );
        assert_eq!(
            prompts.compaction_summary_context("{{summary}} {{/if}}"),
            "Before:\n\n<s>\n{{summary}} {{/if}}\n</s>"
        );
    }

    #[track_caller]
    fn check_fill(template: &str, expected: &str) {
        assert_eq!(fill(template, &[("a", "A"), ("none", "")]), expected);
    }

    #[test]
    fn fills_values_and_conditions() {
        check_fill("x {{a}}{{ a }}{{none}} y", "x AA y");
        check_fill("1\n  {{#if a}}  \n2\n{{/if}}\n3", "1\n2\n3");
        check_fill("1\n{{#if none}}\n2 {{a}}\n{{/if}}\n3", "1\n3");
        check_fill("{{#if a}}[{{#if none}}x{{/if}}{{a}}]{{/if}}.", "[A].");
        check_fill("{{#if none}}{{#if a}}x{{/if}}y{{/if}}z", "z");
        check_fill("{{#if a}}\n{{#if a}}\nx\n{{/if}}\n{{/if}}\n", "x\n");
    }

    #[test]
    fn leaves_what_is_no_tag_of_ours() {
        check_fill("{{b}} {{#if a}} {{ } {{#if b}}", "{{b}} {{#if a}} {{ } {{#if b}}");
        check_fill("{{/if}}{{a}}", "{{/if}}A");
        check_fill("{{", "{{");
    }
}

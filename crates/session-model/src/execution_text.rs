//! What the model reads of the user's own commands and of mentioned files (spec 2.3).

use crate::output_notice::OutputMeta;
use crate::text::js_number;

/// A `bashExecution` message that is not excluded from the context.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct BashExecution<'a> {
    /// `command`
    pub command: &'a str,
    /// `output`
    pub output: &'a str,
    /// `exitCode`; null is none
    pub exit_code: Option<f64>,
    /// `cancelled`
    pub cancelled: bool,
    /// `truncated`
    pub truncated: bool,
    /// pi: `fullOutputPath`
    pub full_output_path: Option<&'a str>,
    /// oh-my-pi: `meta`
    pub meta: Option<OutputMeta<'a>>,
}

/// A `pythonExecution` message that is not excluded from the context.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PythonExecution<'a> {
    /// `code`
    pub code: &'a str,
    /// `output`
    pub output: &'a str,
    /// `exitCode`; null is none
    pub exit_code: Option<f64>,
    /// `cancelled`
    pub cancelled: bool,
    /// `truncated`
    pub truncated: bool,
    /// `fullOutputPath`, as for a command
    pub full_output_path: Option<&'a str>,
    /// `meta`
    pub meta: Option<OutputMeta<'a>>,
}

/// One of a `fileMention`'s `files`, without its image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MentionedFile<'a> {
    /// `path`
    pub path: &'a str,
    /// `content`
    pub content: &'a str,
}

impl BashExecution<'_> {
    /// The text of the user message that stands for the command (spec 2.3).
    pub fn to_text(&self) -> String {
        let mut text = format!("Ran `{}`\n", self.command);
        match self.output {
            "" => text.push_str("(no output)"),
            output => text.push_str(&format!("```\n{output}\n```")),
        }
        if self.cancelled {
            text.push_str("\n\n(command cancelled)");
        } else if let Some(code) = failure(self.exit_code) {
            text.push_str(&format!("\n\nCommand exited with code {code}"));
        }
        text.push_str(&notices(self.truncated, self.full_output_path, self.meta.as_ref()));
        text
    }
}

impl PythonExecution<'_> {
    /// The text of the user message that stands for the code and its output (spec 2.3).
    pub fn to_text(&self) -> String {
        let mut text = format!("Ran Python:\n```python\n{}\n```\n", self.code);
        match self.output {
            "" => text.push_str("(no output)"),
            output => text.push_str(&format!("Output:\n```\n{output}\n```")),
        }
        if self.cancelled {
            text.push_str("\n\n(execution cancelled)");
        } else if let Some(code) = failure(self.exit_code) {
            text.push_str(&format!("\n\nExecution failed with code {code}"));
        }
        text.push_str(&notices(self.truncated, self.full_output_path, self.meta.as_ref()));
        text
    }
}

/// The text of the user message that shows mentioned files; their images follow it as blocks (spec 2.3).
pub fn file_mention_text(files: &[MentionedFile<'_>]) -> String {
    let files: Vec<String> = files
        .iter()
        .map(|MentionedFile { path, content }| {
            let content = if content.is_empty() { "\n".to_owned() } else { format!("\n{content}\n") };
            format!("<file path=\"{path}\">{content}</file>")
        })
        .collect();
    format!("<system-reminder>\n{}\n</system-reminder>", files.join("\n\n"))
}

fn failure(exit_code: Option<f64>) -> Option<String> {
    exit_code.filter(|code| *code != 0.0).map(js_number)
}

/// The notices behind an execution, each after a blank line (spec 2.3.1).
fn notices(truncated: bool, full_output_path: Option<&str>, meta: Option<&OutputMeta<'_>>) -> String {
    let mut text = String::new();
    if let Some(path) = full_output_path.filter(|path| truncated && !path.is_empty()) {
        text.push_str(&format!("\n\n[Output truncated. Full output: {path}]"));
    }
    if let Some(meta) = meta {
        text.push_str(&meta.notice());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output_notice::Truncation;

    fn ls() -> BashExecution<'static> {
        BashExecution { command: "ls", output: "out", exit_code: Some(0.0), ..Default::default() }
    }

    #[track_caller]
    fn check(execution: BashExecution<'_>, expected: &str) {
        assert_eq!(execution.to_text(), expected);
    }

    #[test]
    fn shows_a_command_and_its_output() {
        check(ls(), "Ran `ls`\n```\nout\n```");
        check(BashExecution { exit_code: None, ..ls() }, "Ran `ls`\n```\nout\n```");
        check(BashExecution { output: "", ..ls() }, "Ran `ls`\n(no output)");
        check(BashExecution { output: " \n", ..ls() }, "Ran `ls`\n```\n \n\n```");
        check(BashExecution { command: "", output: "```", ..ls() }, "Ran ``\n```\n```\n```");
    }

    #[test]
    fn says_how_a_command_ended() {
        let code = |code| BashExecution { exit_code: Some(code), ..ls() };
        check(code(2.0), "Ran `ls`\n```\nout\n```\n\nCommand exited with code 2");
        check(code(-1.5), "Ran `ls`\n```\nout\n```\n\nCommand exited with code -1.5");
        check(code(1e21), "Ran `ls`\n```\nout\n```\n\nCommand exited with code 1e+21");
        check(
            BashExecution { cancelled: true, ..code(3.0) },
            "Ran `ls`\n```\nout\n```\n\n(command cancelled)",
        );
    }

    #[test]
    fn says_where_the_full_output_is() {
        let cut = BashExecution { truncated: true, full_output_path: Some("/tmp/x"), ..ls() };
        check(cut.clone(), "Ran `ls`\n```\nout\n```\n\n[Output truncated. Full output: /tmp/x]");
        check(
            BashExecution { output: "", exit_code: Some(2.0), ..cut.clone() },
            "Ran `ls`\n(no output)\n\nCommand exited with code 2\n\n[Output truncated. Full output: /tmp/x]",
        );
        check(BashExecution { truncated: false, ..cut.clone() }, "Ran `ls`\n```\nout\n```");
        check(BashExecution { full_output_path: Some(""), ..cut }, "Ran `ls`\n```\nout\n```");
        let truncation = Truncation { total_lines: Some(9.0), output_lines: Some(1.0), ..Default::default() };
        let meta = Some(OutputMeta { truncation: Some(truncation), ..Default::default() });
        check(BashExecution { meta, ..ls() }, "Ran `ls`\n```\nout\n```\n\n[Showing 1 of 9 lines]");
    }

    #[test]
    fn shows_python_and_its_output() {
        let print =
            PythonExecution { code: "print(1)", output: "1\n", exit_code: Some(0.0), ..Default::default() };
        assert_eq!(print.to_text(), "Ran Python:\n```python\nprint(1)\n```\nOutput:\n```\n1\n\n```");
        let silent = PythonExecution { output: "", exit_code: Some(2.0), ..print.clone() };
        assert_eq!(
            silent.to_text(),
            "Ran Python:\n```python\nprint(1)\n```\n(no output)\n\nExecution failed with code 2"
        );
        let cancelled = PythonExecution { cancelled: true, ..silent };
        assert_eq!(
            cancelled.to_text(),
            "Ran Python:\n```python\nprint(1)\n```\n(no output)\n\n(execution cancelled)"
        );
    }

    #[test]
    fn shows_mentioned_files() {
        let file = |path, content| MentionedFile { path, content };
        assert_eq!(
            file_mention_text(&[file("a", "x"), file("b\"<", ""), file("c", "\n")]),
            "<system-reminder>\n<file path=\"a\">\nx\n</file>\n\n<file path=\"b\"<\">\n</file>\n\n\
             <file path=\"c\">\n\n\n</file>\n</system-reminder>"
        );
        assert_eq!(file_mention_text(&[]), "<system-reminder>\n\n</system-reminder>");
    }
}

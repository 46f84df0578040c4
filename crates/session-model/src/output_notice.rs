//! What oh-my-pi says behind an output that it cut: from `meta` to text (spec 2.3.1).

use crate::text::js_number;
use crate::tidy::is_js_space;

/// A message's `meta`: what the agent knows about an output. All fields are as stored.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct OutputMeta<'a> {
    /// `truncation`
    pub truncation: Option<Truncation<'a>>,
    /// `limits`
    pub limits: OutputLimits,
    /// `diagnostics`
    pub diagnostics: Option<Diagnostics<'a>>,
}

/// `meta.truncation`: which part of the output is there. A missing number is `None` and reads as `undefined`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Truncation<'a> {
    /// `truncatedBy` is `"bytes"`
    pub by_bytes: bool,
    /// `totalLines`
    pub total_lines: Option<f64>,
    /// `outputLines`
    pub output_lines: Option<f64>,
    /// `maxBytes`, or `outputBytes` where that is missing or null
    pub max_bytes: Option<f64>,
    /// `shownRange.start` and `shownRange.end`, if both are numbers
    pub shown_range: Option<(f64, f64)>,
    /// `nextOffset`; null is none
    pub next_offset: Option<f64>,
    /// `artifactId`; null is none
    pub artifact_id: Option<&'a str>,
}

/// `meta.limits`: searches that were cut short.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct OutputLimits {
    /// `matchLimit`
    pub matches: Option<ReachedLimit>,
    /// `resultLimit`
    pub results: Option<ReachedLimit>,
    /// `headLimit`
    pub head: Option<ReachedLimit>,
    /// `columnTruncated.maxColumn`
    pub max_column: Option<f64>,
}

/// A limit that was reached, and the one to try instead.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ReachedLimit {
    /// `reached`
    pub reached: f64,
    /// `suggestion`
    pub suggestion: f64,
}

/// `meta.diagnostics`: what a language server reported.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Diagnostics<'a> {
    /// `summary`
    pub summary: &'a str,
    /// `messages`, each usually `path:line:column message`
    pub messages: Vec<&'a str>,
}

impl OutputMeta<'_> {
    /// The notice with the blank lines before its parts; empty if there is nothing to say.
    pub fn notice(&self) -> String {
        let mut parts = Vec::new();
        if let Some(truncation) = &self.truncation {
            truncation.describe(&mut parts);
        }
        self.limits.describe(&mut parts);
        let mut notice = String::new();
        if !parts.is_empty() {
            notice = format!("\n\n[{}]", parts.join(". "));
        }
        if let Some(diagnostics) = self.diagnostics.as_ref().filter(|it| !it.messages.is_empty()) {
            let by_file = group_by_file(&diagnostics.messages);
            notice.push_str(&format!("\n\nLSP Diagnostics ({}):\n{by_file}", diagnostics.summary));
        }
        notice
    }
}

impl Truncation<'_> {
    fn describe(&self, parts: &mut Vec<String>) {
        let total = number(self.total_lines);
        let mut shown = match self.shown_range {
            Some((start, end)) if end >= start => {
                format!("Showing lines {}-{} of {total}", js_number(start), js_number(end))
            }
            _ => format!("Showing {} of {total} lines", number(self.output_lines)),
        };
        if self.by_bytes {
            shown.push_str(&format!(" ({} limit)", byte_size(self.max_bytes)));
        }
        parts.push(shown);
        if let Some(offset) = self.next_offset {
            parts.push(format!("Use offset={} to continue", js_number(offset)));
        }
        if let Some(id) = self.artifact_id {
            parts.push(format!("Read artifact://{id} for full output"));
        }
    }
}

impl OutputLimits {
    fn describe(&self, parts: &mut Vec<String>) {
        for (limit, what) in [(self.matches, "matches"), (self.results, "results"), (self.head, "results")] {
            if let Some(ReachedLimit { reached, suggestion }) = limit {
                let (reached, suggestion) = (js_number(reached), js_number(suggestion));
                parts.push(format!("{reached} {what} limit reached. Use limit={suggestion} for more"));
            }
        }
        if let Some(column) = self.max_column {
            parts.push(format!("Some lines truncated to {} chars", js_number(column)));
        }
    }
}

fn number(value: Option<f64>) -> String {
    value.map_or_else(|| "undefined".to_owned(), js_number)
}

/// `512B`, `1.5KB`: a size as the agent prints it, `NaNGB` without one.
fn byte_size(bytes: Option<f64>) -> String {
    const UNITS: [&str; 3] = ["KB", "MB", "GB"];
    let Some(bytes) = bytes else { return "NaNGB".to_owned() };
    if bytes < 1024.0 {
        return format!("{}B", js_number(bytes));
    }
    let mut size = bytes / 1024.0;
    let mut unit = 0;
    while size >= 1024.0 && unit + 1 < UNITS.len() {
        size /= 1024.0;
        unit += 1;
    }
    // A tie (…25 or …75 exactly) goes up in JavaScript and to the even digit in Rust.
    let is_tie = (size * 4.0).fract() == 0.0 && (size * 2.0).fract() != 0.0;
    let size = if is_tie { (size * 10.0 + 0.5).floor() / 10.0 } else { size };
    format!("{size:.1}{}", UNITS[unit])
}

/// A folder, and the files in it with their messages, all in the order in which they first came.
struct Folder<'a> {
    name: String,
    files: Vec<(String, Vec<&'a str>)>,
}

/// The messages below headings for their folders and files; those that name no place follow as they are.
fn group_by_file(messages: &[&str]) -> String {
    let mut folders: Vec<Folder<'_>> = Vec::new();
    let mut placeless = Vec::new();
    for message in messages {
        let Some((path, rest)) = split_place(message) else {
            placeless.push(*message);
            continue;
        };
        let path = path.replace('\\', "/");
        let name = folder_name(&path);
        let at = folders.iter().position(|folder| folder.name == name).unwrap_or_else(|| {
            folders.push(Folder { name: name.to_owned(), files: Vec::new() });
            folders.len() - 1
        });
        let files = &mut folders[at].files;
        match files.iter_mut().find(|(known, _)| *known == path) {
            Some((_, rests)) => rests.push(rest),
            None => files.push((path, vec![rest])),
        }
    }
    let mut blocks: Vec<String> = folders.iter().map(folder_text).collect();
    if !placeless.is_empty() {
        blocks.push(placeless.join("\n"));
    }
    blocks.join("\n\n")
}

fn folder_text(folder: &Folder<'_>) -> String {
    let files = folder.files.iter().map(|(path, rests)| (file_name(path), rests));
    if folder.name == "." {
        let blocks: Vec<String> =
            files.map(|(name, rests)| format!("# {name}\n  {}", rests.join("\n  "))).collect();
        return blocks.join("\n\n");
    }
    let mut text = format!("# {}", folder.name);
    for (name, rests) in files {
        text.push_str(&format!("\n## └─ {name}\n  {}", rests.join("\n  ")));
    }
    text
}

/// `path:line:column message` as the path and the rest behind its colon.
///
/// The message begins with white space, which may hold line ends; otherwise neither part may.
fn split_place(message: &str) -> Option<(&str, &str)> {
    let is_line_end = |c: char| matches!(c, '\n' | '\r' | '\u{2028}' | '\u{2029}');
    message.match_indices(':').filter(|(at, _)| *at > 0).find_map(|(at, _)| {
        let (path, rest) = (&message[..at], &message[at + 1..]);
        let line = rest.trim_start_matches(|c: char| c.is_ascii_digit());
        let column = line.strip_prefix(':')?;
        let words = column.trim_start_matches(|c: char| c.is_ascii_digit());
        let text = words.trim_start_matches(is_js_space);
        let is_place = line.len() < rest.len() && words.len() < column.len() && text.len() < words.len();
        (is_place && !path.contains(is_line_end) && !text.contains(is_line_end)).then_some((path, rest))
    })
}

/// The folder of a path, as POSIX has it: `.` for a bare name.
fn folder_name(path: &str) -> &str {
    match path.trim_end_matches('/').rfind('/') {
        None | Some(0) if path.starts_with('/') => "/",
        None | Some(0) => ".",
        Some(1) if path.starts_with('/') => &path[..2],
        Some(at) => &path[..at],
    }
}

fn file_name(path: &str) -> &str {
    let path = path.trim_end_matches('/');
    path.rfind('/').map_or(path, |at| &path[at + 1..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn truncation() -> Truncation<'static> {
        Truncation {
            total_lines: Some(100.0),
            output_lines: Some(10.0),
            max_bytes: Some(500.0),
            ..Default::default()
        }
    }

    #[track_caller]
    fn check_truncation(truncation: Truncation<'_>, expected: &str) {
        let meta = OutputMeta { truncation: Some(truncation), ..Default::default() };
        assert_eq!(meta.notice(), format!("\n\n[{expected}]"));
    }

    #[test]
    fn says_which_lines_are_shown() {
        check_truncation(truncation(), "Showing 10 of 100 lines");
        check_truncation(
            Truncation { shown_range: Some((91.0, 100.0)), ..truncation() },
            "Showing lines 91-100 of 100",
        );
        check_truncation(
            Truncation { shown_range: Some((0.0, 0.0)), ..truncation() },
            "Showing lines 0-0 of 100",
        );
        check_truncation(
            Truncation { shown_range: Some((5.0, 4.0)), ..truncation() },
            "Showing 10 of 100 lines",
        );
        check_truncation(Truncation::default(), "Showing undefined of undefined lines");
        check_truncation(
            Truncation { by_bytes: true, ..Default::default() },
            "Showing undefined of undefined lines (NaNGB limit)",
        );
    }

    #[test]
    fn says_how_to_see_the_rest() {
        let all = Truncation {
            by_bytes: true,
            max_bytes: Some(51200.0),
            shown_range: Some((1.0, 10.0)),
            next_offset: Some(11.0),
            artifact_id: Some("5"),
            ..truncation()
        };
        check_truncation(
            all,
            "Showing lines 1-10 of 100 (50.0KB limit). Use offset=11 to continue. Read artifact://5 for full output",
        );
        check_truncation(
            Truncation { next_offset: Some(0.0), artifact_id: Some(""), ..truncation() },
            "Showing 10 of 100 lines. Use offset=0 to continue. Read artifact:// for full output",
        );
    }

    #[test]
    fn prints_sizes_as_the_agent_does() {
        for (bytes, expected) in [
            (-5.0, "-5B"),
            (0.0, "0B"),
            (1.5, "1.5B"),
            (1023.0, "1023B"),
            (1024.0, "1.0KB"),
            (1076.0, "1.1KB"),
            (1152.0, "1.1KB"),
            (1280.0, "1.3KB"),
            (1792.0, "1.8KB"),
            (3328.0, "3.3KB"),
            (1048575.0, "1024.0KB"),
            (1310720.0, "1.3MB"),
            (1073741823.0, "1024.0MB"),
            (1073741824.0, "1.0GB"),
            (1e13, "9313.2GB"),
        ] {
            assert_eq!(byte_size(Some(bytes)), expected, "{bytes}");
        }
    }

    #[test]
    fn names_every_limit() {
        let limit = |reached, suggestion| Some(ReachedLimit { reached, suggestion });
        let limits = OutputLimits {
            matches: limit(5.0, 6.0),
            results: limit(3.0, 4.0),
            head: limit(1.0, 2.0),
            max_column: Some(512.0),
        };
        let meta = OutputMeta { truncation: Some(truncation()), limits, diagnostics: None };
        assert_eq!(
            meta.notice(),
            "\n\n[Showing 10 of 100 lines. 5 matches limit reached. Use limit=6 for more. 3 results limit reached. \
             Use limit=4 for more. 1 results limit reached. Use limit=2 for more. Some lines truncated to 512 chars]"
        );
        assert_eq!(OutputMeta::default().notice(), "");
    }

    #[track_caller]
    fn check_diagnostics(messages: &[&str], expected: &str) {
        let diagnostics = Some(Diagnostics { summary: "s", messages: messages.to_vec() });
        let meta = OutputMeta { diagnostics, ..Default::default() };
        assert_eq!(meta.notice(), format!("\n\nLSP Diagnostics (s):\n{expected}"));
    }

    #[test]
    fn groups_diagnostics_by_folder_and_file() {
        check_diagnostics(
            &["z/a.ts:1:1 1", "y/a.ts:1:1 2", "z/b.ts:1:1 3", "z/a.ts:2:2 4", "y/k/l.ts:1:1 7"],
            "# z\n## └─ a.ts\n  1:1 1\n  2:2 4\n## └─ b.ts\n  1:1 3\n\n# y\n## └─ a.ts\n  1:1 2\n\n# y/k\n## └─ l.ts\n  1:1 7",
        );
        check_diagnostics(
            &["m.ts:1:1 1", "z/a.ts:1:1 2", "./n.ts:1:1 3"],
            "# m.ts\n  1:1 1\n\n# n.ts\n  1:1 3\n\n# z\n## └─ a.ts\n  1:1 2",
        );
        check_diagnostics(&["a\\b/c:1:1 x", "a/b\\c:1:1 y"], "# a/b\n## └─ c\n  1:1 x\n  1:1 y");
    }

    #[test]
    fn leaves_messages_without_a_place_at_the_end() {
        check_diagnostics(&["odd", "a.ts:1:1 x", ""], "# a.ts\n  1:1 x\n\nodd\n");
        check_diagnostics(
            &["a:1 x", ":1:1 x", "a:1:1", "a:1:1x", "a:1:1 x\r"],
            "a:1 x\n:1:1 x\na:1:1\na:1:1x\na:1:1 x\r",
        );
        let no_messages = OutputMeta { diagnostics: Some(Diagnostics::default()), ..Default::default() };
        assert_eq!(no_messages.notice(), "");
    }

    #[test]
    fn finds_the_place_in_odd_messages() {
        check_diagnostics(&["a:1:2:3:4 x"], "# a:1:2\n  3:4 x");
        check_diagnostics(&["a:1:1 b:2:2 c", "a:1:1 \n\n d"], "# a\n  1:1 b:2:2 c\n  1:1 \n\n d");
        check_diagnostics(
            &["/:1:1 x", "//x:1:1 y", "/t/:1:1 z", "b//a//:1:1 v"],
            "# /\n## └─ \n  1:1 x\n## └─ t\n  1:1 z\n\n# //\n## └─ x\n  1:1 y\n\n# b/\n## └─ a\n  1:1 v",
        );
    }
}

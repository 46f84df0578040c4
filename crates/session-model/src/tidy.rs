//! Tidies the text of a filled template: blank lines, line ends, tables (spec 2.3.2).

/// The white space that JavaScript's `\s` and `trim` know: Unicode's, without U+0085 and with U+FEFF.
pub fn is_js_space(c: char) -> bool {
    c == '\u{feff}' || (c != '\u{85}' && c.is_whitespace())
}

/// The tidied form of `text` (spec 2.3.2).
///
/// White space goes from the end of every line. Outside code fences runs of blank lines become one, and the blank
/// line before a list item, after an opening tag or before a closing tag goes; table rows lose their padding. Blank
/// lines at the very start and end go.
pub fn tidy(text: &str) -> String {
    let lines: Vec<&str> = text.split('\n').map(|line| line.trim_end_matches(is_js_space)).collect();
    let mut out = String::with_capacity(text.len());
    let mut written = Written { out: &mut out, last: None };
    let mut in_fence = false;
    for (index, &line) in lines.iter().enumerate() {
        let body = line.trim_start_matches(is_js_space);
        if body.starts_with("```") {
            in_fence = !in_fence;
            written.line(line);
        } else if in_fence {
            written.line(line);
        } else if line.is_empty() {
            let next = lines.get(index + 1).copied().unwrap_or_default();
            if !is_list_item(next) && !written.ends_with_opening_tag_or_blank() {
                written.line(line);
            }
        } else if let Some(row) = tidy_table_row(body) {
            let indent = &line[..line.len() - body.len()];
            written.line(&format!("{indent}{row}"));
        } else {
            if is_closing_tag(line) {
                written.drop_blank();
            }
            written.line(line);
        }
    }
    let tidied = out.trim_end_matches('\n').trim_start_matches('\n');
    tidied.to_owned()
}

/// The lines written so far, and what the last one was.
struct Written<'a> {
    out: &'a mut String,
    last: Option<usize>,
}

impl Written<'_> {
    fn line(&mut self, line: &str) {
        if self.last.is_some() {
            self.out.push('\n');
        }
        self.last = Some(self.out.len());
        self.out.push_str(line);
    }

    /// Takes a blank last line back.
    fn drop_blank(&mut self) {
        if self.last == Some(self.out.len()) {
            self.out.pop();
            // What is before a blank line is never asked for again: a line that is not blank follows at once.
            self.last = (!self.out.is_empty()).then_some(0);
        }
    }

    fn ends_with_opening_tag_or_blank(&self) -> bool {
        self.last.is_none_or(|start| {
            let last = &self.out[start..];
            last.is_empty() || is_opening_tag(last)
        })
    }
}

fn is_list_item(line: &str) -> bool {
    let body = line.trim_start_matches(is_js_space);
    let after = match body.strip_prefix(['-', '*']) {
        Some(after) => after,
        None => {
            let digits = body.trim_start_matches(|c: char| c.is_ascii_digit());
            match digits.strip_prefix('.') {
                Some(after) if digits.len() < body.len() => after,
                _ => return false,
            }
        }
    };
    after.starts_with(is_js_space)
}

fn is_opening_tag(line: &str) -> bool {
    let body = line.trim_matches(is_js_space);
    let Some(inner) = body.strip_prefix('<').and_then(|rest| rest.strip_suffix('>')) else { return false };
    let attributes = inner.trim_start_matches(is_tag_char);
    attributes.len() < inner.len()
        && (attributes.is_empty() || attributes.starts_with(is_js_space))
        && !attributes.contains('>')
}

fn is_closing_tag(line: &str) -> bool {
    let body = line.trim_matches(is_js_space);
    let Some(name) = body.strip_prefix("</").and_then(|rest| rest.strip_suffix('>')) else { return false };
    !name.is_empty() && name.chars().all(is_tag_char)
}

fn is_tag_char(c: char) -> bool {
    c.is_ascii_lowercase() || c == '_' || c == '-'
}

/// The row with its cells unpadded, if `body` (a line without white space around it) is a table row.
///
/// A separator row (nothing but dashes, colons and white space) loses its empty cells.
fn tidy_table_row(body: &str) -> Option<String> {
    let inner = body.strip_prefix('|')?.strip_suffix('|')?;
    let cells = inner.split('|').map(|cell| cell.trim_matches(is_js_space));
    let is_separator = inner.chars().all(|c| matches!(c, '-' | ':' | '|') || is_js_space(c));
    // What ends a line for JavaScript's expressions ends a row too; a separator row has no room for such doubts.
    if !is_separator && inner.contains(['\r', '\u{2028}', '\u{2029}']) {
        return None;
    }
    let cells: Vec<String> = if is_separator {
        cells.filter(|cell| !cell.is_empty()).map(separator_cell).collect()
    } else {
        cells.map(str::to_owned).collect()
    };
    Some(format!("|{}|", cells.join("|")))
}

fn separator_cell(cell: &str) -> String {
    let left = if cell.starts_with(':') { ":" } else { "" };
    let right = if cell.ends_with(':') { ":" } else { "" };
    format!("{left}---{right}")
}

#[cfg(test)]
mod tests {
    use super::tidy;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(tidy(text), expected, "{text:?}");
        assert_eq!(tidy(expected), expected, "a second time");
    }

    #[test]
    fn drops_javascript_white_space_at_line_ends_only() {
        check(" a \t\r\n b\u{a0}\u{feff}\n c\u{85}", " a\n b\n c\u{85}");
        check("x\u{2028}", "x");
    }

    #[test]
    fn leaves_blank_lines_in_fences_alone() {
        check(
            "  ```ts\n\n\n- a  \n| x |\n\n</a>\n ```x\n\n\nb",
            "  ```ts\n\n\n- a\n| x |\n\n</a>\n ```x\n\nb",
        );
    }

    #[test]
    fn keeps_one_blank_line_of_a_run() {
        check("\n \na\n\n\n\t\nb\n\n", "a\n\nb");
    }

    #[test]
    fn drops_the_single_blank_line_before_a_list_item() {
        check("a\n\n- b\n\n* c\n\n12.\td", "a\n- b\n* c\n12.\td");
        assert_eq!(tidy("a\n\n\n- b"), "a\n\n- b");
        check("a\n\n-b\n\n1.c\n\n+ d\n\n1) e", "a\n\n-b\n\n1.c\n\n+ d\n\n1) e");
    }

    #[test]
    fn drops_blank_lines_inside_tags() {
        check("<a b=\"1\">\n\n\nx\n\n\n</a>\n\ny", "<a b=\"1\">\nx\n</a>\n\ny");
        check("<br />\n\nx\n\n<br/>\n\ny", "<br />\nx\n\n<br/>\n\ny");
        check("<Ab>\n\nx\n\n</h1>", "<Ab>\n\nx\n\n</h1>");
        check("<h1>\n\nx\n\n</a >", "<h1>\n\nx\n\n</a >");
    }

    #[test]
    fn a_row_with_a_line_separator_in_it_is_none() {
        check(
            "| a | b\u{2028} c |\n| a | b\rc |\n|:-- \u{2028} | --|",
            "| a | b\u{2028} c |\n| a | b\rc |\n|:---|---|",
        );
        check("| a | b |\u{2028}", "|a|b|");
    }

    #[test]
    fn unpads_table_rows() {
        check(" |  a | b  |\n| :- | --- | -: |\n|:|", " |a|b|\n|:---|---|---:|\n|:---:|");
        check("| | |\n|-| |-|\n|a| |b|", "||\n|---|---|\n|a||b|");
        check("| a | b\na | b |", "| a | b\na | b |");
    }

    #[test]
    fn nothing_stays_nothing() {
        check("", "");
        check(" \n\t\n", "");
    }
}

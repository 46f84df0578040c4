//! A plain table: columns as wide as they must be, numbers to the right.

use std::io::{self, Write};

use session_model::text::shown;
use unicode_width::UnicodeWidthStr;

use crate::printer::Paint;

/// Between two columns.
const GAP: usize = 2;

/// Rows of text under headings.
#[derive(Debug)]
pub struct Table {
    headings: Vec<(String, bool)>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these headings; `>` before one puts its column to the right.
    pub fn new(headings: &[&str]) -> Table {
        let heading = |text: &&str| match text.strip_prefix('>') {
            Some(text) => (text.to_owned(), true),
            None => ((*text).to_owned(), false),
        };
        Table { headings: headings.iter().map(heading).collect(), rows: Vec::new() }
    }

    /// Adds a row. Control characters are spelled out.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().map(|cell| shown(&cell).into_owned()).collect());
    }

    /// Writes the table.
    ///
    /// # Errors
    /// `out` cannot be written.
    pub fn write(&self, out: &mut dyn Write, paint: Paint) -> io::Result<()> {
        let widths: Vec<usize> = (0..self.headings.len()).map(|column| self.width(column)).collect();
        let headings: Vec<_> = self.headings.iter().map(|(text, _)| text.clone()).collect();
        writeln!(out, "{}", paint.bold(self.line(&headings, &widths)))?;
        for row in &self.rows {
            writeln!(out, "{}", self.line(row, &widths))?;
        }
        Ok(())
    }

    fn width(&self, column: usize) -> usize {
        let cells = self.rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.width()).chain([self.headings[column].0.width()]).max().unwrap_or(0)
    }

    fn line(&self, cells: &[String], widths: &[usize]) -> String {
        let mut line = String::new();
        for (column, cell) in cells.iter().enumerate() {
            let padding = " ".repeat(widths[column].saturating_sub(cell.width()));
            let (before, behind) = if self.headings[column].1 { (&*padding, "") } else { ("", &*padding) };
            line.push_str(before);
            line.push_str(cell);
            line.push_str(behind);
            line.push_str(&" ".repeat(GAP));
        }
        line.truncate(line.trim_end().len());
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut table = Table::new(&["name", ">size", "note"]);
        table.row(["a".into(), "1".into(), "x\u{1b}".into()]);
        table.row(["日本".into(), "12345".into(), String::new()]);
        let mut out = Vec::new();
        table.write(&mut out, Paint::PLAIN).expect("memory can be written");
        let expected = "name   size  note\na         1  x\\u{1b}\n日本  12345\n";
        assert_eq!(String::from_utf8(out).expect("UTF-8"), expected);
    }
}

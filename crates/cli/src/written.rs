//! Where a command has written, and what there is to say of it: the part that the reports of all writing commands have in common.

use std::io::{self, Write};
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Serialize;
use session_model::text::shown;

use crate::printer::Paint;
use crate::session_file::SessionFile;
use crate::write::WriteReport;

/// What a write leaves, as it is reported.
#[derive(Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WriteFacts {
    /// The file that was written, if it is another than the session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// Where the old bytes are, if the file was replaced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backup: Option<String>,
    /// What the user should know.
    pub warnings: Vec<String>,
}

impl WriteFacts {
    /// Takes what writing `file` has come to; warnings stand behind those that are there.
    pub fn take(&mut self, report: WriteReport, file: &SessionFile) {
        let named = |path: PathBuf| path.to_string_lossy().into_owned();
        self.output = report.file.filter(|path| *path != file.path).map(named);
        self.backup = report.backup.map(named);
        self.warnings.extend(report.warnings);
    }

    /// Writes the names of the files, one a line, behind a column of this width.
    ///
    /// # Errors
    /// `out` takes no more.
    pub fn write_files(&self, out: &mut dyn Write, width: usize) -> io::Result<()> {
        for (name, path) in [("written to", &self.output), ("backup", &self.backup)] {
            if let Some(path) = path {
                writeln!(out, "  {name:width$} {}", shown(path))?;
            }
        }
        Ok(())
    }

    /// Writes the warnings, one a line, behind a column of this width.
    ///
    /// # Errors
    /// `out` takes no more.
    pub fn write_warnings(&self, out: &mut dyn Write, paint: Paint, width: usize) -> io::Result<()> {
        for warning in &self.warnings {
            writeln!(out, "  {:width$} {}", paint.notice("note"), shown(warning))?;
        }
        Ok(())
    }
}

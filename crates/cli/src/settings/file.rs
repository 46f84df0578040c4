//! The settings file: JSON, unknown keys named, values checked.

use std::path::Path;

use serde_json::{Map, Value};

use super::agent_keys;
use super::table::TABLE;
use crate::disk::{DiskError, read};
use crate::exit::CommandError;

/// Values of the file by row of the table; none if it does not exist and need not.
pub(super) fn read(
    path: &Path,
    must_exist: bool,
    warnings: &mut Vec<String>,
) -> Result<Option<Vec<(usize, Value)>>, CommandError> {
    let bytes = match read::whole(path) {
        Err(DiskError::NotFound { .. }) if !must_exist => return Ok(None),
        read => read?,
    };
    let text = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&bytes);
    let value: Value = serde_json::from_slice(text).map_err(|error| {
        CommandError::in_file(path, format!("no JSON: {error}"))
            .hint("correct the file, or give --settings FILE")
    })?;
    let Value::Object(root) = value else {
        return Err(CommandError::in_file(path, "the settings are no JSON object"));
    };
    let mut values = Vec::new();
    for (key, value) in &root {
        let is_section = TABLE.iter().any(|row| row.section_and_key().0 == Some(key));
        if !is_section {
            take(path, None, key, value, &mut values, warnings)?;
        } else if let Value::Object(section) = value {
            take_section(path, key, section, &mut values, warnings)?;
        } else if !value.is_null() {
            return Err(CommandError::in_file(path, format!("{key}: expected an object, found {value}"))
                .hint("see sesstool settings"));
        }
    }
    Ok(Some(values))
}

fn take_section(
    path: &Path,
    section: &str,
    keys: &Map<String, Value>,
    values: &mut Vec<(usize, Value)>,
    warnings: &mut Vec<String>,
) -> Result<(), CommandError> {
    for (key, value) in keys {
        take(path, Some(section), key, value, values, warnings)?;
    }
    Ok(())
}

fn take(
    path: &Path,
    section: Option<&str>,
    key: &str,
    value: &Value,
    values: &mut Vec<(usize, Value)>,
    warnings: &mut Vec<String>,
) -> Result<(), CommandError> {
    let name = section.map_or_else(|| key.to_owned(), |section| format!("{section}.{key}"));
    let Some(at) = TABLE.iter().position(|row| row.section_and_key() == (section, key)) else {
        if !agent_keys::is_known(section, key) {
            warnings.push(format!("{}: unknown key {name:?} is ignored", path.display()));
        }
        return Ok(());
    };
    let checked = TABLE[at].kind.check(value).map_err(|wrong| {
        CommandError::in_file(path, format!("{name}: {wrong}")).hint(format!("{name}: {}", TABLE[at].meaning))
    })?;
    values.push((at, checked));
    Ok(())
}

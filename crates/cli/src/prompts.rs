//! The prompts: ours, and the user's own in their place from the folder of `--prompts` (spec 5.1).

use std::path::Path;

use session_model::prompts::{PromptName, Prompts};

use crate::disk::read;
use crate::exit::CommandError;

/// The built-in prompts with those of `folder` in their place. The folder has the layout of the built-in ones, e.g.
/// `compaction/compaction-summary.md`; what it lacks is built in.
///
/// # Errors
/// The folder is not there or has no prompt in it, or one cannot be read.
pub fn load(folder: Option<&Path>) -> Result<Prompts, CommandError> {
    let mut prompts = Prompts::default();
    let Some(folder) = folder else { return Ok(prompts) };
    let usage = |error: CommandError| CommandError { kind: crate::exit::ErrorKind::Usage, ..error };
    if !folder.is_dir() {
        return Err(usage(CommandError::in_file(folder, "no such folder")).hint("--prompts takes a folder"));
    }
    let mut n_found = 0;
    for &name in PromptName::ALL {
        let file = folder.join(name.file());
        if !file.exists() {
            continue;
        }
        let bytes = read::whole(&file).map_err(|error| usage(error.into()))?;
        let text = std::str::from_utf8(&bytes)
            .map_err(|_| usage(CommandError::in_file(&file, "is not UTF-8")))?
            .to_owned();
        prompts = prompts.with(name, text);
        n_found += 1;
    }
    if n_found == 0 {
        let first = PromptName::ALL.first().map_or("", |name| name.file());
        return Err(usage(CommandError::in_file(folder, "no prompt in this folder"))
            .hint(format!("prompts are files like {first} in it")));
    }
    Ok(prompts)
}

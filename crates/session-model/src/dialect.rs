//! pi or oh-my-pi: the marks that tell, and the names of the fields that differ (spec 1.6).

use std::fmt;

/// Which agent's form of the format a file has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dialect {
    /// pi: the older, common form; files without any mark are taken for it.
    #[default]
    Pi,
    /// oh-my-pi.
    OhMyPi,
}

impl Dialect {
    /// The field that says that an extension made an entry.
    pub fn extension_flag(self) -> &'static str {
        match self {
            Dialect::Pi => "fromHook",
            Dialect::OhMyPi => "fromExtension",
        }
    }

    /// The name that `--dialect` takes.
    pub fn name(self) -> &'static str {
        match self {
            Dialect::Pi => "pi",
            Dialect::OhMyPi => "omp",
        }
    }

    /// What an entry with this type and these keys tells.
    pub(crate) fn of_entry(kind: &str, has: impl Fn(&str) -> bool) -> Option<Dialect> {
        match kind {
            "reset_boundary" | "title" => Some(Dialect::OhMyPi),
            "context_edit" | "session_info" => Some(Dialect::Pi),
            "model_change" if has("model") => Some(Dialect::OhMyPi),
            "model_change" if has("modelId") => Some(Dialect::Pi),
            "session" if has("title") => Some(Dialect::OhMyPi),
            "compaction" | "branch_summary" => {
                if has("fromExtension") || has("shortSummary") {
                    Some(Dialect::OhMyPi)
                } else if has("fromHook") || has("systemMessage") {
                    Some(Dialect::Pi)
                } else {
                    None
                }
            }
            _ => None,
        }
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Dialect::Pi => "pi",
            Dialect::OhMyPi => "oh-my-pi",
        })
    }
}

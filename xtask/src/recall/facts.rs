//! The expressions that say what a fact is, by class; kept apart from the summarizer's own walk, which they judge.

use std::collections::{BTreeMap, BTreeSet};

use regex::Regex;

/// What a fact is. The first class that finds a text owns it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Class {
    /// A path with a folder, or a file's name.
    Path,
    /// An address.
    Url,
    /// An identifier of more than one word.
    Identifier,
    /// A number of four digits or more.
    Number,
    /// Seven to forty hexadecimal digits.
    Hash,
    /// A whole command that ran.
    Command,
    /// A whole line of an output that tells of an error.
    ErrorLine,
    /// A text in quotes.
    Quoted,
}

/// All classes in the order of the tables.
pub(super) const CLASSES: [Class; 8] = [
    Class::Path,
    Class::Identifier,
    Class::Number,
    Class::Hash,
    Class::Url,
    Class::Command,
    Class::ErrorLine,
    Class::Quoted,
];

impl Class {
    /// The name in tables.
    pub(super) fn name(self) -> &'static str {
        match self {
            Class::Path => "paths",
            Class::Url => "URLs",
            Class::Identifier => "identifiers",
            Class::Number => "numbers",
            Class::Hash => "hashes",
            Class::Command => "commands",
            Class::ErrorLine => "error lines",
            Class::Quoted => "quoted",
        }
    }

    /// Whether the reference points know this class.
    pub(super) fn is_simple(self) -> bool {
        !matches!(self, Class::Command | Class::ErrorLine | Class::Quoted)
    }
}

/// Finds facts.
pub(super) struct Finder {
    simple: Vec<(Class, Regex)>,
    quoted: Regex,
    error: Regex,
}

/// Facts by their text.
pub(super) type Facts = BTreeMap<String, Class>;

impl Finder {
    /// Compiles the expressions.
    pub(super) fn new() -> Finder {
        let regex = |text: &str| Regex::new(text).expect("the expressions are fixed and valid");
        let endings = "rs|ts|tsx|js|py|go|md|json|toml|yaml|yml|sh|css|html|java|c|h|cpp|sql";
        Finder {
            simple: vec![
                (Class::Path, regex(&format!(r"(?:[\w@~.-]+/)+[\w.@-]+|\b[\w-]+\.(?:{endings})\b"))),
                (Class::Url, regex(r#"https?://[^\s"')>]+"#)),
                (
                    Class::Identifier,
                    regex(
                        r"\b(?:[a-z]+(?:_[a-z0-9]+)+|[A-Z]?[a-z0-9]+(?:[A-Z][a-z0-9]+)+|[A-Z0-9]+(?:_[A-Z0-9]+)+)\b",
                    ),
                ),
                (Class::Number, regex(r"\b\d{4,}\b")),
                (Class::Hash, regex(r"\b[0-9a-f]{7,40}\b")),
            ],
            quoted: regex(r#""([^"\n\\]{6,80})"|`([^`\n\\]{6,80})`"#),
            error: regex(r"(?i)\b(?:error|panicked|exception|fatal|failed|cannot)\b"),
        }
    }

    /// Adds the facts of the five simple classes.
    pub(super) fn simple(&self, text: &str, facts: &mut Facts) {
        for (class, regex) in &self.simple {
            for found in regex.find_iter(text) {
                let fact = found.as_str().trim_end_matches(['.', ',', ':', ';', '/']);
                if (4..=120).contains(&fact.chars().count()) && !facts.contains_key(fact) {
                    facts.insert(fact.to_owned(), *class);
                }
            }
        }
    }

    /// Adds texts in quotes that no other class owns.
    pub(super) fn quoted(&self, text: &str, facts: &mut Facts) {
        for found in self.quoted.captures_iter(text) {
            let Some(inner) = found.get(1).or(found.get(2)) else { continue };
            let inner = inner.as_str().trim();
            if inner.chars().count() >= 6 && !facts.contains_key(inner) {
                facts.insert(inner.to_owned(), Class::Quoted);
            }
        }
    }

    /// The lines of an output that tell of an error.
    pub(super) fn error_lines(&self, text: &str) -> BTreeSet<String> {
        text.lines()
            .map(str::trim)
            .filter(|line| (8..=200).contains(&line.len()) && self.error.is_match(line))
            .map(str::to_owned)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_class_is_found() {
        let mut facts = Facts::new();
        let finder = Finder::new();
        let text =
            "see src/a_b.rs, main.rs: parse_it at https://x.example/y and 12345 of a1b2c3d, `cargo run` ";
        finder.simple(text, &mut facts);
        finder.quoted(text, &mut facts);
        let of = |class| {
            facts.iter().filter(|(_, of)| **of == class).map(|(fact, _)| fact.as_str()).collect::<Vec<_>>()
        };
        assert_eq!(of(Class::Path), ["main.rs", "src/a_b.rs", "x.example/y"]);
        assert_eq!(of(Class::Url), ["https://x.example/y"]);
        assert_eq!(of(Class::Identifier), ["parse_it"]);
        assert_eq!((of(Class::Number), of(Class::Hash)), (vec!["12345"], vec!["a1b2c3d"]));
        assert_eq!(of(Class::Quoted), ["cargo run"]);
    }
}

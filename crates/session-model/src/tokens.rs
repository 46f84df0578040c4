//! How many tokens a text is taken to cost: UTF-16 units by four, or a real tokenizer's count (spec 3.2).

use crate::pieces::{Piece, pieces};
use crate::text;
use crate::value::Value;

/// UTF-16 units that an image counts, wherever it stands (spec D4).
pub const IMAGE_UNITS: u64 = 4800;

/// A way to count tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tokenizer {
    /// ⌈UTF-16 units / 4⌉: what the agents estimate with, and no text has to be decoded for it.
    #[default]
    Units,
    /// OpenAI's vocabulary `cl100k_base`.
    Cl100kBase,
    /// OpenAI's vocabulary `o200k_base`.
    O200kBase,
}

impl Tokenizer {
    /// Whether counting needs the decoded text.
    pub fn needs_text(self) -> bool {
        self != Tokenizer::Units
    }

    /// Tokens of one text.
    pub fn count(self, text: &str) -> u64 {
        let vocabulary = match self {
            Tokenizer::Units => return from_units(text::units(text)),
            Tokenizer::Cl100kBase => tiktoken_rs::cl100k_base_singleton(),
            Tokenizer::O200kBase => tiktoken_rs::o200k_base_singleton(),
        };
        // The tokenizer's expression can run out of stack on a megabyte of spaces: that piece is then estimated.
        match vocabulary.count(text, &std::collections::HashSet::new()) {
            Ok(count) => count as u64,
            Err(_) => from_units(text::units(text)),
        }
    }

    /// Tokens of a message, by what it holds: never by its role's wrapping.
    pub fn message(self, message: &Value<'_>) -> u64 {
        self.tally(|take| pieces(message, take))
    }

    /// Tokens of all pieces that `hand_out` gives.
    pub fn tally<'m, 'a: 'm>(self, hand_out: impl FnOnce(&mut dyn FnMut(Piece<'m, 'a>))) -> u64 {
        let (mut units, mut tokens) = (0, 0);
        hand_out(&mut |piece| match piece {
            Piece::Image => units += IMAGE_UNITS,
            Piece::Text(text) if self.needs_text() => tokens += self.count(&text.text()),
            Piece::Text(text) => units += text.units(),
            Piece::Json(value) if self.needs_text() => tokens += self.count(&value.to_json()),
            Piece::Json(value) => units += text::units(&value.to_json()),
        });
        tokens + from_units(units)
    }
}

/// ⌈units / 4⌉.
pub fn from_units(units: u64) -> u64 {
    units.div_ceil(4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(json: &str, tokens: u64) {
        assert_eq!(Tokenizer::Units.message(&Value::parse(json).expect("valid JSON")), tokens);
    }

    #[test]
    fn every_role_counts_what_it_holds() {
        check(r#"{"role":"user","content":"12345"}"#, 2);
        check(
            r#"{"role":"user","content":[{"type":"text","text":"1234"},{"type":"image","data":"x"}]}"#,
            1201,
        );
        check(
            r#"{"role":"assistant","content":[{"type":"thinking","thinking":"12"},{"type":"text","text":"34"},{"type":"toolCall","id":"i","name":"read","arguments":{"a":1}}]}"#,
            4,
        );
        check(r#"{"role":"toolResult","content":"1234"}"#, 1);
        check(r#"{"role":"bashExecution","command":"ls","output":"ab"}"#, 1);
        check(r#"{"role":"bashExecution","command":"ls","output":"ab","excludeFromContext":true}"#, 0);
        check(r#"{"role":"pythonExecution","code":"1","output":"abcd"}"#, 2);
        check(
            r#"{"role":"fileMention","files":[{"path":"p","content":"abcd"},{"path":"q","content":"","image":{"type":"image"}}]}"#,
            1201,
        );
        check(r#"{"role":"compactionSummary","summary":"abcde"}"#, 2);
        check(r#"{"role":"system","content":"ab","sections":{"a":"b","c":null},"toolsAdded":[{}]}"#, 2);
    }

    #[test]
    fn a_tokenizer_that_gives_up_falls_back_to_the_estimate() {
        let spaces = " ".repeat(2_000_000);
        assert!(Tokenizer::O200kBase.count(&spaces) > 0);
        assert_eq!(Tokenizer::Cl100kBase.count("hello world"), 2);
    }
}

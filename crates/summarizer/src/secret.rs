//! `Secret`: a key that is sent and never shown.

use std::fmt;
use std::sync::Arc;

use crate::error::SetupError;

/// A key. Neither `Debug` nor `Display` shows it, and no error holds it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Arc<str>);

impl Secret {
    /// A key from the text of an environment variable; white space around it is dropped, `None` if nothing is
    /// left.
    ///
    /// # Errors
    /// If the key holds characters that cannot be sent in a header. The error does not show it.
    pub fn new(text: &str) -> Result<Option<Self>, SetupError> {
        let key = text.trim();
        if !key.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(SetupError::new(
                "the key holds characters that a key cannot have",
                "check the provider's environment variable for quotes, blanks and line ends",
            ));
        }
        Ok((!key.is_empty()).then(|| Self(key.into())))
    }

    /// The key itself, for a header and nothing else.
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }

    /// `text` with every occurrence of the key blanked: providers echo what they were sent.
    pub(crate) fn blank(&self, text: &str) -> String {
        // Shorter keys than this are no keys (local servers take anything), and blanking them spoils messages.
        if self.0.len() < 4 {
            return text.to_owned();
        }
        let text = text.replace(&*self.0, "***");
        // A message that was cut can end within the key.
        let Some(body) = text.strip_suffix('…') else { return text };
        let starts =
            (4..self.0.len()).rev().filter(|end| self.0.is_char_boundary(*end)).map(|end| &self.0[..end]);
        match starts.into_iter().find_map(|start| body.strip_suffix(start)) {
            Some(body) => format!("{body}***…"),
            None => text,
        }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(***)")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_trimmed_and_never_shown() {
        let key = Secret::new(" sk-test-4711\n").unwrap().unwrap();
        assert_eq!(key.expose(), "sk-test-4711");
        assert_eq!(format!("{key} {key:?} {:?}", Some(&key)), "*** Secret(***) Some(Secret(***))");
        assert_eq!(key.blank("bad key sk-test-4711!"), "bad key ***!");
        assert_eq!(key.blank("bad key sk-test-4…"), "bad key ***…");
        assert_eq!(key.blank("bad key sk…"), "bad key sk…");
    }

    #[test]
    fn an_empty_key_is_none() {
        assert_eq!(Secret::new(" \r\n"), Ok(None));
    }

    #[test]
    fn a_key_with_a_line_end_inside_is_an_error_that_hides_it() {
        let error = Secret::new("sk-test\nX-Other: 1").unwrap_err();
        assert!(!format!("{error} {error:?}").contains("sk-test"));
    }
}

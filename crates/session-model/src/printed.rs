//! Is a value printed by `JSON.stringify` as it stands in the file? Then its length is known without building it.

use crate::scan::{ScanError, StringScan, Walker};
use crate::strings::Marked;
use crate::text;

/// What a string or another value is as `JSON.stringify` prints it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Printed {
    /// Where the value stands.
    pub range: (usize, usize),
    /// Whether it is printed as it stands. If not, it may be so all the same: then only building it can tell (odd spellings of
    /// numbers and characters, keys that JavaScript sorts, repeated keys, deep nesting).
    pub as_it_stands: bool,
    /// The value of the field `path`, if it is a string.
    pub path: Option<StringScan>,
}

impl<'a, 'm> Walker<'a, Marked<'m>> {
    /// Passes over the value that comes next and finds out whether `JSON.stringify` would print it as it stands.
    ///
    /// # Errors
    /// The first byte that is not JSON.
    pub fn printed(&mut self) -> Result<Printed, ScanError> {
        self.printed_at(0)
    }

    fn printed_at(&mut self, depth: usize) -> Result<Printed, ScanError> {
        const MAX_DEPTH: usize = 8;
        let byte = self.peek();
        let start = self.at;
        let mut path = None;
        let as_it_stands = match byte {
            b'"' => {
                let scan = self.string()?;
                !self.strings.was_odd || self.has_common_spelling(&scan)
            }
            b'{' if depth < MAX_DEPTH => {
                let mut keys = Keys::default();
                // Braces and commas, keys with quotes and colon, values: anything else is white space.
                let mut length = 1;
                let mut is_common = true;
                self.object(|walker, key| {
                    is_common &= keys.add(key);
                    let value = walker.printed_at(depth + 1)?;
                    is_common &= value.as_it_stands;
                    length += key.len() + 4 + value.range.1 - value.range.0;
                    if depth == 0 && key == "path" {
                        let (start, end) = (value.range.0 + 1, value.range.1 - 1);
                        let is_string = walker.bytes()[value.range.0] == b'"';
                        path = is_string.then_some(StringScan { start, end });
                    }
                    Ok(())
                })?;
                is_common && self.at - start == length.max(2)
            }
            b'[' if depth < MAX_DEPTH => {
                let mut length = 1;
                let mut is_common = true;
                self.array(|walker| {
                    let value = walker.printed_at(depth + 1)?;
                    is_common &= value.as_it_stands;
                    length += value.range.1 - value.range.0 + 1;
                    Ok(())
                })?;
                is_common && self.at - start == length.max(2)
            }
            b't' | b'f' | b'n' => self.skip().map(|_| true)?,
            b'-' | b'0'..=b'9' => {
                let (start, end) = self.skip()?;
                let digits = self.slice(start, end).as_bytes();
                let digits = digits.strip_prefix(b"-").filter(|rest| **rest != *b"0").unwrap_or(digits);
                digits.len() <= 15 && digits.iter().all(u8::is_ascii_digit)
            }
            _ => self.skip().map(|_| false)?,
        };
        Ok(Printed { range: (start, self.at), as_it_stands, path })
    }
}

/// The keys of an object, as long as they are few.
#[derive(Default)]
struct Keys<'a> {
    keys: [&'a str; 16],
    n: usize,
}

impl<'a> Keys<'a> {
    /// Whether the key is a new one that JavaScript leaves at its place.
    fn add(&mut self, key: &'a str) -> bool {
        let (known, free) = self.keys.split_at_mut(self.n);
        let Some(place) = free.first_mut() else { return false };
        if known.contains(&key) || key.contains('\\') || text::index_key(key).is_some() {
            return false;
        }
        *place = key;
        self.n += 1;
        true
    }
}

impl Walker<'_, Marked<'_>> {
    /// Whether all escapes of a string are those that `JSON.stringify` prints, as far as one can tell them one by one.
    fn has_common_spelling(&self, scan: &StringScan) -> bool {
        let bytes = self.bytes();
        self.strings.odd(scan).all(|at| is_printed_escape(&bytes[at..scan.end]))
    }
}

/// Whether `JSON.stringify` prints an escape in this spelling, when its letter, the first of these bytes, is `u` or `/`.
pub(crate) fn is_printed_escape(escape: &[u8]) -> bool {
    // 8, 9, a, c and d have letters of their own.
    matches!(
        escape,
        [b'u', b'0', b'0', b'0', b'0'..=b'7' | b'b' | b'e' | b'f', ..]
            | [b'u', b'0', b'0', b'1', b'0'..=b'9' | b'a'..=b'f', ..]
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::marks::Marks;
    use crate::value::Value;

    fn printed(json: &str) -> Printed {
        Walker::marked(json, 0, &Marks::of(json), 0).printed().expect("valid JSON")
    }

    #[test]
    fn common_arguments_are_printed_as_they_stand() {
        for json in [
            "{}",
            "[]",
            "-12",
            r#"{"path":"x\n","all":true,"edits":[{"old":"","new":"a"},[]]}"#,
            r#"{"a":"\u001b[31m\u0000 é😀"}"#,
        ] {
            assert!(printed(json).as_it_stands, "{json}");
        }
    }

    #[test]
    fn other_spellings_are_not() {
        for json in [
            r#"{ "a":1}"#,
            r#"{"a": 1}"#,
            r#"{"a":1 }"#,
            "[1, 2]",
            "[ ]",
            r#"{"1":1}"#,
            r#"{"a":1.0}"#,
            r#"{"a":-0}"#,
            r#"{"a":1,"a":2}"#,
            r#"{"\u0061":1}"#,
            r#"{"a":"\/"}"#,
            r#"{"a":"\u0009"}"#,
            r#"{"a":"\u001B"}"#,
            r#"{"a":"\u00e9"}"#,
        ] {
            assert!(!printed(json).as_it_stands, "{json}");
        }
    }

    #[test]
    fn the_last_path_is_the_one_that_counts() {
        for (json, path) in [
            (r#"{"path":"a","path":"b\n"}"#, Some(r"b\n")),
            (r#"{"path":"a","path":1}"#, None),
            (r#"{"x":{"path":"a"}}"#, None),
            (r#"["path"]"#, None),
        ] {
            assert_eq!(printed(json).path.map(|scan| &json[scan.start..scan.end]), path, "{json}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn what_is_printed_as_it_stands_is_what_javascript_prints(json in value()) {
            let printed = printed(&json);
            prop_assert_eq!(printed.range, (0, json.len()));
            if printed.as_it_stands {
                prop_assert_eq!(Value::parse(&json).expect("valid JSON").to_json(), json);
            }
        }
    }

    /// JSON in many spellings.
    fn value() -> impl Strategy<Value = String> {
        let string = r#""([a-c1é]|\\[nt/\\"]|\\u[0d][08][0-2][0-9a-f]){0,4}""#;
        let leaf = prop_oneof![
            string.prop_map(|text: String| text),
            r"-?(0|[1-9][0-9]{0,17})(\.[0-9]{1,3})?".prop_map(|text: String| text),
            Just("true".to_owned()),
            Just("null".to_owned()),
        ];
        leaf.prop_recursive(4, 24, 4, move |inner| {
            let field =
                (string, " ?", inner.clone()).prop_map(|(key, blank, value)| format!("{key}:{blank}{value}"));
            prop_oneof![
                prop::collection::vec(inner, 0..4).prop_map(|items| format!("[{}]", items.join(","))),
                prop::collection::vec(field, 0..4).prop_map(|fields| format!("{{{}}}", fields.join(","))),
            ]
        })
    }
}

//! A changed record from an old one: byte ranges are spliced, and everything else stays as it was spelled (spec 1.1).

use std::borrow::Cow;
use std::ops::Range;

use crate::record::original_offset;
use crate::scan::{ScanError, Walker};
use crate::text::{Str, write_json_string};

/// What happens to a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldChange<'a> {
    /// It gets this JSON value: in place of the old one, or at the end of its object.
    Set(&'a str),
    /// It goes, with every repetition of its key.
    Remove,
}

/// Why a record could not be changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// The record is no JSON object.
    #[error("no JSON at byte {at}")]
    NotJson {
        /// Byte offset in the record.
        at: usize,
    },
    /// A field that should hold the changed one is no object.
    #[error("field \"{field}\" is no object")]
    NotAnObject {
        /// Its name.
        field: String,
    },
}

impl From<ScanError> for EditError {
    fn from(error: ScanError) -> Self {
        EditError::NotJson { at: error.at }
    }
}

/// The path of a field, outermost name first, and what happens to it. No path of a list may lie within another.
pub type FieldEdit<'a> = (&'a [&'a str], FieldChange<'a>);

/// The record with fields set to JSON values: `(&["message", "prunedAt"], "5")`. Of repeated keys the last one is set, for it
/// is the one that counts in JavaScript. Missing fields, and missing objects on the way to them, are put at the end.
///
/// # Errors
/// The record is no object, or something on the way to a field is none.
pub fn set_fields(record: &str, fields: &[(&[&str], &str)]) -> Result<String, EditError> {
    let edits: Vec<FieldEdit<'_>> =
        fields.iter().map(|&(path, json)| (path, FieldChange::Set(json))).collect();
    change_fields(record, &edits)
}

/// The record with one field set to a JSON value.
///
/// # Errors
/// As [`set_fields`].
pub fn set_field(record: &str, path: &[&str], json: &str) -> Result<String, EditError> {
    change_fields(record, &[(path, FieldChange::Set(json))])
}

/// The record with fields set and removed in one pass.
///
/// # Errors
/// As [`set_fields`].
pub fn change_fields(record: &str, edits: &[FieldEdit<'_>]) -> Result<String, EditError> {
    let mut changed = String::with_capacity(record.len() + 64);
    let mut kept = 0;
    for splice in splices(record, edits)? {
        changed.push_str(&record[kept..splice.range.start]);
        changed.push_str(&splice.text);
        kept = splice.range.end;
    }
    changed.push_str(&record[kept..]);
    Ok(changed)
}

/// As [`change_fields`], for a record that may hold bytes which are no UTF-8: those outside the changed fields stay.
///
/// # Errors
/// As [`set_fields`].
pub fn change_bytes(record: &[u8], edits: &[FieldEdit<'_>]) -> Result<Vec<u8>, EditError> {
    let text = match simdutf8::basic::from_utf8(record) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => String::from_utf8_lossy(record),
    };
    let is_lossy = matches!(text, Cow::Owned(_));
    let place = |at: usize| if is_lossy { original_offset(record, at) } else { at };
    let mut changed = Vec::with_capacity(record.len() + 64);
    let mut kept = 0;
    for splice in splices(&text, edits)? {
        changed.extend_from_slice(&record[kept..place(splice.range.start)]);
        changed.extend_from_slice(splice.text.as_bytes());
        kept = place(splice.range.end);
    }
    changed.extend_from_slice(&record[kept..]);
    Ok(changed)
}

/// A range of the record and what takes its place.
struct Splice {
    range: Range<usize>,
    text: String,
}

/// A field of an object: the range of its key with the quotes, and of its value.
struct Member<'a> {
    name: Str<'a>,
    key_start: usize,
    value: Range<usize>,
}

fn splices(record: &str, edits: &[FieldEdit<'_>]) -> Result<Vec<Splice>, EditError> {
    let mut walker = Walker::new(record);
    if walker.peek() != b'{' {
        return Err(EditError::NotJson { at: walker.position() });
    }
    let mut splices = Vec::new();
    edit_object(record, 0, edits, &mut splices)?;
    splices.sort_by_key(|splice| (splice.range.start, splice.range.end));
    Ok(splices)
}

/// Notes the splices for the object that starts at byte `at`.
fn edit_object(
    record: &str,
    at: usize,
    edits: &[FieldEdit<'_>],
    splices: &mut Vec<Splice>,
) -> Result<(), EditError> {
    let mut walker = Walker::starting_at(record, at);
    let mut members = Vec::new();
    walker.peek();
    let inside = walker.position() + 1;
    walker.object(|walker, key| {
        // The key is a slice of the record: its place tells where the quote before it stands.
        let key_start = key.as_ptr() as usize - record.as_ptr() as usize - 1;
        let (start, end) = walker.skip()?;
        members.push(Member { name: Str::Raw(key), key_start, value: start..end });
        Ok(())
    })?;

    let mut removed = vec![false; members.len()];
    let mut appended: Vec<(&str, String)> = Vec::new();
    for (n, (path, _)) in edits.iter().enumerate() {
        let Some(&name) = path.first() else { continue };
        if edits[..n].iter().any(|(earlier, _)| earlier.first() == Some(&name)) {
            continue;
        }
        let group: Vec<FieldEdit<'_>> = edits
            .iter()
            .filter(|(path, _)| path.first() == Some(&name))
            .map(|&(path, change)| (&path[1..], change))
            .collect();
        let own = group.iter().rev().find(|(rest, _)| rest.is_empty()).map(|(_, change)| *change);
        let found = members.iter().rposition(|member| member.name.is(name));
        match (own, found) {
            (Some(FieldChange::Set(json)), Some(member)) => {
                splices.push(Splice { range: members[member].value.clone(), text: json.to_owned() });
            }
            (Some(FieldChange::Set(json)), None) => appended.push((name, json.to_owned())),
            (Some(FieldChange::Remove), _) => {
                members
                    .iter()
                    .zip(&mut removed)
                    .filter(|(member, _)| member.name.is(name))
                    .for_each(|(_, removed)| *removed = true);
            }
            (None, Some(member)) => {
                let value = &members[member].value;
                if !record[value.clone()].starts_with('{') {
                    return Err(EditError::NotAnObject { field: name.to_owned() });
                }
                edit_object(record, value.start, &group, splices)?;
            }
            (None, None) => {
                if group.iter().any(|(_, change)| *change != FieldChange::Remove) {
                    appended.push((name, change_fields("{}", &group)?));
                }
            }
        }
    }
    remove(&members, &removed, splices);
    append(&members, &removed, inside, &appended, splices);
    Ok(())
}

/// Takes fields out, each with one of the commas beside it.
fn remove(members: &[Member<'_>], removed: &[bool], splices: &mut Vec<Splice>) {
    let mut any_kept = false;
    for (n, member) in members.iter().enumerate() {
        if !removed[n] {
            any_kept = true;
            continue;
        }
        let range = match (any_kept, members.get(n + 1)) {
            (true, _) => members[n - 1].value.end..member.value.end,
            (false, Some(next)) => member.key_start..next.key_start,
            (false, None) => member.key_start..member.value.end,
        };
        splices.push(Splice { range, text: String::new() });
    }
}

/// Puts fields behind the last one.
fn append(
    members: &[Member<'_>],
    removed: &[bool],
    inside: usize,
    fields: &[(&str, String)],
    splices: &mut Vec<Splice>,
) {
    if fields.is_empty() {
        return;
    }
    let mut text = String::new();
    for (name, json) in fields {
        if !text.is_empty() || removed.contains(&false) {
            text.push(',');
        }
        write_json_string(name, &mut text);
        text.push(':');
        text.push_str(json);
    }
    let end = members.last().map_or(inside, |member| member.value.end);
    splices.push(Splice { range: end..end, text });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::{Object, Value};
    use proptest::prelude::*;

    #[track_caller]
    fn check(record: &str, edits: &[FieldEdit<'_>], expected: &str) {
        assert_eq!(change_fields(record, edits).as_deref(), Ok(expected));
        assert_eq!(change_bytes(record.as_bytes(), edits).as_deref(), Ok(expected.as_bytes()));
    }

    const SET: FieldChange<'_> = FieldChange::Set("7");

    #[test]
    fn an_existing_field_changes_at_its_place() {
        check(r#"{"a":1.0,"b":[1, 2],"c":"\u0041"}"#, &[(&["b"], SET)], r#"{"a":1.0,"b":7,"c":"\u0041"}"#);
        check("{ \"b\" : {} ,\r\"c\":1 }\r", &[(&["b"], SET)], "{ \"b\" : 7 ,\r\"c\":1 }\r");
        check(r#"{"\u0062":1}"#, &[(&["b"], SET)], r#"{"\u0062":7}"#);
    }

    #[test]
    fn the_last_of_repeated_keys_is_the_one_that_counts() {
        check(r#"{"b":1,"a":2,"b":3}"#, &[(&["b"], SET)], r#"{"b":1,"a":2,"b":7}"#);
        check(
            r#"{"m":{"b":1},"m":{"b":2}}"#,
            &[(&["m", "b"], SET), (&["m", "c"], SET)],
            r#"{"m":{"b":1},"m":{"b":7,"c":7}}"#,
        );
    }

    #[test]
    fn a_missing_field_comes_last() {
        check("{}", &[(&["b"], SET)], r#"{"b":7}"#);
        check(" { } ", &[(&["b"], SET)], r#" {"b":7 } "#);
        check(r#"{"a":1 }"#, &[(&["b"], SET), (&["c"], SET)], r#"{"a":1,"b":7,"c":7 }"#);
        check("{}", &[(&["m", "n", "b"], SET), (&["m", "c"], SET)], r#"{"m":{"n":{"b":7},"c":7}}"#);
        check(r#"{"a":1}"#, &[(&["quo\"te"], SET)], r#"{"a":1,"quo\"te":7}"#);
    }

    #[test]
    fn a_tool_result_is_blanked_in_one_pass() {
        let record = r#"{"type":"message","message":{"role":"toolResult","content":[{"type":"text","text":"x"}],"isError":false},"id":"1"}"#;
        assert_eq!(
            set_fields(record, &[(&["message", "content"], "[]"), (&["message", "prunedAt"], "5")])
                .as_deref(),
            Ok(
                r#"{"type":"message","message":{"role":"toolResult","content":[],"isError":false,"prunedAt":5},"id":"1"}"#
            )
        );
    }

    #[test]
    fn removed_fields_take_one_comma_with_them() {
        const GONE: FieldChange<'_> = FieldChange::Remove;
        check(r#"{"a":1,"b":2,"c":3}"#, &[(&["a"], GONE)], r#"{"b":2,"c":3}"#);
        check(r#"{"a":1,"b":2,"c":3}"#, &[(&["b"], GONE)], r#"{"a":1,"c":3}"#);
        check(r#"{"a":1,"b":2,"c":3}"#, &[(&["b"], GONE), (&["c"], GONE)], r#"{"a":1}"#);
        check(r#"{"a":1,"b":2,"a":3}"#, &[(&["a"], GONE)], r#"{"b":2}"#);
        check(r#"{"a":1,"b":2}"#, &[(&["a"], GONE), (&["b"], GONE), (&["c"], SET)], r#"{"c":7}"#);
        check(r#"{ "a" : 1 }"#, &[(&["a"], GONE)], "{  }");
        check(r#"{"a":1}"#, &[(&["b"], GONE), (&["m", "b"], GONE)], r#"{"a":1}"#);
    }

    #[test]
    fn what_cannot_be_changed_is_an_error() {
        assert_eq!(set_field("[1]", &["a"], "1"), Err(EditError::NotJson { at: 0 }));
        assert_eq!(set_field(r#"{"a":1"#, &["a"], "1"), Err(EditError::NotJson { at: 6 }));
        assert_eq!(
            set_field(r#"{"m":[]}"#, &["m", "b"], "1"),
            Err(EditError::NotAnObject { field: "m".to_owned() })
        );
    }

    #[test]
    fn bytes_that_are_no_text_stay() {
        let changed = change_bytes(b"{\"\xFF\":\"\xFE\xFE\",\"b\":1,\"c\":\"\xF0\x9F\"}", &[(&["b"], SET)]);
        assert_eq!(changed.as_deref(), Ok(&b"{\"\xFF\":\"\xFE\xFE\",\"b\":7,\"c\":\"\xF0\x9F\"}"[..]));
    }

    fn json() -> impl Strategy<Value = String> {
        let leaf = prop_oneof![
            Just("null".to_owned()),
            Just("1.0".to_owned()),
            Just("-0".to_owned()),
            Just(r#""a\"}{\u00e9""#.to_owned()),
            Just("[ 1 , 2 ]".to_owned()),
        ];
        leaf.prop_recursive(3, 24, 5, |inner| {
            prop::collection::vec(
                (prop::sample::select(vec!["a", "b", "c", "\\u0061"]), inner, "[ \r\t]?"),
                0..5,
            )
            .prop_map(|fields| {
                let fields: Vec<String> = fields
                    .iter()
                    .map(|(key, value, space)| format!("{space}\"{key}\"{space}:{value}{space}"))
                    .collect();
                format!("{{{}}}", fields.join(","))
            })
        })
    }

    fn set<'a>(value: &Value<'a>, path: &[&'a str], new: Value<'a>) -> Option<Value<'a>> {
        let Value::Object(object) = value else { return None };
        let mut object = object.clone();
        let inner = match path {
            [_] => new,
            [name, rest @ ..] => {
                let empty = Value::Object(Object::new());
                set(object.get(name).unwrap_or(&empty), rest, new)?
            }
            [] => return None,
        };
        object.set(path[0], inner);
        Some(Value::Object(object))
    }

    proptest! {
        #[test]
        fn only_the_field_changes(
            record in json(),
            path in prop::collection::vec(prop::sample::select(vec!["a", "b", "z"]), 1..4),
        ) {
            let old = Value::parse(&record).expect("valid JSON");
            let expected = set(&old, &path, Value::from("new"));
            let changed = set_field(&record, &path, "\"new\"");
            prop_assert_eq!(changed.is_ok(), expected.is_some());
            if let (Ok(changed), Some(expected)) = (changed, expected) {
                prop_assert_eq!(Value::parse(&changed).expect("valid JSON"), expected);
                // What surrounds the new value is the old text: a start and an end of it.
                let at = changed.rfind("\"new\"").expect("the value is there");
                let before = changed[..at].bytes().zip(record.bytes()).take_while(|(new, old)| new == old).count();
                let after = changed[at + 5..].bytes().rev().zip(record.bytes().rev()).take_while(|(new, old)| new == old).count();
                let added = changed.len() - before.min(at) - after;
                let names: usize = path.iter().map(|name| name.len() + 5).sum();
                prop_assert!(added <= names + 8, "{} → {}", record, changed);
                prop_assert_eq!(set_field(&changed, &path, "\"new\""), Ok(changed.clone()));
            }
        }

        #[test]
        fn a_removed_field_is_gone(record in json(), name in prop::sample::select(vec!["a", "b"])) {
            let Value::Object(mut expected) = Value::parse(&record).expect("valid JSON") else { return Ok(()) };
            expected.remove(name);
            let changed = change_fields(&record, &[(&[name], FieldChange::Remove)]).expect("an object");
            prop_assert_eq!(Value::parse(&changed).expect("valid JSON"), Value::Object(expected));
        }
    }
}

//! A JSON value whose strings and numbers stay as the file spells them, printed as JavaScript would print it.

use std::borrow::Cow;
use std::cell::RefCell;

use crate::marks::Marks;
use crate::scan::{ScanError, Walker};
use crate::strings::Strings;
use crate::text::{Str, index_key, js_number};

/// Levels that are built; what lies deeper is kept as text, so that neither building nor dropping a value can exhaust the stack.
const MAX_DEPTH: usize = 128;

/// Texts are marked from this length on; the marks of shorter ones cost more than they save.
const MARKED: usize = 512;

thread_local! {
    /// For texts that are no part of a marked one.
    static MARKS: RefCell<Marks> = RefCell::default();
}

/// A JSON value, borrowed from the text that it was read from.
#[derive(Clone, Debug, PartialEq)]
pub enum Value<'a> {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number.
    Number(f64),
    /// A string.
    String(Str<'a>),
    /// An array.
    Array(Vec<Value<'a>>),
    /// An object.
    Object(Object<'a>),
    /// A value more than 128 levels deep, as its JSON text.
    Deep(Cow<'a, str>),
}

/// An object in the order of the file. Of repeated keys the last value wins, at the first one's place, as in JavaScript.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Object<'a>(Vec<(Str<'a>, Value<'a>)>);

impl<'a> Value<'a> {
    /// Builds the value of a whole JSON text.
    ///
    /// # Errors
    /// The first byte that is not JSON.
    pub fn parse(text: &'a str) -> Result<Value<'a>, ScanError> {
        if text.len() < MARKED {
            return whole(Walker::new(text));
        }
        MARKS.with_borrow_mut(|marks| {
            marks.take(text);
            let value = whole(Walker::marked(text, 0, marks, 0));
            // One huge text must not be paid for until the end.
            marks.shrink(1 << 20);
            value
        })
    }

    /// The field `key` of an object.
    pub fn get(&self, key: &str) -> Option<&Value<'a>> {
        match self {
            Value::Object(object) => object.get(key),
            _ => None,
        }
    }

    /// The text of a string; a lone surrogate becomes U+FFFD.
    pub fn as_str(&self) -> Option<Cow<'_, str>> {
        self.as_string().map(Str::text)
    }

    /// A string as it stands.
    pub fn as_string(&self) -> Option<&Str<'a>> {
        match self {
            Value::String(string) => Some(string),
            _ => None,
        }
    }

    /// A number.
    pub fn as_number(&self) -> Option<f64> {
        match self {
            Value::Number(number) => Some(*number),
            _ => None,
        }
    }

    /// A truth value.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Value::Bool(truth) => Some(*truth),
            _ => None,
        }
    }

    /// The items of an array; none for anything else.
    pub fn items(&self) -> &[Value<'a>] {
        match self {
            Value::Array(items) => items,
            _ => &[],
        }
    }

    /// An object.
    pub fn as_object(&self) -> Option<&Object<'a>> {
        match self {
            Value::Object(object) => Some(object),
            _ => None,
        }
    }

    /// Whether this is `null`.
    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    /// The string field `key`, as text.
    pub fn text(&self, key: &str) -> Option<Cow<'_, str>> {
        self.get(key).and_then(Value::as_str)
    }

    /// Appends the value as `JSON.stringify` prints it: no white space, integer-like keys first, JavaScript's numbers.
    pub fn write_json(&self, out: &mut String) {
        match self {
            Value::Null => out.push_str("null"),
            Value::Bool(truth) => out.push_str(if *truth { "true" } else { "false" }),
            Value::Number(number) => out.push_str(&js_number(*number)),
            Value::String(string) => string.write_json(out),
            Value::Array(items) => {
                out.push('[');
                for (n, item) in items.iter().enumerate() {
                    if n > 0 {
                        out.push(',');
                    }
                    item.write_json(out);
                }
                out.push(']');
            }
            Value::Object(object) => object.write_json(out),
            Value::Deep(text) => out.push_str(text),
        }
    }

    /// The value as `JSON.stringify` prints it.
    pub fn to_json(&self) -> String {
        let mut out = String::new();
        self.write_json(&mut out);
        out
    }

    /// The same value with no borrow.
    pub fn into_owned(self) -> Value<'static> {
        match self {
            Value::Null => Value::Null,
            Value::Bool(truth) => Value::Bool(truth),
            Value::Number(number) => Value::Number(number),
            Value::String(string) => Value::String(string.into_owned()),
            Value::Array(items) => Value::Array(items.into_iter().map(Value::into_owned).collect()),
            Value::Object(object) => Value::Object(Object(
                object.0.into_iter().map(|(key, value)| (key.into_owned(), value.into_owned())).collect(),
            )),
            Value::Deep(text) => Value::Deep(Cow::Owned(text.into_owned())),
        }
    }
}

impl<'a> Object<'a> {
    /// An object without fields.
    pub fn new() -> Self {
        Object::default()
    }

    /// The value of `key`.
    pub fn get(&self, key: &str) -> Option<&Value<'a>> {
        self.0.iter().find(|(name, _)| name.is(key)).map(|(_, value)| value)
    }

    /// Sets `key`, at its old place if it is there already.
    pub fn set(&mut self, key: impl Into<Str<'a>>, value: impl Into<Value<'a>>) {
        let (key, value) = (key.into(), value.into());
        match self.0.iter_mut().find(|(name, _)| *name == key) {
            Some((_, old)) => *old = value,
            None => self.0.push((key, value)),
        }
    }

    /// Sets `key` unless there is no value.
    pub fn set_some(&mut self, key: &'a str, value: Option<impl Into<Value<'a>>>) {
        if let Some(value) = value {
            self.set(key, value);
        }
    }

    /// Takes `key` out.
    pub fn remove(&mut self, key: &str) -> Option<Value<'a>> {
        let at = self.0.iter().position(|(name, _)| name.is(key))?;
        Some(self.0.remove(at).1)
    }

    /// Keys and values in the order of the file.
    pub fn iter(&self) -> impl Iterator<Item = (&Str<'a>, &Value<'a>)> {
        self.0.iter().map(|(key, value)| (key, value))
    }

    /// Keys and values in the order in which JavaScript lists them: integer-like keys first.
    pub fn js_order(&self) -> Vec<(&Str<'a>, &Value<'a>)> {
        let mut fields: Vec<_> = self.iter().collect();
        if fields.iter().any(|(key, _)| index_key(&key.text()).is_some()) {
            // The sort is stable, and `None` of the others must come last.
            fields.sort_by_key(|(key, _)| index_key(&key.text()).map_or(u64::MAX, u64::from));
        }
        fields
    }

    /// Number of fields.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no field.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn write_json(&self, out: &mut String) {
        out.push('{');
        for (n, (key, value)) in self.js_order().into_iter().enumerate() {
            if n > 0 {
                out.push(',');
            }
            key.write_json(out);
            out.push(':');
            value.write_json(out);
        }
        out.push('}');
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Value::String(Str::from(text))
    }
}

impl From<String> for Value<'_> {
    fn from(text: String) -> Self {
        Value::String(Str::from(text))
    }
}

impl<'a> From<Cow<'a, str>> for Value<'a> {
    fn from(text: Cow<'a, str>) -> Self {
        Value::String(Str::Text(text))
    }
}

impl From<f64> for Value<'_> {
    fn from(number: f64) -> Self {
        Value::Number(number)
    }
}

impl From<bool> for Value<'_> {
    fn from(truth: bool) -> Self {
        Value::Bool(truth)
    }
}

impl<'a> From<Vec<Value<'a>>> for Value<'a> {
    fn from(items: Vec<Value<'a>>) -> Self {
        Value::Array(items)
    }
}

impl<'a> From<Object<'a>> for Value<'a> {
    fn from(object: Object<'a>) -> Self {
        Value::Object(object)
    }
}

impl<'a> FromIterator<(Str<'a>, Value<'a>)> for Object<'a> {
    fn from_iter<I: IntoIterator<Item = (Str<'a>, Value<'a>)>>(fields: I) -> Self {
        let mut object = Object::new();
        fields.into_iter().for_each(|(key, value)| object.set(key, value));
        object
    }
}

/// The value that is all of the walker's text.
fn whole<'a, S: Strings>(mut walker: Walker<'a, S>) -> Result<Value<'a>, ScanError> {
    let value = build(&mut walker, 0)?;
    if walker.peek() != 0 || walker.position() < walker.text.len() {
        return Err(ScanError { at: walker.position() });
    }
    Ok(value)
}

fn build<'a, S: Strings>(walker: &mut Walker<'a, S>, depth: usize) -> Result<Value<'a>, ScanError> {
    let byte = walker.peek();
    if depth > MAX_DEPTH {
        let (start, end) = walker.skip()?;
        return Ok(Value::Deep(Cow::Borrowed(walker.slice(start, end))));
    }
    match byte {
        b'{' => {
            let mut fields: Vec<(Str<'a>, Value<'a>)> = Vec::new();
            walker.object(|walker, key| {
                let value = build(walker, depth + 1)?;
                fields.push((Str::Raw(key), value));
                Ok(())
            })?;
            Ok(Value::Object(unique(fields)))
        }
        b'[' => {
            let mut items = Vec::new();
            walker.array(|walker| {
                items.push(build(walker, depth + 1)?);
                Ok(())
            })?;
            Ok(Value::Array(items))
        }
        b'"' => {
            let scan = walker.string()?;
            Ok(Value::String(Str::Raw(walker.raw(&scan))))
        }
        _ => {
            let (start, end) = walker.skip()?;
            Ok(match walker.slice(start, end) {
                "null" => Value::Null,
                "true" => Value::Bool(true),
                "false" => Value::Bool(false),
                // Rust reads what overflows as infinity, as JavaScript does.
                number => Value::Number(number.parse().unwrap_or(f64::NAN)),
            })
        }
    }
}

/// Drops all but the last value of each key.
fn unique<'a>(fields: Vec<(Str<'a>, Value<'a>)>) -> Object<'a> {
    if fields.len() <= 16 {
        let is_repeated = |n: usize| fields[..n].iter().any(|(key, _)| *key == fields[n].0);
        let repeats = (1..fields.len()).any(is_repeated);
        return if repeats { fields.into_iter().collect() } else { Object(fields) };
    }
    // Wide objects would make the pairwise search quadratic.
    let mut seen = std::collections::HashMap::new();
    let mut kept: Vec<(Str<'a>, Value<'a>)> = Vec::with_capacity(fields.len());
    for (key, value) in fields {
        match seen.entry(key.text().into_owned()) {
            std::collections::hash_map::Entry::Occupied(place) => {
                let at: usize = *place.get();
                kept[at].1 = value;
            }
            std::collections::hash_map::Entry::Vacant(place) => {
                place.insert(kept.len());
                kept.push((key, value));
            }
        }
    }
    Object(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(json: &str, printed: &str) {
        assert_eq!(Value::parse(json).expect("valid JSON").to_json(), printed);
    }

    #[test]
    fn prints_as_javascript_does() {
        check(
            r#" { "b" : 1.0 , "a" : [ -0, 1e400, 12345678901234567890 ] } "#,
            r#"{"b":1,"a":[0,null,12345678901234567000]}"#,
        );
        check(r#"{"b":1,"10":2,"2":3,"01":4}"#, r#"{"2":3,"10":2,"b":1,"01":4}"#);
        check(r#"{"a":1,"b":2,"a":3}"#, r#"{"a":3,"b":2}"#);
        check(r#""\u00e9\/\ud83d""#, r#""é/\ud83d""#);
    }

    #[test]
    fn wide_objects_keep_the_last_of_repeated_keys() {
        let fields: Vec<String> = (0..40).map(|n| format!("\"k{}\":{n}", n % 20)).collect();
        let json = format!("{{{}}}", fields.join(","));
        let value = Value::parse(&json).expect("valid JSON");
        assert_eq!(value.as_object().map(Object::len), Some(20));
        assert_eq!(value.get("k3").and_then(Value::as_number), Some(23.0));
    }

    #[test]
    fn deep_values_are_kept_as_text() {
        let json = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        check(&json, &json);
    }
}

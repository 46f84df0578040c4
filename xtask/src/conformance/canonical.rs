//! JSON values as text that can be compared: keys in one order, strings as they are shown, and where two texts part.

use session_model::value::Value;

/// The value with its keys sorted and lone surrogates as U+FFFD.
pub(crate) fn canonical(value: &Value<'_>) -> String {
    let mut out = String::new();
    write(value, &mut out);
    out
}

/// Canonical values, one a line.
pub(crate) fn lines<'v, 'a: 'v>(values: impl IntoIterator<Item = &'v Value<'a>>) -> String {
    let mut out = String::new();
    for value in values {
        write(value, &mut out);
        out.push('\n');
    }
    out
}

fn write(value: &Value<'_>, out: &mut String) {
    match value {
        Value::String(text) => Value::from(text.text()).write_json(out),
        Value::Array(items) => {
            out.push('[');
            for (n, item) in items.iter().enumerate() {
                if n > 0 {
                    out.push(',');
                }
                write(item, out);
            }
            out.push(']');
        }
        Value::Object(object) => {
            let mut fields: Vec<_> = object.iter().map(|(key, value)| (key.text(), value)).collect();
            fields.sort_by(|(left, _), (right, _)| left.cmp(right));
            out.push('{');
            for (n, (key, value)) in fields.into_iter().enumerate() {
                if n > 0 {
                    out.push(',');
                }
                Value::from(key).write_json(out);
                out.push(':');
                write(value, out);
            }
            out.push('}');
        }
        other => other.write_json(out),
    }
}

/// Both texts around the place where they part.
pub(crate) fn first_difference(ours: &str, theirs: &str) -> String {
    const BEFORE: usize = 80;
    const BEHIND: usize = 120;
    let (ours, theirs): (Vec<char>, Vec<char>) = (ours.chars().collect(), theirs.chars().collect());
    let at = ours.iter().zip(&theirs).take_while(|(left, right)| left == right).count();
    let part = |text: &[char]| -> String {
        text[at.saturating_sub(BEFORE)..text.len().min(at + BEHIND)].iter().collect()
    };
    format!("at character {at}\n      ours   {:?}\n      theirs {:?}", part(&ours), part(&theirs))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_keys_does_not_matter_and_that_of_items_does() {
        let form = |json: &str| canonical(&Value::parse(json).expect("valid JSON"));
        assert_eq!(
            form(r#"{"b":[1,{"d":2,"c":"x"}],"a":1.0}"#),
            form(r#"{"a":1,"b":[1.0,{"c":"\u0078","d":2}]}"#)
        );
        assert_ne!(form("[1,2]"), form("[2,1]"));
        assert_eq!(form(r#""\ud83d""#), "\"\u{fffd}\"");
    }

    #[test]
    fn a_difference_is_shown_with_what_is_around_it() {
        assert_eq!(
            first_difference("abc", "abd"),
            "at character 2\n      ours   \"abc\"\n      theirs \"abd\""
        );
        assert_eq!(
            first_difference("ab", "abd"),
            "at character 2\n      ours   \"ab\"\n      theirs \"abd\""
        );
    }
}

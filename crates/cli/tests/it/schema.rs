//! `schema`: what `--json` prints is what the schema says.

use serde_json::Value;

use crate::support::{TestEnv, session};

/// Checks objects, lists and references; the primitive types are the compiler's business.
#[track_caller]
fn check(root: &Value, schema: &Value, value: &Value, place: &str) {
    let schema = match schema["$ref"].as_str() {
        Some(reference) => {
            let name = reference.strip_prefix("#/$defs/").expect("a local reference");
            &root["$defs"][name]
        }
        None => schema,
    };
    assert!(!schema.is_null(), "{place}: the schema has no such field");
    let keys = ["type", "properties", "anyOf", "oneOf", "enum", "const"];
    if schema == &Value::Bool(true) || keys.iter().all(|key| schema[key].is_null()) {
        // Anything is allowed here.
        return;
    }
    if let Some(choices) = schema["anyOf"].as_array() {
        let of_kind = |choice: &&Value| (choice["type"] == "null") == value.is_null();
        let choice = choices.iter().find(of_kind).unwrap_or_else(|| panic!("{place}: no alternative fits"));
        return check(root, choice, value, place);
    }
    match value {
        Value::Object(fields) => {
            for required in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
                assert!(fields.contains_key(required), "{place}: {required} is missing");
            }
            for (name, value) in fields {
                let inner = match &schema["properties"][name] {
                    Value::Null => &schema["additionalProperties"],
                    property => property,
                };
                check(root, inner, value, &format!("{place}.{name}"));
            }
        }
        Value::Array(items) => {
            for item in items {
                check(root, &schema["items"], item, &format!("{place}[]"));
            }
        }
        _ => {}
    }
}

#[test]
fn records_are_as_their_schema_says() {
    let env = TestEnv::new();
    env.write("a.jsonl", session("a") + "junk\n");
    let schemas = env.run(["schema"]);
    assert_eq!(schemas.quiet_status(), Some(0));
    let schemas: Value = serde_json::from_str(&schemas.stdout).expect("JSON");
    for (command, args) in [
        ("inspect", &["--json", "--tree", "a.jsonl", "missing.jsonl"][..]),
        ("models", &["--json"]),
        ("settings", &["--json"]),
        ("undo", &["--json", "a.jsonl"]),
    ] {
        let records = env.run([command].iter().chain(args)).json();
        assert!(!records.is_empty(), "{command}");
        for record in &records {
            check(&schemas[command], &schemas[command], record, command);
        }
        let one = env.run(["schema", command]);
        assert_eq!(serde_json::from_str::<Value>(&one.stdout).expect("JSON"), schemas[command]);
    }
}

#[test]
fn a_command_without_records_has_no_schema() {
    let env = TestEnv::new();
    let ran = env.run(["schema", "man"]);
    assert_eq!((ran.status, &*ran.stdout), (Some(2), ""));
    assert!(ran.stderr.contains("\nhint: there are "), "{}", ran.stderr);
}

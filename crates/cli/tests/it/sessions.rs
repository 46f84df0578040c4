//! Sessions of some length, for tests of the commands that work on them.

use std::fmt::Write as _;

/// A session of oh-my-pi with `turns` turns of about 1000 tokens: a request, a call of a file tool, its result, an answer.
pub(crate) fn omp(id: &str, turns: usize) -> String {
    let head = format!(
        r#"{{"type":"session","version":3,"id":"{id}","timestamp":"2026-01-02T03:00:00.000Z","cwd":"/project","title":"Work on {id}"}}"#
    );
    let model = r#"{"type":"model_change","id":"m0","parentId":null,"timestamp":"2026-01-02T03:00:00.000Z","model":"anthropic/claude-sonnet-4-5"}"#;
    let mut file = format!("{head}\n{model}\n");
    append_turns(&mut file, "m0", 0, turns);
    file
}

/// The same of pi.
pub(crate) fn pi(id: &str, turns: usize) -> String {
    let head = format!(
        r#"{{"type":"session","version":3,"id":"{id}","timestamp":"2026-01-02T03:00:00.000Z","cwd":"/project"}}"#
    );
    let model = r#"{"type":"model_change","id":"m0","parentId":null,"timestamp":"2026-01-02T03:00:00.000Z","provider":"anthropic","modelId":"claude-sonnet-4-5"}"#;
    let mut file = format!("{head}\n{model}\n");
    append_turns(&mut file, "m0", 0, turns);
    file
}

/// Appends turns behind the entry `parent`; the first has the number `from`.
pub(crate) fn append_turns(file: &mut String, parent: &str, from: usize, turns: usize) {
    let mut parent = parent.to_owned();
    for n in from..from + turns {
        let words = format!("step {n} of the parser in src/part_{n}.rs; ").repeat(30);
        let time = |second: usize| format!("2026-01-02T{:02}:{:02}:{second:02}.000Z", 4 + n / 60, n % 60);
        let mut entry = |id: &str, second: usize, message: String| {
            let _ = writeln!(
                file,
                r#"{{"type":"message","id":"{id}{n}","parentId":"{parent}","timestamp":"{}","message":{message}}}"#,
                time(second)
            );
            parent = format!("{id}{n}");
        };
        entry("u", 1, format!(r#"{{"role":"user","content":"Please do {words}"}}"#));
        entry(
            "a",
            2,
            format!(
                r#"{{"role":"assistant","content":[{{"type":"text","text":"Reading."}},{{"type":"toolCall","id":"call_{n}","name":"edit","arguments":{{"path":"src/part_{n}.rs"}}}}],"provider":"anthropic","model":"claude-sonnet-4-5","stopReason":"toolUse"}}"#
            ),
        );
        entry(
            "r",
            3,
            format!(
                r#"{{"role":"toolResult","toolCallId":"call_{n}","toolName":"edit","content":[{{"type":"text","text":"{words}"}}],"isError":false}}"#
            ),
        );
        entry(
            "b",
            4,
            format!(
                r#"{{"role":"assistant","content":[{{"type":"text","text":"Done with {words}"}}],"provider":"anthropic","model":"claude-sonnet-4-5","stopReason":"stop"}}"#
            ),
        );
    }
}

/// The id of the last entry.
pub(crate) fn last_id(file: &str) -> String {
    let last = file.lines().rfind(|line| !line.is_empty()).expect("a line");
    let value: serde_json::Value = serde_json::from_str(last).expect("JSON");
    value["id"].as_str().expect("an id").to_owned()
}

/// One more entry behind the last one.
pub(crate) fn with_entry(file: &str, id: &str, kind: &str, fields: &str) -> String {
    let parent = last_id(file);
    format!(
        "{file}{{\"type\":\"{kind}\",\"id\":\"{id}\",\"parentId\":\"{parent}\",\"timestamp\":\"2026-02-01T00:00:00.000Z\",{fields}}}\n"
    )
}

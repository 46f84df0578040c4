//! What one would write without sesstool: reads a session with `serde_json`, follows the parents from the last entry and estimates
//! the tokens of its messages.

use std::collections::HashMap;

use serde_json::Value;

#[expect(clippy::disallowed_methods, reason = "a program that is compared with, not a part of sesstool")]
fn main() {
    let path = std::env::args().nth(1).unwrap_or_default();
    let Ok(text) = std::fs::read_to_string(path) else { return };
    let entries: Vec<Value> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let by_id: HashMap<&str, &Value> =
        entries.iter().filter_map(|entry| Some((entry["id"].as_str()?, entry))).collect();
    let mut tokens = 0;
    let mut at = entries.last();
    while let Some(entry) = at {
        tokens += estimate(&entry["message"]).div_ceil(4);
        at = entry["parentId"].as_str().and_then(|parent| by_id.get(parent)).copied();
    }
    println!("{tokens}");
}

fn estimate(message: &Value) -> usize {
    let units = |text: &Value| text.as_str().map_or(0, |text| text.encode_utf16().count());
    let blocks = message["content"].as_array().map_or(&[][..], Vec::as_slice);
    let of_block = |block: &Value| match block["type"].as_str() {
        Some("text") => units(&block["text"]),
        Some("thinking") => units(&block["thinking"]),
        Some("toolCall") => units(&block["name"]) + block["arguments"].to_string().encode_utf16().count(),
        Some("image") => 4800,
        _ => 0,
    };
    units(&message["content"]) + blocks.iter().map(of_block).sum::<usize>()
}

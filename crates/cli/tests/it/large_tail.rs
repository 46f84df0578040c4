//! A kept tail that alone is larger than the model's window (spec 3.4).

use crate::sessions::{last_id, omp, with_entry};
use crate::support::TestEnv;

#[test]
fn is_compacted_as_far_as_it_goes_and_its_largest_entry_is_named() {
    let env = TestEnv::new();
    let old = omp("one", 30);
    let large = format!("\"message\":{{\"role\":\"user\",\"content\":\"{}\"}}", "x".repeat(4 * 30_000));
    let old = with_entry(&old, "large", "message", &large);
    assert_eq!(last_id(&old), "large");
    env.write("a.jsonl", &old);
    let ran = env.run(["compact", "--context-window", "24000", "a.jsonl"]);
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    let said =
        "the kept messages have 30 000 tokens, the window 24 000; the largest is entry large with 30 000";
    assert!(ran.stdout.contains(said), "{}", ran.stdout);
    let new = env.read("a.jsonl");
    assert!(
        new.starts_with(&old) && new.contains("\"firstKeptEntryId\":\"large\""),
        "a compaction was appended"
    );
}

//! `inspect`: the facts, the table, the tree, and text that a terminal must not obey.

use serde_json::json;

use crate::support::{TestEnv, session};

fn line(id: &str, parent: &str, rest: &str) -> String {
    let parent = if parent.is_empty() { "null".to_owned() } else { format!("\"{parent}\"") };
    let second = id.bytes().map(u64::from).sum::<u64>() % 60;
    format!(
        "{{\"id\":\"{id}\",\"parentId\":{parent},\"timestamp\":\"2026-01-02T03:04:{second:02}.000Z\",{rest}}}\n"
    )
}

fn user(id: &str, parent: &str, text: &str) -> String {
    line(id, parent, &format!(r#""type":"message","message":{{"role":"user","content":{}}}"#, json!(text)))
}

fn header() -> String {
    "{\"type\":\"session\",\"version\":3,\"id\":\"s\"}\n".to_owned()
}

#[test]
fn one_session_is_shown_in_depth() {
    let env = TestEnv::new();
    env.write("a.jsonl", session("the-id"));
    let ran = env.run(["inspect", "a.jsonl"]);
    assert_eq!(ran.quiet_status(), Some(0));
    let expected = "\
session    the-id
directory  /project
agent      pi, version 3
began      2026-01-02T03:04:05.000Z
newest     2026-01-02T03:04:09.000Z
file       1.4 kB, 6 lines, 5 entries
entries    4 message, 1 model_change

messages    number  tokens  bytes
user             1       4  149 B
assistant        2      12  737 B
toolResult       1       4  236 B

tools  calls  results  errors  pruned  tokens  bytes
bash       1        1       0       0       4  236 B

models                       answers  failed  input  cached  cache write  output
anthropic/claude-sonnet-4-5        2       0    250       0            0      25
";
    assert!(ran.stdout.starts_with(expected), "{}", ran.stdout);
    let context = "
context    4 messages of 5 entries on the branch, 1.1 kB
tokens     155; 155 measured at 00000005, 20 estimated
model      anthropic/claude-sonnet-4-5; window of 200 000 tokens, 0 % used
compact    nothing to compact: all of it would be kept
";
    assert!(ran.stdout.ends_with(context), "{}", ran.stdout);
}

#[test]
fn json_has_the_same_facts() {
    let env = TestEnv::new();
    env.write("a.jsonl", session("the-id"));
    let ran = env.run(["inspect", "--json", "a.jsonl"]);
    assert_eq!(ran.quiet_status(), Some(0));
    let [record] = &ran.json()[..] else { panic!("one record: {}", ran.stdout) };
    let picked = |name: &str| record[name].clone();
    assert_eq!((picked("file"), picked("status")), (json!("a.jsonl"), json!("done")));
    assert_eq!((picked("entries"), picked("lines"), picked("version")), (json!(5), json!(6), json!(3)));
    assert_eq!(picked("entryTypes"), json!({"message": 4, "model_change": 1}));
    assert_eq!(
        picked("tools"),
        json!([{"tool": "bash", "calls": 1, "results": 1, "errors": 0, "pruned": 0, "tokens": 4, "bytes": 236}])
    );
    assert_eq!(
        picked("leaves"),
        json!([{"id": "00000005", "what": "assistant", "time": "2026-01-02T03:04:09.000Z", "entries": 5, "isDefault": true}])
    );
    assert_eq!((picked("problems"), picked("findings")), (json!([]), json!([])));
}

#[test]
fn several_sessions_are_a_table_that_can_be_sorted() {
    let env = TestEnv::new();
    env.write("b.jsonl", session("b"));
    env.write("a.jsonl", session("a") + &user("00000006", "00000005", &"long ".repeat(1000)));
    env.write("c.jsonl", header());
    let order = |args: &[&str]| {
        let ran = env.run(["inspect", "b.jsonl", "a.jsonl", "c.jsonl"].iter().chain(args));
        assert_eq!(ran.quiet_status(), Some(0));
        let names = ran.stdout.lines().map(|line| line.rsplit(' ').next().unwrap_or_default().to_owned());
        names.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(order(&[]), "file b.jsonl a.jsonl c.jsonl");
    assert_eq!(order(&["-r"]), "file c.jsonl a.jsonl b.jsonl");
    assert_eq!(order(&["--sort", "name"]), "file a.jsonl b.jsonl c.jsonl");
    for key in ["size", "entries", "messages", "tokens"] {
        assert_eq!(order(&["--sort", key]), "file c.jsonl b.jsonl a.jsonl", "{key}");
    }
    assert_eq!(order(&["--sort", "tokens", "-r"]), "file a.jsonl b.jsonl c.jsonl");
    let json = env.run(["inspect", "--json", "--sort", "size", "a.jsonl", "b.jsonl"]);
    assert_eq!(json.fields("file"), ["b.jsonl", "a.jsonl"]);
}

#[test]
fn several_sessions_in_depth_with_full() {
    let env = TestEnv::new();
    env.write("a.jsonl", session("one"));
    env.write("b.jsonl", session("two"));
    let ran = env.run(["inspect", "--full", "a.jsonl", "b.jsonl"]);
    assert_eq!(ran.quiet_status(), Some(0));
    let is_head = |line: &&str| line.starts_with("session ") || line.ends_with(".jsonl");
    let heads: Vec<_> = ran.stdout.lines().filter(is_head).collect();
    assert_eq!(heads, ["a.jsonl", "session    one", "b.jsonl", "session    two"]);
}

#[test]
fn a_leaf_on_a_dead_branch_is_said() {
    let env = TestEnv::new();
    let text = header()
        + &user("a1", "", "root")
        + &user("z9", "a1", "newest")
        + &line("a3", "a1", r#""type":"label","targetId":"a1","label":"here""#);
    env.write("a.jsonl", &text);
    let ran = env.run(["inspect", "a.jsonl"]);
    assert_eq!(ran.quiet_status(), Some(0));
    assert!(
        ran.stdout.contains("note: the newest message is on another branch; for that give --leaf z9\n"),
        "{}",
        ran.stdout
    );
    let leaves: Vec<_> = ran.stdout.lines().filter(|line| line.starts_with(['a', 'z'])).collect();
    assert_eq!(
        leaves[1..],
        [
            "a3 *          2  2026-01-02T03:04:28.000Z  label",
            "z9            2  2026-01-02T03:04:59.000Z  user"
        ]
    );
}

#[test]
fn another_leaf_can_be_looked_at() {
    let env = TestEnv::new();
    env.write(
        "a.jsonl",
        header() + &user("a1", "", "root") + &user("a2", "a1", "one") + &user("b3", "a1", "two"),
    );
    let context = |args: &[&str]| {
        let ran = env.run(["inspect", "--json", "a.jsonl"].iter().chain(args));
        (ran.status, ran.json()[0]["context"]["leaf"].clone())
    };
    assert_eq!(context(&[]), (Some(0), json!("b3")));
    assert_eq!(context(&["--leaf", "a2"]), (Some(0), json!("a2")));
    assert_eq!(context(&["--leaf", "nowhere"]), (Some(1), json!(null)));
}

#[test]
fn problems_and_faults_have_their_lines() {
    let env = TestEnv::new();
    let text = header()
        + &user("a1", "", "root")
        + "junk\n"
        + &line(
            "a2",
            "a1",
            r#""type":"message","message":{"role":"toolResult","toolCallId":"c","content":[]}"#,
        )
        + &user("a3", "nowhere", "lost");
    env.write("a.jsonl", &text);
    let ran = env.run(["inspect", "--json", "a.jsonl"]);
    let [record] = &ran.json()[..] else { panic!("one record") };
    let kinds: Vec<_> = record["problems"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|problem| (problem["kind"].as_str().unwrap_or(""), problem["line"].as_u64()))
        .collect();
    assert_eq!(kinds, [("junk", Some(3)), ("missing_parent", Some(5))]);
    let text = env.run(["inspect", "a.jsonl"]).stdout;
    assert!(text.contains("\nline 3: no JSON object\n"), "{text}");
    let whole = header()
        + &line(
            "a2",
            "",
            r#""type":"message","message":{"role":"toolResult","toolCallId":"c","content":[]}"#,
        );
    env.write("b.jsonl", whole);
    let text = env.run(["inspect", "b.jsonl"]).stdout;
    assert!(
        text.contains("fault: line 2: a tool result without an earlier call (entry a2, call c)\n"),
        "{text}"
    );
}

#[test]
fn the_tree_folds_chains_and_shows_branches_and_labels() {
    let env = TestEnv::new();
    let assistant = |id: &str, parent: &str| {
        line(
            id,
            parent,
            r#""type":"message","message":{"role":"assistant","content":[{"type":"text","text":"1234"}]}"#,
        )
    };
    let text = header()
        + &user("u1", "", "first question")
        + &assistant("b1", "u1")
        + &assistant("b2", "b1")
        + &user("u2", "b2", "one way")
        + &user("u3", "b2", "another way")
        + &line("l1", "u3", r#""type":"label","targetId":"u2","label":"abandoned""#);
    env.write("a.jsonl", text);
    let ran = env.run(["inspect", "--tree", "a.jsonl"]);
    assert_eq!(ran.quiet_status(), Some(0));
    assert_eq!(
        ran.stdout,
        "\
user first question  u1 2026-01-02 03:04
… 1 entry, 1 token
assistant  b2 2026-01-02 03:04
├─user one way [abandoned]  u2 2026-01-02 03:04 ← other leaf
user another way  u3 2026-01-02 03:04
label  l1 2026-01-02 03:04 ← leaf
"
    );
    let nodes = env.run(["inspect", "--tree", "--json", "a.jsonl"]).json()[0]["tree"].clone();
    let ids: Vec<_> = nodes.as_array().expect("a list").iter().map(|node| node["id"].clone()).collect();
    assert_eq!(ids, ["u1", "b1", "b2", "u2", "u3", "l1"]);
    assert_eq!((&nodes[3]["label"], &nodes[3]["parentId"]), (&json!("abandoned"), &json!("b2")));
}

#[test]
fn a_deep_or_wide_or_circular_tree_does_no_harm() {
    let env = TestEnv::new();
    let mut deep = header();
    for number in 0..20_000 {
        let parent = if number == 0 { String::new() } else { format!("m{}", number - 1) };
        deep += &user(&format!("m{number}"), &parent, "x");
        // A second child of each entry, so that every entry is a branch point.
        deep += &user(&format!("s{number}"), &parent, "y");
    }
    deep = deep + &user("c1", "c2", "a") + &user("c2", "c1", "b") + &user("self", "self", "c");
    env.write("deep.jsonl", deep);
    for args in [&["inspect", "--tree", "deep.jsonl"][..], &["inspect", "deep.jsonl"]] {
        let ran = env.run(args);
        assert_eq!(ran.status, Some(0), "{}", ran.stderr);
        assert!(ran.stdout.len() < 10_000_000, "{}", ran.stdout.len());
    }
}

#[test]
fn what_a_session_says_cannot_command_the_terminal() {
    let env = TestEnv::new();
    let evil = "\u{1b}]0;owned\u{7}\u{1b}[2J\u{202e}\r\n\u{9b}31m";
    let j = json!(evil);
    let text = format!(
        "{{\"type\":\"session\",\"version\":3,\"id\":{j},\"cwd\":{j},\"title\":{j},\"timestamp\":{j}}}\n"
    ) + &user("u1", "", evil)
        + &format!(
            "{{\"id\":{j},\"parentId\":\"u1\",\"timestamp\":\"2026-01-02T03:04:05.000Z\",\"type\":\"message\",\"message\":{{\"role\":\"assistant\",\"provider\":{j},\"model\":{j},\"content\":[{{\"type\":\"toolCall\",\"id\":{j},\"name\":{j},\"arguments\":{{}}}}]}}}}\n"
        )
        + &format!(
            "{{\"id\":\"r\",\"parentId\":{j},\"timestamp\":\"2026-01-02T03:04:05.000Z\",\"type\":\"message\",\"message\":{{\"role\":\"toolResult\",\"toolCallId\":\"other\",\"toolName\":{j},\"content\":[]}}}}\n"
        )
        + &format!(
            "{{\"id\":\"l\",\"parentId\":\"r\",\"timestamp\":\"2026-01-02T03:04:05.000Z\",\"type\":\"label\",\"targetId\":\"r\",\"label\":{j}}}\n"
        );
    env.write("a.jsonl", &text);
    env.write("\u{1b}[31m.jsonl", &text);
    env.write("\u{1b}[32m.jsonl", "junk");
    for args in [&["inspect", "a.jsonl"][..], &["inspect", "--tree", "a.jsonl"], &["inspect", "."]] {
        let ran = env.run(args);
        for text in [&ran.stdout, &ran.stderr] {
            let bad = text.chars().find(|it| it.is_control() && *it != '\n' || *it == '\u{202e}');
            assert_eq!(bad, None, "{args:?}: {text}");
        }
    }
}

#[test]
fn damaged_sessions_of_every_shape_are_shown_without_a_fault_of_ours() {
    use session_gen::{Dialect, Shape, damage, generate};
    let env = TestEnv::new();
    for seed in 0..60 {
        let dialect = if seed % 2 == 0 { Dialect::Pi } else { Dialect::Omp };
        let session = generate(seed, &Shape::everything(dialect));
        env.write(&format!("{seed:02}.jsonl"), &session);
        env.write(&format!("{seed:02}-damaged.jsonl"), damage(seed, session.as_bytes()));
    }
    let all = env.run(["inspect", "--json", "--tree", "."]);
    assert_eq!(all.json().len(), 120);
    assert!(!all.stdout.contains("internal error"), "{}", all.stdout);
    // Damage can take away the header, and that alone makes a session none.
    let failures = all.json().into_iter().filter(|record| record["status"] != "done");
    for record in failures {
        let message = record["message"].as_str().unwrap_or_default();
        assert!(message.contains("not a session"), "{message}");
    }
    for args in [&["inspect", "--full", "."][..], &["inspect", "--tree", "."], &["inspect", "."]] {
        let ran = env.run(args);
        assert!(!ran.stderr.contains("internal error"), "{}", ran.stderr);
        let bad = ran.stdout.chars().find(|it| it.is_control() && *it != '\n');
        assert_eq!(bad, None, "{args:?}");
    }
}

#[test]
fn the_dialect_can_be_given() {
    let env = TestEnv::new();
    env.write("a.jsonl", session("a"));
    let dialect =
        |args: &[&str]| env.run(["inspect", "--json", "a.jsonl"].iter().chain(args)).fields("dialect");
    assert_eq!(
        (dialect(&[]), dialect(&["--dialect", "omp"])),
        (vec!["pi".to_owned()], vec!["omp".to_owned()])
    );
}

#[test]
fn tokens_can_be_counted_with_a_real_vocabulary() {
    let env = TestEnv::new();
    env.write("a.jsonl", session("a"));
    let tokens = |args: &[&str]| {
        let ran = env.run(["inspect", "--json", "a.jsonl"].iter().chain(args));
        ran.json()[0]["context"]["estimatedTokens"].as_u64()
    };
    // "What is in src?" is 5 tokens there and ⌈15 / 4⌉ = 4 by estimate; the others differ likewise.
    assert_eq!(tokens(&[]), Some(20));
    assert_eq!(tokens(&["--tokenizer", "cl100k_base"]), tokens(&["--tokenizer", "cl100k"]));
    assert_ne!(tokens(&["--tokenizer", "cl100k_base"]), Some(20));
}

#[test]
fn a_session_without_entries_is_shown() {
    let env = TestEnv::new();
    env.write("a.jsonl", header());
    let ran = env.run(["inspect", "a.jsonl"]);
    assert_eq!(ran.quiet_status(), Some(0));
    assert!(ran.stdout.contains("context    0 messages of 0 entries on the branch, 0 B"), "{}", ran.stdout);
    assert_eq!(env.run(["inspect", "--tree", "a.jsonl"]).quiet_status(), Some(0));
}

#[test]
fn what_the_next_compaction_would_do_follows_the_settings() {
    let env = TestEnv::new();
    env.write_settings(r#"{"compaction":{"keepRecentTokens":1}}"#);
    let text = header() + &user("u1", "", "first") + &user("u2", "u1", "second") + &user("u3", "u2", "third");
    env.write("a.jsonl", &text);
    let ran = env.run(["inspect", "a.jsonl"]);
    assert_eq!(ran.quiet_status(), Some(0));
    let line = "compact    would summarise 2 messages (4 tokens) and keep 1 message (2 tokens) from line 4, entry u3\n";
    assert!(ran.stdout.ends_with(line), "{}", ran.stdout);
    let compaction = line_of_compaction("c1", "u3", "u3");
    env.write("a.jsonl", text + &compaction);
    let ran = env.run(["inspect", "a.jsonl", "--json"]);
    assert_eq!(ran.json()[0]["nextCompaction"]["skipped"], json!("already_compacted"));
    assert_eq!(
        ran.json()[0]["compactions"],
        json!([{"id": "c1", "time": "2026-01-02T03:04:28.000Z", "tokensBefore": 100.0, "summaryTokens": 1,
            "firstKeptEntryId": "u3", "keptEntries": 1, "fromExtension": false}])
    );
    assert_eq!(ran.json()[0]["context"]["messages"], json!(2));
}

fn line_of_compaction(id: &str, parent: &str, kept: &str) -> String {
    let rest =
        format!(r#""type":"compaction","summary":"sum","firstKeptEntryId":"{kept}","tokensBefore":100"#);
    line(id, parent, &rest)
}

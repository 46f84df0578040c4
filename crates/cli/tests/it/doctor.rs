//! `sesstool doctor`: what it says, what it writes, and that the session stays.

use crate::support::{TestEnv, session};

/// A session with a torn record that another is glued to, a lost parent, an orphaned result and a torn tail.
fn broken() -> String {
    let whole = session("s");
    let lines: Vec<&str> = whole.lines().collect();
    let lost = lines[5].replace(r#""parentId":"00000004""#, r#""parentId":"0badf00d""#);
    let orphan =
        lines[4].replace("00000004", "00000006").replace("00000003", "00000005").replace("call_1", "call_9");
    let next = lines[2].replace("00000002", "00000007").replace("00000001", "00000006");
    let torn = &lines[3][..150];
    [lines[0], lines[1], lines[2], &format!("{torn}{}", lines[3]), lines[4], &lost, &orphan, &next, torn]
        .join("\n")
}

#[test]
fn a_healthy_session_gives_0_and_nothing_to_repair() {
    let env = TestEnv::new();
    env.write("a.jsonl", session("s"));
    let ran = env.run(["doctor", "a.jsonl"]);
    assert_eq!((ran.quiet_status(), &*ran.stdout), (Some(0), "a.jsonl: nothing is wrong\n"));
    assert_eq!(env.run(["doctor", "--repair", "a.jsonl"]).quiet_status(), Some(0));
    assert_eq!(env.names(), ["a.jsonl"]);
}

#[test]
fn problems_give_1_and_say_what_they_do_and_what_helps() {
    let env = TestEnv::new();
    env.write("a.jsonl", broken());
    let ran = env.run(["doctor", "a.jsonl"]);
    assert_eq!(ran.status, Some(1));
    insta::assert_snapshot!(ran.stdout, @r#"
    a.jsonl: 3 problems, 1 fault; 3 of 7 entries on the branch
      line 4: a record breaks off in the middle of the line
          effect: the torn record is lost, and the agents do not read the one behind it either
          remedy: --repair puts the torn part aside and gives the other a line of its own
      line 6: the parent entry is not in the file (entry 00000005); 3 entries are unreachable
          effect: the branch begins here: what was before is not in the context
          remedy: --repair joins it to the nearest entry before it
      line 9: the last line breaks off
          effect: the last record is lost; readers skip it
          remedy: --repair puts the torn part aside
      line 7: a tool result without an earlier call (entry 00000006, call call_9)
          effect: a provider refuses the context
          remedy: --repair makes it an entry that the model does not see
    "#);
    assert_eq!(env.names(), ["a.jsonl"]);
    let json = env.run(["doctor", "--json", "a.jsonl"]).json();
    let kinds = |list: &str| -> Vec<String> {
        let list = json[0][list].as_array().expect("a list");
        list.iter().map(|it| format!("{}@{}", it["kind"].as_str().expect("a kind"), it["line"])).collect()
    };
    assert_eq!(kinds("problems"), ["torn_record@4", "missing_parent@6", "torn_tail@9"]);
    assert_eq!(kinds("faults"), ["result_without_call@7"]);
    assert_eq!(json[0]["problems"][1]["unreachable"], 3);
}

#[test]
fn repair_writes_a_copy_that_is_whole_and_leaves_the_session() {
    let env = TestEnv::new();
    env.write("a.jsonl", broken());
    let ran = env.run(["doctor", "--repair", "--json", "a.jsonl"]);
    assert_eq!(ran.quiet_status(), Some(0));
    let repair = &ran.json()[0]["repair"];
    assert_eq!(repair["output"], "a.repaired.jsonl");
    assert_eq!(repair["aside"], "a.repaired.jsonl.torn");
    assert_eq!(repair["left"], serde_json::json!([]));
    assert_eq!(env.read("a.jsonl"), broken());
    assert_eq!(env.names(), ["a.jsonl", "a.repaired.jsonl", "a.repaired.jsonl.torn"]);
    assert_eq!(env.read("a.repaired.jsonl.torn").lines().count(), 2);
    let again = env.run(["doctor", "--repair", "a.repaired.jsonl"]);
    assert_eq!((again.quiet_status(), &*again.stdout), (Some(0), "a.repaired.jsonl: nothing is wrong\n"));
    let context = env.run(["context", "--format", "jsonl", "a.repaired.jsonl"]);
    assert_eq!((context.quiet_status(), context.json().len()), (Some(0), 5));
    // What is there is not overwritten unless that is asked for.
    let refused = env.run(["doctor", "--repair", "a.jsonl"]);
    assert_eq!((refused.status, refused.stderr.lines().count()), (Some(1), 2), "{}", refused.stderr);
    assert!(refused.stderr.contains("the file exists"), "{}", refused.stderr);
    let copy = env.read("a.repaired.jsonl");
    assert_eq!(env.run(["doctor", "--repair", "--force", "a.jsonl"]).quiet_status(), Some(0));
    assert_eq!(env.read("a.repaired.jsonl"), copy);
}

#[test]
fn a_byte_order_mark_is_no_damage_but_pi_stumbles_over_it() {
    let env = TestEnv::new();
    env.write("a.jsonl", format!("\u{FEFF}{}", session("s")));
    let ran = env.run(["doctor", "a.jsonl"]);
    assert_eq!(ran.quiet_status(), Some(0));
    assert!(ran.stdout.contains("note: the file begins with a byte order mark"), "{}", ran.stdout);
    assert_eq!(env.run(["doctor", "--repair", "a.jsonl"]).quiet_status(), Some(0));
    assert_eq!(env.read("a.repaired.jsonl"), session("s"));
}

#[test]
fn the_copy_goes_where_the_user_says_but_never_over_the_session() {
    let env = TestEnv::new();
    env.write("a.jsonl", broken());
    env.write("out/keep", "");
    assert_eq!(env.run(["doctor", "--repair", "-o", "b.jsonl", "a.jsonl"]).quiet_status(), Some(0));
    assert_eq!(env.run(["doctor", "--repair", "--output-dir", "out", "a.jsonl"]).quiet_status(), Some(0));
    assert_eq!(env.read("out/a.jsonl"), env.read("b.jsonl"));
    let over = env.run(["doctor", "--repair", "--force", "-o", "./a.jsonl", "a.jsonl"]);
    assert!(over.stderr.contains("this is the session itself"), "{}", over.stderr);
    assert_eq!(over.status, Some(1));
    let around = env.run(["doctor", "--repair", "--force", "--output-dir", ".", "a.jsonl"]);
    assert_eq!(around.status, Some(1));
    assert_eq!(env.read("a.jsonl"), broken());
    let piped = env.run_with_input(["doctor", "--repair", "-o", "c.jsonl", "-"], broken().as_bytes());
    assert_eq!(piped.quiet_status(), Some(0));
    assert_eq!(env.read("c.jsonl"), env.read("b.jsonl"));
}

#[test]
fn a_file_without_a_header_gets_one_if_it_holds_entries() {
    let env = TestEnv::new();
    let entries = session("s").split_once('\n').expect("a header").1.to_owned();
    env.write("a.jsonl", &entries);
    env.write("other.jsonl", "{\"event\":1}\n");
    let ran = env.run(["doctor", "--json", "a.jsonl"]);
    assert_eq!(ran.status, Some(1));
    assert_eq!(ran.json()[0]["problems"][0]["kind"], "no_header");
    assert_eq!(env.run(["doctor", "--repair", "a.jsonl"]).quiet_status(), Some(0));
    assert!(env.read("a.repaired.jsonl").ends_with(&entries));
    assert_eq!(env.run(["context", "a.repaired.jsonl"]).quiet_status(), Some(0));
    let refused = env.run(["doctor", "--repair", "other.jsonl"]);
    assert_eq!(refused.status, Some(1));
    assert!(refused.stderr.contains("not a session"), "{}", refused.stderr);
    assert_eq!(env.names(), ["a.jsonl", "a.repaired.jsonl", "other.jsonl"]);
}

#[test]
fn names_with_control_characters_and_escapes_in_ids_are_spelled_out() {
    let env = TestEnv::new();
    let file = session("s").replace(r#""parentId":"00000003""#, r#""parentId":"\u001b[2J\u0007""#);
    let file = file.replace("00000004", r"\u001b]0;x\u0007");
    env.write("a\u{1b}[31m.jsonl", file);
    let ran = env.run(["doctor", "."]);
    assert_eq!(ran.status, Some(1));
    assert!(!ran.stdout.contains('\u{1b}') && !ran.stdout.contains('\u{7}'), "{:?}", ran.stdout);
    assert!(ran.stdout.contains(r"a\u{1b}[31m.jsonl"), "{}", ran.stdout);
}

#[test]
fn a_folder_is_walked_and_the_healthy_are_left_out_with_quiet() {
    let env = TestEnv::new();
    env.write("x/a.jsonl", session("a"));
    env.write("x/b.jsonl", broken());
    env.write("x/b.jsonl.bak", "not read");
    let ran = env.run(["doctor", "-q", "x"]);
    assert_eq!(ran.quiet_status(), Some(1));
    assert!(ran.stdout.starts_with("x/b.jsonl: 3 problems, 1 fault"), "{}", ran.stdout);
    assert_eq!(env.run(["doctor", "--json", "x"]).fields("healthy"), ["true", "false"]);
}

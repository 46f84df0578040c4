//! `models`: the table, a search, the providers.

use crate::support::{Ran, TestEnv};

#[test]
fn words_narrow_the_list() {
    let env = TestEnv::new();
    let all = env.run(["models", "--json"]);
    assert_eq!(all.quiet_status(), Some(0));
    assert!(all.json().len() > 100, "{}", all.json().len());
    let found = env.run(["models", "--json", "ANTHROPIC", "sonnet"]);
    let names = found.fields("model");
    assert!(!names.is_empty() && names.len() < all.json().len());
    assert!(names.iter().all(|name| name.contains("anthropic") && name.contains("sonnet")), "{names:?}");
    let none = env.run(["models", "no-such-model"]);
    assert_eq!((none.status, &*none.stdout), (Some(1), ""));
}

#[test]
fn providers_say_whether_their_key_is_set_and_never_the_key() {
    let env = TestEnv::new();
    let mut command = env.command(["models", "--providers"]);
    command.env("OPENAI_API_KEY", "sk-very-secret");
    let ran = Ran::of(command.output().expect("it starts"));
    assert_eq!(ran.quiet_status(), Some(0));
    let keys: Vec<_> = ran
        .stdout
        .lines()
        .filter(|line| line.starts_with("openai ") || line.starts_with("anthropic "))
        .collect();
    assert!(keys[0].ends_with("ANTHROPIC_API_KEY   missing"), "{keys:?}");
    assert!(keys[1].ends_with("OPENAI_API_KEY      set"), "{keys:?}");
    assert!(!ran.stdout.contains("secret"));
}

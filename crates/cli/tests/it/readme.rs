//! The examples of README.md give what it shows. `SESSTOOL_BLESS=1 cargo test readme` writes what they give now.
#![expect(clippy::disallowed_methods, reason = "the test reads and writes the document")]

use std::path::{Path, PathBuf};

use crate::support::{TestEnv, program};

/// The session that the examples work on.
const SESSION: &str = "fixtures/summary-parser/session.jsonl";
/// The time at which everything in them happens.
const EPOCH: &str = "1796000000";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Runs the commands of a block, one after the other, and gives what a terminal would show.
fn run(env: &TestEnv, block: &str) -> String {
    let mut shown = String::new();
    for line in block.lines().filter(|line| line.starts_with("$ ")) {
        shown.push_str(line);
        shown.push('\n');
        let script = format!("exec 2>&1; {}", &line[2..]);
        let folder = program().parent().expect("the program is in a folder").to_owned();
        let path = format!("{}:{}", folder.display(), std::env::var("PATH").expect("a path"));
        let mut command = std::process::Command::new("sh");
        command.args(["-c", &script]).current_dir(env.work()).env_clear().env("HOME", env.home());
        let output = command.env("PATH", path).env("SOURCE_DATE_EPOCH", EPOCH).output().expect("sh starts");
        let text = String::from_utf8(output.stdout).expect("UTF-8");
        shown.push_str(&text.replace(&format!("{}/", env.work().display()), ""));
    }
    shown
}

#[test]
fn every_example_gives_what_the_readme_shows() {
    let file = root().join("README.md");
    let readme = std::fs::read_to_string(&file).expect("README.md");
    let env = TestEnv::new();
    env.write("session.jsonl", std::fs::read(root().join(SESSION)).expect("the session of the examples"));
    let mut made = String::new();
    let mut rest = &readme[..];
    while let Some(start) = rest.find("```console\n") {
        let body = start + "```console\n".len();
        let end = body + rest[body..].find("```").expect("the block ends");
        made.push_str(&rest[..body]);
        made.push_str(&run(&env, &rest[body..end]));
        rest = &rest[end..];
    }
    made.push_str(rest);
    if std::env::var_os("SESSTOOL_BLESS").is_some() {
        std::fs::write(&file, &made).expect("README.md");
    }
    for (n, (made, shown)) in made.lines().zip(readme.lines()).enumerate() {
        assert_eq!(made, shown, "line {}; SESSTOOL_BLESS=1 cargo test readme writes it anew", n + 1);
    }
    assert_eq!(made.len(), readme.len());
}

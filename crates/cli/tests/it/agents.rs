//! Without a path: the agents' own folders.

use std::time::{Duration, SystemTime};

use crate::support::{Ran, TestEnv, session};

fn put(env: &TestEnv, path: &str, id: &str, cwd: &str, age: u64) {
    let path = env.write(&format!("../home/{path}"), session(id).replace("/project", cwd));
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000 - age);
    #[expect(clippy::disallowed_methods, reason = "the test sets the file's time")]
    let file = std::fs::OpenOptions::new().append(true).open(path).expect("the file");
    file.set_modified(time).expect("it is ours");
}

#[test]
fn the_newest_session_of_this_project_is_taken() {
    let env = TestEnv::new();
    let here = env.work().display().to_string();
    put(&env, ".pi/agent/sessions/--x--/old.jsonl", "old", &here, 20);
    put(&env, ".pi/agent/sessions/--x--/mine.jsonl", "mine", &here, 10);
    put(&env, ".omp/agent/sessions/-y/other.jsonl", "other", "/elsewhere", 0);
    // Sessions of subagents are deeper.
    put(&env, ".omp/agent/sessions/-y/other/0-Task.jsonl", "task", &here, 0);
    let ran = env.run(["inspect", "--json"]);
    assert_eq!(ran.status, Some(0));
    assert_eq!(ran.fields("id"), ["mine"]);
    let path = env.home().join(".pi/agent/sessions/--x--/mine.jsonl");
    assert_eq!(ran.stderr, format!("the newest session of this project: {}\n", path.display()));
}

#[test]
fn without_one_of_this_project_the_newest_of_all_is_taken() {
    let env = TestEnv::new();
    put(&env, ".pi/agent/sessions/--x--/a.jsonl", "older", "/elsewhere", 20);
    put(&env, ".omp/agent/sessions/-y/b.jsonl", "newer", "/elsewhere", 10);
    let ran = env.run(["inspect", "--json"]);
    assert_eq!((ran.status, ran.fields("id")), (Some(0), vec!["newer".to_owned()]));
    assert!(ran.stderr.starts_with("the newest session (this project has none): "), "{}", ran.stderr);
}

#[test]
fn a_folder_inside_a_project_is_of_the_nearest_project() {
    let env = TestEnv::new();
    let work = env.work();
    env.write("project/src/x", "");
    let of = |path: &str| work.join(path).display().to_string();
    put(&env, ".pi/agent/sessions/p/a.jsonl", "outer", &work.display().to_string(), 5);
    put(&env, ".pi/agent/sessions/p/b.jsonl", "inner", &of("project"), 20);
    put(&env, ".pi/agent/sessions/p/c.jsonl", "beside", &of("project/sr"), 0);
    put(&env, ".pi/agent/sessions/p/d.jsonl", "root", "/", 0);
    let mut command = env.command(["inspect", "--json"]);
    command.current_dir(work.join("project/src"));
    assert_eq!(Ran::of(command.output().expect("it starts")).fields("id"), ["inner"]);
    let mut command = env.command(["inspect", "--json"]);
    command.current_dir("/tmp").env("PWD", of("project"));
    assert_eq!(Ran::of(command.output().expect("it starts")).fields("id"), ["inner"]);
}

#[test]
fn the_agents_variables_and_settings_are_followed() {
    let env = TestEnv::new();
    let run = |variables: &[(&str, &str)]| {
        let mut command = env.command(["inspect", "--json"]);
        command.envs(variables.iter().copied());
        Ran::of(command.output().expect("it starts")).fields("id")
    };
    put(&env, "one/sessions/p/a.jsonl", "by-agent-dir", "/x", 10);
    assert_eq!(run(&[("PI_CODING_AGENT_DIR", "~/one")]), ["by-agent-dir"]);
    put(&env, "two/b.jsonl", "by-session-dir", "/x", 10);
    assert_eq!(run(&[("PI_CODING_AGENT_SESSION_DIR", "~/two")]), ["by-session-dir"]);
    put(&env, "data/omp/sessions/p/c.jsonl", "by-xdg", "/x", 10);
    let data = env.home().join("data").display().to_string();
    assert_eq!(run(&[("XDG_DATA_HOME", &data)]), ["by-xdg"]);
    put(&env, ".mine/agent/sessions/p/d.jsonl", "by-config-dir", "/x", 10);
    assert_eq!(run(&[("PI_CONFIG_DIR", ".mine")]), ["by-config-dir"]);
    put(&env, "three/e.jsonl", "by-setting", "/x", 10);
    env.write("../home/.pi/agent/settings.json", r#"{"sessionDir":"~/three"}"#);
    assert_eq!(run(&[]), ["by-setting"]);
}

#[test]
fn without_any_session_it_says_where_it_looked() {
    let env = TestEnv::new();
    let ran = env.run(["inspect"]);
    assert_eq!(ran.status, Some(2));
    let home = env.home().display().to_string();
    assert!(
        ran.stderr.starts_with(&format!(
            "error: no sessions in {home}/.omp/agent/sessions, {home}/.pi/agent/sessions\nhint: "
        )),
        "{}",
        ran.stderr
    );
}

#[test]
fn a_project_cannot_send_the_search_elsewhere() {
    let env = TestEnv::new();
    env.write(".pi/settings.json", r#"{"sessionDir":"./trap"}"#);
    env.write("trap/a.jsonl", session("trap"));
    assert_eq!(env.run(["inspect"]).status, Some(2));
}

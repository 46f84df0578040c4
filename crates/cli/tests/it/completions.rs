//! `completions`: a script for each shell, with the subcommands in it.

use crate::support::TestEnv;

#[test]
fn every_shell_has_its_script() {
    let env = TestEnv::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let ran = env.run(["completions", shell]);
        assert_eq!(ran.quiet_status(), Some(0), "{shell}");
        assert!(ran.stdout.contains("inspect") && ran.stdout.contains("files-from"), "{shell}");
    }
    assert_eq!(env.run(["completions", "abacus"]).status, Some(2));
}

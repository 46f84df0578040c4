//! `man`: pages of the program and of each subcommand.

use crate::support::TestEnv;

#[test]
fn every_subcommand_has_its_page() {
    let env = TestEnv::new();
    let root = env.run(["man"]);
    assert_eq!(root.quiet_status(), Some(0));
    assert!(root.stdout.contains(".TH sesstool 1"), "{}", root.stdout);
    for command in sesstool::command().get_subcommands() {
        let ran = env.run(["man", command.get_name()]);
        assert_eq!(ran.quiet_status(), Some(0));
        assert!(ran.stdout.contains(&format!(".TH sesstool-{} 1", command.get_name())), "{}", ran.stdout);
    }
    assert_eq!(env.run(["man", "abacus"]).status, Some(2));
}

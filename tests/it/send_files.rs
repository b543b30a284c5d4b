//! Owns the tests of files that are given along with what an agent is told later.

use super::runs::with_claude;
use super::support::Sandbox;

/// A lane `x` whose agent has ended.
fn lane() -> Sandbox {
    let sandbox = with_claude("begin; echo $n >> work; well");
    let _ = sandbox.proq(&["spawn", "--wait", "-n", "x", "claude", "do it"]).ok();
    sandbox.write("notes/plan.md", "the plan\n");
    sandbox.write("a b.png", "a picture\n");
    sandbox
}

/// The files that are named in what an agent was told, below what was said.
fn named(told: &str, said: &str) -> Vec<String> {
    let rest =
        told.strip_prefix(&format!("{said}\n\nThese files belong to this; read them where they are:\n\n"));
    let lines = rest.unwrap_or_else(|| panic!("{told}")).lines();
    lines.map(|line| line.strip_prefix("- ").unwrap().to_owned()).collect()
}

fn kept(sandbox: &Sandbox) -> usize {
    let dir = sandbox.repo.join(".git/proq/lanes/x/said-files");
    std::fs::read_dir(dir).map_or(0, Iterator::count)
}

#[test]
fn files_go_along_with_what_is_sent() {
    let sandbox = lane();
    let send = ["send", "x", "like this", "--attach", "plan.md", "--attach", "../a b.png", "--wait"];
    let _ = sandbox.proq_in(&sandbox.repo.join("notes"), &send).ok();
    std::fs::write(sandbox.repo.join("notes/plan.md"), "changed\n").unwrap();
    let files = named(&sandbox.note("prompt.2"), "like this");
    assert!(files[0].ends_with("/a b.png") && files[1].ends_with("/plan.md"), "{files:?}");
    assert_eq!(std::fs::read_to_string(&files[1]).unwrap(), "the plan\n");
    // The next ones may have the same names.
    let _ = sandbox.proq(&["send", "x", "rather", "--attach", "notes/plan.md", "--wait"]).ok();
    let again = named(&sandbox.note("prompt.3"), "rather");
    assert_ne!(again[0], files[1]);
    assert_eq!(std::fs::read_to_string(&again[0]).unwrap(), "changed\n");
    assert_eq!(kept(&sandbox), 2);
    sandbox.assert_healthy();
    let _ = sandbox.proq(&["discard", "--force", "x"]).ok();
    assert!(!std::path::Path::new(&files[1]).exists());
}

#[test]
fn files_go_along_with_what_another_agent_is_asked() {
    let sandbox = lane();
    let run = ["run", "x", "claude", "look at it", "--attach", "notes/plan.md", "--wait"];
    let _ = sandbox.proq(&run).ok();
    assert_eq!(named(&sandbox.note("prompt.2"), "look at it").len(), 1);
}

#[test]
fn nothing_is_kept_of_what_is_not_sent() {
    let sandbox = lane();
    insta::assert_snapshot!(sandbox.proq(&["send", "x", "--attach", "notes/plan.md"]).shown(), @r#"
    --- stderr
    error: nothing says what the files are for
    hint: for example: git proq send LANE "it looks like this" --attach FILE
    --- code 2
    "#);
    insta::assert_snapshot!(sandbox.proq(&["send", "x", "more", "--attach", "none.md"]).shown(), @r"
    --- stderr
    error: could not read none.md
      caused by: No such file or directory (os error 2)
    --- code 1
    ");
    sandbox.sh("mkfifo pipe");
    insta::assert_snapshot!(sandbox.proq(&["send", "x", "more", "--attach", "pipe"]).shown(), @r"
    --- stderr
    error: could not read pipe
      caused by: it is a pipe, not a regular file
    --- code 1
    ");
    let would = sandbox.proq(&["send", "x", "more", "--attach", "notes/plan.md", "--dry-run"]).ok();
    assert!(would.starts_with("would be sent"), "{would}");
    assert_eq!(kept(&sandbox), 0);
    // One that cannot be told goes again.
    sandbox.sh("rm \"$ROOT/bin/claude\"");
    let mut command =
        sandbox.proq_command(&sandbox.repo, &["send", "x", "more", "--attach", "notes/plan.md"]);
    command.env("PATH", sandbox.path_without_agents(&[]));
    let _ = sandbox.output(command).fails(1);
    assert_eq!(kept(&sandbox), 0);
    sandbox.assert_healthy();
}

//! Owns the tests of the library's face: its examples, run as programs.

use super::support::Sandbox;

/// An example. They lie beside the test binaries, since `cargo test` builds them too.
fn example(sandbox: &Sandbox, name: &str) -> std::process::Command {
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_git-proq"));
    let mut command = sandbox.command(program.with_file_name("examples").join(name), &sandbox.repo);
    command.arg(&sandbox.repo);
    command
}

#[test]
fn the_example_lands_two_lanes() {
    let sandbox = Sandbox::new();
    let mut command = example(&sandbox, "land");
    command.arg(env!("CARGO_BIN_EXE_git-proq"));
    let out = sandbox.output(command);
    insta::assert_snapshot!(out.shown(), @r"
    one: done
    two: done
    one Landed on main
    two Landed on main
    --- code 0
    ");
    assert_eq!(sandbox.read("one.txt"), "1\n");
    assert_eq!(sandbox.read("two.txt"), "2\n");
}

#[test]
fn lanes_that_are_named_land_in_that_order() {
    let sandbox = Sandbox::new();
    sandbox.lane_of("small", "echo small > one");
    sandbox.lane_of("large", "echo large > one; echo large > two; echo large > three");
    let mut command = example(&sandbox, "in_order");
    command.args(["large", "small"]);
    insta::assert_snapshot!(sandbox.output(command).shown(), @r"
    large Landed on main
    small Conflict on main
    --- code 0
    ");
    assert_eq!(sandbox.read("one"), "large\n");
}

#[test]
fn a_hook_is_asked_before_a_lane_is_thrown_away() {
    let sandbox = Sandbox::new();
    sandbox.lane_of("keep", "echo keep > one");
    sandbox.lane_of("drop", "echo drop > one");
    sandbox.git(&["config", "proq.hook.pre-remove", "test $PROQ_LANE = drop || { echo not this; exit 1; }"]);
    let mut command = example(&sandbox, "throw_away");
    command.args(["keep", "drop"]);
    insta::assert_snapshot!(sandbox.output(command).shown(), @r"
    keep: kept, pre-remove said no: not this; nothing was changed
    drop: gone
    --- code 0
    ");
    assert!(sandbox.lane("keep").join("one").exists() && !sandbox.lane("drop").exists());
}

#[test]
fn a_signal_ends_a_program_that_only_uses_the_library_as_it_did_before() {
    let sandbox = Sandbox::new();
    sandbox.git(&["config", "proq.agent.autocommit", "never"]);
    sandbox.git(&["config", "proq.merge.uncommitted", "commit"]);
    sandbox.lane_with("x", "echo one > one");
    // While git commits, the program that asked it to is above it.
    sandbox.sh("mkdir -p .git/hooks; cd .git/hooks; echo '#!/bin/sh' > pre-commit; chmod +x pre-commit
        echo 'kill -TERM $(ps -o ppid= -p $PPID); exit 1' >> pre-commit");
    let mut command = example(&sandbox, "in_order");
    command.arg("x");
    assert_eq!(sandbox.output(command).code, 128 + 15);
    std::fs::remove_file(sandbox.repo.join(".git/hooks/pre-commit")).unwrap();
    assert!(!sandbox.repo.join("one").exists());
    let _ = sandbox.proq(&["merge", "x"]).ok();
    assert_eq!(sandbox.read("one"), "one\n");
}

//! The library's public interface: its examples, run as programs.

use proq_test_kit::Sandbox;
use proq_test_kit::plans::repo_with_plan;

/// Returns an example's command. Examples lie beside the test binaries, since `cargo test` builds them too.
fn example(sandbox: &Sandbox, name: &str) -> std::process::Command {
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_git-proq"));
    let example = program.with_file_name("examples").join(name);
    assert!(example.is_file(), "{} is missing: cargo build --examples", example.display());
    let mut command = sandbox.command(example, &sandbox.repo);
    command.arg(&sandbox.repo);
    command
}

#[test]
fn land_example_lands_two_lanes() {
    let sandbox = Sandbox::new();
    let mut command = example(&sandbox, "land");
    command.arg(env!("CARGO_BIN_EXE_git-proq"));
    let out = sandbox.output(command);
    insta::assert_snapshot!(out.to_text(), @r"
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
fn first_steps_example_lands_a_lane_and_takes_it_back() {
    let sandbox = Sandbox::new();
    sandbox.write("a.txt", "uncommitted\n");
    let mut command = example(&sandbox, "first_steps");
    command.arg(env!("CARGO_BIN_EXE_git-proq"));
    insta::assert_snapshot!(sandbox.output(command).to_text(), @r"
    payments is done, 1 ahead of main
    preview: the checkout has payments.txt
    back: the checkout lacks payments.txt
    payments Landed on main
    merge: the checkout has payments.txt
    undo: the checkout lacks payments.txt
    redo: the checkout has payments.txt
    --- code 0
    ");
    assert_eq!(sandbox.read("a.txt"), "uncommitted\n");
}

#[test]
fn run_plan_example_lands_tasks_on_current_branch() {
    let plan = "format = 1\nsummary = \"A shop\"\nagent = \"worker\"\n[[task]]\nid = \"cart\"\ntitle = \"The cart\"\n\
                [[task]]\nid = \"pay\"\ntitle = \"Payments\"\nneeds = [\"cart\"]\n";
    let sandbox = repo_with_plan(plan);
    let mut command = example(&sandbox, "run_plan");
    command.args([env!("CARGO_BIN_EXE_git-proq"), "plan.toml"]);
    insta::assert_snapshot!(sandbox.output(command).to_text(), @r"
    cart: landed
    pay: landed
    2 of 2 tasks landed on main
    --- code 0
    ");
    assert_eq!(sandbox.read("pay.txt"), "work of pay\n");
}

#[test]
fn named_lanes_land_in_given_order() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("small", "echo small > one");
    sandbox.lane_with_commit("large", "echo large > one; echo large > two; echo large > three");
    let mut command = example(&sandbox, "in_order");
    command.args(["large", "small"]);
    insta::assert_snapshot!(sandbox.output(command).to_text(), @r"
    large Landed on main
    small Conflict on main
    --- code 0
    ");
    assert_eq!(sandbox.read("one"), "large\n");
}

/// Promise: concurrency/refusing-hook
#[test]
fn pre_remove_hook_can_keep_a_lane() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("keep", "echo keep > one");
    sandbox.lane_with_commit("drop", "echo drop > one");
    sandbox.git(&["config", "proq.hook.pre-remove", "test $PROQ_LANE = drop || { echo not this; exit 1; }"]);
    let mut command = example(&sandbox, "throw_away");
    command.args(["keep", "drop"]);
    insta::assert_snapshot!(sandbox.output(command).to_text(), @r"
    keep: kept, pre-remove said no: not this; nothing was changed
    drop: gone
    --- code 0
    ");
    assert!(sandbox.lane_path("keep").join("one").exists() && !sandbox.lane_path("drop").exists());
}

#[test]
fn signal_ends_program_that_uses_the_library() {
    let sandbox = Sandbox::new();
    sandbox.git(&["config", "proq.agent.autocommit", "never"]);
    sandbox.git(&["config", "proq.merge.uncommitted", "commit"]);
    sandbox.run_lane("x", "echo one > one");
    // While git commits, its parent process is the program that started it.
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

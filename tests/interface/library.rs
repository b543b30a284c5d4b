//! The library's public interface: its examples, run as programs.

use std::io::Write;
use std::process::Stdio;

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
    keep: kept, hook pre-remove refused: not this; nothing was changed
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

/// Running example that a line on its standard input cancels.
struct Cancelable(std::process::Child);

impl Cancelable {
    fn start(sandbox: &Sandbox, verb: &str, lane: &str) -> Cancelable {
        let mut command = example(sandbox, "cancel");
        command.args([verb, lane]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Cancelable(command.spawn().unwrap())
    }

    /// Cancels the use case, and asserts that it ends as on Ctrl-C, without another word.
    #[track_caller]
    fn cancel(mut self) {
        writeln!(self.0.stdin.take().unwrap()).unwrap();
        let out = self.0.wait_with_output().unwrap();
        let shown = (String::from_utf8(out.stdout).unwrap(), String::from_utf8(out.stderr).unwrap());
        assert_eq!(shown, ("canceled; nothing was left unfinished\n".to_owned(), String::new()));
        assert_eq!(out.status.code(), Some(130));
    }
}

#[test]
fn canceled_check_ends_and_moves_nothing() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("one", "echo one > one.txt");
    let before = sandbox.git(&["for-each-ref"]);
    let check = "echo $$ > $ROOT/pid; echo go > $ROOT/started; sleep 600";
    sandbox.git(&["config", "proq.verify.commands", check]);
    sandbox.pipe("started");
    let landing = Cancelable::start(&sandbox, "merge", "one");
    assert_eq!(sandbox.read_pipe("started"), "go\n");
    landing.cancel();
    let pid = std::fs::read_to_string(sandbox.root().join("pid")).unwrap();
    assert!(!sandbox.is_alive(pid.trim()), "the check lives on");
    assert_eq!((sandbox.git(&["for-each-ref"]), &sandbox.row("one")["state"]), (before, &"idle".into()));
    assert_eq!(sandbox.proq(&["queue", "--json"]).json()["queue"], serde_json::json!([]));
    sandbox.assert_healthy();
    sandbox.git(&["config", "proq.verify.commands", "true"]);
    let _ = sandbox.proq(&["merge", "one"]).ok();
}

#[test]
fn canceled_landing_waits_for_a_lock_to_take_all_back() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("one", "echo one > one.txt");
    let _ = sandbox.proq(&["preview", "one"]).ok();
    let before = (sandbox.git(&["symbolic-ref", "HEAD"]), sandbox.git(&["for-each-ref"]));
    sandbox.git(&["config", "proq.verify.commands", "echo go > $ROOT/started; sleep 600"]);
    sandbox.pipe("started");
    let landing = Cancelable::start(&sandbox, "merge", "one");
    assert_eq!(sandbox.read_pipe("started"), "go\n");
    let lock = std::fs::File::open(sandbox.repo.join(".git/proq/locks/store.lock")).unwrap();
    lock.lock().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            std::thread::sleep(std::time::Duration::from_millis(500));
            drop(lock);
        });
        landing.cancel();
    });
    assert_eq!((sandbox.git(&["symbolic-ref", "HEAD"]), sandbox.git(&["for-each-ref"])), before);
    sandbox.assert_healthy();
}

#[test]
fn canceled_landing_leaves_the_queue() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("one", "echo one > one.txt");
    sandbox.lane_with_commit("two", "echo two > two.txt");
    sandbox.pipe("here");
    sandbox.pipe("go");
    let check = "timeout 60 sh -c 'echo here > $ROOT/here'; timeout 60 cat $ROOT/go > /dev/null";
    let mut first = sandbox.proq_command(&sandbox.repo, &["merge", "one", "--verify", check]);
    let first = first.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    assert_eq!(sandbox.read_pipe("here"), "here\n");
    let second = Cancelable::start(&sandbox, "merge", "two");
    sandbox.wait_for_events("merge.queued", "two", 1);
    let before = sandbox.git(&["for-each-ref"]);
    second.cancel();
    assert_eq!(sandbox.proq(&["queue", "--json"]).json()["queue"].as_array().unwrap().len(), 1);
    assert_eq!(sandbox.git(&["for-each-ref"]), before);
    sandbox.write_pipe("go");
    assert!(first.wait_with_output().unwrap().status.success());
    assert_eq!(sandbox.row("two")["state"], "idle");
    sandbox.assert_healthy();
}

#[test]
#[cfg(target_os = "linux")]
fn canceled_wait_leaves_the_agent_running() {
    let sandbox = Sandbox::new();
    sandbox.pipe("go");
    sandbox.start_lane("x", "read line < \"$ROOT/go\"");
    let _ = sandbox.started_row("x");
    for verb in ["wait", "follow"] {
        let waits = Cancelable::start(&sandbox, verb, "x");
        proq_test_kit::waiting::assert_no_wakeups(&[waits.0.id().to_string()]);
        waits.cancel();
    }
    assert_eq!(sandbox.row("x")["state"], "running");
    sandbox.write_pipe("go");
    let _ = sandbox.proq(&["wait", "x"]).ok();
}

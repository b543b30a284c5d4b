//! Set-up commands of a new lane: their environment, their approval, and the lane after they fail.

use proq_test_kit::faults::{kill_at, recover};
use proq_test_kit::waiting::{KilledOnDrop, wait_until};
use proq_test_kit::{RepoState, Sandbox, file_names};

fn sandbox_with_setup(commands: &[&str]) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write(".gitignore", "made\n.env\n");
    sandbox.commit_all("rules");
    for command in commands {
        sandbox.git(&["config", "--add", "proq.lane.setup", command]);
    }
    sandbox
}

const SPAWN_EMPTY: [&str; 4] = ["spawn", "--empty", "-n", "x"];

#[test]
fn set_up_runs_in_lane_between_copies_and_agent() {
    let sandbox = sandbox_with_setup(&[
        "cat .env > made",
        "env | grep ^PROQ_ | sort >> made; echo talk; echo more >&2",
    ]);
    sandbox.write(".worktreeinclude", ".env\n");
    sandbox.write(".env", "SECRET=1\n");
    sandbox.program("robot", "cp made $ROOT/found");
    let mut spawn = sandbox.proq_command(&sandbox.repo, &["spawn", "-n", "x", "--wait", "robot", "go"]);
    // As if an agent of another lane had run the command.
    spawn.env("PROQ_TASK_FILE", "/theirs").env("PROQ_LANE", "theirs");
    let _ = sandbox.output(spawn).ok();
    let agent_copy = std::fs::read_to_string(sandbox.root().join("found")).unwrap();
    let lines: Vec<&str> = agent_copy
        .lines()
        .filter(|l| !["PORT", "_RUN=", "_SNAPSHOT_"].iter().any(|own| l.contains(own)))
        .collect();
    let (repo, test) = (sandbox.repo.display(), "PROQ_TEST_NOW=2026-01-02T03:04:05Z");
    let env_file = format!("PROQ_ENV_FILE={repo}/.git/proq/lanes/x/env");
    let (base, branch, lane) = ("PROQ_BASE=main", "PROQ_BRANCH=proq/x", "PROQ_LANE=x");
    assert_eq!(lines, ["SECRET=1", base, branch, &env_file, lane, &format!("PROQ_ROOT={repo}"), test]);
    insta::assert_snapshot!(sandbox.proq(&["logs", "x", "--setup"]).to_text(), @r"
    $ cat .env > made
    $ env | grep ^PROQ_ | sort >> made; echo talk; echo more >&2
    talk
    more
    --- code 0
    ");
    // A second run does not repeat the set-up.
    let _ = sandbox.proq(&["run", "x", "robot", "again", "--wait"]).ok();
    assert_eq!(sandbox.proq(&["logs", "x", "--setup"]).ok().matches("talk\n").count(), 1);
    let _ = sandbox.proq(&["discard", "x", "--force"]).ok();
    assert!(
        sandbox.proq(&["logs", "x@1", "--setup", "--json"]).json()["text"].as_str().unwrap().contains("more")
    );
    let _ = sandbox.proq(&["undo"]).ok();
    assert_eq!(sandbox.proq(&["logs", "x", "--setup"]).ok().matches("talk\n").count(), 1);
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "y", "--no-setup"]).ok();
    assert!(!sandbox.lane_path("y").join("made").exists());
    assert!(sandbox.proq(&["logs", "y", "--setup"]).fails(1).contains("lane 'y' ran no lane.setup command"));
}

/// Promise: new-lane/set-up-failure
#[test]
fn failing_command_undoes_lane_and_keeps_log() {
    let sandbox = sandbox_with_setup(&[
        "mkdir -p ro/x; touch ro/x/y new; chmod -R a-w ro",
        "echo no network; exit 7",
        "touch $ROOT/never",
    ]);
    let before = RepoState::capture(&sandbox);
    insta::assert_snapshot!(sandbox.proq(&SPAWN_EMPTY).to_text(), @r"
    --- stderr
    error: cannot set up lane 'x': `echo no network; exit 7` failed (exit code 7): no network; the lane was not created
    hint: read its output: git proq logs x --setup
    hint: or add --no-setup to skip it
    --- code 4
    ");
    RepoState::capture(&sandbox).assert_same(&before, "taken back");
    assert_eq!(file_names(&sandbox.repo.join(".proq-worktrees")), [".gitignore"]);
    assert!(!sandbox.root().join("never").exists());
    insta::assert_snapshot!(sandbox.proq(&["logs", "x", "--setup"]).to_text(), @r"
    $ mkdir -p ro/x; touch ro/x/y new; chmod -R a-w ro
    $ echo no network; exit 7
    no network
    --- code 0
    ");
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "x", "--no-setup"]).ok();
    sandbox.assert_healthy();
}

/// Promise: new-lane/set-up-failure
#[test]
fn set_up_limit_ends_commands_and_children() {
    let script = "setsid sh -c 'echo $$ > $ROOT/fled; exec sleep 600' & echo $$ > $ROOT/pid; exec sleep 600";
    let sandbox = sandbox_with_setup(&[script]);
    sandbox.git(&["config", "proq.lane.setupLimit", "1s"]);
    sandbox.git(&["config", "proq.agent.stopGrace", "1"]);
    let before = RepoState::capture(&sandbox);
    let out = sandbox.proq(&SPAWN_EMPTY).fails(4);
    assert!(out.contains("(timed out after 1 s)") && out.contains("proq.lane.setupLimit 30m"), "{out}");
    for name in ["pid", "fled"] {
        let pid = std::fs::read_to_string(sandbox.root().join(name)).unwrap();
        wait_until("it has ended", || !sandbox.is_alive(pid.trim()));
    }
    RepoState::capture(&sandbox).assert_same(&before, "taken back");
}

/// Promise: new-lane/set-up-failure
#[test]
fn interrupt_ends_set_up_and_undoes_lane() {
    let sandbox = sandbox_with_setup(&["echo $$ > $ROOT/up; exec sleep 600"]);
    sandbox.pipe("up");
    let before = RepoState::capture(&sandbox);
    let mut spawn = KilledOnDrop(sandbox.proq_command(&sandbox.repo, &SPAWN_EMPTY).spawn().unwrap());
    let pid = sandbox.read_pipe("up").trim().to_owned();
    let _ = sandbox.sh(&format!("kill -INT {}", spawn.0.id()));
    assert_eq!(spawn.exit_code(), Some(130));
    assert!(!sandbox.is_alive(&pid));
    RepoState::capture(&sandbox).assert_same(&before, "taken back");
}

/// Promise: new-lane/set-up-failure
#[test]
fn killed_set_up_is_recovered_by_next_command() {
    for (at, commands) in
        [("set-up.copied", ["true"]), ("set-up.command", ["echo $$ > $ROOT/up; exec sleep 600"])]
    {
        let sandbox = sandbox_with_setup(&commands);
        sandbox.write(".worktreeinclude", ".env\n");
        sandbox.write(".env", "1");
        sandbox.pipe("up");
        let before = RepoState::capture(&sandbox);
        kill_at(&sandbox, at, &SPAWN_EMPTY);
        if at == "set-up.command" {
            let pid = sandbox.read_pipe("up");
            assert!(sandbox.is_alive(pid.trim()));
            let _ = recover(&sandbox);
            assert!(!sandbox.is_alive(pid.trim()));
        } else {
            let _ = recover(&sandbox);
        }
        RepoState::capture(&sandbox).without_removed_lanes().assert_same(&before.without_removed_lanes(), at);
        sandbox.git(&["config", "--unset-all", "proq.lane.setup"]);
        let _ = sandbox.proq(&SPAWN_EMPTY).ok();
        sandbox.assert_healthy();
    }
}

/// Promise: new-lane/set-up-approval
#[test]
fn repository_commands_need_approval() {
    let sandbox = Sandbox::new();
    sandbox.write("proq.toml", "[lane]\nsetup = ['touch $ROOT/ran']\n");
    sandbox.program("robot", "true");
    insta::assert_snapshot!(sandbox.proq(&SPAWN_EMPTY).to_text(), @r"
    --- stderr
    error: cannot set up the lane: you have not approved lane.setup of [ROOT]/repo/proq.toml: touch $ROOT/ran
    hint: read and approve them: git proq approve
    hint: or add --no-setup to skip them
    --- code 1
    ");
    for args in [&["spawn", "robot", "go", "--count", "2"][..], &["spawn", "robot", "go"]] {
        assert!(sandbox.proq(args).fails(1).contains("you have not approved"));
    }
    assert!(!sandbox.root().join("ran").exists());
    assert_eq!(file_names(&sandbox.repo.join(".proq-worktrees")), [""; 0]);
    let _ = sandbox.proq(&["spawn", "-n", "y", "--no-setup", "--wait", "robot", "go"]).ok();
    // A lane is not removed for a replacement that cannot be created.
    assert!(sandbox.proq(&["redispatch", "y"]).fails(1).contains("you have not approved"));
    assert!(sandbox.lane_path("y").exists());
    let _ = sandbox.proq(&["approve", "--yes"]).ok();
    let _ = sandbox.proq(&SPAWN_EMPTY).ok();
    assert!(sandbox.root().join("ran").exists());
    sandbox.write("proq.toml", "[lane]\nsetup = ['touch $ROOT/ran2']\n");
    let _ = sandbox.proq(&["spawn", "--empty"]).fails(1);
}

#[test]
fn lanes_with_shared_lock_are_set_up_in_turn() {
    let sandbox = sandbox_with_setup(&[
        "echo $PROQ_LANE > $ROOT/up; cat $ROOT/go > /dev/null; echo end >> $ROOT/order",
    ]);
    sandbox.git(&["config", "proq.lane.setupLock", "npm"]);
    sandbox.pipe("up");
    sandbox.pipe("go");
    let mut first = KilledOnDrop(sandbox.proq_command(&sandbox.repo, &SPAWN_EMPTY).spawn().unwrap());
    assert_eq!(sandbox.read_pipe("up"), "x\n");
    let mut second = sandbox.proq_command(&sandbox.repo, &["spawn", "--empty", "-n", "y"]);
    let log = std::fs::File::create(sandbox.root().join("said")).unwrap();
    let mut second = KilledOnDrop(second.stderr(log).spawn().unwrap());
    let stderr_text = || std::fs::read_to_string(sandbox.root().join("said")).unwrap();
    wait_until("it waits", || {
        stderr_text().contains("waiting for the set-up 'npm', held by `git proq spawn --empty -n x`")
    });
    assert!(!sandbox.root().join("order").exists());
    sandbox.write_pipe("go");
    assert_eq!(first.exit_code(), Some(0));
    assert_eq!(sandbox.read_pipe("up"), "y\n");
    sandbox.write_pipe("go");
    assert_eq!(second.exit_code(), Some(0));
    for bad in ["../x", "-x", "a b", ".x"] {
        sandbox.git(&["config", "proq.lane.setupLock", bad]);
        assert!(sandbox.proq(&["cleanup"]).fails(1).contains("expected a name of letters"), "{bad}");
    }
}

/// Promise: new-lane/ports
#[test]
fn concurrent_lanes_get_different_ports() {
    let sandbox = sandbox_with_setup(&["echo $PROQ_PORT > $ROOT/up; cat $ROOT/go > /dev/null"]);
    sandbox.pipe("up");
    sandbox.pipe("go");
    let mut first = KilledOnDrop(sandbox.proq_command(&sandbox.repo, &SPAWN_EMPTY).spawn().unwrap());
    let port: u16 = sandbox.read_pipe("up").trim().parse().unwrap();
    // The range has space for one lane, which is taken although no record shows it yet.
    sandbox.git(&["config", "proq.lane.ports", &format!("{port}-{}", port + 9)]);
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "y", "--no-setup"]).ok();
    assert!(sandbox.proq(&["show", "y", "--json"]).json()["port"].is_null());
    sandbox.write_pipe("go");
    assert_eq!(first.exit_code(), Some(0));
    assert_eq!(sandbox.proq(&["show", "x", "--json"]).json()["port"], port);
}

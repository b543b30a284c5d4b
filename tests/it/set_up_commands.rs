//! Owns the tests of the commands that get a new lane ready: what they find, what allows them, and what becomes of a lane that they
//! fail for.

use super::recovery::kit::{dies, recovers};
use super::support::patience::{Beside, wait_until};
use super::support::{Sandbox, State, names};

fn with_setup(commands: &[&str]) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write(".gitignore", "made\n.env\n");
    sandbox.commit_all("rules");
    for command in commands {
        sandbox.git(&["config", "--add", "proq.lane.setup", command]);
    }
    sandbox
}

const EMPTY: [&str; 4] = ["spawn", "--empty", "-n", "x"];

#[test]
fn commands_run_in_the_lane_after_the_copies_and_before_the_agent() {
    let sandbox =
        with_setup(&["cat .env > made", "env | grep ^PROQ_ | sort >> made; echo talk; echo more >&2"]);
    sandbox.write(".worktreeinclude", ".env\n");
    sandbox.write(".env", "SECRET=1\n");
    sandbox.program("robot", "cp made $ROOT/found");
    let mut spawn = sandbox.proq_command(&sandbox.repo, &["spawn", "-n", "x", "--wait", "robot", "go"]);
    // As if an agent of another lane had begun it.
    spawn.env("PROQ_TASK_FILE", "/theirs").env("PROQ_LANE", "theirs");
    let _ = sandbox.output(spawn).ok();
    let found = std::fs::read_to_string(sandbox.root().join("found")).unwrap();
    let lines: Vec<&str> = found
        .lines()
        .filter(|l| !["PORT", "_RUN=", "_SNAPSHOT_"].iter().any(|own| l.contains(own)))
        .collect();
    let (repo, test) = (sandbox.repo.display(), "PROQ_TEST_NOW=2026-01-02T03:04:05Z");
    let env_file = format!("PROQ_ENV_FILE={repo}/.git/proq/lanes/x/env");
    let (base, branch, lane) = ("PROQ_BASE=main", "PROQ_BRANCH=proq/x", "PROQ_LANE=x");
    assert_eq!(lines, ["SECRET=1", base, branch, &env_file, lane, &format!("PROQ_ROOT={repo}"), test]);
    insta::assert_snapshot!(sandbox.proq(&["logs", "x", "--setup"]).shown(), @r"
    $ cat .env > made
    $ env | grep ^PROQ_ | sort >> made; echo talk; echo more >&2
    talk
    more
    --- code 0
    ");
    // A second run finds the lane ready.
    let _ = sandbox.proq(&["run", "x", "robot", "again", "--wait"]).ok();
    assert_eq!(sandbox.proq(&["logs", "x", "--setup"]).ok().matches("talk\n").count(), 1);
    let _ = sandbox.proq(&["discard", "x", "--force"]).ok();
    assert!(
        sandbox.proq(&["logs", "x@1", "--setup", "--json"]).json()["text"].as_str().unwrap().contains("more")
    );
    let _ = sandbox.proq(&["undo"]).ok();
    assert_eq!(sandbox.proq(&["logs", "x", "--setup"]).ok().matches("talk\n").count(), 1);
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "y", "--no-setup"]).ok();
    assert!(!sandbox.lane("y").join("made").exists());
    assert!(
        sandbox
            .proq(&["logs", "y", "--setup"])
            .fails(1)
            .contains("no lane.setup command was run in lane 'y'")
    );
}

#[test]
fn a_command_that_fails_takes_the_lane_back_and_leaves_what_it_wrote() {
    let sandbox = with_setup(&[
        "mkdir -p ro/x; touch ro/x/y new; chmod -R a-w ro",
        "echo no network; exit 7",
        "touch $ROOT/never",
    ]);
    let before = State::of(&sandbox);
    insta::assert_snapshot!(sandbox.proq(&EMPTY).shown(), @r"
    --- stderr
    error: 'echo no network; exit 7' failed while lane 'x' was got ready (exit code 7): no network; no new lane was made
    hint: see what it wrote: git proq logs x --setup
    hint: or leave them out: git proq spawn --no-setup …
    --- code 4
    ");
    State::of(&sandbox).is(&before, "taken back");
    assert_eq!(names(&sandbox.repo.join(".proq-worktrees")), [".gitignore"]);
    assert!(!sandbox.root().join("never").exists());
    insta::assert_snapshot!(sandbox.proq(&["logs", "x", "--setup"]).shown(), @r"
    $ mkdir -p ro/x; touch ro/x/y new; chmod -R a-w ro
    $ echo no network; exit 7
    no network
    --- code 0
    ");
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "x", "--no-setup"]).ok();
    sandbox.assert_healthy();
}

#[test]
fn a_limit_ends_them_with_all_that_they_started() {
    let script = "setsid sh -c 'echo $$ > $ROOT/fled; exec sleep 600' & echo $$ > $ROOT/pid; exec sleep 600";
    let sandbox = with_setup(&[script]);
    sandbox.git(&["config", "proq.lane.setupLimit", "1s"]);
    sandbox.git(&["config", "proq.agent.stopGrace", "1"]);
    let before = State::of(&sandbox);
    let out = sandbox.proq(&EMPTY).fails(4);
    assert!(out.contains("(timed out after 1 s)") && out.contains("proq.lane.setupLimit 30m"), "{out}");
    for name in ["pid", "fled"] {
        let pid = std::fs::read_to_string(sandbox.root().join(name)).unwrap();
        wait_until("it has ended", || !sandbox.lives(pid.trim()));
    }
    State::of(&sandbox).is(&before, "taken back");
}

#[test]
fn an_interrupt_ends_them_and_takes_the_lane_back() {
    let sandbox = with_setup(&["echo $$ > $ROOT/up; exec sleep 600"]);
    sandbox.pipe("up");
    let before = State::of(&sandbox);
    let mut spawn = Beside(sandbox.proq_command(&sandbox.repo, &EMPTY).spawn().unwrap());
    let pid = sandbox.hear("up").trim().to_owned();
    let _ = sandbox.sh(&format!("kill -INT {}", spawn.0.id()));
    assert_eq!(spawn.code(), Some(130));
    assert!(!sandbox.lives(&pid));
    State::of(&sandbox).is(&before, "taken back");
}

#[test]
fn a_kill_in_the_middle_is_put_right_by_the_next_command() {
    for (at, commands) in
        [("set-up.copied", ["true"]), ("set-up.command", ["echo $$ > $ROOT/up; exec sleep 600"])]
    {
        let sandbox = with_setup(&commands);
        sandbox.write(".worktreeinclude", ".env\n");
        sandbox.write(".env", "1");
        sandbox.pipe("up");
        let before = State::of(&sandbox);
        dies(&sandbox, at, &EMPTY);
        if at == "set-up.command" {
            let pid = sandbox.hear("up");
            assert!(sandbox.lives(pid.trim()));
            let _ = recovers(&sandbox);
            assert!(!sandbox.lives(pid.trim()));
        } else {
            let _ = recovers(&sandbox);
        }
        State::of(&sandbox).without_remains().is(&before.without_remains(), at);
        sandbox.git(&["config", "--unset-all", "proq.lane.setup"]);
        let _ = sandbox.proq(&EMPTY).ok();
        sandbox.assert_healthy();
    }
}

#[test]
fn commands_of_a_repository_need_to_be_approved() {
    let sandbox = Sandbox::new();
    sandbox.write("proq.toml", "[lane]\nsetup = ['touch $ROOT/ran']\n");
    sandbox.program("robot", "true");
    insta::assert_snapshot!(sandbox.proq(&EMPTY).shown(), @r"
    --- stderr
    error: [ROOT]/repo/proq.toml has lane.setup commands that you have not approved: touch $ROOT/ran; nothing was made
    hint: let them run: git proq approve
    hint: or leave them out: git proq spawn --no-setup …
    --- code 1
    ");
    for args in [&["spawn", "robot", "go", "--count", "2"][..], &["spawn", "robot", "go"]] {
        assert!(sandbox.proq(args).fails(1).contains("that you have not approved"));
    }
    assert!(!sandbox.root().join("ran").exists());
    assert_eq!(names(&sandbox.repo.join(".proq-worktrees")), [""; 0]);
    let _ = sandbox.proq(&["spawn", "-n", "y", "--no-setup", "--wait", "robot", "go"]).ok();
    // A lane is not thrown away for one that cannot be made.
    assert!(sandbox.proq(&["redispatch", "y"]).fails(1).contains("that you have not approved"));
    assert!(sandbox.lane("y").exists());
    let _ = sandbox.proq(&["approve", "--yes"]).ok();
    let _ = sandbox.proq(&EMPTY).ok();
    assert!(sandbox.root().join("ran").exists());
    sandbox.write("proq.toml", "[lane]\nsetup = ['touch $ROOT/ran2']\n");
    let _ = sandbox.proq(&["spawn", "--empty"]).fails(1);
}

#[test]
fn lanes_that_share_a_lock_are_got_ready_one_after_the_other() {
    let sandbox =
        with_setup(&["echo $PROQ_LANE > $ROOT/up; cat $ROOT/go > /dev/null; echo end >> $ROOT/order"]);
    sandbox.git(&["config", "proq.lane.setupLock", "npm"]);
    sandbox.pipe("up");
    sandbox.pipe("go");
    let mut first = Beside(sandbox.proq_command(&sandbox.repo, &EMPTY).spawn().unwrap());
    assert_eq!(sandbox.hear("up"), "x\n");
    let mut second = sandbox.proq_command(&sandbox.repo, &["spawn", "--empty", "-n", "y"]);
    let log = std::fs::File::create(sandbox.root().join("said")).unwrap();
    let mut second = Beside(second.stderr(log).spawn().unwrap());
    let said = || std::fs::read_to_string(sandbox.root().join("said")).unwrap();
    wait_until("it waits", || {
        said().contains("waiting for the set-up 'npm', held by `git proq spawn --empty -n x`")
    });
    assert!(!sandbox.root().join("order").exists());
    sandbox.tell("go");
    assert_eq!(first.code(), Some(0));
    assert_eq!(sandbox.hear("up"), "y\n");
    sandbox.tell("go");
    assert_eq!(second.code(), Some(0));
    for bad in ["../x", "-x", "a b", ".x"] {
        sandbox.git(&["config", "proq.lane.setupLock", bad]);
        assert!(sandbox.proq(&["list"]).fails(1).contains("it takes a name of letters"), "{bad}");
    }
}

#[test]
fn two_lanes_that_are_made_at_once_have_ports_of_their_own() {
    let sandbox = with_setup(&["echo $PROQ_PORT > $ROOT/up; cat $ROOT/go > /dev/null"]);
    sandbox.pipe("up");
    sandbox.pipe("go");
    let mut first = Beside(sandbox.proq_command(&sandbox.repo, &EMPTY).spawn().unwrap());
    let port: u16 = sandbox.hear("up").trim().parse().unwrap();
    // There is room for one, and it is given, though no record says so yet.
    sandbox.git(&["config", "proq.lane.ports", &format!("{port}-{}", port + 9)]);
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "y", "--no-setup"]).ok();
    assert!(sandbox.proq(&["show", "y", "--json"]).json()["port"].is_null());
    sandbox.tell("go");
    assert_eq!(first.code(), Some(0));
    assert_eq!(sandbox.proq(&["show", "x", "--json"]).json()["port"], port);
}

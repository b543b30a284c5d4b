//! Owns the tests of what comes before a task is begun: lanes made ready by `swarm.pre_warm`, and a look over the repository.

use super::support::Sandbox;
use super::support::patience::wait_until;
use super::swarm::{planned, ran, task, worker};
use super::swarm_control::{is_held, kill_scheduler};

/// Two tasks about files of their own, and one that does not say.
const PLAN: &str = "format = 1\nagent = \"worker\"\n[[task]]\nid = \"web\"\ntitle = \"W\"\nscope = [\"web/\"]\n\
                    [[task]]\nid = \"docs\"\ntitle = \"D\"\nscope = [\"docs/\"]\n[[task]]\nid = \"any\"\ntitle = \"A\"\n";

/// With these commands, and caches that git ignores.
fn warmed(plan: &str, commands: &[&str]) -> Sandbox {
    let sandbox = planned(plan);
    sandbox.write(".gitignore", "cache/\n");
    sandbox.commit_all("the plan");
    for command in commands {
        sandbox.git(&["config", "--add", "proq.swarm.preWarm", command]);
    }
    sandbox
}

#[test]
fn lanes_are_made_ready_by_what_their_files_ask_for() {
    let npm = "web/ => mkdir -p cache && echo $PROQ_LANE >> cache/npm";
    let sandbox = warmed(PLAN, &[npm, "mkdir -p cache && echo $PROQ_LANE >> cache/all"]);
    worker(&sandbox, "ls cache > $ROOT/cache-$name");
    let out = sandbox.proq(&["swarm", "plan.toml", "--yes"]);
    assert_eq!(out.code, 0, "{}{}", out.stdout, out.stderr);
    let cache = |name: &str| std::fs::read_to_string(sandbox.root().join(format!("cache-{name}"))).unwrap();
    assert_eq!(
        (cache("web"), cache("docs"), cache("any")),
        ("all\nnpm\n".into(), "all\n".into(), "all\nnpm\n".into())
    );
    assert!(out.stderr.contains("lane 'docs' is made ready by `mkdir -p cache"), "{}", out.stderr);
    sandbox.assert_healthy();
}

#[test]
fn what_such_a_command_changes_is_not_taken_for_the_tasks_work() {
    let sandbox = warmed(
        "format = 1\nagent = \"worker\"\n[[task]]\nid = \"x\"\ntitle = \"X\"\n",
        &["echo warm >> a.txt; touch new"],
    );
    let _ = sandbox.proq(&["swarm", "plan.toml", "--yes", "-q"]).ok();
    let branch = "proq/batch-20260102-030405";
    assert_eq!(sandbox.git(&["diff", "--name-only", "main", branch]), "x.txt");
}

#[test]
fn a_lane_that_cannot_be_made_ready_is_not_worked_in() {
    let sandbox = warmed(PLAN, &["web/ => echo no network; exit 7"]);
    let out = sandbox.proq(&["swarm", "plan.toml", "--yes"]);
    assert_eq!(out.code, 4, "{}{}", out.stdout, out.stderr);
    assert!(out.stderr.contains("failed (exit code 7); it wrote "), "{}", out.stderr);
    assert_eq!(task(&sandbox, "docs")["state"], "landed");
    assert!(!ran(&sandbox).iter().any(|run| run.starts_with("web")));
    // Whoever looks later is told why, too, by every command that says how far it is.
    let web = task(&sandbox, "web");
    let why = web["detail"].as_str().unwrap();
    assert!(why.starts_with("`echo no network; exit 7` failed (exit code 7); it wrote "), "{web:#}");
    for command in ["status", "report"] {
        let said = sandbox.proq(&[command]).ok();
        assert!(said.contains(why), "{command}: {said}");
    }
    let events = sandbox.proq(&["events"]).ok();
    assert!(events.contains("web failed: `echo no network; exit 7` failed"), "{events}");
    assert!(sandbox.sh("cat .git/proq/batches/*/warm/*.log").contains("no network"));
}

#[test]
fn an_abort_ends_it_and_a_killed_scheduler_begins_it_again() {
    let sandbox = warmed(
        "format = 1\nagent = \"worker\"\n[[task]]\nid = \"x\"\ntitle = \"X\"\n",
        &["echo warm >> $ROOT/warm; echo $$ > $ROOT/pid; [ -e $ROOT/ready ] || read line < $ROOT/go"],
    );
    sandbox.pipe("go");
    let times = || std::fs::read_to_string(sandbox.root().join("warm")).unwrap_or_default().lines().count();
    let _ = sandbox.proq(&["swarm", "plan.toml", "--yes", "--detach", "-q"]).ok();
    wait_until("its beginning", || times() == 1 && sandbox.root().join("pid").exists());
    let first = sandbox.sh("cat $ROOT/pid");
    kill_scheduler(&sandbox);
    let _ = sandbox.proq(&["resume", "--detach"]).ok();
    wait_until("its beginning again", || times() == 2);
    // Two at the same files would be in each other's way.
    assert!(!sandbox.lives(first.trim()));
    let _ = sandbox.proq(&["abort"]).ok();
    wait_until("its end", || !is_held(&sandbox));
    assert_eq!(ran(&sandbox).len(), 0);
    sandbox.sh("touch $ROOT/ready");
    let out = sandbox.proq(&["resume"]);
    assert_eq!(out.code, 0, "{}{}", out.stdout, out.stderr);
    assert_eq!(ran(&sandbox), ["x 1"]);
    sandbox.assert_healthy();
}

#[test]
fn what_the_doctor_finds_is_said_before_a_plan_is_run() {
    let sandbox = warmed("format = 1\nagent = \"worker\"\n[[task]]\nid = \"x\"\ntitle = \"X\"\n", &[]);
    sandbox.git(&["branch", "proq/z"]);
    let out = sandbox.proq(&["swarm", "plan.toml", "--yes"]);
    assert_eq!(out.code, 0, "{}", out.stderr);
    let line = "warning: branch 'proq/z' belongs to no lane and takes the name 'z': git branch -m proq/z z";
    assert!(out.stderr.contains(line), "{}", out.stderr);
}

#[test]
fn what_gets_any_lane_ready_comes_before_that() {
    let sandbox = warmed(PLAN, &["cat cache/set-up >> cache/warm"]);
    let set_up = "mkdir -p cache && echo $PROQ_LANE $(grep -c PROQ_PORT \"$PROQ_ENV_FILE\") > cache/set-up";
    sandbox.git(&["config", "proq.lane.setup", set_up]);
    worker(&sandbox, "cp cache/warm $ROOT/warm-$name");
    let _ = sandbox.proq(&["swarm", "plan.toml", "--yes", "-q"]).ok();
    let warm = |name: &str| std::fs::read_to_string(sandbox.root().join(format!("warm-{name}"))).unwrap();
    assert_eq!((warm("web"), warm("any")), ("web 10\n".into(), "any 10\n".into()));
    sandbox.assert_healthy();
}

#[test]
fn a_lane_whose_set_up_fails_is_not_worked_in_and_one_of_a_repository_needs_approval() {
    let sandbox = warmed(PLAN, &[]);
    sandbox.write("proq.toml", "[lane]\nsetup = ['test $PROQ_LANE != web']\n");
    worker(&sandbox, "true");
    let swarm = ["swarm", "plan.toml", "--yes", "--ignore-dirty"];
    assert!(sandbox.proq(&swarm).fails(1).contains("that you have not approved"));
    let _ = sandbox.proq(&["approve", "--yes"]).ok();
    let out = sandbox.proq(&swarm);
    assert_eq!(out.code, 4, "{}{}", out.stdout, out.stderr);
    assert!(
        out.stderr.contains("'test $PROQ_LANE != web' failed while lane 'web' was got ready"),
        "{}",
        out.stderr
    );
    assert!(!ran(&sandbox).iter().any(|run| run.starts_with("web")));
    assert!(sandbox.proq(&["logs", "web", "--setup"]).ok().contains("$ test $PROQ_LANE"));
}

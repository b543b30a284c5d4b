//! Tests of the steps before a task starts: lanes prepared by `swarm.pre_warm`, and warnings about the
//! repository.

use proq_test_kit::Sandbox;
use proq_test_kit::plans::{install_worker, repo_with_plan};
use proq_test_kit::waiting::wait_until;

use super::swarm::{recorded_runs, task_status};
use super::swarm_control::{kill_scheduler, scheduler_is_running};

/// Two tasks with their own scopes, and one without a scope.
const PLAN: &str = "format = 1\nagent = \"worker\"\n[[task]]\nid = \"web\"\ntitle = \"W\"\nscope = [\"web/\"]\n\
                    [[task]]\nid = \"docs\"\ntitle = \"D\"\nscope = [\"docs/\"]\n[[task]]\nid = \"any\"\ntitle = \"A\"\n";

/// Creates a repository with a plan, these `pre_warm` commands, and caches that git ignores.
fn repo_with_pre_warm(plan: &str, commands: &[&str]) -> Sandbox {
    let sandbox = repo_with_plan(plan);
    sandbox.write(".gitignore", "cache/\n");
    sandbox.commit_all("the plan");
    for command in commands {
        sandbox.git(&["config", "--add", "proq.swarm.preWarm", command]);
    }
    sandbox
}

#[test]
fn pre_warm_commands_run_by_scope() {
    let npm = "web/ => mkdir -p cache && echo $PROQ_LANE >> cache/npm";
    let sandbox = repo_with_pre_warm(PLAN, &[npm, "mkdir -p cache && echo $PROQ_LANE >> cache/all"]);
    install_worker(&sandbox, "ls cache > $ROOT/cache-$name");
    let out = sandbox.proq(&["swarm", "plan.toml", "--yes"]);
    assert_eq!(out.code, 0, "{}{}", out.stdout, out.stderr);
    let cache = |name: &str| std::fs::read_to_string(sandbox.root().join(format!("cache-{name}"))).unwrap();
    assert_eq!(
        (cache("web"), cache("docs"), cache("any")),
        ("all\nnpm\n".into(), "all\n".into(), "all\nnpm\n".into())
    );
    assert!(out.stderr.contains("lane 'docs' is set up by `mkdir -p cache"), "{}", out.stderr);
    sandbox.assert_healthy();
}

#[test]
fn pre_warm_changes_do_not_land() {
    let sandbox = repo_with_pre_warm(
        "format = 1\nagent = \"worker\"\n[[task]]\nid = \"x\"\ntitle = \"X\"\n",
        &["echo warm >> a.txt; touch new"],
    );
    let _ = sandbox.proq(&["swarm", "plan.toml", "--yes", "-q"]).ok();
    let branch = "proq/batch-20260102-030405";
    assert_eq!(sandbox.git(&["diff", "--name-only", "main", branch]), "x.txt");
}

#[test]
fn task_does_not_run_after_failed_pre_warm() {
    let sandbox = repo_with_pre_warm(PLAN, &["web/ => echo no network; exit 7"]);
    let out = sandbox.proq(&["swarm", "plan.toml", "--yes"]);
    assert_eq!(out.code, 4, "{}{}", out.stdout, out.stderr);
    assert!(out.stderr.contains("failed (exit code 7); it wrote "), "{}", out.stderr);
    assert_eq!(task_status(&sandbox, "docs")["state"], "landed");
    assert!(!recorded_runs(&sandbox).iter().any(|run| run.starts_with("web")));
    // Every command that reports progress names the reason later as well.
    let web = task_status(&sandbox, "web");
    let reason = web["detail"].as_str().unwrap();
    assert!(reason.starts_with("`echo no network; exit 7` failed (exit code 7); it wrote "), "{web:#}");
    for command in ["status", "report"] {
        let output = sandbox.proq(&["batch", command]).ok();
        assert!(output.contains(reason), "{command}: {output}");
    }
    let events = sandbox.proq(&["events"]).ok();
    assert!(events.contains("web failed: `echo no network; exit 7` failed"), "{events}");
    assert!(sandbox.sh("cat .git/proq/batches/*/warm/*.log").contains("no network"));
}

#[test]
fn abort_stops_pre_warm_and_resume_repeats_it() {
    let sandbox = repo_with_pre_warm(
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
    // Two commands on the same files would interfere.
    assert!(!sandbox.is_alive(first.trim()));
    let _ = sandbox.proq(&["abort"]).ok();
    wait_until("its end", || !scheduler_is_running(&sandbox));
    assert_eq!(recorded_runs(&sandbox).len(), 0);
    sandbox.sh("touch $ROOT/ready");
    let out = sandbox.proq(&["resume"]);
    assert_eq!(out.code, 0, "{}{}", out.stdout, out.stderr);
    assert_eq!(recorded_runs(&sandbox), ["x 1"]);
    sandbox.assert_healthy();
}

#[test]
fn doctor_findings_are_printed_before_a_plan_runs() {
    let sandbox =
        repo_with_pre_warm("format = 1\nagent = \"worker\"\n[[task]]\nid = \"x\"\ntitle = \"X\"\n", &[]);
    sandbox.git(&["branch", "proq/z"]);
    let out = sandbox.proq(&["swarm", "plan.toml", "--yes"]);
    assert_eq!(out.code, 0, "{}", out.stderr);
    let line = "warning: branch 'proq/z' belongs to no lane and blocks the name 'z'\nhint: rename it: git branch -m proq/z z";
    assert!(out.stderr.contains(line), "{}", out.stderr);
}

#[test]
fn lane_setup_runs_before_pre_warm() {
    let sandbox = repo_with_pre_warm(PLAN, &["cat cache/set-up >> cache/warm"]);
    let set_up = "mkdir -p cache && echo $PROQ_LANE $(grep -c PROQ_PORT \"$PROQ_ENV_FILE\") > cache/set-up";
    sandbox.git(&["config", "proq.lane.setup", set_up]);
    install_worker(&sandbox, "cp cache/warm $ROOT/warm-$name");
    let _ = sandbox.proq(&["swarm", "plan.toml", "--yes", "-q"]).ok();
    let warm = |name: &str| std::fs::read_to_string(sandbox.root().join(format!("warm-{name}"))).unwrap();
    assert_eq!((warm("web"), warm("any")), ("web 10\n".into(), "any 10\n".into()));
    sandbox.assert_healthy();
}

#[test]
fn failed_lane_setup_stops_task_and_needs_approval() {
    let sandbox = repo_with_pre_warm(PLAN, &[]);
    sandbox.write("proq.toml", "[lane]\nsetup = ['test $PROQ_LANE != web']\n");
    install_worker(&sandbox, "true");
    let swarm = ["swarm", "plan.toml", "--yes", "--ignore-dirty"];
    assert!(sandbox.proq(&swarm).fails(1).contains("you have not approved"));
    let _ = sandbox.proq(&["approve", "--yes"]).ok();
    let out = sandbox.proq(&swarm);
    assert_eq!(out.code, 4, "{}{}", out.stdout, out.stderr);
    assert!(
        out.stderr.contains("cannot set up lane 'web': `test $PROQ_LANE != web` failed"),
        "{}",
        out.stderr
    );
    assert!(!recorded_runs(&sandbox).iter().any(|run| run.starts_with("web")));
    assert!(sandbox.proq(&["logs", "web", "--setup"]).ok().contains("$ test $PROQ_LANE"));
}

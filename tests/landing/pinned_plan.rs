//! Tests of plans that land exactly what they forecast, or nothing.

use std::path::Path;

use proq_base::diagnostics::Listener;
use proq_lib::lane::Project;
use proq_lib::merge::types::options::LandingOptions;
use proq_lib::ops::land::merge;
use proq_lib::ops::land::merge::{MergeRequest, PinnedMergePlan};
use proq_lib::ops::reporter::SilentReporter;
use proq_test_kit::Sandbox;

/// Creates a sandbox with lane `one`, whose repository names its own author.
fn one_lane() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.sh("git config user.name Ann; git config user.email ann@example.org");
    sandbox.sh("git config proq.merge.uncommitted commit");
    sandbox.lane_with_commit("one", "echo one > one.txt");
    sandbox
}

fn open(repo: &Path) -> Project {
    Project::open(repo, Listener::silent()).unwrap()
}

/// Plans a landing of all lanes and binds it to its forecast.
fn pinned_plan(project: &Project) -> PinnedMergePlan {
    merge::plan(project, &all_lanes()).unwrap().pin(project).unwrap()
}

fn all_lanes() -> MergeRequest {
    let options = LandingOptions { all: true, ..LandingOptions::default() };
    MergeRequest { options, ..MergeRequest::default() }
}

#[test]
fn pinned_plan_lands_lanes_of_forecast() {
    let sandbox = one_lane();
    let project = open(&sandbox.repo);
    sandbox.start_lane("two", "sleep 100");
    let plan = pinned_plan(&project);
    // A lane that does not land may change.
    sandbox.commit_in_lane("two", "echo two > two.txt");
    assert_eq!(plan.fingerprint(), pinned_plan(&project).fingerprint());
    assert_eq!(plan.forecast.report.lanes.len(), 1);
    let outcome = plan.execute(&project, &SilentReporter).unwrap();
    assert!(outcome.report.lanes[0].commit.is_some());
    assert_eq!(sandbox.read("one.txt"), "one\n");
    let _ = sandbox.proq(&["stop", "two"]).ok();
}

#[test]
fn pinned_plan_is_refused_after_any_change() {
    let changes = [
        "cd .proq-worktrees/one; echo 2 > one.txt; git commit -qam 2",
        "echo 2 > .proq-worktrees/one/two.txt",
        "git commit -q --allow-empty -m 2",
        "git config proq.merge.strategy squash",
    ];
    for change in changes {
        let sandbox = one_lane();
        let project = open(&sandbox.repo);
        let plan = pinned_plan(&project);
        sandbox.sh(change);
        let base = sandbox.git(&["rev-parse", "main"]);
        assert_ne!(plan.fingerprint(), pinned_plan(&open(&sandbox.repo)).fingerprint(), "{change}");
        let error = plan.execute(&project, &SilentReporter).unwrap_err();
        let text =
            "cannot merge: the repository has changed since the plan was computed; nothing was changed";
        assert_eq!(error.to_string(), text, "{change}");
        assert_eq!(sandbox.git(&["rev-parse", "main"]), base, "{change}");
        assert!(sandbox.lane_path("one").exists(), "{change}");
    }
}

#[test]
fn landing_of_pinned_plan_forecasts_once() {
    let sandbox = one_lane();
    let token = pinned_plan(&open(&sandbox.repo)).fingerprint().as_str().to_owned();
    let mut command = sandbox.proq_command(&sandbox.repo, &["merge", "--all", "--plan-token", &token]);
    // The plan was made without this setting.
    command.env_remove("PROQ_SNAPSHOT_INTERVAL").env("PROQ_LOG", "info");
    let spans = sandbox.output(command).to_text();
    assert_eq!(sandbox.read("one.txt"), "one\n", "{spans}");
    // A forecast is an operation too.
    assert_eq!(spans.matches("operation{name=merge}: close").count(), 2, "{spans}");
}

#[test]
fn plan_has_commits_of_open_preview() {
    for commit in ["echo 2 > two.txt; git add .; git commit -qm 2", "git commit -q --allow-empty -m 2"] {
        let sandbox = one_lane();
        let _ = sandbox.proq(&["preview", "one"]).ok();
        let project = open(&sandbox.repo);
        let plan = pinned_plan(&project);
        sandbox.sh(commit);
        let error = plan.execute(&project, &SilentReporter).unwrap_err();
        assert!(error.to_string().contains("has changed since the plan was computed"), "{error}");
        let plan = pinned_plan(&project);
        let tree = plan.forecast.report.forecasts[0].tree.to_string();
        let _ = plan.execute(&project, &SilentReporter).unwrap();
        assert_eq!(sandbox.git(&["rev-parse", "main^{tree}"]), tree);
        assert_eq!(sandbox.git(&["log", "--format=%s", "-1", "main^2"]), "2");
    }
}

#[test]
fn dry_run_has_lane_with_commits_only_in_its_preview() {
    let sandbox = one_lane();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "bare"]).ok();
    let _ = sandbox.proq(&["preview", "bare"]).ok();
    sandbox.sh("echo 2 > two.txt; git add .; git commit -qm 2");
    let landing = || sandbox.proq(&["merge", "--all", "--json"]).json();
    let forecast = sandbox.proq(&["merge", "--all", "--dry-run", "--json"]).json();
    let lanes = |out: &serde_json::Value| {
        let lanes = out["lanes"].as_array().unwrap();
        lanes.iter().map(|lane| (lane["lane"].clone(), lane["result"].clone())).collect::<Vec<_>>()
    };
    assert_eq!(lanes(&forecast).len(), 2, "{forecast}");
    let tree = forecast["bases"][0]["tree"].as_str().unwrap().to_owned();
    assert_eq!(lanes(&landing()), lanes(&forecast));
    assert_eq!(sandbox.git(&["rev-parse", "main^{tree}"]), tree);
}

#[test]
fn checks_of_bases_without_landing_do_not_count() {
    let sandbox = one_lane();
    sandbox.sh("git branch other; git worktree add -q ../other other
        cd ../other; echo '[verify]\ncommands = [\"true\"]' > proq.toml; git add .; git commit -qm checks");
    let _ = sandbox.proq(&["approve", "--yes"]).ok();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "empty", "--base", "other"]).ok();
    let project = open(&sandbox.repo);
    let outcome = pinned_plan(&project).execute(&project, &SilentReporter).unwrap();
    assert!(outcome.report.lanes.iter().any(|lane| lane.commit.is_some()));
}

#[test]
fn pinned_lane_that_moves_during_checks_is_refused() {
    let lane_moves = "git -C .proq-worktrees/one commit -q --allow-empty -m 2";
    let base_moves = "git commit -q --allow-empty -m 2";
    let leave_uncommitted = "echo 2 > .proq-worktrees/one/two.txt";
    for (before, change) in [("", lane_moves), ("", base_moves), (leave_uncommitted, lane_moves)] {
        let sandbox = one_lane();
        sandbox.sh(before);
        sandbox.sh(&format!(
            "echo 'cd ${{0%/*}}/repo && [ -e ../ran ] || {{ touch ../ran; {change}; }}' > ../check
            git config proq.verify.commands \"sh $ROOT/check\""
        ));
        let project = open(&sandbox.repo);
        let outcome = pinned_plan(&project).execute(&project, &SilentReporter).unwrap();
        assert!(sandbox.root().join("ran").exists(), "{outcome:?}");
        let message = outcome.report.lanes[0].message.as_deref();
        assert_eq!(
            message,
            Some("cannot merge: the repository has changed since the plan was computed; nothing was changed")
        );
        assert!(sandbox.lane_path("one").exists() && !sandbox.repo.join("one.txt").exists(), "{change}");
        // What is planned now lands.
        let _ = pinned_plan(&project).execute(&project, &SilentReporter).unwrap();
        assert_eq!(sandbox.read("one.txt"), "one\n");
    }
}

#[test]
fn pinned_lane_without_commits_of_its_preview_is_refused() {
    let sandbox = one_lane();
    sandbox.sh("echo two.txt >> .git/info/exclude; echo kept > .proq-worktrees/one/two.txt");
    let _ = sandbox.proq(&["preview", "one"]).ok();
    sandbox.sh("echo 2 > two.txt; git add -f two.txt; git commit -qm 2");
    let project = open(&sandbox.repo);
    let outcome = pinned_plan(&project).execute(&project, &SilentReporter).unwrap();
    let message = outcome.report.lanes[0].message.as_deref();
    assert_eq!(
        message,
        Some("cannot merge: the repository has changed since the plan was computed; nothing was changed")
    );
    assert!(!sandbox.repo.join("one.txt").exists());
    assert_eq!(std::fs::read_to_string(sandbox.lane_path("one").join("two.txt")).unwrap(), "kept\n");
}

/// Promise: agent-requests/merge-plan
#[test]
fn token_of_another_plan_lands_nothing() {
    let sandbox = one_lane();
    let ran = sandbox.root().join("ran");
    sandbox.sh("git config proq.hook.pre-merge 'touch \"$ROOT/ran\"'");
    let base = sandbox.git(&["rev-parse", "main"]);
    let token = pinned_plan(&open(&sandbox.repo)).fingerprint().as_str().to_owned();
    sandbox.commit_in_lane("one", "echo 2 > one.txt");
    let refused = sandbox.proq(&["merge", "--all", "--plan-token", &token]).fails(1);
    insta::assert_snapshot!(refused, @r"
    error: cannot merge: the repository has changed since the plan was computed; nothing was changed
    hint: show what would be merged now: git proq merge --all --dry-run
    ");
    assert_eq!(sandbox.git(&["rev-parse", "main"]), base);
    assert!(!ran.exists(), "a hook ran for a plan that is not landed");
    let shown = sandbox.follow_hint(&refused, "show what would be merged now").ok();
    assert!(shown.contains("would land one on main"), "{shown}");
    assert_eq!(sandbox.git(&["rev-parse", "main"]), base);
    assert!(!ran.exists(), "a hook ran for a landing that was only shown");
}

//! Tests of the end of a run: leftover work, commits outside the lane branch, stray processes.

use proq_test_kit::snapshots::snapshot_ids;
use proq_test_kit::{Sandbox, WorktreeState};

#[test]
fn successful_run_commits_leftover_work() {
    let sandbox = Sandbox::new();
    sandbox.run_lane(
        "x",
        "git commit -q --allow-empty -m own; echo new > 'n e\tw'; echo more >> a.txt; mkdir d; echo > d/e",
    );
    insta::assert_snapshot!(sandbox.git(&["log", "--format=%s%n%b%an", "--name-status", "main..proq/x"]), @r#"
    x: uncommitted changes
    Left uncommitted by the agent of lane x.
    Ann Author

    M	a.txt
    A	d/e
    A	"n e\tw"
    own
    Ann Author
    "#);
    assert_eq!(sandbox.git_in(&sandbox.lane_path("x"), &["status", "--short"]), "");
    let _ =
        sandbox.proq(&["spawn", "--wait", "-n", "y", "--", "sh", "-c", "echo half > half; exit 1"]).fails(4);
    assert_eq!(sandbox.git_in(&sandbox.lane_path("y"), &["status", "--short"]), "?? half");
    assert_eq!(sandbox.row("y")["ahead"], 0);
}

#[test]
fn autocommit_can_be_always_or_never() {
    let sandbox = Sandbox::new();
    sandbox.git(&["config", "proq.agent.autocommit", "always"]);
    let _ =
        sandbox.proq(&["spawn", "--wait", "-n", "x", "--", "sh", "-c", "echo half > half; exit 1"]).fails(4);
    let row = sandbox.row("x");
    assert_eq!((&row["state"], &row["ahead"], &row["uncommitted"]), (&"failed".into(), &1.into(), &0.into()));
    sandbox.git(&["config", "proq.agent.autocommit", "never"]);
    sandbox.run_lane("y", "echo left > left");
    let row = sandbox.row("y");
    assert_eq!((&row["state"], &row["ahead"], &row["uncommitted"]), (&"done".into(), &0.into(), &1.into()));
}

/// Promise: snapshots/ignored-files
#[test]
fn ignored_files_count_as_no_change() {
    let sandbox = Sandbox::new();
    sandbox.write(".gitignore", "*.log\n");
    sandbox.commit_all("ignore");
    sandbox.run_lane("x", "echo noise > build.log");
    assert_eq!(sandbox.row("x")["state"], "no-change");
    assert!(sandbox.lane_path("x").join("build.log").exists());
}

/// Promise: snapshots/ignored-files
#[test]
fn ignored_files_never_enter_object_database() {
    let sandbox = Sandbox::new();
    sandbox.write(".gitignore", "*.log\n");
    sandbox.commit_all("ignore");
    let work = "echo noise > build.log; echo half > half; exit 1";
    let _ = sandbox.proq(&["spawn", "--wait", "-n", "x", "--", "sh", "-c", work]).fails(4);
    sandbox.lane_with_commit("one", "echo lane > lane.txt");
    sandbox.sh("echo noise > mine.log; echo half > mine");
    let _ = sandbox.proq(&["preview", "one"]).ok();
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    let _ = sandbox.proq(&["discard", "x", "--force"]).ok();
    let objects = sandbox.git(&["cat-file", "--batch-all-objects", "--batch-check"]);
    sandbox.write("half.probe", "half\n");
    sandbox.write("noise.probe", "noise\n");
    assert!(objects.contains(&sandbox.git(&["hash-object", "half.probe"])));
    assert!(!objects.contains(&sandbox.git(&["hash-object", "noise.probe"])));
}

/// Promise: removal/git-clean
#[test]
fn failed_copy_of_work_is_reported_with_run() {
    let sandbox = Sandbox::new();
    sandbox.git(&["config", "proq.agent.autocommit", "never"]);
    // A filter that succeeds only while the agent runs.
    sandbox.sh("echo '*.odd filter=odd' > .gitattributes; git add .; git commit -qm odd; \
                git config filter.odd.clean 'test -e \"$ROOT/gone\" && exit 1; cat'; git config filter.odd.required true");
    sandbox.run_lane("x", "echo half > half.odd; : > \"$ROOT/gone\"");
    let row = sandbox.row("x");
    let detail = row["detail"].as_str().unwrap();
    assert!(detail.contains("its uncommitted changes are only in the lane"), "{detail}");
    assert!(sandbox.lane_path("x").join("half.odd").exists());
}

/// Promise: removal/leftover-work
#[test]
fn conflict_markers_are_never_committed() {
    let sandbox = Sandbox::new();
    sandbox.run_lane("x", "printf '<<<<<<< a\\n1\\n=======\\n2\\n>>>>>>> b\\n' > a.txt; echo fine > fine");
    insta::assert_snapshot!(sandbox.proq(&["list"]).to_text(), @r"
    LANE  STATE  COMMITS  CHANGES  AGENT    UPDATED  TITLE
    x     done   -        2 files  command  0s ago   sh -ec 'printf '\''<<<<<<< a\n1\n=======\n2\n>>>>>>> b\n'\'' > a.txt; echo fine > fine'
    --- stderr
    warning: lane 'x': uncommitted work: cannot commit the work of lane 'x': a.txt has conflict markers
    --- code 0
    ");
    assert_eq!(sandbox.git(&["rev-list", "--count", "main..proq/x"]), "0");
    assert_eq!(sandbox.row("x")["uncommitted"], 2);
}

/// Promise: removal/leftover-work
#[test]
fn unresolved_merge_is_never_committed() {
    let sandbox = Sandbox::new();
    sandbox.git(&["switch", "-q", "-c", "other"]);
    sandbox.write("a.txt", "other\n");
    sandbox.commit_all("other");
    sandbox.git(&["switch", "-q", "main"]);
    sandbox.run_lane("x", "echo x > a.txt; git commit -qam mine; git merge -q other || true");
    let row = sandbox.row("x");
    insta::assert_snapshot!(row["detail"].as_str().unwrap(), @r"
    uncommitted work: cannot commit the work of lane 'x': a.txt is unmerged; a.txt has conflict markers
    ");
    assert_eq!(sandbox.git(&["log", "--format=%s", "main..proq/x"]), "mine");
}

/// Promise: removal/leftover-work
#[test]
fn embedded_repository_is_never_committed() {
    let sandbox = Sandbox::new();
    sandbox.run_lane("x", "git init -q sub; cd sub; echo 1 > f; git add f; git commit -qm inner");
    let row = sandbox.row("x");
    insta::assert_snapshot!(row["detail"].as_str().unwrap(), @r"
    uncommitted work: cannot commit the work of lane 'x': sub is a repository of its own
    ");
    assert_eq!((&row["state"], &row["ahead"]), (&"done".into(), &0.into()));
}

/// Promise: removal/detached-commits
#[test]
fn branch_follows_descending_detached_commits() {
    let sandbox = Sandbox::new();
    sandbox.run_lane("x", "git switch -q --detach; echo 1 > one; git add one; git commit -qm one");
    assert_eq!(sandbox.git(&["log", "--format=%s", "main..proq/x"]), "one");
    assert_eq!(sandbox.row("x")["state"], "done");
    let _ = sandbox.proq(&["merge", "x"]).ok();
    assert_eq!(sandbox.git(&["show", "main:one"]), "1");
}

#[test]
fn commits_leftover_work_of_detached_head() {
    let sandbox = Sandbox::new();
    sandbox.run_lane("x", "git switch -q --detach; echo 1 > one");
    assert_eq!(sandbox.git(&["log", "--format=%s", "main..proq/x", "--", "one"]).lines().count(), 1);
    assert_eq!(sandbox.row("x")["state"], "done");
}

#[test]
fn branch_follows_descending_agent_branch() {
    let sandbox = Sandbox::new();
    sandbox.run_lane("x", "git switch -q -c feature; echo 1 > one; git add one; git commit -qm one");
    assert_eq!(sandbox.git(&["rev-parse", "proq/x"]), sandbox.git(&["rev-parse", "feature"]));
    assert_eq!(sandbox.row("x")["state"], "done");
}

/// Promise: removal/detached-commits
#[test]
fn non_descending_commits_fail_the_run() {
    let sandbox = Sandbox::new();
    sandbox.write("a.txt", "second\n");
    sandbox.commit_all("second");
    let script = "echo 1 > lane; git add lane; git commit -qm lane; git switch -q -c astray main~; echo 2 > o; git add o; git commit -qm o";
    let out = sandbox.proq(&["spawn", "--wait", "-n", "x", "--", "sh", "-ec", script]);
    insta::assert_snapshot!(out.to_text(), @r"
    x: failed (commits on astray, not on proq/x)
    --- code 4
    ");
    let out = sandbox.proq(&[
        "spawn",
        "--wait",
        "-n",
        "y",
        "--",
        "sh",
        "-ec",
        &script.replace("-c astray", "--detach"),
    ]);
    insta::assert_snapshot!(out.to_text(), @r"
    y: failed (commits on a detached HEAD (3b8bb7b4), not on proq/y)
    --- code 4
    ");
    insta::assert_snapshot!(sandbox.proq(&["discard", "x"]).to_text(), @r"
    --- stderr
    error: cannot remove lane 'x': 1 commit that is not on main; commits on astray
    hint: remove it anyway; everything is saved first: git proq discard --force x
    --- code 1
    ");
}

#[test]
fn deleted_branch_fails_the_run() {
    let sandbox = Sandbox::new();
    let script = "git switch -q --detach; git branch -q -D proq/x";
    let out = sandbox.proq(&["spawn", "--wait", "-n", "x", "--", "sh", "-ec", script]);
    insta::assert_snapshot!(out.to_text(), @r"
    x: failed (branch proq/x is missing)
    --- code 4
    ");
}

#[test]
fn deleted_worktree_fails_the_run() {
    let sandbox = Sandbox::new();
    let out = sandbox.proq(&["spawn", "--wait", "-n", "x", "--", "sh", "-ec", "rm -rf \"$PWD\""]);
    insta::assert_snapshot!(out.to_text(), @r"
    x: failed (its folder is no longer a worktree)
    --- code 4
    ");
}

/// The lane record may be read before the supervisor's final write; it then holds no reason.
#[test]
fn wait_and_logs_report_vanished_supervisor() {
    let sandbox = Sandbox::new();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "x"]).ok();
    let record = sandbox.read(".git/proq/lanes/x/lane.toml");
    sandbox.write(".git/proq/lanes/x/lane.toml", &record.replace("\"idle\"", "\"running\""));
    insta::assert_snapshot!(sandbox.proq(&["wait", "x"]).to_text(), @r"
    x: failed (its supervisor crashed)
    --- code 4
    ");
    // `logs -f` reports it too.
    sandbox.run_lane("y", "echo said; echo 1 > one");
    let record = sandbox.read(".git/proq/lanes/y/lane.toml");
    sandbox.write(".git/proq/lanes/y/lane.toml", &record.replace("\"done\"", "\"running\""));
    insta::assert_snapshot!(sandbox.proq(&["logs", "-f", "y"]).to_text(), @r"
    said
    --- stderr
    y: failed (its supervisor crashed)
    --- code 0
    ");
}

#[test]
fn kills_processes_left_by_agent() {
    let sandbox = Sandbox::new();
    sandbox.run_lane("x", "sleep 600 & echo $! > \"$ROOT/pid\"; echo 1 > one");
    let pid = std::fs::read_to_string(sandbox.root().join("pid")).unwrap();
    assert!(!sandbox.is_alive(pid.trim()), "process {pid}");
    assert_eq!(sandbox.row("x")["state"], "done");
}

/// Promise: removal/git-clean
#[test]
fn snapshot_of_uncommitted_work_survives_git_clean() {
    let sandbox = Sandbox::new();
    sandbox.write(".gitignore", "*.log\n");
    sandbox.commit_all("ignore");
    let work =
        "echo half >> a.txt; git add a.txt; echo more >> a.txt; echo new > new; echo log > x.log; exit 1";
    let _ = sandbox.proq(&["spawn", "--wait", "-n", "x", "--", "sh", "-c", work]).fails(4);
    let before = WorktreeState::capture(&sandbox, &sandbox.lane_path("x"));
    let snaps = sandbox.proq(&["snap", "list", "--json"]).json();
    assert_eq!(snaps["snapshots"].as_array().unwrap().len(), 1, "{snaps:#}");
    let snap = &snaps["snapshots"][0];
    assert_eq!((&snap["state"], &snap["restored"]), (&"copy".into(), &serde_json::Value::Null));
    assert_eq!(snap["why"], "left uncommitted in lane x by its run 1");
    sandbox.assert_healthy();

    sandbox.sh("git clean -ffdxq; git worktree prune; git worktree add -q .proq-worktrees/x proq/x");
    let id = snapshot_ids(&sandbox).pop().unwrap();
    let _ = sandbox.proq_in(&sandbox.lane_path("x"), &["snap", "restore", &id]).ok();
    let after = WorktreeState::capture(&sandbox, &sandbox.lane_path("x"));
    assert_eq!(before.index, after.index);
    let mut files = before.files;
    files.retain(|path, _| !format!("{path:?}").contains("x.log"));
    assert_eq!(files, after.files);
}

#[test]
fn no_snapshot_of_clean_lane_or_open_conflict() {
    let sandbox = Sandbox::new();
    sandbox.run_lane("clean", "echo new > new");
    sandbox.run_lane("torn", "git switch -qc o; echo 1 > f; git add f; git commit -qm 1; git switch -q -; echo 2 > f; git add f; git commit -qm 2; git merge -q o || :");
    assert_eq!(snapshot_ids(&sandbox), [""; 0]);
    assert_eq!(sandbox.row("clean")["state"], "done");
}

/// Promise: removal/foreign-branch
#[test]
fn leftover_work_on_foreign_branch_not_committed() {
    let sandbox = Sandbox::new();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "other"]).ok();
    sandbox.sh("GIT_COMMITTER_DATE=2020-01-01T00:00:00Z git branch feature");
    let before = sandbox.git(&["for-each-ref", "--format=%(refname) %(objectname)", "refs/heads"]);
    for (name, branch) in [("a", "main"), ("b", "proq/other"), ("c", "feature")] {
        sandbox.run_lane(name, &format!("git checkout -q --ignore-other-worktrees {branch}; echo 1 > one"));
        let detail = sandbox.row(name)["detail"].as_str().unwrap().to_owned();
        assert!(detail.ends_with(&format!("HEAD is on {branch}, not on proq/{name}")), "{detail}");
        assert_eq!(std::fs::read_to_string(sandbox.lane_path(name).join("one")).unwrap(), "1\n");
        sandbox.git(&["config", "proq.merge.uncommitted", "commit"]);
        let output = sandbox.proq(&["merge", name]).fails(1);
        assert!(output.contains(&format!("its worktree is on {branch}, not on proq/{name}")), "{output}");
        sandbox.git(&["config", "--unset", "proq.merge.uncommitted"]);
    }
    let now = sandbox.git(&["for-each-ref", "--format=%(refname) %(objectname)", "refs/heads"]);
    let old: Vec<&str> = before.lines().collect();
    assert_eq!(now.lines().filter(|line| old.contains(line)).count(), old.len(), "{now}");
    assert_eq!(sandbox.git(&["status", "--short"]), "");
}

#[test]
fn leftover_work_on_agent_branch_joins_lane() {
    let sandbox = Sandbox::new();
    sandbox.run_lane("x", "git switch -q -c feature; echo 1 > one");
    assert_eq!(sandbox.git(&["show", "proq/x:one"]), "1");
    assert_eq!(sandbox.row("x")["state"], "done");
}

/// Promise: removal/foreign-branch
#[test]
fn foreign_commits_are_not_the_lanes_work() {
    let sandbox = Sandbox::new();
    sandbox.run_lane("other", "echo w > w; git add w; git commit -qm WIP");
    let start = sandbox.git(&["rev-parse", "main"]);
    sandbox.run_lane("look", "git checkout -q --detach proq/other");
    assert_eq!(sandbox.row("look")["state"], "no-change");
    sandbox.run_lane("wind", "git checkout -q --detach; git merge -q --ff-only proq/other");
    assert_eq!(sandbox.row("wind")["state"], "no-change");
    let script = "git checkout -q --detach proq/other; echo x > x; git add x; git commit -qm mine";
    let out = sandbox.proq(&["spawn", "--wait", "-n", "top", "--", "sh", "-ec", script]);
    assert!(
        out.stdout.contains("failed (commits with those of lane 'other' on a detached HEAD"),
        "{}",
        out.to_text()
    );
    for name in ["look", "wind", "top"] {
        assert_eq!(sandbox.git(&["rev-parse", &format!("proq/{name}")]), start, "{name}");
    }
}

#[test]
fn checkout_of_moved_base_is_no_change() {
    let sandbox = Sandbox::new();
    let script = "git -C \"$ROOT/repo\" -c core.hooksPath=/dev/null commit -q --allow-empty -m moved; git checkout -q --detach main";
    sandbox.run_lane("x", &format!("unset GIT_CONFIG_PARAMETERS; {script}"));
    assert_eq!(sandbox.row("x")["state"], "no-change");
}

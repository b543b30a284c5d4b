//! Tests of the checks of a landing: which state they run on, the effect of a failure, and the verify cache.

use proq_test_kit::Sandbox;

/// Returns the first check worktree.
fn check_worktree(sandbox: &Sandbox) -> std::path::PathBuf {
    let location = sandbox.root().join("home/.cache/git-proq/verify");
    let mut dirs = std::fs::read_dir(location).unwrap().flatten().map(|e| e.path());
    let dir = dirs.next().unwrap();
    assert!(dirs.next().is_none());
    dir.join("git-proq-checks-1")
}

/// Returns how many lines a check has written to a file of the sandbox.
fn line_count(sandbox: &Sandbox, file: &str) -> usize {
    std::fs::read_to_string(sandbox.root().join(file)).map_or(0, |text| text.lines().count())
}

/// Asserts that checks left no ref, no work folder and no lane behind.
#[track_caller]
fn assert_tidy(sandbox: &Sandbox) {
    assert_eq!(sandbox.git(&["for-each-ref", "refs/proq/pending"]), "");
    let work = std::fs::read_dir(sandbox.repo.join(".git/proq/work")).into_iter().flatten().count();
    assert_eq!(work, 0, "something is left in work/");
    sandbox.assert_healthy();
    let _ = sandbox.proq(&["gc", "--dry-run"]).ok();
    assert!(!sandbox.proq(&["list", "--all"]).ok().contains("git-proq-checks"));
    assert!(sandbox.proq(&["cleanup"]).stderr.lines().all(|line| !line.contains("git-proq-checks")));
}

/// Promise: checks/exact-commit
#[test]
fn checks_run_on_the_tree_that_lands() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("one", "echo one > one.txt");
    sandbox.lane_with_commit("two", "echo two > two.txt");
    sandbox.sh("for hook in post-checkout post-index-change; do
             echo '#!/bin/sh' > .git/hooks/$hook; chmod +x .git/hooks/$hook
             echo 'case $PWD in */git-proq-checks-1) echo $0 >> \"$ROOT/hooked\";; esac' >> .git/hooks/$hook
         done");
    let check = "export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=core.hooksPath GIT_CONFIG_VALUE_0=/dev/null; \
                 git rev-parse HEAD^{tree} >> $ROOT/trees; git status --porcelain --ignored >> $ROOT/status; \
                 git write-tree >> $ROOT/trees; ls >> $ROOT/files; pwd > $ROOT/where; \
                 echo \"$PROQ_VERIFY $PROQ_LANES on $PROQ_BASE ${GIT_DIR-none}\" > $ROOT/env";
    let out = sandbox.proq(&["merge", "--all", "--verify", check]);
    assert_eq!(out.code, 0, "{}", out.stderr);
    assert!(out.stderr.contains("checks passed for 2 lanes on main (1 run)"), "{}", out.stderr);
    let tree = sandbox.git(&["rev-parse", "main^{tree}"]);
    let read = |file: &str| std::fs::read_to_string(sandbox.root().join(file)).unwrap();
    assert_eq!(read("trees"), format!("{tree}\n{tree}\n"));
    assert_eq!((read("status").as_str(), read("files").as_str()), ("", "a.txt\none.txt\ntwo.txt\n"));
    assert_eq!(read("env"), "1 one two on main none\n");
    assert_eq!(read("where").trim(), check_worktree(&sandbox).display().to_string());
    assert!(!sandbox.root().join("hooked").exists(), "the repository's hook ran for a check");
    assert_eq!(
        sandbox.git_in(&check_worktree(&sandbox), &["rev-parse", "HEAD"]),
        sandbox.git(&["rev-parse", "main"])
    );
    assert_tidy(&sandbox);
    sandbox.git(&["branch", "-m", "main", "trunk"]);
}

/// Promise: checks/blame
#[test]
fn failed_check_refuses_lane_and_saves_its_log() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("bad", "echo bad > bad.txt");
    let before = sandbox.git(&["rev-parse", "main"]);
    let check = "echo looking; echo aside >&2; test ! -e bad.txt || { echo 'it is bad' >&2; exit 7; }";
    let out = sandbox.proq(&["merge", "bad", "--verify", check]);
    assert_eq!(out.code, 4, "{}", out.stderr);
    assert_eq!(sandbox.git(&["rev-parse", "main"]), before);
    assert_eq!(sandbox.git(&["status", "--short"]), "");
    let text = out.stdout.replace(check, "CHECK");
    insta::assert_snapshot!(text, @r"
    check failed on bad: `CHECK` failed (exit code 7), but passes on main
        $ CHECK
        looking
        aside
        it is bad
    ");
    assert_eq!(sandbox.row("bad")["state"], "check-failed");
    let log = sandbox.proq(&["logs", "bad", "--check"]).ok();
    let once = format!("$ {check}\nlooking\naside\nit is bad\n");
    assert_eq!(log, format!("{once}--- retry\n{once}"));
    let shown = sandbox.proq(&["show", "bad"]).ok();
    assert!(shown.contains("failed with this lane on main: exit code 7"), "{shown}");
    let shown = sandbox.proq(&["show", "bad", "--json"]).json();
    assert_eq!((&shown["check"]["command"], &shown["check"]["onto"]), (&check.into(), &"main".into()));
    assert_eq!(sandbox.proq(&["logs", "bad", "--check", "--json"]).json()["text"], log);
    assert!(sandbox.proq(&["events", "--json", "--last", "1"]).ok().contains("merge.check-failed"));
    assert_tidy(&sandbox);
    // `merge --all` retries it when the lane or its base has moved.
    let out = sandbox.proq(&["merge", "--all", "--verify", check]);
    assert!(
        out.stderr
            .contains("skipped bad: its checks failed, and neither the lane nor its base has moved since")
    );
    sandbox.commit_in_lane("bad", "git rm -q bad.txt; echo good > good.txt");
    let _ = sandbox.proq(&["merge", "--all", "--verify", check]).ok();
    assert_eq!(sandbox.read("good.txt"), "good\n");
    assert!(sandbox.row("bad").is_null() || sandbox.row("bad")["state"] == "landed");
    // `undo` restores the state before the landing, after the lane was repaired.
    let _ = sandbox.proq(&["undo"]).ok();
    assert_eq!((sandbox.git(&["rev-parse", "main"]), &sandbox.row("bad")["state"]), (before, &"done".into()));
    assert_eq!(sandbox.proq(&["logs", "bad", "--check"]).ok(), log);
    assert_tidy(&sandbox);
}

#[test]
fn check_sees_files_outside_sparse_checkout() {
    let sandbox = Sandbox::new();
    sandbox.write("hidden/file", "there\n");
    sandbox.commit_all("more");
    sandbox.sh("git sparse-checkout set shown; test ! -e hidden");
    sandbox.lane_with_commit("one", "echo one > one.txt");
    let check = "cat hidden/file one.txt > $ROOT/seen";
    let _ = sandbox.proq(&["merge", "one", "--verify", check]).ok();
    assert_eq!(std::fs::read_to_string(sandbox.root().join("seen")).unwrap(), "there\none\n");
    assert!(!sandbox.repo.join("hidden").exists());
}

#[test]
fn merge_json_contains_the_check() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("good", "echo good > good.txt");
    sandbox.lane_with_commit("bad", "echo bad > bad.txt");
    let answer = sandbox.proq(&["merge", "good", "bad", "--json", "--verify", "test ! -e bad.txt"]).json();
    assert_eq!(
        (&answer["lanes"][0]["lane"], &answer["lanes"][0]["result"]),
        (&"good".into(), &"landed".into())
    );
    let line = &answer["lanes"][1];
    assert_eq!((&line["lane"], &line["result"]), (&"bad".into(), &"check-failed".into()));
    assert_eq!(line["check"]["ended"]["code"], 1);
    assert_eq!(line["check"]["with"], serde_json::json!(["good"]));
    let log = line["check"]["log"].as_str().unwrap().replace("[ROOT]", &sandbox.root().display().to_string());
    assert!(log.contains("/lanes/bad/checks/"), "{log}");
    assert_eq!(answer["checks"]["commands"], serde_json::json!(["test ! -e bad.txt"]));
    // The full stack twice, the base, and the lower lane; the remaining results were known then.
    assert_eq!(answer["checks"]["runs"], 4);
}

/// Promise: checks/flaky
#[test]
fn flaky_check_is_retried_and_reported() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("one", "echo one > one.txt");
    let check = "echo run >> $ROOT/runs; test \"$(wc -l < $ROOT/runs)\" -ne 1";
    let out = sandbox.proq(&["merge", "one", "--verify", check]);
    assert_eq!(out.code, 0, "{}", out.stderr);
    assert!(out.stderr.contains("failed and then succeeded on the same files (main with one): it is flaky"));
    assert_eq!(line_count(&sandbox, "runs"), 2);
    assert_eq!(sandbox.read("one.txt"), "one\n");
    // A flaky success is not cached.
    let _ = sandbox.proq(&["undo"]).ok();
    let _ = sandbox.proq(&["merge", "one", "--verify", check]).ok();
    assert_eq!(line_count(&sandbox, "runs"), 3);
}

/// Promise: checks/time-limit
#[test]
fn check_timeout_kills_its_child_processes() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("slow", "echo slow > slow.txt");
    let check = "test ! -e slow.txt || { sleep 600 & echo $! > $ROOT/pid; wait; }";
    let mut command = sandbox.proq_command(&sandbox.repo, &["merge", "slow", "--verify", check]);
    command.env("PROQ_VERIFY_TIMEOUT", "1");
    let out = sandbox.output(command);
    assert_eq!(out.code, 4, "{}", out.stderr);
    assert!(out.stdout.contains("timed out after 1 s"), "{}", out.stdout);
    let pid = std::fs::read_to_string(sandbox.root().join("pid")).unwrap();
    assert!(!sandbox.is_alive(pid.trim()));
    assert_tidy(&sandbox);
}

/// Promise: checks/isolation
#[test]
fn check_worktree_keeps_only_ignored_files() {
    let sandbox = Sandbox::new();
    sandbox.write(".gitignore", "build/\n");
    sandbox.commit_all("ignore");
    sandbox.lane_with_commit("one", "echo one > one.txt");
    sandbox.lane_with_commit("two", "echo two > two.txt");
    let check = "ls -A >> $ROOT/seen; mkdir -p build nested/deep; date >> build/out; echo x > nested/deep/left; \
                 git init -q inner; echo changed > a.txt; git add -A . 2>&1; git commit -qm own 2>&1; git switch -qc own-$$; exit 0";
    let _ = sandbox.proq(&["merge", "one", "--verify", check]).ok();
    let first = check_worktree(&sandbox);
    assert_eq!(line_count(&sandbox, "seen"), 4);
    // A branch that a check switched to is checked out nowhere afterwards.
    assert!(!sandbox.git(&["worktree", "list"]).contains("own-"));
    let _ = sandbox.proq(&["merge", "two", "--verify", check]).ok();
    assert_eq!(check_worktree(&sandbox), first);
    let seen = std::fs::read_to_string(sandbox.root().join("seen")).unwrap();
    let seen: Vec<&str> = seen.lines().skip(4).collect();
    assert_eq!(seen, [".git", ".gitignore", "a.txt", "build", "one.txt", "two.txt"]);
    assert_eq!(line_count(&sandbox, first.join("build/out").to_str().unwrap()), 2);
    assert_eq!(sandbox.read("a.txt"), "a\n");
    assert_eq!(sandbox.git(&["log", "-1", "--format=%s", "main"]), "Merge lane two");
}

#[test]
fn verify_cache_skips_known_good_landing() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("one", "echo one > one.txt");
    let check = "echo run >> $ROOT/runs";
    let _ = sandbox.proq(&["merge", "one", "--verify", check]).ok();
    let _ = sandbox.proq(&["undo"]).ok();
    let out = sandbox.proq(&["merge", "one", "--verify", check]);
    assert!(out.stderr.contains("checks passed for 1 lane on main (passed before)"), "{}", out.stderr);
    assert_eq!(line_count(&sandbox, "runs"), 1);
    // Another environment, other commands and another tree are not in the cache.
    let merge = |path: &str, second_check: &str| {
        let _ = sandbox.proq(&["undo"]).ok();
        let mut command = sandbox
            .proq_command(&sandbox.repo, &["merge", "one", "--verify", check, "--verify", second_check]);
        command.env("SOME_FLAG", path);
        let _ = sandbox.output(command).ok();
        line_count(&sandbox, "runs")
    };
    assert_eq!([merge("a", "true"), merge("b", "true"), merge("b", ":"), merge("a", "true")], [2, 3, 4, 4]);
    sandbox.write("more.txt", "more\n");
    let _ = sandbox.proq(&["undo"]).ok();
    sandbox.commit_all("more");
    let _ = sandbox.proq(&["merge", "one", "--verify", check]).ok();
    assert_eq!(line_count(&sandbox, "runs"), 5);
    // Thirty days later the result has expired, and gc deletes it.
    let freed = sandbox.proq_at("2026-02-02T03:04:06Z", &["gc", "--dry-run"]).ok();
    assert!(freed.contains("would free 5 results of checks"), "{freed}");
}

/// Checks apply to commits: other commits with the same files are checked again, for every strategy.
/// Promise: checks/exact-commit
#[test]
fn checks_again_other_commits_with_same_files() {
    for strategy in ["merge", "rebase", "squash"] {
        let sandbox = Sandbox::new();
        sandbox.lane_with_commit("one", "echo one > one.txt");
        // Lets a rebase create new commits.
        sandbox.write("more.txt", "more\n");
        sandbox.commit_all("more");
        sandbox.git_in(&sandbox.lane_path("one"), &["commit", "-q", "--amend", "-m", "good"]);
        let check = "echo run >> $ROOT/runs; ! git log --format=%s | grep -q bad";
        let merge = || sandbox.proq(&["merge", "one", "--strategy", strategy, "--verify", check]);
        let _ = merge().ok();
        let _ = sandbox.proq(&["undo"]).ok();
        // The same commits are in the cache.
        let out = merge();
        assert!(out.stderr.contains("passed before"), "{strategy}: {}", out.stderr);
        assert_eq!((out.code, line_count(&sandbox, "runs")), (0, 1), "{strategy}");
        let _ = sandbox.proq(&["undo"]).ok();
        let before = sandbox.git(&["rev-parse", "main"]);
        sandbox.git_in(&sandbox.lane_path("one"), &["commit", "-q", "--amend", "-m", "bad"]);
        let message = merge().fails(4);
        assert!(message.contains("check failed on one"), "{strategy}: {message}");
        assert_eq!(sandbox.git(&["rev-parse", "main"]), before, "{strategy}");
        // Another base with the same files is checked again as well.
        sandbox.git_in(&sandbox.lane_path("one"), &["commit", "-q", "--amend", "-m", "good"]);
        let count = line_count(&sandbox, "runs");
        sandbox.git(&["commit", "-q", "--allow-empty", "-m", "empty"]);
        let _ = merge().ok();
        assert_eq!(line_count(&sandbox, "runs"), count + 1, "{strategy}");
    }
}

/// A check may read the variables that git-proq sets for it.
/// Promise: checks/exact-commit
#[test]
fn checks_again_other_lanes_with_same_files() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("a", "echo same > same.txt");
    sandbox.lane_with_commit("b", "echo same > same.txt");
    let check = "test \"$PROQ_LANES\" != b";
    let _ = sandbox.proq(&["merge", "a", "--verify", check]).ok();
    let _ = sandbox.proq(&["undo"]).ok();
    let message = sandbox.proq(&["merge", "b", "--verify", check]).fails(4);
    assert!(message.contains("check failed on b"), "{message}");
    assert!(!sandbox.repo.join("same.txt").exists());
    let out = sandbox.proq(&["merge", "a", "--verify", check]);
    assert!(out.stderr.contains("passed before"), "{}", out.stderr);
}

#[test]
fn dry_run_lists_checks_and_runs_none() {
    let sandbox = Sandbox::new();
    sandbox.write("proq.toml", "[verify]\ncommands = ['echo theirs >> $ROOT/runs']\n");
    sandbox.commit_all("settings");
    sandbox.lane_with_commit("one", "echo one > one.txt");
    let out = sandbox.proq(&["merge", "one", "--dry-run", "--verify", "echo mine >> $ROOT/runs"]);
    insta::assert_snapshot!(out.to_text(), @r"
    would land one on main
    would check with: echo theirs >> $ROOT/runs, once it is approved
    would check with: echo mine >> $ROOT/runs
    1 file changed, 1 insertion(+)
    --- stderr
    hint: read and approve the checks: git proq approve
    --- code 1
    ");
    assert_eq!(line_count(&sandbox, "runs"), 0);
}

#[test]
fn users_own_checks_need_no_approval() {
    let sandbox = Sandbox::new();
    sandbox.git(&["config", "--add", "proq.verify.commands", "echo first >> $ROOT/runs"]);
    sandbox.git(&["config", "--add", "proq.verify.commands", "echo second >> $ROOT/runs"]);
    sandbox.lane_with_commit("one", "echo one > one.txt");
    sandbox.lane_with_commit("two", "echo two > two.txt");
    let _ = sandbox.proq(&["merge", "one"]).ok();
    assert_eq!(std::fs::read_to_string(sandbox.root().join("runs")).unwrap(), "first\nsecond\n");
    let _ = sandbox.proq(&["merge", "two", "--no-checks"]).ok();
    assert_eq!(line_count(&sandbox, "runs"), 2);
}

/// Promise: checks/approval
#[test]
fn repository_checks_run_only_after_approval() {
    let sandbox = Sandbox::new();
    let settings = |command: &str| {
        sandbox.write("proq.toml", &format!("[verify]\ncommands = ['{command}']\n"));
        sandbox.commit_all("settings");
    };
    settings("echo run >> $ROOT/runs");
    sandbox.lane_with_commit("one", "echo one > one.txt");
    sandbox.lane_with_commit("two", "echo two > two.txt");
    let before = sandbox.git(&["for-each-ref"]);
    insta::assert_snapshot!(sandbox.proq(&["merge", "one"]).to_text(), @r"
    --- stderr
    error: cannot merge: you have not approved these checks of [ROOT]/repo/proq.toml: echo run >> $ROOT/runs
    hint: read and approve them: git proq approve
    hint: or add --no-checks to merge without them
    --- code 1
    ");
    insta::assert_snapshot!(sandbox.proq(&["approve"]).to_text(), @r"
    0a5acd5b  verify  echo run >> $ROOT/runs  ([ROOT]/repo/proq.toml; not approved)
    --- stderr
    error: cannot ask about the commands of this repository's proq.toml: not a terminal; nothing was approved
    hint: approve them without asking: git proq approve --yes
    --- code 1
    ");
    assert_eq!((sandbox.git(&["for-each-ref"]), line_count(&sandbox, "runs")), (before, 0));
    insta::assert_snapshot!(sandbox.proq(&["approve", "--yes"]).to_text(), @r"
    0a5acd5b  verify  echo run >> $ROOT/runs  ([ROOT]/repo/proq.toml; not approved)
    approved 1 command
    --- code 0
    ");
    insta::assert_snapshot!(sandbox.proq(&["approve", "--list"]).to_text(), @r"
    0a5acd5b  verify  echo run >> $ROOT/runs  (2026-01-02T03:04:05Z)
    --- code 0
    ");
    let _ = sandbox.proq(&["merge", "one"]).ok();
    assert_eq!(line_count(&sandbox, "runs"), 1);
    settings("echo other >> $ROOT/runs");
    let refusal = sandbox.proq(&["merge", "two"]).fails(1);
    assert!(refusal.contains("you have not approved") && refusal.contains(": echo other"), "{refusal}");
    assert_eq!(line_count(&sandbox, "runs"), 1);
    settings("echo run >> $ROOT/runs");
    let _ = sandbox.proq(&["approve", "--revoke"]).ok();
    let _ = sandbox.proq(&["merge", "two"]).fails(1);
    let _ = sandbox.proq(&["merge", "two", "--no-checks"]).ok();
    assert_eq!(line_count(&sandbox, "runs"), 1);
    let answer = sandbox.proq(&["approve", "--json", "--dry-run"]).json();
    assert_eq!(
        (&answer["commands"][0]["approved"], &answer["approved"]),
        (&false.into(), &serde_json::json!([]))
    );
}

/// Promise: checks/foreign-folder
#[test]
fn refuses_foreign_verify_location() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("one", "echo one > one.txt");
    let merge = |location: &str| {
        // A new command each time, so that the result is not cached.
        let check = format!(": {location}");
        let mut command = sandbox.proq_command(&sandbox.repo, &["merge", "one", "--verify", &check]);
        command.env("PROQ_VERIFY_LOCATION", location);
        sandbox.output(command)
    };
    let inside = sandbox.repo.join(".checks").display().to_string();
    assert!(merge(&inside).fails(1).contains("verify.location is inside the repository"));
    let _ = merge(&sandbox.root().join("place").display().to_string()).ok();
    let _ = sandbox.proq(&["undo"]).ok();
    let other = sandbox.root().join("other");
    let name = worktree_folder_name(&sandbox.root().join("place"));
    sandbox.write_in(&other.join(&name), "precious", "mine\n");
    assert!(merge(&other.display().to_string()).fails(1).contains("git-proq did not create this folder"));
    assert_eq!(std::fs::read_to_string(other.join(&name).join("precious")).unwrap(), "mine\n");
    assert_eq!(sandbox.git(&["status", "--short"]), "");
    assert_tidy(&sandbox);
}

fn worktree_folder_name(location: &std::path::Path) -> String {
    let entry = std::fs::read_dir(location).unwrap().flatten().next().unwrap();
    entry.file_name().into_string().unwrap()
}

#[test]
fn check_worktree_with_its_former_name_is_removed() {
    let sandbox = Sandbox::new();
    let check = |lane: &str| {
        sandbox.lane_with_commit(lane, &format!("echo {lane} > {lane}.txt"));
        let _ = sandbox.proq(&["merge", lane, "--verify", "true"]).ok();
    };
    check("one");
    let former = check_worktree(&sandbox).with_file_name("slot-0");
    sandbox.git(&["worktree", "add", "-q", "--detach", former.to_str().unwrap()]);
    std::fs::write(former.join("cached"), "").unwrap();
    check("two");
    assert!(!former.exists() && check_worktree(&sandbox).exists());
    assert!(!sandbox.git(&["worktree", "list", "--porcelain"]).contains("slot-0"));
    assert_tidy(&sandbox);
}

/// Promise: checks/isolation
#[test]
fn damaged_check_worktree_is_created_again() {
    let sandbox = Sandbox::new();
    let check =
        "git status --porcelain >> $ROOT/status; cat a.txt >> $ROOT/seen; git rev-parse HEAD >> $ROOT/heads";
    for (n, damage) in
        [":", "rm -r ../git-proq-checks-1", "rm .git", "rm a.txt; mkdir -p a.txt/b", "rm -r ../../*"]
            .iter()
            .enumerate()
    {
        let lane = format!("l{n}");
        if n > 0 {
            sandbox.sh_in(&check_worktree(&sandbox), damage);
        }
        sandbox.lane_with_commit(&lane, &format!("echo {n} > {lane}.txt"));
        let _ = sandbox.proq(&["merge", &lane, "--verify", check]).ok();
        let heads = std::fs::read_to_string(sandbox.root().join("heads")).unwrap();
        assert_eq!(heads.lines().last().unwrap(), sandbox.git(&["rev-parse", "main"]), "{damage}");
    }
    assert_eq!(std::fs::read_to_string(sandbox.root().join("status")).unwrap(), "");
    assert_eq!(std::fs::read_to_string(sandbox.root().join("seen")).unwrap(), "a\n".repeat(5));
    assert_tidy(&sandbox);
    std::fs::remove_dir_all(sandbox.root().join("home/.cache")).unwrap();
    assert_tidy(&sandbox);
    sandbox.git(&["worktree", "prune"]);
    assert_tidy(&sandbox);
}

/// Promise: checks/removed-worktree
#[test]
fn names_check_that_removes_its_worktree() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("one", "echo one > one.txt");
    let main = sandbox.git(&["rev-parse", "main"]);
    for check in ["rm -f .git; true", "rm -rf ../*; true"] {
        let out = sandbox.proq(&["merge", "one", "--verify", check]);
        let message = "refused one: the checks removed their worktree: ";
        assert!(out.code == 1 && out.stdout.starts_with(message), "{}", out.to_text());
        assert_eq!(out.stderr, "hint: merge without checks: git proq merge --no-checks one\n");
        assert_eq!(sandbox.git(&["rev-parse", "main"]), main);
    }
    let _ = sandbox.proq(&["merge", "one", "--verify", "true"]).ok();
    assert_tidy(&sandbox);
}

#[test]
fn moved_lane_or_new_checks_lift_failed_check() {
    let sandbox = Sandbox::new();
    sandbox.git(&["config", "proq.verify.commands", "test ! -e bad.txt"]);
    sandbox.lane_with_commit("bad", "echo bad > bad.txt");
    let _ = sandbox.proq(&["merge", "--all"]).fails(4);
    assert_eq!(sandbox.row("bad")["state"], "check-failed");
    let left_out = "skipped bad: its checks failed";
    assert!(sandbox.proq(&["merge", "--all", "--dry-run"]).stderr.contains(left_out));
    // Other checks may succeed where these failed.
    sandbox.git(&["config", "proq.verify.commands", "true"]);
    let out = sandbox.proq(&["merge", "--all", "--dry-run"]).to_text();
    assert!(out.contains("would land bad") && !out.contains("skipped"), "{out}");
    sandbox.git(&["config", "proq.verify.commands", "test ! -e bad.txt"]);
    assert!(sandbox.proq(&["merge", "--all", "--dry-run"]).stderr.contains(left_out));
    assert_eq!(sandbox.row("bad")["state"], "check-failed");
    // The same holds for a repaired lane.
    sandbox.commit_in_lane("bad", "git rm -q bad.txt; echo good > good.txt");
    assert_eq!(sandbox.row("bad")["state"], "done");
    let shown = sandbox.proq(&["show", "bad"]).ok();
    assert!(!shown.contains("check-failed") && !shown.contains("check failed"), "{shown}");
    let _ = sandbox.proq(&["merge", "--all"]).ok();
    assert!(sandbox.repo.join("good.txt").exists());
}

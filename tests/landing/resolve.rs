//! `git proq resolve`: what is accepted, what is refused and why, and that no work is ever lost.

use proq_test_kit::Sandbox;
use proq_test_kit::conflict::{GOOD_SCRIPT, RESOLVED, resolve_worktree, sandbox_with_conflict};

/// Runs an agent with this script and returns the reason why its resolution is refused.
#[track_caller]
fn refusal_reason(sandbox: &Sandbox, script: &str) -> String {
    sandbox.program("bad", script);
    let tip = sandbox.git(&["rev-parse", "proq/clash"]);
    let error = sandbox.proq(&["resolve", "clash", "--agent", "bad"]).fails(3);
    assert_eq!(sandbox.git(&["rev-parse", "proq/clash"]), tip);
    assert_eq!(sandbox.row("clash")["state"], "conflict");
    let line = error.lines().find(|l| l.starts_with("error:")).unwrap();
    let reason = line.split_once("in 1 attempt: ").unwrap().1;
    reason.to_owned()
}

#[test]
fn agent_resolution_lets_lane_land() {
    let sandbox = sandbox_with_conflict();
    let out = sandbox.proq(&["resolve", "clash", "--agent", "good"]);
    let tip = sandbox.git(&["rev-parse", "--short=8", "proq/clash"]);
    insta::assert_snapshot!(out.to_text().replace(&tip, "[COMMIT]"), @r"
    resolved by good: merged main into lane 'clash' ([COMMIT]); 1 file conflicted
    --- stderr
    good resolves the conflict of clash with main in 1 file; follow it: git proq logs -f clash
    hint: show it: git proq diff clash
    hint: merge it: git proq merge clash
    --- code 0
    ");
    insta::assert_snapshot!(sandbox.git(&["log", "-1", "--format=%an, %cn%n%B", "proq/clash"]), @r"
    Ann Author, Cal Committer
    Merge branch 'main' into proq/clash

    Conflicts:
    	long.txt

    Proq-Lane: clash
    Proq-Resolved-By: good
    ");
    assert_eq!(sandbox.git(&["rev-parse", "proq/clash^2"]), sandbox.git(&["rev-parse", "main"]));
    assert_eq!(std::fs::read_to_string(sandbox.lane_path("clash").join("long.txt")).unwrap(), RESOLVED);
    assert_eq!(sandbox.git_in(&sandbox.lane_path("clash"), &["status", "--short"]), "");
    assert_eq!(sandbox.row("clash")["state"], "done");
    assert_eq!(sandbox.row("clash")["agent"], "plain-agent", "who made the lane is not who resolved it");
    assert!(!resolve_worktree(&sandbox).exists());
    assert_eq!(
        sandbox.git(&["for-each-ref", "refs/proq/resolve", "refs/proq/conflict", "refs/proq/saved"]),
        ""
    );
    sandbox.assert_healthy();
    let _ = sandbox.proq(&["merge", "clash"]).ok();
    assert_eq!(sandbox.read("long.txt"), RESOLVED);
}

#[test]
fn resolving_run_has_log_record_and_prompt() {
    let sandbox = sandbox_with_conflict();
    sandbox.program("good", &format!("cat \"$PROQ_TASK_FILE\" > ../../../../prompt; pwd\n{GOOD_SCRIPT}"));
    let _ = sandbox.proq(&["resolve", "clash", "--agent", "good"]).ok();
    let log = sandbox.proq(&["logs", "clash"]).ok();
    assert_eq!(log, "[ROOT]/repo/.proq-worktrees/.resolve/clash\nboth kept\n");
    let shown = sandbox.proq(&["show", "clash"]).ok();
    assert!(shown.contains("run 2      good, on the conflict: done, exit code 0"), "{shown}");
    assert!(shown.contains("lanes/clash/runs/2.md"), "{shown}");
    let prompt = std::fs::read_to_string(sandbox.root().join("prompt")).unwrap();
    let ids = [
        sandbox.git(&["rev-parse", "--short", "proq/clash^1"]),
        sandbox.git(&["rev-parse", "--short", "main"]),
    ];
    let prompt = ids.iter().fold(prompt, |text, id| text.replace(id.as_str(), "[ID]"));
    let prompt_start = prompt.split("# What to do").next().unwrap();
    insta::assert_snapshot!(prompt_start, @r#"
    Resolve a merge conflict. You are in a git worktree where `main` is being merged into lane `clash`. git could not merge one file automatically.

    # The task of the lane

    Say lane everywhere

    # Commits of the lane that touch these files (`HEAD`, "ours")

    - [ID] Say lane

    # Commits on `main` that touch these files ("theirs")

    - [ID] main goes on

    # The conflicts

    - CONFLICT (content): Merge conflict in long.txt

    ## long.txt

    Conflict 1:
    the lane's side
    ~~~~~~~~
    lane 5
    ~~~~~~~~
    common ancestor
    ~~~~~~~~
    5 x
    ~~~~~~~~
    the side of main
    ~~~~~~~~
    main 5
    ~~~~~~~~
    "#);
}

/// Promise: resolution/undecided
#[test]
fn refuses_leftover_conflict_marker() {
    let sandbox = sandbox_with_conflict();
    let reason = refusal_reason(&sandbox, "sed -i '/^<<<<<<</d' long.txt; git add long.txt");
    assert_eq!(reason, "long.txt:6: a conflict marker is left: '======='");
    let reason = refusal_reason(&sandbox, "true");
    assert_eq!(reason, "long.txt:5: a conflict marker is left: '<<<<<<< HEAD'");
    sandbox.assert_healthy();
}

/// Promise: resolution/no-dropped-side
#[test]
fn refuses_dropped_side() {
    let sandbox = sandbox_with_conflict();
    let strip = "sed -i -e '/^<<<<<<<\\|^=======\\|^>>>>>>>/d'";
    let reason = refusal_reason(&sandbox, &format!("{strip} -e '/^lane 5/d' long.txt"));
    assert_eq!(reason, "long.txt:5: the changes of the lane are missing");
    let reason = refusal_reason(&sandbox, &format!("{strip} -e '/^main 5/d' long.txt"));
    assert_eq!(reason, "long.txt:5: the changes of main are missing");
    let reason = refusal_reason(&sandbox, "git checkout -q --theirs long.txt");
    assert_eq!(reason, "long.txt was changed outside of the conflict, at 'lane 2'");
    let reason = refusal_reason(&sandbox, "git rm -q long.txt");
    assert_eq!(reason, "long.txt was deleted, although neither side deleted it");
}

/// Promise: resolution/outside-conflict
#[test]
fn refuses_changes_outside_the_conflict() {
    let sandbox = sandbox_with_conflict();
    let reason = refusal_reason(
        &sandbox,
        &format!("{GOOD_SCRIPT}; echo more >> a.txt; echo new > new.txt; echo o > debug.log"),
    );
    assert_eq!(
        reason,
        "a.txt was changed and is not in conflict; debug.log is new and is not in conflict; new.txt is new and is not in conflict"
    );
    let reason = refusal_reason(&sandbox, &format!("{GOOD_SCRIPT}; sed -i 's/^9 x/nine/' long.txt"));
    assert_eq!(reason, "long.txt was changed outside of the conflict, at '9 x'");
    let reason = refusal_reason(
        &sandbox,
        &format!("{GOOD_SCRIPT}; git commit -qm mine; git rm -q a.txt; git commit -qm more"),
    );
    assert_eq!(reason, "a.txt was deleted and is not in conflict");
    let reason = refusal_reason(&sandbox, &format!("{GOOD_SCRIPT}; git init -q inner"));
    assert_eq!(reason, "inner is a separate repository; move it away");
    sandbox.assert_healthy();
}

/// Promise: resolution/abandoned-merge
#[test]
fn refuses_abandoned_merge_and_failed_agent() {
    let sandbox = sandbox_with_conflict();
    let reason = refusal_reason(&sandbox, "git merge --abort");
    assert_eq!(reason, "the merge was aborted in its worktree");
    let reason = refusal_reason(&sandbox, "git reset -q --hard main");
    assert_eq!(reason, "the commit in its worktree is no longer based on the lane");
    let reason = refusal_reason(&sandbox, &format!("{GOOD_SCRIPT}; exit 9"));
    assert_eq!(reason, "it failed with exit code 9");
    let reason = refusal_reason(&sandbox, "kill -9 $$");
    assert_eq!(reason, "it was killed by signal 9");
}

#[test]
fn accepts_ignored_files_and_commits_of_agent() {
    let sandbox = sandbox_with_conflict();
    sandbox.write(".git/info/exclude", "*.o\n/.proq-worktrees/\n");
    sandbox.program("good", &format!("{GOOD_SCRIPT}; git commit -qm 'resolved it'; touch made.o"));
    let _ = sandbox.proq(&["resolve", "clash", "--agent", "good"]).ok();
    assert_eq!(
        sandbox.git(&["log", "-1", "--format=%s", "proq/clash"]),
        "Merge branch 'main' into proq/clash"
    );
    assert_eq!(sandbox.git(&["show", "proq/clash:long.txt"]), RESOLVED.trim_end());
    let saved = sandbox.git(&["for-each-ref", "--format=%(objectname)", "refs/proq/saved"]);
    assert_eq!(sandbox.git(&["log", "-1", "--format=%s", &saved]), "resolved it", "its own commit is kept");
}

#[test]
fn retry_is_prompted_with_refusal_reason() {
    let sandbox = sandbox_with_conflict();
    sandbox.program(
        "learner",
        &format!("case \"$1\" in *'a conflict marker is left'*) {GOOD_SCRIPT};; *) true;; esac"),
    );
    let out = sandbox.proq(&["resolve", "clash", "--agent", "learner", "--retries", "1"]);
    let stderr = out.stderr.clone();
    let _ = out.ok();
    assert!(stderr.contains("refused: long.txt:5: a conflict marker is left: '<<<<<<< HEAD'"), "{stderr}");
    assert_eq!(sandbox.git(&["show", "proq/clash:long.txt"]), RESOLVED.trim_end());
}

/// Promise: resolution/refused-kept
#[test]
fn keeps_all_tries_and_allows_manual_continue() {
    let sandbox = sandbox_with_conflict();
    sandbox.program("bad", "echo \"try $(git hash-object \"$PROQ_TASK_FILE\")\" > note.txt");
    let _ = sandbox.proq(&["resolve", "clash", "--agent", "bad", "--retries", "2"]).fails(3);
    let saved = sandbox.git(&["for-each-ref", "--format=%(objectname)", "refs/proq/saved"]);
    let saved_commits: Vec<String> =
        saved.lines().map(|name| sandbox.git(&["log", "-1", "--format=%H", name])).collect();
    assert_eq!(saved_commits.len(), 2, "the tries before the last: {saved}");
    assert!(resolve_worktree(&sandbox).join("note.txt").exists(), "the last one");
    let error = sandbox.proq(&["resolve", "clash", "--continue"]).fails(1);
    assert!(error.contains("note.txt is new and is not in conflict"), "{error}");
    sandbox.sh_in(&resolve_worktree(&sandbox), &format!("{GOOD_SCRIPT}; rm note.txt"));
    let stdout = sandbox.proq(&["resolve", "clash", "--continue"]).ok();
    assert!(stdout.starts_with("resolved by hand, after bad: "), "{stdout}");
    let message = sandbox.git(&["log", "-1", "--format=%B", "proq/clash"]);
    assert!(message.contains("Proq-Resolved-By: hand, after bad"), "{message}");
    assert_eq!(sandbox.git(&["show", "proq/clash:long.txt"]), RESOLVED.trim_end());
    sandbox.assert_healthy();
}

#[test]
fn allow_option_accepts_named_changes() {
    let sandbox = sandbox_with_conflict();
    sandbox.program("bad", &format!("{GOOD_SCRIPT}; echo more >> a.txt; mkdir d; echo new > d/new.txt"));
    let _ = sandbox.proq(&["resolve", "clash", "--agent", "bad", "--allow", "a.txt"]).fails(3);
    let _ = sandbox.proq(&["resolve", "clash", "--agent", "bad", "--allow", "a.txt", "--allow", "d"]).ok();
    assert_eq!(sandbox.git(&["show", "proq/clash:d/new.txt"]), "new");
    let _ = sandbox.proq(&["undo"]).ok();
    let _ = sandbox.proq(&["resolve", "clash", "--continue"]).fails(1);
    let _ = sandbox.proq(&["resolve", "clash", "--continue", "--allow-other-changes"]).ok();
    assert_eq!(sandbox.git(&["show", "proq/clash:a.txt"]), "a\nmore");
}

/// Promise: resolution/refused-kept
#[test]
fn abort_saves_work_and_undo_restores_it() {
    let sandbox = sandbox_with_conflict();
    let _ = refusal_reason(&sandbox, "echo half > half.txt; git add half.txt; echo more > more.txt");
    let status = || sandbox.git_in(&resolve_worktree(&sandbox), &["status", "--short"]);
    let before = (status(), std::fs::read(resolve_worktree(&sandbox).join("long.txt")).unwrap());
    let stdout = sandbox.proq(&["resolve", "clash", "--abort"]).ok();
    assert_eq!(stdout, "aborted the resolution: lane 'clash' conflicts with main as before\n");
    assert!(!resolve_worktree(&sandbox).exists());
    let saved = sandbox.git(&["for-each-ref", "--format=%(objectname)", "refs/proq/saved"]);
    assert!(
        sandbox
            .git(&["log", "--format=", "--name-only", "-m", "--first-parent", &saved])
            .contains("more.txt")
    );
    sandbox.assert_healthy();
    let _ = sandbox.proq(&["undo"]).ok();
    assert_eq!((status(), std::fs::read(resolve_worktree(&sandbox).join("long.txt")).unwrap()), before);
    sandbox.assert_healthy();
    let _ = sandbox.proq(&["resolve", "clash", "--abort"]).ok();
    let _ = sandbox.proq(&["resolve", "clash", "--abort"]).fails(1);
}

#[test]
fn resolution_is_undone_and_redone() {
    let sandbox = sandbox_with_conflict();
    let refs = || sandbox.git(&["for-each-ref", "refs/heads", "refs/proq/conflict"]);
    let before = refs();
    let _ = sandbox.proq(&["resolve", "clash", "--agent", "good"]).ok();
    let after = refs();
    let log = sandbox.proq(&["op", "log"]).ok();
    assert!(log.contains("conflict of clash resolved") && log.contains("conflict of clash opened"), "{log}");
    let _ = sandbox.proq(&["undo"]).ok();
    assert_eq!(refs(), before);
    assert_eq!(sandbox.row("clash")["state"], "conflict");
    assert!(sandbox.git_in(&sandbox.lane_path("clash"), &["show", "HEAD:long.txt"]).contains("lane 5"));
    sandbox.assert_healthy();
    let _ = sandbox.proq(&["op", "redo"]).ok();
    assert_eq!(refs(), after);
    let _ = sandbox.proq(&["undo"]).ok();
    let _ = sandbox.proq(&["undo"]).ok();
    assert!(!resolve_worktree(&sandbox).exists());
    assert_eq!(refs(), before);
    sandbox.assert_healthy();
}

/// Promise: resolution/refused-kept
#[test]
fn resolve_worktree_is_not_a_lane() {
    let sandbox = sandbox_with_conflict();
    let _ = refusal_reason(&sandbox, "true");
    let names = sandbox.proq(&["list", "--json"]).json();
    assert_eq!(names["lanes"].as_array().unwrap().len(), 1);
    assert_eq!(names["unrecorded"].as_array().unwrap().len(), 0);
    let _ = sandbox.proq(&["cleanup", "--all"]);
    assert!(resolve_worktree(&sandbox).exists());
    assert_eq!(sandbox.git(&["status", "--short"]), "");
    let error = sandbox.proq(&["discard", "clash"]).fails(1);
    assert!(
        error.contains("its conflict is being resolved in [ROOT]/repo/.proq-worktrees/.resolve/clash"),
        "{error}"
    );
    let _ = sandbox.proq(&["discard", "--force", "clash"]).ok();
    assert!(!resolve_worktree(&sandbox).exists());
    assert_eq!(sandbox.git(&["for-each-ref", "refs/proq/resolve"]), "");
    sandbox.assert_healthy();
    let _ = sandbox.proq(&["undo"]).ok();
    assert!(resolve_worktree(&sandbox).join("long.txt").exists());
    sandbox.assert_healthy();
}

/// Promise: resolution/lane-cannot-take-it
#[test]
fn resolution_is_saved_when_lane_cannot_take_it() {
    let sandbox = sandbox_with_conflict();
    let lane = sandbox.lane_path("clash");
    sandbox.write_in(&lane, "left.txt", "left\n");
    let error = sandbox.proq(&["resolve", "clash", "--agent", "good"]).fails(1);
    assert!(error.contains("it has uncommitted work: left.txt"), "{error}");
    std::fs::remove_file(lane.join("left.txt")).unwrap();
    sandbox.program("good", &format!("{GOOD_SCRIPT}; echo left > ../../clash/left.txt"));
    let error = sandbox.proq(&["resolve", "clash", "--agent", "good"]).fails(1);
    assert!(error.contains("to its resolution: it has uncommitted work: left.txt"), "{error}");
    let saved = sandbox.git(&["for-each-ref", "--format=%(objectname)", "refs/proq/saved"]);
    assert_eq!(sandbox.git(&["show", &format!("{saved}:long.txt")]), RESOLVED.trim_end());
    std::fs::remove_file(lane.join("left.txt")).unwrap();
    let _ = sandbox.proq(&["resolve", "clash", "--continue"]).ok();
    assert_eq!(sandbox.git(&["show", "proq/clash:long.txt"]), RESOLVED.trim_end());
}

/// Promise: resolution/exclusive
#[test]
fn resolving_agent_excludes_others_until_stopped() {
    let sandbox = sandbox_with_conflict();
    sandbox.pipe("up");
    sandbox.program("slow", "echo up > \"$ROOT/up\"; exec sleep 600");
    let mut command = sandbox.proq_command(&sandbox.repo, &["resolve", "clash", "--agent", "slow"]);
    let mut resolving =
        command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null()).spawn().unwrap();
    assert_eq!(sandbox.read_pipe("up"), "up\n");
    assert_eq!(sandbox.started_row("clash")["state"], "running");
    for way in [&["--agent", "good"][..], &["--continue"], &["--abort"]] {
        let error = sandbox.proq(&[&["resolve", "clash"], way].concat()).fails(1);
        assert!(error.contains("cannot change lane 'clash': its agent is running"), "{error}");
    }
    let _ = sandbox.proq(&["merge", "clash"]).fails(1);
    let _ = sandbox.proq(&["undo"]).fails(1);
    let _ = sandbox.proq(&["stop", "clash"]).ok();
    assert_eq!(resolving.wait().unwrap().code(), Some(4));
    assert_eq!(sandbox.row("clash")["state"], "conflict");
    sandbox.sh_in(&resolve_worktree(&sandbox), GOOD_SCRIPT);
    let _ = sandbox.proq(&["resolve", "clash", "--continue"]).ok();
    sandbox.assert_healthy();
}

#[test]
fn interrupt_stops_agent_and_keeps_its_work() {
    let sandbox = sandbox_with_conflict();
    sandbox.pipe("up");
    sandbox.program("slow", &format!("{GOOD_SCRIPT}; echo up > \"$ROOT/up\"; exec sleep 600"));
    let mut command = sandbox.proq_command(&sandbox.repo, &["resolve", "clash", "--agent", "slow"]);
    let mut resolving =
        command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null()).spawn().unwrap();
    assert_eq!(sandbox.read_pipe("up"), "up\n");
    sandbox.sh(&format!("kill -INT {}", resolving.id()));
    assert_eq!(resolving.wait().unwrap().code(), Some(130));
    assert_eq!(sandbox.row("clash")["state"], "conflict");
    let _ = sandbox.proq(&["resolve", "clash", "--continue"]).ok();
    assert_eq!(sandbox.git(&["show", "proq/clash:long.txt"]), RESOLVED.trim_end());
}

//! Tests of `git proq preview`: entering, switching, edits and commits made in a preview, refreshing, and the
//! output.
use proq_test_kit::snapshots::{assert_no_preview_left, assert_same_image};
use proq_test_kit::{Sandbox, WorktreeState};

/// Creates lanes `one` and `two`, each of which adds a file and changes `a.txt`.
fn two_lanes() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("one", "echo one > one.txt; echo one > a.txt");
    sandbox.run_lane("two", "echo two > two.txt; echo two > a.txt; git add .; git commit -qm two");
    sandbox
}

#[test]
fn output_names_the_lane_and_parked_changes() {
    let sandbox = two_lanes();
    sandbox.write("a.txt", "mine\n");
    let enter = sandbox.proq(&["preview", "one"]);
    let entered_again = sandbox.proq(&["preview", "one"]);
    let back = sandbox.proq(&["preview", "--back"]);
    let none = sandbox.proq(&["preview", "--back"]);
    let tip = sandbox.git(&["rev-parse", "--short=8", "proq/one"]);
    insta::assert_snapshot!([enter, entered_again, back, none].map(|o| o.to_text()).concat().replace(&tip, "[TIP]"), @r"
    the main checkout shows 'one' ([TIP])
    --- stderr
    saved your uncommitted changes on main; --back restores them
    hint: return: git proq preview --back
    --- code 0
    the main checkout shows 'one' already
    --- stderr
    hint: update it: git proq preview --refresh
    --- code 0
    the main checkout is on main again
    --- stderr
    restored your uncommitted changes exactly
    --- code 0
    --- stderr
    error: no preview is open
    hint: list lanes to preview: git proq list
    --- code 1
    ");
}

#[test]
fn without_lane_shows_what_is_previewed() {
    let sandbox = two_lanes();
    let none = sandbox.proq(&["preview"]);
    sandbox.write("a.txt", "mine\n");
    let _ = sandbox.proq(&["preview", "one"]).ok();
    let shown = sandbox.proq(&["preview"]);
    sandbox.sh("git checkout -qf main");
    let left = sandbox.proq(&["preview"]);
    insta::assert_snapshot!([none, shown, left].map(|o| o.to_text()).concat(), @r"
    no preview is open
    --- stderr
    hint: list lanes: git proq list
    --- code 0
    the main checkout shows 'one', for 0s; it was on main
    --- stderr
    saved your uncommitted changes on main; --back restores them
    hint: return: git proq preview --back
    --- code 0
    the preview of 'one', 0s old, was left with git; it began on main
    --- stderr
    saved your uncommitted changes on main; --back restores them
    hint: return: git proq preview --back
    --- code 0
    ");
    assert_eq!(sandbox.proq(&["preview", "--json"]).json()["preview"]["shown"], false);
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    assert_eq!(sandbox.proq(&["preview", "--json"]).json()["preview"], serde_json::Value::Null);
}

#[test]
fn json_names_the_lane_and_parked_changes() {
    let sandbox = two_lanes();
    sandbox.write("a.txt", "mine\n");
    let tip = sandbox.git(&["rev-parse", "proq/one"]);
    let enter = sandbox.proq(&["--json", "preview", "one"]);
    let refresh = sandbox.proq(&["--json", "preview", "--refresh"]);
    let back = sandbox.proq(&["--json", "preview", "--back"]);
    let all = [enter, refresh, back].map(|o| o.stdout).concat().replace(&tip, "[TIP]");
    insta::assert_snapshot!(all, @r#"
    {
      "dry_run": false,
      "lane": "one",
      "on": "one",
      "schema": 1,
      "tip": "[TIP]",
      "waiting": true
    }
    {
      "dry_run": false,
      "lane": "one",
      "on": "one",
      "schema": 1,
      "tip": "[TIP]",
      "waiting": true
    }
    {
      "dry_run": false,
      "lane": null,
      "on": "main",
      "restored": "exactly",
      "schema": 1,
      "waiting": false
    }
    "#);
}

/// Promise: snapshots/no-writes
#[test]
fn dry_run_changes_nothing() {
    let sandbox = two_lanes();
    sandbox.sh("echo mine > a.txt; echo u > untracked");
    let state = |s: &Sandbox| {
        (WorktreeState::capture(s, &s.repo), s.git(&["for-each-ref"]), s.git(&["count-objects", "-v"]))
    };
    let before = state(&sandbox);
    let out = sandbox.proq(&["preview", "--dry-run", "one"]);
    insta::assert_snapshot!(out.to_text(), @r"
    would switch the main checkout from main to proq/one
      files that change   2
      files set aside     2
        a.txt
        untracked
    --- code 0
    ");
    assert_eq!(before, state(&sandbox));
    assert_no_preview_left(&sandbox);
    let _ = sandbox.proq(&["preview", "one"]).ok();
    let before = state(&sandbox);
    let back = sandbox.proq(&["preview", "--dry-run", "--back"]);
    insta::assert_snapshot!(back.to_text(), @r"
    would switch the main checkout from the preview of 'one' to main
      files that change   2
      your own changes would be restored
    --- code 0
    ");
    assert_eq!(before, state(&sandbox));
}

#[test]
fn switches_between_previews_and_back() {
    let sandbox = two_lanes();
    sandbox.sh("echo staged > a.txt; git add a.txt; echo mine > a.txt; echo u > two.txt");
    let before = WorktreeState::capture(&sandbox, &sandbox.repo);
    let _ = sandbox.proq(&["preview", "one"]).ok();
    let _ = sandbox.proq(&["preview", "two"]).ok();
    assert_eq!(sandbox.read("a.txt"), "two\n");
    assert_eq!(sandbox.git(&["status", "--short"]), "");
    assert!(!sandbox.repo.join("one.txt").exists());
    let branches = sandbox.git(&["for-each-ref", "--format=%(refname)", "refs/heads/proq/*-preview"]);
    assert_eq!(branches, "refs/heads/proq/two-preview");
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    assert_same_image(&before, &WorktreeState::capture(&sandbox, &sandbox.repo));
    assert_no_preview_left(&sandbox);
}

/// Promise: preview/edits-return
#[test]
fn restores_preview_edits_in_the_next_preview_of_the_lane() {
    let sandbox = two_lanes();
    sandbox.sh("echo home > home.txt");
    let original = WorktreeState::capture(&sandbox, &sandbox.repo);
    let _ = sandbox.proq(&["preview", "one"]).ok();
    sandbox.sh("echo staged > one.txt; git add one.txt; echo edit > one.txt; echo n > new.txt; rm a.txt");
    let edited = WorktreeState::capture(&sandbox, &sandbox.repo);
    let _ = sandbox.proq(&["preview", "two"]).ok();
    assert_eq!(sandbox.git(&["status", "--short"]), "");
    let _ = sandbox.proq(&["preview", "one"]).ok();
    assert_same_image(&edited, &WorktreeState::capture(&sandbox, &sandbox.repo));
    let back = sandbox.proq(&["preview", "--back"]);
    assert!(back.stderr.contains("saved your edits in the preview"), "{}", back.stderr);
    let _ = back.ok();
    assert_same_image(&original, &WorktreeState::capture(&sandbox, &sandbox.repo));
    let _ = sandbox.proq(&["preview", "one"]).ok();
    assert_same_image(&edited, &WorktreeState::capture(&sandbox, &sandbox.repo));
    sandbox.sh("git reset -q --hard; git clean -qfd");
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    assert_same_image(&original, &WorktreeState::capture(&sandbox, &sandbox.repo));
    assert_no_preview_left(&sandbox);
}

/// Promise: preview/edits-return
#[test]
fn keeps_and_names_preview_edits_that_no_longer_apply() {
    let sandbox = two_lanes();
    let _ = sandbox.proq(&["preview", "one"]).ok();
    sandbox.sh("echo edit > one.txt");
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    sandbox.commit_in_lane("one", "echo other > one.txt");
    let out = sandbox.proq(&["preview", "one"]);
    let stderr = out.stderr.clone();
    let _ = out.ok();
    assert!(stderr.contains("edits of an earlier preview conflict now"), "{stderr}");
    assert_eq!(sandbox.read("one.txt"), "other\n");
    let id = stderr.split("git stash apply ").nth(1).unwrap().split_whitespace().next().unwrap();
    assert_eq!(sandbox.git(&["show", &format!("{id}:one.txt")]), "edit");
}

/// Promise: preview/commits-move
#[test]
fn commits_made_in_a_preview_move_the_lane() {
    let sandbox = two_lanes();
    let _ = sandbox.proq(&["preview", "one"]).ok();
    sandbox.sh("echo more > more.txt; git add .; git commit -qm more; echo edit > one.txt");
    let commit = sandbox.git(&["rev-parse", "HEAD"]);
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    assert_eq!(sandbox.git(&["rev-parse", "proq/one"]), commit);
    assert_eq!(sandbox.git_in(&sandbox.lane_path("one"), &["status", "--short"]), "");
    assert!(sandbox.lane_path("one").join("more.txt").exists());
    assert_eq!(sandbox.git(&["rev-parse", "--abbrev-ref", "HEAD"]), "main");
}

/// Promise: preview/commits-move
#[test]
fn saves_preview_commits_when_the_lane_moved() {
    let sandbox = two_lanes();
    let _ = sandbox.proq(&["preview", "one"]).ok();
    sandbox.sh("echo more > more.txt; git add .; git commit -qm more");
    let commit = sandbox.git(&["rev-parse", "HEAD"]);
    sandbox.commit_in_lane("one", "echo lane > lane.txt");
    let tip = sandbox.git(&["rev-parse", "proq/one"]);
    let back = sandbox.proq(&["preview", "--back"]);
    assert!(back.stderr.contains("they are saved as refs/proq/saved/one-preview-"), "{}", back.stderr);
    let _ = back.ok();
    assert_eq!(sandbox.git(&["rev-parse", "proq/one"]), tip);
    assert_eq!(sandbox.git(&["for-each-ref", "--format=%(objectname)", "refs/proq/saved"]), commit);
}

/// Promise: preview/commits-move
#[test]
fn saves_preview_commits_while_the_agent_runs() {
    let sandbox = Sandbox::new();
    let gate = sandbox.root().join("gate");
    sandbox.sh("mkfifo ../gate");
    let script = format!("read line < '{}'", gate.display());
    let _ = sandbox.proq(&["spawn", "-n", "busy", "--", "sh", "-c", &script]).ok();
    let _ = sandbox.proq(&["preview", "busy"]).ok();
    sandbox.sh("echo more > more.txt; git add .; git commit -qm more");
    let commit = sandbox.git(&["rev-parse", "HEAD"]);
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    assert_eq!(sandbox.git(&["for-each-ref", "--format=%(objectname)", "refs/proq/saved"]), commit);
    assert_eq!(sandbox.git(&["rev-parse", "proq/busy"]), sandbox.git(&["rev-parse", "main"]));
    std::fs::write(&gate, "go\n").unwrap();
    let _ = sandbox.proq(&["wait", "busy"]);
}

#[test]
fn refresh_follows_the_lane_and_keeps_other_edits() {
    let sandbox = two_lanes();
    let _ = sandbox.proq(&["preview", "one"]).ok();
    sandbox.sh("echo staged > own.txt; git add own.txt; echo edit > own.txt; echo u > untracked");
    let status = sandbox.git(&["status", "--short"]);
    sandbox.commit_in_lane("one", "echo again > one.txt; echo n > next.txt");
    let _ = sandbox.proq(&["preview", "--refresh"]).ok();
    assert_eq!(sandbox.git(&["rev-parse", "HEAD"]), sandbox.git(&["rev-parse", "proq/one"]));
    assert_eq!((sandbox.read("one.txt"), sandbox.read("next.txt")), ("again\n".into(), "n\n".into()));
    assert_eq!(sandbox.git(&["status", "--short"]), status);
    // The agent rewrote its history; the refreshed preview still shows the lane's tip.
    sandbox.sh_in(&sandbox.lane_path("one"), "echo amended > one.txt; git commit -qa --amend -m amended");
    let _ = sandbox.proq(&["preview", "--refresh"]).ok();
    assert_eq!(sandbox.git(&["rev-parse", "HEAD"]), sandbox.git(&["rev-parse", "proq/one"]));
    assert_eq!(sandbox.read("one.txt"), "amended\n");
    assert_eq!(sandbox.git(&["status", "--short"]), status);
}

/// Promise: worktree/overlapping-changes
#[test]
fn refresh_refuses_overlapping_edit_by_name() {
    let sandbox = two_lanes();
    let _ = sandbox.proq(&["preview", "one"]).ok();
    sandbox.write("one.txt", "edit\n");
    sandbox.commit_in_lane("one", "echo again > one.txt");
    let before = WorktreeState::capture(&sandbox, &sandbox.repo);
    let out = sandbox.proq(&["preview", "--refresh"]);
    insta::assert_snapshot!(out.to_text(), @r"
    --- stderr
    error: local changes in [ROOT]/repo are in the way: one.txt; nothing was changed
    hint: commit them first: git -C '[ROOT]/repo' commit -am WIP
    hint: or stash them (`git stash pop` restores them): git -C '[ROOT]/repo' stash push
    --- code 1
    ");
    assert_same_image(&before, &WorktreeState::capture(&sandbox, &sandbox.repo));
}

#[test]
fn refresh_refuses_commits_on_both_sides() {
    let sandbox = two_lanes();
    let _ = sandbox.proq(&["preview", "one"]).ok();
    sandbox.sh("echo more > more.txt; git add .; git commit -qm more");
    sandbox.commit_in_lane("one", "echo again > one.txt");
    let before = WorktreeState::capture(&sandbox, &sandbox.repo);
    let text = sandbox.proq(&["preview", "--refresh"]).fails(1);
    assert!(text.contains("lane 'one' and its preview have diverged"), "{text}");
    assert_same_image(&before, &WorktreeState::capture(&sandbox, &sandbox.repo));
}

#[test]
fn preview_inside_a_lane_changes_the_main_checkout() {
    let sandbox = two_lanes();
    let _ = sandbox.proq_in(&sandbox.lane_path("two"), &["preview", "one"]).ok();
    assert_eq!(sandbox.git(&["rev-parse", "--abbrev-ref", "HEAD"]), "proq/one-preview");
    let head = sandbox.git_in(&sandbox.lane_path("two"), &["rev-parse", "--abbrev-ref", "HEAD"]);
    assert_eq!(head, "proq/two");
    let _ = sandbox.proq_in(&sandbox.lane_path("two"), &["preview", "--back"]).ok();
    assert_eq!(sandbox.git(&["rev-parse", "--abbrev-ref", "HEAD"]), "main");
}

#[test]
fn post_checkout_hook_runs_for_preview_and_back() {
    let sandbox = two_lanes();
    let hook = "#!/bin/sh\necho \"$1 $2 $3\" >> ../hooked\n";
    sandbox.sh(&format!(
        "mkdir -p .git/hooks; printf '{hook}' > .git/hooks/post-checkout; chmod +x .git/hooks/*"
    ));
    let _ = sandbox.proq(&["preview", "one"]).ok();
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    let (main, one) = (sandbox.git(&["rev-parse", "main"]), sandbox.git(&["rev-parse", "proq/one"]));
    let hook_log = std::fs::read_to_string(sandbox.root().join("hooked")).unwrap();
    assert_eq!(hook_log, format!("{main} {one} 1\n{one} {main} 1\n"));
}

#[test]
fn reflog_records_preview_and_back_as_checkouts() {
    let sandbox = two_lanes();
    sandbox.git(&["switch", "-q", "-c", "topic"]);
    let _ = sandbox.proq(&["preview", "one"]).ok();
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    let log = sandbox.git(&["reflog", "-2", "--format=%gs"]);
    assert_eq!(
        log,
        "checkout: moving from proq/one-preview to topic\ncheckout: moving from topic to proq/one-preview"
    );
}

#[test]
fn refresh_refuses_preview_ahead_of_its_lane() {
    for lane_command in ["true", "git reset -q --hard main"] {
        let sandbox = two_lanes();
        let _ = sandbox.proq(&["preview", "one"]).ok();
        sandbox.sh("echo more > more.txt; git add .; git commit -qm more");
        sandbox.sh_in(&sandbox.lane_path("one"), lane_command);
        for args in [&["preview", "--refresh", "--dry-run"][..], &["preview", "--refresh"]] {
            let before = WorktreeState::capture(&sandbox, &sandbox.repo);
            let out = sandbox.proq(args);
            insta::allow_duplicates!(insta::assert_snapshot!(out.to_text(), @r"
            --- stderr
            error: cannot refresh the preview of lane 'one': the preview has commits that the lane lacks, and the lane has no new ones
            hint: leave the preview; its commits are saved: git proq preview --back
            --- code 1
            "));
            assert_same_image(&before, &WorktreeState::capture(&sandbox, &sandbox.repo));
        }
        let _ = sandbox.proq(&["preview", "--back"]).ok();
    }
}

#[test]
fn refresh_dry_run_matches_the_refresh() {
    let sandbox = two_lanes();
    let _ = sandbox.proq(&["preview", "one"]).ok();
    sandbox.commit_in_lane("one", "echo again > one.txt");
    let before = WorktreeState::capture(&sandbox, &sandbox.repo);
    insta::assert_snapshot!(sandbox.proq(&["preview", "--refresh", "--dry-run"]).to_text(), @r"
    would switch the main checkout from the preview of 'one' to proq/one
      files that change   1
    --- code 0
    ");
    assert_same_image(&before, &WorktreeState::capture(&sandbox, &sandbox.repo));
    sandbox.write("one.txt", "edit\n");
    let planned = sandbox.proq(&["preview", "--refresh", "--dry-run"]).fails(1);
    assert_eq!(planned, sandbox.proq(&["preview", "--refresh"]).fails(1));
    sandbox.sh("git checkout -q one.txt; git switch -q -c elsewhere");
    for option in ["--refresh", "--back"] {
        let planned = sandbox.proq(&["preview", option, "--dry-run"]).fails(1);
        assert_eq!(planned, sandbox.proq(&["preview", option]).fails(1));
    }
}

/// Promise: snapshots/dry-run-refuses
#[test]
fn dry_run_refuses_ignored_files_as_the_preview_does() {
    let sandbox = Sandbox::new();
    sandbox.sh("echo '*.log' > .gitignore; mkdir d; echo d > d/f; echo '/.env' >> .gitignore; echo e > .env; git add -f .env");
    sandbox.commit_all("base");
    sandbox.lane_with_commit(
        "one",
        "echo lane > keep.log; git add -f keep.log; echo lane > loose; echo lane > .env; git add -f .env",
    );
    // Files that are parked with the user's changes do not block: `loose`, a file in place of a folder, and a
    // file removed from the index.
    sandbox.sh("echo loose > loose; rm -r d; echo own > d; git rm -q --cached .env; echo own > .env");
    let _ = sandbox.proq(&["preview", "one", "--dry-run"]).ok();
    let _ = sandbox.proq(&["preview", "one"]).ok();
    let _ = sandbox.proq(&["preview", "--back", "--dry-run"]).ok();
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    sandbox.write("keep.log", "mine\n");
    let before = WorktreeState::capture(&sandbox, &sandbox.repo);
    let planned = sandbox.proq(&["preview", "one", "--dry-run"]).fails(1);
    assert!(planned.contains("are in the way: keep.log; nothing was changed"), "{planned}");
    assert_eq!(planned, sandbox.proq(&["preview", "one"]).fails(1));
    assert_same_image(&before, &WorktreeState::capture(&sandbox, &sandbox.repo));
}

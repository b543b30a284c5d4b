//! Owns the tests of `git proq preview`: entering, switching, edits and commits made in it, refreshing, the answers.

use super::preview_identity::{nothing_is_left, same};
use super::support::{Image, Sandbox};

/// Lanes `one` and `two`, each with a file of its own, and a line of `a.txt` changed by each.
fn two_lanes() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.lane_of("one", "echo one > one.txt; echo one > a.txt");
    sandbox.lane_with("two", "echo two > two.txt; echo two > a.txt; git add .; git commit -qm two");
    sandbox
}

#[test]
fn the_answers_say_what_is_shown_and_what_waits() {
    let sandbox = two_lanes();
    sandbox.write("a.txt", "mine\n");
    let enter = sandbox.proq(&["preview", "one"]);
    let again = sandbox.proq(&["preview", "one"]);
    let back = sandbox.proq(&["preview", "--back"]);
    let none = sandbox.proq(&["preview", "--back"]);
    let tip = sandbox.git(&["rev-parse", "--short=8", "proq/one"]);
    insta::assert_snapshot!([enter, again, back, none].map(|o| o.shown()).concat().replace(&tip, "[TIP]"), @r"
    the main checkout shows 'one' ([TIP])
    --- stderr
    your changes on main are set aside and come back with --back
    hint: go back: git proq preview --back
    --- code 0
    the main checkout shows 'one' already
    --- stderr
    hint: bring it up to date: git proq preview --refresh
    --- code 0
    the main checkout is on main again
    --- stderr
    your changes are back exactly as they were
    --- code 0
    --- stderr
    error: no preview is open; nothing was changed
    hint: open one: git proq preview LANE
    --- code 1
    ");
}

#[test]
fn json_says_the_same() {
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

#[test]
fn a_dry_run_changes_nothing() {
    let sandbox = two_lanes();
    sandbox.sh("echo mine > a.txt; echo u > untracked");
    let state =
        |s: &Sandbox| (Image::of(s, &s.repo), s.git(&["for-each-ref"]), s.git(&["count-objects", "-v"]));
    let before = state(&sandbox);
    let out = sandbox.proq(&["preview", "--dry-run", "one"]);
    insta::assert_snapshot!(out.shown(), @r"
    would bring the main checkout from main to proq/one
      files that change   2
      files set aside     2
        a.txt
        untracked
    --- code 0
    ");
    assert_eq!(before, state(&sandbox));
    nothing_is_left(&sandbox);
    let _ = sandbox.proq(&["preview", "one"]).ok();
    let before = state(&sandbox);
    let back = sandbox.proq(&["preview", "--dry-run", "--back"]);
    insta::assert_snapshot!(back.shown(), @r"
    would bring the main checkout from the preview of 'one' to main
      files that change   2
      your own changes would come back
    --- code 0
    ");
    assert_eq!(before, state(&sandbox));
}

#[test]
fn from_lane_to_lane_and_home() {
    let sandbox = two_lanes();
    sandbox.sh("echo staged > a.txt; git add a.txt; echo mine > a.txt; echo u > two.txt");
    let before = Image::of(&sandbox, &sandbox.repo);
    let _ = sandbox.proq(&["preview", "one"]).ok();
    let _ = sandbox.proq(&["preview", "two"]).ok();
    assert_eq!(sandbox.read("a.txt"), "two\n");
    assert_eq!(sandbox.git(&["status", "--short"]), "");
    assert!(!sandbox.repo.join("one.txt").exists());
    let branches = sandbox.git(&["for-each-ref", "--format=%(refname)", "refs/heads/proq/*-preview"]);
    assert_eq!(branches, "refs/heads/proq/two-preview");
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    same(&before, &Image::of(&sandbox, &sandbox.repo));
    nothing_is_left(&sandbox);
}

#[test]
fn edits_made_in_a_preview_come_back_with_the_next_one_of_that_lane() {
    let sandbox = two_lanes();
    sandbox.sh("echo home > home.txt");
    let home = Image::of(&sandbox, &sandbox.repo);
    let _ = sandbox.proq(&["preview", "one"]).ok();
    sandbox.sh("echo staged > one.txt; git add one.txt; echo edit > one.txt; echo n > new.txt; rm a.txt");
    let edited = Image::of(&sandbox, &sandbox.repo);
    let _ = sandbox.proq(&["preview", "two"]).ok();
    assert_eq!(sandbox.git(&["status", "--short"]), "");
    let _ = sandbox.proq(&["preview", "one"]).ok();
    same(&edited, &Image::of(&sandbox, &sandbox.repo));
    let back = sandbox.proq(&["preview", "--back"]);
    assert!(back.stderr.contains("your edits in the preview come back"), "{}", back.stderr);
    let _ = back.ok();
    same(&home, &Image::of(&sandbox, &sandbox.repo));
    let _ = sandbox.proq(&["preview", "one"]).ok();
    same(&edited, &Image::of(&sandbox, &sandbox.repo));
    sandbox.sh("git reset -q --hard; git clean -qfd");
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    same(&home, &Image::of(&sandbox, &sandbox.repo));
    nothing_is_left(&sandbox);
}

#[test]
fn edits_that_do_not_fit_the_lane_any_more_are_kept_and_named() {
    let sandbox = two_lanes();
    let _ = sandbox.proq(&["preview", "one"]).ok();
    sandbox.sh("echo edit > one.txt");
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    sandbox.commit_in_lane("one", "echo other > one.txt");
    let out = sandbox.proq(&["preview", "one"]);
    let said = out.stderr.clone();
    let _ = out.ok();
    assert!(said.contains("edits of an earlier preview do not fit any more"), "{said}");
    assert_eq!(sandbox.read("one.txt"), "other\n");
    let id = said.split("git stash apply ").nth(1).unwrap().split_whitespace().next().unwrap();
    assert_eq!(sandbox.git(&["show", &format!("{id}:one.txt")]), "edit");
}

#[test]
fn commits_made_in_a_preview_go_to_the_lane() {
    let sandbox = two_lanes();
    let _ = sandbox.proq(&["preview", "one"]).ok();
    sandbox.sh("echo more > more.txt; git add .; git commit -qm more; echo edit > one.txt");
    let made = sandbox.git(&["rev-parse", "HEAD"]);
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    assert_eq!(sandbox.git(&["rev-parse", "proq/one"]), made);
    assert_eq!(sandbox.git_in(&sandbox.lane("one"), &["status", "--short"]), "");
    assert!(sandbox.lane("one").join("more.txt").exists());
    assert_eq!(sandbox.git(&["rev-parse", "--abbrev-ref", "HEAD"]), "main");
}

#[test]
fn commits_made_in_a_preview_are_kept_when_the_lane_moved() {
    let sandbox = two_lanes();
    let _ = sandbox.proq(&["preview", "one"]).ok();
    sandbox.sh("echo more > more.txt; git add .; git commit -qm more");
    let made = sandbox.git(&["rev-parse", "HEAD"]);
    sandbox.commit_in_lane("one", "echo lane > lane.txt");
    let tip = sandbox.git(&["rev-parse", "proq/one"]);
    let back = sandbox.proq(&["preview", "--back"]);
    assert!(back.stderr.contains("they are kept as refs/proq/saved/one-preview-"), "{}", back.stderr);
    let _ = back.ok();
    assert_eq!(sandbox.git(&["rev-parse", "proq/one"]), tip);
    assert_eq!(sandbox.git(&["for-each-ref", "--format=%(objectname)", "refs/proq/saved"]), made);
}

#[test]
fn commits_made_in_a_preview_are_kept_while_the_agent_runs() {
    let sandbox = Sandbox::new();
    let gate = sandbox.root().join("gate");
    sandbox.sh("mkfifo ../gate");
    let script = format!("read line < '{}'", gate.display());
    let _ = sandbox.proq(&["spawn", "-n", "busy", "--", "sh", "-c", &script]).ok();
    let _ = sandbox.proq(&["preview", "busy"]).ok();
    sandbox.sh("echo more > more.txt; git add .; git commit -qm more");
    let made = sandbox.git(&["rev-parse", "HEAD"]);
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    assert_eq!(sandbox.git(&["for-each-ref", "--format=%(objectname)", "refs/proq/saved"]), made);
    assert_eq!(sandbox.git(&["rev-parse", "proq/busy"]), sandbox.git(&["rev-parse", "main"]));
    std::fs::write(&gate, "go\n").unwrap();
    let _ = sandbox.proq(&["wait", "busy"]);
}

#[test]
fn refreshing_follows_the_lane_and_keeps_edits_beside_it() {
    let sandbox = two_lanes();
    let _ = sandbox.proq(&["preview", "one"]).ok();
    sandbox.sh("echo staged > own.txt; git add own.txt; echo edit > own.txt; echo u > untracked");
    let status = sandbox.git(&["status", "--short"]);
    sandbox.commit_in_lane("one", "echo again > one.txt; echo n > next.txt");
    let _ = sandbox.proq(&["preview", "--refresh"]).ok();
    assert_eq!(sandbox.git(&["rev-parse", "HEAD"]), sandbox.git(&["rev-parse", "proq/one"]));
    assert_eq!((sandbox.read("one.txt"), sandbox.read("next.txt")), ("again\n".into(), "n\n".into()));
    assert_eq!(sandbox.git(&["status", "--short"]), status);
    // The agent rewrote its history: what is shown is still the lane.
    sandbox.sh_in(&sandbox.lane("one"), "echo amended > one.txt; git commit -qa --amend -m amended");
    let _ = sandbox.proq(&["preview", "--refresh"]).ok();
    assert_eq!(sandbox.git(&["rev-parse", "HEAD"]), sandbox.git(&["rev-parse", "proq/one"]));
    assert_eq!(sandbox.read("one.txt"), "amended\n");
    assert_eq!(sandbox.git(&["status", "--short"]), status);
}

#[test]
fn refreshing_over_an_edit_is_refused_by_name() {
    let sandbox = two_lanes();
    let _ = sandbox.proq(&["preview", "one"]).ok();
    sandbox.write("one.txt", "edit\n");
    sandbox.commit_in_lane("one", "echo again > one.txt");
    let before = Image::of(&sandbox, &sandbox.repo);
    let out = sandbox.proq(&["preview", "--refresh"]);
    insta::assert_snapshot!(out.shown(), @r"
    --- stderr
    error: local changes in [ROOT]/repo stand in the way: one.txt; nothing was changed
    hint: commit them first: git -C '[ROOT]/repo' commit -am WIP
    hint: or set them aside: git -C '[ROOT]/repo' stash push
    --- code 1
    ");
    same(&before, &Image::of(&sandbox, &sandbox.repo));
}

#[test]
fn refreshing_with_commits_on_both_sides_is_refused() {
    let sandbox = two_lanes();
    let _ = sandbox.proq(&["preview", "one"]).ok();
    sandbox.sh("echo more > more.txt; git add .; git commit -qm more");
    sandbox.commit_in_lane("one", "echo again > one.txt");
    let before = Image::of(&sandbox, &sandbox.repo);
    let text = sandbox.proq(&["preview", "--refresh"]).fails(1);
    assert!(text.contains("lane 'one' and its preview both have commits of their own"), "{text}");
    same(&before, &Image::of(&sandbox, &sandbox.repo));
}

#[test]
fn a_preview_from_inside_a_lane_acts_on_the_main_checkout() {
    let sandbox = two_lanes();
    let _ = sandbox.proq_in(&sandbox.lane("two"), &["preview", "one"]).ok();
    assert_eq!(sandbox.git(&["rev-parse", "--abbrev-ref", "HEAD"]), "proq/one-preview");
    let head = sandbox.git_in(&sandbox.lane("two"), &["rev-parse", "--abbrev-ref", "HEAD"]);
    assert_eq!(head, "proq/two");
    let _ = sandbox.proq_in(&sandbox.lane("two"), &["preview", "--back"]).ok();
    assert_eq!(sandbox.git(&["rev-parse", "--abbrev-ref", "HEAD"]), "main");
}

#[test]
fn the_post_checkout_hook_runs_on_the_way_in_and_out() {
    let sandbox = two_lanes();
    let hook = "#!/bin/sh\necho \"$1 $2 $3\" >> ../hooked\n";
    sandbox.sh(&format!(
        "mkdir -p .git/hooks; printf '{hook}' > .git/hooks/post-checkout; chmod +x .git/hooks/*"
    ));
    let _ = sandbox.proq(&["preview", "one"]).ok();
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    let (main, one) = (sandbox.git(&["rev-parse", "main"]), sandbox.git(&["rev-parse", "proq/one"]));
    let said = std::fs::read_to_string(sandbox.root().join("hooked")).unwrap();
    assert_eq!(said, format!("{main} {one} 1\n{one} {main} 1\n"));
}

#[test]
fn the_reflog_tells_of_both_ways_so_that_a_dash_leads_back() {
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
fn refreshing_a_preview_that_is_ahead_of_its_lane_says_so() {
    for set_back in ["true", "git reset -q --hard main"] {
        let sandbox = two_lanes();
        let _ = sandbox.proq(&["preview", "one"]).ok();
        sandbox.sh("echo more > more.txt; git add .; git commit -qm more");
        sandbox.sh_in(&sandbox.lane("one"), set_back);
        for args in [&["preview", "--refresh", "--dry-run"][..], &["preview", "--refresh"]] {
            let before = Image::of(&sandbox, &sandbox.repo);
            let out = sandbox.proq(args);
            insta::allow_duplicates!(insta::assert_snapshot!(out.shown(), @r"
            --- stderr
            error: cannot refresh the preview of lane 'one': it has commits that the lane has not, and the lane has nothing new; nothing was changed
            hint: leave it; its commits are kept: git proq preview --back
            --- code 1
            "));
            same(&before, &Image::of(&sandbox, &sandbox.repo));
        }
        let _ = sandbox.proq(&["preview", "--back"]).ok();
    }
}

#[test]
fn a_planned_refresh_names_where_the_lane_is_and_refuses_what_the_refresh_refuses() {
    let sandbox = two_lanes();
    let _ = sandbox.proq(&["preview", "one"]).ok();
    sandbox.commit_in_lane("one", "echo again > one.txt");
    let before = Image::of(&sandbox, &sandbox.repo);
    insta::assert_snapshot!(sandbox.proq(&["preview", "--refresh", "--dry-run"]).shown(), @r"
    would bring the main checkout from the preview of 'one' to proq/one
      files that change   1
    --- code 0
    ");
    same(&before, &Image::of(&sandbox, &sandbox.repo));
    sandbox.write("one.txt", "edit\n");
    let planned = sandbox.proq(&["preview", "--refresh", "--dry-run"]).fails(1);
    assert_eq!(planned, sandbox.proq(&["preview", "--refresh"]).fails(1));
    sandbox.sh("git checkout -q one.txt; git switch -q -c elsewhere");
    for way in ["--refresh", "--back"] {
        let planned = sandbox.proq(&["preview", way, "--dry-run"]).fails(1);
        assert_eq!(planned, sandbox.proq(&["preview", way]).fails(1));
    }
}

#[test]
fn a_planned_preview_refuses_ignored_files_in_the_way_as_the_preview_does() {
    let sandbox = Sandbox::new();
    sandbox.sh("echo '*.log' > .gitignore; mkdir d; echo d > d/f; echo '/.env' >> .gitignore; echo e > .env; git add -f .env");
    sandbox.commit_all("base");
    sandbox.lane_of(
        "one",
        "echo lane > keep.log; git add -f keep.log; echo lane > loose; echo lane > .env; git add -f .env",
    );
    // What is set aside with the user's own changes is not in the way: `loose`, a file in place of a folder, and one taken out of the index.
    sandbox.sh("echo loose > loose; rm -r d; echo own > d; git rm -q --cached .env; echo own > .env");
    let _ = sandbox.proq(&["preview", "one", "--dry-run"]).ok();
    let _ = sandbox.proq(&["preview", "one"]).ok();
    let _ = sandbox.proq(&["preview", "--back", "--dry-run"]).ok();
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    sandbox.write("keep.log", "mine\n");
    let before = Image::of(&sandbox, &sandbox.repo);
    let planned = sandbox.proq(&["preview", "one", "--dry-run"]).fails(1);
    assert!(planned.contains("stand in the way: keep.log; nothing was changed"), "{planned}");
    assert_eq!(planned, sandbox.proq(&["preview", "one"]).fails(1));
    same(&before, &Image::of(&sandbox, &sandbox.repo));
}

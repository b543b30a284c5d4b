//! Tests of lanes that the user landed manually: cherry-picked, rebased or squashed.

use proq_test_kit::Sandbox;

/// Creates a file of thirty lines and a lane `x` with two commits to it: one changes line 5, one adds a line
/// below 20. The base then has another commit in another file.
fn lane_with_two_commits() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.sh("seq 30 > long; git add .; git commit -qm long");
    sandbox.lane_with_commit("x", "sed -i 's/^5$/five/' long; git commit -qam five; sed -i '20a more' long");
    sandbox.sh("echo b > b; git add .; git commit -qm between");
    sandbox
}

/// Changes the lines of the lane again on the base, so that no merge can detect that they landed.
fn rewrite_landed_lines(sandbox: &Sandbox) {
    sandbox.sh("sed -i 's/^five$/FIVE/; s/^more$/MORE/' long; git commit -qam 'went on'");
    assert!(sandbox.sh("git merge-tree --write-tree main proq/x || echo conflict").contains("CONFLICT"));
}

/// Asserts that every command treats `x` as landed and that its tip is saved when it is removed.
#[track_caller]
fn assert_landed(sandbox: &Sandbox) {
    let tip = sandbox.git(&["rev-parse", "proq/x"]);
    let shown = sandbox.proq(&["show", "x"]).ok();
    assert!(shown.contains("by hand: main has the same changes in other commits"), "{shown}");
    assert_eq!(sandbox.proq(&["show", "x", "--json"]).json()["landed_by_hand"], true);
    let base = sandbox.git(&["rev-parse", "main"]);
    let plan = sandbox.proq(&["merge", "x", "--dry-run"]).ok();
    assert!(plan.contains("everything in it is on main already"), "{plan}");
    let out = sandbox.proq(&["merge", "x", "--no-cleanup", "--json"]).json();
    assert_eq!(out["lanes"][0]["result"], "already-landed");
    assert!(out["lanes"][0]["message"].as_str().unwrap().contains("by patch id"), "{out}");
    assert_eq!(sandbox.git(&["rev-parse", "main"]), base);
    let _ = sandbox.proq(&["cleanup", "x"]).ok();
    assert!(!sandbox.lane_path("x").exists());
    let saved_tips = sandbox.git(&["for-each-ref", "--format=%(objectname)", "refs/proq/saved/"]);
    assert!(saved_tips.contains(&tip), "{saved_tips}");
    sandbox.assert_healthy();
}

/// Asserts that no command treats `x` as landed.
#[track_caller]
fn assert_not_landed(sandbox: &Sandbox) {
    let shown = sandbox.proq(&["show", "x"]).ok();
    assert!(!shown.contains("by hand"), "{shown}");
    let text = sandbox.proq(&["cleanup", "x"]).fails(1);
    assert!(text.contains("not on main"), "{text}");
    let plan = sandbox.proq(&["merge", "x", "--dry-run", "--json"]).json();
    assert_ne!(plan["lanes"][0]["result"], "already-landed");
    assert!(sandbox.lane_path("x").exists());
}

/// Promise: removal/manual-landing
#[test]
fn cherry_picked_commits_count_as_landed() {
    let sandbox = lane_with_two_commits();
    sandbox.sh("git cherry-pick main..proq/x");
    rewrite_landed_lines(&sandbox);
    assert_landed(&sandbox);
}

#[test]
fn rebased_commits_count_as_landed() {
    let sandbox = lane_with_two_commits();
    sandbox.sh("sed -i 's/^29$/29!/' long; git commit -qam below; git branch copy proq/x");
    sandbox.sh("git rebase -q main copy; git switch -q main; git merge -q --ff-only copy");
    rewrite_landed_lines(&sandbox);
    assert_landed(&sandbox);

    let sandbox = lane_with_two_commits();
    sandbox.sh("sed -i 's/^29$/29!/' long; git commit -qam below; git branch copy proq/x");
    sandbox.sh("git rebase -q main copy; git switch -q main; git merge -q --no-ff --no-edit copy");
    rewrite_landed_lines(&sandbox);
    assert_landed(&sandbox);
}

/// Promise: removal/manual-landing
#[test]
fn manual_squash_counts_as_landed() {
    let sandbox = lane_with_two_commits();
    sandbox.sh("git merge -q --squash proq/x; git commit -qm squashed");
    rewrite_landed_lines(&sandbox);
    assert_landed(&sandbox);

    let sandbox = lane_with_two_commits();
    sandbox.sh_in(&sandbox.lane_path("x"), "git merge -q --no-edit main");
    sandbox.sh("git merge -q --squash proq/x; git commit -qm squashed");
    rewrite_landed_lines(&sandbox);
    assert_landed(&sandbox);
}

#[test]
fn user_diff_settings_do_not_affect_patch_ids() {
    for settings in [
        "diff.noprefix=true diff.mnemonicPrefix=true diff.context=0 diff.algorithm=patience",
        "diff.external=false diff.renames=copies diff.interHunkContext=9 color.ui=always color.diff=always",
        "diff.ignoreSubmodules=all diff.orderFile=/nowhere core.whitespace=cr-at-eol diff.relative=true",
    ] {
        let sandbox = lane_with_two_commits();
        sandbox.sh("git cherry-pick main..proq/x");
        rewrite_landed_lines(&sandbox);
        for setting in settings.split(' ') {
            let (key, value) = setting.split_once('=').unwrap();
            sandbox.git(&["config", key, value]);
        }
        sandbox.write(".git/info/attributes", "* -diff\n");
        assert!(sandbox.proq(&["show", "x"]).ok().contains("by hand"), "{settings}");
    }
}

/// Promise: removal/exact-patch-id
#[test]
fn whitespace_difference_is_not_landed() {
    for (ours, theirs) in
        [("    c()", "  c()"), ("    c()", "\tc()"), ("  c()", "  c() "), ("  c()", "  c()\\r")]
    {
        let sandbox = Sandbox::new();
        sandbox.sh("printf 'if a:\\n  b()\\nc()\\n' > a.py; git add .; git commit -qm python");
        sandbox.lane_with_commit("x", &format!("printf 'if a:\\n  b()\\n{ours}\\n' > a.py"));
        sandbox.sh(&format!("printf 'if a:\\n  b()\\n{theirs}\\n' > a.py; git commit -qam indent"));
        let id = |rev: &str| {
            sandbox.sh(&format!("git diff-tree -p {rev} | git patch-id --stable | cut -d' ' -f1"))
        };
        assert_eq!(id("main"), id("proq/x"), "git's own ids are blind to it");
        assert_not_landed(&sandbox);
    }
}

/// Promise: removal/exact-patch-id
#[test]
fn bytes_after_nul_and_file_modes_count() {
    let long = |last: &str| format!("(seq 3000; printf 'a\\0{last}\\n') > f");
    let sandbox = Sandbox::new();
    sandbox.sh("seq 3000 > f; git add .; git commit -qm f");
    sandbox.lane_with_commit("x", &long("b"));
    sandbox.sh(&format!("{}; git commit -qam f", long("c")));
    assert_not_landed(&sandbox);

    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("x", "echo run > run; chmod +x run");
    sandbox.sh("echo run > run; git add .; git commit -qm run");
    assert_not_landed(&sandbox);
}

/// Promise: removal/complete-patch-id
#[test]
fn partly_picked_lane_is_not_landed() {
    let sandbox = lane_with_two_commits();
    sandbox.sh("git cherry-pick proq/x~1");
    sandbox.sh("sed -i 's/^five$/FIVE/' long; git commit -qam 'went on'");
    assert_not_landed(&sandbox);
}

#[test]
fn different_change_in_same_file_is_not_landed() {
    let sandbox = lane_with_two_commits();
    sandbox
        .sh("sed -i 's/^5$/cinq/' long; git commit -qam five; sed -i '20a mehr' long; git commit -qam more");
    assert_not_landed(&sandbox);
}

/// Promise: removal/complete-patch-id
#[test]
fn reverted_changes_are_not_landed() {
    // As `git revert` does it; one commit, and all in one, with another message and in a file that has
    // changed elsewhere too; with conflicts; and the old file restored together with another change in it.
    for script in [
        "git revert --no-edit HEAD",
        "sed -i 's/^29$/29!/' long; git commit -qam below; git revert -n HEAD~1; git commit -qm 'not that'",
        "sed -i 's/^29$/29!/' long; git commit -qam below; git revert -n HEAD~1 HEAD~2; git commit -qm 'not yet'",
        "sed -i 's/^6$/six/' long; git commit -qam near; git revert --no-edit HEAD~2 || \
         { sed -i '/^[<=>|]/d; /^five$/d; /^5$/d; s/^4$/4\\n5/' long; git add long; git -c core.editor=true revert --continue; }",
        "sed -i 's/^29$/29!/' long; git commit -qam below; seq 30 > long; git commit -qam 'as it was'",
    ] {
        let sandbox = lane_with_two_commits();
        sandbox.sh("git cherry-pick main..proq/x");
        sandbox.sh(script);
        assert_not_landed(&sandbox);
    }
    let sandbox = lane_with_two_commits();
    sandbox.sh("git merge -q --squash proq/x; git commit -qm squashed; git revert --no-edit HEAD");
    sandbox.sh("sed -i 's/^29$/29!/' long; git commit -qam below");
    assert_not_landed(&sandbox);
}

#[test]
fn reverted_and_reapplied_changes_are_landed() {
    let sandbox = lane_with_two_commits();
    sandbox.sh("git merge -q --squash proq/x; git commit -qm squashed; git revert --no-edit HEAD");
    sandbox.sh("git merge -q --squash proq/x; git commit -qm 'squashed again'");
    rewrite_landed_lines(&sandbox);
    assert_landed(&sandbox);
}

/// Promise: removal/complete-patch-id
#[test]
fn changes_dropped_by_ours_merge_are_not_landed() {
    let sandbox = lane_with_two_commits();
    sandbox.sh("git branch copy; git switch -q copy; git cherry-pick main..proq/x");
    sandbox.sh("git switch -q main; git merge -q -s ours --no-edit copy; seq 31 > long; git commit -qam on");
    assert_not_landed(&sandbox);
}

#[test]
fn lane_1000_commits_behind_is_not_landed() {
    let sandbox = lane_with_two_commits();
    sandbox.sh("git cherry-pick main..proq/x");
    rewrite_landed_lines(&sandbox);
    sandbox.sh("{ for n in $(seq 1000); do
             printf 'commit refs/heads/main\ncommitter c <c@d> 1767225600 +0000\ndata 1\n.\n'
             [ $n -gt 1 ] || printf 'from refs/heads/main^0\n'
         done; } | git fast-import --quiet; git reset -q --hard");
    assert_not_landed(&sandbox);
}

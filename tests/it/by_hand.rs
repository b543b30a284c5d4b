//! Owns the tests of lanes that somebody brought to the base by hand: picked, rebased, squashed, commit for commit or as one.

use super::support::Sandbox;

/// A base with a file of thirty lines that goes on in another one, and lane `x` with two commits in that: one changes line
/// 5, one adds a line below 20.
fn lane() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.sh("seq 30 > long; git add .; git commit -qm long");
    sandbox.lane_of("x", "sed -i 's/^5$/five/' long; git commit -qam five; sed -i '20a more' long");
    sandbox.sh("echo b > b; git add .; git commit -qm between");
    sandbox
}

/// The base goes on in the very lines that the lane changed, so that no merge tells that they were there.
fn go_on(sandbox: &Sandbox) {
    sandbox.sh("sed -i 's/^five$/FIVE/; s/^more$/MORE/' long; git commit -qam 'went on'");
    assert!(sandbox.sh("git merge-tree --write-tree main proq/x || echo conflict").contains("CONFLICT"));
}

/// Insists that `x` is seen as landed by everything that asks, and that its tip outlives it.
#[track_caller]
fn landed(sandbox: &Sandbox) {
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
    assert!(!sandbox.lane("x").exists());
    let kept = sandbox.git(&["for-each-ref", "--format=%(objectname)", "refs/proq/saved/"]);
    assert!(kept.contains(&tip), "{kept}");
    sandbox.assert_healthy();
}

/// Insists that nothing takes `x` for landed.
#[track_caller]
fn not_landed(sandbox: &Sandbox) {
    let shown = sandbox.proq(&["show", "x"]).ok();
    assert!(!shown.contains("by hand"), "{shown}");
    let text = sandbox.proq(&["cleanup", "x"]).fails(1);
    assert!(text.contains("not on main"), "{text}");
    let plan = sandbox.proq(&["merge", "x", "--dry-run", "--json"]).json();
    assert_ne!(plan["lanes"][0]["result"], "already-landed");
    assert!(sandbox.lane("x").exists());
}

#[test]
fn commits_that_were_picked_have_landed() {
    let sandbox = lane();
    sandbox.sh("git cherry-pick main..proq/x");
    go_on(&sandbox);
    landed(&sandbox);
}

#[test]
fn commits_that_were_rebased_have_landed_also_as_a_merge() {
    let sandbox = lane();
    sandbox.sh("sed -i 's/^29$/29!/' long; git commit -qam below; git branch copy proq/x");
    sandbox.sh("git rebase -q main copy; git switch -q main; git merge -q --ff-only copy");
    go_on(&sandbox);
    landed(&sandbox);

    let sandbox = lane();
    sandbox.sh("sed -i 's/^29$/29!/' long; git commit -qam below; git branch copy proq/x");
    sandbox.sh("git rebase -q main copy; git switch -q main; git merge -q --no-ff --no-edit copy");
    go_on(&sandbox);
    landed(&sandbox);
}

#[test]
fn a_squash_by_hand_has_landed_also_of_a_lane_with_merges() {
    let sandbox = lane();
    sandbox.sh("git merge -q --squash proq/x; git commit -qm squashed");
    go_on(&sandbox);
    landed(&sandbox);

    let sandbox = lane();
    sandbox.sh_in(&sandbox.lane("x"), "git merge -q --no-edit main");
    sandbox.sh("git merge -q --squash proq/x; git commit -qm squashed");
    go_on(&sandbox);
    landed(&sandbox);
}

#[test]
fn a_person_s_own_diff_settings_make_no_difference() {
    for settings in [
        "diff.noprefix=true diff.mnemonicPrefix=true diff.context=0 diff.algorithm=patience",
        "diff.external=false diff.renames=copies diff.interHunkContext=9 color.ui=always color.diff=always",
        "diff.ignoreSubmodules=all diff.orderFile=/nowhere core.whitespace=cr-at-eol diff.relative=true",
    ] {
        let sandbox = lane();
        sandbox.sh("git cherry-pick main..proq/x");
        go_on(&sandbox);
        for setting in settings.split(' ') {
            let (key, value) = setting.split_once('=').unwrap();
            sandbox.git(&["config", key, value]);
        }
        sandbox.write(".git/info/attributes", "* -diff\n");
        assert!(sandbox.proq(&["show", "x"]).ok().contains("by hand"), "{settings}");
    }
}

#[test]
fn what_differs_in_white_space_only_has_not_landed_by_patch_id() {
    for (ours, theirs) in
        [("    c()", "  c()"), ("    c()", "\tc()"), ("  c()", "  c() "), ("  c()", "  c()\\r")]
    {
        let sandbox = Sandbox::new();
        sandbox.sh("printf 'if a:\\n  b()\\nc()\\n' > a.py; git add .; git commit -qm python");
        sandbox.lane_of("x", &format!("printf 'if a:\\n  b()\\n{ours}\\n' > a.py"));
        sandbox.sh(&format!("printf 'if a:\\n  b()\\n{theirs}\\n' > a.py; git commit -qam indent"));
        let id = |rev: &str| {
            sandbox.sh(&format!("git diff-tree -p {rev} | git patch-id --stable | cut -d' ' -f1"))
        };
        assert_eq!(id("main"), id("proq/x"), "git's own ids are blind to it");
        not_landed(&sandbox);
    }
}

#[test]
fn bytes_behind_a_nul_and_modes_count() {
    let long = |last: &str| format!("(seq 3000; printf 'a\\0{last}\\n') > f");
    let sandbox = Sandbox::new();
    sandbox.sh("seq 3000 > f; git add .; git commit -qm f");
    sandbox.lane_of("x", &long("b"));
    sandbox.sh(&format!("{}; git commit -qam f", long("c")));
    not_landed(&sandbox);

    let sandbox = Sandbox::new();
    sandbox.lane_of("x", "echo run > run; chmod +x run");
    sandbox.sh("echo run > run; git add .; git commit -qm run");
    not_landed(&sandbox);
}

#[test]
fn a_lane_of_which_a_part_was_picked_has_not_landed() {
    let sandbox = lane();
    sandbox.sh("git cherry-pick proq/x~1");
    sandbox.sh("sed -i 's/^five$/FIVE/' long; git commit -qam 'went on'");
    not_landed(&sandbox);
}

#[test]
fn a_commit_in_the_same_file_that_is_another_change_is_none() {
    let sandbox = lane();
    sandbox
        .sh("sed -i 's/^5$/cinq/' long; git commit -qam five; sed -i '20a mehr' long; git commit -qam more");
    not_landed(&sandbox);
}

#[test]
fn what_the_base_has_taken_back_has_not_landed() {
    // As `git revert` does it and names it; one commit, and all in one, with other words and in a file that has changed
    // besides; with conflicts; the file as it was, with what else had changed in it.
    for script in [
        "git revert --no-edit HEAD",
        "sed -i 's/^29$/29!/' long; git commit -qam below; git revert -n HEAD~1; git commit -qm 'not that'",
        "sed -i 's/^29$/29!/' long; git commit -qam below; git revert -n HEAD~1 HEAD~2; git commit -qm 'not yet'",
        "sed -i 's/^6$/six/' long; git commit -qam near; git revert --no-edit HEAD~2 || \
         { sed -i '/^[<=>|]/d; /^five$/d; /^5$/d; s/^4$/4\\n5/' long; git add long; git -c core.editor=true revert --continue; }",
        "sed -i 's/^29$/29!/' long; git commit -qam below; seq 30 > long; git commit -qam 'as it was'",
    ] {
        let sandbox = lane();
        sandbox.sh("git cherry-pick main..proq/x");
        sandbox.sh(script);
        not_landed(&sandbox);
    }
    let sandbox = lane();
    sandbox.sh("git merge -q --squash proq/x; git commit -qm squashed; git revert --no-edit HEAD");
    sandbox.sh("sed -i 's/^29$/29!/' long; git commit -qam below");
    not_landed(&sandbox);
}

#[test]
fn what_was_taken_back_and_brought_again_has_landed() {
    let sandbox = lane();
    sandbox.sh("git merge -q --squash proq/x; git commit -qm squashed; git revert --no-edit HEAD");
    sandbox.sh("git merge -q --squash proq/x; git commit -qm 'squashed again'");
    go_on(&sandbox);
    landed(&sandbox);
}

#[test]
fn what_a_merge_of_the_base_s_left_out_has_not_landed() {
    let sandbox = lane();
    sandbox.sh("git branch copy; git switch -q copy; git cherry-pick main..proq/x");
    sandbox.sh("git switch -q main; git merge -q -s ours --no-edit copy; seq 31 > long; git commit -qam on");
    not_landed(&sandbox);
}

#[test]
fn of_a_lane_that_is_too_far_from_its_base_nothing_is_known() {
    let sandbox = lane();
    sandbox.sh("git cherry-pick main..proq/x");
    go_on(&sandbox);
    sandbox.sh("{ for n in $(seq 1000); do
             printf 'commit refs/heads/main\ncommitter c <c@d> 1767225600 +0000\ndata 1\n.\n'
             [ $n -gt 1 ] || printf 'from refs/heads/main^0\n'
         done; } | git fast-import --quiet; git reset -q --hard");
    not_landed(&sandbox);
}

//! Tests of landings that save uncommitted changes in their way and restore them (`--autostash`).

use proq_test_kit::faults::{assert_tidy, kill_at, recover};
use proq_test_kit::{Sandbox, WorktreeState};

/// Changes of a user beside the landing: staged, unstaged, untracked, deleted, with another mode, links.
const OTHER_CHANGES: &str = "echo s > keep.txt; git add keep.txt; echo u > keep.txt; echo n > new; git add new; \
     echo n2 > new; rm gone.txt; git rm -q cached.txt; chmod +x mode.txt; ln -sf keep.txt link; ln -s nowhere dangling; \
     echo i > planned; git add -N planned; mkdir -p d; echo u > 'd/two words'; echo log > x.log";

/// Creates lane `one`, which changes the second line of `long.txt`, and an uncommitted edit of the last line.
fn sandbox_with_edit() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.sh(
        "seq 20 > long.txt; for f in keep gone cached mode other; do echo $f > $f.txt; done; ln -s a.txt link; \
         echo '*.log' > .gitignore",
    );
    sandbox.commit_all("base");
    sandbox.lane_with_commit("one", "sed -i 's/^2$/two/' long.txt; echo lane > lane.txt");
    sandbox.sh("sed -i 's/^20$/twenty/' long.txt");
    sandbox
}

/// Creates lane `one`, and an uncommitted edit that conflicts with it beside one that does not.
fn sandbox_with_conflict() -> Sandbox {
    let sandbox = sandbox_with_edit();
    sandbox.sh("sed -i 's/^2$/zwei/' long.txt; echo mine > keep.txt");
    sandbox
}

fn state(sandbox: &Sandbox) -> WorktreeState {
    WorktreeState::capture(sandbox, &sandbox.repo)
}

/// Returns the modification times of the user's files, in nanoseconds.
fn times(sandbox: &Sandbox) -> String {
    sandbox.sh("find . -path ./.git -prune -o -path ./.proq-worktrees -prune -o -type f -printf '%p %T@ %i\\n' | sort")
}

fn snapshots(sandbox: &Sandbox) -> Vec<serde_json::Value> {
    let list = sandbox.proq(&["snap", "list", "--json"]).json();
    list["snapshots"].as_array().unwrap_or_else(|| panic!("{list}")).clone()
}

/// Asserts that both edits are in `long.txt`, and that the landing is on the base.
#[track_caller]
fn assert_landed_with_edit(sandbox: &Sandbox) {
    assert_eq!(sandbox.sh("sed -n '2p;20p' long.txt"), "two\ntwenty");
    assert_eq!(sandbox.git(&["show", "main:lane.txt"]), "lane");
    assert_eq!(sandbox.git(&["diff", "--name-only", "HEAD", "--", "long.txt", "lane.txt"]), "long.txt");
}

/// Promise: worktree/autostash
#[test]
fn saves_and_restores_every_kind_of_change() {
    let sandbox = sandbox_with_edit();
    sandbox.sh(OTHER_CHANGES);
    let before = state(&sandbox);
    let out = sandbox.proq(&["merge", "one", "--autostash"]);
    let text = out.to_text();
    assert_eq!(out.code, 0, "{text}");
    assert!(text.contains("restored your changes in [ROOT]/repo\n"), "{text}");
    assert_landed_with_edit(&sandbox);
    let mut after = state(&sandbox);
    let names = |state: &WorktreeState| {
        state.status.iter().map(|line| line.split(' ').next_back().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(&before), names(&after));
    let codes =
        |sandbox: &WorktreeState| sandbox.status.iter().map(|l| l[..4].to_owned()).collect::<Vec<_>>();
    assert_eq!(codes(&before), codes(&after));
    for path in ["long.txt", "lane.txt"] {
        let _ = after.files.remove(path);
    }
    let mut files = before.files.clone();
    let _ = files.remove("long.txt");
    assert_eq!(files, after.files);
    assert_eq!((sandbox.git(&["show", ":keep.txt"]), sandbox.read("keep.txt")), ("s".into(), "u\n".into()));
    assert_eq!(snapshots(&sandbox)[0]["state"], "restored");
    sandbox.assert_healthy();
    assert_tidy(&sandbox);
}

#[test]
fn refuses_as_before_without_autostash() {
    let sandbox = sandbox_with_edit();
    let before = (state(&sandbox), times(&sandbox));
    let refused = |sandbox: &Sandbox, args: &[&str]| {
        let text = sandbox.proq(args).fails(1);
        assert!(text.contains("in the way: long.txt; nothing was changed"), "{text}");
    };
    refused(&sandbox, &["merge", "one"]);
    sandbox.git(&["config", "proq.merge.autostash", "true"]);
    refused(&sandbox, &["merge", "one", "--no-autostash"]);
    assert_eq!(before, (state(&sandbox), times(&sandbox)));
    assert_eq!(snapshots(&sandbox).len(), 0);
    let _ = sandbox.proq(&["merge", "one"]).ok();
    assert_landed_with_edit(&sandbox);
}

#[test]
fn takes_no_snapshot_if_nothing_is_in_the_way() {
    let sandbox = sandbox_with_edit();
    sandbox.sh("git checkout -q long.txt; echo mine > keep.txt");
    let _ = sandbox.proq(&["merge", "one", "--autostash"]).ok();
    assert_eq!(snapshots(&sandbox).len(), 0);
    assert_eq!(sandbox.git(&["status", "--short"]), " M keep.txt");
}

#[test]
fn dry_run_names_the_changes_and_changes_nothing() {
    let sandbox = sandbox_with_edit();
    sandbox.sh("echo mine > keep.txt; echo u > untracked");
    let before = (state(&sandbox), times(&sandbox), sandbox.git(&["for-each-ref"]));
    let text = sandbox.proq(&["merge", "one", "--autostash", "--dry-run"]).ok();
    let expected = "would save and restore your changes in [ROOT]/repo: 3 files\n    keep.txt\n    long.txt\n    untracked\n";
    assert!(text.contains(expected), "{text}");
    let json = sandbox.proq(&["merge", "--all", "--autostash", "--dry-run", "--json"]).json();
    assert_eq!(json["autostash"][0]["result"], "planned");
    assert_eq!(json["autostash"][0]["files"], serde_json::json!(["keep.txt", "long.txt", "untracked"]));
    assert_eq!(before, (state(&sandbox), times(&sandbox), sandbox.git(&["for-each-ref"])));
}

/// The hint about a conflict is followed as it is printed.
///
/// Promise: worktree/autostash
#[test]
fn conflict_keeps_the_snapshot_and_names_it() {
    let sandbox = sandbox_with_conflict();
    let out = sandbox.proq(&["merge", "one", "--autostash"]);
    let id = snapshots(&sandbox)[0]["id"].as_str().unwrap().to_owned();
    let text = out.fails(3);
    let warning = format!(
        "your changes in [ROOT]/repo conflict with main in long.txt; they are saved as snapshot {id}"
    );
    assert!(text.contains(&warning), "{text}");
    assert_eq!(sandbox.git(&["status", "--short"]), "");
    assert_eq!(sandbox.read("lane.txt"), "lane\n");
    assert_eq!(snapshots(&sandbox)[0]["state"], "kept");
    sandbox.assert_healthy();
    let applied = sandbox.follow_hint(&text, "restore your changes");
    assert_eq!(applied.code, 1, "{}", applied.to_text());
    assert_eq!(sandbox.git(&["status", "--short"]), "M  keep.txt\nUU long.txt");
    let merged = sandbox.read("long.txt");
    for line in ["<<<<<<<", "\ntwo\n", "\nzwei\n", "\ntwenty\n"] {
        assert!(merged.contains(line), "{merged}");
    }
}

#[test]
fn untracked_file_in_the_way_is_saved() {
    let sandbox = sandbox_with_edit();
    sandbox.sh("git checkout -q long.txt; echo mine > lane.txt");
    let text = sandbox.proq(&["merge", "one", "--autostash"]).fails(3);
    assert!(text.contains("conflict with main in lane.txt"), "{text}");
    assert_eq!(sandbox.read("lane.txt"), "lane\n");
    let applied = sandbox.follow_hint(&text, "restore your changes");
    assert_eq!(applied.code, 0, "{}", applied.to_text());
    assert_eq!(sandbox.read("lane.txt"), "mine\n");
}

#[test]
fn json_names_snapshot_and_conflicts() {
    let sandbox = sandbox_with_conflict();
    let out = sandbox.proq(&["merge", "one", "--autostash", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&out.stdout).unwrap();
    let report = &json["autostash"][0];
    assert_eq!(
        (out.code, &report["result"], &report["conflicts"]),
        (3, &"conflict".into(), &serde_json::json!(["long.txt"]))
    );
    assert_eq!(report["snapshot"], snapshots(&sandbox)[0]["id"]);
    assert_eq!(json["lanes"][0]["result"], "landed");
}

/// Ignored files are in no snapshot.
#[test]
fn ignored_file_in_the_way_still_refuses() {
    let sandbox = Sandbox::new();
    sandbox.sh("echo '*.log' > .gitignore");
    sandbox.commit_all("base");
    sandbox.lane_with_commit("one", "echo l > x.log; git add -f x.log; echo lane > a.txt");
    sandbox.sh("echo mine > x.log; echo mine > a.txt");
    let before = (state(&sandbox), times(&sandbox));
    let text = sandbox.proq(&["merge", "one", "--autostash"]).fails(1);
    assert!(text.contains("in the way: x.log"), "{text}");
    assert_eq!(before, (state(&sandbox), times(&sandbox)));
}

#[test]
fn other_lanes_land_if_one_cannot_be_helped() {
    let sandbox = Sandbox::new();
    sandbox.sh("echo '*.log' > .gitignore; for n in 1 2 3; do seq 20 > f$n; done");
    sandbox.commit_all("base");
    sandbox.lane_with_commit("l1", "sed -i 's/^2$/two/' f1");
    sandbox.lane_with_commit("l2", "echo l > x.log; git add -f x.log");
    sandbox.sh("sed -i 's/^20$/twenty/' f1; echo mine > x.log");
    let text = sandbox.proq(&["merge", "--all", "--autostash"]).fails(1);
    assert!(text.contains("refused l2") && text.contains("landed l1"), "{text}");
    assert_eq!(sandbox.sh("sed -n '2p;20p' f1; cat x.log"), "two\ntwenty\nmine");
}

#[test]
fn lands_all_lanes_with_one_snapshot() {
    for args in [&["merge", "--all", "--autostash"][..], &["merge", "one", "two", "--atomic", "--autostash"]]
    {
        let sandbox = sandbox_with_edit();
        sandbox.lane_with_commit("two", "echo two > two.txt");
        sandbox.sh("echo mine > keep.txt");
        let _ = sandbox.proq(args).ok();
        assert_landed_with_edit(&sandbox);
        assert_eq!(sandbox.read("two.txt"), "two\n");
        assert_eq!(snapshots(&sandbox).len(), 1);
        sandbox.assert_healthy();
    }
}

/// An atomic landing on two bases moves the first base back when the second cannot follow: a hook of git vetoes
/// that move, when changes in the checkouts of both bases are saved.
#[test]
fn atomic_landing_that_fails_restores_everything() {
    let sandbox = sandbox_with_edit();
    sandbox.sh(OTHER_CHANGES);
    sandbox.git(&["branch", "next", "main"]);
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "later", "--base", "next"]).ok();
    sandbox.commit_in_lane("later", "sed -i 's/^2$/later/' long.txt; echo l > x.log; git add -f x.log");
    let next = sandbox.root().join("next");
    sandbox.sh("git worktree add -q ../next next; cd ../next; sed -i 's/^20$/mine/' long.txt; echo u > new; echo i > x.log");
    let all_state = || {
        let bases = sandbox.git(&["rev-parse", "main", "next"]);
        (state(&sandbox), WorktreeState::capture(&sandbox, &next), bases)
    };
    let before = all_state();
    let args = ["merge", "one", "later", "--atomic", "--autostash"];
    // An ignored file is in the way.
    let text = sandbox.proq(&args).fails(1);
    assert!(text.contains("in the way: x.log"), "{text}");
    assert_eq!(before, all_state());
    sandbox.sh("rm ../next/x.log");
    let before = all_state();
    sandbox.write(
        ".git/hooks/reference-transaction",
        &format!(
            "#!/bin/sh\nrefs=$(cat)\nhas() {{ echo \"$refs\" | grep -q \" refs/heads/$1$\"; }}\n\
             if [ $1 = committed ] && has main; then echo moved >> {0}/repo/.git/main-moved; fi\n\
             [ $1 = prepared ] && has next || exit 0\n\
             grep -q mine {0}/next/long.txt || : > {0}/repo/.git/next-saved\nexit 1\n",
            sandbox.root().display()
        ),
    );
    sandbox.sh("chmod +x .git/hooks/reference-transaction");
    let out = sandbox.proq(&args);
    assert_ne!(out.code, 0, "{}", out.to_text());
    assert_eq!(before, all_state());
    // Each attempt moved the first base there and back, and had saved the changes beside the second.
    let moves = sandbox.read(".git/main-moved").lines().count();
    assert!(moves >= 2 && moves.is_multiple_of(2), "{moves}");
    assert_eq!(sandbox.read(".git/next-saved"), "");
    let left = snapshots(&sandbox);
    assert!(left.iter().all(|snapshot| snapshot["state"] == "restored"), "{left:?}");
    sandbox.sh("rm .git/hooks/reference-transaction");
    sandbox.assert_healthy();
    assert_tidy(&sandbox);
}

/// The process of a run lands its lane: nobody gives it flags.
#[test]
fn auto_merge_follows_the_setting() {
    let sandbox = sandbox_with_edit();
    let script = "sed -i 's/^3$/three/' long.txt";
    let auto_merge = |name: &str| {
        sandbox.proq(&["spawn", "--auto-merge", "--wait", "-n", name, "--", "sh", "-ec", script]).to_text()
    };
    let refused = auto_merge("refused");
    assert_eq!(sandbox.git(&["show", "main:long.txt"]).lines().nth(2), Some("3"), "{refused}");
    assert_eq!(sandbox.sh("sed -n '3p;20p' long.txt"), "3\ntwenty");
    sandbox.git(&["config", "proq.merge.autostash", "true"]);
    let landed = auto_merge("landed");
    assert_eq!(sandbox.git(&["show", "main:long.txt"]).lines().nth(2), Some("three"), "{landed}");
    assert_eq!(sandbox.sh("sed -n '3p;20p' long.txt"), "three\ntwenty");
    assert_eq!(snapshots(&sandbox)[0]["state"], "restored");
    sandbox.assert_healthy();
}

#[test]
fn linked_worktree_on_the_base_is_restored() {
    let sandbox = sandbox_with_edit();
    sandbox.sh("git checkout -q long.txt; git switch -qc topic; echo mine > keep.txt; git worktree add -q ../linked main");
    let linked = sandbox.root().join("linked");
    sandbox.sh_in(&linked, "sed -i 's/^2$/zwei/' long.txt; echo u > untracked");
    let text = sandbox.proq(&["merge", "one", "--autostash"]).fails(3);
    assert_eq!(sandbox.git_in(&linked, &["status", "--short"]), "");
    assert_eq!(sandbox.git(&["status", "--short"]), " M keep.txt");
    let applied = sandbox.follow_hint(&text, "restore your changes");
    assert_eq!(applied.code, 1, "{}", applied.to_text());
    assert_eq!(sandbox.git_in(&linked, &["status", "--short"]), "UU long.txt\n?? untracked");
}

/// The lane's agent may work there.
#[test]
fn lane_on_the_base_is_left_alone() {
    let sandbox = sandbox_with_edit();
    sandbox.sh("git checkout -q long.txt; git switch -qc topic");
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "two"]).ok();
    let dir = sandbox.lane_path("two");
    sandbox.sh_in(&dir, "git switch -q main; sed -i 's/^20$/twenty/' long.txt");
    let before = WorktreeState::capture(&sandbox, &dir);
    let text = sandbox.proq(&["merge", "one", "--autostash"]).fails(1);
    assert!(text.contains("lane 'two' has it checked out"), "{text}");
    assert_eq!(before, WorktreeState::capture(&sandbox, &dir));
}

#[test]
fn hook_that_refuses_leaves_the_files_untouched() {
    let sandbox = sandbox_with_edit();
    sandbox.sh(OTHER_CHANGES);
    sandbox.sh(
        "printf '#!/bin/sh\\nexit 1\\n' > .git/hooks/pre-merge-commit; chmod +x .git/hooks/pre-merge-commit",
    );
    let before = (state(&sandbox), times(&sandbox));
    let _ = sandbox.proq(&["merge", "one", "--autostash"]).fails(1);
    assert_eq!(before, (state(&sandbox), times(&sandbox)));
    let _ = sandbox.proq(&["merge", "one", "--autostash", "--check", "false"]).code;
    assert_eq!(before, (state(&sandbox), times(&sandbox)));
    assert_eq!(snapshots(&sandbox).len(), 0);
}

/// A hook of git that vetoes the move of the base comes after the changes were saved.
#[test]
fn vetoed_move_restores_the_files_exactly() {
    let sandbox = sandbox_with_edit();
    sandbox.sh(OTHER_CHANGES);
    sandbox.sh(
        "printf '#!/bin/sh\\n[ \"$1\" != prepared ] || ! grep -q \" refs/heads/main$\"\\n' > .git/hooks/reference-transaction; \
         chmod +x .git/hooks/reference-transaction",
    );
    let before = (state(&sandbox), times(&sandbox));
    let out = sandbox.proq(&["merge", "one", "--autostash"]);
    assert_ne!(out.code, 0, "{}", out.to_text());
    assert_eq!(before, (state(&sandbox), times(&sandbox)));
    assert_eq!(snapshots(&sandbox).len(), 0);
    sandbox.sh("rm .git/hooks/reference-transaction");
    sandbox.assert_healthy();
    assert_tidy(&sandbox);
}

/// The landing is stacked again, and saves the changes again after it has restored them. The filter runs when they
/// are moved out of the checkout, and moves the base.
#[test]
fn base_that_moves_after_the_snapshot_lands_once() {
    let sandbox = sandbox_with_edit();
    sandbox.sh("echo 'keep.txt filter=race' > .gitattributes; git add .gitattributes; git commit -qm attributes .gitattributes");
    sandbox.write(
        ".git/race",
        "#!/bin/sh\nif [ ! -e .git/moved ]; then : > .git/moved; unset GIT_INDEX_FILE\n\
         git update-ref refs/heads/main $(git commit-tree -p main -m other main^{tree}) && echo yes > .git/moved; fi\ncat\n",
    );
    sandbox.sh("chmod +x .git/race; git config filter.race.smudge .git/race");
    sandbox.sh(OTHER_CHANGES);
    let out = sandbox.proq(&["merge", "one", "--autostash"]);
    assert_eq!(out.code, 0, "{}", out.to_text());
    assert_eq!(sandbox.read(".git/moved"), "yes\n");
    assert_landed_with_edit(&sandbox);
    assert_eq!(sandbox.git(&["log", "--first-parent", "--format=%s", "-2", "main"]), "Merge lane one\nother");
    assert_eq!((sandbox.git(&["show", ":keep.txt"]), sandbox.read("keep.txt")), ("s".into(), "u\n".into()));
    let states: Vec<_> = snapshots(&sandbox).into_iter().map(|snap| snap["state"].clone()).collect();
    assert_eq!(states, ["restored"]);
    sandbox.assert_healthy();
}

#[test]
fn undo_and_redo_carry_the_edits_along() {
    let sandbox = sandbox_with_edit();
    sandbox.sh(OTHER_CHANGES);
    let before = state(&sandbox);
    let _ = sandbox.proq(&["merge", "one", "--autostash"]).ok();
    let landed = state(&sandbox);
    let _ = sandbox.proq(&["undo", "--dry-run"]).ok();
    assert_eq!(landed, state(&sandbox));
    let _ = sandbox.proq(&["undo"]).ok();
    assert_eq!(before, state(&sandbox));
    let _ = sandbox.proq(&["op", "redo"]).ok();
    assert_eq!(landed, state(&sandbox));
    // What was edited since stays as it is now.
    sandbox.sh("sed -i 's/^10$/ten/' long.txt; echo later > later.txt");
    let _ = sandbox.proq(&["undo"]).ok();
    assert_eq!(sandbox.sh("sed -n '2p;10p;20p' long.txt; cat later.txt"), "2\nten\ntwenty\nlater");
    let _ = sandbox.proq(&["op", "redo"]).ok();
    assert_eq!(sandbox.sh("sed -n '2p;10p;20p' long.txt; cat later.txt"), "two\nten\ntwenty\nlater");
    sandbox.assert_healthy();
}

/// The hint of the refusal is followed as it is printed.
#[test]
fn undo_refuses_edits_that_conflict() {
    let sandbox = sandbox_with_edit();
    let _ = sandbox.proq(&["merge", "one", "--autostash"]).ok();
    sandbox.sh("sed -i 's/^two$/zwei/' long.txt; echo mine > keep.txt");
    let refs = |sandbox: &Sandbox| sandbox.git(&["for-each-ref", "refs/heads", "refs/proq/snap"]);
    let before = (state(&sandbox), refs(&sandbox));
    let text = sandbox.proq(&["undo"]).fails(1);
    assert!(text.contains("conflict with the commit to return to: long.txt; nothing was changed"), "{text}");
    assert_eq!(before, (state(&sandbox), refs(&sandbox)));
    let stashed = sandbox.follow_hint(&text, "or stash them");
    assert_eq!(stashed.code, 0, "{}", stashed.to_text());
    let _ = sandbox.proq(&["undo"]).ok();
    assert_eq!(sandbox.git(&["status", "--short"]), "");
    assert_eq!(sandbox.sh("sed -n '2p;20p' long.txt"), "2\n20");
}

#[test]
fn undo_after_a_conflict_returns_the_saved_changes() {
    let sandbox = sandbox_with_conflict();
    sandbox.sh(OTHER_CHANGES);
    let before = state(&sandbox);
    let _ = sandbox.proq(&["merge", "one", "--autostash"]).fails(3);
    let _ = sandbox.proq(&["undo"]).ok();
    assert_eq!(before, state(&sandbox));
    assert_eq!(snapshots(&sandbox)[0]["state"], "restored");
    sandbox.assert_healthy();
}

/// Promise: worktree/autostash
#[test]
fn killed_landing_is_undone_or_completed() {
    for (point, has_landed) in [
        ("snap.put", false),
        ("clear.moved", false),
        ("clear.installed", false),
        ("transition.brought", false),
        ("transition.moved", true),
        ("restore.installed", true),
        ("record.written", true),
        ("journal.ended", true),
    ] {
        let sandbox = sandbox_with_edit();
        sandbox.sh(OTHER_CHANGES);
        let before = (state(&sandbox), times(&sandbox));
        kill_at(&sandbox, point, &["merge", "one", "--autostash"]);
        let text = recover(&sandbox);
        if has_landed {
            assert_landed_with_edit(&sandbox);
            assert_eq!(sandbox.git(&["show", ":keep.txt"]), "s", "{point}: {text}");
            assert_eq!(snapshots(&sandbox)[0]["state"], "restored", "{point}: {text}");
        } else {
            assert_eq!(before, (state(&sandbox), times(&sandbox)), "{point}: {text}");
            assert_eq!(snapshots(&sandbox).len(), 0, "{point}: {text}");
        }
        sandbox.assert_healthy();
    }
}

#[test]
fn recovery_names_the_snapshot_of_a_conflict() {
    let sandbox = sandbox_with_conflict();
    kill_at(&sandbox, "transition.moved", &["merge", "one", "--autostash"]);
    let text = recover(&sandbox);
    assert!(
        text.contains("conflict with what was merged in long.txt; they are saved: git stash apply "),
        "{text}"
    );
    assert_eq!(sandbox.git(&["status", "--short"]), "");
    assert_eq!(sandbox.git(&["show", "main:lane.txt"]), "lane");
    assert_eq!(snapshots(&sandbox)[0]["state"], "kept");
    sandbox.assert_healthy();
}

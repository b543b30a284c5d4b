//! Regressions of recovery: one test for each way in which a kill once left something behind or lost
//! something.

use proq_test_kit::faults::{assert_tidy, kill_at, kill_in_git, recover};
use proq_test_kit::snapshots::snapshot_ids;
use proq_test_kit::{RepoState, Sandbox, file_names, fixtures};

/// Returns the names in a folder of the store.
fn store_entries(sandbox: &Sandbox, folder: &str) -> Vec<String> {
    file_names(&sandbox.repo.join(".git/proq").join(folder))
}

/// Promise: new-lane/native-creation, operations/killed-command
#[test]
fn killed_spawn_leaves_nothing() {
    for at in [
        "worktree.nameless",
        "worktree.headless",
        "worktree.added",
        "step.after:2",
        "record.drafted:2",
        "record.written",
    ] {
        let sandbox = Sandbox::new();
        kill_at(&sandbox, at, &["spawn", "--empty", "-n", "new"]);
        insta::allow_duplicates! {
            insta::assert_snapshot!(recover(&sandbox), @r#"
            warning: `git proq spawn --empty -n new` was interrupted (process [PID], started 2026-01-02T03:04:05Z)
              undone: lane new created
              everything is as it was before; run it again
            no lanes yet
            hint: start an agent in a lane of its own: git proq spawn claude "implement payments"
            "#);
        }
        assert_eq!(sandbox.lane_leftovers(), [""; 0], "{at}");
        assert_eq!(
            (store_entries(&sandbox, "trash"), store_entries(&sandbox, "history")),
            (vec![], vec![]),
            "{at}"
        );
        let _ = sandbox.proq(&["spawn", "--empty", "-n", "new"]).ok();
    }
}

/// Promise: operations/killed-command
#[test]
fn killed_spawn_keeps_only_user_edits_with_filters() {
    for attributes in ["*.txt text eol=crlf", "*.txt filter=upper", "*.txt ident"] {
        let sandbox = Sandbox::new();
        sandbox.sh("git config filter.upper.smudge 'tr a-z A-Z'; git config filter.upper.clean 'tr A-Z a-z'");
        sandbox.sh(&format!("echo '{attributes}' >.gitattributes; echo '$Id$ a' >b.txt; seq 99 >c.txt"));
        sandbox.commit_all("base");
        sandbox.sh("git rm -qr --cached .; git reset -q --hard");
        for act in ["", ": >c.txt", "echo mine >>c.txt"] {
            kill_at(&sandbox, "worktree.filled", &["spawn", "--empty", "-n", "new"]);
            sandbox.sh_in(&sandbox.lane_path("new"), act);
            let _ = recover(&sandbox);
            let trashed = usize::from(act.contains("mine"));
            assert_eq!(store_entries(&sandbox, "trash").len(), trashed, "{attributes}: {act}");
        }
    }
}

#[test]
fn file_in_killed_spawn_goes_to_trash() {
    let sandbox = Sandbox::new();
    kill_at(&sandbox, "step.after:2", &["spawn", "--empty", "-n", "new"]);
    sandbox.write_in(&sandbox.lane_path("new"), "mine.txt", "mine\n");
    recover(&sandbox);
    assert_eq!(sandbox.lane_leftovers(), [""; 0]);
    let [entry] = &store_entries(&sandbox, "trash")[..] else { panic!("one entry") };
    assert_eq!(sandbox.read(&format!(".git/proq/trash/{entry}/worktree/mine.txt")), "mine\n");
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "new"]).ok();
}

#[test]
fn task_of_killed_spawn_is_kept() {
    let sandbox = Sandbox::new();
    sandbox.write("../task.md", "many words\n");
    kill_at(&sandbox, "step.after:2", &["spawn", "--empty", "-n", "new", "-f", "../task.md"]);
    insta::assert_snapshot!(recover(&sandbox), @r#"
    warning: saved the prompt of lane 'new': [ROOT]/repo/.git/proq/trash/new-[ID]/worktree/task.md
    warning: `git proq spawn --empty -n new -f ../task.md` was interrupted (process [PID], started 2026-01-02T03:04:05Z)
      undone: lane new created
      everything is as it was before; run it again
    no lanes yet
    hint: start an agent in a lane of its own: git proq spawn claude "implement payments"
    "#);
    assert_eq!(sandbox.lane_leftovers(), [""; 0]);
    let [entry] = &store_entries(&sandbox, "trash")[..] else { panic!("one entry") };
    assert_eq!(sandbox.read(&format!(".git/proq/trash/{entry}/worktree/task.md")), "many words\n");
}

#[test]
fn unnamed_worktree_registration_is_removed() {
    let sandbox = fixtures::shared_repository();
    let act = "mkdir -p .git/worktrees/new";
    kill_in_git(&sandbox, "worktree add", act, &["spawn", "--empty", "-n", "new"]);
    recover(&sandbox);
    assert_eq!(sandbox.lane_leftovers(), [""; 0]);
}

/// Promise: new-lane/native-creation
#[test]
fn lock_and_reflog_of_uncreated_branch_are_removed() {
    for at in ["branch.locked", "branch.logged"] {
        let sandbox = Sandbox::new();
        kill_at(&sandbox, at, &["spawn", "--empty", "-n", "new"]);
        assert!(sandbox.repo.join(".git/refs/heads/proq/new.lock").exists());
        recover(&sandbox);
        assert_eq!(sandbox.lane_leftovers(), [""; 0], "{at}");
        let _ = sandbox.proq(&["spawn", "--empty", "-n", "new"]).ok();
        sandbox.assert_healthy();
    }
}

#[test]
fn unneeded_snapshot_is_removed_with_operation() {
    for at in ["record.drafted", "snap.put", "step.after", "clear.moved", "transition.moved"] {
        let sandbox = fixtures::dirty_with_lanes();
        kill_at(&sandbox, at, &["preview", "one"]);
        recover(&sandbox);
        assert_eq!((snapshot_ids(&sandbox), store_entries(&sandbox, "snaps")), (vec![], vec![]), "{at}");
    }
}

#[test]
fn folders_of_unwritten_files_are_removed() {
    // Git creates the folder, and is killed before it writes the file.
    for (script, remains) in [("true", false), ("mkdir deep", true)] {
        let sandbox = fixtures::dirty_with_lanes();
        sandbox.sh(script);
        let before = RepoState::capture(&sandbox);
        kill_in_git(&sandbox, "read-tree -m -u", "mkdir -p deep", &["preview", "one"]);
        recover(&sandbox);
        RepoState::capture(&sandbox).assert_same(&before, script);
        assert_eq!(sandbox.repo.join("deep").exists(), remains);
    }
}

#[test]
fn folders_of_restored_files_are_removed_again() {
    for (script, remains) in [("true", false), ("mkdir 'new dir'", true)] {
        let sandbox = fixtures::edited_preview();
        sandbox.sh(script);
        let before = RepoState::capture(&sandbox);
        kill_at(&sandbox, "restore.given", &["preview", "--back"]);
        assert!(sandbox.repo.join("new dir/with space.txt").exists());
        recover(&sandbox);
        RepoState::capture(&sandbox).assert_same(&before, script);
        assert_eq!(sandbox.repo.join("new dir").exists(), remains);
    }
}

#[test]
fn empty_trash_entry_and_draft_are_removed() {
    let sandbox = fixtures::unfinished_lane();
    // The temporary file of the snapshot's record is the first.
    kill_at(&sandbox, "record.drafted:2", &["discard", "--force", "one"]);
    assert_eq!(store_entries(&sandbox, "trash").len(), 1);
    recover(&sandbox);
    assert_eq!(store_entries(&sandbox, "trash"), [""; 0]);
}

#[test]
fn killed_undo_before_ref_update_keeps_landing() {
    for at in ["transition.linked", "transition.brought", "transition.staged"] {
        let sandbox = fixtures::dirty_with_lanes();
        let before = RepoState::capture(&sandbox);
        let _ = sandbox.proq(&["merge", "--no-cleanup", "one"]).ok();
        let landed = RepoState::capture(&sandbox);
        kill_at(&sandbox, at, &["undo"]);
        recover(&sandbox);
        // `State` reads the index with git, which fails on a file that is no valid index.
        RepoState::capture(&sandbox).assert_same(&landed, at);
        let _ = sandbox.proq(&["undo"]).ok();
        RepoState::capture(&sandbox).assert_same(&before, at);
    }
}

#[test]
fn undo_of_merged_preview_end_keeps_first_snapshot() {
    let sandbox = fixtures::preview_with_moved_base();
    let (before, waited) = (RepoState::capture(&sandbox), snapshot_ids(&sandbox));
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    assert_eq!(sandbox.git(&["status", "--short"]), " M long.txt\n?? made/");
    let _ = sandbox.proq(&["undo"]).ok();
    RepoState::capture(&sandbox).assert_same(&before, "undone");
    assert!(snapshot_ids(&sandbox).contains(&waited[0]));
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    assert_eq!(sandbox.git(&["status", "--short"]), " M long.txt\n?? made/");
}

#[test]
fn merged_restore_is_all_or_nothing() {
    let before = RepoState::capture(&fixtures::preview_with_moved_base());
    let uninterrupted = fixtures::preview_with_moved_base();
    let _ = uninterrupted.proq(&["preview", "--back"]).ok();
    let after = RepoState::capture(&uninterrupted);
    for n in 1.. {
        let sandbox = fixtures::preview_with_moved_base();
        let mut command = sandbox.proq_command(&sandbox.repo, &["preview", "--back"]);
        command.env("PROQ_TEST_DIE_AT", format!("step.after:{n}"));
        let out = sandbox.output(command);
        if out.code == 0 {
            assert!(n > 4, "{n}");
            break;
        }
        recover(&sandbox);
        let now = RepoState::capture(&sandbox);
        if now != before {
            now.assert_same(&after, &format!("step {n}"));
        }
    }
}

/// Promise: operations/written-after-crash
#[test]
fn edits_after_crash_are_saved_and_named() {
    for (at, path) in [("clear.filled", "b.txt"), ("transition.brought", "shared.txt")] {
        let sandbox = fixtures::dirty_with_lanes();
        let before = RepoState::capture(&sandbox);
        kill_at(&sandbox, at, &["preview", "one"]);
        sandbox.write(path, "after the crash\n");
        let stderr = recover(&sandbox);
        RepoState::capture(&sandbox).assert_same(&before, at);
        let refs = ["for-each-ref", "--format=%(refname)", "refs/proq/saved"];
        let saved = sandbox.git(&refs);
        let kept = String::from_utf8(sandbox.git_bytes(&sandbox.repo, &refs)).unwrap();
        assert_eq!(sandbox.git(&["show", &format!("{}:{path}", kept.trim())]), "after the crash");
        assert!(stderr.contains(&format!("git checkout {saved} -- .")), "{stderr}");
    }
}

/// Promise: operations/written-after-crash
#[test]
fn edit_after_crash_returns_with_restored_file() {
    let sandbox = fixtures::edited_preview();
    let before = RepoState::capture(&sandbox);
    kill_at(&sandbox, "restore.given", &["preview", "--back"]);
    sandbox.write("notes.txt", "after the crash\n");
    recover(&sandbox);
    RepoState::capture(&sandbox).assert_same(&before, "after recovery");
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    assert_eq!(sandbox.read("notes.txt"), "after the crash\n");
}

/// Promise: operations/killed-command
#[test]
fn landing_is_completed_after_ref_update() {
    let sandbox = fixtures::lanes_with_one_conflict();
    kill_at(&sandbox, "transition.moved", &["merge", "--all"]);
    insta::assert_snapshot!(recover(&sandbox), @r"
    warning: `git proq merge --all` was interrupted (process [PID], started 2026-01-02T03:04:05Z)
      done: main moved to 7dfc51e6 from 5c8c75d9
      run it again for the rest, or undo it: git proq undo 4
    ");
    let states: Vec<_> =
        ["clash", "one", "two"].iter().map(|lane| sandbox.row(lane)["state"].clone()).collect();
    assert_eq!(states, ["landed", "conflict", "landed"]);
    assert_eq!(sandbox.git(&["status", "--short", "two.txt", "shared.txt"]), "");
    assert!(sandbox.repo.join(".git/proq/lanes/one/conflict.toml").exists());
    assert_eq!(sandbox.git(&["cat-file", "-t", "refs/proq/conflict/one"]), "commit");
    let _ = sandbox.proq(&["cleanup"]).ok();
    assert_tidy(&sandbox);
}

#[test]
fn recovery_report_omits_refs_that_never_moved() {
    let sandbox = fixtures::lanes_with_one_conflict();
    kill_at(&sandbox, "transition.locked", &["merge", "--all"]);
    insta::assert_snapshot!(recover(&sandbox), @r"
    warning: `git proq merge --all` was interrupted (process [PID], started 2026-01-02T03:04:05Z)
      undone: its changes
      everything is as it was before; run it again
    ");
}

/// Promise: operations/killed-recovery
#[test]
fn killed_recovery_is_resumed() {
    for at in
        ["journal.planned", "step.before", "step.after", "step.after:2", "restore.given", "restore.installed"]
    {
        let sandbox = fixtures::dirty_with_lanes();
        let before = RepoState::capture(&sandbox);
        kill_at(&sandbox, "transition.moved", &["preview", "one"]);
        kill_at(&sandbox, at, &["list"]);
        recover(&sandbox);
        RepoState::capture(&sandbox).assert_same(&before, at);
        let _ = sandbox.proq(&["preview", "one"]).ok();
    }
}

/// Promise: operations/killed-recovery
#[test]
fn killed_recovery_while_trashing_loses_nothing() {
    for at in ["record.drafted:2", "trash.moved"] {
        let sandbox = Sandbox::new();
        kill_at(&sandbox, "worktree.added", &["spawn", "--empty", "-n", "new"]);
        sandbox.write_in(&sandbox.lane_path("new"), "mine.txt", "mine\n");
        kill_at(&sandbox, at, &["list"]);
        recover(&sandbox);
        assert_eq!(sandbox.lane_leftovers(), [""; 0], "{at}");
        let entries = store_entries(&sandbox, "trash");
        let file = |entry: &String| sandbox.repo.join(format!(".git/proq/trash/{entry}/worktree/mine.txt"));
        assert_eq!(entries.iter().filter(|entry| file(entry).exists()).count(), 1, "{at}: {entries:?}");
        assert_eq!(entries.len(), 1, "{at}: {entries:?}");
    }
}

#[test]
fn killed_recovery_leaves_no_index_lock() {
    let sandbox = fixtures::two_lanes();
    let before = RepoState::capture(&sandbox);
    kill_in_git(&sandbox, "read-tree -m -u", ": > one.txt", &["preview", "one"]);
    let act = ": > \"$GIT_INDEX_FILE.lock\"";
    kill_in_git(&sandbox, "update-index -z --index-info", act, &["list"]);
    recover(&sandbox);
    RepoState::capture(&sandbox).assert_same(&before, "killed twice");
}

#[test]
fn killed_recovery_before_trashing_leaves_one_entry() {
    let sandbox = Sandbox::new();
    sandbox.write(".gitignore", ".env\n");
    sandbox.write(".worktreeinclude", ".env\n");
    sandbox.commit_all("rules");
    sandbox.write(".env", "one");
    kill_at(&sandbox, "set-up.copied", &["spawn", "--empty", "-n", "new"]);
    kill_at(&sandbox, "trash.noted", &["list"]);
    let _ = recover(&sandbox);
    sandbox.assert_healthy();
    let trash = store_entries(&sandbox, "trash");
    assert_eq!(trash.len(), 1, "{trash:?}");
    assert!(store_entries(&sandbox, &format!("trash/{}/worktree", trash[0])).contains(&".env".to_owned()));
}

/// Promise: operations/recorded-before-written
#[test]
fn user_file_is_not_taken_for_populated_file() {
    for script in [
        "git rm -q --cached chosen.txt",
        "git rm -q --cached chosen.txt; echo chosen.txt >>.git/info/exclude",
    ] {
        for at in ["snap.put", "clear.moved", "clear.filled", "clear.installed", "transition.brought"] {
            let sandbox = fixtures::two_lanes();
            sandbox.sh("echo chosen >chosen.txt");
            sandbox.commit_all("chosen");
            sandbox.sh(&format!("{script}; echo more >>b.txt"));
            let before = RepoState::capture(&sandbox);
            kill_at(&sandbox, at, &["preview", "one"]);
            recover(&sandbox);
            RepoState::capture(&sandbox).assert_same(&before, &format!("{script}, {at}"));
        }
    }
}

/// Returns a checkout with two folders, one of which was replaced. Git has to write the files, since their
/// line endings depend on attributes.
fn sandbox_with_replaced_folder(replacement: &str) -> Sandbox {
    let sandbox = fixtures::two_lanes();
    sandbox.sh(
        "mkdir d in; seq 300 >d/f; echo g >d/g; echo i >in/i; echo '*.txt text eol=crlf' >.gitattributes",
    );
    sandbox.commit_all("folders");
    sandbox.sh(&format!("rm -r d; {replacement}; echo more >>b.txt"));
    sandbox
}

/// Promise: operations/recovery-ends
#[test]
fn partial_folder_yields_to_previous_entry() {
    for replacement in ["ln -s in d", "echo file >d", "ln -s nowhere d"] {
        for half in ["mkdir d", "mkdir d; seq 300 | head -c 512 >d/f", "mkdir d; seq 300 >d/f; : >d/g"] {
            let sandbox = sandbox_with_replaced_folder(replacement);
            let before = RepoState::capture(&sandbox);
            kill_in_git(&sandbox, "checkout-index --index", half, &["preview", "one"]);
            recover(&sandbox);
            RepoState::capture(&sandbox).assert_same(&before, &format!("{replacement}, {half}"));
        }
    }
}

/// Promise: operations/written-after-crash
#[test]
fn obstacles_to_recovery_are_renamed_and_kept() {
    for (put, new_path) in [
        ("mkdir d; echo mine >d/mine", "d.proq-saved-1/mine"),
        ("mkdir d; echo mine >d/f", "d.proq-saved-1/f"),
        ("mkdir -p d; mkfifo d/mine", "d.proq-saved-1/mine"),
        ("mkfifo d", "d.proq-saved-1"),
        ("mkdir d; echo mine >d/mine; chmod 0 d/mine d", "d.proq-saved-1"),
        ("echo d >>.git/info/exclude; echo mine >d", "d.proq-saved-1"),
        (": >d.proq-saved-1; mkfifo d", "d.proq-saved-2"),
    ] {
        let sandbox = sandbox_with_replaced_folder("ln -s in d");
        kill_in_git(&sandbox, "checkout-index --index", "true", &["preview", "one"]);
        sandbox.sh(put);
        let text = recover(&sandbox);
        let name = new_path.split('/').next().unwrap();
        assert!(text.contains(&format!("d was in the place of a restored file: it is now {name}")), "{text}");
        sandbox.sh(&format!("test -d {name} && chmod 700 {name} || true"));
        assert!(sandbox.repo.join(new_path).symlink_metadata().is_ok(), "{put}");
        assert_eq!(sandbox.repo.join("d").read_link().unwrap().to_str(), Some("in"), "{put}");
        let _ = sandbox.sh("rm -rf d.proq-saved-*");
    }
}

/// Promise: operations/written-after-crash
#[test]
fn file_over_folder_yields_to_restored_files() {
    let sandbox = fixtures::two_lanes();
    sandbox.sh("mkdir d; echo f >d/f");
    sandbox.commit_all("folder");
    sandbox.sh("echo more >>d/f; echo new >d/new");
    let before = RepoState::capture(&sandbox);
    kill_at(&sandbox, "clear.moved", &["preview", "one"]);
    sandbox.sh("test ! -e d; echo mine >d");
    recover(&sandbox);
    assert_eq!(sandbox.read("d.proq-saved-1"), "mine\n");
    sandbox.sh("rm d.proq-saved-1");
    RepoState::capture(&sandbox).assert_same(&before, "without it");
}

/// Once the step that moved the folder's files away has finished, a file there is the user's own state of the
/// checkout.
/// Promise: operations/written-after-crash
#[test]
fn file_over_folder_does_not_block_recovery() {
    for put in ["echo mine >d", "ln -s nowhere d", "ln -s e d"] {
        for at in ["clear.installed", "transition.moved"] {
            let sandbox = fixtures::two_lanes();
            sandbox.sh("mkdir d e; echo f >d/f; echo g >e/g");
            sandbox.commit_all("folder");
            sandbox.sh("echo more >>d/f; echo more >>e/g");
            kill_at(&sandbox, at, &["preview", "one"]);
            sandbox.sh(&format!("rm -rf d; {put}"));
            recover(&sandbox);
            sandbox.sh("mv d mine");
            let _ = sandbox.proq(&["preview", "--back"]);
            if sandbox.sh("test -e d/f || echo gone") == "gone" {
                sandbox.sh("git checkout -q d");
                let _ = sandbox.proq(&["preview", "--back"]);
            }
            assert_eq!(sandbox.read("d/f") + &sandbox.read("e/g"), "f\nmore\ng\nmore\n", "{put} {at}");
            assert_eq!(sandbox.git(&["symbolic-ref", "--short", "HEAD"]), "main");
        }
    }
}

/// Promise: operations/recovery-ends
#[test]
fn empty_folder_over_lane_file_is_removed() {
    let sandbox = fixtures::two_lanes();
    sandbox.sh("echo f >place");
    sandbox.commit_all("place");
    sandbox.commit_in_lane("one", "git merge -q main");
    sandbox.sh("rm place; mkdir place; echo mine >place/inner");
    let _ = sandbox.proq(&["preview", "one"]).ok();
    let before = RepoState::capture(&sandbox);
    kill_at(&sandbox, "restore.taken", &["preview", "--back"]);
    sandbox.sh("mkdir place");
    recover(&sandbox);
    RepoState::capture(&sandbox).assert_same(&before, "the preview");
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    assert_eq!(sandbox.read("place/inner"), "mine\n");
}

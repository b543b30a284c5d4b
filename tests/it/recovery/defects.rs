//! Owns one test for each way in which a kill once left something over or lost something, named after it.

use super::kit::{dies, dies_in_git, is_tidy, recovers};
use crate::snap::ids;
use crate::support::{Sandbox, State, names, scenes};

/// What is in a folder of the store.
fn proq(sandbox: &Sandbox, folder: &str) -> Vec<String> {
    names(&sandbox.repo.join(".git/proq").join(folder))
}

#[test]
fn a_killed_spawn_leaves_nothing() {
    for at in [
        "worktree.nameless",
        "worktree.headless",
        "worktree.added",
        "step.after:2",
        "record.drafted:2",
        "record.written",
    ] {
        let sandbox = Sandbox::new();
        dies(&sandbox, at, &["spawn", "--empty", "-n", "new"]);
        insta::allow_duplicates! {
            insta::assert_snapshot!(recovers(&sandbox), @r#"
            warning: `git proq spawn --empty -n new` was cut short (process [PID], begun 2026-01-02T03:04:05Z)
              taken back: lane new made
              everything is as it was before; run it again
            no lanes yet
            hint: git proq spawn claude "what to do"
            "#);
        }
        assert_eq!(sandbox.traces(), [""; 0], "{at}");
        assert_eq!((proq(&sandbox, "trash"), proq(&sandbox, "history")), (vec![], vec![]), "{at}");
        let _ = sandbox.proq(&["spawn", "--empty", "-n", "new"]).ok();
    }
}

#[test]
fn a_killed_spawn_leaves_nothing_where_git_writes_files_in_another_form() {
    for attributes in ["*.txt text eol=crlf", "*.txt filter=upper", "*.txt ident"] {
        let sandbox = Sandbox::new();
        sandbox.sh("git config filter.upper.smudge 'tr a-z A-Z'; git config filter.upper.clean 'tr A-Z a-z'");
        sandbox.sh(&format!("echo '{attributes}' >.gitattributes; echo '$Id$ a' >b.txt; seq 99 >c.txt"));
        sandbox.commit_all("base");
        sandbox.sh("git rm -qr --cached .; git reset -q --hard");
        for act in ["", ": >c.txt", "echo mine >>c.txt"] {
            dies(&sandbox, "worktree.filled", &["spawn", "--empty", "-n", "new"]);
            sandbox.sh_in(&sandbox.lane("new"), act);
            let _ = recovers(&sandbox);
            let kept = usize::from(act.contains("mine"));
            assert_eq!(proq(&sandbox, "trash").len(), kept, "{attributes}: {act}");
        }
    }
}

#[test]
fn a_file_put_into_a_killed_spawn_is_in_the_trash() {
    let sandbox = Sandbox::new();
    dies(&sandbox, "step.after:2", &["spawn", "--empty", "-n", "new"]);
    sandbox.write_in(&sandbox.lane("new"), "mine.txt", "mine\n");
    recovers(&sandbox);
    assert_eq!(sandbox.traces(), [""; 0]);
    let [entry] = &proq(&sandbox, "trash")[..] else { panic!("one entry") };
    assert_eq!(sandbox.read(&format!(".git/proq/trash/{entry}/worktree/mine.txt")), "mine\n");
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "new"]).ok();
}

#[test]
fn what_a_killed_spawn_was_to_ask_is_kept() {
    let sandbox = Sandbox::new();
    sandbox.write("../task.md", "many words\n");
    dies(&sandbox, "step.after:2", &["spawn", "--empty", "-n", "new", "-f", "../task.md"]);
    insta::assert_snapshot!(recovers(&sandbox), @r#"
    warning: what lane 'new' was to be asked is kept: [ROOT]/repo/.git/proq/trash/new-[ID]/worktree/task.md
    warning: `git proq spawn --empty -n new -f ../task.md` was cut short (process [PID], begun 2026-01-02T03:04:05Z)
      taken back: lane new made
      everything is as it was before; run it again
    no lanes yet
    hint: git proq spawn claude "what to do"
    "#);
    assert_eq!(sandbox.traces(), [""; 0]);
    let [entry] = &proq(&sandbox, "trash")[..] else { panic!("one entry") };
    assert_eq!(sandbox.read(&format!(".git/proq/trash/{entry}/worktree/task.md")), "many words\n");
}

#[test]
fn a_registration_that_git_had_not_named_yet_goes() {
    let sandbox = scenes::shared();
    let act = "mkdir -p .git/worktrees/new";
    dies_in_git(&sandbox, "worktree add", act, &["spawn", "--empty", "-n", "new"]);
    recovers(&sandbox);
    assert_eq!(sandbox.traces(), [""; 0]);
}

#[test]
fn the_lock_and_the_log_of_a_branch_that_was_not_made_yet_are_in_nobodys_way() {
    for at in ["branch.locked", "branch.logged"] {
        let sandbox = Sandbox::new();
        dies(&sandbox, at, &["spawn", "--empty", "-n", "new"]);
        assert!(sandbox.repo.join(".git/refs/heads/proq/new.lock").exists());
        recovers(&sandbox);
        assert_eq!(sandbox.traces(), [""; 0], "{at}");
        let _ = sandbox.proq(&["spawn", "--empty", "-n", "new"]).ok();
        sandbox.assert_healthy();
    }
}

#[test]
fn a_snapshot_that_was_never_needed_goes_with_its_operation() {
    for at in ["record.drafted", "snap.put", "step.after", "clear.moved", "transition.moved"] {
        let sandbox = scenes::dirty();
        dies(&sandbox, at, &["preview", "one"]);
        recovers(&sandbox);
        assert_eq!((ids(&sandbox), proq(&sandbox, "snaps")), (vec![], vec![]), "{at}");
    }
}

#[test]
fn folders_for_files_that_were_never_written_go() {
    // Git makes the folder, and dies before the file.
    for (own, there) in [("true", false), ("mkdir deep", true)] {
        let sandbox = scenes::dirty();
        sandbox.sh(own);
        let before = State::of(&sandbox);
        dies_in_git(&sandbox, "read-tree -m -u", "mkdir -p deep", &["preview", "one"]);
        recovers(&sandbox);
        State::of(&sandbox).is(&before, own);
        assert_eq!(sandbox.repo.join("deep").exists(), there);
    }
}

#[test]
fn folders_for_files_that_come_back_go_again() {
    for (own, there) in [("true", false), ("mkdir 'new dir'", true)] {
        let sandbox = scenes::edited();
        sandbox.sh(own);
        let before = State::of(&sandbox);
        dies(&sandbox, "restore.given", &["preview", "--back"]);
        assert!(sandbox.repo.join("new dir/with space.txt").exists());
        recovers(&sandbox);
        State::of(&sandbox).is(&before, own);
        assert_eq!(sandbox.repo.join("new dir").exists(), there);
    }
}

#[test]
fn an_empty_entry_of_the_trash_and_the_draft_in_it_go() {
    let sandbox = scenes::unfinished();
    // The draft of the snapshot's record is the first.
    dies(&sandbox, "record.drafted:2", &["discard", "--force", "one"]);
    assert_eq!(proq(&sandbox, "trash").len(), 1);
    recovers(&sandbox);
    assert_eq!(proq(&sandbox, "trash"), [""; 0]);
}

#[test]
fn the_undo_of_a_landing_is_not_taken_for_done_before_its_ref_moved() {
    for at in ["transition.linked", "transition.brought", "transition.staged"] {
        let sandbox = scenes::dirty();
        let before = State::of(&sandbox);
        let _ = sandbox.proq(&["merge", "--no-cleanup", "one"]).ok();
        let landed = State::of(&sandbox);
        dies(&sandbox, at, &["undo"]);
        recovers(&sandbox);
        // The index is an index: this reads it.
        State::of(&sandbox).is(&landed, at);
        let _ = sandbox.proq(&["undo"]).ok();
        State::of(&sandbox).is(&before, at);
    }
}

#[test]
fn the_undo_of_a_way_back_that_was_merged_has_the_former_snapshot_wait() {
    let sandbox = scenes::moved();
    let (before, waited) = (State::of(&sandbox), ids(&sandbox));
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    assert_eq!(sandbox.git(&["status", "--short"]), " M long.txt\n?? made/");
    let _ = sandbox.proq(&["undo"]).ok();
    State::of(&sandbox).is(&before, "undone");
    assert!(ids(&sandbox).contains(&waited[0]));
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    assert_eq!(sandbox.git(&["status", "--short"]), " M long.txt\n?? made/");
}

#[test]
fn a_merged_restore_is_not_half_taken_back() {
    let before = State::of(&scenes::moved());
    let whole = scenes::moved();
    let _ = whole.proq(&["preview", "--back"]).ok();
    let after = State::of(&whole);
    for n in 1.. {
        let sandbox = scenes::moved();
        let mut command = sandbox.proq_command(&sandbox.repo, &["preview", "--back"]);
        command.env("PROQ_TEST_DIE_AT", format!("step.after:{n}"));
        let out = sandbox.output(command);
        if out.code == 0 {
            assert!(n > 4, "{n}");
            break;
        }
        recovers(&sandbox);
        let now = State::of(&sandbox);
        if now != before {
            now.is(&after, &format!("step {n}"));
        }
    }
}

#[test]
fn edits_between_the_crash_and_the_next_command_are_kept_and_named() {
    for (at, path) in [("clear.filled", "b.txt"), ("transition.brought", "shared.txt")] {
        let sandbox = scenes::dirty();
        let before = State::of(&sandbox);
        dies(&sandbox, at, &["preview", "one"]);
        sandbox.write(path, "after the crash\n");
        let said = recovers(&sandbox);
        State::of(&sandbox).is(&before, at);
        let refs = ["for-each-ref", "--format=%(refname)", "refs/proq/saved"];
        let saved = sandbox.git(&refs);
        let kept = String::from_utf8(sandbox.raw(&sandbox.repo, &refs)).unwrap();
        assert_eq!(sandbox.git(&["show", &format!("{}:{path}", kept.trim())]), "after the crash");
        assert!(said.contains(&format!("git checkout {saved} -- .")), "{said}");
    }
}

#[test]
fn edits_of_a_file_that_was_coming_back_come_with_it() {
    let sandbox = scenes::edited();
    let before = State::of(&sandbox);
    dies(&sandbox, "restore.given", &["preview", "--back"]);
    sandbox.write("notes.txt", "after the crash\n");
    recovers(&sandbox);
    State::of(&sandbox).is(&before, "after recovery");
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    assert_eq!(sandbox.read("notes.txt"), "after the crash\n");
}

#[test]
fn a_landing_is_finished_once_its_base_has_moved() {
    let sandbox = scenes::all_lanes();
    dies(&sandbox, "transition.moved", &["merge", "--all"]);
    insta::assert_snapshot!(recovers(&sandbox), @r"
    warning: `git proq merge --all` was cut short (process [PID], begun 2026-01-02T03:04:05Z)
      done: main 5c8c75d9 -> 7dfc51e6
      run it again for the rest, or take it back: git proq undo 4
    ");
    let states: Vec<_> =
        ["clash", "one", "two"].iter().map(|lane| sandbox.row(lane)["state"].clone()).collect();
    assert_eq!(states, ["landed", "conflict", "landed"]);
    assert_eq!(sandbox.git(&["status", "--short", "two.txt", "shared.txt"]), "");
    assert!(sandbox.repo.join(".git/proq/lanes/one/conflict.toml").exists());
    assert_eq!(sandbox.git(&["cat-file", "-t", "refs/proq/conflict/one"]), "commit");
    let _ = sandbox.proq(&["cleanup"]).ok();
    is_tidy(&sandbox);
}

#[test]
fn what_had_not_moved_is_not_said_to_have_been_taken_back() {
    let sandbox = scenes::all_lanes();
    dies(&sandbox, "transition.locked", &["merge", "--all"]);
    insta::assert_snapshot!(recovers(&sandbox), @r"
    warning: `git proq merge --all` was cut short (process [PID], begun 2026-01-02T03:04:05Z)
      taken back: what it had begun
      everything is as it was before; run it again
    ");
}

#[test]
fn a_recovery_that_is_killed_is_gone_on_with() {
    for at in
        ["journal.planned", "step.before", "step.after", "step.after:2", "restore.given", "restore.installed"]
    {
        let sandbox = scenes::dirty();
        let before = State::of(&sandbox);
        dies(&sandbox, "transition.moved", &["preview", "one"]);
        dies(&sandbox, at, &["list"]);
        recovers(&sandbox);
        State::of(&sandbox).is(&before, at);
        let _ = sandbox.proq(&["preview", "one"]).ok();
    }
}

#[test]
fn a_recovery_that_is_killed_while_it_moves_to_the_trash_loses_nothing() {
    for at in ["record.drafted:2", "trash.moved"] {
        let sandbox = Sandbox::new();
        dies(&sandbox, "worktree.added", &["spawn", "--empty", "-n", "new"]);
        sandbox.write_in(&sandbox.lane("new"), "mine.txt", "mine\n");
        dies(&sandbox, at, &["list"]);
        recovers(&sandbox);
        assert_eq!(sandbox.traces(), [""; 0], "{at}");
        let entries = proq(&sandbox, "trash");
        let file = |entry: &String| sandbox.repo.join(format!(".git/proq/trash/{entry}/worktree/mine.txt"));
        assert_eq!(entries.iter().filter(|entry| file(entry).exists()).count(), 1, "{at}: {entries:?}");
        assert_eq!(entries.len(), 1, "{at}: {entries:?}");
    }
}

#[test]
fn a_recovery_that_is_killed_while_git_compares_files_leaves_no_lock_in_its_own_way() {
    let sandbox = scenes::two_lanes();
    let before = State::of(&sandbox);
    dies_in_git(&sandbox, "read-tree -m -u", ": > one.txt", &["preview", "one"]);
    let act = ": > \"$GIT_INDEX_FILE.lock\"";
    dies_in_git(&sandbox, "update-index -z --index-info", act, &["list"]);
    recovers(&sandbox);
    State::of(&sandbox).is(&before, "killed twice");
}

#[test]
fn a_repair_that_is_killed_before_anything_is_in_the_trash_leaves_one_entry() {
    let sandbox = Sandbox::new();
    sandbox.write(".gitignore", ".env\n");
    sandbox.write(".worktreeinclude", ".env\n");
    sandbox.commit_all("rules");
    sandbox.write(".env", "one");
    dies(&sandbox, "set-up.copied", &["spawn", "--empty", "-n", "new"]);
    dies(&sandbox, "trash.noted", &["list"]);
    let _ = recovers(&sandbox);
    sandbox.assert_healthy();
    let trash = proq(&sandbox, "trash");
    assert_eq!(trash.len(), 1, "{trash:?}");
    assert!(proq(&sandbox, &format!("trash/{}/worktree", trash[0])).contains(&".env".to_owned()));
}

#[test]
fn a_users_file_is_not_taken_for_one_that_was_filled_in() {
    for deed in [
        "git rm -q --cached chosen.txt",
        "git rm -q --cached chosen.txt; echo chosen.txt >>.git/info/exclude",
    ] {
        for at in ["snap.put", "clear.moved", "clear.filled", "clear.installed", "transition.brought"] {
            let sandbox = scenes::two_lanes();
            sandbox.sh("echo chosen >chosen.txt");
            sandbox.commit_all("chosen");
            sandbox.sh(&format!("{deed}; echo more >>b.txt"));
            let before = State::of(&sandbox);
            dies(&sandbox, at, &["preview", "one"]);
            recovers(&sandbox);
            State::of(&sandbox).is(&before, &format!("{deed}, {at}"));
        }
    }
}

/// Two folders, one of which has become a link; git has to make files, since what becomes of line ends is a matter of attributes.
fn a_folder_that_became(what: &str) -> Sandbox {
    let sandbox = scenes::two_lanes();
    sandbox.sh(
        "mkdir d in; seq 300 >d/f; echo g >d/g; echo i >in/i; echo '*.txt text eol=crlf' >.gitattributes",
    );
    sandbox.commit_all("folders");
    sandbox.sh(&format!("rm -r d; {what}; echo more >>b.txt"));
    sandbox
}

#[test]
fn a_half_filled_folder_makes_way_for_what_was_in_its_place() {
    for what in ["ln -s in d", "echo file >d", "ln -s nowhere d"] {
        for half in ["mkdir d", "mkdir d; seq 300 | head -c 512 >d/f", "mkdir d; seq 300 >d/f; : >d/g"] {
            let sandbox = a_folder_that_became(what);
            let before = State::of(&sandbox);
            dies_in_git(&sandbox, "checkout-index --index", half, &["preview", "one"]);
            recovers(&sandbox);
            State::of(&sandbox).is(&before, &format!("{what}, {half}"));
        }
    }
}

#[test]
fn whatever_is_put_in_the_way_of_a_recovery_is_kept_under_another_name() {
    for (put, there) in [
        ("mkdir d; echo mine >d/mine", "d.proq-saved-1/mine"),
        ("mkdir d; echo mine >d/f", "d.proq-saved-1/f"),
        ("mkdir -p d; mkfifo d/mine", "d.proq-saved-1/mine"),
        ("mkfifo d", "d.proq-saved-1"),
        ("mkdir d; echo mine >d/mine; chmod 0 d/mine d", "d.proq-saved-1"),
        ("echo d >>.git/info/exclude; echo mine >d", "d.proq-saved-1"),
        (": >d.proq-saved-1; mkfifo d", "d.proq-saved-2"),
    ] {
        let sandbox = a_folder_that_became("ln -s in d");
        dies_in_git(&sandbox, "checkout-index --index", "true", &["preview", "one"]);
        sandbox.sh(put);
        let text = recovers(&sandbox);
        let name = there.split('/').next().unwrap();
        assert!(
            text.contains(&format!("d stood where something else goes back to: it is {name} now")),
            "{text}"
        );
        sandbox.sh(&format!("test -d {name} && chmod 700 {name} || true"));
        assert!(sandbox.repo.join(there).symlink_metadata().is_ok(), "{put}");
        assert_eq!(sandbox.repo.join("d").read_link().unwrap().to_str(), Some("in"), "{put}");
        let _ = sandbox.sh("rm -rf d.proq-saved-*");
    }
}

#[test]
fn a_file_where_a_folder_was_makes_way_for_what_was_below_it() {
    let sandbox = scenes::two_lanes();
    sandbox.sh("mkdir d; echo f >d/f");
    sandbox.commit_all("folder");
    sandbox.sh("echo more >>d/f; echo new >d/new");
    let before = State::of(&sandbox);
    dies(&sandbox, "clear.moved", &["preview", "one"]);
    sandbox.sh("test ! -e d; echo mine >d");
    recovers(&sandbox);
    assert_eq!(sandbox.read("d.proq-saved-1"), "mine\n");
    sandbox.sh("rm d.proq-saved-1");
    State::of(&sandbox).is(&before, "without it");
}

/// Once the step has ended that took the folder's files away, what stands there is somebody's own state of the checkout.
#[test]
fn a_file_where_a_folder_was_does_not_keep_a_recovery_from_ending() {
    for put in ["echo mine >d", "ln -s nowhere d", "ln -s e d"] {
        for at in ["clear.installed", "transition.moved"] {
            let sandbox = scenes::two_lanes();
            sandbox.sh("mkdir d e; echo f >d/f; echo g >e/g");
            sandbox.commit_all("folder");
            sandbox.sh("echo more >>d/f; echo more >>e/g");
            dies(&sandbox, at, &["preview", "one"]);
            sandbox.sh(&format!("rm -rf d; {put}"));
            recovers(&sandbox);
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

#[test]
fn an_empty_folder_does_not_stay_where_the_lanes_file_was() {
    let sandbox = scenes::two_lanes();
    sandbox.sh("echo f >place");
    sandbox.commit_all("place");
    sandbox.commit_in_lane("one", "git merge -q main");
    sandbox.sh("rm place; mkdir place; echo mine >place/inner");
    let _ = sandbox.proq(&["preview", "one"]).ok();
    let before = State::of(&sandbox);
    dies(&sandbox, "restore.taken", &["preview", "--back"]);
    sandbox.sh("mkdir place");
    recovers(&sandbox);
    State::of(&sandbox).is(&before, "the preview");
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    assert_eq!(sandbox.read("place/inner"), "mine\n");
}

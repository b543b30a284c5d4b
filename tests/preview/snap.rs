//! `git proq snap`: listing, showing and restoring snapshots, and refusals.
use proq_test_kit::snapshots::{assert_same_image, snapshot_ids, waiting_snapshots};
use proq_test_kit::{Sandbox, WorktreeState};

/// Returns a sandbox with a snapshot whose content is in no worktree any more: its user left a preview and
/// then discarded everything.
fn sandbox_with_discarded_changes(base: &str, dirty: &str) -> (Sandbox, String) {
    let sandbox = Sandbox::new();
    sandbox.sh(&format!("seq 1 20 > long.txt; echo k > keep.txt\n{base}"));
    sandbox.commit_all("base");
    sandbox.lane_with_commit("one", "echo lane > lane.txt");
    sandbox.sh(dirty);
    let _ = sandbox.proq(&["preview", "one"]).ok();
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    sandbox.sh("git reset -q --hard; git clean -qfd");
    let id = snapshot_ids(&sandbox).pop().unwrap();
    (sandbox, id)
}

/// Returns all that a refused or dry-run command must not change.
fn full_state(sandbox: &Sandbox) -> (WorktreeState, String, Vec<String>) {
    let refs = sandbox.git(&["for-each-ref"]);
    (WorktreeState::capture(sandbox, &sandbox.repo), refs, waiting_snapshots(sandbox))
}

#[track_caller]
fn assert_unchanged(
    before: &(WorktreeState, String, Vec<String>),
    after: &(WorktreeState, String, Vec<String>),
) {
    assert_same_image(&before.0, &after.0);
    assert_eq!((&before.1, &before.2), (&after.1, &after.2));
}

#[test]
fn list_shows_state_and_purpose() {
    let sandbox = Sandbox::new();
    insta::assert_snapshot!(sandbox.proq(&["snap", "list"]).to_text(), @r"
    --- stderr
    no snapshot is kept
    --- code 0
    ");
    sandbox.lane_with_commit("one", "echo lane > a.txt");
    sandbox.lane_with_commit("two", "echo lane > b.txt");
    sandbox.sh("echo first > a.txt");
    // Within one second snapshots are listed by process numbers, which wrap around.
    let _ = sandbox.proq_at("2026-01-02T03:04:06Z", &["preview", "one"]).ok();
    let _ = sandbox.proq_at("2026-01-02T03:04:07Z", &["preview", "--back"]).ok();
    let _ = sandbox.proq_at("2026-01-02T03:04:08Z", &["preview", "one"]).ok();
    sandbox.sh("echo edit > a.txt; echo more > more.txt");
    let _ = sandbox.proq_at("2026-01-02T03:04:09Z", &["preview", "two"]).ok();
    sandbox.write_in(&sandbox.lane_path("two"), "left", "left\n");
    let _ = sandbox.proq_at("2026-01-02T03:04:10Z", &["discard", "--force", "two"]).ok();
    let list = |args: &[&str]| sandbox.proq_at("2026-01-02T03:04:10Z", args);
    let json = list(&["snap", "list", "--json"]).json();
    let rows = json["snapshots"].as_array().unwrap();
    let rows_text: Vec<String> = rows
        .iter()
        .map(|r| format!("{} {} {} {}", r["state"], r["lane"], r["files"], r["why"]).replace('"', ""))
        .collect();
    insta::assert_snapshot!(rows_text.join("\n"), @r"
    kept null 1 uncommitted work of lane two
    edits one 2 edits made in the preview of one
    restored null 1 changes on main before the preview of one
    restored null 1 changes on main before the preview of one
    ");
    // The width of the ids differs from run to run.
    let out = list(&["snap", "list"]).ok();
    let lines: Vec<String> =
        out.lines().map(|l| l.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    assert_eq!(lines[0], "ID WHEN STATE FILES WHAT FOR");
    assert!(lines[2].ends_with(" 1s ago edits of one 2 edits made in the preview of one"), "{}", lines[2]);
}

#[test]
fn refuses_snapshot_that_open_preview_restores() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("one", "echo lane > a.txt");
    sandbox.sh("echo mine > a.txt");
    let _ = sandbox.proq(&["preview", "one"]).ok();
    let before = full_state(&sandbox);
    assert_eq!(sandbox.proq(&["snap", "list", "--json"]).json()["snapshots"][0]["state"], "waiting");
    let id = &snapshot_ids(&sandbox)[0];
    let refused = sandbox.proq(&["snap", "restore", id]);
    insta::assert_snapshot!(refused.to_text(), @r"
    --- stderr
    error: cannot restore snapshot [ID]: leaving the preview of 'one' restores it; nothing was changed
    hint: leave the preview: git proq preview --back
    --- code 1
    ");
    assert_eq!(sandbox.proq(&["snap", "restore", "--dry-run", id]), refused);
    assert_unchanged(&before, &full_state(&sandbox));
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    assert_eq!(sandbox.read("a.txt"), "mine\n");
}

#[test]
fn show_lists_files_with_status_letters() {
    let (sandbox, id) = sandbox_with_discarded_changes(
        "echo x > x; echo y > y; ln -s x link",
        "echo s > a.txt; git add a.txt; echo u > a.txt; echo u > keep.txt; git rm -q x; rm y
        echo n > new; git add new; echo ann > ann; git add -N ann; rm link; echo f > link
        echo loose > 'lo ose'; mkdir -p void",
    );
    let shown =
        sandbox.proq(&["snap", "show", &id]).ok().replace(&snapshot_commit(&sandbox, &id), "[COMMIT]");
    insta::assert_snapshot!(shown, @r"
    snapshot   [ID]
    what for   changes on main before the preview of one
    taken      2026-01-02T03:04:05Z
    state      restored, 2026-01-02T03:04:05Z
    base       98aa8c9c
    read it    git stash apply [COMMIT]
    empty      void

    MM a.txt
     A ann
     M keep.txt
     T link
    A  new
    D  x
     D y
    ?? lo ose
    ");
    let json = sandbox.proq(&["snap", "show", &id, "--json"]).json();
    assert_eq!((&json["id"], &json["state"]), (&"[ID]".into(), &"restored".into()));
    assert_eq!(json["paths"][0], serde_json::json!({"path": "a.txt", "status": "MM"}));
    assert_eq!(json["empty_folders"][0], "void");
}

fn snapshot_commit(sandbox: &Sandbox, id: &str) -> String {
    sandbox.git(&["rev-parse", &format!("refs/proq/snap/{id}")])
}

#[test]
fn accepts_unique_id_prefix() {
    let (sandbox, id) = sandbox_with_discarded_changes("", "echo mine > a.txt");
    let _ = sandbox.proq(&["snap", "show", &id[..8]]).ok();
    let _ = sandbox.proq(&["snap", "show", &id]).ok();
    sandbox.sh("echo again > a.txt");
    let _ = sandbox.proq(&["preview", "one"]).ok();
    let text = sandbox.proq(&["snap", "show", &id[..8]]).fails(1);
    assert!(text.contains("snapshot id '20260102' is ambiguous:\n  [ID]\n  [ID]"), "{text}");
    for wrong in ["", "nothing", "..", "../lanes", "x/y"] {
        let text = sandbox.proq(&["snap", "show", wrong]).fails(1);
        assert!(text.contains("there is no snapshot") && text.contains("git proq snap list"), "{text}");
    }
}

#[test]
fn restore_onto_same_commit_is_exact() {
    let dirty =
        "echo s > a.txt; git add a.txt; echo u > a.txt; echo u >> keep.txt; rm long.txt; echo l > loose
        mkdir -p void; git update-index --assume-unchanged keep.txt; echo ann > ann; git add -N ann";
    let (sandbox, id) = sandbox_with_discarded_changes("", dirty);
    let clean = full_state(&sandbox);
    let planned = sandbox.proq(&["snap", "restore", "--dry-run", &id]);
    assert_unchanged(&clean, &full_state(&sandbox));
    insta::assert_snapshot!(planned.to_text(), @r"
    snapshot [ID] would be restored in [ROOT]/repo, exactly as it was
    --- code 0
    ");
    let other = sandbox_with_discarded_changes("", "true > a.txt").0;
    other.sh(dirty);
    let wanted = WorktreeState::capture(&other, &other.repo);
    insta::assert_snapshot!(sandbox.proq(&["snap", "restore", &id]).to_text(), @r"
    snapshot [ID] was restored in [ROOT]/repo, exactly as it was
    --- code 0
    ");
    assert_same_image(&wanted, &WorktreeState::capture(&sandbox, &sandbox.repo));
    // Content that is in place already is no obstacle.
    let _ = sandbox.proq(&["snap", "restore", &id]).ok();
    assert_same_image(&wanted, &WorktreeState::capture(&sandbox, &sandbox.repo));
}

#[test]
fn refuses_overlapping_changes_and_keeps_others() {
    let (sandbox, id) = sandbox_with_discarded_changes("", "echo mine > a.txt; echo l > loose");
    for (script, path) in [
        ("echo later > a.txt", "a.txt"),
        ("echo other > loose", "loose"),
        ("mkdir loose; echo in > loose/in", "loose/in"),
        ("echo staged > keep.txt; git add keep.txt", "keep.txt"),
        ("echo ann > ann; git add -N ann", "ann"),
        ("git update-index --assume-unchanged a.txt; echo hidden > a.txt", "a.txt"),
    ] {
        sandbox.sh(script);
        let before = full_state(&sandbox);
        for args in [&["snap", "restore", &id][..], &["snap", "restore", "--dry-run", &id]] {
            let text = sandbox.proq(args).fails(1);
            assert!(text.contains(&format!(": {path}; nothing was changed")), "{script}\n{text}");
            assert_unchanged(&before, &full_state(&sandbox));
        }
        sandbox.sh("git update-index --no-assume-unchanged a.txt; git reset -q --hard; git clean -qfd");
    }
    sandbox.sh("echo other > keep.txt; echo n > new");
    let _ = sandbox.proq(&["snap", "restore", &id]).ok();
    assert_eq!((sandbox.read("keep.txt"), sandbox.read("new")), ("other\n".into(), "n\n".into()));
    assert_eq!((sandbox.read("a.txt"), sandbox.read("loose")), ("mine\n".into(), "l\n".into()));
}

#[test]
fn refuses_staged_changes_with_working_hints() {
    for (script, paths) in [
        ("echo ann > ann; git add -N ann", "ann"),
        ("echo staged > keep.txt; git add keep.txt", "keep.txt"),
        ("git mv keep.txt kept.txt", "keep.txt, kept.txt"),
    ] {
        for hint_index in 0..2 {
            let (sandbox, id) = sandbox_with_discarded_changes("", "echo mine > a.txt");
            sandbox.sh(script);
            let before = full_state(&sandbox);
            let mut text = String::new();
            for args in [&["snap", "restore", "--dry-run", &id][..], &["snap", "restore", &id]] {
                text = sandbox.proq(args).fails(1);
                let reason = "it would replace other staged changes in [ROOT]/repo";
                let line =
                    format!("error: cannot restore snapshot [ID]: {reason}: {paths}; nothing was changed\n");
                assert!(text.starts_with(&line), "{text}");
                assert_unchanged(&before, &full_state(&sandbox));
            }
            sandbox.sh(&proq_test_kit::conflict::hint_commands(&sandbox, &text)[hint_index]);
            let _ = sandbox.proq(&["snap", "restore", &id]).ok();
            assert_eq!(sandbox.read("a.txt"), "mine\n");
        }
    }
}

#[test]
fn restore_onto_other_commit_merges() {
    let (sandbox, id) =
        sandbox_with_discarded_changes("", "sed -i s/^1$/one/ long.txt; git add long.txt; echo l > loose");
    sandbox.sh("sed -i s/^20$/twenty/ long.txt; git commit -qam moved");
    let clean = full_state(&sandbox);
    let planned = sandbox.proq(&["snap", "restore", "--dry-run", &id]);
    assert_unchanged(&clean, &full_state(&sandbox));
    insta::assert_snapshot!(planned.to_text(), @r"
    snapshot [ID] would be restored in [ROOT]/repo, merged into the current files
    --- code 0
    ");
    let _ = sandbox.proq(&["snap", "restore", &id]).ok();
    let text = sandbox.read("long.txt");
    assert!(text.starts_with("one\n") && text.ends_with("twenty\n"), "{text}");
    assert_eq!(sandbox.git(&["status", "--short"]), "M  long.txt\n?? loose");
}

#[test]
fn conflict_leaves_tree_and_names_next_command() {
    let (sandbox, id) = sandbox_with_discarded_changes("", "echo mine > a.txt; echo l > loose");
    sandbox.sh("echo other > a.txt; git commit -qam moved");
    let clean = full_state(&sandbox);
    for args in [&["snap", "restore", "--dry-run", &id][..], &["snap", "restore", &id]] {
        let out = sandbox.proq(args);
        assert!(
            out.stderr.contains(&format!("git stash apply {}", snapshot_commit(&sandbox, &id))),
            "{}",
            out.stderr
        );
        assert!(out.stdout.contains("  a.txt"), "{}", out.stdout);
        let _ = out.fails(3);
        assert_unchanged(&clean, &full_state(&sandbox));
    }
    let json = sandbox.proq(&["snap", "restore", "--json", &id]).json();
    assert_eq!((&json["restored"], &json["conflicts"][0]), (&"conflict".into(), &"a.txt".into()));
    sandbox.sh(&format!("git stash apply {} >/dev/null 2>&1 || true", snapshot_commit(&sandbox, &id)));
    assert!(sandbox.read("a.txt").contains("<<<<<<<"));
    // A second restore is refused while the index has conflicts.
    let text = sandbox.proq(&["snap", "restore", &id]).fails(1);
    assert!(text.contains("has unmerged paths: a.txt"), "{text}");
}

#[test]
fn untracked_file_tracked_now_restores_on_branch() {
    let (sandbox, id) = sandbox_with_discarded_changes("", "echo mine > loose; echo k2 > keep.txt");
    sandbox.sh("echo theirs > loose; git add .; git commit -qm moved");
    let out = sandbox.proq(&["snap", "restore", &id]);
    let command = out.stderr.lines().find_map(|l| l.split_once("on a new branch: ")).unwrap().1.to_owned();
    let _ = out.fails(3);
    sandbox.sh(&format!("{command} > /dev/null"));
    assert_eq!((sandbox.read("loose"), sandbox.read("keep.txt")), ("mine\n".into(), "k2\n".into()));
    assert_eq!(sandbox.git(&["rev-parse", "--abbrev-ref", "HEAD"]), "restored");
}

#[test]
fn restores_into_current_worktree() {
    let (sandbox, id) = sandbox_with_discarded_changes("", "echo mine > a.txt; echo l > loose");
    let lane = sandbox.lane_path("one");
    let _ = sandbox.proq_in(&lane, &["snap", "restore", &id]).ok();
    assert_eq!(sandbox.git_in(&lane, &["status", "--short"]), " M a.txt\n?? loose");
    assert_eq!(sandbox.git(&["status", "--short"]), "");
}

#[test]
fn outside_worktree_hints_how_to_name_one() {
    let sandbox = Sandbox::new();
    sandbox.sh("git clone -q --bare . ../bare.git");
    let bare = sandbox.root().join("bare.git");
    let _ = sandbox.proq_in(&bare, &["spawn", "--empty", "-n", "one"]).ok();
    sandbox.sh_in(&sandbox.root(), "echo work > bare.proq-worktrees/one/a.txt");
    let _ = sandbox.proq_in(&bare, &["discard", "--force", "one"]).ok();
    let text = sandbox.proq_in(&bare, &["snap", "restore", "2026"]).fails(1);
    assert!(text.contains("not inside a worktree"), "{text}");
    assert!(text.contains("git worktree list"), "{text}");
}

#[test]
fn restored_preview_edits_are_not_restored_twice() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("one", "echo lane > a.txt");
    let _ = sandbox.proq(&["preview", "one"]).ok();
    sandbox.sh("echo edit > edit.txt");
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    let id = snapshot_ids(&sandbox).pop().unwrap();
    let _ = sandbox.proq(&["snap", "restore", &id]).ok();
    assert_eq!(sandbox.read("edit.txt"), "edit\n");
    sandbox.sh("git add .; git commit -qm edit");
    let out = sandbox.proq(&["preview", "one"]);
    assert!(!out.stderr.contains("edits"), "{}", out.stderr);
    let _ = out.ok();
    assert!(!sandbox.repo.join("edit.txt").exists());
}

#[test]
fn unrecorded_preview_edits_are_not_restored_twice() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("one", "echo lane > a.txt");
    let _ = sandbox.proq(&["preview", "one"]).ok();
    sandbox.sh("echo edit > edit.txt");
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    let record = sandbox.repo.join(".git/proq/lanes/one/lane.toml");
    let before = std::fs::read(&record).unwrap();
    let _ = sandbox.proq(&["preview", "one"]).ok();
    assert_eq!(sandbox.read("edit.txt"), "edit\n");
    sandbox.sh("rm edit.txt");
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    // The lane's record as it is when the kill comes between the snapshot's mark and this record.
    std::fs::write(record, before).unwrap();
    let _ = sandbox.proq(&["preview", "one"]).ok();
    assert!(!sandbox.repo.join("edit.txt").exists(), "the user had deleted it since");
}

#[test]
fn repeated_restore_renews_expiry() {
    let (sandbox, id) = sandbox_with_discarded_changes("", "echo mine > a.txt");
    let _ = sandbox.proq_at("2026-01-30T00:00:00Z", &["snap", "restore", &id]).ok();
    let _ = sandbox.proq_at("2026-02-15T00:00:00Z", &["cleanup"]).ok();
    assert_eq!(snapshot_ids(&sandbox).len(), 1);
    let _ = sandbox.proq_at("2026-03-15T00:00:00Z", &["cleanup"]).ok();
    assert_eq!(snapshot_ids(&sandbox).len(), 0);
}

#[test]
fn refused_restore_keeps_restored_mark() {
    let (sandbox, id) = sandbox_with_discarded_changes("", "echo mine > a.txt");
    sandbox.sh("echo later > a.txt");
    let _ = sandbox.proq(&["snap", "restore", &id]).fails(1);
    assert_eq!(waiting_snapshots(&sandbox), Vec::<String>::new());
}

#[test]
fn names_files_of_broken_or_missing_records() {
    let (sandbox, id) = sandbox_with_discarded_changes("", "echo mine > a.txt");
    let folder = sandbox.repo.join(".git/proq/snaps").join(&id);
    std::fs::write(folder.join("snap.toml"), "format = 1\n").unwrap();
    let text = sandbox.proq(&["snap", "list"]).stderr;
    assert!(
        text.contains("cannot read the record") && text.contains("git stash apply refs/proq/snap/[ID]"),
        "{text}"
    );
    std::fs::remove_dir_all(folder).unwrap();
    let text = sandbox.proq(&["snap", "list"]).stderr;
    assert!(text.contains("refs/proq/snap/[ID] has no record") && text.contains("git stash apply"), "{text}");
}

#[test]
fn reports_snapshot_with_lost_commit() {
    let (sandbox, id) = sandbox_with_discarded_changes("", "echo mine > a.txt; echo l > loose");
    sandbox.sh(
        "git for-each-ref --format='delete %(refname)' refs/proq/snap refs/proq/op | git update-ref --stdin
        git reflog expire --all --expire=now; git gc -q --prune=now",
    );
    let clean = WorktreeState::capture(&sandbox, &sandbox.repo);
    for args in
        [&["snap", "show", &id][..], &["snap", "restore", "--dry-run", &id], &["snap", "restore", &id]]
    {
        let out = sandbox.proq(args);
        insta::allow_duplicates!(insta::assert_snapshot!(out.to_text(), @r"
        --- stderr
        error: cannot read snapshot [ID]: git has lost its commit 74a68002; nothing was changed
        hint: list the files that are left: ls -R '[ROOT]/repo/.git/proq/snaps/[ID]'
        --- code 1
        "));
        let text = out.fails(1);
        let hint = text.lines().find_map(|line| line.strip_prefix("hint: ")).unwrap();
        let root = sandbox.root().display().to_string();
        let command = hint.split_once(": ").unwrap().1.replace("[ROOT]", &root).replace("[ID]", &id);
        assert!(sandbox.sh(&command).contains("snap.toml"), "{command}");
        assert_same_image(&clean, &WorktreeState::capture(&sandbox, &sandbox.repo));
    }
    assert!(sandbox.proq(&["snap", "list"]).ok().contains("restored"));
}

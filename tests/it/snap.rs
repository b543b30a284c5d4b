//! Owns the tests of `git proq snap`: what it lists, shows and brings back, and what it refuses.

use super::preview_identity::{same, waiting_snaps};
use super::support::{Image, Sandbox};

/// The ids of all snapshots, oldest first.
pub fn ids(sandbox: &Sandbox) -> Vec<String> {
    let refs = ["for-each-ref", "--format=%(refname:lstrip=3)", "refs/proq/snap"];
    let refs = String::from_utf8(sandbox.raw(&sandbox.repo, &refs)).unwrap();
    refs.lines().map(ToOwned::to_owned).collect()
}

/// A snapshot whose content is in no worktree any more: its user came back and then threw all away.
fn thrown_away(base: &str, dirty: &str) -> (Sandbox, String) {
    let sandbox = Sandbox::new();
    sandbox.sh(&format!("seq 1 20 > long.txt; echo k > keep.txt\n{base}"));
    sandbox.commit_all("base");
    sandbox.lane_of("one", "echo lane > lane.txt");
    sandbox.sh(dirty);
    let _ = sandbox.proq(&["preview", "one"]).ok();
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    sandbox.sh("git reset -q --hard; git clean -qfd");
    let id = ids(&sandbox).pop().unwrap();
    (sandbox, id)
}

/// What a refused or merely planned command may not change.
fn state(sandbox: &Sandbox) -> (Image, String, Vec<String>) {
    let refs = sandbox.git(&["for-each-ref"]);
    (Image::of(sandbox, &sandbox.repo), refs, waiting_snaps(sandbox))
}

#[track_caller]
fn unchanged(before: &(Image, String, Vec<String>), after: &(Image, String, Vec<String>)) {
    same(&before.0, &after.0);
    assert_eq!((&before.1, &before.2), (&after.1, &after.2));
}

#[test]
fn the_list_says_what_each_one_is_for_and_waits_for() {
    let sandbox = Sandbox::new();
    insta::assert_snapshot!(sandbox.proq(&["snap", "list"]).shown(), @r"
    --- stderr
    no snapshot is kept
    --- code 0
    ");
    sandbox.lane_of("one", "echo lane > a.txt");
    sandbox.lane_of("two", "echo lane > b.txt");
    sandbox.sh("echo first > a.txt");
    // Within one second they are listed by the numbers of processes, which begin again at some time.
    let _ = sandbox.proq_at("2026-01-02T03:04:06Z", &["preview", "one"]).ok();
    let _ = sandbox.proq_at("2026-01-02T03:04:07Z", &["preview", "--back"]).ok();
    let _ = sandbox.proq_at("2026-01-02T03:04:08Z", &["preview", "one"]).ok();
    sandbox.sh("echo edit > a.txt; echo more > more.txt");
    let _ = sandbox.proq_at("2026-01-02T03:04:09Z", &["preview", "two"]).ok();
    sandbox.write_in(&sandbox.lane("two"), "left", "left\n");
    let _ = sandbox.proq_at("2026-01-02T03:04:10Z", &["discard", "--force", "two"]).ok();
    let list = |args: &[&str]| sandbox.proq_at("2026-01-02T03:04:10Z", args);
    let json = list(&["snap", "list", "--json"]).json();
    let rows = json["snapshots"].as_array().unwrap();
    let told: Vec<String> = rows
        .iter()
        .map(|r| format!("{} {} {} {}", r["state"], r["lane"], r["files"], r["why"]).replace('"', ""))
        .collect();
    insta::assert_snapshot!(told.join("\n"), @r"
    kept null 1 uncommitted work of lane two
    edits one 2 edits made in the preview of one
    restored null 1 changes on main before the preview of one
    restored null 1 changes on main before the preview of one
    ");
    // How wide the ids are differs from run to run.
    let out = list(&["snap", "list"]).ok();
    let lines: Vec<String> =
        out.lines().map(|l| l.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    assert_eq!(lines[0], "ID AGE STATE FILES WHAT FOR");
    assert!(lines[2].ends_with(" 1s edits of one 2 edits made in the preview of one"), "{}", lines[2]);
}

#[test]
fn the_one_that_an_open_preview_waits_for_is_refused() {
    let sandbox = Sandbox::new();
    sandbox.lane_of("one", "echo lane > a.txt");
    sandbox.sh("echo mine > a.txt");
    let _ = sandbox.proq(&["preview", "one"]).ok();
    let before = state(&sandbox);
    assert_eq!(sandbox.proq(&["snap", "list", "--json"]).json()["snapshots"][0]["state"], "waiting");
    let id = &ids(&sandbox)[0];
    let refused = sandbox.proq(&["snap", "restore", id]);
    insta::assert_snapshot!(refused.shown(), @r"
    --- stderr
    error: snapshot [ID] comes back when the preview of 'one' is left; nothing was changed
    hint: go back: git proq preview --back
    --- code 1
    ");
    assert_eq!(sandbox.proq(&["snap", "restore", "--dry-run", id]), refused);
    unchanged(&before, &state(&sandbox));
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    assert_eq!(sandbox.read("a.txt"), "mine\n");
}

#[test]
fn show_names_every_file_with_its_letters() {
    let (sandbox, id) = thrown_away(
        "echo x > x; echo y > y; ln -s x link",
        "echo s > a.txt; git add a.txt; echo u > a.txt; echo u > keep.txt; git rm -q x; rm y
        echo n > new; git add new; echo ann > ann; git add -N ann; rm link; echo f > link
        echo loose > 'lo ose'; mkdir -p void",
    );
    let shown = sandbox.proq(&["snap", "show", &id]).ok().replace(&commit(&sandbox, &id), "[COMMIT]");
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

fn commit(sandbox: &Sandbox, id: &str) -> String {
    sandbox.git(&["rev-parse", &format!("refs/proq/snap/{id}")])
}

#[test]
fn a_unique_beginning_of_an_id_is_enough() {
    let (sandbox, id) = thrown_away("", "echo mine > a.txt");
    let _ = sandbox.proq(&["snap", "show", &id[..8]]).ok();
    let _ = sandbox.proq(&["snap", "show", &id]).ok();
    sandbox.sh("echo again > a.txt");
    let _ = sandbox.proq(&["preview", "one"]).ok();
    let text = sandbox.proq(&["snap", "show", &id[..8]]).fails(1);
    assert!(text.contains("'20260102' is the beginning of 2 snapshots: [ID], [ID]"), "{text}");
    for wrong in ["", "nothing", "..", "../lanes", "x/y"] {
        let text = sandbox.proq(&["snap", "show", wrong]).fails(1);
        assert!(text.contains("there is no snapshot") && text.contains("git proq snap list"), "{text}");
    }
}

#[test]
fn a_restore_onto_the_same_commit_is_exact() {
    let dirty =
        "echo s > a.txt; git add a.txt; echo u > a.txt; echo u >> keep.txt; rm long.txt; echo l > loose
        mkdir -p void; git update-index --assume-unchanged keep.txt; echo ann > ann; git add -N ann";
    let (sandbox, id) = thrown_away("", dirty);
    let clean = state(&sandbox);
    let planned = sandbox.proq(&["snap", "restore", "--dry-run", &id]);
    unchanged(&clean, &state(&sandbox));
    insta::assert_snapshot!(planned.shown(), @r"
    snapshot [ID] would come back in [ROOT]/repo, exactly as it was
    --- code 0
    ");
    let other = thrown_away("", "true > a.txt").0;
    other.sh(dirty);
    let wanted = Image::of(&other, &other.repo);
    insta::assert_snapshot!(sandbox.proq(&["snap", "restore", &id]).shown(), @r"
    snapshot [ID] is back in [ROOT]/repo, exactly as it was
    --- code 0
    ");
    same(&wanted, &Image::of(&sandbox, &sandbox.repo));
    // What is there already is no obstacle.
    let _ = sandbox.proq(&["snap", "restore", &id]).ok();
    same(&wanted, &Image::of(&sandbox, &sandbox.repo));
}

#[test]
fn own_changes_that_overlap_are_refused_by_name_and_others_stay() {
    let (sandbox, id) = thrown_away("", "echo mine > a.txt; echo l > loose");
    for (script, what) in [
        ("echo later > a.txt", "a.txt"),
        ("echo other > loose", "loose"),
        ("mkdir loose; echo in > loose/in", "loose/in"),
        ("echo staged > keep.txt; git add keep.txt", "keep.txt"),
        ("echo ann > ann; git add -N ann", "ann"),
        ("git update-index --assume-unchanged a.txt; echo hidden > a.txt", "a.txt"),
    ] {
        sandbox.sh(script);
        let before = state(&sandbox);
        for args in [&["snap", "restore", &id][..], &["snap", "restore", "--dry-run", &id]] {
            let text = sandbox.proq(args).fails(1);
            assert!(text.contains(&format!(": {what}; nothing was changed")), "{script}\n{text}");
            unchanged(&before, &state(&sandbox));
        }
        sandbox.sh("git update-index --no-assume-unchanged a.txt; git reset -q --hard; git clean -qfd");
    }
    sandbox.sh("echo other > keep.txt; echo n > new");
    let _ = sandbox.proq(&["snap", "restore", &id]).ok();
    assert_eq!((sandbox.read("keep.txt"), sandbox.read("new")), ("other\n".into(), "n\n".into()));
    assert_eq!((sandbox.read("a.txt"), sandbox.read("loose")), ("mine\n".into(), "l\n".into()));
}

#[test]
fn an_index_with_something_staged_refuses_a_restore_in_these_words_and_the_hints_help() {
    for (script, what) in [
        ("echo ann > ann; git add -N ann", "ann"),
        ("echo staged > keep.txt; git add keep.txt", "keep.txt"),
        ("git mv keep.txt kept.txt", "keep.txt, kept.txt"),
    ] {
        for way in 0..2 {
            let (sandbox, id) = thrown_away("", "echo mine > a.txt");
            sandbox.sh(script);
            let before = state(&sandbox);
            let mut text = String::new();
            for args in [&["snap", "restore", "--dry-run", &id][..], &["snap", "restore", &id]] {
                text = sandbox.proq(args).fails(1);
                let why = "it replaces the index of [ROOT]/repo, where something else is staged";
                let line =
                    format!("error: cannot restore snapshot [ID]: {why}: {what}; nothing was changed\n");
                assert!(text.starts_with(&line), "{text}");
                unchanged(&before, &state(&sandbox));
            }
            sandbox.sh(&super::plain_refusals::hints(&sandbox, &text)[way]);
            let _ = sandbox.proq(&["snap", "restore", &id]).ok();
            assert_eq!(sandbox.read("a.txt"), "mine\n");
        }
    }
}

#[test]
fn onto_another_commit_it_is_merged() {
    let (sandbox, id) = thrown_away("", "sed -i s/^1$/one/ long.txt; git add long.txt; echo l > loose");
    sandbox.sh("sed -i s/^20$/twenty/ long.txt; git commit -qam moved");
    let clean = state(&sandbox);
    let planned = sandbox.proq(&["snap", "restore", "--dry-run", &id]);
    unchanged(&clean, &state(&sandbox));
    insta::assert_snapshot!(planned.shown(), @r"
    snapshot [ID] would come back in [ROOT]/repo, merged into what is there now
    --- code 0
    ");
    let _ = sandbox.proq(&["snap", "restore", &id]).ok();
    let text = sandbox.read("long.txt");
    assert!(text.starts_with("one\n") && text.ends_with("twenty\n"), "{text}");
    assert_eq!(sandbox.git(&["status", "--short"]), "M  long.txt\n?? loose");
}

#[test]
fn a_conflict_leaves_the_tree_alone_and_names_the_command_that_goes_on() {
    let (sandbox, id) = thrown_away("", "echo mine > a.txt; echo l > loose");
    sandbox.sh("echo other > a.txt; git commit -qam moved");
    let clean = state(&sandbox);
    for args in [&["snap", "restore", "--dry-run", &id][..], &["snap", "restore", &id]] {
        let out = sandbox.proq(args);
        assert!(out.stderr.contains(&format!("git stash apply {}", commit(&sandbox, &id))), "{}", out.stderr);
        assert!(out.stdout.contains("  a.txt"), "{}", out.stdout);
        let _ = out.fails(3);
        unchanged(&clean, &state(&sandbox));
    }
    let json = sandbox.proq(&["snap", "restore", "--json", &id]).json();
    assert_eq!((&json["restored"], &json["conflicts"][0]), (&"conflict".into(), &"a.txt".into()));
    sandbox.sh(&format!("git stash apply {} >/dev/null 2>&1 || true", commit(&sandbox, &id)));
    assert!(sandbox.read("a.txt").contains("<<<<<<<"));
    // An index with conflicts is no place for another one.
    let text = sandbox.proq(&["snap", "restore", &id]).fails(1);
    assert!(text.contains("has unmerged paths: a.txt"), "{text}");
}

#[test]
fn an_untracked_file_that_is_tracked_now_comes_back_on_a_branch_of_its_own() {
    let (sandbox, id) = thrown_away("", "echo mine > loose; echo k2 > keep.txt");
    sandbox.sh("echo theirs > loose; git add .; git commit -qm moved");
    let out = sandbox.proq(&["snap", "restore", &id]);
    let command = out.stderr.lines().find_map(|l| l.split_once("of its own: ")).unwrap().1.to_owned();
    let _ = out.fails(3);
    sandbox.sh(&format!("{} > /dev/null", command.replace("NAME", "saved")));
    assert_eq!((sandbox.read("loose"), sandbox.read("keep.txt")), ("mine\n".into(), "k2\n".into()));
    assert_eq!(sandbox.git(&["rev-parse", "--abbrev-ref", "HEAD"]), "saved");
}

#[test]
fn it_comes_back_onto_the_worktree_that_one_stands_in() {
    let (sandbox, id) = thrown_away("", "echo mine > a.txt; echo l > loose");
    let lane = sandbox.lane("one");
    let _ = sandbox.proq_in(&lane, &["snap", "restore", &id]).ok();
    assert_eq!(sandbox.git_in(&lane, &["status", "--short"]), " M a.txt\n?? loose");
    assert_eq!(sandbox.git(&["status", "--short"]), "");
}

#[test]
fn where_there_is_no_worktree_it_says_how_to_name_one() {
    let sandbox = Sandbox::new();
    sandbox.sh("git clone -q --bare . ../bare.git");
    let bare = sandbox.root().join("bare.git");
    let _ = sandbox.proq_in(&bare, &["spawn", "--empty", "-n", "one"]).ok();
    sandbox.sh_in(&sandbox.root(), "echo work > bare.proq-worktrees/one/a.txt");
    let _ = sandbox.proq_in(&bare, &["discard", "--force", "one"]).ok();
    let text = sandbox.proq_in(&bare, &["snap", "restore", "2026"]).fails(1);
    assert!(text.contains("this is no worktree"), "{text}");
    assert!(text.contains("git proq -C DIR snap restore [ID]"), "{text}");
}

#[test]
fn edits_of_a_preview_that_were_brought_back_do_not_come_twice() {
    let sandbox = Sandbox::new();
    sandbox.lane_of("one", "echo lane > a.txt");
    let _ = sandbox.proq(&["preview", "one"]).ok();
    sandbox.sh("echo edit > edit.txt");
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    let id = ids(&sandbox).pop().unwrap();
    let _ = sandbox.proq(&["snap", "restore", &id]).ok();
    assert_eq!(sandbox.read("edit.txt"), "edit\n");
    sandbox.sh("git add .; git commit -qm edit");
    let out = sandbox.proq(&["preview", "one"]);
    assert!(!out.stderr.contains("edits"), "{}", out.stderr);
    let _ = out.ok();
    assert!(!sandbox.repo.join("edit.txt").exists());
}

#[test]
fn edits_that_came_back_before_a_crash_could_note_it_do_not_come_twice() {
    let sandbox = Sandbox::new();
    sandbox.lane_of("one", "echo lane > a.txt");
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
fn what_comes_back_again_is_not_deleted_meanwhile_and_counts_from_then() {
    let (sandbox, id) = thrown_away("", "echo mine > a.txt");
    let _ = sandbox.proq_at("2026-01-30T00:00:00Z", &["snap", "restore", &id]).ok();
    let _ = sandbox.proq_at("2026-02-15T00:00:00Z", &["cleanup"]).ok();
    assert_eq!(ids(&sandbox).len(), 1);
    let _ = sandbox.proq_at("2026-03-15T00:00:00Z", &["cleanup"]).ok();
    assert_eq!(ids(&sandbox).len(), 0);
}

#[test]
fn a_refused_restore_of_one_that_came_back_leaves_its_mark() {
    let (sandbox, id) = thrown_away("", "echo mine > a.txt");
    sandbox.sh("echo later > a.txt");
    let _ = sandbox.proq(&["snap", "restore", &id]).fails(1);
    assert_eq!(waiting_snaps(&sandbox), Vec::<String>::new());
}

#[test]
fn a_broken_record_and_a_ref_without_one_are_named_with_the_way_to_their_files() {
    let (sandbox, id) = thrown_away("", "echo mine > a.txt");
    let folder = sandbox.repo.join(".git/proq/snaps").join(&id);
    std::fs::write(folder.join("snap.toml"), "format = 1\n").unwrap();
    let text = sandbox.proq(&["snap", "list"]).stderr;
    assert!(
        text.contains("cannot be read") && text.contains("git stash apply refs/proq/snap/[ID]"),
        "{text}"
    );
    std::fs::remove_dir_all(folder).unwrap();
    let text = sandbox.proq(&["snap", "list"]).stderr;
    assert!(text.contains("refs/proq/snap/[ID] has no record") && text.contains("git stash apply"), "{text}");
}

#[test]
fn a_snapshot_that_git_has_lost_is_said_to_be_lost() {
    let (sandbox, id) = thrown_away("", "echo mine > a.txt; echo l > loose");
    sandbox.sh(
        "git for-each-ref --format='delete %(refname)' refs/proq/snap refs/proq/op | git update-ref --stdin
        git reflog expire --all --expire=now; git gc -q --prune=now",
    );
    let clean = Image::of(&sandbox, &sandbox.repo);
    for args in
        [&["snap", "show", &id][..], &["snap", "restore", "--dry-run", &id], &["snap", "restore", &id]]
    {
        let out = sandbox.proq(args);
        insta::allow_duplicates!(insta::assert_snapshot!(out.shown(), @r"
        --- stderr
        error: cannot read snapshot [ID]: git has lost its commit 74a68002, which no ref keeps; nothing was changed
        hint: see which of its files are left: ls -R '[ROOT]/repo/.git/proq/snaps/[ID]'
        --- code 1
        "));
        let text = out.fails(1);
        let hint = text.lines().find_map(|line| line.strip_prefix("hint: ")).unwrap();
        let root = sandbox.root().display().to_string();
        let command = hint.split_once(": ").unwrap().1.replace("[ROOT]", &root).replace("[ID]", &id);
        assert!(sandbox.sh(&command).contains("snap.toml"), "{command}");
        same(&clean, &Image::of(&sandbox, &sandbox.repo));
    }
    assert!(sandbox.proq(&["snap", "list"]).ok().contains("restored"));
}

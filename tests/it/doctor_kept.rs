//! Owns the doctor's tests of what is kept: snapshots, the preview, conflicts, the trash, and the objects behind them.

use super::doctor::{finds, finds_and_leaves, finds_and_repairs, follow};
use super::support::Sandbox;

/// A lane `x` that the main checkout shows, with a file of the user's set aside. Returns the snapshot's id too.
fn previewed() -> (Sandbox, String) {
    let sandbox = Sandbox::new();
    sandbox.lane_of("x", "echo 1 > one");
    sandbox.write("mine", "m");
    let _ = sandbox.proq(&["preview", "x"]).ok();
    let id = std::fs::read_dir(sandbox.repo.join(".git/proq/snaps")).unwrap().next().unwrap().unwrap();
    (sandbox, id.file_name().into_string().unwrap())
}

#[test]
fn a_snapshot_without_its_ref_gets_it_back() {
    let (sandbox, id) = previewed();
    sandbox.assert_healthy();
    let name = format!("refs/proq/snap/{id}");
    let tip = sandbox.git(&["rev-parse", &name]);
    sandbox.git(&["update-ref", "-d", &name]);
    let _ = finds_and_repairs(&sandbox, "snapshot-ref", "error");
    assert_eq!(sandbox.git(&["rev-parse", &name]), tip);
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    assert_eq!(sandbox.read("mine"), "m");
    sandbox.assert_healthy();
}

#[test]
fn a_snapshot_whose_parts_disagree_is_an_error_and_is_left() {
    let (sandbox, id) = previewed();
    let (name, dir) = (format!("refs/proq/snap/{id}"), format!(".git/proq/snaps/{id}"));
    let tip = sandbox.git(&["rev-parse", &name]);
    sandbox.git(&["update-ref", &name, "HEAD"]);
    let _ = finds_and_leaves(&sandbox, "snapshot-ref", "error");
    sandbox.git(&["update-ref", &name, &tip]);
    sandbox.sh(&format!("mv {dir}/index index-was"));
    let _ = finds_and_leaves(&sandbox, "snapshot-index", "error");
    sandbox.sh(&format!("mv index-was {dir}/index; mv {dir}/snap.toml record-was"));
    let found = finds_and_leaves(&sandbox, "snapshot-record", "error");
    let set_aside = finds_and_leaves(&sandbox, "set-aside", "error");
    assert!(set_aside["message"].as_str().unwrap().contains("set aside"), "{set_aside:#?}");
    let help = found["help"].as_str().unwrap();
    assert!(help.starts_with("git proq preview --back && git stash apply "), "{found:#?}");
    sandbox.write(&format!("{dir}/snap.toml"), "broken");
    let _ = finds_and_leaves(&sandbox, "snapshot-record", "error");
    sandbox.sh(&format!("mv record-was {dir}/snap.toml"));
    sandbox.assert_healthy();
}

#[test]
fn a_snapshot_that_was_cut_short_and_one_that_nobody_waits_for_are_told_apart() {
    let sandbox = Sandbox::new();
    sandbox.sh("mkdir -p .git/proq/snaps/20260102-030405-1-0; chmod 700 .git/proq");
    let _ = finds_and_leaves(&sandbox, "set-aside", "warning");
    sandbox.sh("rmdir .git/proq/snaps/*");
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "x"]).ok();
    sandbox.write_in(&sandbox.lane("x"), "draft", "d");
    let _ = sandbox.proq(&["discard", "--force", "x"]).ok();
    let found = finds(&sandbox, "snapshot-unclaimed", "info");
    assert!(found["message"].as_str().unwrap().contains("uncommitted work of lane x"), "{found:#?}");
    sandbox.assert_healthy();
}

#[test]
fn a_preview_that_was_left_by_hand_is_a_warning() {
    let (sandbox, _) = previewed();
    sandbox.git(&["switch", "-q", "main"]);
    let found = finds_and_leaves(&sandbox, "preview-place", "warning");
    assert!(found["message"].as_str().unwrap().contains("your own changes wait"), "{found:#?}");
    sandbox.git(&["switch", "-q", "-c", "elsewhere"]);
    let found = finds_and_leaves(&sandbox, "preview-place", "warning");
    follow(&sandbox, &found);
    assert_eq!(sandbox.read("mine"), "m");
    sandbox.assert_healthy();
}

#[test]
fn a_preview_of_which_only_the_record_is_left_is_closed() {
    let (sandbox, id) = previewed();
    let open = sandbox.read(".git/proq/preview.toml");
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    assert!(open.contains(&id));
    sandbox.write(".git/proq/preview.toml", &open);
    let _ = finds_and_repairs(&sandbox, "preview-place", "warning");
    assert!(!sandbox.repo.join(".git/proq/preview.toml").exists());
    assert_eq!(sandbox.read("mine"), "m");
    sandbox.assert_healthy();
}

#[test]
fn a_preview_that_cannot_go_back_is_an_error() {
    let (sandbox, id) = previewed();
    let tip = sandbox.git(&["rev-parse", "main"]);
    sandbox.git(&["update-ref", "-d", "refs/heads/main"]);
    let found = finds_and_leaves(&sandbox, "preview-origin", "error");
    follow(&sandbox, &found);
    assert_eq!(sandbox.git(&["rev-parse", "main"]), tip);
    sandbox.assert_healthy();

    let open = sandbox.read(".git/proq/preview.toml");
    sandbox.sh("rm .git/proq/preview.toml");
    let _ = finds_and_leaves(&sandbox, "preview-record", "error");
    sandbox.write(".git/proq/preview.toml", "broken");
    let _ = finds_and_leaves(&sandbox, "preview-record", "error");
    sandbox.write(".git/proq/preview.toml", &open);

    sandbox.sh(&format!("git update-ref -d refs/proq/snap/{id}; mv .git/proq/snaps/{id} .."));
    let _ = finds_and_leaves(&sandbox, "preview-changes", "error");
    sandbox.git(&["update-ref", "-d", "refs/heads/proq/x-preview"]);
    let _ = finds_and_leaves(&sandbox, "preview-branch", "error");
}

#[test]
fn a_branch_that_is_left_of_a_preview_and_a_lane_that_is_gone_from_one_are_warnings() {
    let (sandbox, _) = previewed();
    sandbox.sh("mv .git/proq/lanes/x ../x-was");
    let _ = finds(&sandbox, "preview-lane", "warning");
    sandbox.sh("mv ../x-was .git/proq/lanes/x");
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    sandbox.git(&["branch", "proq/x-preview", "main"]);
    let found = finds_and_leaves(&sandbox, "preview-branch", "warning");
    follow(&sandbox, &found);
    sandbox.assert_healthy();
}

#[test]
fn edits_of_a_preview_that_are_nowhere_are_no_longer_waited_for() {
    let sandbox = Sandbox::new();
    sandbox.lane_of("x", "echo 1 > one");
    let path = ".git/proq/lanes/x/lane.toml";
    let text = sandbox.read(path);
    sandbox.write(path, &text.replace("attempt = 0", "attempt = 0\npreview_edits = ['20260102-030405-1-0']"));
    let _ = finds_and_repairs(&sandbox, "lane-edits", "error");
    let _ = sandbox.proq(&["preview", "x"]).ok();
    sandbox.assert_healthy();
}

#[test]
fn conflicts_need_record_and_ref() {
    let sandbox = Sandbox::new();
    sandbox.lane_of("x", "echo x > a.txt");
    sandbox.write("a.txt", "mine\n");
    sandbox.commit_all("mine");
    let _ = sandbox.proq(&["merge", "x"]).fails(3);
    sandbox.assert_healthy();
    sandbox.git(&["update-ref", "-d", "refs/proq/conflict/x"]);
    let _ = finds_and_leaves(&sandbox, "conflict-ref", "error");
    sandbox.write(".git/proq/lanes/x/conflict.toml", "broken");
    let _ = finds_and_leaves(&sandbox, "conflict-record", "error");
    sandbox.sh("rm .git/proq/lanes/x/conflict.toml");
    let found = finds_and_leaves(&sandbox, "conflict-record", "error");
    assert_eq!(found["help"], "git proq merge x");
    let _ = sandbox.proq(&["merge", "x"]).fails(3);
    sandbox.assert_healthy();
    let _ = sandbox.proq(&["discard", "--force", "x"]).ok();
    sandbox.assert_healthy();
    sandbox.git(&["update-ref", "refs/proq/conflict/nobody", "HEAD"]);
    let found = finds_and_leaves(&sandbox, "conflict-ref", "warning");
    follow(&sandbox, &found);
    sandbox.assert_healthy();
}

#[test]
fn trash_that_is_not_whole_is_told() {
    let sandbox = Sandbox::new();
    sandbox.lane_of("x", "echo 1 > one");
    let _ = sandbox.proq(&["discard", "--force", "x"]).ok();
    sandbox.assert_healthy();
    let entry = sandbox.sh("ls -d $PWD/.git/proq/trash/*").replace("[ID]", "*").replace("[ROOT]", "$ROOT");
    sandbox.sh(&format!("mv {entry}/trash.toml .."));
    let _ = finds_and_leaves(&sandbox, "trash-record", "error");
    sandbox.sh(&format!("cd {entry}; echo broken > trash.toml"));
    let _ = finds_and_leaves(&sandbox, "trash-record", "error");
    sandbox.sh(&format!("cd {entry}; mv $ROOT/trash.toml .; mv admin $ROOT"));
    let _ = finds_and_leaves(&sandbox, "trash-files", "warning");
    sandbox.sh(&format!("cd {entry}; mv $ROOT/admin .; mv worktree $ROOT"));
    let _ = finds_and_leaves(&sandbox, "trash-files", "error");
    sandbox.sh(&format!("cd {entry}; mv $ROOT/worktree ."));
    sandbox.assert_healthy();
    sandbox.sh("git for-each-ref --format='delete %(refname)' refs/proq/saved/ | git update-ref --stdin");
    let found = finds_and_leaves(&sandbox, "saved-ref", "error");
    follow(&sandbox, &found);
    assert_eq!(sandbox.git(&["show", "x-saved:one"]), "1");
}

#[test]
fn expired_trash_goes_with_the_command_that_is_named() {
    let sandbox = Sandbox::new();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "x"]).ok();
    let _ = sandbox.proq(&["discard", "x"]).ok();
    sandbox.git(&["config", "proq.trash.keep", "0"]);
    let found = finds(&sandbox, "trash-expired", "info");
    follow(&sandbox, &found);
    let answer = sandbox.proq(&["doctor", "--json"]).json();
    assert_eq!(answer["checked"]["trash"], 0);
}

#[test]
fn objects_and_refs_that_git_has_lost_are_named() {
    let sandbox = Sandbox::new();
    sandbox.lane_of("x", "echo 1 > one");
    let blob = sandbox.git(&["rev-parse", "proq/x:one"]);
    let lose = |id: &str| sandbox.sh(&format!("mv .git/objects/{}/{} ../lost", &id[..2], &id[2..]));
    let find = |id: &str| sandbox.sh(&format!("mv ../lost .git/objects/{}/{}", &id[..2], &id[2..]));
    lose(&blob);
    let found = finds_and_leaves(&sandbox, "objects", "error");
    assert!(found["message"].as_str().unwrap().contains(&blob[..12]), "{found:#?}");
    find(&blob);
    sandbox.assert_healthy();

    let tip = sandbox.git(&["rev-parse", "proq/x"]);
    lose(&tip);
    let found = finds_and_leaves(&sandbox, "objects", "error");
    assert!(found["message"].as_str().unwrap().contains("refs/heads/proq/x"), "{found:#?}");
    find(&tip);
    if sandbox.repo.join(".git/refs/heads/proq/x").exists() {
        sandbox.sh("printf '' > .git/refs/heads/proq/x");
        let found = finds_and_leaves(&sandbox, "ref", "error");
        assert!(found["message"].as_str().unwrap().contains("power cut"), "{found:#?}");
    }
}

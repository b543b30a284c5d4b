//! Tests of the doctor's checks of saved state: snapshots, preview, conflicts, trash, and the objects that
//! they need.

use proq_test_kit::Sandbox;

use super::doctor::{
    assert_finding, assert_fixable_finding, assert_unfixable_finding, run_suggested_command,
};

/// Previews a lane `x` with a parked file of the user. Returns the snapshot's id too.
fn with_preview() -> (Sandbox, String) {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("x", "echo 1 > one");
    sandbox.write("mine", "m");
    let _ = sandbox.proq(&["preview", "x"]).ok();
    let id = std::fs::read_dir(sandbox.repo.join(".git/proq/snaps")).unwrap().next().unwrap().unwrap();
    (sandbox, id.file_name().into_string().unwrap())
}

#[test]
fn repairs_missing_snapshot_ref() {
    let (sandbox, id) = with_preview();
    sandbox.assert_healthy();
    let name = format!("refs/proq/snap/{id}");
    let tip = sandbox.git(&["rev-parse", &name]);
    sandbox.git(&["update-ref", "-d", &name]);
    let _ = assert_fixable_finding(&sandbox, "snapshot-ref", "error");
    assert_eq!(sandbox.git(&["rev-parse", &name]), tip);
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    assert_eq!(sandbox.read("mine"), "m");
    sandbox.assert_healthy();
}

#[test]
fn inconsistent_snapshot_is_an_unfixable_error() {
    let (sandbox, id) = with_preview();
    let (name, dir) = (format!("refs/proq/snap/{id}"), format!(".git/proq/snaps/{id}"));
    let tip = sandbox.git(&["rev-parse", &name]);
    sandbox.git(&["update-ref", &name, "HEAD"]);
    let _ = assert_unfixable_finding(&sandbox, "snapshot-ref", "error");
    sandbox.git(&["update-ref", &name, &tip]);
    sandbox.sh(&format!("mv {dir}/index index-was"));
    let _ = assert_unfixable_finding(&sandbox, "snapshot-index", "error");
    sandbox.sh(&format!("mv index-was {dir}/index; mv {dir}/snap.toml record-was"));
    let found = assert_unfixable_finding(&sandbox, "snapshot-record", "error");
    let set_aside = assert_unfixable_finding(&sandbox, "set-aside", "error");
    assert!(set_aside["message"].as_str().unwrap().contains("saved files of yours"), "{set_aside:#?}");
    let help = found["help"].as_str().unwrap();
    assert!(help.starts_with("git proq preview --back && git stash apply "), "{found:#?}");
    sandbox.write(&format!("{dir}/snap.toml"), "broken");
    let _ = assert_unfixable_finding(&sandbox, "snapshot-record", "error");
    sandbox.sh(&format!("mv record-was {dir}/snap.toml"));
    sandbox.assert_healthy();
}

#[test]
fn distinguishes_partial_and_unclaimed_snapshots() {
    let sandbox = Sandbox::new();
    sandbox.sh("mkdir -p .git/proq/snaps/20260102-030405-1-0; chmod 700 .git/proq");
    let _ = assert_unfixable_finding(&sandbox, "set-aside", "warning");
    sandbox.sh("rmdir .git/proq/snaps/*");
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "x"]).ok();
    sandbox.write_in(&sandbox.lane_path("x"), "draft", "d");
    let _ = sandbox.proq(&["discard", "--force", "x"]).ok();
    let found = assert_finding(&sandbox, "snapshot-unclaimed", "info");
    assert!(found["message"].as_str().unwrap().contains("uncommitted work of lane x"), "{found:#?}");
    sandbox.assert_healthy();
}

#[test]
fn preview_left_manually_is_a_warning() {
    let (sandbox, _) = with_preview();
    sandbox.git(&["switch", "-q", "main"]);
    let found = assert_unfixable_finding(&sandbox, "preview-place", "warning");
    assert!(found["message"].as_str().unwrap().contains("your own changes are saved"), "{found:#?}");
    sandbox.git(&["switch", "-q", "-c", "elsewhere"]);
    let found = assert_unfixable_finding(&sandbox, "preview-place", "warning");
    run_suggested_command(&sandbox, &found);
    assert_eq!(sandbox.read("mine"), "m");
    sandbox.assert_healthy();
}

#[test]
fn closes_preview_with_only_a_record() {
    let (sandbox, id) = with_preview();
    let open = sandbox.read(".git/proq/preview.toml");
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    assert!(open.contains(&id));
    sandbox.write(".git/proq/preview.toml", &open);
    let _ = assert_fixable_finding(&sandbox, "preview-place", "warning");
    assert!(!sandbox.repo.join(".git/proq/preview.toml").exists());
    assert_eq!(sandbox.read("mine"), "m");
    sandbox.assert_healthy();
}

#[test]
fn preview_that_cannot_be_left_is_an_error() {
    let (sandbox, id) = with_preview();
    let tip = sandbox.git(&["rev-parse", "main"]);
    sandbox.git(&["update-ref", "-d", "refs/heads/main"]);
    let found = assert_unfixable_finding(&sandbox, "preview-origin", "error");
    run_suggested_command(&sandbox, &found);
    assert_eq!(sandbox.git(&["rev-parse", "main"]), tip);
    sandbox.assert_healthy();

    let open = sandbox.read(".git/proq/preview.toml");
    sandbox.sh("rm .git/proq/preview.toml");
    let _ = assert_unfixable_finding(&sandbox, "preview-record", "error");
    sandbox.write(".git/proq/preview.toml", "broken");
    let _ = assert_unfixable_finding(&sandbox, "preview-record", "error");
    sandbox.write(".git/proq/preview.toml", &open);

    sandbox.sh(&format!("git update-ref -d refs/proq/snap/{id}; mv .git/proq/snaps/{id} .."));
    let _ = assert_unfixable_finding(&sandbox, "preview-changes", "error");
    sandbox.git(&["update-ref", "-d", "refs/heads/proq/x-preview"]);
    let _ = assert_unfixable_finding(&sandbox, "preview-branch", "error");
}

#[test]
fn finds_missing_and_leftover_ref_of_origin() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("x", "echo 1 > one");
    sandbox.git(&["checkout", "-q", "--detach"]);
    let name = format!("refs/proq/preview/{}", sandbox.git(&["rev-parse", "HEAD"]));
    let _ = sandbox.proq(&["preview", "x"]).ok();
    sandbox.git(&["update-ref", "-d", &name]);
    let _ = assert_fixable_finding(&sandbox, "preview-origin", "warning");
    assert_eq!(sandbox.git(&["rev-parse", &name]), sandbox.git(&["rev-parse", "main"]));
    sandbox.assert_healthy();
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    let only_here = sandbox.git(&["commit-tree", "-p", "main", "-m", "own", "main^{tree}"]);
    sandbox.git(&["update-ref", &name, &only_here]);
    let found = assert_unfixable_finding(&sandbox, "preview-origin", "warning");
    run_suggested_command(&sandbox, &found);
    assert!(!sandbox.git(&["branch", "--contains", &only_here]).is_empty());
    sandbox.assert_healthy();

    let _ = sandbox.proq(&["preview", "x"]).ok();
    let open = sandbox.read(".git/proq/preview.toml");
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    sandbox.write(".git/proq/preview.toml", &open);
    sandbox.git(&["update-ref", &name, "main"]);
    let _ = assert_fixable_finding(&sandbox, "preview-place", "warning");
    assert_eq!(sandbox.git(&["for-each-ref", "refs/proq/preview/"]), "");
    sandbox.assert_healthy();
}

#[test]
fn preview_without_lane_or_record_is_a_warning() {
    let (sandbox, _) = with_preview();
    sandbox.sh("mv .git/proq/lanes/x ../x-was");
    let _ = assert_finding(&sandbox, "preview-lane", "warning");
    sandbox.sh("mv ../x-was .git/proq/lanes/x");
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    sandbox.git(&["branch", "proq/x-preview", "main"]);
    let found = assert_unfixable_finding(&sandbox, "preview-branch", "warning");
    run_suggested_command(&sandbox, &found);
    sandbox.assert_healthy();
}

#[test]
fn drops_missing_preview_edits_from_lane() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("x", "echo 1 > one");
    let path = ".git/proq/lanes/x/lane.toml";
    let text = sandbox.read(path);
    sandbox.write(path, &text.replace("attempt = 0", "attempt = 0\npreview_edits = ['20260102-030405-1-0']"));
    let _ = assert_fixable_finding(&sandbox, "lane-edits", "error");
    let _ = sandbox.proq(&["preview", "x"]).ok();
    sandbox.assert_healthy();
}

#[test]
fn conflict_needs_record_and_ref() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("x", "echo x > a.txt");
    sandbox.write("a.txt", "mine\n");
    sandbox.commit_all("mine");
    let _ = sandbox.proq(&["merge", "x"]).fails(3);
    sandbox.assert_healthy();
    sandbox.git(&["update-ref", "-d", "refs/proq/conflict/x"]);
    let _ = assert_unfixable_finding(&sandbox, "conflict-ref", "error");
    sandbox.write(".git/proq/lanes/x/conflict.toml", "broken");
    let _ = assert_unfixable_finding(&sandbox, "conflict-record", "error");
    sandbox.sh("rm .git/proq/lanes/x/conflict.toml");
    let found = assert_unfixable_finding(&sandbox, "conflict-record", "error");
    assert_eq!(found["help"], "git proq merge x");
    let _ = sandbox.proq(&["merge", "x"]).fails(3);
    sandbox.assert_healthy();
    let _ = sandbox.proq(&["discard", "--force", "x"]).ok();
    sandbox.assert_healthy();
    sandbox.git(&["update-ref", "refs/proq/conflict/nobody", "HEAD"]);
    let found = assert_unfixable_finding(&sandbox, "conflict-ref", "warning");
    run_suggested_command(&sandbox, &found);
    sandbox.assert_healthy();
}

#[test]
fn incomplete_trash_is_reported() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("x", "echo 1 > one");
    let _ = sandbox.proq(&["discard", "--force", "x"]).ok();
    sandbox.assert_healthy();
    let entry = sandbox.sh("ls -d $PWD/.git/proq/trash/*").replace("[ID]", "*").replace("[ROOT]", "$ROOT");
    sandbox.sh(&format!("mv {entry}/trash.toml .."));
    let _ = assert_unfixable_finding(&sandbox, "trash-record", "error");
    sandbox.sh(&format!("cd {entry}; echo broken > trash.toml"));
    let _ = assert_unfixable_finding(&sandbox, "trash-record", "error");
    sandbox.sh(&format!("cd {entry}; mv $ROOT/trash.toml .; mv admin $ROOT"));
    let _ = assert_unfixable_finding(&sandbox, "trash-files", "warning");
    sandbox.sh(&format!("cd {entry}; mv $ROOT/admin .; mv worktree $ROOT"));
    let _ = assert_unfixable_finding(&sandbox, "trash-files", "error");
    sandbox.sh(&format!("cd {entry}; mv $ROOT/worktree ."));
    sandbox.assert_healthy();
    sandbox.sh("git for-each-ref --format='delete %(refname)' refs/proq/saved/ | git update-ref --stdin");
    let found = assert_unfixable_finding(&sandbox, "saved-ref", "error");
    run_suggested_command(&sandbox, &found);
    assert_eq!(sandbox.git(&["show", "x-saved:one"]), "1");
}

#[test]
fn suggested_command_frees_expired_trash() {
    let sandbox = Sandbox::new();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "x"]).ok();
    let _ = sandbox.proq(&["discard", "x"]).ok();
    sandbox.git(&["config", "proq.trash.keep", "0"]);
    let found = assert_finding(&sandbox, "trash-expired", "info");
    run_suggested_command(&sandbox, &found);
    let answer = sandbox.proq(&["doctor", "--json"]).json();
    assert_eq!(answer["checked"]["trash"], 0);
}

#[test]
fn names_missing_objects_and_broken_refs() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("x", "echo 1 > one");
    let blob = sandbox.git(&["rev-parse", "proq/x:one"]);
    let hide_object = |id: &str| sandbox.sh(&format!("mv .git/objects/{}/{} ../lost", &id[..2], &id[2..]));
    let restore_object = |id: &str| sandbox.sh(&format!("mv ../lost .git/objects/{}/{}", &id[..2], &id[2..]));
    hide_object(&blob);
    let found = assert_unfixable_finding(&sandbox, "objects", "error");
    assert!(found["message"].as_str().unwrap().contains(&blob[..12]), "{found:#?}");
    restore_object(&blob);
    sandbox.assert_healthy();

    let tip = sandbox.git(&["rev-parse", "proq/x"]);
    hide_object(&tip);
    let found = assert_unfixable_finding(&sandbox, "objects", "error");
    assert!(found["message"].as_str().unwrap().contains("refs/heads/proq/x"), "{found:#?}");
    restore_object(&tip);
    if sandbox.repo.join(".git/refs/heads/proq/x").exists() {
        sandbox.sh("printf '' > .git/refs/heads/proq/x");
        let found = assert_unfixable_finding(&sandbox, "ref", "error");
        assert!(found["message"].as_str().unwrap().contains("power cut"), "{found:#?}");
    }
}

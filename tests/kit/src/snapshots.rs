//! What previews and snapshots leave in a repository.

use crate::{Sandbox, WorktreeState};

/// Returns the ids of all snapshots, oldest first.
pub fn snapshot_ids(sandbox: &Sandbox) -> Vec<String> {
    let refs = ["for-each-ref", "--format=%(refname:lstrip=3)", "refs/proq/snap"];
    let refs = String::from_utf8(sandbox.git_bytes(&sandbox.repo, &refs)).unwrap();
    refs.lines().map(ToOwned::to_owned).collect()
}

/// Asserts that two images are equal, one component at a time, so that a failure names the component.
#[track_caller]
pub fn assert_same_image(before: &WorktreeState, after: &WorktreeState) {
    assert_eq!(before.files, after.files, "files");
    assert_eq!(before.index, after.index, "index");
    assert_eq!(before.status, after.status, "status");
    assert_eq!(before.head, after.head, "HEAD");
}

/// Returns the snapshots that are not marked as restored, and asserts that each snapshot has a ref and a raw
/// index.
#[track_caller]
pub fn waiting_snapshots(sandbox: &Sandbox) -> Vec<String> {
    let mut waiting = Vec::new();
    let refs = sandbox.git_bytes(&sandbox.repo, &["for-each-ref", "--format=%(refname)", "refs/proq/snap"]);
    let refs = String::from_utf8(refs).unwrap();
    let dir = sandbox.repo.join(".git/proq/snaps");
    let ids: Vec<String> = std::fs::read_dir(&dir)
        .into_iter()
        .flatten()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(refs.lines().count(), ids.len());
    for id in ids {
        assert!(refs.contains(&id), "{id} has no ref");
        assert!(dir.join(&id).join("index").exists(), "{id} has no index");
        let record = std::fs::read_to_string(dir.join(&id).join("snap.toml")).unwrap();
        if !record.lines().any(|line| line.starts_with("restored = ")) {
            waiting.push(id);
        }
    }
    waiting
}

/// Asserts that no ref, branch, folder, lock or record of a preview is left, except snapshots that were
/// restored.
#[track_caller]
pub fn assert_no_preview_left(sandbox: &Sandbox) {
    let refs = sandbox.git(&["for-each-ref", "refs/proq", "refs/heads/proq/*-preview"]);
    assert_eq!(refs.lines().find(|line| !line.contains("\trefs/proq/snap/")), None);
    assert_eq!(waiting_snapshots(sandbox), Vec::<String>::new());
    let store = sandbox.repo.join(".git/proq");
    let work_count = std::fs::read_dir(store.join("work")).map_or(0, Iterator::count);
    assert_eq!(work_count, 0, "work");
    assert!(!store.join("preview.toml").exists());
    assert!(!sandbox.repo.join(".git/index.lock").exists());
    assert!(!sandbox.repo.join(".git/HEAD.lock").exists());
}

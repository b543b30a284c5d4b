//! Owns checking snapshots: record, ref, commit, raw index and set-aside files belong together, and somebody waits.

use std::collections::BTreeSet;
use std::path::Path;

use super::finding::Finding;
use super::repair::Repair;
use super::scene::{Scene, quoted};
use crate::store::records::SnapRecord;

/// What every index file begins with.
const INDEX: &[u8] = b"DIRC";

/// Every snapshot, by record, by ref and by folder.
pub(super) fn check(scene: &Scene<'_>) -> Vec<Finding> {
    let mut out = Vec::new();
    for (id, snap) in &scene.snaps {
        out.extend(refs(scene, id, snap));
        out.extend(raw_index(scene, id, snap));
    }
    out.extend(without_record(scene));
    out.extend(folders(scene));
    out.extend(unclaimed(scene));
    out
}

fn of(id: &str) -> String {
    format!("snapshot {id}")
}

fn refs(scene: &Scene<'_>, id: &str, snap: &SnapRecord) -> Option<Finding> {
    let commit = snap.snapshot.commit;
    let name = SnapRecord::ref_name(id);
    // What came back is about to go: the ref goes first.
    if snap.restored.is_some() && !scene.refs.contains_key(&name) {
        return None;
    }
    if !scene.project.repo.has_object(commit) {
        let message =
            format!("the changes kept as snapshot {id} ({}) are gone: git has lost the commit", snap.why);
        return Some(
            Finding::error("snapshot-commit", of(id), message)
                .help(format!(
                    "git fsck --lost-found; ls {}",
                    quoted(&scene.project.store.layout().snapshot(id))
                ))
                .left("files that were set aside may still lie beside its record"),
        );
    }
    match scene.refs.get(&name) {
        Some(tip) if *tip == commit => None,
        Some(tip) => {
            let message =
                format!("snapshot {id} ({}) was renewed, and its record names the older commit", snap.why);
            let help = format!("git stash apply {}", tip.short());
            Some(
                Finding::error("snapshot-ref", of(id), message).help(help).left("both hold changes of yours"),
            )
        }
        None => {
            let message =
                format!("no ref keeps snapshot {id} ({}): git's next clean-up would take it", snap.why);
            Some(
                Finding::error("snapshot-ref", of(id), message)
                    .help(format!("git update-ref {name} {commit}"))
                    .repair(Repair::Anchor { name, commit }),
            )
        }
    }
}

fn raw_index(scene: &Scene<'_>, id: &str, snap: &SnapRecord) -> Option<Finding> {
    let file = scene.project.store.layout().snapshot(id).join("index");
    let bytes = crate::regular_file::record(&file).unwrap_or_default();
    if bytes.starts_with(INDEX) {
        return None;
    }
    let message = format!(
        "the index kept with snapshot {id} is gone or broken; its files can come back, not what `git add -N` and the like had said"
    );
    let help = format!("git stash apply {}", snap.snapshot.commit.short());
    Some(Finding::error("snapshot-index", of(id), message).help(help).left("it cannot be made again"))
}

fn without_record(scene: &Scene<'_>) -> Vec<Finding> {
    let recorded = |id: &str| scene.project.store.layout().snapshot(id).join("snap.toml").exists();
    let lone = scene.below("refs/proq/snap/").filter(|(id, _)| !recorded(id));
    lone.map(|(id, tip)| {
        let message = format!(
            "the record of snapshot {id} is gone; the changes are safe, but no command of git-proq finds them"
        );
        let apply = format!("git stash apply {}", tip.short());
        let open = scene.preview.as_ref().filter(|open| open.snapshot.as_deref() == Some(id));
        // They are of the branch that the preview was entered from.
        let help = if open.is_some() { format!("git proq preview --back && {apply}") } else { apply };
        Finding::error("snapshot-record", of(id), message).help(help).left(format!(
            "once you have the changes, delete it: git update-ref -d {}",
            SnapRecord::ref_name(id)
        ))
    })
    .collect()
}

/// Folders without a record and without a ref: taking a snapshot was cut short, or its record was deleted.
fn folders(scene: &Scene<'_>) -> Vec<Finding> {
    let layout = scene.project.store.layout();
    let mut out = Vec::new();
    for id in layout.names_in("snaps") {
        let dir = layout.snapshot(&id);
        if dir.join("snap.toml").exists() {
            continue;
        }
        let look = format!("ls -R {}", quoted(&dir));
        if holds_files(&dir.join("files")) {
            let message = format!(
                "{} holds files of yours that were set aside, and no record tells of them",
                dir.display()
            );
            let why = "they are yours, and nothing says where they belong";
            out.push(Finding::error("set-aside", of(&id), message).help(look).left(why));
        } else if !scene.refs.contains_key(&SnapRecord::ref_name(&id)) {
            let message = format!("taking snapshot {id} was cut short; nothing had been moved yet");
            out.push(Finding::warning("set-aside", of(&id), message).help(look).left("it may hold an index"));
        }
    }
    out
}

fn holds_files(dir: &Path) -> bool {
    std::fs::read_dir(dir).is_ok_and(|mut entries| entries.next().is_some())
}

fn unclaimed(scene: &Scene<'_>) -> Option<Finding> {
    let waited_for: BTreeSet<&String> = scene
        .lanes
        .iter()
        .flat_map(|lane| &lane.preview_edits)
        .chain(scene.preview.as_ref().and_then(|open| open.snapshot.as_ref()))
        .collect();
    let spare: Vec<&SnapRecord> = scene
        .snaps
        .values()
        .filter(|snap| snap.restored.is_none() && !waited_for.contains(&snap.id))
        .collect();
    let first = spare.first()?;
    let message = match spare.len() {
        1 => format!("1 snapshot that nothing waits for is kept: {}", first.why),
        n => format!("{n} snapshots that nothing waits for are kept, the oldest: {}", first.why),
    };
    let help = format!("git stash apply {}", first.snapshot.commit.short());
    Some(Finding::info("snapshot-unclaimed", of(&first.id), message).help(help))
}

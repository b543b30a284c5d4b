//! Health checks of snapshots: record, ref, commit, raw index and parked files belong together, and a lane or
//! preview waits for each.

use std::collections::BTreeSet;
use std::path::Path;

use proq_base::explain::shell_quote_path as quoted;
use proq_store::paths::layout::Layout;
use proq_store::records::snapshot::SnapshotRecord;

use super::check_context::CheckContext;
use super::finding::Finding;
use super::repair::Repair;

/// Signature at the start of every git index file.
const INDEX_SIGNATURE: &[u8] = b"DIRC";

/// Checks every snapshot, by record, by ref and by folder.
pub(super) fn check(context: &CheckContext<'_>) -> Vec<Finding> {
    let mut out = Vec::new();
    for (id, snap) in &context.snapshots {
        out.extend(check_refs(context, id, snap));
        out.extend(check_raw_index(context, id, snap));
    }
    out.extend(unrecorded_refs(context));
    out.extend(check_folders(context));
    out.extend(unclaimed_snapshots(context));
    out
}

fn snapshot_subject(id: &str) -> String {
    format!("snapshot {id}")
}

/// Checks that the commit of a snapshot exists and that its ref is at the commit.
fn check_refs(context: &CheckContext<'_>, id: &str, snap: &SnapshotRecord) -> Option<Finding> {
    let commit = snap.snapshot.commit;
    let name = SnapshotRecord::ref_name(id);
    // A restored snapshot is about to be deleted, its ref first.
    if snap.restored.is_some() && !context.refs.contains_key(&name) {
        return None;
    }
    if !context.project.repo.has_object(commit) {
        let message =
            format!("the changes kept as snapshot {id} ({}) are lost: git has lost the commit", snap.reason);
        return Some(
            Finding::error("snapshot-commit", snapshot_subject(id), message)
                .with_help(format!(
                    "git fsck --lost-found; ls {}",
                    quoted(&context.project.store.layout().snapshot(id))
                ))
                .with_left_reason("saved files may still be beside its record"),
        );
    }
    match context.refs.get(&name) {
        Some(tip) if *tip == commit.oid() => None,
        Some(tip) => {
            let message =
                format!("snapshot {id} ({}) was renewed, and its record names the older commit", snap.reason);
            let help = format!("git stash apply {}", tip.short_in_command());
            Some(
                Finding::error("snapshot-ref", snapshot_subject(id), message)
                    .with_help(help)
                    .with_left_reason("both hold changes of yours"),
            )
        }
        None => {
            let message =
                format!("no ref keeps snapshot {id} ({}): git's next clean-up would take it", snap.reason);
            Some(
                Finding::error("snapshot-ref", snapshot_subject(id), message)
                    .with_help(format!("git update-ref {name} {commit}"))
                    .with_repair(Repair::CreateRef { name, commit }),
            )
        }
    }
}

/// Checks that the index saved with a snapshot exists and starts as an index does.
fn check_raw_index(context: &CheckContext<'_>, id: &str, snap: &SnapshotRecord) -> Option<Finding> {
    let file = context.project.store.layout().snapshot_index(id);
    let bytes = proq_base::regular_file::read_store_file(&file).unwrap_or_default();
    if bytes.starts_with(INDEX_SIGNATURE) {
        return None;
    }
    let message = format!(
        "the index of snapshot {id} is missing or broken; its files can be restored, but not entries of `git add -N`"
    );
    let help = format!("git stash apply {}", snap.snapshot.commit.short_in_command());
    Some(
        Finding::error("snapshot-index", snapshot_subject(id), message)
            .with_help(help)
            .with_left_reason("it cannot be restored"),
    )
}

/// Finds snapshot refs without a record.
fn unrecorded_refs(context: &CheckContext<'_>) -> Vec<Finding> {
    let has_record = |id: &str| context.project.store.layout().snapshot_record(id).exists();
    let unrecorded = context.refs_below("refs/proq/snap/").filter(|(id, _)| !has_record(id));
    unrecorded
        .map(|(id, tip)| {
            let message = format!(
                "the record of snapshot {id} is missing; its changes are safe, but git-proq cannot find them"
            );
            let apply_command = format!("git stash apply {}", tip.short_in_command());
            let preview = context.preview.as_ref().filter(|open| open.parked_snapshot.as_deref() == Some(id));
            // The changes belong to the branch that was checked out before the preview.
            let help = if preview.is_some() {
                format!("git proq preview --back && {apply_command}")
            } else {
                apply_command
            };
            Finding::error("snapshot-record", snapshot_subject(id), message).with_help(help).with_left_reason(
                format!(
                    "once you have the changes, delete it: git update-ref -d {}",
                    SnapshotRecord::ref_name(id)
                ),
            )
        })
        .collect()
}

/// Finds snapshot folders without a record and without a ref: creating the snapshot was interrupted, or its
/// record was deleted.
fn check_folders(context: &CheckContext<'_>) -> Vec<Finding> {
    let layout = context.project.store.layout();
    let mut out = Vec::new();
    for id in Layout::entry_names(&layout.snapshots()) {
        let dir = layout.snapshot(&id);
        if Layout::snapshot_record_in(&dir).exists() {
            continue;
        }
        let list_command = format!("ls -R {}", quoted(&dir));
        if has_entries(&Layout::parked_files_in(&dir)) {
            let message = format!("{} has saved files of yours without a record", dir.display());
            let reason = "only you can tell where they belong";
            out.push(
                Finding::error("set-aside", snapshot_subject(&id), message)
                    .with_help(list_command)
                    .with_left_reason(reason),
            );
        } else if !context.refs.contains_key(&SnapshotRecord::ref_name(&id)) {
            let message = format!("snapshot {id} was interrupted; no file was moved");
            out.push(
                Finding::warning("set-aside", snapshot_subject(&id), message)
                    .with_help(list_command)
                    .with_left_reason("it may have an index"),
            );
        }
    }
    out
}

/// Returns whether a folder exists and is not empty.
fn has_entries(dir: &Path) -> bool {
    std::fs::read_dir(dir).is_ok_and(|mut entries| entries.next().is_some())
}

/// Notes snapshots that were not restored and that no preview or lane waits for; none without any.
fn unclaimed_snapshots(context: &CheckContext<'_>) -> Option<Finding> {
    let awaited: BTreeSet<&String> = context
        .lanes
        .iter()
        .flat_map(|lane| &lane.preview_edit_snapshots)
        .chain(context.preview.as_ref().and_then(|open| open.parked_snapshot.as_ref()))
        .collect();
    let unclaimed: Vec<&SnapshotRecord> = context
        .snapshots
        .values()
        .filter(|snap| snap.restored.is_none() && !awaited.contains(&snap.id))
        .collect();
    let first = unclaimed.first()?;
    let message = match unclaimed.len() {
        1 => format!("1 snapshot is kept that is no longer needed: {}", first.reason),
        n => format!("{n} snapshots are kept that are not needed any longer, the oldest: {}", first.reason),
    };
    let help = format!("git stash apply {}", first.snapshot.commit.short_in_command());
    Some(Finding::info("snapshot-unclaimed", snapshot_subject(&first.id), message).with_help(help))
}

//! Owns checking the trash: each entry can be read and has what it says, and what it is saved by is there.

use super::finding::Finding;
use super::scene::{Scene, quoted};
use crate::lane;
use crate::store::Record;
use crate::store::records::TrashRecord;

/// Every entry.
pub(super) fn check(scene: &Scene<'_>) -> Vec<Finding> {
    let layout = scene.project.store.layout();
    let mut out = Vec::new();
    for name in layout.names_in("trash") {
        let dir = layout.folder_of("trash", &name);
        let subject = format!("trash {name}");
        let look = format!("ls -la {}", quoted(&dir));
        match TrashRecord::find(&dir.join("trash.toml")) {
            Err(e) => {
                out.push(Finding::of_error("trash-record", subject, &e).left("the files beside it are safe"));
            }
            Ok(None) => {
                let message =
                    format!("{} holds what was removed, and no record tells where it belongs", dir.display());
                out.push(
                    Finding::error("trash-record", subject, message)
                        .help(look)
                        .left("somebody's files lie there"),
                );
            }
            Ok(Some(record)) => {
                out.extend(entry(scene, &subject, &dir, &record));
            }
        }
    }
    let expired = lane::old(scene.project, lane::Kind::Trash).map_or(0, |old| old.spare.len());
    if expired > 0 {
        let message =
            format!("{expired} of the trash is older than trash.keep says, and goes with the next cleanup");
        out.push(Finding::info("trash-expired", "trash", message).help("git proq gc"));
    }
    out
}

fn entry(scene: &Scene<'_>, subject: &str, dir: &std::path::Path, record: &TrashRecord) -> Vec<Finding> {
    let mut out = Vec::new();
    let lane = &record.lane;
    // Another lane may have got it.
    let is_given = dir.join("given.toml").exists();
    if let Some(worktree) = record.worktree.as_ref().filter(|w| !w.exists() && !is_given) {
        let message =
            format!("the folder of removed lane '{lane}' is not at {}, where it was put", worktree.display());
        out.push(
            Finding::error("trash-files", subject, message)
                .help(format!("ls -la {}", quoted(dir)))
                .left("somebody may have moved it on purpose"),
        );
    } else if record.worktree.is_some() && !record.worktree_id.is_empty() && !dir.join("admin").exists() {
        let message =
            format!("git's part of removed lane '{lane}' is not in the trash; its files are, as plain files");
        out.push(Finding::warning("trash-files", subject, message).help(format!("ls {}", quoted(dir))));
    }
    // Of one that is about to go, other refs have the commits, or `gc` would have left this one.
    let over = record.at.is_older_than(scene.project.settings.trash_keep);
    let missing = |saved: &&String| !over && !scene.refs.contains_key(*saved);
    if let Some(saved) = record.saved.as_ref().filter(missing) {
        let message = format!("{saved}, which keeps the commits of removed lane '{lane}', is gone");
        let found = Finding::error("saved-ref", subject, message);
        out.push(match record.tip {
            Some(tip) if scene.project.repo.has_object(tip) => found
                .help(format!("git branch {lane}-saved {}", tip.short()))
                .left("somebody may have deleted it on purpose"),
            _ => found.left("its commits are gone from here; another clone may have them"),
        });
    }
    out
}

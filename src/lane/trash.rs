//! Owns the trash: removed lanes' folders, kept for a time and emptied afterwards.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::{Error, Operation, Project};
use crate::fault;
use crate::store::records::TrashRecord;
use crate::store::{Record, new_id, now, remove_drafts};

/// Moves a lane's folder and git's admin folder for it to a new trash entry, as a pair.
pub(super) fn put(
    op: &Operation<'_>,
    mut record: TrashRecord,
    admin: Option<&Path>,
) -> Result<PathBuf, Error> {
    let dir = new_entry(op.project, &record.lane);
    let file = dir.join("trash.toml");
    if record.path.symlink_metadata().is_ok() {
        let to =
            if is_other_disk(&record.path, op.project) { beside(&record.path) } else { dir.join("worktree") };
        record.worktree = Some(to.clone());
        op.save(&record, &file)?;
        op.rename(&record.path, &to)?;
        fault::point("trash.moved");
    } else {
        op.save(&record, &file)?;
    }
    if let Some(admin) = admin {
        op.rename(admin, &dir.join("admin"))?;
    }
    Ok(dir)
}

/// Moves what a killed process had made of a lane to the trash. Can be cut short itself and done again.
pub(super) fn put_half_made(
    project: &Project,
    path: &Path,
    lane: &str,
    admin: Option<&Path>,
) -> Result<PathBuf, Error> {
    remove_unwritten(project, lane)?;
    let dir = new_entry(project, lane);
    let there = path.symlink_metadata().is_ok();
    let to = if is_other_disk(path, project) { beside(path) } else { dir.join("worktree") };
    let record = TrashRecord {
        lane: lane.to_owned(),
        at: now(),
        path: path.to_owned(),
        worktree: there.then(|| to.clone()),
        worktree_id: admin.and_then(Path::file_name).unwrap_or_default().to_string_lossy().into_owned(),
        branch: String::new(),
        tip: None,
        saved: None,
    };
    record.save(&dir.join("trash.toml"))?;
    if there {
        std::fs::rename(path, &to).map_err(Error::io("move to the trash", path))?;
        fault::point("trash.moved");
    }
    if let Some(admin) = admin {
        std::fs::rename(admin, dir.join("admin")).map_err(Error::io("move to the trash", admin))?;
    }
    Ok(dir)
}

/// Removes entries that a repair of this lane had begun when it was killed itself, before their record was written.
fn remove_unwritten(project: &Project, lane: &str) -> Result<(), Error> {
    let Ok(entries) = std::fs::read_dir(project.store.layout().trash()) else { return Ok(()) };
    for entry in entries.flatten() {
        let (dir, name) = (entry.path(), entry.file_name());
        let id = name.to_str().and_then(|name| name.strip_prefix(lane)?.strip_prefix('-'));
        // Another lane's name may begin as this one's does.
        let is_id =
            |id: &str| id.split('-').count() == 4 && id.chars().all(|c| c == '-' || c.is_ascii_digit());
        let record = dir.join("trash.toml");
        if id.is_some_and(is_id) && !record.exists() {
            remove_drafts(&record).map_err(Error::io("remove", &record))?;
            // Not when anything else is in it.
            drop(std::fs::remove_dir(&dir));
        }
    }
    Ok(())
}

/// The folder of a new entry; its record makes it.
fn new_entry(project: &Project, lane: &str) -> PathBuf {
    project.store.layout().trash().join(format!("{lane}-{}", new_id()))
}

/// Whether a rename from one to the other is impossible. What cannot be looked at is left to the rename to say.
fn is_other_disk(path: &Path, project: &Project) -> bool {
    let disk = |path: &Path| path.symlink_metadata().ok().map(|m| m.dev());
    matches!((disk(path), disk(project.store.layout().root())), (Some(a), Some(b)) if a != b)
}

/// On another file system the folder stays where it is, under a name that says what it is.
fn beside(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".trash-{name}-{}", new_id()))
}

/// Deletes entries that are older than the setting `trash.keep`. Returns how many.
pub(crate) fn empty_expired(project: &Project) -> Result<usize, Error> {
    let Ok(entries) = std::fs::read_dir(project.store.layout().trash()) else { return Ok(0) };
    let mut emptied = 0;
    for entry in entries.flatten() {
        let dir = entry.path();
        // What cannot be read is left for a person to look at.
        let Ok(Some(record)) = TrashRecord::find(&dir.join("trash.toml")) else { continue };
        if now().since(record.at) < project.settings.trash_keep {
            continue;
        }
        if let Some(worktree) = record.worktree.filter(|w| !w.starts_with(&dir)) {
            drop(std::fs::remove_dir_all(worktree));
        }
        std::fs::remove_dir_all(&dir).map_err(Error::io("remove", &dir))?;
        emptied += 1;
    }
    Ok(emptied)
}

//! Owns the trash: removed lanes' folders, kept for a time and emptied afterwards.

use std::path::{Path, PathBuf};

use super::{Error, Project};
use crate::store::records::TrashRecord;
use crate::store::{Record, make_private, new_id, now};

/// Moves a lane's folder and git's admin folder for it to a new trash entry, as a pair. The record is written first, so
/// that a crash in between leaves an entry that tells where both belong.
pub(super) fn put(
    project: &Project,
    mut record: TrashRecord,
    admin: Option<&Path>,
) -> Result<PathBuf, Error> {
    let dir = project.store.layout().trash().join(format!("{}-{}", record.lane, new_id()));
    make_private(&dir)?;
    let file = dir.join("trash.toml");
    if record.path.symlink_metadata().is_ok() {
        record.worktree = Some(dir.join("worktree"));
        record.save(&file)?;
        if let Err(e) = std::fs::rename(&record.path, dir.join("worktree")) {
            if e.kind() != std::io::ErrorKind::CrossesDevices {
                drop(std::fs::remove_dir_all(&dir));
                return Err(Error::io("move to the trash", &record.path)(e));
            }
            let beside = beside(&record.path);
            record.worktree = Some(beside.clone());
            record.save(&file)?;
            std::fs::rename(&record.path, &beside).map_err(Error::io("move aside", &record.path))?;
        }
    } else {
        record.save(&file)?;
    }
    if let Some(admin) = admin {
        std::fs::rename(admin, dir.join("admin")).map_err(Error::io("move to the trash", admin))?;
    }
    Ok(dir)
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

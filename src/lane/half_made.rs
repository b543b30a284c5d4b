//! Owns taking back what a killed process had made of a lane: git's own files are removed, anything else is kept.

use std::collections::{BTreeSet, HashMap};
use std::ffi::OsStr;
use std::fs::File;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::set_up::end_left;
use super::{Error, Project, trash};
use crate::fault;
use crate::git::{Oid, RepoPath, Side, is_beginning_of_file, is_blob, tree_files};
use crate::store::{LockName, new_id, rename_new};

/// The name in a step's folder of the note which folder it made.
const MADE: &str = "made";
/// The name there of the note under which name it is made on another disk.
const BESIDE: &str = "beside";

/// Makes the folder of a worktree where nothing may stand. Which one it is is noted before it gets its name, so that nobody
/// else's is ever taken for it.
pub(super) fn make_folder(dir: &Path, scratch: &Path) -> Result<(), Error> {
    let new = scratch.join("folder");
    std::fs::create_dir(&new).map_err(Error::io("create", &new))?;
    note_made(&new, scratch)?;
    let taken = || Error::PathTaken { path: dir.to_owned() };
    match rename_new(&new, dir) {
        Ok(()) => Ok(()),
        Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => Err(taken()),
        // Lanes may lie on another disk.
        Err(e) if e.kind() == std::io::ErrorKind::CrossesDevices => make_there(dir, scratch).map_err(|e| {
            if e.kind() == std::io::ErrorKind::AlreadyExists { taken() } else { Error::io("create", dir)(e) }
        }),
        Err(e) => Err(Error::io("create", dir)(e)),
    }
}

/// The same on another disk: under a name first that nobody else gives, and that is noted before it is made.
fn make_there(dir: &Path, scratch: &Path) -> std::io::Result<()> {
    let name = dir.file_name().unwrap_or_default().to_string_lossy();
    let new = dir.with_file_name(format!(".{name}.{}", new_id()));
    note(&scratch.join(BESIDE), new.as_os_str().as_bytes())?;
    std::fs::create_dir(&new)?;
    fault::point("folder.beside");
    let placed = note(&scratch.join(MADE), identity(&new).unwrap_or_default().as_bytes())
        .and_then(|()| rename_new(&new, dir));
    if placed.is_err() {
        drop(std::fs::remove_dir(&new));
    }
    placed
}

fn note_made(dir: &Path, scratch: &Path) -> Result<(), Error> {
    let path = scratch.join(MADE);
    let text = identity(dir).unwrap_or_default();
    note(&path, text.as_bytes()).map_err(Error::io("write", &path))
}

/// Writes a note that is on disk when this returns: after a power cut the folder may have its name, and an empty note would make it
/// somebody else's.
fn note(path: &Path, text: &[u8]) -> std::io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(text)?;
    file.sync_all()
}

fn identity(dir: &Path) -> Option<String> {
    dir.symlink_metadata().ok().map(|m| format!("{} {}", m.dev(), m.ino()))
}

/// Takes back what a killed step had made, if it had come to make the folder.
pub(super) fn settle(
    project: &Project,
    dir: &Path,
    lane: &str,
    start: Oid,
    scratch: &Path,
) -> Result<(), Error> {
    if let Ok(beside) = crate::regular_file::record(scratch.join(BESIDE)) {
        // Empty, if it is there: what is put into a lane comes after it has its own name.
        drop(std::fs::remove_dir(OsStr::from_bytes(&beside)));
    }
    let made = crate::regular_file::record_text(scratch.join(MADE)).ok().filter(|text| !text.is_empty());
    let there = identity(dir);
    // Another folder than the one that was made is somebody else's, and so is git's record of it.
    if made.is_none() || (there.is_some() && there != made) {
        return keep_task(project, lane);
    }
    take_back(project, dir, lane, start)
}

/// Takes back the worktree of a lane that was being made from `start`. Can itself be cut short and done again.
pub(super) fn take_back(project: &Project, dir: &Path, lane: &str, start: Oid) -> Result<(), Error> {
    end_left(project, lane);
    let _lock = project.store.locks().take(&LockName::Worktrees)?;
    let admin = project.repo.admin_dir_of(dir).or_else(|| nameless_admin(project, dir));
    if dir.symlink_metadata().is_ok() {
        if is_only_gits(project, dir, start)? {
            std::fs::remove_dir_all(dir).map_err(Error::io("remove", dir))?;
        } else {
            // Somebody was faster than this repair and put something there.
            trash::put_half_made(project, dir, lane, admin.as_deref())?;
        }
    }
    if let Some(admin) = admin.filter(|admin| admin.exists()) {
        std::fs::remove_dir_all(&admin).map_err(Error::io("remove", &admin))?;
    }
    keep_task(project, lane)
}

/// What the agent was to be asked is the user's own words, perhaps many of them.
fn keep_task(project: &Project, lane: &str) -> Result<(), Error> {
    let layout = project.store.layout();
    let (folder, task) = (layout.lane(lane), layout.task(lane));
    if !folder.exists() || layout.has_lane_record(lane) {
        return Ok(());
    }
    if task.metadata().is_ok_and(|m| m.len() > 0) {
        let kept = trash::put_half_made(project, &folder, lane, None)?;
        project.listener.warn(format!(
            "what lane '{lane}' was to be asked is kept: {}",
            kept.join("worktree/task.md").display()
        ));
        return Ok(());
    }
    std::fs::remove_dir_all(&folder).map_err(Error::io("remove", &folder))
}

/// Git makes its folder for a worktree before it writes there whose it is.
fn nameless_admin(project: &Project, dir: &Path) -> Option<PathBuf> {
    let admin = project.repo.common_dir().join("worktrees").join(dir.file_name()?);
    let text = crate::regular_file::record(admin.join("gitdir")).unwrap_or_default();
    (admin.is_dir() && text.is_empty()).then_some(admin)
}

/// Whether every file in a folder is one that git was writing there, or the beginning of one.
fn is_only_gits(project: &Project, dir: &Path, start: Oid) -> Result<bool, Error> {
    let files: HashMap<RepoPath, Side> =
        tree_files(&project.repo, start, &BTreeSet::new())?.into_iter().collect();
    let mut others = Vec::new();
    let mut folders: Vec<Option<RepoPath>> = vec![None];
    while let Some(folder) = folders.pop() {
        let place = folder.as_ref().map_or_else(|| dir.to_owned(), |f| f.under(dir));
        for entry in std::fs::read_dir(&place).map_err(Error::io("read", &place))? {
            let entry = entry.map_err(Error::io("read", &place))?;
            let name = entry.file_name();
            let path = match &folder {
                Some(folder) => folder.join(name.as_bytes()),
                None => RepoPath::new(name.as_bytes()),
            };
            let is_dir = entry.file_type().is_ok_and(|t| t.is_dir());
            let known = match files.get(&path) {
                _ if is_dir => {
                    folders.push(Some(path));
                    true
                }
                Some(side) => {
                    if !is_blob(&project.repo, &entry.path(), *side) {
                        others.push(path);
                    }
                    true
                }
                None => folder.is_none() && name == ".git",
            };
            if !known {
                return Ok(false);
            }
        }
    }
    Ok(others.is_empty() || are_as_written(project, dir, start, &others).unwrap_or(false))
}

/// Whether files of a half-made worktree are what git writes for them, by attributes and filters, or a beginning of it.
fn are_as_written(project: &Project, dir: &Path, start: Oid, paths: &[RepoPath]) -> Result<bool, Error> {
    let scratch = project.store.layout().scratch()?;
    let whole = scratch.path().join("whole");
    std::fs::create_dir(&whole).map_err(Error::io("create", &whole))?;
    project.repo.lay_out(&whole, start, &scratch.path().join("index"))?;
    Ok(paths.iter().all(|path| is_beginning_of_file(&path.under(dir), &path.under(&whole))))
}

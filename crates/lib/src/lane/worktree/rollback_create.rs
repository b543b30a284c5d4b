//! Rollback of a lane creation that was killed: a folder with only git's files is deleted; one with other
//! files is moved to the trash.

use std::collections::{BTreeSet, HashMap};
use std::ffi::OsStr;
use std::fs::File;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use proq_base::fail_points;
use proq_base::lane_name::LaneName;
use proq_git::checkout::partial_files::is_full_or_partial_copy;
use proq_git::checkout::quarantine::matches_blob;
use proq_git::history::tree_diff::{TreeFile, tree_files};
use proq_git::{CommitId, Repo, RepoPath};
use proq_store::base::atomic::rename_no_replace;
use proq_store::base::id::new_id;
use proq_store::locks::lock::LockName;
use proq_store::paths::layout::Layout;

use super::trash;
use crate::lane::worktree::set_up::commands::stop_leftover_commands;
use crate::lane::{Error, Project};

/// Creates the folder of a worktree at a path that must be free. Notes the folder's identity before it gets
/// its name, so that a rollback never removes a folder of another program.
pub fn create_folder(dir: &Path, scratch: &Path) -> Result<(), Error> {
    let temp_dir = Layout::scratch_worktree(scratch);
    std::fs::create_dir(&temp_dir).map_err(Error::io("create", &temp_dir))?;
    note_created(&temp_dir, scratch)?;
    let path_taken = || Error::PathTaken { path: dir.to_owned() };
    match rename_no_replace(&temp_dir, dir) {
        Ok(()) => Ok(()),
        Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => Err(path_taken()),
        // Lanes may be on another disk.
        Err(e) if e.kind() == std::io::ErrorKind::CrossesDevices => create_on_other_disk(dir, scratch)
            .map_err(|e| {
                if e.kind() == std::io::ErrorKind::AlreadyExists {
                    path_taken()
                } else {
                    Error::io("create", dir)(e)
                }
            }),
        Err(e) => Err(Error::io("create", dir)(e)),
    }
}

/// Creates the folder on another disk, first under a unique temporary name that is noted before the folder
/// exists.
fn create_on_other_disk(dir: &Path, scratch: &Path) -> std::io::Result<()> {
    let name = dir.file_name().unwrap_or_default().to_string_lossy();
    let temp_dir = dir.with_file_name(format!(".{name}.{}", new_id()));
    write_note(&Layout::temp_path_note(scratch), temp_dir.as_os_str().as_bytes())?;
    std::fs::create_dir(&temp_dir)?;
    fail_points::hit("folder.beside");
    let renamed = write_note(
        &Layout::created_folder_note(scratch),
        folder_identity(&temp_dir).unwrap_or_default().as_bytes(),
    )
    .and_then(|()| rename_no_replace(&temp_dir, dir));
    if renamed.is_err() {
        drop(std::fs::remove_dir(&temp_dir));
    }
    renamed
}

/// Notes the identity of a folder that was just created, so that a rollback recognizes it.
fn note_created(dir: &Path, scratch: &Path) -> Result<(), Error> {
    let path = Layout::created_folder_note(scratch);
    let text = folder_identity(dir).unwrap_or_default();
    write_note(&path, text.as_bytes()).map_err(Error::io("write", &path))
}

/// Writes a note that is on disk when this returns. After a power cut the folder may have its name, and an
/// empty note would attribute it to another program.
fn write_note(path: &Path, text: &[u8]) -> std::io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(text)?;
    file.sync_all()
}

/// Returns device and inode number of a folder, as text; none when it is missing.
fn folder_identity(dir: &Path) -> Option<String> {
    dir.symlink_metadata().ok().map(|m| format!("{} {}", m.dev(), m.ino()))
}

/// Rolls back what a killed step created. A folder that the step did not create is left alone.
pub(crate) fn roll_back_killed_creation(
    project: &Project,
    dir: &Path,
    lane: &LaneName,
    start: CommitId,
    scratch: &Path,
) -> Result<(), Error> {
    if let Ok(temp_path) = proq_base::regular_file::read_store_file(Layout::temp_path_note(scratch)) {
        // The folder is empty if it exists: files are written only after it has its final name.
        drop(std::fs::remove_dir(OsStr::from_bytes(&temp_path)));
    }
    let created = proq_base::regular_file::read_store_text(Layout::created_folder_note(scratch))
        .ok()
        .filter(|text| !text.is_empty());
    let present = folder_identity(dir);
    // A folder other than the created one belongs to another program, and so does git's record of it.
    if created.is_none() || (present.is_some() && present != created) {
        return save_prompt_to_trash(project, lane);
    }
    roll_back_worktree(project, dir, lane, start)
}

/// Rolls back the worktree of a lane that was being created from `start`. An interrupted rollback can be
/// repeated.
pub(crate) fn roll_back_worktree(
    project: &Project,
    dir: &Path,
    lane: &LaneName,
    start: CommitId,
) -> Result<(), Error> {
    stop_leftover_commands(&project.store, lane);
    let _lock = project.store.locks().acquire(&LockName::WorktreeList)?;
    let admin = project.repo.worktree_admin_dir(dir).or_else(|| find_unnamed_admin_dir(&project.repo, dir));
    if dir.symlink_metadata().is_ok() {
        if has_only_git_files(project, dir, start)? {
            std::fs::remove_dir_all(dir).map_err(Error::io("remove", dir))?;
        } else {
            // Another program put files there before this rollback.
            trash::move_incomplete_worktree(&project.store, dir, lane, admin.as_deref())?;
        }
    }
    if let Some(admin) = admin.filter(|admin| admin.exists()) {
        std::fs::remove_dir_all(&admin).map_err(Error::io("remove", &admin))?;
    }
    save_prompt_to_trash(project, lane)
}

/// Moves the folder of a lane without a record to the trash if it has a prompt, which is the user's own text;
/// deletes the folder otherwise.
fn save_prompt_to_trash(project: &Project, lane: &LaneName) -> Result<(), Error> {
    let layout = project.store.layout();
    let (folder, task) = (layout.lane(lane), layout.task_prompt(lane));
    if !folder.exists() || layout.has_lane_record(lane) {
        return Ok(());
    }
    if task.metadata().is_ok_and(|m| m.len() > 0) {
        let trash_dir = trash::move_incomplete_worktree(&project.store, &folder, lane, None)?;
        project.listener.warn(format!(
            "saved the prompt of lane '{lane}': {}",
            Layout::task_prompt_in(&Layout::trash_worktree_in(&trash_dir)).display()
        ));
        return Ok(());
    }
    std::fs::remove_dir_all(&folder).map_err(Error::io("remove", &folder))
}

/// Returns git's admin folder for a worktree at `dir` that names no worktree yet: git creates the folder
/// before it writes the path into it.
fn find_unnamed_admin_dir(repo: &Repo, dir: &Path) -> Option<PathBuf> {
    let admin = repo.common_dir().join("worktrees").join(dir.file_name()?);
    let text = proq_base::regular_file::read_store_file(admin.join("gitdir")).unwrap_or_default();
    (admin.is_dir() && text.is_empty()).then_some(admin)
}

/// Returns whether git wrote every file in a folder, completely or in part.
fn has_only_git_files(project: &Project, dir: &Path, start: CommitId) -> Result<bool, Error> {
    let files: HashMap<RepoPath, TreeFile> =
        tree_files(&project.repo, start, &BTreeSet::new())?.into_iter().collect();
    let mut differing = Vec::new();
    let mut folders: Vec<Option<RepoPath>> = vec![None];
    while let Some(folder) = folders.pop() {
        let folder_path = folder.as_ref().map_or_else(|| dir.to_owned(), |f| f.to_fs_path(dir));
        for entry in std::fs::read_dir(&folder_path).map_err(Error::io("read", &folder_path))? {
            let entry = entry.map_err(Error::io("read", &folder_path))?;
            let name = entry.file_name();
            let path = match &folder {
                Some(folder) => folder.join(name.as_bytes()),
                None => RepoPath::new(name.as_bytes()),
            };
            let is_dir = entry.file_type().is_ok_and(|t| t.is_dir());
            let is_known = match files.get(&path) {
                _ if is_dir => {
                    folders.push(Some(path));
                    true
                }
                Some(side) => {
                    if !matches_blob(&project.repo, &entry.path(), *side) {
                        differing.push(path);
                    }
                    true
                }
                None => folder.is_none() && name == ".git",
            };
            if !is_known {
                return Ok(false);
            }
        }
    }
    Ok(differing.is_empty() || is_git_output_or_prefix(project, dir, start, &differing).unwrap_or(false))
}

/// Returns whether each file of an incomplete worktree is git's output for it, by attributes and filters, or
/// a beginning of that.
fn is_git_output_or_prefix(
    project: &Project,
    dir: &Path,
    start: CommitId,
    paths: &[RepoPath],
) -> Result<bool, Error> {
    let scratch = project.store.layout().create_scratch()?;
    let reference_dir = Layout::scratch_reference_dir(scratch.path());
    std::fs::create_dir(&reference_dir).map_err(Error::io("create", &reference_dir))?;
    project.repo.write_commit_files(&reference_dir, start, &Layout::scratch_index(scratch.path()))?;
    Ok(paths
        .iter()
        .all(|path| is_full_or_partial_copy(&path.to_fs_path(dir), &path.to_fs_path(&reference_dir))))
}

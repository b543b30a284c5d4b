//! Lane pool: gives the worktree folder of a landed lane, which is in the trash, to a new lane, and recreates
//! it if the landed lane is restored later.
//!
//! A folder changes hands by one rename. Before the rename everything can be restored; after it the folder
//! belongs to the new lane. Files of the landed lane besides its commit stay in the trash entry, except those
//! that `pool.keep` names.

use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use proq_base::config::settings::Settings;
use proq_base::fail_points;
use proq_base::lane_name::LaneName;
use proq_git::status::included_files::{IncludePatterns, IncludedPath, folder_children};
use proq_git::worktrees::populate::reuse::{RetiredWorktree, ReusePlan};
use proq_git::{CommitId, RepoPath};
use proq_store::Store;
use proq_store::base::atomic::{remove_temp_files_of, rename_no_replace};
use proq_store::base::clock::now;
use proq_store::base::id::id_created_at;
use proq_store::base::record::Record;
use proq_store::locks::lock::LockName;
use proq_store::paths::layout::Layout;
use proq_store::records::trash::{ReusedTrashRecord, TrashRecord};

use self::recreate_trash::RecreateTrash;
use self::reuse_trash::{ReuseTrash, ReusedFiles};
use super::populate::{EmptyWorktree, with_progress};
use super::resident_processes::processes_in_dir;
use super::trash;
use crate::lane::{Error, Project};
use crate::operation::journaled_operation::Operation;

pub mod recreate_trash;
pub mod reuse_trash;

/// Trash entry whose worktree folder may be reusable.
struct PoolEntry {
    /// Folder of the trash entry.
    entry_dir: PathBuf,
    /// Retired worktree folder.
    worktree_dir: PathBuf,
    /// Git's admin folder of the retired worktree, in the trash.
    admin_dir: PathBuf,
    record: TrashRecord,
    /// Commit that the retired worktree is at.
    tip: CommitId,
}

impl PoolEntry {
    fn retired_worktree(&self) -> RetiredWorktree<'_> {
        RetiredWorktree { dir: &self.worktree_dir, git_dir: &self.admin_dir, tip: self.tip }
    }
}

/// Folder of a landed lane that now belongs to a new lane.
pub(crate) struct ReusedFolder {
    /// Name of the landed lane.
    previous_lane: LaneName,
    /// Untracked paths that stay in the folder.
    pub(crate) retained_paths: Vec<RepoPath>,
    /// Plan of the files that are reused and written.
    reuse_plan: ReusePlan,
}

impl ReusedFolder {
    /// Updates the folder's files to the new lane's commit. Returns `false` if the folder has to be populated
    /// from scratch.
    ///
    /// # Errors
    /// Fails when interrupted.
    pub(crate) fn update_files(&mut self, project: &Project, dir: &Path) -> Result<bool, Error> {
        let name = dir.file_name().unwrap_or_default().to_string_lossy();
        let may_continue = proq_base::interrupt::continue_check();
        let outcome = with_progress(&project.listener, &name, |report| {
            self.reuse_plan.apply(&project.repo, dir, &may_continue, report)
        })?;
        let Some(outcome) = outcome else {
            self.retained_paths.clear();
            return Ok(false);
        };
        project.repo.sync_indexes(&[dir])?;
        project
            .listener
            .detail(format!("files: {}", outcome.describe(&format!("lane '{}'", self.previous_lane))));
        fail_points::hit("pool.filled");
        Ok(true)
    }
}

/// Replaces the folder of a new lane by that of a landed lane. Returns `None` if no folder is suitable.
///
/// # Errors
/// Fails when interrupted.
pub(crate) fn reuse_folder(
    op: &Operation<'_>,
    new: &EmptyWorktree<'_>,
) -> Result<Option<ReusedFolder>, Error> {
    let project = op.project;
    if project.settings.pool.size == 0 {
        return Ok(None);
    }
    let Ok(_pool) = project.store.locks().acquire(&LockName::Pool) else { return Ok(None) };
    for entry in youngest_entries(project, project.settings.pool.size)? {
        let report_unused = |reason: String| {
            project
                .listener
                .detail(format!("the folder of lane '{}' is not used: {reason}", entry.record.lane));
        };
        match claim_entry(op, new, &entry) {
            Ok(Ok(reused)) => return Ok(Some(reused)),
            Ok(Err(reason)) => report_unused(reason),
            Err(e) => {
                proq_base::interrupt::require_no_signal()?;
                report_unused(e.to_string());
            }
        }
        // A partly moved folder is back in its entry, or the new lane has lost its own folder.
        if !new.dir.join(".git").exists() {
            return Err(Error::io("create", new.dir)(ErrorKind::NotFound.into()));
        }
    }
    Ok(None)
}

/// Returns the lanes whose folders are available to new lanes, youngest first.
pub(crate) fn available_lanes(project: &Project) -> Result<Vec<LaneName>, Error> {
    let entries = usable_entries(project, project.settings.pool.size)?;
    Ok(entries.into_iter().map(|entry| entry.record.lane).collect())
}

/// Forecast of the folders the next lane can reuse, without inspecting every file.
#[derive(Debug, Default)]
pub(crate) struct PoolForecast {
    /// Lanes whose folders are available, youngest first.
    pub available: Vec<LaneName>,
    /// Lanes whose folders are currently unavailable, with the reason.
    pub(crate) unavailable: Vec<(LaneName, String)>,
    /// Lanes whose folders are not reused, because the setting `pool.size` is 0.
    pub(crate) disabled: Vec<LaneName>,
}

/// Returns the forecast of folders the next lane can reuse.
///
/// # Errors
/// Fails when the trash or a lock cannot be read.
pub(crate) fn pool_forecast(project: &Project) -> Result<PoolForecast, Error> {
    let (mut out, size) = (PoolForecast::default(), project.settings.pool.size);
    if size == 0 {
        let entries = usable_entries(project, usize::MAX)?;
        out.disabled = entries.into_iter().map(|entry| entry.record.lane).collect();
        return Ok(out);
    }
    let location = project.location()?;
    // The lanes' folder may not exist before the first lane does.
    let target_dir = location.folder().ancestors().find(|dir| dir.exists()).unwrap_or(location.folder());
    let main = project.repo.main_worktree().unwrap_or(project.repo.common_dir());
    for entry in usable_entries(project, size)? {
        let reason = match unavailable_reason(&project.store, &entry, target_dir)? {
            None => project.repo.reuse_obstacle(&entry.retired_worktree(), main).map(ToOwned::to_owned),
            reason => reason,
        };
        match reason {
            Some(reason) => out.unavailable.push((entry.record.lane, reason)),
            None => out.available.push(entry.record.lane),
        }
    }
    Ok(out)
}

/// Returns the youngest entries that may be reusable, at most `limit`, and none on platforms without folder
/// reuse.
fn usable_entries(project: &Project, limit: usize) -> Result<Vec<PoolEntry>, Error> {
    if cfg!(target_os = "linux") { youngest_entries(project, limit) } else { Ok(Vec::new()) }
}

/// Returns the youngest entries that may be reusable, at most `limit`.
fn youngest_entries(project: &Project, limit: usize) -> Result<Vec<PoolEntry>, Error> {
    let mut dirs: Vec<_> = trash::list_entries(&project.store)?
        .into_iter()
        .filter_map(|dir| Some((id_created_at(dir.file_name()?.to_str()?)?, dir)))
        .collect();
    dirs.sort();
    let to_pool_entry = |(_, dir): (_, PathBuf)| {
        let record = TrashRecord::load_if_exists(&Layout::trash_record_in(&dir)).ok()??;
        let is_inside_entry =
            record.current_path.as_ref().is_some_and(|folder| trash::is_part_of_entry(folder, &dir));
        let is_folder = |path: &Path| path.symlink_metadata().is_ok_and(|meta| meta.is_dir());
        let (folder, admin) = (Layout::trash_worktree_in(&dir), Layout::trash_admin_dir_in(&dir));
        let is_reusable =
            record.reusable && is_inside_entry && !trash::is_expired(&project.settings, &record);
        let tip = record.tip.filter(|_| is_reusable && is_folder(&folder) && is_folder(&admin))?;
        Some(PoolEntry { entry_dir: dir, worktree_dir: folder, admin_dir: admin, record, tip })
    };
    Ok(dirs.into_iter().rev().filter_map(to_pool_entry).take(limit).collect())
}

/// Returns the reason why a folder cannot move to `target_dir`, as far as that is visible from outside the
/// folder.
fn unavailable_reason(store: &Store, entry: &PoolEntry, target_dir: &Path) -> Result<Option<String>, Error> {
    let folder = &entry.worktree_dir;
    let device = |path: &Path| path.symlink_metadata().ok().map(|meta| meta.dev());
    if device(folder) != device(target_dir) {
        return Ok(Some("it is on another disk".to_owned()));
    }
    // A process that the agent left running may still write to the folder.
    if store.locks().is_held(&LockName::AgentAlive(entry.record.lane.clone()))? {
        return Ok(Some("a process of its run is still running".to_owned()));
    }
    if let Some(resident) = processes_in_dir(folder).into_iter().next() {
        return Ok(Some(format!("{resident} is in it")));
    }
    let gitlink = folder.join(".git");
    let is_gitlink = gitlink.symlink_metadata().is_ok_and(|meta| meta.is_file())
        && std::fs::read(&gitlink).is_ok_and(|text| text.starts_with(b"gitdir: "));
    Ok((!is_gitlink).then(|| "it is no worktree".to_owned()))
}

/// Reuses the folder of an entry, or returns the reason why it cannot be reused; the entry is unchanged then.
/// The pool's lock is held.
fn claim_entry(
    op: &Operation<'_>,
    new: &EmptyWorktree<'_>,
    entry: &PoolEntry,
) -> Result<Result<ReusedFolder, String>, Error> {
    let (project, dir) = (op.project, new.dir);
    if let Some(reason) = unavailable_reason(&project.store, entry, dir)? {
        return Ok(Err(reason));
    }
    let reusable = match project.repo.plan_reuse(&entry.retired_worktree(), dir, new.start)? {
        Ok(reusable) => reusable,
        Err(reason) => return Ok(Err(reason.to_owned())),
    };
    let (retained_paths, removed_paths) =
        split_uncommitted_files(&project.settings, &entry.worktree_dir, &reusable, dir);
    let record = ReusedTrashRecord {
        reusing_lane: new.name.clone(),
        reused_at: now(),
        carried_files: retained_paths.iter().map(ToString::to_string).collect(),
    };
    drop(op.perform(ReuseTrash {
        trash_entry: entry.entry_dir.clone(),
        dir: dir.to_owned(),
        reused: Some(Arc::new(ReusedFiles { record, removed_paths })),
    })?);
    Ok(Ok(ReusedFolder { previous_lane: entry.record.lane.clone(), retained_paths, reuse_plan: reusable }))
}

/// Splits the untracked and ignored files of a retired worktree into those that the new lane retains and
/// those that are removed.
fn split_uncommitted_files(
    settings: &Settings,
    folder: &Path,
    reusable: &ReusePlan,
    new_dir: &Path,
) -> (Vec<RepoPath>, Vec<RepoPath>) {
    let patterns = IncludePatterns::parse(settings.pool.keep_patterns.join("\n").as_bytes());
    // The env file has the names and ports of the landed lane, so it is never retained.
    let env_file = settings.set_up.env_file.as_deref().map(RepoPath::new);
    let mut has_room = reusable.untracked_filter(new_dir);
    let mut sorter = UncommittedFileSorter {
        folder,
        patterns: &patterns,
        env_file,
        is_free_and_ignored: &mut has_room,
        retained: Vec::new(),
        removed: Vec::new(),
    };
    reusable.untracked.iter().for_each(|file| sorter.classify(file));
    let UncommittedFileSorter { retained, removed, .. } = sorter;
    (retained, removed)
}

/// Sorts untracked and ignored files of a retired worktree into retained and removed ones.
struct UncommittedFileSorter<'a> {
    folder: &'a Path,
    patterns: &'a IncludePatterns,
    env_file: Option<RepoPath>,
    /// Whether git ignores the path in the new worktree, and no file of its commit needs the path.
    is_free_and_ignored: &'a mut dyn FnMut(&IncludedPath) -> bool,
    retained: Vec<RepoPath>,
    removed: Vec<RepoPath>,
}

impl UncommittedFileSorter<'_> {
    /// Adds a file or folder to the retained or the removed paths; splits a folder that has both.
    fn classify(&mut self, file: &IncludedPath) {
        if self.patterns.is_empty() {
            return self.removed.push(file.path.clone());
        }
        let path = &file.path;
        let is_env_file = self.env_file.as_ref() == Some(path);
        let contains_env_file =
            self.env_file.as_ref().is_some_and(|env_file| env_file.parents().any(|up| up == *path));
        let is_named = self.patterns.includes(path, file.is_folder) && !is_env_file;
        let may_stay = is_named && (self.is_free_and_ignored)(file);
        let must_split = contains_env_file
            || (may_stay && self.patterns.has_negative_patterns())
            || (!may_stay && self.patterns.may_match_below(path.as_bytes()));
        if !file.is_folder || !must_split {
            return if may_stay { self.retained.push(path.clone()) } else { self.removed.push(path.clone()) };
        }
        let (retained_before, removed_before) = (self.retained.len(), self.removed.len());
        for child in folder_children(path, &path.to_fs_path(self.folder)) {
            self.classify(&child);
        }
        // A folder without retained files is removed as one path.
        if self.retained.len() == retained_before {
            self.removed.truncate(removed_before);
            self.removed.push(path.clone());
        }
    }
}

/// Copies the `.git` file that makes a folder a worktree. The copy is synced to disk on return.
fn copy_gitlink(from: &Path, to: &Path) -> Result<(), Error> {
    let copied = std::fs::copy(from, to).and_then(|_| std::fs::File::open(to)?.sync_all());
    copied.map_err(Error::io("write", to))
}

/// Turns the error that a file exists already into success.
fn allow_already_exists(e: std::io::Error) -> std::io::Result<()> {
    if e.kind() == ErrorKind::AlreadyExists { Ok(()) } else { Err(e) }
}

/// Moves parked files back into the worktree folder of a trash entry, which no lane has taken or which was
/// recreated. Parked files whose path is taken stay parked.
fn restore_parked_files(entry: &Path) -> Result<(), Error> {
    let parked = Layout::trash_parked_files_in(entry);
    if parked.symlink_metadata().is_ok() {
        merge_folders(&parked, &Layout::trash_worktree_in(entry))?;
    }
    fail_points::hit("regrow.merged");
    let record = Layout::reused_trash_record_in(entry);
    remove_temp_files_of(&record).map_err(Error::io("remove", &record))?;
    match std::fs::remove_file(&record) {
        Err(e) if e.kind() != ErrorKind::NotFound => Err(Error::io("remove", &record)(e)),
        _ => Ok(()),
    }
}

/// Moves everything in one folder to another, merging folders that exist in both. Existing targets are not
/// replaced, and their sources stay.
fn merge_folders(from: &Path, to: &Path) -> Result<(), Error> {
    for entry in std::fs::read_dir(from).map_err(Error::io("read", from))? {
        let entry = entry.map_err(Error::io("read", from))?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        match rename_no_replace(&source, &target) {
            Ok(()) => {}
            Err(e) if e.kind() == ErrorKind::AlreadyExists => {
                let is_folder = |path: &Path| path.symlink_metadata().is_ok_and(|meta| meta.is_dir());
                if is_folder(&source) && is_folder(&target) {
                    merge_folders(&source, &target)?;
                }
            }
            Err(e) => return Err(Error::io("move", &source)(e)),
        }
    }
    // The removal fails if anything is left in the folder, as intended.
    drop(std::fs::remove_dir(from));
    Ok(())
}

/// Calls `move_folder`, which moves the folder `from` out of its trash entry. If another lane has got the
/// folder, it is recreated first.
pub(crate) fn with_recreated_folder(
    op: &Operation<'_>,
    from: &Path,
    move_folder: impl FnOnce() -> Result<(), Error>,
) -> Result<(), Error> {
    let project = op.project;
    let entry = from.parent().filter(|dir| {
        Layout::is_trash_worktree(from) && dir.parent() == Some(project.store.layout().trash().as_path())
    });
    let Some(entry) = entry else { return move_folder() };
    // The lock keeps the folder from being reused between the check and the move.
    let _pool = project.store.locks().acquire(&LockName::Pool)?;
    let record = TrashRecord::load_if_exists(&Layout::trash_record_in(entry))?;
    if from.symlink_metadata().is_err()
        && let Some(given) = ReusedTrashRecord::load_if_exists(&Layout::reused_trash_record_in(entry))?
        && let Some((lane, tip)) = record.and_then(|record| Some((record.lane, record.tip?)))
    {
        drop(op.perform(RecreateTrash { trash_entry: entry.to_owned(), tip })?);
        project.listener.step_done(format!(
            "the folder of '{lane}' is used by '{}' and is created again",
            given.reusing_lane
        ));
        if !given.carried_files.is_empty() {
            let names = given.carried_files.join(", ");
            project.listener.warn(format!("files of pool.keep are missing from it: {names}"));
        }
    }
    move_folder()
}

//! Trash: folders of removed lanes, retained for a limited time and then deleted.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use proq_base::config::settings::Settings;
use proq_base::explain::shell_quote_path;
use proq_base::fail_points;
use proq_base::lane_name::LaneName;
use proq_git::base::error::list_paths;
use proq_git::worktrees::nested_repo::NestedRepo;
use proq_git::{Repo, RepoPath};
use proq_store::Store;
use proq_store::base::atomic::{create_private_dir, remove_temp_files_of};
use proq_store::base::clock::now;
use proq_store::base::file_tree::remove_tree;
use proq_store::base::id::{id_created_at, new_id};
use proq_store::base::record::Record;
use proq_store::locks::lock::LockName;
use proq_store::operations::scratch::ScratchDir;
use proq_store::paths::layout::Layout;
use proq_store::records::lane::LaneRecord;
use proq_store::records::trash::TrashRecord;

use crate::lane::context::expiry_item::{ExpiredItem, ExpiryScan, ItemSource, RetainedItem};
use crate::lane::{Error, Project};
use crate::operation::journaled_operation::Operation;

/// Moves a worktree and git's admin folder for it to a new trash entry, as a pair. A folder that `is_foreign`
/// belongs to another repository and is not moved.
pub(crate) fn move_worktree(
    op: &Operation<'_>,
    mut record: TrashRecord,
    admin: Option<&Path>,
    is_foreign: bool,
) -> Result<PathBuf, Error> {
    let dir = new_entry_path(&op.project.store, &record.lane);
    let file = Layout::trash_record_in(&dir);
    if !is_foreign && record.former_path.symlink_metadata().is_ok() {
        let to = if is_on_other_disk(&record.former_path, &op.project.store) {
            sibling_path(&record.former_path)
        } else {
            Layout::trash_worktree_in(&dir)
        };
        record.current_path = Some(to.clone());
        op.save_record(&record, &file)?;
        op.move_path(&record.former_path, &to)?;
        fail_points::hit("trash.moved");
    } else {
        op.save_record(&record, &file)?;
    }
    if let Some(admin) = admin {
        op.move_path(admin, &Layout::trash_admin_dir_in(&dir))?;
    }
    Ok(dir)
}

/// Moves the incomplete worktree of a killed process to the trash. If this is interrupted itself, it can be
/// repeated.
pub(crate) fn move_incomplete_worktree(
    store: &Store,
    path: &Path,
    lane: &LaneName,
    admin: Option<&Path>,
) -> Result<PathBuf, Error> {
    remove_started_entries(store, lane)?;
    let dir = new_entry_path(store, lane);
    let exists = path.symlink_metadata().is_ok();
    let to = if is_on_other_disk(path, store) { sibling_path(path) } else { Layout::trash_worktree_in(&dir) };
    let record = TrashRecord {
        lane: lane.clone(),
        removed_at: now(),
        former_path: path.to_owned(),
        current_path: exists.then(|| to.clone()),
        worktree_id: admin.and_then(Path::file_name).unwrap_or_default().to_string_lossy().into_owned(),
        branch: String::new(),
        tip: None,
        saved_ref: None,
        reusable: false,
        unreadable: Vec::new(),
    };
    record.save(&Layout::trash_record_in(&dir))?;
    fail_points::hit("trash.noted");
    if exists {
        std::fs::rename(path, &to).map_err(Error::io("move to the trash", path))?;
        fail_points::hit("trash.moved");
    }
    if let Some(admin) = admin {
        std::fs::rename(admin, Layout::trash_admin_dir_in(&dir))
            .map_err(Error::io("move to the trash", admin))?;
    }
    Ok(dir)
}

/// Trash entry for single files of a lane that is not removed; it also has a place for the files that replace
/// them. Until the entry is moved to the trash, it is deleted with its process, or by the next command.
pub(crate) struct FileExchange {
    scratch: ScratchDir,
    entry_dir: PathBuf,
    /// Folder on the lane's disk for the files that are being exchanged.
    exchange_dir: PathBuf,
}

impl FileExchange {
    /// Starts an entry.
    ///
    /// # Errors
    /// Fails if the entry cannot be written.
    pub fn start(store: &Store, lane: &LaneRecord) -> Result<FileExchange, Error> {
        let (scratch, entry_dir) = (store.layout().create_scratch()?, new_entry_path(store, &lane.name));
        let draft = Layout::scratch_trash_entry(scratch.path());
        let is_separate = is_on_other_disk(&lane.path, store);
        let exchange_dir =
            if is_separate { sibling_path(&lane.path) } else { Layout::trash_worktree_in(&draft) };
        std::fs::create_dir_all(&exchange_dir).map_err(Error::io("create", &exchange_dir))?;
        fail_points::hit("trash.begun");
        let worktree = if is_separate { exchange_dir.clone() } else { Layout::trash_worktree_in(&entry_dir) };
        let record = TrashRecord {
            lane: lane.name.clone(),
            removed_at: now(),
            former_path: lane.path.clone(),
            current_path: Some(worktree),
            worktree_id: String::new(),
            branch: String::new(),
            tip: None,
            saved_ref: None,
            reusable: false,
            unreadable: Vec::new(),
        };
        record.save(&Layout::trash_record_in(&draft))?;
        let mut entry = FileExchange { scratch, entry_dir, exchange_dir };
        // A folder on another disk can be found only by its record, so the record is saved first.
        if is_separate {
            entry.move_to_trash()?;
        }
        Ok(entry)
    }

    /// Creates a folder in the entry. Renames between this folder and the lane are possible.
    ///
    /// # Errors
    /// Fails if the folder cannot be created.
    pub fn create_folder(&self, name: &str) -> Result<PathBuf, Error> {
        let path = self.exchange_dir.join(name);
        std::fs::create_dir_all(&path).map_err(Error::io("create", &path))?;
        Ok(path)
    }

    /// Moves the entry to the trash with its current contents.
    ///
    /// # Errors
    /// Fails if the entry cannot be moved.
    pub(crate) fn move_to_trash(&mut self) -> Result<(), Error> {
        let draft = Layout::scratch_trash_entry(self.scratch.path());
        if draft.symlink_metadata().is_err() {
            return Ok(());
        }
        if let Some(trash) = self.entry_dir.parent() {
            create_private_dir(trash)?;
        }
        std::fs::rename(&draft, &self.entry_dir).map_err(Error::io("move to the trash", &draft))?;
        if self.exchange_dir.starts_with(&draft) {
            self.exchange_dir = Layout::trash_worktree_in(&self.entry_dir);
        }
        Ok(())
    }
}

/// Removes entries that an earlier recovery of this lane had started, if it was killed before anything was
/// moved into them.
fn remove_started_entries(store: &Store, lane: &LaneName) -> Result<(), Error> {
    let Ok(entries) = std::fs::read_dir(store.layout().trash()) else { return Ok(()) };
    for entry in entries.flatten() {
        let (dir, name) = (entry.path(), entry.file_name());
        let id = name.to_str().and_then(|name| name.strip_prefix(lane.as_str())?.strip_prefix('-'));
        // Another lane's name may start with this lane's name.
        let is_id =
            |id: &str| id.split('-').count() == 4 && id.chars().all(|c| c == '-' || c.is_ascii_digit());
        let record = Layout::trash_record_in(&dir);
        if id.is_some_and(is_id) && is_only_started(&dir, &record) {
            remove_temp_files_of(&record).map_err(Error::io("remove", &record))?;
            drop(std::fs::remove_file(&record));
            // Fails, as intended, if the folder has other entries.
            drop(std::fs::remove_dir(&dir));
        }
    }
    Ok(())
}

/// Returns whether an entry holds nothing except, possibly, the record of an incomplete worktree.
fn is_only_started(dir: &Path, record: &Path) -> bool {
    let Ok(existing) = TrashRecord::load_if_exists(record) else { return false };
    let Some(existing) = existing else { return true };
    let exists = |path: &PathBuf| path.symlink_metadata().is_ok();
    let mut entries = std::fs::read_dir(dir).into_iter().flatten();
    existing.branch.is_empty()
        && entries.all(|entry| entry.is_ok_and(|entry| entry.path() == record))
        && !existing.current_path.as_ref().is_some_and(exists)
}

/// Returns the path for a new entry. Saving its record creates the folder.
fn new_entry_path(store: &Store, lane: &LaneName) -> PathBuf {
    store.layout().trash_entry(lane, &new_id())
}

/// Returns whether `path` is on another disk than the store, so that a rename is impossible. Returns false if
/// the disks cannot be determined; the rename itself fails then.
fn is_on_other_disk(path: &Path, store: &Store) -> bool {
    let device = |path: &Path| path.symlink_metadata().ok().map(|m| m.dev());
    matches!((device(path), device(store.layout().root())), (Some(a), Some(b)) if a != b)
}

/// Returns the path next to a folder to which it is renamed if it is on another disk than the trash.
fn sibling_path(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".trash-{name}-{}", new_id()))
}

/// Finds the entries that are older than the setting `trash.keep`.
pub fn find_expired(project: &Project) -> Result<ExpiryScan, Error> {
    let (keep, mut expired) = (project.settings.trash_keep, ExpiryScan::default());
    for dir in list_entries(&project.store)? {
        let name = entry_name(&dir);
        match TrashRecord::load_if_exists(&Layout::trash_record_in(&dir)) {
            Err(e) => expired.retained.push(RetainedItem::unreadable(name, &e)),
            // An entry that is being created has no record yet. An entry without a file expires as a
            // temporary folder.
            Ok(None)
                if has_only_folders(&dir)
                    || id_created_at(&name).is_some_and(|at| !at.is_older_than(keep)) => {}
            Ok(None) => expired.retained.push(RetainedItem {
                reason: "no record says when it was removed".to_owned(),
                remedy_command: Some(format!("ls -la {}", shell_quote_path(&dir))),
                name,
            }),
            Ok(Some(record)) if !is_expired(&project.settings, &record) => {}
            Ok(Some(record)) => {
                let outside = record.current_path.clone().filter(|w| !is_part_of_entry(w, &dir));
                if let Some(unknown) = outside.as_ref().filter(|w| !has_sibling_name(w)) {
                    let reason =
                        format!("its record names {}, which git-proq did not create", unknown.display());
                    expired.retained.push(RetainedItem { name, reason, remedy_command: None });
                } else if let Some(retained_entry) = retained_for_unreadable(&project.repo, &dir, &record)
                    .or_else(|| retained_for_nested_repo(&project.repo, &dir, record.current_path.as_deref()))
                {
                    expired.retained.push(RetainedItem { name, ..retained_entry });
                } else {
                    expired.expired.push(ExpiredItem {
                        name,
                        age_start: record.removed_at,
                        source: ItemSource::Trash { dir, other_disk_dir: outside },
                    });
                }
            }
        }
    }
    expired.expired.sort_by(|a, b| (a.age_start, &a.name).cmp(&(b.age_start, &b.name)));
    Ok(expired)
}

/// Returns the reason to retain an entry with files that could not be read when the lane was removed, so that
/// no snapshot has them.
fn retained_for_unreadable(repo: &Repo, dir: &Path, record: &TrashRecord) -> Option<RetainedItem> {
    let worktree = record.current_path.as_deref()?;
    let is_gone = |path: &RepoPath| {
        let is_not_found = |e: std::io::Error| {
            matches!(e.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory)
        };
        path.to_fs_path(worktree).symlink_metadata().is_err_and(is_not_found)
    };
    let mut unreadable = record.unreadable.clone();
    unreadable.retain(|path| !is_gone(path));
    let entry_path = if is_part_of_entry(worktree, dir) { dir } else { worktree };
    let reason = describe_unreadable(&unreadable);
    (!unreadable.is_empty()).then(|| RetainedItem {
        name: String::new(),
        reason,
        remedy_command: Some(move_out_command(repo, entry_path)),
    })
}

/// Returns a clause for files and folders that could not be read.
pub fn describe_unreadable(paths: &[RepoPath]) -> String {
    let verb = if paths.len() == 1 { "is" } else { "are" };
    format!("{} could not be read, and {verb} in no snapshot", list_paths(paths))
}

/// Returns the command that moves a trash entry out of the checkout, where `git clean` would delete it.
fn move_out_command(repo: &Repo, path: &Path) -> String {
    let parent_dir = repo.command_dir().parent().unwrap_or_else(|| Path::new("."));
    format!("mv {} {}", shell_quote_path(path), shell_quote_path(parent_dir))
}

/// Returns the reason to retain an entry with a nested repository whose commits or changes exist nowhere
/// else. `worktree` is the path of the lane's folder according to the entry's record.
fn retained_for_nested_repo(repo: &Repo, dir: &Path, worktree: Option<&Path>) -> Option<RetainedItem> {
    let outside = worktree.filter(|worktree| !is_part_of_entry(worktree, dir));
    let note_path = Layout::trash_nested_repo_note_in(dir);
    let noted_repo = proq_base::regular_file::read_store_file(&note_path)
        .ok()
        .map(|text| PathBuf::from(OsStr::from_bytes(&text)));
    let admin = Layout::trash_admin_dir_in(dir);
    // The work may have been pushed or moved away since.
    let found = noted_repo.and_then(|path| repo.repo_with_unsaved_work(&path, &admin)).or_else(|| {
        let worktree = outside.map_or_else(|| Layout::trash_worktree_in(dir), Path::to_owned);
        // The second folder holds files that were in no commit when another lane reused the folder.
        let search_roots = [worktree, Layout::trash_parked_files_in(dir)];
        let found = search_roots.iter().find_map(|top| repo.find_repo_with_unsaved_work(top, &admin))?;
        // If writing the note fails, the next search takes as long as this one.
        drop(std::fs::write(&note_path, found.folder.as_os_str().as_bytes()));
        Some(found)
    })?;
    let NestedRepo { folder, git_dir, .. } = found;
    let commits = match git_dir.starts_with(&folder) {
        true => String::new(),
        false => format!(", its commits in {}", git_dir.display()),
    };
    let entry_path = outside.filter(|outside| folder.starts_with(outside)).unwrap_or(dir);
    Some(RetainedItem {
        name: String::new(),
        reason: format!("{} is a repository with work that is nowhere else{commits}", folder.display()),
        remedy_command: Some(move_out_command(repo, entry_path)),
    })
}

/// Returns the paths of all entries. Folders whose names start with a dot are not entries.
pub(crate) fn list_entries(store: &Store) -> Result<Vec<PathBuf>, Error> {
    let dir = store.layout().trash();
    let entries = match std::fs::read_dir(&dir) {
        Ok(entries) => entries,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(Error::io("read", &dir)(e)),
    };
    let is_entry = |path: &PathBuf| {
        path.is_dir() && path.file_name().is_some_and(|n| !n.to_string_lossy().starts_with('.'))
    };
    Ok(entries.flatten().map(|e| e.path()).filter(is_entry).collect())
}

/// Returns whether an entry is older than the setting `trash.keep`.
pub(crate) fn is_expired(settings: &Settings, record: &TrashRecord) -> bool {
    record.removed_at.is_older_than(settings.trash_keep)
}

/// Returns whether a folder is part of an entry, even if the repository was moved since.
pub(crate) fn is_part_of_entry(path: &Path, dir: &Path) -> bool {
    path.starts_with(dir)
        || (Layout::is_trash_worktree(path) && path.parent().and_then(Path::file_name) == dir.file_name())
}

/// Returns whether a folder has a name as [`sibling_path`] creates it.
fn has_sibling_name(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(".trash-"))
}

/// Deletes an expired entry, unless it was restored concurrently. Returns whether it was deleted.
pub fn delete_expired(project: &Project, dir: &Path, outside: Option<&Path>) -> Result<bool, Error> {
    let record = || {
        Ok::<_, Error>(
            TrashRecord::load_if_exists(&Layout::trash_record_in(dir))?
                .filter(|r| is_expired(&project.settings, r)),
        )
    };
    let Some(existing) = record()? else { return Ok(false) };
    // A process that restores the lane holds this lock.
    let Some(lock) = project.store.locks().try_acquire(&LockName::Run(existing.lane))? else {
        return Ok(false);
    };
    // A process that reuses the folder for another lane holds this lock.
    let Some(_pool) = project.store.locks().try_acquire(&LockName::Pool)? else { return Ok(false) };
    if record()?.is_none() {
        return Ok(false);
    }
    let Some(outside) = outside else {
        let removal = project.store.layout().begin_deletion(dir)?;
        drop(lock);
        return Ok(removal.finish().map(|()| true)?);
    };
    // The rename takes the folder out of use at once. The record, which is deleted last, still leads to it
    // after an interruption.
    let removal_path = outside.with_extension("gone");
    match std::fs::rename(outside, &removal_path) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(Error::io("remove", outside)(e)),
        _ => drop(lock),
    }
    remove_tree(&removal_path)?;
    Ok(project.store.layout().delete(dir).map(|()| true)?)
}

/// Returns the names of the saved refs that unexpired entries need.
pub(crate) fn saved_refs_in_use(project: &Project) -> Result<Vec<String>, Error> {
    let expired_names: Vec<String> =
        find_expired(project)?.expired.into_iter().map(|spare| spare.name).collect();
    let mut retained = list_entries(&project.store)?;
    retained.retain(|dir| !expired_names.contains(&entry_name(dir)));
    let saved_ref =
        |dir: PathBuf| TrashRecord::load_if_exists(&Layout::trash_record_in(&dir)).ok().flatten()?.saved_ref;
    Ok(retained.into_iter().filter_map(saved_ref).collect())
}

/// Returns the name of an entry.
pub(crate) fn entry_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Returns whether a folder contains only folders, at every depth.
pub fn has_only_folders(dir: &Path) -> bool {
    std::fs::read_dir(dir).is_ok_and(|mut entries| {
        entries.all(|entry| {
            entry.is_ok_and(|e| e.file_type().is_ok_and(|kind| kind.is_dir()) && has_only_folders(&e.path()))
        })
    })
}

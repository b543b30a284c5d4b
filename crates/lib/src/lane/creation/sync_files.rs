//! Renewed copying of files from the main checkout to a lane: missing files, and files unchanged in the lane
//! since they were copied. Files changed in the lane are overwritten only with `force`. The old version is
//! then moved to the trash, and `undo` restores it.

use std::collections::HashMap;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use proq_base::copy::FileStamp;
use proq_base::fail_points;
use proq_git::RepoPath;
use proq_git::status::included_files::{IncludeSource, IncludedPath};
use proq_store::locks::lock::LockGuard;
use proq_store::paths::layout::Layout;
use proq_store::records::lane::LaneRecord;

use crate::lane::worktree::set_up::copy::Copier;
use crate::lane::worktree::set_up::env::{exclude_path, refresh_env_file};
use crate::lane::worktree::set_up::files::{
    WantedFilePatterns, create_parent_folders, exclude_linked, open_include_source, warn_skipped,
    warn_unignored,
};
use crate::lane::worktree::trash;
use crate::lane::{Error, Project};
use crate::operation::run_operation::operate;

/// Plan of the files that a lane gets from the main checkout.
#[derive(Debug, Default)]
pub struct SyncPlan {
    /// Paths missing in the lane; a folder means the folder with all of its contents.
    pub missing: Vec<RepoPath>,
    /// Symbolic links missing in the lane.
    pub missing_links: Vec<RepoPath>,
    /// Files that are unchanged in the lane since they were copied, and changed in the main checkout.
    pub outdated: Vec<RepoPath>,
    /// Paths that differ, and were changed in the lane or were never copied.
    pub conflicting: Vec<RepoPath>,
    /// Files and folders to copy; those in `conflicting` only with force.
    paths_to_copy: Vec<IncludedPath>,
}

impl SyncPlan {
    /// Returns whether the plan has nothing to do; conflicting paths count only with `force`.
    pub fn is_up_to_date(&self, force: bool) -> bool {
        self.missing.is_empty()
            && self.missing_links.is_empty()
            && self.outdated.is_empty()
            && (self.conflicting.is_empty() || !force)
    }
}

/// Plans which files a lane gets, and warns about those that git would show there as untracked.
///
/// # Errors
/// Fails if git fails, or the list of files to copy cannot be read.
pub fn plan(project: &Project, lane: &LaneRecord) -> Result<SyncPlan, Error> {
    let Some(main) = project.repo.main_worktree() else { return Ok(SyncPlan::default()) };
    let wanted = WantedFilePatterns::read(project, main)?;
    if wanted.is_empty() {
        return Ok(SyncPlan::default());
    }
    let includes = open_include_source(project, main, &lane.path)?;
    let links = includes.find_included(&wanted.links, true);
    warn_unignored(&project.listener, "linked", &links.not_ignored);
    let linked: Vec<RepoPath> = links.included.into_iter().map(|included| included.path).collect();
    let found = includes.find_included(&wanted.copies, false);
    warn_unignored(&project.listener, "copied", &found.not_ignored);
    for unused in wanted.describe_unused_patterns(&includes) {
        project.listener.step_done(unused);
    }
    let copies = project.store.layout().load_copied_files(&lane.name).into_iter().collect();
    let mut comparison = Comparison {
        includes: &includes,
        wanted: &wanted,
        linked: &linked,
        copy_stamps: copies,
        main,
        lane,
        plan: SyncPlan::default(),
    };
    for included in exclude_linked(found.included, &linked) {
        comparison.compare_entry(&included);
    }
    let mut out = comparison.plan;
    for path in linked {
        let link_path = path.to_fs_path(&lane.path);
        match std::fs::read_link(&link_path) {
            Ok(target) if target == path.to_fs_path(main) => {}
            _ if link_path.symlink_metadata().is_ok() => out.conflicting.push(path),
            _ => out.missing_links.push(path),
        }
    }
    Ok(out)
}

/// Carries out a plan as one operation, with `force` also for conflicting paths. `_lock` is the lane's run
/// lock.
///
/// # Errors
/// Fails if a file cannot be copied or moved. In that case the lane is unchanged.
pub fn sync(
    project: &Project,
    lane: &LaneRecord,
    _lock: &LockGuard,
    planned: &SyncPlan,
    force: bool,
) -> Result<(), Error> {
    drop(refresh_env_file(project, &lane.clone().into_any()));
    let Some(main) = project.repo.main_worktree() else { return Ok(()) };
    let is_selected = |included: &&IncludedPath| force || !planned.conflicting.contains(&included.path);
    let all: Vec<IncludedPath> = planned.paths_to_copy.iter().filter(is_selected).cloned().collect();
    let links = planned.missing_links.iter().chain(
        planned.conflicting.iter().filter(|path| force && all.iter().all(|included| included.path != **path)),
    );
    let links: Vec<RepoPath> = links.cloned().collect();
    let mut exchange = trash::FileExchange::start(&project.store, lane)?;
    let new_dir = exchange.create_folder(Layout::NEW_FILES_DIR)?;
    let wanted = WantedFilePatterns::read(project, main)?;
    let includes = open_include_source(project, main, &lane.path)?;
    let is_excluded = |path: &RepoPath, is_folder: bool| {
        includes.is_off_limits(path) || wanted.copies.excludes(path, is_folder)
    };
    let copied = Copier::new(main, &new_dir, &project.listener, &is_excluded)?.copy(&all)?;
    warn_skipped(&project.listener, &copied);
    for path in &links {
        create_link(&new_dir, main, path)?;
        exclude_path(project, &lane.path, path)?;
    }
    let paths = all.iter().map(|included| &included.path).chain(&links);
    let copied_paths: Vec<&RepoPath> =
        paths.filter(|path| path.to_fs_path(&new_dir).symlink_metadata().is_ok()).collect();
    fail_points::hit("sync.copied");
    exchange.move_to_trash()?;
    let (old_dir, new_dir) =
        (exchange.create_folder(Layout::OLD_FILES_DIR)?, exchange.create_folder(Layout::NEW_FILES_DIR)?);
    operate(project, "sync", |op| {
        for path in copied_paths {
            let target = path.to_fs_path(&lane.path);
            if target.symlink_metadata().is_ok() {
                op.move_path(&target, &path.to_fs_path(&old_dir))?;
            }
            if let Err(reason) = create_parent_folders(&lane.path, path) {
                return Err(Error::io("write", &target)(std::io::Error::other(reason)));
            }
            op.move_path(&path.to_fs_path(&new_dir), &target)?;
        }
        Ok::<_, Error>(())
    })?;
    // Entries of files that are gone do no harm: a file of that name would have another stamp, so it does not
    // count as unchanged.
    let mut known: HashMap<RepoPath, FileStamp> =
        project.store.layout().load_copied_files(&lane.name).into_iter().collect();
    known.extend(copied.files);
    let mut known: Vec<(RepoPath, FileStamp)> = known.into_iter().collect();
    known.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(project.store.layout().save_copied_files(&lane.name, &known)?)
}

/// Creates the symbolic link `path` below `root` to the same path of the main checkout `main`.
fn create_link(root: &Path, main: &Path, path: &RepoPath) -> Result<(), Error> {
    let link_path = path.to_fs_path(root);
    if let Some(folder) = link_path.parent() {
        std::fs::create_dir_all(folder).map_err(Error::io("create", folder))?;
    }
    symlink(path.to_fs_path(main), &link_path).map_err(Error::io("link", &link_path))
}

/// Comparison of the main checkout's files with the lane's.
struct Comparison<'a> {
    includes: &'a IncludeSource<'a>,
    wanted: &'a WantedFilePatterns,
    linked: &'a [RepoPath],
    /// Stamps of the files that were copied to the lane, as they were then.
    copy_stamps: HashMap<RepoPath, FileStamp>,
    main: &'a Path,
    lane: &'a LaneRecord,
    plan: SyncPlan,
}

impl Comparison<'_> {
    /// Compares one path with the lane's, folders recursively, and adds what differs to the plan.
    fn compare_entry(&mut self, included: &IncludedPath) {
        let (from, to) = (included.path.to_fs_path(self.main), included.path.to_fs_path(&self.lane.path));
        let is_not_dir =
            |up: &RepoPath| up.to_fs_path(&self.lane.path).symlink_metadata().is_ok_and(|m| !m.is_dir());
        let (Ok(theirs), false) =
            (from.symlink_metadata(), included.path.parents().any(|up| is_not_dir(&up)))
        else {
            return;
        };
        let Ok(ours) = to.symlink_metadata() else {
            self.plan.missing.push(included.path.clone());
            return self.plan.paths_to_copy.push(included.clone());
        };
        if theirs.is_dir() && ours.is_dir() {
            let entries = std::fs::read_dir(&from).into_iter().flatten().flatten();
            let mut children: Vec<IncludedPath> = entries
                .map(|entry| IncludedPath {
                    path: included.path.join(entry.file_name().as_bytes()),
                    is_folder: entry.file_type().is_ok_and(|kind| kind.is_dir()),
                })
                .collect();
            children.retain(|child| self.is_wanted(child));
            children.sort();
            return children.iter().for_each(|child| self.compare_entry(child));
        }
        let is_same = match (theirs.is_file() && ours.is_file(), theirs.is_symlink()) {
            (true, _) => {
                FileStamp::from_metadata(&theirs) == FileStamp::from_metadata(&ours)
                    || have_equal_content(&from, &to)
            }
            (false, true) => std::fs::read_link(&from).ok() == std::fs::read_link(&to).ok(),
            // A folder or a special file where the lane has another type of entry.
            (false, false) => !theirs.is_dir(),
        };
        if is_same {
            return;
        }
        if ours.is_file()
            && theirs.is_file()
            && self.copy_stamps.get(&included.path) == Some(&FileStamp::from_metadata(&ours))
        {
            self.plan.outdated.push(included.path.clone());
        } else {
            self.plan.conflicting.push(included.path.clone());
        }
        self.plan.paths_to_copy.push(included.clone());
    }

    /// Returns whether a path inside a copied folder is to be copied: no pattern, git or link excludes it.
    fn is_wanted(&self, included: &IncludedPath) -> bool {
        !self.includes.is_off_limits(&included.path)
            && !self.includes.is_tracked(&included.path)
            && !self.wanted.copies.excludes(&included.path, included.is_folder)
            && !self.linked.contains(&included.path)
    }
}

/// Returns whether two files have the same content, regardless of their times.
fn have_equal_content(left: &PathBuf, right: &PathBuf) -> bool {
    let open = |path: &PathBuf| std::fs::File::open(path);
    let (Ok(mut left), Ok(mut right)) = (open(left), open(right)) else { return false };
    let size = |file: &std::fs::File| file.metadata().map(|m| m.len()).ok();
    if size(&left) != size(&right) {
        return false;
    }
    let (mut a, mut b) = (vec![0; 64 * 1024], vec![0; 64 * 1024]);
    loop {
        let Ok(count) = left.read(&mut a) else { return false };
        if count == 0 {
            return true;
        }
        if right.read_exact(&mut b[..count]).is_err() || a[..count] != b[..count] {
            return false;
        }
    }
}

//! Reuse of a retired worktree's folder for a new worktree: files that are the same in both commits remain,
//! and all others are written as in any new worktree.

use std::collections::{BTreeSet, HashSet};
use std::fs::File as OpenFile;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::AtomicUsize;

use gix::bstr::{BStr, ByteSlice};
use gix::index::entry::{Mode, Stage, Stat};
use gix::index::{File, Version};

use super::blob_sizes::BlobSizes;
use super::conversions::{CheckoutRequirement, ConversionRules, checkout_requirement};
use super::files::{PopulateJob, PopulateWorker};
use super::folder_scan::scan_folder;
use super::progress::OnProgress;
use super::target_index::{TargetIndex, matches_tree};
use super::{ContinueCheck, MAX_FILES_FROM_OBJECTS, chunk_ranges, write_index};
use crate::base::parallel::parallel_map;
use crate::repository::open_operation::find_open_git_operation;
use crate::status::ignore_rules::IgnoreRules;
use crate::status::included_files::IncludedPath;
use crate::status::status_walk::UNCHECKED_ENTRY_FLAGS;
use crate::{CommitId, Error, Repo, RepoPath, TreeId};

/// Names in git's folder for a worktree that mark a special configuration or an unusual state.
const SPECIAL_ADMIN_FILES: &[&str] =
    &["config.worktree", "info/sparse-checkout", "info/attributes", "locked", "modules"];

/// Reason to reject a folder whose index does not match its commit, or holds flags or conflicts.
const INDEX_DIFFERS: &str = "its index is not that of its commit";

/// A folder that was a worktree and that git no longer has on record.
#[derive(Debug, Clone, Copy)]
pub struct RetiredWorktree<'a> {
    /// Path of the folder.
    pub dir: &'a Path,
    /// Path of the folder that was git's administrative folder for the worktree.
    pub git_dir: &'a Path,
    /// Commit that was checked out in the worktree.
    pub tip: CommitId,
}

/// Plan for turning a retired folder into a new worktree. It holds only while nobody changes the folder.
pub struct ReusePlan {
    /// Paths in the folder that are not in the index; a directory without tracked files is one item.
    pub untracked: Vec<IncludedPath>,
    /// Index of the new worktree. The file of an entry without stat data has to be written.
    index: File,
    conversions: ConversionRules,
    requirement: CheckoutRequirement,
    /// Paths to remove first, each with whether it is the empty folder of a submodule.
    stale_paths: Vec<(RepoPath, bool)>,
    /// Path of the retired folder's old index, if the new index would be identical.
    identical_old_index: Option<PathBuf>,
}

/// Counts of kept and written files after a folder was reused for a worktree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReuseOutcome {
    /// Number of files that stayed.
    pub kept: usize,
    /// Number of files that were written from the repository's objects.
    pub written: usize,
    /// Reason why git itself wrote some files or the index, if it did.
    pub(crate) git_reason: Option<&'static str>,
}

impl ReuseOutcome {
    /// Describes the outcome as text; `whose` names the former owner of the folder.
    pub fn describe(&self, whose: &str) -> String {
        let ReuseOutcome { kept, written, git_reason: by_git } = self;
        let by_git = by_git.map_or_else(String::new, |why| format!("; by git: {why}"));
        format!("{kept} files kept from the folder of {whose}, {written} written from git's objects{by_git}")
    }
}

impl Repo {
    /// Inspects a retired folder and plans its reuse for the worktree at `new_dir`, which git has on record
    /// and which gets `commit`. The inner error is the reason why the folder cannot be reused.
    ///
    /// # Errors
    /// Fails if an object or an attribute file cannot be read.
    pub fn plan_reuse(
        &self,
        retired: &RetiredWorktree<'_>,
        new_dir: &Path,
        commit: CommitId,
    ) -> Result<Result<ReusePlan, &'static str>, Error> {
        let hash = self.gix.object_hash();
        let (retired_index, verbatim) = std::thread::scope(|scope| {
            let verbatim_thread = scope.spawn(|| read_verbatim_index(retired.git_dir, hash));
            (self.requirement_and_old_index(retired, new_dir), verbatim_thread.join().ok().flatten())
        });
        let (requirement, old) = match retired_index {
            Ok(found) => found,
            Err(reason) => return Ok(Err(reason)),
        };
        if !matches_tree(self.tree_reader(), &old, self.tree_of(retired.tip)?)? {
            return Ok(Err(INDEX_DIFFERS));
        }
        let scan = match scan_folder(self, retired.dir, &old, verbatim.as_ref()) {
            Ok(seen) => seen,
            Err(reason) => return Ok(Err(reason)),
        };
        let rewrite: HashSet<usize> = scan.positions_to_rewrite.into_iter().collect();
        let Some(old_conversions) = ConversionRules::load(self, &old)? else {
            return Ok(Err("a file with attributes cannot be read"));
        };
        let tree = self.tree_of(commit)?.0;
        let is_default_format = has_default_format(&old) && requirement == CheckoutRequirement::Standard;
        let count = u32::try_from(old.entries().len()).ok();
        let has_tree = old.tree().is_some_and(|known| known.id == tree && known.num_entries == count);
        let is_same = is_default_format && rewrite.is_empty() && has_tree;
        if is_same && !old.entries().iter().any(|e| old_conversions.may_convert(e.path(&old))) {
            let same_index = Some(retired.git_dir.join("index"));
            let plan = ReusePlan::new(scan.untracked, old, old_conversions, requirement);
            return Ok(Ok(ReusePlan { identical_old_index: same_index, ..plan }));
        }
        let Some(TargetIndex(index)) =
            TargetIndex::from_index(self.tree_reader(), old.clone(), TreeId(tree))?
        else {
            return Ok(Err("its index has another format"));
        };
        let Some(conversions) = ConversionRules::load(self, &index)? else {
            return Ok(Err("a file with attributes cannot be read"));
        };
        let mut plan = ReusePlan::new(scan.untracked, index, conversions, requirement);
        let new_count = plan.compare_with_old_index(&old, |at, path| {
            rewrite.contains(&at) || old_conversions.may_convert(path)
        });
        if new_count > MAX_FILES_FROM_OBJECTS {
            return Ok(Err("too much has changed since"));
        }
        Ok(Ok(plan))
    }
}

impl Repo {
    /// Returns why a retired folder cannot be reused for a worktree with the settings of the one at
    /// `settings_dir`; `None` if no reason is known. Reads none of the folder's files.
    pub fn reuse_obstacle(&self, retired: &RetiredWorktree<'_>, settings_dir: &Path) -> Option<&'static str> {
        self.requirement_and_old_index(retired, settings_dir).err()
    }

    /// Returns the conversion settings of the worktree at `new_dir` and the index of the retired folder, or
    /// the reason why the folder cannot be reused.
    fn requirement_and_old_index(
        &self,
        retired: &RetiredWorktree<'_>,
        new_dir: &Path,
    ) -> Result<(CheckoutRequirement, File), &'static str> {
        let requirement = checkout_requirement(self, new_dir);
        match requirement {
            CheckoutRequirement::ConvertedFiles => {
                return Err("settings or the system require other file formats");
            }
            CheckoutRequirement::SparseFiles => {
                return Err("the new lane is sparse");
            }
            CheckoutRequirement::OtherIndexFormat | CheckoutRequirement::Standard => {}
        }
        if has_special_state(retired.git_dir) {
            return Err("it has a set-up of its own");
        }
        let options = gix::index::decode::Options::default();
        let Ok(old) = File::at(retired.git_dir.join("index"), self.gix.object_hash(), true, options) else {
            return Err("its index cannot be read");
        };
        let is_unsure = |e: &gix::index::Entry| {
            e.flags.intersects(UNCHECKED_ENTRY_FLAGS) || e.stage() != Stage::Unconflicted
        };
        if old.entries().iter().any(is_unsure) {
            return Err(INDEX_DIFFERS);
        }
        Ok((requirement, old))
    }
}

/// Returns whether git would write an index in the format of this one: version 2 without optional extensions.
fn has_default_format(index: &File) -> bool {
    index.version() == Version::V2
        && index.untracked().is_none()
        && index.fs_monitor().is_none()
        && index.resolve_undo().is_none()
}

/// Returns whether a worktree has a special configuration, an unfinished operation or a split index.
fn has_special_state(git_dir: &Path) -> bool {
    let exists = |name: &&str| git_dir.join(name).symlink_metadata().is_ok();
    let is_shared_index =
        |entry: std::fs::DirEntry| entry.file_name().as_encoded_bytes().starts_with(b"sharedindex.");
    SPECIAL_ADMIN_FILES.iter().any(exists)
        || find_open_git_operation(git_dir).is_some()
        || std::fs::read_dir(git_dir).into_iter().flatten().flatten().any(is_shared_index)
}

impl ReusePlan {
    /// Creates a plan that removes no file and writes a new index.
    fn new(
        untracked: Vec<IncludedPath>,
        index: File,
        conversions: ConversionRules,
        requirement: CheckoutRequirement,
    ) -> ReusePlan {
        ReusePlan {
            untracked,
            index,
            conversions,
            requirement,
            stale_paths: Vec::new(),
            identical_old_index: None,
        }
    }

    /// Compares the folder's old index with the new one: copies stat data of files that stay and records
    /// files to remove. Returns the number of files to write.
    fn compare_with_old_index(&mut self, old: &File, must_rewrite: impl Fn(usize, &[u8]) -> bool) -> usize {
        let is_submodule = |at: usize| old.entries()[at].mode == Mode::COMMIT;
        let path_of = |at: usize| old.entries().get(at).map(|e| e.path(old));
        let (mut old_at, mut new_count) = (0, 0);
        for (entry, path) in self.index.entries_mut_with_paths() {
            while path_of(old_at).is_some_and(|known| known < path) {
                self.stale_paths.extend(
                    path_of(old_at).map(|known| (RepoPath::new(known.to_vec()), is_submodule(old_at))),
                );
                old_at += 1;
            }
            entry.stat = Stat::default();
            if path_of(old_at) == Some(path) {
                let known = &old.entries()[old_at];
                let is_same_blob = known.id == entry.id && known.mode == entry.mode;
                if is_same_blob && !must_rewrite(old_at, path) && !self.conversions.may_convert(path) {
                    entry.stat = known.stat;
                } else {
                    self.stale_paths.push((RepoPath::new(path.to_vec()), is_submodule(old_at)));
                }
                old_at += 1;
            }
            new_count += usize::from(entry.stat == Stat::default());
        }
        while let Some(known) = path_of(old_at) {
            self.stale_paths.push((RepoPath::new(known.to_vec()), is_submodule(old_at)));
            old_at += 1;
        }
        new_count
    }

    /// Returns a predicate for untracked paths that may stay in the worktree at `new_dir`, which has no files
    /// yet: no tracked path is at, above or below them, and git ignores them.
    pub fn untracked_filter<'a>(&'a self, new_dir: &'a Path) -> impl FnMut(&IncludedPath) -> bool {
        let mut ignored = IgnoreRules::from_index(new_dir, &self.index);
        move |item| {
            let path = item.path.as_bytes();
            let is_tracked = |path: &[u8]| self.index.entry_by_path(BStr::new(path)).is_some();
            let prefix = [path, b"/"].concat();
            let has_entries_below =
                self.index.prefixed_entries_range(prefix.as_bstr()).is_some_and(|r| !r.is_empty());
            let in_the_way = is_tracked(path)
                || has_entries_below
                || item.path.parents().any(|parent| is_tracked(parent.as_bytes()));
            !in_the_way && ignored.is_ignored(&item.path.to_fs_path(new_dir), item.is_folder)
        }
    }

    /// Turns the folder, which was moved to `dir`, into the worktree that git has on record there. Returns
    /// `None` if that failed; the folder is then empty, so that its files can be written as in any new
    /// worktree. Calls `on_progress` where git takes long.
    ///
    /// # Errors
    /// Fails if it was interrupted, or if the folder cannot be emptied.
    pub fn apply(
        &self,
        repo: &Repo,
        dir: &Path,
        should_continue: ContinueCheck<'_>,
        on_progress: OnProgress<'_>,
    ) -> Result<Option<ReuseOutcome>, Error> {
        match self.try_apply(repo, dir, should_continue, on_progress) {
            Ok(outcome) => Ok(Some(outcome)),
            Err(e) if !should_continue() => Err(e),
            Err(_) => repo.remove_populated_files(dir).map(|()| None),
        }
    }

    fn try_apply(
        &self,
        repo: &Repo,
        dir: &Path,
        should_continue: ContinueCheck<'_>,
        on_progress: OnProgress<'_>,
    ) -> Result<ReuseOutcome, Error> {
        let count = self.index.entries().len();
        if let Some(old_index) = &self.identical_old_index {
            install_index(old_index, &repo.worktree_git_dir(dir)?)?;
            return Ok(ReuseOutcome { kept: count, written: 0, git_reason: None });
        }
        self.remove_stale_files(dir)?;
        proq_base::fail_points::hit("pool.cleared");
        let targets = [dir];
        // No checkout is copied from here.
        let sizes = BlobSizes::default();
        let job = PopulateJob {
            sizes: &sizes,
            verified_sizes: Mutex::default(),
            index: &self.index,
            source: None,
            targets: &targets,
            conversions: &self.conversions,
            max_written: MAX_FILES_FROM_OBJECTS,
            written: AtomicUsize::new(0),
            copied: AtomicUsize::new(0),
        };
        let stats = write_new_files(repo, &job, should_continue)?;
        let written = job.written.into_inner();
        let unwritten = stats.iter().filter(|made| made.is_none()).count();
        let new_count = self.index.entries().iter().filter(|e| e.stat == Stat::default()).count();
        write_index(repo.sharing(), &repo.worktree_git_dir(dir)?.join("index"), &self.index, &stats, 0)?;
        let git_reason = match self.requirement {
            CheckoutRequirement::OtherIndexFormat => Some("settings require another index format"),
            _ => (unwritten > 0).then_some("filters or other line ends"),
        };
        if git_reason.is_some() {
            repo.populate_with_git(&targets, should_continue, on_progress)?;
        }
        Ok(ReuseOutcome { kept: count - new_count, written, git_reason })
    }

    /// Removes the files that the new worktree does not keep, and the directories that are empty afterwards.
    fn remove_stale_files(&self, dir: &Path) -> Result<(), Error> {
        let mut folders = BTreeSet::new();
        for (path, is_submodule) in &self.stale_paths {
            let file_path = path.to_fs_path(dir);
            let removed = if *is_submodule {
                std::fs::remove_dir(&file_path)
            } else {
                std::fs::remove_file(&file_path)
            };
            removed.map_err(Error::io("remove", &file_path))?;
            folders.extend(path.parents());
        }
        // In reverse order a nested directory comes before its parent.
        for folder in folders.iter().rev() {
            drop(std::fs::remove_dir(folder.to_fs_path(dir)));
        }
        Ok(())
    }
}

/// Writes the files of all entries without stat data, in threads. Returns the stat data of each entry, or
/// `None` where git has to write the file.
fn write_new_files(
    repo: &Repo,
    job: &PopulateJob<'_>,
    should_continue: ContinueCheck<'_>,
) -> Result<Vec<Option<Vec<Stat>>>, Error> {
    let entries = job.index.entries();
    let mut stats: Vec<Option<Vec<Stat>>> = Vec::with_capacity(entries.len());
    stats.extend(entries.iter().map(|e| (e.stat != Stat::default()).then(|| vec![e.stat])));
    let missing: Vec<usize> = (0..stats.len()).filter(|at| stats[*at].is_none()).collect();
    let chunks: Vec<&[usize]> =
        chunk_ranges(missing.len()).into_iter().map(|share| &missing[share]).collect();
    let store = repo.gix.objects.store();
    let results = parallel_map(&chunks, |chunk| -> std::io::Result<Vec<Option<Vec<Stat>>>> {
        if !should_continue() {
            return Err(std::io::ErrorKind::Interrupted.into());
        }
        let mut writer = PopulateWorker::new(job, gix::odb::Handle::from(store.to_handle_arc()))?;
        chunk.iter().map(|at| writer.create_entry(&entries[*at])).collect()
    });
    let mut positions = missing.iter();
    for result in results {
        for (stat, at) in result.map_err(Error::io("fill", job.targets[0]))?.into_iter().zip(&mut positions) {
            stats[*at] = stat;
        }
    }
    Ok(stats)
}

/// Name of a hard link, in git's folder for a worktree, to an index whose files were written byte for byte.
/// Git replaces an index and never writes into it. So the linked index stays valid for each file whose stat
/// data has not changed.
const VERBATIM_INDEX_NAME: &str = "proq-made";

/// Records that the files of an index were written byte for byte. Without this record each file's size is
/// compared with its blob.
pub(crate) fn record_verbatim_index(index: &Path) {
    let record = index.with_file_name(VERBATIM_INDEX_NAME);
    drop(std::fs::remove_file(&record));
    drop(std::fs::hard_link(index, &record));
}

/// Returns the index that [`record_verbatim_index`] saved, if there is one and it is not split.
fn read_verbatim_index(git_dir: &Path, hash: gix::hash::Kind) -> Option<File> {
    let options = gix::index::decode::Options::default();
    File::at(git_dir.join(VERBATIM_INDEX_NAME), hash, true, options).ok().filter(|f| f.link().is_none())
}

/// Copies an existing index into the git folder of a worktree.
fn install_index(index: &Path, git_dir: &Path) -> Result<(), Error> {
    let (file, lock) = (git_dir.join("index"), git_dir.join("index.lock"));
    let mut source = OpenFile::open(index).map_err(Error::io("read", index))?;
    let created = OpenFile::create_new(&lock);
    created
        .and_then(|mut target| std::io::copy(&mut source, &mut target))
        .map_err(Error::io("write", &lock))?;
    std::fs::rename(&lock, &file).map_err(Error::io("write", &file))?;
    record_verbatim_index(&file);
    Ok(())
}

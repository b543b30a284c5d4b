//! Populating of new worktrees with the files of a commit: in process from a checkout that surely has them,
//! or from the repository's objects. Git does it where the result might differ.

use std::fs::OpenOptions;
use std::io::Write;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::AtomicUsize;

use gix::index::File;
use gix::index::entry::Stat;

use super::worktree::{Worktree, WorktreeList};
use crate::base::parallel::{max_thread_count, parallel_map, parallel_map_with};
use crate::index::raw_index::edit::IndexWriter;
use crate::repository::shared_repository::Sharing;
use crate::status::stat_scan::StatScan;
use crate::{CommitId, Error, Repo, RepoPath};

pub mod blob_sizes;
pub mod conversions;
pub mod files;
pub mod folder_scan;
pub mod index_folders;
pub mod progress;
pub mod reuse;
pub mod target_index;

use blob_sizes::BlobSizes;
use conversions::{CheckoutRequirement, ConversionRules, checkout_requirement};
use files::{PopulateJob, PopulateWorker};
use target_index::TargetIndex;

use progress::{OnProgress, PopulateProgress};

/// Maximum and minimum number of entries per chunk of a thread: starting a thread takes as long as creating a
/// few files.
const MAX_ENTRIES_PER_CHUNK: usize = 512;
const MIN_ENTRIES_PER_CHUNK: usize = if cfg!(test) { 4 } else { 64 };
/// Maximum number of files created from objects; git is better for more, because it caches the objects that
/// others are packed against.
const MAX_FILES_FROM_OBJECTS: usize = 2000;

/// Maximum number of files read from a checkout because its index does not prove that they are unchanged.
/// Beyond that, checking all files is no slower.
const MAX_DOUBTFUL_FILES_READ: usize = 256;
/// Maximum number of checkouts tried as a source.
const MAX_SOURCES_TRIED: usize = 4;

/// Callback that returns whether the caller still wants the result.
pub(crate) type ContinueCheck<'a> = &'a (dyn Fn() -> bool + Sync);

/// Counts of how the files of new worktrees were created, each file counted once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PopulateOutcome {
    /// Number of files copied from another checkout.
    pub copied: usize,
    /// Number of files created from the repository's objects.
    pub written: usize,
    /// Reason for running git, if it ran: it created the other files, or checked all of them.
    pub(crate) git_reason: Option<&'static str>,
    /// Checkout that was copied from, if each of its files matches the commit at its HEAD.
    pub clean_source: Option<PathBuf>,
}

impl PopulateOutcome {
    /// Describes the counts as text.
    pub fn describe(&self) -> String {
        let PopulateOutcome { copied, written, git_reason, .. } = self;
        let mut out = Vec::new();
        if copied + written > 0 {
            out.push(format!(
                "{copied} files copied from another checkout, {written} written from git's objects"
            ));
        }
        out.extend(git_reason.map(|reason| format!("by git: {reason}")));
        out.join("; ")
    }
}

impl Repo {
    /// Populates worktrees that have neither files nor an index with the commit at their HEAD, as long as
    /// `should_continue` returns true. `sizes` is the cache of blob sizes, which is updated.
    /// `report_progress` is called when this takes long.
    ///
    /// # Errors
    /// Fails when a file cannot be written, or on cancellation. The caller has to remove the files created by
    /// then.
    pub fn populate_worktrees(
        &self,
        dirs: &[&Path],
        commit: CommitId,
        sizes: &mut BlobSizes,
        should_continue: ContinueCheck<'_>,
        report_progress: OnProgress<'_>,
    ) -> Result<PopulateOutcome, Error> {
        let mut git_reason = "the files could not be made otherwise";
        match self.populate_in_process(dirs, commit, sizes, should_continue, report_progress) {
            Ok(Ok(outcome)) => return Ok(outcome),
            Ok(Err(reason)) => git_reason = reason,
            Err(e) if !should_continue() => return Err(e),
            // Git would fail as well, after the same time.
            Err(e @ (Error::Filter { .. } | Error::NotFetched { .. })) => return Err(e),
            // On a name that the file system confuses with another, or a full disk, git reports which it is.
            Err(_) => dirs.iter().try_for_each(|dir| self.remove_populated_files(dir))?,
        }
        let result = self.populate_with_git(dirs, should_continue, report_progress);
        result.map_err(|e| self.classify_checkout_error(e, commit))?;
        Ok(PopulateOutcome { git_reason: Some(git_reason), ..PopulateOutcome::default() })
    }

    /// Creates the files that are not in the index yet with git, which applies filters and sparse patterns.
    fn populate_with_git(
        &self,
        dirs: &[&Path],
        should_continue: ContinueCheck<'_>,
        report_progress: OnProgress<'_>,
    ) -> Result<(), Error> {
        for (index, dir) in dirs.iter().enumerate() {
            let command = self.git_in(dir).args(["read-tree", "-v", "-m", "-u", "HEAD"]).mutating();
            // Git prints no progress before this delay, whose default is two seconds.
            let command = command.env("GIT_PROGRESS_DELAY", "1");
            command.run_with_progress(&|| !should_continue(), &|line| {
                PopulateProgress::from_git(line, index, dirs.len())
                    .map(|progress| report_progress(&progress))
                    .is_some()
            })?;
        }
        Ok(())
    }

    /// Populates the worktrees in process; the inner error is the reason why only git can do it, and then
    /// nothing was done.
    fn populate_in_process(
        &self,
        dirs: &[&Path],
        commit: CommitId,
        sizes: &mut BlobSizes,
        should_continue: ContinueCheck<'_>,
        report_progress: OnProgress<'_>,
    ) -> Result<Result<PopulateOutcome, &'static str>, Error> {
        let Some(first) = dirs.first() else { return Ok(Ok(PopulateOutcome::default())) };
        let requirement = checkout_requirement(self, first);
        if requirement == CheckoutRequirement::ConvertedFiles {
            return Ok(Err("settings or the system require other file formats"));
        }
        let Some((source, index)) = self.find_source(dirs, commit)? else {
            return Ok(Err("there is no other checkout to copy from"));
        };
        if requirement == CheckoutRequirement::SparseFiles && !self.have_same_sparse_patterns(&source, first)
        {
            return Ok(Err("the sparse checkouts differ"));
        }
        let entry_count = index.entries().len();
        let matches_head = index.tree().map(|tree| tree.id) == Some(self.tree_of(commit)?.0)
            && self.read_head_commit(&source) == Some(commit);
        let Some(TargetIndex(index)) =
            TargetIndex::from_index(self.tree_reader(), index, self.tree_of(commit)?)?
        else {
            return Ok(Err("the index of the other checkout has another format"));
        };
        let Some(conversions) = ConversionRules::load(self, &index)? else {
            return Ok(Err("a file with attributes cannot be read"));
        };
        let job = PopulateJob {
            index: &index,
            source: Some(&source),
            targets: dirs,
            conversions: &conversions,
            sizes,
            verified_sizes: Mutex::default(),
            max_written: max_written_files(requirement, &index),
            written: AtomicUsize::new(0),
            copied: AtomicUsize::new(0),
        };
        let stats = create_all_files(self, &job, should_continue, report_progress)?;
        let (copied, written) = (job.copied.into_inner(), job.written.into_inner());
        sizes.add(job.verified_sizes.into_inner().unwrap_or_default(), index.entries());
        let git_reason = reason_for_git(requirement, &stats);
        self.write_indexes(dirs, &index, &stats)?;
        if git_reason.is_some() {
            self.populate_with_git(dirs, should_continue, report_progress)
                .map_err(|e| self.classify_checkout_error(e, commit))?;
        }
        let matches_source = matches_head && index.entries().len() == entry_count;
        let clean_source =
            (matches_source && self.source_matches_commit(&source, commit, &index, copied)).then_some(source);
        Ok(Ok(PopulateOutcome { copied, written, git_reason, clean_source }))
    }

    /// Writes the index of each new worktree, in threads.
    fn write_indexes(&self, dirs: &[&Path], index: &File, stats: &[Option<Vec<Stat>>]) -> Result<(), Error> {
        let index_paths = dirs.iter().map(|dir| Ok(self.worktree_git_dir(dir)?.join("index")));
        let index_paths: Vec<(usize, PathBuf)> =
            index_paths.collect::<Result<Vec<_>, Error>>()?.into_iter().enumerate().collect();
        let sharing = self.sharing();
        let results = parallel_map(&index_paths, |(worktree_index, file)| {
            write_index(sharing, file, index, stats, *worktree_index)
        });
        results.into_iter().collect::<Result<(), Error>>()
    }

    /// Returns whether each file of a checkout, and its index, match `commit`. `copied` of its files were
    /// checked while copying. The others are read if `index` marks all of them as doubtful.
    fn source_matches_commit(&self, dir: &Path, commit: CommitId, index: &File, copied: usize) -> bool {
        let entries = index.entries();
        let doubtful: Vec<RepoPath> = entries
            .iter()
            .filter(|entry| entry.stat == Stat::default())
            .take(MAX_DOUBTFUL_FILES_READ + 1)
            .map(|entry| RepoPath::new(entry.path(index).to_vec()))
            .collect();
        if doubtful.len() > MAX_DOUBTFUL_FILES_READ || copied + doubtful.len() != entries.len() {
            return false;
        }
        let git_dir = self.worktree_git_dir(dir).ok();
        let scan_worktree = || git_dir.and_then(|git_dir| StatScan::with_commit(self, dir, &git_dir, commit));
        doubtful.is_empty()
            || scan_worktree().is_some_and(|scan| scan.are_unchanged_from_head(doubtful.iter()))
    }

    /// Finds the checkout that provides most files, with its index: one at this commit first, then the main
    /// checkout.
    fn find_source(&self, dirs: &[&Path], commit: CommitId) -> Result<Option<(PathBuf, File)>, Error> {
        let worktrees = WorktreeList::read(self)?;
        let mut candidates: Vec<&Worktree> = worktrees
            .iter()
            .filter(|w| !w.bare && w.prunable_reason.is_none() && !dirs.contains(&w.path.as_path()))
            .collect();
        // Any other checkout is better than none, and the others come from the main one. The HEAD of each is
        // read once: agents commit concurrently, and a sort with changing keys has no order.
        candidates.sort_by_cached_key(|w| w.head(self).ok().flatten() != Some(commit));
        for candidate in candidates.into_iter().take(MAX_SOURCES_TRIED) {
            let Ok(git_dir) = self.worktree_git_dir(&candidate.path) else { continue };
            let options = gix::index::decode::Options::default();
            if let Ok(index) = File::at(git_dir.join("index"), self.gix.object_hash(), true, options) {
                return Ok(Some((candidate.path.clone(), index)));
            }
        }
        Ok(None)
    }

    /// Removes everything that was put into a new worktree, so that git finds it as it was.
    fn remove_populated_files(&self, dir: &Path) -> Result<(), Error> {
        let git_dir = self.worktree_git_dir(dir)?;
        for file in ["index", "index.lock"] {
            drop(std::fs::remove_file(git_dir.join(file)));
        }
        let entries = std::fs::read_dir(dir).map_err(Error::io("read", dir))?;
        for entry in entries.flatten().filter(|entry| entry.file_name() != ".git") {
            let path = entry.path();
            let result = match entry.file_type() {
                Ok(kind) if kind.is_dir() => std::fs::remove_dir_all(&path),
                _ => std::fs::remove_file(&path),
            };
            result.map_err(Error::io("remove", &path))?;
        }
        Ok(())
    }
}

/// Returns the maximum number of files to create from objects. It is zero in a sparse checkout, and when more
/// than [`MAX_FILES_FROM_OBJECTS`] entries of `index` have no stat data: git then creates those files.
fn max_written_files(requirement: CheckoutRequirement, index: &File) -> usize {
    let doubtful_count = index.entries().iter().filter(|e| e.stat == Stat::default()).count();
    if requirement == CheckoutRequirement::SparseFiles || doubtful_count > MAX_FILES_FROM_OBJECTS {
        0
    } else {
        MAX_FILES_FROM_OBJECTS
    }
}

/// Returns the reason why git has to check the created files, if there is one.
fn reason_for_git(requirement: CheckoutRequirement, stats: &[Option<Vec<Stat>>]) -> Option<&'static str> {
    match requirement {
        CheckoutRequirement::SparseFiles => Some("the checkout is sparse"),
        CheckoutRequirement::OtherIndexFormat => Some("settings require another index format"),
        CheckoutRequirement::ConvertedFiles | CheckoutRequirement::Standard => {
            let is_incomplete = stats.iter().any(Option::is_none);
            is_incomplete.then_some(
                "some of them, for filters, other line ends, submodules, or too much that no checkout has",
            )
        }
    }
}

/// Estimates the length of an index in bytes: each entry takes 62 bytes and a few more besides its path.
fn estimate_index_len(index: &File) -> usize {
    index.entries().iter().map(|entry| entry.path(index).len() + 72).sum::<usize>() + (64 << 10)
}

/// Writes the index of the new worktree with position `worktree_index` to `file`: with the stat data of its
/// files, and without the entries left to git.
fn write_index(
    sharing: Sharing,
    file: &Path,
    index: &File,
    stats: &[Option<Vec<Stat>>],
    worktree_index: usize,
) -> Result<(), Error> {
    let mut writer = IndexWriter::new(index.object_hash(), estimate_index_len(index));
    for (entry, entry_stats) in index.entries().iter().zip(stats) {
        if let Some(stat) = entry_stats.as_ref().and_then(|per_worktree| per_worktree.get(worktree_index)) {
            writer.add(entry.path(index), stat, entry.mode.bits(), &entry.id);
        }
    }
    let is_complete = stats.iter().all(Option::is_some);
    let bytes = writer.finish(index.tree().filter(|_| is_complete), false)?;
    let lock = file.with_extension("lock");
    let result = OpenOptions::new().write(true).create_new(true).open(&lock);
    let result =
        result.and_then(|mut open| open.write_all(&bytes)).and_then(|()| sharing.adjust_permissions(&lock));
    result.map_err(Error::io("write", &lock))?;
    std::fs::rename(&lock, file).map_err(Error::io("write", file))?;
    reuse::record_verbatim_index(file);
    Ok(())
}

/// Splits the entries into chunks, with more chunks than threads so that no thread is left with the last one
/// alone.
fn chunk_ranges(entries: usize) -> Vec<Range<usize>> {
    let chunk_len =
        entries.div_ceil(max_thread_count() * 2).clamp(MIN_ENTRIES_PER_CHUNK, MAX_ENTRIES_PER_CHUNK);
    (0..entries).step_by(chunk_len).map(|start| start..entries.min(start + chunk_len)).collect()
}

/// Creates all files in threads. Returns the stat data of each entry in each new worktree, or `None` for an
/// entry left to git.
fn create_all_files(
    repo: &Repo,
    job: &PopulateJob<'_>,
    should_continue: ContinueCheck<'_>,
    report_progress: OnProgress<'_>,
) -> Result<Vec<Option<Vec<Stat>>>, Error> {
    let entries = job.index.entries();
    let ranges = chunk_ranges(entries.len());
    let store = repo.gix.objects.store();
    let (progress_sender, progress_receiver) = progress::progress_channel(entries, &ranges);
    let run_chunk = |range: &Range<usize>| -> std::io::Result<Vec<Option<Vec<Stat>>>> {
        let _progress_guard = progress_sender.start_chunk(range);
        proq_base::fail_points::hit("fill.part");
        if !should_continue() {
            return Err(std::io::ErrorKind::Interrupted.into());
        }
        let mut worker = PopulateWorker::new(job, gix::odb::Handle::from(store.to_handle_arc()))?;
        let chunk_stats = entries[range.clone()].iter().map(|entry| worker.create_entry(entry)).collect();
        worker.save_verified_sizes();
        chunk_stats
    };
    let results = match ranges.len() {
        0 | 1 => ranges.iter().map(run_chunk).collect(),
        _ => {
            parallel_map_with(ranges.iter(), run_chunk, || {
                progress_receiver.report_until_done(report_progress);
            })
            .0
        }
    };
    let mut stats = Vec::with_capacity(entries.len());
    for chunk in results {
        stats.extend(chunk.map_err(Error::io("fill", job.targets[0]))?);
    }
    Ok(stats)
}

#[cfg(test)]
mod tests;

//! Cheap summary of a worktree's uncommitted state, to detect a change since the last reading.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::index::index_lock::FileVersion;
use crate::index::raw_index::RawIndex;
use crate::status::stat_scan::StatScan;
use crate::status::status_query::query_git_status;
use crate::status::worktree_scan::query_ignored;
use crate::{Error, Repo, RepoPath};

/// Summary of the uncommitted state of a worktree at one moment.
#[derive(Debug)]
pub struct WorktreeStamp {
    /// Hash of HEAD, the index entries and the stat data of every differing file. Two equal values mean that
    /// none of them changed.
    pub state_hash: u64,
    /// Ignored files and folders; a folder stands for everything in it.
    pub ignored: Vec<RepoPath>,
}

impl WorktreeStamp {
    /// Reads the stamp of the worktree whose top is `dir`. A file is hashed by its mode, size, inode and
    /// times (of content and of last change, in nanoseconds). The index is hashed by the content of its
    /// entries: a refresh by git changes nothing.
    ///
    /// No git process is started, unless the worktree has entries that only git can judge (skip-worktree
    /// entries, submodules, nested repositories).
    ///
    /// # Errors
    /// Fails if git has to be started and fails.
    pub fn read(repo: &Repo, dir: &Path, git_dir: &Path) -> Result<WorktreeStamp, Error> {
        let index = git_dir.join("index");
        let in_process = StatScan::open(repo, dir).and_then(|scan| scan.compare_with_index());
        let (dirty_entries, mut ignored) = match in_process {
            Some((entries, untracked)) => (entries, untracked.ignored),
            None => (query_git_status(repo.program(), dir, true)?.entries, query_ignored(repo, dir)?),
        };
        let mut dirty_paths: Vec<RepoPath> = dirty_entries.into_iter().map(|entry| entry.path).collect();
        dirty_paths.sort();
        ignored.sort();
        let mut hasher = DefaultHasher::new();
        repo.head_commit(dir)?.map(|head| head.to_string()).hash(&mut hasher);
        match RawIndex::read(&index, repo.gix.object_hash()) {
            Some(entries) => hash_entries(&entries, &mut hasher),
            None => FileVersion::read(&index)?.hash(&mut hasher),
        }
        for path in &dirty_paths {
            hash_file(&path.to_fs_path(dir), &mut hasher);
        }
        Ok(WorktreeStamp { state_hash: hasher.finish(), ignored })
    }
}

fn hash_entries(entries: &RawIndex, hasher: &mut DefaultHasher) {
    for at in entries.entry_offsets() {
        let entry = entries.entry(*at);
        (entry.path(), entry.mode(), entry.id(), entry.is_compared_by_git()).hash(hasher);
    }
}

/// Hashes the name of a file and its `lstat` data.
fn hash_file(file: &Path, hasher: &mut DefaultHasher) {
    file.hash(hasher);
    if let Ok(meta) = file.symlink_metadata() {
        (meta.mode(), meta.size(), meta.ino()).hash(hasher);
        (meta.mtime(), meta.mtime_nsec(), meta.ctime(), meta.ctime_nsec()).hash(hasher);
    }
}

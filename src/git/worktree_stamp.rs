//! Owns a cheap summary of what is uncommitted in a worktree, from which a change since the last reading is known.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::entries::Entries;
use super::glance::Glance;
use super::index::Version;
use super::seen::ignored_by_git;
use super::status::ask;
use super::{Error, Repo, RepoPath};

/// What is uncommitted in a worktree at one moment.
#[derive(Debug)]
pub(crate) struct WorktreeStamp {
    /// Equal for two readings between which HEAD, the staged content and every file that differs stayed the same.
    pub(crate) value: u64,
    /// Ignored files and folders; a folder stands for all that is in it.
    pub(crate) ignored: Vec<RepoPath>,
}

impl WorktreeStamp {
    /// Reads the stamp of the worktree whose top is `dir`. A file counts by its mode, size, inode and times (of its content and
    /// of its last change, in nanoseconds), the index by what its entries name: that git refreshed it changes nothing.
    ///
    /// No git process is started, unless the worktree has something in it that only git can judge (skip-worktree entries,
    /// submodules, nested repositories).
    ///
    /// # Errors
    /// Whatever git says where it had to be started.
    pub(crate) fn read(repo: &Repo, dir: &Path, git_dir: &Path) -> Result<WorktreeStamp, Error> {
        let index = git_dir.join("index");
        let in_process = Glance::at(repo, dir).and_then(|glance| glance.finds_all_beside_index());
        let (dirty, mut ignored) = match in_process {
            Some((entries, beside)) => (entries, beside.ignored),
            None => (ask(repo.program(), dir, true)?.entries, ignored_by_git(repo, dir)?),
        };
        let mut dirty: Vec<RepoPath> = dirty.into_iter().map(|entry| entry.path).collect();
        dirty.sort();
        ignored.sort();
        let mut hasher = DefaultHasher::new();
        repo.head_of(dir)?.map(|head| head.to_string()).hash(&mut hasher);
        match Entries::read(&index, repo.gix.object_hash()) {
            Some(entries) => hash_entries(&entries, &mut hasher),
            None => Version::of(&index)?.hash(&mut hasher),
        }
        for path in &dirty {
            hash_file(&path.under(dir), &mut hasher);
        }
        Ok(WorktreeStamp { value: hasher.finish(), ignored })
    }
}

fn hash_entries(entries: &Entries, hasher: &mut DefaultHasher) {
    for at in entries.all() {
        let entry = entries.entry(*at);
        (entry.path(), entry.mode(), entry.id(), entry.is_seen()).hash(hasher);
    }
}

/// Adds the name of a file and what `lstat` answers of it.
fn hash_file(file: &Path, hasher: &mut DefaultHasher) {
    file.hash(hasher);
    if let Ok(meta) = file.symlink_metadata() {
        (meta.mode(), meta.size(), meta.ino()).hash(hasher);
        (meta.mtime(), meta.mtime_nsec(), meta.ctime(), meta.ctime_nsec()).hash(hasher);
    }
}

//! Stat scan of a worktree: comparison of its files with the index by stat data.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::folder_stamps::FolderStamps;
use super::status_walk::{OPEN_FOLDER_FLAGS, StatusWalk, UntrackedContent};
use super::worktree_status::{StatusEntry, StatusKind};
use crate::index::raw_index::RawIndex;
use crate::repository::tree_reader::TreeReader;
use crate::{CommitId, Repo, RepoPath};

/// Inputs of a stat scan of one worktree: its paths, the tree of HEAD and the object database.
#[derive(Clone)]
pub(crate) struct StatScan {
    dir: PathBuf,
    index: PathBuf,
    /// Tree that counts as HEAD's: that of HEAD's commit, or of the commit given in its place.
    head_tree: gix::ObjectId,
    hash: gix::hash::Kind,
    objects: gix::OdbHandle,
    /// Whether names with different spelling may name the same file, by case or Unicode form.
    folds_names: bool,
}

impl StatScan {
    /// Prepares a scan of the worktree at `dir`. Returns `None` if only git can read its state.
    pub fn open(repo: &Repo, dir: &Path) -> Option<StatScan> {
        let git_dir = repo.worktree_git_dir(dir).ok()?;
        StatScan::with_commit(repo, dir, &git_dir, repo.read_head_commit_in(dir, &git_dir)?)
    }

    /// Prepares a scan with `commit` in place of HEAD. `git_dir` is the git directory of the worktree.
    pub(crate) fn with_commit(repo: &Repo, dir: &Path, git_dir: &Path, commit: CommitId) -> Option<StatScan> {
        let head = repo.tree_of(commit).ok()?.0;
        let folding_settings = ["core.ignoreCase", "core.precomposeUnicode"];
        let folds_names = folding_settings.iter().any(|key| repo.setting_bool(key) == Some(true));
        let index = git_dir.join("index");
        let (hash, objects) = (repo.gix.object_hash(), repo.gix.objects.clone());
        Some(StatScan { dir: dir.to_owned(), index, head_tree: head, hash, objects, folds_names })
    }

    /// Returns whether the index holds HEAD's tree and each file matches the index. With `check_untracked`,
    /// untracked files must be absent too. Returns false also where this is not certain, as with flagged
    /// files and submodules. `use_threads` divides the walk among threads.
    ///
    /// A file counts as unchanged by the rules of git's `Documentation/technical/racy-git.txt`: its times,
    /// size, owner and inode are those in the index, and the index was written in a later second. Otherwise
    /// the file is read.
    pub fn is_clean(&self, check_untracked: bool, use_threads: bool) -> bool {
        let Some(index) = self.read_index_matching_head() else { return false };
        StatusWalk::new(&self.dir, &index, check_untracked).confirm_clean(use_threads)
    }

    /// Returns the differences from HEAD, including untracked files; `None` if a part of the result is
    /// uncertain. `saved_stamps` are the folder stamps that an earlier scan saved, and `now` is the start
    /// time. The second value is the folder stamps to save; `None` if saving is not worthwhile.
    pub(crate) fn find_changes(
        &self,
        saved_stamps: Option<Vec<u8>>,
        now: SystemTime,
    ) -> (Option<Vec<StatusEntry>>, Option<Vec<u8>>) {
        let Some(index) = self.read_index_matching_head() else { return (None, None) };
        let top = rustix::fs::open(&self.dir, OPEN_FOLDER_FLAGS, rustix::fs::Mode::empty());
        let mut folders = top.ok().and_then(|top| FolderStamps::new(saved_stamps, self.head_tree, top, now));
        let found = StatusWalk::new(&self.dir, &index, true).list_changes(&mut folders);
        let found = found.filter(|found| self.are_names_reliable(found));
        let new_stamps = found.as_ref().and(folders.as_ref()).and_then(FolderStamps::to_bytes);
        (found, new_stamps)
    }

    /// Returns the differences from HEAD, the ignored and untracked content next to tracked files, and
    /// whether the index can be rewritten in its own format. Reads every folder. Returns `None` if a part of
    /// the result is uncertain.
    pub(crate) fn find_changes_and_untracked(&self) -> Option<(Vec<StatusEntry>, UntrackedContent, bool)> {
        let index = self.read_index_matching_head()?;
        let (found, other_files) = StatusWalk::new(&self.dir, &index, true).list_changes_and_untracked()?;
        self.are_names_reliable(&found).then(|| (found, other_files, index.is_rewritable()))
    }

    /// Returns the differences from the index, including untracked files, and the ignored and untracked
    /// content next to tracked files. The index need not hold HEAD's tree. Returns `None` if a part of the
    /// result is uncertain.
    pub(crate) fn compare_with_index(&self) -> Option<(Vec<StatusEntry>, UntrackedContent)> {
        let index = RawIndex::read(&self.index, self.hash)?;
        let (found, other_files) = StatusWalk::new(&self.dir, &index, true).list_changes_and_untracked()?;
        (self.are_names_reliable(&found) && !other_files.has_nested_ignored).then_some((found, other_files))
    }

    /// Returns whether the names in `found` are reliable. If the file system may fold names, a missing or
    /// untracked name may be another spelling of a tracked one.
    fn are_names_reliable(&self, found: &[StatusEntry]) -> bool {
        let has_unsure_name = |e: &StatusEntry| !matches!(e.kind, StatusKind::Tracked { deleted: false, .. });
        !(self.folds_names && found.iter().any(has_unsure_name))
    }

    /// Reads the index; none if it cannot be read or does not certainly equal HEAD's tree.
    fn read_index_matching_head(&self) -> Option<RawIndex> {
        let reader = || TreeReader::new(self.objects.clone());
        RawIndex::read(&self.index, self.hash).filter(|index| index.equals_tree(self.head_tree, reader))
    }

    /// Returns whether the index equals HEAD's tree and has no flagged entries, and the files of its entries
    /// at `paths` are unchanged. Files at other paths are not checked.
    pub(crate) fn are_unchanged_from_head<'p>(&self, paths: impl Iterator<Item = &'p RepoPath>) -> bool {
        let Some(index) = self.read_index_matching_head() else { return false };
        if !index.entry_offsets().iter().all(|at| index.entry(*at).is_compared_by_git()) {
            return false;
        }
        let walk = StatusWalk::new(&self.dir, &index, false);
        let mut entries = paths.filter_map(|path| index.find(path.as_bytes()));
        entries.all(|entry| walk.is_unchanged(entry))
    }
}

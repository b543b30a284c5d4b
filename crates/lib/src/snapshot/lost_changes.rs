//! Detection of lost changes: contents of an automatic snapshot that are no longer in its worktree, reported
//! as an event.

use std::collections::BTreeSet;
use std::path::Path;

use proq_git::base::error::list_paths;
use proq_git::history::tree_diff;
use proq_git::history::tree_diff::{TreeChange, tree_changes};
use proq_git::references::reflog;
use proq_git::status::status_query::status;
use proq_git::status::worktree_status::WorktreeStatus;
use proq_git::{CommitId, Oid, Repo, RepoPath, TreeId};
use proq_store::records::snapshot::SnapshotRecord;

use super::auto_snapshot::WatchedWorktree;
use crate::event::log::{Event, EventName};
use crate::lane::parking::snapshot_store;
use crate::lane::{Error, Project};

impl WatchedWorktree<'_> {
    /// Emits an event if the worktree has lost content of the snapshot `id`. `git_dir` is `None` if the
    /// entire worktree is missing.
    pub(crate) fn report_loss(
        &self,
        project: &Project,
        id: &str,
        git_dir: Option<&Path>,
    ) -> Result<(), Error> {
        let Some(record) = project.find_any_snap(id)? else { return Ok(()) };
        let lost = self.lost_paths(&project.repo, &record, git_dir.is_some())?;
        if lost.is_empty() {
            return Ok(());
        }
        snapshot_store::mark_named_by_event(&project.store, id)?;
        let summary = match git_dir {
            Some(_) => {
                format!("uncommitted changes in {} are lost: {}", self.describe_worktree(), list_paths(&lost))
            }
            None => format!(
                "the folder of {} is gone with uncommitted changes: {}",
                self.describe_worktree(),
                list_paths(&lost)
            ),
        };
        let message = format!("{summary}; restore them: git proq snap restore {id}");
        let mut event = Event::new(EventName::ChangesLost, message);
        event.lane = self.lane.map(|lane| lane.name.to_string());
        event.paths = lost;
        project.emit_event(event);
        Ok(())
    }

    /// Returns the files of a snapshot whose content is no longer in the worktree. Either the file is
    /// missing, or it is as in HEAD, which has other content. A file that was written again since the
    /// snapshot, or that a commit changed, counts as edited and is not lost.
    fn lost_paths(
        &self,
        repo: &Repo,
        record: &SnapshotRecord,
        has_worktree: bool,
    ) -> Result<Vec<RepoPath>, Error> {
        let snapshot = &record.snapshot;
        let (head, dirty) = match has_worktree {
            true => (repo.head_commit(self.dir)?, status(repo, self.dir, true)?),
            // Later commits of a missing worktree are on its branch.
            false => (
                self.lane.map_or(Ok(None), |lane| repo.branch_tip(&lane.kind.branch))?,
                WorktreeStatus::default(),
            ),
        };
        let head = head.unwrap_or(snapshot.head_commit);
        let mut edited = if has_worktree {
            self.paths_committed_since(repo, snapshot.head_commit, head)?
        } else {
            BTreeSet::new()
        };
        let staged: BTreeSet<RepoPath> = dirty.staged().map(|entry| entry.path.clone()).collect();
        let mut lost: BTreeSet<RepoPath> = BTreeSet::new();
        // The staged content of a file with a different worktree content existed only in the index.
        let (index_only, not_in_head) = (
            changed_paths(repo, snapshot.work_tree, snapshot.index_tree)?,
            changed_paths(repo, head, snapshot.index_tree)?,
        );
        for change in changes_with_content(repo, snapshot.head_commit, snapshot.index_tree)? {
            let is_reset = index_only.contains(&change.path) && not_in_head.contains(&change.path);
            let is_edited = staged.contains(&change.path) || edited.contains(&change.path);
            if is_reset && !is_edited && !self.has_content_of(repo, &change) {
                lost.insert(change.path);
            }
        }
        edited.extend(dirty.paths());
        let not_in_head = changed_paths(repo, head, snapshot.work_tree)?;
        for change in changes_with_content(repo, snapshot.head_commit, snapshot.work_tree)? {
            let is_reverted = !edited.contains(&change.path) && not_in_head.contains(&change.path);
            if is_reverted || has_worktree && self.is_file_missing(&change.path) {
                lost.insert(change.path);
            }
        }
        if let Some(tree) = snapshot.untracked_tree {
            lost.extend(self.lost_untracked_paths(repo, tree, head, &edited, has_worktree)?);
        }
        let ignored = record.automatic.iter().flat_map(|automatic| automatic.copied_ignored_files.iter());
        lost.extend(ignored.filter(|path| self.is_file_missing(path)).cloned());
        Ok(lost.into_iter().collect())
    }

    /// Returns the files of `tree`, the untracked files of a snapshot, whose content is no longer in the
    /// worktree: the file is missing, or HEAD has other content at its path and the file was not `edited`.
    /// Without a worktree, content that HEAD has too is not lost.
    fn lost_untracked_paths(
        &self,
        repo: &Repo,
        tree: TreeId,
        head: CommitId,
        edited: &BTreeSet<RepoPath>,
        has_worktree: bool,
    ) -> Result<Vec<RepoPath>, Error> {
        let is_replaced = |change: &TreeChange| change.old.is_some() && !edited.contains(&change.path);
        let replaced =
            changes_with_content(repo, head, tree)?.into_iter().filter(is_replaced).map(|change| change.path);
        let mut lost: Vec<RepoPath> = replaced.collect();
        let files = tree_diff::tree_paths(repo, tree)?;
        let not_in_head = changed_paths(repo, head, tree)?;
        let is_lost =
            |path: &RepoPath| self.is_file_missing(path) && (has_worktree || not_in_head.contains(path));
        lost.extend(files.into_iter().filter(is_lost));
        Ok(lost)
    }

    /// Returns whether there is no file at a path. A folder with a `.git` is a submodule and counts as a
    /// file.
    fn is_file_missing(&self, path: &RepoPath) -> bool {
        let file = path.to_fs_path(self.dir);
        file.symlink_metadata().is_err() || (is_folder(&file) && !file.join(".git").exists())
    }

    /// Returns whether the file at the path of `change` has the new content of that change.
    fn has_content_of(&self, repo: &Repo, change: &TreeChange) -> bool {
        let bytes = std::fs::read(change.path.to_fs_path(self.dir)).ok();
        let id = bytes.and_then(|bytes| repo.blob_id(&bytes));
        id.is_some_and(|id| change.new.is_some_and(|side| side.oid == id.oid()))
    }

    /// Returns the files changed by commits that were created in the worktree since it was at `base`.
    fn paths_committed_since(
        &self,
        repo: &Repo,
        base: CommitId,
        head: CommitId,
    ) -> Result<BTreeSet<RepoPath>, Error> {
        if head == base {
            return Ok(BTreeSet::new());
        }
        let moves = repo.reflog(self.dir, "HEAD")?;
        let base_position = moves.iter().position(|step| step.new_id == base).unwrap_or(0);
        if !moves[..base_position].iter().any(reflog::ReflogEntry::creates_commit) {
            return Ok(BTreeSet::new());
        }
        Ok(tree_changes(repo, base, head)?.into_iter().map(|change| change.path).collect())
    }
}

/// Returns the changes between two trees, without deletions.
fn changes_with_content(
    repo: &Repo,
    from: impl Into<Oid>,
    to: impl Into<Oid>,
) -> Result<Vec<TreeChange>, Error> {
    Ok(tree_changes(repo, from, to)?.into_iter().filter(|change| change.new.is_some()).collect())
}

/// Returns the paths that have other content in tree `to` than in tree `from`.
fn changed_paths(repo: &Repo, from: impl Into<Oid>, to: impl Into<Oid>) -> Result<BTreeSet<RepoPath>, Error> {
    Ok(changes_with_content(repo, from, to)?.into_iter().map(|change| change.path).collect())
}

fn is_folder(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|meta| meta.is_dir())
}

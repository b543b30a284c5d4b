//! Commit of the changes of an in-place run, with plain git and the main checkout's own index, as a user
//! would do it.

use std::collections::BTreeSet;

use proq_base::fail_points;
use proq_base::interrupt::StopFlag;
use proq_git::base::error;
use proq_git::index::staged_entries::StagedEntries;
use proq_git::repository::open_operation;
use proq_git::status::worktree_status::{StatusEntry, StatusKind, WorktreeStatus};
use proq_git::status::{staged_commit, status_query};
use proq_git::{CommitId, RepoPath};

use super::in_place_finish::InPlaceFinisher;
use crate::lane::Error;
use crate::lane::state::in_place_guard::checked_out_branch;
use crate::run::leftovers::uncommittable_reason;

/// Maximum number of attempts to stage and commit while files appear and disappear concurrently.
const MAX_COMMIT_ATTEMPTS: u32 = 3;

impl InPlaceFinisher<'_> {
    /// Returns the paths that changed since the run started, split into those that git can commit and
    /// embedded repositories, which it cannot.
    pub(crate) fn split_committable(&self, dirty: &WorktreeStatus) -> (Vec<RepoPath>, Vec<RepoPath>) {
        let nested: BTreeSet<&RepoPath> =
            dirty.entries.iter().filter(|e| e.is_nested_repo).map(|e| &e.path).collect();
        self.run_changes(dirty).into_iter().partition(|path| !nested.contains(path))
    }

    /// Returns the reason why nothing can be committed, if there is one.
    pub(crate) fn commit_blocker(
        &self,
        dirty: &WorktreeStatus,
        paths: &[RepoPath],
    ) -> Result<Option<String>, Error> {
        let git_dir = self.project.repo.worktree_git_dir(&self.lane.path)?;
        // Compared with a missing index, all files would appear deleted.
        if !git_dir.join("index").exists() {
            let reason =
                "git's index is missing there, so its changes are not committed; create it again: git reset";
            return Ok(Some(reason.to_owned()));
        }
        if let Some(git_operation) = open_operation::find_open_git_operation(&git_dir) {
            return Ok(Some(format!(
                "a {} is in progress there, so its changes are not committed",
                git_operation.command
            )));
        }
        let unmerged = dirty.unmerged();
        if !unmerged.is_empty() {
            let names = error::list_paths(&unmerged);
            return Ok(Some(format!(
                "it has unresolved conflicts, so its changes are not committed: {names}"
            )));
        }
        let reasons: Vec<String> = paths
            .iter()
            .filter_map(|path| uncommittable_reason(&self.project.settings, self.lane, path))
            .collect();
        Ok((!reasons.is_empty()).then(|| format!("its changes are not committed: {}", reasons.join("; "))))
    }

    /// Stages and commits `paths`. Where git refuses, the index entries of these paths are restored.
    pub fn commit_paths(&mut self, head: CommitId, paths: &[RepoPath], message: &str) -> Result<(), Error> {
        let (repo, dir) = (&self.project.repo, &self.lane.path);
        let mut paths = paths.to_vec();
        for attempts_left in (0..MAX_COMMIT_ATTEMPTS).rev() {
            let index_before = StagedEntries::read(repo, dir, &paths)?;
            fail_points::hit("in-place.looked");
            let stage_result = self.stage(&paths);
            fail_points::hit("in-place.staged");
            let index_after = StagedEntries::read(repo, dir, &paths)?;
            let may_retry = stage_result.is_err() && attempts_left > 0;
            let Err(e) = stage_result.and_then(|()| self.commit_staged(head, &paths, message)) else {
                return self.report_misplaced_commit(head);
            };
            if repo.head_commit(dir)? != Some(head) {
                // The new commit may contain what is staged here, and restoring the index would stage its
                // reversal.
                let old_head = head.short();
                self.add_note(format!(
                    "git failed, and HEAD has moved meanwhile, so the index was not changed: git log {old_head}.. ({e})"
                ));
                return Ok(());
            }
            let restore_result = index_before.restore(repo, dir, &index_after);
            let dirty = self.status()?;
            let (remaining, _) = self.split_committable(&dirty);
            // A file may have disappeared since the paths were listed.
            if may_retry
                && remaining != paths
                && !remaining.is_empty()
                && self.commit_blocker(&dirty, &remaining)?.is_none()
            {
                paths = remaining;
                continue;
            }
            self.add_note(format!(
                "its changes are not committed: {}; git refused: {e}",
                error::list_paths(&paths)
            ));
            match restore_result {
                Ok(others) if others.is_empty() => {}
                Ok(others) => {
                    self.add_note(format!(
                        "staged by another program meanwhile, and left staged: {}",
                        error::list_paths(&others)
                    ));
                }
                Err(e) if index_after != index_before => {
                    self.add_note(format!("its files are still staged: {e}"));
                }
                Err(_) => {}
            }
            return Ok(());
        }
        Ok(())
    }

    /// Stages those of `paths` that are not fully staged yet.
    fn stage(&self, paths: &[RepoPath]) -> Result<(), Error> {
        Ok(staged_commit::stage_paths(&self.project.repo, &self.lane.path, &self.not_fully_staged(paths)?)?)
    }

    /// Commits what is staged. Refuses if it contains the user's files, or if HEAD is on another branch than
    /// the run's.
    fn commit_staged(&mut self, head: CommitId, paths: &[RepoPath], message: &str) -> Result<(), Error> {
        let (repo, dir) = (&self.project.repo, &self.lane.path);
        // A path that was a file when the paths were listed may be a folder with the user's files now.
        let dirty = status_query::status(repo, dir, false)?;
        let user_paths = self.staged_user_files(&dirty);
        if !user_paths.is_empty() {
            let reason = format!("it would include files of yours: {}", error::list_paths(&user_paths));
            return Err(Error::InPlaceRefused { reason, hints: Vec::new() });
        }
        let branch = checked_out_branch(&self.project.repo, dir)?;
        if branch.as_ref() != Some(&self.lane.base) {
            let branch_shown = branch.unwrap_or_else(|| "no branch".to_owned());
            return Err(Error::InPlaceRefused {
                reason: format!("the main checkout is on {branch_shown} now"),
                hints: Vec::new(),
            });
        }
        let is_inside = |e: &&StatusEntry| e.is_only_inside_submodule() && paths.contains(&e.path);
        let submodule_paths: Vec<RepoPath> =
            dirty.entries.iter().filter(is_inside).map(|e| e.path.clone()).collect();
        if !submodule_paths.is_empty() {
            self.add_note(format!(
                "its changes inside submodules are not committed: {}",
                error::list_paths(&submodule_paths)
            ));
        }
        // Only mtimes or line endings may have differed.
        if !repo.index_matches(dir, head)? {
            let interrupt = StopFlag::register();
            staged_commit::commit_staged(repo, dir, message, &|| interrupt.is_set())?;
            fail_points::hit("in-place.committed");
        }
        Ok(())
    }

    /// Returns those of `paths` that still have to be staged. Leaves out fully staged paths, also those
    /// removed from git and ignored since. A path below another one of `paths` is staged together with that
    /// one.
    fn not_fully_staged(&self, paths: &[RepoPath]) -> Result<Vec<RepoPath>, Error> {
        let dirty = self.status()?;
        let is_fully_staged =
            |e: &&StatusEntry| matches!(e.kind, StatusKind::Tracked { staged: true, unstaged: false, .. });
        let mut staged_paths: BTreeSet<&RepoPath> =
            dirty.entries.iter().filter(is_fully_staged).map(|e| &e.path).collect();
        for entry in dirty.untracked() {
            staged_paths.remove(&entry.path);
        }
        let path_set: BTreeSet<&RepoPath> = paths.iter().collect();
        let is_below = |path: &RepoPath| path.parents().any(|up| path_set.contains(&up));
        Ok(paths.iter().filter(|path| !staged_paths.contains(path) && !is_below(path)).cloned().collect())
    }

    /// Adds a note when the commit is not on the expected branch or parent: plain git takes no lock of
    /// git-proq.
    fn report_misplaced_commit(&mut self, head: CommitId) -> Result<(), Error> {
        let (repo, dir) = (&self.project.repo, &self.lane.path);
        let Some(tip) = repo.head_commit(dir)?.filter(|tip| *tip != head) else { return Ok(()) };
        let branch = checked_out_branch(&self.project.repo, dir)?;
        if branch.as_ref() != Some(&self.lane.base) {
            let branch_shown = branch.unwrap_or_else(|| "no branch".to_owned());
            self.add_note(format!(
                "another program switched to {branch_shown} meanwhile, so its changes are committed there: git show {}",
                tip.short()
            ));
        } else if repo.require_commit(&format!("{tip}^")).ok() != Some(head) {
            self.add_note(format!(
                "another program committed meanwhile: git log {}..",
                head.short_in_command()
            ));
        }
        Ok(())
    }
}

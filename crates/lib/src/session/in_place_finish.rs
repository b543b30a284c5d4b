//! End of an in-place run: commits what the run changed in the main checkout and nothing else, and reports
//! everything that is not committed.
//!
//! The commit uses the existing index and the git program, as a user would. A kill at any moment leaves what
//! a user's git command would leave: staged files, or a commit.

use proq_base::fail_points;
use proq_git::base::error;
use proq_git::history::tree_diff;
use proq_git::status::status_query;
use proq_git::status::worktree_status::WorktreeStatus;
use proq_git::{CommitId, RepoPath};
use proq_store::base::record::Record;
use proq_store::operations::operation_entry::OperationHeader;
use proq_store::records::baseline::{CheckoutBaseline, DirtyFile};
use proq_store::records::lane::AnyLane;
use proq_store::records::run::RunRecord;

use super::in_place_baseline::UserFiles;
use super::record_agent_commits::RecordAgentCommits;
use crate::lane::state::in_place_guard::checked_out_branch;
use crate::lane::{Error, Project};
use crate::operation::run_operation::operate_with_header;

/// Result of finishing a run in the main checkout.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[must_use]
pub(crate) struct InPlaceOutcome {
    /// Whether the checkout or its branch changed during the run, whoever changed it.
    pub changed: bool,
    /// Branch that the checkout is on, where that is not the branch that the run works on.
    pub(crate) unexpected_branch: Option<String>,
    /// Notes for the user, one phrase each.
    pub notes: Vec<String>,
}

/// Returns whether the main checkout differs from its state before a run, whoever changed it.
///
/// # Errors
/// Fails when the checkout or the run's baseline cannot be read.
pub(crate) fn has_in_place_changes(
    project: &Project,
    lane: &AnyLane,
    run: &RunRecord,
) -> Result<bool, Error> {
    let baseline =
        CheckoutBaseline::load(&project.store.layout().run_checkout_baseline(&lane.name, run.number))?;
    let finisher = InPlaceFinisher::new(project, lane, run, &baseline);
    let moved = project.repo.head_commit(&lane.path)? != Some(run.tip_before);
    let dirty = finisher.status()?;
    Ok(moved
        || !finisher.run_changes(&dirty).is_empty()
        || !finisher.user_files.changed_files(&dirty).is_empty())
}

/// Commits what a run changed in the main checkout with `message`, and records how its branch moved, for an
/// undo. Files with uncommitted changes from before the run, and ignored files, stay as they are. Without a
/// message nothing is committed.
///
/// # Errors
/// Fails when the checkout cannot be read. The run's changes are left uncommitted then.
pub(crate) fn finish_in_place_run(
    project: &Project,
    lane: &AnyLane,
    run: &RunRecord,
    message: Option<&str>,
) -> Result<InPlaceOutcome, Error> {
    let baseline =
        CheckoutBaseline::load(&project.store.layout().run_checkout_baseline(&lane.name, run.number))?;
    let mut finisher = InPlaceFinisher::new(project, lane, run, &baseline);
    let commit_result = finisher.commit_run_changes(message);
    // The branch's move is recorded even when the commit failed.
    let record_result = finisher.record_branch_move();
    commit_result?;
    record_result?;
    Ok(finisher.outcome)
}

/// Work at the end of an in-place run: its commit, the record of its branch move, and notes for the user.
pub(crate) struct InPlaceFinisher<'a> {
    pub project: &'a Project,
    pub lane: &'a AnyLane,
    run: &'a RunRecord,
    baseline: &'a CheckoutBaseline,
    user_files: UserFiles<'a>,
    outcome: InPlaceOutcome,
}

impl<'a> InPlaceFinisher<'a> {
    fn new(
        project: &'a Project,
        lane: &'a AnyLane,
        run: &'a RunRecord,
        baseline: &'a CheckoutBaseline,
    ) -> InPlaceFinisher<'a> {
        let user_files = UserFiles::new(&lane.path, baseline);
        InPlaceFinisher { project, lane, run, baseline, user_files, outcome: InPlaceOutcome::default() }
    }

    pub fn add_note(&mut self, text: String) {
        self.outcome.notes.push(text);
    }

    /// Returns the current status of the main checkout, with untracked files.
    pub fn status(&self) -> Result<WorktreeStatus, Error> {
        Ok(status_query::status(&self.project.repo, &self.lane.path, true)?)
    }

    /// Returns the uncommitted paths that changed since the run started, by whomever, without the user's
    /// files.
    pub(crate) fn run_changes(&self, dirty: &WorktreeStatus) -> Vec<RepoPath> {
        dirty.paths().into_iter().filter(|path| !self.user_files.contains(path)).collect()
    }

    /// Returns the user's files that are staged now and were not staged before the run.
    pub(crate) fn staged_user_files(&self, dirty: &WorktreeStatus) -> Vec<RepoPath> {
        dirty
            .staged()
            .map(|entry| &entry.path)
            .filter(|path| self.user_files.contains(path))
            .cloned()
            .collect()
    }

    fn commit_run_changes(&mut self, message: Option<&str>) -> Result<(), Error> {
        let (repo, dir, base) = (&self.project.repo, &self.lane.path, &self.lane.base);
        let (branch, head) = (checked_out_branch(&self.project.repo, dir)?, repo.head_commit(dir)?);
        let dirty = self.status()?;
        let changed_user_files = self.user_files.changed_files(&dirty);
        let (paths, nested) = self.split_committable(&dirty);
        self.outcome.changed = !paths.is_empty()
            || !nested.is_empty()
            || !changed_user_files.is_empty()
            || head != Some(self.run.tip_before);
        self.note_changed_user_files(&changed_user_files);
        if !nested.is_empty() {
            let names = error::list_paths(&nested);
            self.add_note(format!("not committed, because they are separate repositories: {names}"));
        }
        let Some(head) = head.filter(|_| branch.as_ref() == Some(base)) else {
            self.outcome.unexpected_branch = Some(branch.unwrap_or_else(|| "no branch".to_owned()));
            return Ok(());
        };
        let staged = self.staged_user_files(&dirty);
        if !staged.is_empty() {
            self.outcome.changed = true;
            self.add_note(format!(
                "files that had changes of yours before are staged now, and nothing is committed for it: {}; to unstage all, as it is: \
                 git reset",
                error::list_paths(&staged)
            ));
        } else if !paths.is_empty() {
            match (self.commit_blocker(&dirty, &paths)?, message) {
                (Some(reason), _) => self.add_note(reason),
                (None, None) => self.add_note(format!("it left uncommitted: {}", error::list_paths(&paths))),
                (None, Some(message)) => self.commit_paths(head, &paths, message)?,
            }
        }
        Ok(())
    }

    /// Returns a hint with the command that shows the state of `paths` before the run.
    fn baseline_hint(&self, paths: &[RepoPath]) -> String {
        // A snapshot contains no ignored files.
        let baseline_files = self.baseline.dirty_files.iter().filter(|file| paths.contains(&file.path));
        let (unread, readable): (Vec<&DirtyFile>, Vec<&DirtyFile>) =
            baseline_files.partition(|file| file.is_unreadable);
        let snap = self.baseline.snapshot_id.as_ref().filter(|_| !readable.is_empty());
        let mut text = snap.map(|id| format!("; as they were: git proq snap show {id}")).unwrap_or_default();
        for DirtyFile { path, .. } in unread {
            text.push_str(&format!(
                "; there is no copy of {path}, which was not readable and is in no snapshot"
            ));
        }
        text
    }

    /// Adds a note that these files of the user changed during the run, unless there are none.
    fn note_changed_user_files(&mut self, paths: &[RepoPath]) {
        if !paths.is_empty() {
            let (names, hint) = (error::list_paths(paths), self.baseline_hint(paths));
            self.add_note(format!(
                "files that had changes of yours, or were ignored, changed while it ran and are not committed: {names}{hint}"
            ));
        }
    }

    /// Records how the branch moved as an operation, unless the new commits contain the user's changes.
    fn record_branch_move(&mut self) -> Result<(), Error> {
        let (repo, branch, from) = (&self.project.repo, &self.lane.base, self.run.tip_before);
        let Some(to) = repo.branch_tip(branch)? else {
            self.outcome.changed = true;
            let old_tip = from.short_in_command();
            self.add_note(format!(
                "branch {branch} is missing; it was at {old_tip}: git branch {branch} {old_tip}"
            ));
            return Ok(());
        };
        let saved_ref = &self.baseline.head_keep_ref;
        match repo.ref_tip(saved_ref)? {
            Some(saved_tip) if repo.is_ancestor(saved_tip, to)? => {
                repo.delete_ref(saved_ref, saved_tip, "git-proq: its branch has it")?;
            }
            Some(_) => self.add_note(format!("the earlier {branch} is saved: git log {saved_ref}")),
            None => {}
        }
        if to == from {
            return Ok(());
        }
        self.outcome.changed = true;
        if self.outcome.unexpected_branch.is_some() {
            // Landings also move a branch that is not checked out anywhere.
            self.add_note(format!(
                "{branch} went from {} to {}, which undo does not cover",
                from.short(),
                to.short()
            ));
            return Ok(());
        }
        let changed = tree_diff::tree_changes(repo, from, to)?;
        let mut user_paths: Vec<RepoPath> = changed.into_iter().map(|change| change.path).collect();
        user_paths.retain(|path| self.user_files.contains(path));
        if user_paths.is_empty() {
            return self.record_move_operation(from, to);
        }
        let (names, hint) = (error::list_paths(&user_paths), self.baseline_hint(&user_paths));
        self.add_note(format!(
            "changes of yours were committed: {names}{hint}; undo cannot separate them: git log --stat {}..{}",
            from.short(),
            to.short()
        ));
        Ok(())
    }

    /// Writes an operation for a branch that has moved already: it performs no work and can only be undone.
    fn record_move_operation(&self, from: CommitId, to: CommitId) -> Result<(), Error> {
        // No user typed the command line of this process, so the header names the run.
        let mut header = OperationHeader::new("in-place");
        header.command = format!("run {} of lane {}", self.run.number, self.lane.name);
        operate_with_header(self.project, header, |op| {
            op.retain_commit(from)?;
            let (dir, branch) = (self.lane.path.clone(), self.lane.base.clone());
            op.perform_irreversibly(vec![RecordAgentCommits { dir, branch, from, to }.into()]).map(drop)
        })?;
        fail_points::hit("in-place.filed");
        Ok(())
    }
}

//! Uncommitted work of a lane that a landing examines. It is refused, committed, or left behind with a
//! snapshot, as the setting `merge.uncommitted` requires.

use std::path::Path;

use proq_base::config::choices::UncommittedPolicy;
use proq_base::explain::{Explain, shell_quote_path};
use proq_base::hint;
use proq_base::hint::Hint;
use proq_git::base::error;
use proq_git::base::local_changes_remedy::LocalChangesRemedy;
use proq_git::status::special_files;
use proq_git::status::worktree_status::WorktreeStatus;
use proq_git::{Repo, RepoPath};
use proq_store::records::lane::LaneRecord;

use super::lane_examination::LaneExamination;
use crate::lane;
use crate::lane::context::head_ownership;
use crate::lane::inspection::commit_subject::commit_message;
use crate::lane::inspection::evidence::RemovalEvidence;
use crate::merge::Error;
use crate::merge::types::outcome::LaneOutcome;
use crate::run::leftovers::{commit_leftovers, leftovers_to_commit};
use crate::run::{auto_merge, leftovers};

impl LaneExamination<'_, '_> {
    /// Handles uncommitted work as the setting `merge.uncommitted` requires. Returns whether a landing would
    /// commit it, which a dry run does not.
    pub(crate) fn apply_uncommitted_setting(
        &self,
        evidence: &RemovalEvidence,
    ) -> Result<Result<bool, Box<LaneOutcome>>, Error> {
        let (project, lane) = (self.project, &self.lane);
        let paths: Vec<RepoPath> = evidence.dirty_state.paths();
        let names = error::list_paths(&paths);
        let refused = |why: String, hints: Vec<Hint>| {
            let outcome = LaneOutcome {
                conflicted_files: paths.clone(),
                hints,
                ..LaneOutcome::refused(&lane.name, &self.onto, why)
            };
            Ok(Err(Box::new(outcome)))
        };
        let refused_by_error = |e: lane::Error| refused(e.to_string(), e.hints());
        let is_committed = project.settings.uncommitted != UncommittedPolicy::Snapshot;
        if let Some(e) = project.repo.index_lock_error(&lane.path).filter(|_| is_committed) {
            return refused(format!("it has uncommitted work: {names}; {e}"), e.hints());
        }
        if is_committed && let Some((why, hint)) = self.commit_refusal(&evidence.dirty_state)? {
            return refused(format!("it has uncommitted work: {names}; {why}"), vec![hint]);
        }
        match project.settings.uncommitted {
            UncommittedPolicy::Commit if self.landing.dry_run => {
                match leftovers_to_commit(project, lane, self.landing.options.allow_deletions) {
                    Ok(paths) => Ok(Ok(!paths.is_empty())),
                    Err(e) => refused_by_error(e),
                }
            }
            UncommittedPolicy::Snapshot if self.landing.dry_run => Ok(Ok(false)),
            UncommittedPolicy::Refuse => refused(
                format!("it has uncommitted work: {names}"),
                commit_hints(&project.repo, lane, &evidence.dirty_state),
            ),
            // If this landing had been refused before, the landing has already committed what the lane's run
            // left.
            UncommittedPolicy::Commit
                if self.landing.options.is_automatic && lane.auto_merge_refusal.is_some() =>
            {
                refused(
                    format!("it has uncommitted work that may not be its agent's: {names}"),
                    vec![hint!("commit it and merge the lane: git proq merge {}", lane.name)],
                )
            }
            UncommittedPolicy::Commit => match self.commit_leftovers()? {
                Ok(None) => Ok(Ok(false)),
                Ok(Some(reason)) => refused(reason, Vec::new()),
                Err(e) => refused_by_error(e),
            },
            UncommittedPolicy::Snapshot => {
                self.take_snapshot()?;
                Ok(Ok(false))
            }
        }
    }

    /// Takes a snapshot of the lane's uncommitted work, which stays behind, and warns that it does.
    fn take_snapshot(&self) -> Result<(), Error> {
        let (project, lane) = (self.project, &self.lane);
        let head = project.repo.head_commit(&lane.path)?;
        let reason = format!("uncommitted work of lane {} when it landed", lane.name);
        let snapshot =
            head.map(|h| self.op.take_snapshot(&lane.path, h, &reason, &[])).transpose()?.flatten();
        if let Some(snap) = snapshot {
            project.listener.warn(format!(
                "uncommitted work of lane '{}' is not merged; it is saved: git stash apply {}",
                lane.name,
                snap.snapshot.commit.short_in_command()
            ));
        }
        Ok(())
    }

    /// Commits the lane's uncommitted work to its branch. Returns the reason if the branch could not follow a
    /// detached HEAD.
    fn commit_leftovers(&self) -> Result<Result<Option<String>, lane::Error>, Error> {
        let (project, lane) = (self.project, &self.lane);
        let old_tip = project.repo.branch_tip(&lane.kind.branch)?;
        let message = commit_message(lane, &format!("Left uncommitted in lane {}.", lane.name));
        if let Err(e) = commit_leftovers(project, lane, &message, self.landing.options.allow_deletions) {
            return Ok(Err(e));
        }
        if let Some(reason) = head_ownership::move_branch_to_head(project, lane)? {
            return Ok(Ok(Some(reason)));
        }
        let new_tip = project.repo.branch_tip(&lane.kind.branch)?;
        if let (true, Some(before), Some(after)) = (self.landing.options.is_automatic, old_tip, new_tip) {
            auto_merge::advance_run_tip(&project.store, lane, before, after)?;
        }
        Ok(Ok(None))
    }

    /// Returns why uncommitted work must not be committed where it is, and a hint. A commit on another branch
    /// would land nothing of the lane, and a commit on its base would be there without a check. For an
    /// embedded repository git would only commit a link to its commit.
    fn commit_refusal(&self, status: &WorktreeStatus) -> Result<Option<(String, Hint)>, Error> {
        let (project, lane) = (self.project, &self.lane);
        if let Some(embedded) = status.entries.iter().find(|entry| entry.is_nested_repo) {
            let command =
                leftovers::move_nested_repo_command(&project.repo, lane, &embedded.path, self.worktrees);
            let reason = format!("{} is a repository of its own", embedded.path);
            return Ok(Some((reason, hint!("move it out of the lane: {command}"))));
        }
        let is_committed = project.settings.uncommitted == UncommittedPolicy::Commit;
        let other_branch = head_ownership::find_off_branch(project, lane)?
            .filter(|off| !(is_committed && off.commits_reach_lane));
        Ok(other_branch.map(|off| {
            let reason = format!("its worktree is on {}, not on {}", off.current_head, lane.kind.branch);
            (reason, hint!("switch the lane back to its branch: {}", off.return_command))
        }))
    }
}

/// Returns the hints for a lane with uncommitted work. `git add -A` adds nothing that is inside of a
/// submodule, so each submodule gets its own command.
fn commit_hints(repo: &Repo, lane: &LaneRecord, status: &WorktreeStatus) -> Vec<Hint> {
    if let Some(first) = special_files::unreadable_paths(&lane.path, &status.paths()).first() {
        return vec![hint!(
            "make it readable: chmod u+rwX {}",
            shell_quote_path(&first.to_fs_path(&lane.path))
        )];
    }
    let sparse_flag = if repo.has_sparse_patterns(&lane.path) { " --sparse" } else { "" };
    let commit_command =
        |dir: &Path| format!("git -C {0} add -A{sparse_flag} && git -C {0} commit", shell_quote_path(dir));
    let submodules = match LocalChangesRemedy::detect(repo, &lane.path, &status.paths()) {
        LocalChangesRemedy::StashInSubmodules(submodules) => submodules,
        _ => Vec::new(),
    };
    let folders = submodules.iter().map(|path| path.to_fs_path(&lane.path)).chain([lane.path.clone()]);
    let commands: Vec<String> = folders.map(|dir| commit_command(&dir)).collect();
    let mut out = vec![hint!("commit it there: {}", commands.join(" && "))];
    if submodules.is_empty() {
        out.push(hint!("or let merge do it: git -c proq.merge.uncommitted=commit proq merge {}", lane.name));
    }
    out
}

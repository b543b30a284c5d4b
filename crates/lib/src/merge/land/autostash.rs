//! Saving of uncommitted changes that are in the way of a landing, and their report (`--autostash`).

use std::path::{Path, PathBuf};

use proq_base::explain::shell_quote_path;
use proq_base::hint;
use proq_git::base::error::list_paths;
use proq_git::repository::objects::TempObjectStore;
use proq_git::snapshots::restore_forecast::RestoreOutcome;
use proq_git::status::status_query;
use proq_git::worktrees::worktree::WorktreeList;
use proq_git::{CommitId, RepoPath};
use proq_store::records::snapshot::SnapshotRecord;

use crate::lane;
use crate::lane::parking::stash_method;
use crate::merge::Error;
use crate::merge::stack::lane_stack::Stack;
use crate::merge::types::autostash::{AutostashReport, AutostashResult};
use crate::operation::journaled_operation::Operation;
use crate::operation::journaled_operation::step::BoxedStep;

/// Reports of the landings of an operation so far.
#[derive(Default)]
struct AutostashReports(Vec<AutostashReport>);

/// Uncommitted changes of a worktree that were saved and moved out of it.
pub(super) struct SavedChanges {
    dir: PathBuf,
    snapshot: SnapshotRecord,
    paths: Vec<RepoPath>,
}

/// Returns the paths of the uncommitted changes that have to be saved so that the worktree at `dir` can follow a
/// move of its branch; none if it can follow as it is. The new tip may exist in `temp_objects` only.
///
/// # Errors
/// The obstacle, if saving the changes would not remove it: an ignored file, for example. The worktree of a lane
/// is left alone.
pub(super) fn changes_to_save(
    op: &Operation<'_>,
    dir: &Path,
    (from, to): (CommitId, CommitId),
    temp_objects: Option<&TempObjectStore>,
) -> Result<Vec<RepoPath>, Error> {
    use proq_git::Error::{LocalChanges, Obstructed};
    let project = op.project;
    let obstacle =
        match op.with_locked_worktree(dir, |tree| tree.check_transition_to_temp(from, to, temp_objects)) {
            Ok(()) => return Ok(Vec::new()),
            Err(obstacle) => obstacle,
        };
    let in_the_way = match &obstacle {
        lane::Error::Git(
            LocalChanges { overlapping_paths: paths, .. } | Obstructed { obstructing_paths: paths, .. },
        ) => paths.clone(),
        _ => return Err(obstacle.into()),
    };
    if project.owned_lanes()?.iter().any(|lane| lane.path == dir) {
        return Err(obstacle.into());
    }
    op.with_locked_worktree(dir, |tree| tree.check_transition_once_saved(from, to, temp_objects))?;
    // The status does not show edits that an index flag hides.
    let mut paths = status_query::status(&project.repo, dir, true)?.paths();
    paths.extend(in_the_way);
    paths.sort();
    paths.dedup();
    Ok(paths)
}

/// Saves the uncommitted changes of the worktree at `dir` in a snapshot and moves them out of it, if they are in
/// the way of a move of its branch.
///
/// # Errors
/// Fails as [`changes_to_save`] does, or when a change cannot be saved.
pub(super) fn save_changes(
    op: &Operation<'_>,
    dir: &Path,
    onto: &str,
    (from, to): (CommitId, CommitId),
) -> Result<Option<SavedChanges>, Error> {
    let paths = changes_to_save(op, dir, (from, to), None)?;
    if paths.is_empty() {
        return Ok(None);
    }
    let reason = format!("changes on {onto} before a landing");
    let Some(snapshot) = op.take_snapshot(dir, from, &reason, &[])? else { return Ok(None) };
    op.park_autostash(dir, &snapshot.id)?;
    Ok(Some(SavedChanges { dir: dir.to_owned(), snapshot, paths }))
}

impl SavedChanges {
    /// Returns the step that restores the changes once the worktree is at `head`.
    pub(super) fn restore_step(&self, head: CommitId) -> BoxedStep {
        lane::parking::autostash::restore_step(&self.dir, &self.snapshot.id, head)
    }

    /// Adds what became of the changes to the reports, after the step that restores them.
    pub(super) fn report(self, op: &Operation<'_>, onto: &str) {
        let SavedChanges { dir, snapshot, paths } = self;
        let commit = snapshot.snapshot.commit;
        let (result, conflicted_paths) = match op.autostash_outcome(&snapshot.id) {
            Some(RestoreOutcome::Exact | RestoreOutcome::Merged) => (AutostashResult::Restored, Vec::new()),
            Some(RestoreOutcome::Conflict(conflicts)) => (AutostashResult::Conflict, conflicts),
            None => {
                op.save_late_writes(&dir, &snapshot.id, None);
                (AutostashResult::Failed, Vec::new())
            }
        };
        let mut report = AutostashReport {
            dir,
            onto: onto.to_owned(),
            result,
            snapshot: Some(snapshot.id),
            commit: Some(commit),
            paths,
            conflicted_paths,
            hints: Vec::new(),
        };
        if report.is_kept() {
            let repo = &op.project.repo;
            let method = stash_method::choose_stash_method(repo, Some(commit), &report.conflicted_paths);
            let folder = match repo.current_worktree() == Some(report.dir.as_path()) {
                true => String::new(),
                false => format!(" -C {}", shell_quote_path(&report.dir)),
            };
            let command = method.command().replacen("git", &format!("git{folder}"), 1);
            let (purpose, id) = (method.purpose(), commit.short_in_command());
            report.hints.push(hint!("restore your changes {purpose}: {command} {id}"));
        }
        op.with_memory(|reports: &mut AutostashReports| reports.0.push(report));
    }
}

/// Adds to the reports the changes that a landing of `stack` would save. The merge commits may exist in
/// `temp_objects` only.
///
/// # Errors
/// Fails as [`changes_to_save`] does.
pub(super) fn forecast(
    op: &Operation<'_>,
    stack: &Stack,
    temp_objects: Option<&TempObjectStore>,
) -> Result<(), Error> {
    let onto = &op.project.repo.resolve_symbolic_branch(&stack.onto);
    let worktrees = WorktreeList::read(&op.project.repo)?;
    let Some(first) = worktrees.on_branch(onto).next().filter(|_| !stack.applied_lanes.is_empty()) else {
        return Ok(());
    };
    let paths = changes_to_save(op, &first.path, (stack.base, stack.tip()), temp_objects)?;
    if !paths.is_empty() {
        let report = AutostashReport {
            dir: first.path.clone(),
            onto: onto.clone(),
            result: AutostashResult::Planned,
            snapshot: None,
            commit: None,
            paths,
            conflicted_paths: Vec::new(),
            hints: Vec::new(),
        };
        op.with_memory(|reports: &mut AutostashReports| reports.0.push(report));
    }
    Ok(())
}

/// Removes the reports of the operation so far, and returns them.
pub(super) fn drain_reports(op: &Operation<'_>) -> Vec<AutostashReport> {
    op.with_memory(|reports: &mut AutostashReports| std::mem::take(&mut reports.0))
}

/// Returns the reports of the operation, whose landings are final, and notifies the listener.
pub(super) fn take_reports(op: &Operation<'_>) -> Vec<AutostashReport> {
    let reports = drain_reports(op);
    let listener = &op.project.listener;
    for report in &reports {
        let (dir, onto) = (report.dir.display(), &report.onto);
        let snapshot = report.snapshot.as_deref().unwrap_or_default();
        match report.result {
            AutostashResult::Planned => {}
            AutostashResult::Restored => listener.step_done(format!("restored your changes in {dir}")),
            AutostashResult::Conflict => listener.warn(format!(
                "your changes in {dir} conflict with {onto} in {}; they are saved as snapshot {snapshot}",
                list_paths(&report.conflicted_paths)
            )),
            AutostashResult::Failed => {
                listener.warn(format!("your changes in {dir} are saved as snapshot {snapshot}"));
            }
        }
    }
    reports
}

//! Detection of tasks whose landings were undone, by an undo or by a user who moved the batch's branch.

use proq_git::CommitId;
use proq_plan::schedule::event::ScheduleEvent;
use proq_plan::schedule::state::State;
use proq_plan::schedule::task_phase::TaskOutcome;
use proq_store::base::clock::now;

use crate::lane::Project;
use crate::lane::inspection::evidence;
use crate::swarm::Error;
use crate::swarm::batch::lanes::find_batch_lane;
use crate::swarm::batch::log::{EventEntry, EventFacts, LogLine};
use crate::swarm::batch::log_summary::LogSummary;
use crate::swarm::batch::record::Batch;

/// Returns an event for each task that landed according to the log and is not on the branch. No task in the
/// returned order builds on a later one.
pub(crate) fn find_undone_landings(
    project: &Project,
    batch: &Batch,
    state: &State,
    known: &LogSummary,
) -> Result<Vec<(ScheduleEvent, EventFacts)>, Error> {
    let repo = &project.repo;
    let mut out = Vec::new();
    // A branch that the user deleted is recreated at its last tip.
    let tip = repo.branch_tip(&batch.record.branch)?.filter(|_| batch.record.cleaned.is_none());
    let Some(tip) = tip else { return Ok(out) };
    if let Some(last) = known.branch_tips.last()
        && repo.has_object(*last)
        && repo.is_ancestor(*last, tip)?
    {
        return Ok(out);
    }
    let mut redone_tasks = Vec::new();
    for (task, commit) in known.landed.iter().copied() {
        if state.task_outcome(task) != Some(TaskOutcome::Landed)
            || is_on_branch(project, batch, (task, commit), tip)?
        {
            continue;
        }
        let is_base_intact = batch.tasks[task].needs.iter().all(|need| !redone_tasks.contains(need));
        let work_kept = is_base_intact && has_lane_with_work(project, batch, known, task)?;
        if !work_kept {
            redone_tasks.push(task);
        }
        let facts = EventFacts { branch_tip: Some(tip), ..EventFacts::with_detail("its merge was undone") };
        out.push((ScheduleEvent::LandingUndone { task, work_kept }, facts));
    }
    Ok(out)
}

/// Returns whether the work that landed with `commit` is on the batch's branch, which is at `tip`, in the
/// same or in other commits.
fn is_on_branch(
    project: &Project,
    batch: &Batch,
    (task, commit): (usize, CommitId),
    tip: CommitId,
) -> Result<bool, Error> {
    let repo = &project.repo;
    // Users rewrite commits of their own branches and continue from there. An undo, however, removes the
    // record of the landing.
    if batch.record.auto_merge && project.store.layout().batch_landed_record(batch.id(), task).exists() {
        return Ok(true);
    }
    Ok(repo.has_object(commit)
        && (repo.is_ancestor(commit, tip)? || evidence::is_contained(project, commit, tip)?))
}

/// Returns whether the lane of a task still exists with its work, so that no agent has to do the task again.
fn has_lane_with_work(
    project: &Project,
    batch: &Batch,
    known: &LogSummary,
    task: usize,
) -> Result<bool, Error> {
    let Some(work) = known.task_commits.get(&task) else { return Ok(false) };
    Ok(project.repo.has_object(work.work_end) && find_batch_lane(project, batch.id(), &work.lane)?.is_some())
}

/// Returns whether tasks of a batch landed and are no longer on its branch.
///
/// # Errors
/// When the batch or the repository cannot be read.
pub fn has_undone_landings(project: &Project, batch: &Batch) -> Result<bool, Error> {
    let lines = batch.read_log_lines(&project.store)?;
    let (state, known) = (batch.fold_state(&lines), LogSummary::from_lines(batch, &lines));
    Ok(!find_undone_landings(project, batch, &state, &known)?.is_empty())
}

/// Applies undone landings to the state and log facts of a batch that no process runs now. Where the
/// repository cannot be read, the log counts.
pub(crate) fn apply_undone_landings(
    project: &Project,
    batch: &Batch,
    state: &mut State,
    known: &mut LogSummary,
) {
    for (event, facts) in find_undone_landings(project, batch, state, known).unwrap_or_default() {
        state.apply_without_actions(&event);
        known.apply_line(&LogLine::Entry(Box::new(EventEntry { n: 0, at: now(), event, facts })));
    }
}

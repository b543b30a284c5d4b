//! Health checks of batches: each batch has a record, and each lane or branch of a batch belongs to a known
//! one.

use proq_base::explain::shell_quote_path as quoted;
use proq_store::base::batch_id::BatchId;
use proq_store::locks::lock::LockName;

use super::check_context::CheckContext;
use super::finding::Finding;
use crate::lane::state::lane_state::effective_state;
use crate::swarm::batch::record::Batch;
use crate::swarm::batch::{create, scheduler};

/// Checks the folders, lanes and branches of batches.
pub(super) fn check(context: &CheckContext<'_>) -> Vec<Finding> {
    let mut out = folders_without_record(context);
    out.extend(lanes_of_unknown_batches(context));
    out.extend(check_unknown_batch_branches(context));
    out.extend(interrupted_batches(context));
    out
}

/// Returns whether a batch has a record, or its lock is held while one is created.
fn is_known_batch(context: &CheckContext<'_>, id: &BatchId) -> bool {
    let layout = context.project.store.layout();
    let is_locked = context.project.store.locks().is_held(&LockName::Batch(id.clone())).unwrap_or(true);
    is_locked || layout.batch_record(id).exists()
}

/// Finds batch folders without a record. The process that created such a batch was killed: the record is
/// written last.
fn folders_without_record(context: &CheckContext<'_>) -> Vec<Finding> {
    let layout = context.project.store.layout();
    let unfinished = layout.batch_ids().into_iter().filter(|id| !is_known_batch(context, id));
    unfinished
        .map(|id| {
            let dir = layout.batch(&id);
            let message = format!("{} belongs to a batch whose creation was not completed", dir.display());
            Finding::warning("batch-record", format!("batch {id}"), message)
                .with_help(format!("rm -r {}", quoted(&dir)))
                .with_left_reason("it has only a copy of a plan")
        })
        .collect()
}

/// Finds lanes that belong to a batch without a record.
fn lanes_of_unknown_batches(context: &CheckContext<'_>) -> Vec<Finding> {
    let mut out = Vec::new();
    for lane in &context.lanes {
        let Some(membership) =
            lane.batch.as_ref().filter(|membership| !is_known_batch(context, &membership.batch))
        else {
            continue;
        };
        let name = &lane.name;
        let is_busy = effective_state(context.project, lane).is_ok_and(|(state, _)| state.is_busy());
        let (problem, help) = match is_busy {
            true => {
                ("its agent is running without a supervisor of its batch", format!("git proq stop {name}"))
            }
            false => ("it is not being continued", format!("git proq show {name}")),
        };
        let message = format!(
            "lane '{name}' is for {} of batch {}, which has no record: {problem}",
            membership.task, membership.batch
        );
        out.push(Finding::warning("batch-lane", format!("lane '{name}'"), message).with_help(help));
    }
    out
}

/// Finds batches that are neither finished nor paused and whose scheduler is no longer running.
fn interrupted_batches(context: &CheckContext<'_>) -> Vec<Finding> {
    let project = context.project;
    let is_interrupted = |id: &BatchId| {
        if scheduler::is_running(&project.store, id).unwrap_or(true) {
            return false;
        }
        let Ok(batch) = Batch::load(&project.store, id) else { return false };
        let Ok(lines) = batch.read_log_lines(&project.store) else { return false };
        let state = batch.fold_state(&lines);
        batch.record.cleaned.is_none() && state.final_outcome().is_none() && state.pause_reason().is_none()
    };
    let ids = create::list_batches(project, false).into_iter().map(|batch| batch.id);
    ids.filter(|id| is_interrupted(id))
        .map(|id| {
            let message = format!("batch {id} is interrupted");
            Finding::warning("batch-interrupted", format!("batch {id}"), message)
                .with_help(format!("git proq batch resume {id}"))
                .with_left_reason("only you can decide how it continues")
        })
        .collect()
}

/// Finds branches of batches without a record.
fn check_unknown_batch_branches(context: &CheckContext<'_>) -> Vec<Finding> {
    let prefix = format!("refs/heads/{}/batch-", context.project.settings.branch_prefix);
    let mut out = Vec::new();
    for (id, _) in context.refs_below(&prefix).filter(|(id, _)| !is_known_batch(context, &BatchId::new(*id)))
    {
        let branch = format!("{}/batch-{id}", context.project.settings.branch_prefix);
        let message = format!("{branch} is the branch of a batch which has no record");
        out.push(
            Finding::warning("batch-branch", format!("branch {branch}"), message)
                .with_help(format!("git log {branch}"))
                .with_left_reason("its merged tasks may be nowhere else"),
        );
    }
    out
}

//! Hints on a batch: what its user can do next, each with the command that helps.

use proq_base::explain::shell_quote;
use proq_base::hint;
use proq_base::hint::Hint;
use proq_base::lane_name::LaneName;
use proq_store::base::batch_id::BatchId;

use crate::lane::Project;
use crate::swarm::batch::create::find_batch;
use crate::swarm::batch::log_summary::LogSummary;
use crate::swarm::batch::record::BatchRecord;
use crate::swarm::landing::batch_cleanup::is_cleanup_refused;
use crate::swarm::landing::batch_landing::{landing_hint, unlanded_batches};
use crate::swarm::status::progress::{BUDGET_SPENT_REASON, BatchProgress, TaskProgress};

/// Maximum number of tasks that a retry command names.
const MAX_RETRY_TASKS_NAMED: usize = 5;

/// Returns the hints on a batch whose progress is shown.
#[must_use]
pub fn status_hints(project: &Project, batch: &BatchRecord, progress: &BatchProgress) -> Vec<Hint> {
    let (id, state) = (&batch.id, progress.displayed_state());
    let mut out = Vec::new();
    if state == "complete" && !progress.has_scheduler && batch.has_unverified_criteria(&project.store) {
        out.push(hint!("check its criteria: git proq batch resume {id}"));
    }
    if batch.cleaned.is_some() {
        out.push(hint!("it was cleaned up; its lanes and its branch no longer exist"));
        return out;
    }
    if state == "partly" {
        out.extend(partly_landed_hint(progress));
    }
    match state {
        "running" | "pausing" | "stopping" => out.push(hint!("follow it: git proq batch resume {id}")),
        "complete" | "partly" if progress.on_base => {
            out.push(hint!("clean up: git proq cleanup --batch {id}"));
        }
        "complete" | "partly" if progress.counts.landed > 0 && !batch.auto_merge => {
            out.push(landing_hint(project, batch, &format!("merge it into {}", batch.base)));
        }
        "complete" | "partly" => {}
        "paused" => out.extend(paused_hints(progress)),
        _ => out.push(hint!("resume it: git proq batch resume {id}")),
    }
    out
}

/// Returns the hints on a batch that was followed until it was over or paused.
#[must_use]
pub fn end_hints(
    project: &Project,
    batch: &BatchRecord,
    progress: &BatchProgress,
    log_summary: &LogSummary,
) -> Vec<Hint> {
    let (id, state) = (&batch.id, progress.displayed_state());
    if progress.state == "paused" {
        let look = hint!("show it: git proq batch status {id}");
        return std::iter::once(look).chain(paused_hints(progress)).collect();
    }
    let mut out = Vec::new();
    if batch.has_unverified_criteria(&project.store) {
        out.push(hint!("check its criteria: git proq batch resume {id}"));
    }
    if state != "complete" {
        out.push(hint!("show the result of each task: git proq batch status {id}"));
    }
    if matches!(state, "aborted" | "stopped") {
        out.push(hint!("resume it anyway: git proq batch resume {id}"));
    }
    if log_summary.branch_tips.len() > 1 && !batch.auto_merge {
        out.push(landing_hint(project, batch, &format!("merge it into {}", batch.base)));
    }
    out
}

/// Returns the hint on a batch after its abort, beside the one that resumes it: what lands its work, or removes its
/// lanes where that is not refused.
#[must_use]
pub fn abort_hint(project: &Project, id: &BatchId) -> Hint {
    let show_hint = hint!("show its tasks: git proq batch status {id}");
    let Ok(batch) = find_batch(project, id.as_str()) else { return show_hint };
    let unlanded = unlanded_batches(project).into_iter().find(|unlanded| unlanded.batch.id == *id);
    match unlanded {
        Some(unlanded) => unlanded.landing_hint(project, &format!("land what is done on {}", batch.base)),
        None if is_cleanup_refused(project, &batch) => show_hint,
        None => hint!("delete its lanes: git proq cleanup --batch {id}"),
    }
}

/// Returns the command that retries the tasks that failed, were set aside or changed nothing; none without
/// such a task.
#[must_use]
pub fn retry_hint(progress: &BatchProgress) -> Option<Hint> {
    let needs_retry = |task: &&TaskProgress| {
        !task.is_repaired && matches!(task.state.as_str(), "failed" | "set aside" | "no change")
    };
    let tasks = progress.tasks.iter().filter(needs_retry).take(MAX_RETRY_TASKS_NAMED);
    let flags: Vec<String> = tasks.map(|task| format!(" --retry {}", shell_quote(&task.name))).collect();
    let pronoun = if flags.len() == 1 { "it" } else { "them" };
    (!flags.is_empty())
        .then(|| hint!("retry {pronoun}: git proq batch resume {}{}", progress.batch, flags.concat()))
}

/// Returns the lane of the first task in `state` whose lane is not repaired yet.
fn stuck_lane<'a>(progress: &'a BatchProgress, state: &str) -> Option<&'a LaneName> {
    let is_stuck = |task: &&TaskProgress| task.state == state && !task.is_repaired;
    progress.tasks.iter().find(is_stuck).and_then(|task| task.lane.as_ref())
}

/// Returns the hint for a batch that is over but has not landed completely.
fn partly_landed_hint(progress: &BatchProgress) -> Option<Hint> {
    let id = &progress.batch;
    let resume_clause = format!("then run git proq batch resume {id}");
    match (stuck_lane(progress, "conflict"), stuck_lane(progress, "check failed")) {
        (Some(lane), _) => Some(hint!("resolve its conflict, {resume_clause}: git proq resolve {lane}")),
        (None, Some(lane)) => Some(hint!(
            "fix what failed in the lane, {resume_clause}; show it: git proq logs {lane} --checks"
        )),
        (None, None) if progress.tasks.iter().any(|task| task.is_repaired) => {
            Some(hint!("resume it: git proq batch resume {id}"))
        }
        (None, None) => retry_hint(progress),
    }
}

/// Returns the hints on a paused batch.
fn paused_hints(progress: &BatchProgress) -> Vec<Hint> {
    let id = &progress.batch;
    if progress.reason.as_deref() == Some(BUDGET_SPENT_REASON) {
        // Twice the cost so far, in whole dollars: with the old budget it would pause again at once.
        let new_budget = (progress.cost.unwrap_or_default().to_dollars() * 2.0).ceil().max(1.0);
        return vec![hint!("raise its budget: git proq batch resume {id} --budget {new_budget}")];
    }
    let resume_hint = |condition: &str| hint!("{condition}: git proq batch resume {id}");
    match (stuck_lane(progress, "conflict"), stuck_lane(progress, "check failed")) {
        (Some(lane), _) => vec![
            hint!("resolve its conflict: git proq resolve {lane}"),
            resume_hint("once that is done, resume it"),
        ],
        (None, Some(lane)) => vec![
            hint!("show what failed: git proq logs {lane} --checks"),
            resume_hint("once you have fixed it in the lane, resume it"),
        ],
        (None, None) => vec![resume_hint("resume it")],
    }
}

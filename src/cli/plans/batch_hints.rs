//! Criteria of a batch as text, and the commands that help with a batch that has not landed completely.

use proq_base::lane_name::LaneName;
use proq_base::terminal_text;
use proq_lib::swarm::batch::criteria_report::CriteriaReport;
use proq_lib::swarm::status::progress;
use proq_lib::swarm::status::progress::{BatchProgress, TaskProgress};

/// Formats the criteria report of a batch: a summary line, then a line per criterion.
pub(crate) fn criteria_lines(report: &CriteriaReport) -> Vec<String> {
    let criterion_lines = report.criteria.iter().filter(|_| report.skipped.is_none()).map(|criterion| {
        let met_text = criterion.status.map_or_else(|| "looked at".to_owned(), |met| met.to_string());
        let evidence =
            criterion.evidence.as_ref().map(|evidence| format!(": {evidence}")).unwrap_or_default();
        let log =
            criterion.log.as_ref().map(|log| format!("; it wrote {}", log.display())).unwrap_or_default();
        terminal_text::escape_line(&format!("  {met_text:<13} {}{evidence}{log}", criterion.text))
    });
    std::iter::once(terminal_text::escape_line(&report.describe())).chain(criterion_lines).collect()
}

/// Maximum number of tasks that a retry command names.
const MAX_RETRY_TASKS_NAMED: usize = 5;

/// Returns the lane of the first task in `state` whose lane is not repaired yet.
fn first_unrepaired_lane<'a>(progress: &'a BatchProgress, state: &str) -> Option<&'a LaneName> {
    let is_stuck = |task: &&TaskProgress| task.state == state && !task.is_repaired;
    progress.tasks.iter().find(is_stuck).and_then(|task| task.lane.as_ref())
}

/// Returns the hint for a batch that is over but has not landed completely: the command that helps.
pub(crate) fn partly_landed_hint(progress: &BatchProgress) -> Option<String> {
    let id = &progress.batch;
    let stuck_lane = |state: &str| first_unrepaired_lane(progress, state);
    let resume_clause = format!("and go on with git proq resume {id}");
    match (stuck_lane("conflict"), stuck_lane("check failed")) {
        (Some(lane), _) => Some(format!("resolve its conflict, {resume_clause}: git proq resolve {lane}")),
        (None, Some(lane)) => Some(format!(
            "repair what failed in the lane, {resume_clause}; see it: git proq logs {lane} --check"
        )),
        (None, None) if progress.tasks.iter().any(|task| task.is_repaired) => {
            Some(format!("go on with it: git proq resume {id}"))
        }
        (None, None) => retry_hint(progress),
    }
}

/// Returns the command that retries the tasks that failed, were set aside or changed nothing.
pub(crate) fn retry_hint(progress: &BatchProgress) -> Option<String> {
    let needs_retry = |task: &&TaskProgress| {
        !task.is_repaired && matches!(task.state.as_str(), "failed" | "set aside" | "no change")
    };
    let names =
        progress.tasks.iter().filter(needs_retry).map(|task| proq_base::explain::shell_quote(&task.name));
    let retry_flags: Vec<String> =
        names.take(MAX_RETRY_TASKS_NAMED).map(|name| format!(" --retry {name}")).collect();
    let pronoun = if retry_flags.len() == 1 { "it" } else { "them" };
    (!retry_flags.is_empty())
        .then(|| format!("try {pronoun} again: git proq resume {}{}", progress.batch, retry_flags.concat()))
}

/// Returns the commands that help with a paused batch.
pub(crate) fn paused_hints(progress: &BatchProgress) -> Vec<String> {
    let id = &progress.batch;
    if progress.reason.as_deref() == Some(progress::BUDGET_SPENT_REASON) {
        // Twice the cost so far, in whole dollars: with the old budget it would pause again at once.
        let new_budget = (progress.cost.unwrap_or_default().to_dollars() * 2.0).ceil().max(1.0);
        return vec![format!("let it cost more in all: git proq resume {id} --budget {new_budget}")];
    }
    let stuck_lane = |state: &str| first_unrepaired_lane(progress, state);
    let resume_hint = |condition: &str| format!("{condition}: git proq resume {id}");
    match (stuck_lane("conflict"), stuck_lane("check failed")) {
        (Some(lane), _) => vec![
            format!("resolve its conflict: git proq resolve {lane}"),
            resume_hint("once that is done, go on with it"),
        ],
        (None, Some(lane)) => vec![
            format!("see what failed: git proq logs {lane} --check"),
            resume_hint("once you have repaired it in the lane, go on with it"),
        ],
        (None, None) => vec![resume_hint("go on with it")],
    }
}

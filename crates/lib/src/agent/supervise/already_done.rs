//! Detection of a task that was already done before a run that changed nothing: the task's checks succeed,
//! and the files that it names exist.

use proq_base::process::limited_process::ExitOutcome;
use proq_git::Repo;
use proq_git::history::tree_diff;
use proq_git::status::scope::Scope;
use proq_git::status::status_query;
use proq_store::base::run_number::RunNumber;
use proq_store::records::lane::LaneRecord;

use crate::agent::Error;
use crate::agent::base::shutdown_signals::ShutdownSignals;
use crate::agent::hook_events::stop_gate;
use crate::lane::Project;

/// Whether a task was already done before its run.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum TaskCompletion {
    /// The task was already done; the text holds the evidence.
    AlreadyDone(&'static str),
    /// Nothing proves that the task was done; the text holds the evidence against it, if any.
    Unproven(Option<String>),
}

/// Determines whether the lane's task was already done: the files in its scope exist, and its checks pass
/// without changing the lane. Stops at the first failed check or at a stop signal. A task without checks is
/// unproven, because most tasks change existing files.
pub(crate) async fn check_already_done(
    project: &Project,
    lane: &LaneRecord,
    run_number: RunNumber,
    signals: &mut ShutdownSignals,
) -> Result<TaskCompletion, Error> {
    let unproven = |reason: String| Ok(TaskCompletion::Unproven(Some(reason)));
    if lane.checks.is_empty() {
        return Ok(TaskCompletion::Unproven(None));
    }
    if let Some(missing_path) = first_missing_path(&project.repo, lane)? {
        return unproven(format!("{missing_path}, which its task names, is not there"));
    }
    for check in &lane.checks {
        let ended = tokio::select! {
            biased;
            () = signals.wait() => return unproven("stopped before its checks had ended".to_owned()),
            ended = run_check(project, lane, run_number, check) => ended?,
        };
        if !ended.is_success() {
            return unproven(format!("`{check}` fails ({ended})"));
        }
    }
    // Files that the checks changed are not the agent's work, and the checks did not test the state that
    // would land.
    let has_moved = project.repo.branch_tip(&lane.kind.branch)? != Some(lane.start);
    if has_moved || !status_query::status(&project.repo, &lane.path, true)?.is_clean() {
        return unproven(
            "its checks changed the lane, so they do not say whether its task was done".to_owned(),
        );
    }
    Ok(TaskCompletion::AlreadyDone("already: nothing had to be changed, its checks succeed"))
}

/// Runs one check to its end. Dropping the future ends the check.
async fn run_check(
    project: &Project,
    lane: &LaneRecord,
    run_number: RunNumber,
    check: &str,
) -> Result<ExitOutcome, Error> {
    let log = project.store.layout().stop_gate_log(&lane.name, run_number);
    Ok(stop_gate::start_check(project, lane, check, &log)?.wait_for_exit().await?)
}

/// Returns the first path in the task's scope that does not exist.
fn first_missing_path(repo: &Repo, lane: &LaneRecord) -> Result<Option<String>, Error> {
    if lane.scope.is_empty() {
        return Ok(None);
    }
    let tracked_files = tree_diff::tree_paths(repo, lane.start)?;
    Ok(Scope::parse(&lane.scope)?.first_absent_glob(&tracked_files).map(ToOwned::to_owned))
}

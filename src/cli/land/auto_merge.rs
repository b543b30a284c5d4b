//! Automatic merges (`spawn --auto-merge`): of a lane whose run has finished, and again of lanes whose
//! landing was refused before.

use std::collections::BTreeSet;
use std::fs::File;
use std::os::fd::AsFd;

use proq_base::explain::Exit;
use proq_base::fail_points;
use proq_base::lane_name::LaneName;
use proq_lib::agent::supervise::follow_up;
use proq_lib::lane::Project;
use proq_lib::lane::recovery;
use proq_lib::merge::types::outcome::Verdict;
use proq_lib::run::auto_merge;
use proq_lib::run::auto_merge::AutoMergeStatus;
use proq_store::Store;
use proq_store::locks::lock::{LockGuard, LockName};
use proq_store::records::lane::LaneRecord;

use super::merge_args::Merge;
use super::{landing, merge_retry};
use crate::cli::invocation::context::{CommandContext, CommandResult};
use crate::cli::invocation::failure;
use crate::cli::invocation::failure::Failure;
use crate::cli::invocation::usage_error::UsageError;

/// Lands the given lanes in a background process, with a separate landing for each. `trigger` is `run-ended`
/// or `retry`. Output goes to a log next to the lane's run.
pub(crate) fn run(context: &CommandContext, args: &Merge, trigger: &str) -> CommandResult {
    proq_base::process::signals::start_process_session();
    proq_base::interrupt::defer_signals();
    let project = Project::open(&context.dir, context.ui.listener())?;
    let is_run_end = trigger == "run-ended";
    let (mut exit, mut bases) = (Exit::Success, BTreeSet::new());
    let names: Vec<LaneName> = args.lanes.iter().filter_map(|name| project.lane_name(name).ok()).collect();
    for name in &names {
        let lock = if is_run_end {
            Some(adopt_lock_from_stdin(&project.store, name)?)
        } else {
            follow_up::acquire_landing_lock(&project.store, name)?
        };
        // Without the lock, another process is landing the lane.
        let (Some(_lock), Ok(lane)) = (lock, project.lane(name)) else { continue };
        let blocked_reason = match redirect_output_if_ready(&project, &lane) {
            Ok(AutoMergeStatus::Ready) => None,
            Ok(AutoMergeStatus::NotDue) => continue,
            Ok(AutoMergeStatus::Blocked(reason) | AutoMergeStatus::BranchMoved(reason)) => Some(reason),
            Err(e) => Some(e.0.to_string()),
        };
        if let Some(reason) = blocked_reason {
            // A process that waits for the landing reads the reason from the record. A lane that is retried
            // already has a recorded reason.
            if is_run_end {
                auto_merge::record_refused_merge(&project, &lane, &reason, Exit::Refused);
            }
            continue;
        }
        if is_run_end {
            // Overlaps are computed before the landing, while the other lanes can still be affected. A
            // failure here does not fail the landing.
            drop(proq_lib::merge::comparison::overlap::emit_new_overlaps_of_lane(&project, &lane.name));
        }
        exit = land_lane(context, &project, args, &lane);
        bases.insert(lane.base);
    }
    if is_run_end {
        let bases = bases.iter().map(String::as_str).collect();
        fail_points::hit("landing.over");
        merge_retry::start_auto_merge_retries(context, &project, &bases, &names);
    }
    Ok(exit)
}

/// Returns whether a lane lands now. If it is ready, redirects all further output to the log of its landing.
fn redirect_output_if_ready(project: &Project, lane: &LaneRecord) -> Result<AutoMergeStatus, Failure> {
    let status = auto_merge::auto_merge_status(project, lane)?;
    if status == AutoMergeStatus::Ready {
        redirect_output(&project.store.layout().auto_merge_log(&lane.name, lane.last_run))?;
    }
    Ok(status)
}

/// Adopts the lane's lock from standard input, and replaces standard input with `/dev/null`.
fn adopt_lock_from_stdin(store: &Store, lane: &LaneName) -> Result<LockGuard, Failure> {
    let unreadable = |source| UsageError::Unreadable { path: "standard input".into(), source };
    let lock = std::io::stdin().as_fd().try_clone_to_owned().map_err(unreadable)?;
    let null = File::open("/dev/null").map_err(unreadable)?;
    rustix::stdio::dup2_stdin(&null).map_err(|e| unreadable(e.into()))?;
    Ok(store.locks().adopt(&LockName::AutoMerge(lane.clone()), File::from(lock)))
}

/// Redirects standard output and standard error to the end of a file.
fn redirect_output(path: &std::path::Path) -> Result<(), Failure> {
    let unwritable = |source| UsageError::Unwritable { path: path.to_owned(), source };
    let log = File::options().append(true).create(true).open(path).map_err(unwritable)?;
    rustix::stdio::dup2_stdout(&log).map_err(|e| unwritable(e.into()))?;
    rustix::stdio::dup2_stderr(&log).map_err(|e| unwritable(e.into()))?;
    Ok(())
}

/// Lands one lane, and records the reason if the landing is refused.
fn land_lane(context: &CommandContext, project: &Project, args: &Merge, lane: &LaneRecord) -> Exit {
    let args = Merge { lanes: vec![lane.name.to_string()], auto: None, ..args.clone() };
    let result = recovery::recover(project)
        .map_err(Failure::from)
        .and_then(|()| landing::land_and_print(context, project, &args, Some(lane)));
    match result {
        Ok(report) => {
            for line in report.lanes.iter().filter(|line| line.result == Verdict::Refused) {
                let reason = line.message.as_deref().unwrap_or("it may not land");
                auto_merge::record_refused_merge(
                    project,
                    lane,
                    reason,
                    line.exit_code.unwrap_or(Exit::Refused),
                );
            }
            report.exit()
        }
        Err(failure) => {
            let exit = failure::print_failure(&failure, false);
            // A signal is no refusal: the next landing treats this one as killed.
            if !matches!(exit, Exit::Signal(_)) {
                auto_merge::record_refused_merge(project, lane, &failure.0.to_string(), exit);
            }
            exit
        }
    }
}

//! Automatic merges (`spawn --auto-merge`): of a lane whose run has finished, and again of lanes whose
//! landing was refused before.

use std::collections::BTreeSet;
use std::fs::File;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use proq_base::explain::{Exit, Explain};
use proq_base::lane_name::LaneName;
use proq_base::{fail_points, interrupt};
use proq_store::Store;
use proq_store::locks::lock::{LockGuard, LockName};
use proq_store::records::lane::LaneRecord;

use super::merge;
use super::merge::{MergeOutcome, MergeRequest};
use super::waiting_merges::retry_waiting_merges;
use crate::agent::supervise::follow_up;
use crate::lane;
use crate::lane::Project;
use crate::lane::recovery;
use crate::merge::comparison::overlap;
use crate::merge::types::options::LandingOptions;
use crate::merge::types::outcome::Verdict;
use crate::ops::error::Error;
use crate::ops::reporter::Reporter;
use crate::run::auto_merge;
use crate::run::auto_merge::AutoMergeStatus;

/// Reason for an automatic merge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AutoMergeTrigger {
    /// The lane's run has ended. Standard input is the lane's lock.
    RunEnded,
    /// Another landing has ended.
    Retry,
}

/// Lanes to land, each by a landing of its own. Whether a lane may land is decided when its turn has come.
#[derive(Debug, Clone)]
pub struct AutoMergeRequest {
    /// Names of the lanes.
    pub lanes: Vec<LaneName>,
    /// Reason for the landings.
    pub trigger: AutoMergeTrigger,
    /// Folder that a relative path to a conflict agent starts from.
    pub current_dir: PathBuf,
}

impl AutoMergeRequest {
    /// Lands the lanes that are ready, records the reason for each that does not land, and after the end of a
    /// run starts the retries of merges that waited for this. The output of each landing goes to a log next
    /// to the lane's run; `print_result` prints what came of it. Returns the exit code of the last landing.
    ///
    /// # Errors
    /// Fails when a lock cannot be adopted or acquired.
    pub fn execute(
        &self,
        project: &Project,
        reporter: &dyn Reporter,
        print_result: &dyn Fn(&Result<MergeOutcome, Error>),
    ) -> Result<Exit, Error> {
        let is_run_end = self.trigger == AutoMergeTrigger::RunEnded;
        let (mut exit, mut bases) = (Exit::Success, BTreeSet::new());
        for name in &self.lanes {
            let lock = if is_run_end {
                Some(adopt_lock_from_stdin(&project.store, name)?)
            } else {
                follow_up::acquire_landing_lock(&project.store, name)?
            };
            // Without the lock, another process is landing the lane.
            let (Some(_lock), Ok(lane)) = (lock, project.lane(name)) else { continue };
            let blocked_reason = match redirect_output_if_ready(project, &lane) {
                Ok(AutoMergeStatus::Ready) => None,
                Ok(AutoMergeStatus::NotDue) => continue,
                Ok(AutoMergeStatus::Blocked(reason) | AutoMergeStatus::BranchMoved(reason)) => Some(reason),
                Err(e) => Some(e.to_string()),
            };
            if let Some(reason) = blocked_reason {
                // A process that waits for the landing reads the reason from the record. A lane that is
                // retried already has a recorded reason.
                if is_run_end {
                    auto_merge::record_refused_merge(project, &lane, &reason, Exit::Refused);
                }
                continue;
            }
            if is_run_end {
                // Overlaps are computed before the landing, while the other lanes can still be affected. A
                // failure here does not fail the landing.
                drop(overlap::emit_new_overlaps_of_lane(project, &lane.name));
            }
            let result = self.land_lane(project, reporter, &lane);
            print_result(&result);
            exit = record_refusals(project, &lane, &result);
            bases.insert(lane.base);
        }
        if is_run_end {
            fail_points::hit("landing.over");
            let bases = bases.iter().map(String::as_str).collect();
            for warning in retry_waiting_merges(project, &bases, &self.lanes) {
                project.listener.warn(warning);
            }
        }
        Ok(exit)
    }

    /// Lands one lane.
    fn land_lane(
        &self,
        project: &Project,
        reporter: &dyn Reporter,
        lane: &LaneRecord,
    ) -> Result<MergeOutcome, Error> {
        recovery::recover(project)?;
        let request = MergeRequest {
            lanes: vec![lane.name.to_string()],
            current_dir: self.current_dir.clone(),
            options: LandingOptions { is_automatic: true, ..LandingOptions::default() },
            ..MergeRequest::default()
        };
        merge::plan_lanes(project, &request, vec![lane.clone()])?.execute(project, reporter)
    }
}

/// Records the reason if the landing of a lane was refused or failed. Returns its exit code.
fn record_refusals(project: &Project, lane: &LaneRecord, result: &Result<MergeOutcome, Error>) -> Exit {
    let report = match result {
        Ok(outcome) => &outcome.report,
        Err(e) => {
            // A signal is no refusal: the next landing treats this one as killed.
            let exit = interrupt::require_no_signal().map_or_else(|stop| stop.exit(), |()| e.exit());
            if !matches!(exit, Exit::Signal(_)) {
                auto_merge::record_refused_merge(project, lane, &e.to_string(), exit);
            }
            return exit;
        }
    };
    for line in report.lanes.iter().filter(|line| line.result == Verdict::Refused) {
        let reason = line.message.as_deref().unwrap_or("it may not be merged");
        let exit = line.exit_code.unwrap_or(Exit::Refused);
        auto_merge::record_refused_merge(project, lane, reason, exit);
    }
    report.exit()
}

/// Returns whether a lane lands now. If it is ready, redirects all further output to the log of its landing.
fn redirect_output_if_ready(project: &Project, lane: &LaneRecord) -> Result<AutoMergeStatus, lane::Error> {
    let status = auto_merge::auto_merge_status(project, lane)?;
    if status == AutoMergeStatus::Ready {
        redirect_output(&project.store.layout().auto_merge_log(&lane.name, lane.last_run))?;
    }
    Ok(status)
}

/// Adopts the lane's lock from standard input, and replaces standard input with `/dev/null`.
fn adopt_lock_from_stdin(store: &Store, lane: &LaneName) -> Result<LockGuard, lane::Error> {
    let unreadable = |source| lane::Error::io("read", Path::new("standard input"))(source);
    let lock = std::io::stdin().as_fd().try_clone_to_owned().map_err(unreadable)?;
    let null = File::open("/dev/null").map_err(unreadable)?;
    rustix::stdio::dup2_stdin(&null).map_err(|e| unreadable(e.into()))?;
    Ok(store.locks().adopt(&LockName::AutoMerge(lane.clone()), File::from(lock)))
}

/// Redirects standard output and standard error to the end of a file.
fn redirect_output(path: &Path) -> Result<(), lane::Error> {
    let unwritable = |source| lane::Error::io("write", path)(source);
    let log = File::options().append(true).create(true).open(path).map_err(unwritable)?;
    rustix::stdio::dup2_stdout(&log).map_err(|e| unwritable(e.into()))?;
    rustix::stdio::dup2_stderr(&log).map_err(|e| unwritable(e.into()))?;
    Ok(())
}

//! Removal of lanes in one operation, shared by the use cases that remove lanes.

use proq_base::explain::Explain;
use proq_base::lane_name::LaneName;
use proq_git::worktrees::worktree::WorktreeList;
use proq_store::records::lane::AnyLane;
use serde::Serialize;

use crate::agent::control::stop;
use crate::lane::Project;
use crate::lane::inspection::evidence;
use crate::lane::removal::remove_lane::{RemovalReason, refuse_removal};
use crate::lane::state::lane_state::effective_state;
use crate::operation::journaled_operation::Operation;
use crate::operation::run_operation::operate;
use crate::ops::error::Error;
use crate::ops::lane_removal::LaneRemoval;
use crate::ops::reporter::{Progress, Reporter};
use crate::preview::remove_lane::{RemoveResult, remove_previewed_lane};
use crate::session::read_only;

/// Lane that is not the one that a plan was made for: it was removed and created again since.
#[derive(Debug, thiserror::Error, Explain)]
#[error("cannot remove lane '{lane}': another lane has this name now")]
#[decision]
#[hint("show that lane: git proq show {lane}")]
pub struct LaneReplaced {
    /// Name of both lanes.
    pub lane: LaneName,
}

/// Lanes to remove. Whether each may be removed is decided once hooks have run and agents have been stopped:
/// both change what a lane contains.
#[derive(Debug, Clone)]
pub struct RemovalPlan {
    /// Kind of the operation in the log.
    pub operation: &'static str,
    /// Lanes to remove, in order.
    pub lanes: Vec<AnyLane>,
    /// Why the lanes are removed.
    pub reason: RemovalReason,
    /// Whether what would be lost is saved first, instead of refusing the removal.
    pub force: bool,
    /// Whether running agents are stopped first.
    pub stop_agents: bool,
    /// Whether the caller named the lanes. Of others, those with work in them are retained on purpose.
    pub are_named: bool,
}

/// Lanes that were or would be removed, or were retained.
#[derive(Debug, Serialize)]
pub struct RemovalOutcome {
    /// A row for each lane, in order.
    pub lanes: Vec<LaneRemoval>,
    /// Whether nothing was changed.
    pub dry_run: bool,
}

impl RemovalPlan {
    /// Returns what [`RemovalPlan::execute`] would do, without hooks, as rows that are also reported one by
    /// one.
    pub fn forecast(&self, project: &Project, reporter: &dyn Reporter) -> RemovalOutcome {
        let row = |lane| self.report(lane, self.forecast_lane(project, lane), reporter);
        RemovalOutcome { lanes: self.lanes.iter().map(row).collect(), dry_run: true }
    }

    /// Removes the lanes in one operation, so that one undo restores them all. Hooks run and agents are
    /// stopped before, while no lock is held. A lane that cannot be removed is retained, with its error in
    /// its row.
    ///
    /// # Errors
    /// Fails if the operation itself fails; no lane is removed then.
    pub fn execute(&self, project: &Project, reporter: &dyn Reporter) -> Result<RemovalOutcome, Error> {
        let _scope = reporter.enter_cancellation();
        let prepared: Vec<_> = self.lanes.iter().map(|lane| self.prepare(project, lane)).collect();
        operate(project, self.operation, |op| {
            let rows = self.lanes.iter().zip(prepared).map(|(lane, prepared)| {
                self.report(lane, prepared.and_then(|()| self.remove(op, lane, reporter)), reporter)
            });
            Ok(RemovalOutcome { lanes: rows.collect(), dry_run: false })
        })
    }

    /// Reports the result for one lane, and returns its row.
    fn report(
        &self,
        lane: &AnyLane,
        result: Result<LaneRemoval, Error>,
        reporter: &dyn Reporter,
    ) -> LaneRemoval {
        let row = result.unwrap_or_else(|error| LaneRemoval {
            reasons: vec![error.to_string()],
            is_failure: self.are_named || !error.0.is_decision(),
            error: Some(error),
            ..LaneRemoval::new(lane)
        });
        reporter.progress(Progress::Removal(&row));
        row
    }

    /// Checks whether a lane would be removed, and what would be saved before.
    fn forecast_lane(&self, project: &Project, lane: &AnyLane) -> Result<LaneRemoval, Error> {
        let may_stop = self.force && self.reason == RemovalReason::Discard;
        let row = LaneRemoval::new(lane);
        let Ok(owned) = lane.clone().into_owned_lane() else {
            let idle = read_only::require_idle_for_removal(project, lane);
            let stops_agent = may_stop && idle.is_err();
            if !self.force {
                idle?;
            }
            return Ok(LaneRemoval { stops_agent, ..row });
        };
        let mut evidence = evidence::gather(project, &owned, &WorktreeList::read(&project.repo)?)?;
        let stops_agent = may_stop && evidence.busy_state.is_some();
        if stops_agent {
            evidence.busy_state = None;
            evidence.resident_processes.clear();
        }
        refuse_removal(&owned, &evidence, self.force)?;
        Ok(LaneRemoval { stops_agent, reasons: evidence.objections(&owned.base), ..row })
    }

    /// Runs the pre-remove hooks of a lane, and stops its running agent.
    fn prepare(&self, project: &Project, lane: &AnyLane) -> Result<(), Error> {
        let lane = reload(project, lane)?;
        project.run_pre_remove_hooks(&lane.name)?;
        if self.stop_agents && effective_state(project, &lane)?.0.is_busy() {
            stop::stop(project, &lane.name)?;
        }
        Ok(())
    }

    /// Removes a lane, and leaves its preview before.
    fn remove(
        &self,
        op: &Operation<'_>,
        lane: &AnyLane,
        reporter: &dyn Reporter,
    ) -> Result<LaneRemoval, Error> {
        let lane = reload(op.project, lane)?;
        let row = LaneRemoval { removed: true, ..LaneRemoval::new(&lane) };
        if row.purpose.is_some() {
            let name = op.attempt_or_revert(|| read_only::remove_guest_lane(op, &lane, self.reason))?;
            return Ok(LaneRemoval { history_name: Some(name), ..row });
        }
        let RemoveResult { removed, left_preview } =
            op.attempt_or_revert(|| remove_previewed_lane(op, &lane.name, self.reason, self.force))?;
        if let Some(left) = left_preview {
            reporter.progress(Progress::PreviewLeft(&left));
            left.warn_conflict(op.project);
        }
        Ok(LaneRemoval {
            history_name: Some(removed.history_name.clone()),
            saved_ref: removed.saved_ref.clone(),
            uncommitted_snapshot: removed.uncommitted_snapshot.map(|id| id.to_string()),
            trash: Some(removed.trash_entry.display().to_string()),
            unsent_messages: Some(removed.undelivered_messages).filter(|n| *n > 0),
            contents: Some(removed),
            ..row
        })
    }
}

/// Reads the record of a lane again.
///
/// # Errors
/// [`LaneReplaced`] if another lane has its name now.
fn reload(project: &Project, lane: &AnyLane) -> Result<AnyLane, Error> {
    let current = project.any_lane(&lane.name)?;
    match current.created == lane.created {
        true => Ok(current),
        false => Err(LaneReplaced { lane: current.name }.into()),
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::remove::discard;
    use crate::ops::remove::discard::DiscardRequest;
    use crate::ops::reporter::SilentReporter;
    use crate::tests::TestRepository;

    /// Simulates another process that removes a lane and makes one of the same name while hooks run.
    #[test]
    fn retains_lane_that_replaced_the_planned_one() {
        let repository = TestRepository::new();
        let lanes = vec![repository.create_lane("x", None).into_any()];
        let plan = discard::plan(&DiscardRequest { lanes, force: true });
        repository.discard("x", false);
        let lane = repository.create_lane("x", None);
        let removals = plan.execute(&repository.project, &SilentReporter).unwrap().lanes;
        let error = removals[0].error.as_ref().expect("an error").to_string();
        assert_eq!(error, "cannot remove lane 'x': another lane has this name now");
        assert!(!removals[0].removed && lane.path.join(".git").exists());
    }
}

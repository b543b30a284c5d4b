//! Lane with a failed check: its record, its event and its entry in the report of the landing.

use std::rc::Rc;

use proq_base::lane_name::LaneName;
use proq_git::TreeId;
use proq_store::base::atomic;
use proq_store::base::clock::now;
use proq_store::base::id::new_id;
use proq_store::base::record::Record;
use proq_store::paths::layout::Layout;
use proq_store::records::check::FailedCheckRecord;
use proq_store::records::lane_state::LandingState;

use crate::event::log;
use crate::merge::Error;
use crate::merge::checks::check_runs::FailedCommand;
use crate::merge::stack::lane_stack::Stack;
use crate::merge::types::candidate::Candidate;
use crate::merge::types::outcome::{CheckFailure, LaneOutcome, Verdict};
use crate::operation::journaled_operation::Operation;
use crate::operation::journaled_operation::step::BoxedStep;

/// Failed command and the task that it belongs to.
#[derive(Debug, Clone)]
pub(crate) struct BlamedCommand {
    /// Command line.
    pub command: String,
    /// Lane whose task has the command; none for a command that checks every landing.
    pub task_lane: Option<LaneName>,
}

/// Lane with a failed command, which succeeds without the lane or belongs to its task.
#[derive(Debug, Clone)]
pub(crate) struct FailedLane {
    pub candidate: Candidate,
    /// Names of the lanes below it in the stack.
    pub lanes_below: Vec<LaneName>,
    /// Tree on which the command fails.
    pub failing_tree: TreeId,
    /// Command that fails.
    pub(crate) blamed_command: BlamedCommand,
    /// Exit status and log of the failure.
    pub failure: Rc<FailedCommand>,
    /// Id in the name of the log file.
    log_id: String,
}

impl FailedLane {
    /// Creates a failed lane on top of the lanes in `lanes_below`.
    pub fn new(
        candidate: Candidate,
        lanes_below: Vec<LaneName>,
        failing_tree: TreeId,
        blamed_command: BlamedCommand,
        failure: Rc<FailedCommand>,
    ) -> FailedLane {
        FailedLane { candidate, lanes_below, failing_tree, blamed_command, failure, log_id: new_id() }
    }

    /// Returns the steps that put the lane in state `check-failed`. The log is written at once, outside of
    /// the steps, because no other record depends on it.
    pub(crate) fn failed_check_steps(
        &self,
        op: &Operation<'_>,
        stack: &Stack,
    ) -> Result<Vec<BoxedStep>, Error> {
        let layout = op.project.store.layout();
        let lane = &self.candidate.lane;
        let log = Layout::check_log_in_lane(&self.log_id);
        atomic::write(&layout.lane(&lane.name).join(&log), &self.failure.log)?;
        let record = FailedCheckRecord {
            lane: lane.name.clone(),
            onto: stack.onto.clone(),
            command: self.blamed_command.command.clone(),
            command_lane: self.blamed_command.task_lane.clone(),
            exit_text: self.failure.exit.to_string(),
            lanes_below: self.lanes_below.clone(),
            tree: self.failing_tree,
            base_tip_after_landing: stack.tip(),
            lane_tip: self.candidate.tip,
            failed_at: now(),
            log,
        };
        let path = layout.failed_check_record(&lane.name);
        let mut steps = vec![op.write_record_step(&path, Some(record.to_toml(&path)?))?];
        let description = self.describe();
        steps.extend(op.lane_record_step(&lane.name, |record| {
            record.set_landing(LandingState::CheckFailed);
            record.detail = Some(description);
        })?);
        Ok(steps)
    }

    /// Emits the event of the failed check.
    pub(crate) fn emit_event(&self, op: &Operation<'_>) {
        let mut lane = self.candidate.lane.clone();
        lane.set_landing(LandingState::CheckFailed);
        let message = format!("skipped lane '{}': {}", lane.name, self.describe());
        op.emit(log::EventName::MergeCheckFailed, Some(&lane), message);
    }

    /// Returns the lane's entry in the report of the landing.
    pub fn outcome(&self, op: &Operation<'_>, stack: &Stack) -> LaneOutcome {
        let lane = &self.candidate.lane.name;
        let folder = op.project.store.layout().lane(lane);
        LaneOutcome {
            message: Some(self.describe()),
            part_key: self.candidate.part_key(),
            check: Some(CheckFailure {
                command: self.blamed_command.command.clone(),
                task_lane: self.blamed_command.task_lane.clone(),
                ended: self.failure.exit,
                lanes_below: self.lanes_below.clone(),
                log: folder.join(Layout::check_log_in_lane(&self.log_id)),
                tail: self.failure.log_tail(),
            }),
            ..LaneOutcome::new(lane, &stack.onto, Verdict::CheckFailed)
        }
    }

    /// Describes the failure in a clause, with the lane whose task has the check.
    fn describe(&self) -> String {
        let (BlamedCommand { command, task_lane: task_of }, ended) =
            (&self.blamed_command, self.failure.exit);
        match task_of {
            None => format!("`{command}` failed ({ended})"),
            Some(lane) if *lane == self.candidate.lane.name => {
                format!("its own check `{command}` failed ({ended})")
            }
            Some(lane) => format!("`{command}`, a check of lane '{lane}', failed ({ended})"),
        }
    }
}

/// Returns the step that removes the failed-check record of a lane that landed, if it has one.
pub(crate) fn removal_step(op: &Operation<'_>, lane: &LaneName) -> Result<Option<BoxedStep>, Error> {
    let path = op.project.store.layout().failed_check_record(lane);
    Ok(if path.exists() { Some(op.write_record_step(&path, None)?) } else { None })
}

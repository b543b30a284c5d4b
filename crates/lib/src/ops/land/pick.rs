//! Landing of one of several attempts at a task, after which the others are discarded.

use proq_base::explain::{Exit, Explain};
use proq_base::fail_points;
use proq_base::lane_name::LaneName;
use proq_store::records::lane::{AnyLane, LaneRecord};
use proq_store::records::lane_state::LaneState;

use super::merge;
use super::merge::{MergeOutcome, MergePlan, MergeRequest};
use crate::lane::Project;
use crate::lane::inspection::attempts;
use crate::lane::removal::remove_lane::RemovalReason;
use crate::lane::state::lane_state::effective_state;
use crate::merge::types::options::{LandingOptions, StackOrder};
use crate::merge::types::outcome::{LandingReport, LaneOutcome, Verdict};
use crate::ops::error::Error;
use crate::ops::lane_removal::LaneRemoval;
use crate::ops::remove::removal::RemovalPlan;
use crate::ops::reporter::Reporter;

/// Attempt to land, and how it lands.
#[derive(Debug, Clone, Default)]
pub struct PickRequest {
    /// Name or branch of the attempt.
    pub lane: String,
    /// How it lands; its lanes and their order are ignored. `stop` stops the agents of all attempts, and
    /// `options.force` those of the others.
    pub merge: MergeRequest,
    /// Whether landing and discards are only forecast.
    pub dry_run: bool,
}

/// Reason why an attempt cannot be picked.
#[derive(Debug, thiserror::Error, Explain)]
pub enum PickError {
    /// The lane does not belong to a group of attempts.
    #[error("cannot pick lane '{lane}': it is not one of several attempts")]
    #[hint("merge it: git proq merge {lane}")]
    NotInGroup {
        /// Name of the lane.
        lane: LaneName,
    },
    /// Agents are still running in attempts of the group.
    #[error("cannot pick a lane: agents are running in {}", busy.join(", "))]
    #[hint("wait for them: git proq wait {}", busy.join(" "))]
    #[hint("or stop them: git proq pick {lane} --stop")]
    AgentsRunning {
        /// Name of the attempt to pick.
        lane: LaneName,
        /// Names of the attempts with running agents.
        busy: Vec<LaneName>,
    },
}

/// Attempt that may be picked, and the other attempts of its group.
#[derive(Debug)]
#[must_use]
pub struct PickPlan {
    /// Name of the group of attempts.
    pub group: String,
    /// Name of the attempt.
    picked: LaneName,
    dry_run: bool,
    step: PickStep,
    /// Removal of the other attempts once the picked one is on its base.
    removal: RemovalPlan,
}

/// What remains to be done with the picked attempt itself.
#[derive(Debug)]
enum PickStep {
    /// It has to land.
    Land(Box<MergePlan>),
    /// It landed before, and was removed: an earlier pick may have been interrupted before it discarded the
    /// other attempts.
    Landed(Box<LaneOutcome>),
}

/// Result of a pick or of its forecast.
#[derive(Debug)]
pub struct PickOutcome {
    /// Outcome of the landing.
    pub merge: MergeOutcome,
    /// A row for each other attempt that was or would be discarded, or was retained; `None` unless the picked
    /// attempt is or would be on its base.
    pub discarded: Option<Vec<LaneRemoval>>,
}

impl PickOutcome {
    /// Returns the exit code: that of the landing, or a refusal if only a discard failed.
    #[must_use]
    pub fn exit(&self) -> Exit {
        let all_discarded = self.discarded.iter().flatten().all(|row| row.error.is_none());
        match self.merge.report.exit() {
            Exit::Success if !all_discarded => Exit::Refused,
            exit => exit,
        }
    }
}

/// Finds the attempt and the others of its group, without a change.
///
/// # Errors
/// [`PickError`], and the errors of [`merge::plan`].
pub fn plan(project: &Project, request: &PickRequest) -> Result<PickPlan, Error> {
    let (picked, landed_before) = find_attempt_or_landed(project, &request.lane)?;
    let Some(group) = picked.group.clone() else {
        return Err(PickError::NotInGroup { lane: picked.name }.into());
    };
    let others = other_attempts(project, &picked, &group, landed_before.is_some())?;
    require_no_running_agents(project, &picked, &others, &request.merge)?;
    let step = if let Some(outcome) = landed_before {
        PickStep::Landed(Box::new(outcome))
    } else {
        let options = LandingOptions {
            all: false,
            atomic: false,
            pick: true,
            order: StackOrder::Given,
            ..request.merge.options.clone()
        };
        let lanes = vec![picked.name.to_string()];
        let merge_request = MergeRequest { lanes, options, ..request.merge.clone() };
        PickStep::Land(Box::new(merge::plan_lanes(project, &merge_request, vec![picked.clone()])?))
    };
    let removal = RemovalPlan {
        operation: "pick",
        lanes: others.into_iter().map(LaneRecord::into_any).collect(),
        reason: RemovalReason::Discard,
        force: true,
        stop_agents: request.merge.stop || request.merge.options.force,
        are_named: true,
    };
    Ok(PickPlan { group, picked: picked.name, dry_run: request.dry_run, step, removal })
}

impl PickPlan {
    /// Lets the user edit the message of the attempt in an editor, before it lands.
    ///
    /// # Errors
    /// As [`MergePlan::edit_messages`].
    pub fn edit_messages(&mut self, project: &Project) -> Result<(), Error> {
        match &mut self.step {
            PickStep::Land(plan) => plan.edit_messages(project),
            PickStep::Landed(_) => Ok(()),
        }
    }

    /// Returns the outcome of an earlier landing of the attempt; none if it has to land.
    pub fn landed_before(&self) -> Option<&LaneOutcome> {
        match &self.step {
            PickStep::Landed(outcome) => Some(outcome),
            PickStep::Land(_) => None,
        }
    }

    /// Returns whether the group has other attempts.
    pub fn has_others(&self) -> bool {
        !self.removal.lanes.is_empty()
    }

    /// Lands the attempt, unless it landed before, and then discards the others in one operation; a dry run
    /// forecasts both without a change. `on_landed` receives the outcome of the landing before anything that may
    /// fail after it.
    ///
    /// # Errors
    /// As [`MergePlan::execute`] and [`RemovalPlan::execute`]. An attempt that cannot be discarded is
    /// retained, with its error in its row.
    pub fn execute(
        self,
        project: &Project,
        reporter: &dyn Reporter,
        on_landed: &dyn Fn(&MergeOutcome),
    ) -> Result<PickOutcome, Error> {
        let _scope = reporter.enter_cancellation();
        let dry_run = self.dry_run;
        let merge = match self.step {
            PickStep::Landed(outcome) => landed_outcome(*outcome, dry_run),
            PickStep::Land(plan) if dry_run => plan.forecast(project, reporter)?,
            PickStep::Land(plan) => plan.execute(project, reporter)?,
        };
        on_landed(&merge);
        if !is_on_base(&merge, &self.picked) {
            return Ok(PickOutcome { merge, discarded: None });
        }
        if !dry_run {
            fail_points::hit("pick.landed");
        }
        let removal = self.removal.without_missing(project);
        let removed =
            if dry_run { removal.forecast(project, reporter) } else { removal.execute(project, reporter)? };
        Ok(PickOutcome { merge, discarded: Some(removed.lanes) })
    }
}

impl RemovalPlan {
    /// Returns the plan without lanes that were removed since: they need no discard. A lane that was
    /// recreated under a planned name is another lane.
    fn without_missing(mut self, project: &Project) -> RemovalPlan {
        let still_exists =
            |lane: &AnyLane| project.lane(&lane.name).is_ok_and(|current| current.is_same_lane(lane));
        self.lanes.retain(still_exists);
        self
    }
}

/// Returns the outcome of a pick whose attempt had landed before.
fn landed_outcome(outcome: LaneOutcome, dry_run: bool) -> MergeOutcome {
    let report = LandingReport { lanes: vec![outcome], ..LandingReport::default() };
    MergeOutcome { report, dry_run, conflict_agent: None, warnings: Vec::new() }
}

/// Returns whether a lane is on its base after a landing; after a forecast, would be.
fn is_on_base(merge: &MergeOutcome, lane: &LaneName) -> bool {
    let verdicts = [Verdict::Landed, Verdict::Resolved, Verdict::AlreadyLanded];
    merge.report.lanes.iter().any(|outcome| outcome.lane == *lane && verdicts.contains(&outcome.result))
}

/// Returns the lane to pick. If it has landed and was removed, returns its last record and an outcome for it:
/// an earlier pick may have been interrupted before it discarded the other attempts.
fn find_attempt_or_landed(
    project: &Project,
    name_or_branch: &str,
) -> Result<(LaneRecord, Option<LaneOutcome>), Error> {
    let lookup_error = match project.find_lane(name_or_branch) {
        Ok(lane) => return Ok((lane, None)),
        Err(e) => e,
    };
    let name = name_or_branch
        .strip_prefix(&format!("{}/", project.settings.branch_prefix))
        .unwrap_or(name_or_branch);
    let past_lanes = project.past_owned_lanes().into_iter().map(|(_, past)| past);
    let landed_lanes = past_lanes.filter(|past| past.name == name && past.state() == LaneState::Landed);
    let latest = landed_lanes
        .filter_map(|past| Some((past.landed.clone()?, past)))
        .max_by_key(|(landed, _)| landed.landed_at);
    let Some((landed, past)) = latest else { return Err(lookup_error.into()) };
    let Some(group) = &past.group else { return Err(lookup_error.into()) };
    if other_attempts(project, &past, group, true)?.is_empty() {
        return Err(lookup_error.into());
    }
    let outcome = LaneOutcome::new(&past.name, &landed.onto, Verdict::AlreadyLanded);
    Ok((past, Some(LaneOutcome { cleaned_up: true, ..outcome })))
}

/// Returns the other attempts of a group. If the picked lane is gone, attempts created after its landing are
/// left out, since they belong to a new group of the same name.
fn other_attempts(
    project: &Project,
    picked: &LaneRecord,
    group: &str,
    picked_is_gone: bool,
) -> Result<Vec<LaneRecord>, Error> {
    let mut attempts = attempts::attempts_of_group(project, group)?;
    let landed_at = picked.landed.as_ref().filter(|_| picked_is_gone).map(|landed| landed.landed_at);
    attempts.retain(|lane| lane.name != picked.name && landed_at.is_none_or(|landed| lane.created <= landed));
    Ok(attempts)
}

/// Refuses if an agent runs in an attempt and no option stops it.
fn require_no_running_agents(
    project: &Project,
    picked: &LaneRecord,
    others: &[LaneRecord],
    request: &MergeRequest,
) -> Result<(), Error> {
    let mut busy = Vec::new();
    for lane in others.iter().chain(std::iter::once(picked)) {
        let will_be_stopped = request.stop || (request.options.force && lane.name != picked.name);
        if !will_be_stopped && effective_state(project, lane)?.0.is_busy() {
            busy.push(lane.name.clone());
        }
    }
    if busy.is_empty() {
        return Ok(());
    }
    Err(PickError::AgentsRunning { lane: picked.name.clone(), busy }.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::reporter::SilentReporter;
    use crate::tests::TestRepository;

    #[test]
    fn discards_others_after_landing_though_one_vanished() {
        let repository = TestRepository::new();
        let project = &repository.project;
        let [picked, ..] = ["x-1", "x-2", "x-3"].map(|name| repository.create_lane(name, Some("x")));
        repository.sh(&picked.path, "echo x > x; git add x; git commit -qm x");
        let request = PickRequest { lane: "x-1".to_owned(), ..PickRequest::default() };
        // As another process would, before the others are discarded.
        let on_landed = |merge: &MergeOutcome| {
            assert_eq!(merge.report.lanes[0].lane, "x-1");
            repository.discard("x-2", true);
        };
        let outcome = plan(project, &request).unwrap().execute(project, &SilentReporter, &on_landed).unwrap();
        assert_eq!(outcome.exit(), Exit::Success);
        let discarded = outcome.discarded.unwrap();
        assert!(discarded.len() == 1 && discarded[0].lane == "x-3" && discarded[0].removed);
        assert_eq!(project.all_lanes().unwrap().len(), 0);
    }
}

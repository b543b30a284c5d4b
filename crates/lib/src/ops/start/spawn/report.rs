//! JSON form of a spawn: the lanes that were created or, in a dry run, would be.

use std::path::Path;

use proq_base::lane_name::LaneName;
use proq_store::paths::path_form;
use proq_store::records::lane::LaneRecord;
use proq_store::records::lane_state::LaneState;
use serde::{Serialize, Serializer};

use super::execution::{SpawnOutcome, SpawnedLane};
use super::plan::SpawnPlan;
use crate::agent::command::agent_command::AgentCommand;
use crate::lane::creation::create::LanePlan;

/// Keys that the JSON of every lane has in which a command is started.
#[derive(Debug, Serialize)]
pub(in crate::ops::start) struct StartReport<'a> {
    pub(in crate::ops::start) lane: &'a LaneName,
    #[serde(serialize_with = "path_form::serialize")]
    pub(in crate::ops::start) path: &'a Path,
    pub(in crate::ops::start) base: &'a str,
    /// Id of the commit that the lane starts from.
    #[serde(rename = "start")]
    pub(in crate::ops::start) start_commit: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::ops::start) agent: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::ops::start) command: Option<String>,
    /// Commands that the agent may run without a request, as text.
    #[serde(rename = "may_run", skip_serializing_if = "Option::is_none")]
    pub(in crate::ops::start) runnable_commands: Option<String>,
    pub(in crate::ops::start) state: LaneState,
}

impl<'a> StartReport<'a> {
    /// Describes a lane in which `command` was started. `state` is the lane's state for display.
    pub(in crate::ops::start) fn of_lane<P>(
        lane: &'a LaneRecord<P>,
        command: Option<&AgentCommand>,
        state: LaneState,
    ) -> StartReport<'a> {
        StartReport {
            lane: &lane.name,
            path: &lane.path,
            base: &lane.base,
            start_commit: lane.start.to_string(),
            agent: lane.agent.as_deref(),
            command: command.map(AgentCommand::display_command_line),
            runnable_commands: command.and_then(AgentCommand::runnable_commands_text),
            state,
        }
    }
}

/// A lane that can land, with the command that runs in it.
#[derive(Debug, Serialize)]
pub struct LaneReport<'a> {
    #[serde(flatten)]
    start: StartReport<'a>,
    branch: &'a str,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    checks: &'a [String],
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    scope: &'a [String],
    /// Permission level of the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    permission: Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    auto_merge: bool,
    /// Reason why the automatic merge was refused.
    #[serde(rename = "refused", skip_serializing_if = "Option::is_none")]
    auto_merge_refusal: Option<&'a str>,
    dry_run: bool,
}

impl<'a> LaneReport<'a> {
    /// Describes a lane in which `command` was started. `state` is the lane's state for display.
    pub fn of_lane(lane: &'a LaneRecord, command: Option<&AgentCommand>, state: LaneState) -> LaneReport<'a> {
        LaneReport {
            start: StartReport::of_lane(lane, command, state),
            branch: &lane.kind.branch,
            checks: &lane.checks,
            scope: &lane.scope,
            permission: command.and_then(AgentCommand::permission_level),
            auto_merge: lane.auto_merge,
            auto_merge_refusal: lane.auto_merge_refusal.as_ref().map(|r| r.refusal_reason.as_str()),
            dry_run: false,
        }
    }

    fn of_plan(plan: &'a LanePlan<'_>, command: Option<&'a AgentCommand>) -> LaneReport<'a> {
        LaneReport {
            start: StartReport {
                lane: &plan.name,
                path: &plan.path,
                base: &plan.base().branch,
                start_commit: plan.base().start.to_string(),
                agent: command.map(|command| command.agent.as_str()),
                command: command.map(AgentCommand::display_command_line),
                runnable_commands: command.and_then(AgentCommand::runnable_commands_text),
                state: LaneState::Idle,
            },
            branch: &plan.branch,
            checks: plan.checks(),
            scope: plan.scope(),
            permission: command.and_then(AgentCommand::permission_level),
            auto_merge: plan.has_auto_merge(),
            auto_merge_refusal: None,
            dry_run: true,
        }
    }
}

/// Attempts at one task.
#[derive(Serialize)]
struct GroupReport<'a> {
    group: &'a str,
    lanes: Vec<AttemptReport<'a>>,
    dry_run: bool,
}

/// One attempt, with the keys that all attempts of a group do not share.
#[derive(Serialize)]
struct AttemptReport<'a> {
    #[serde(flatten)]
    start: StartReport<'a>,
    branch: &'a str,
    /// Reason why the command could not be started.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl<'a> AttemptReport<'a> {
    fn new(report: LaneReport<'a>, error: Option<String>) -> AttemptReport<'a> {
        AttemptReport { start: report.start, branch: report.branch, error }
    }
}

impl Serialize for SpawnPlan<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let reports = self.lanes.iter().zip(&self.commands);
        let mut reports = reports.map(|(plan, command)| LaneReport::of_plan(plan, command.as_ref()));
        match self.lanes.first().and_then(|first| first.group()) {
            None => reports.next().serialize(serializer),
            Some(group) => {
                let lanes = reports.map(|report| AttemptReport::new(report, None)).collect();
                GroupReport { group, lanes, dry_run: true }.serialize(serializer)
            }
        }
    }
}

impl Serialize for SpawnOutcome {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.lanes.first().and_then(|first| first.lane.group.as_deref()) {
            None => self.lanes.first().map(SpawnedLane::report).serialize(serializer),
            Some(group) => {
                let attempts = self.lanes.iter();
                let lanes = attempts
                    .map(|lane| {
                        AttemptReport::new(lane.report(), lane.failure.as_ref().map(ToString::to_string))
                    })
                    .collect();
                GroupReport { group, lanes, dry_run: false }.serialize(serializer)
            }
        }
    }
}

impl SpawnedLane {
    fn report(&self) -> LaneReport<'_> {
        LaneReport::of_lane(&self.lane, self.command.as_ref(), self.lane.state())
    }
}

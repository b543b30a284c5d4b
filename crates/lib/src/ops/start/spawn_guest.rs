//! Start of an agent without a branch of its own: in a read-only lane, or in the main checkout.

use std::borrow::Cow;
use std::path::PathBuf;

use proq_base::explain::Explain;
use proq_base::lane_name::LaneName;
use proq_store::records::lane::{AnyLane, LanePurpose};
use proq_store::records::lane_state::LaneState;
use serde::{Serialize, Serializer};

use super::launch_checks::refuse_or_warn_before_start;
use super::spawn::request::LaneProgram;
use crate::agent;
use crate::agent::command::agent_command::{AgentCommand, RunOptions};
use crate::agent::hook_events::stop_gate;
use crate::agent::launch::start_supervisor;
use crate::lane::Project;
use crate::ops::error::Error;
use crate::ops::start::spawn::report::StartReport;
use crate::session::read_only;
use crate::session::read_only::{GuestLanePlan, GuestLaneRequest, ReadLocation};

/// Request for a guest lane with an agent in it.
#[derive(Debug)]
pub struct GuestSpawnRequest {
    /// Name of the lane; made from the prompt if none is given.
    pub name: Option<LaneName>,
    /// Prompt of the agent.
    pub prompt: Option<String>,
    /// Agent, or in the main checkout also a command.
    pub program: LaneProgram,
    /// Purpose of the lane.
    pub purpose: LanePurpose,
    /// Options of the run.
    pub options: RunOptions,
    /// Folder from which the caller names programs.
    pub dir: PathBuf,
    /// Lane in which the caller works, if any.
    pub calling_lane: Option<String>,
    /// Whether the agent reads a worktree of its own instead of the main checkout.
    pub isolated: bool,
    /// Revision that an isolated agent reads; HEAD if none is given.
    pub base: Option<String>,
    /// Absolute paths of the files to attach to the prompt.
    pub attachments: Vec<PathBuf>,
}

/// Reason why a guest lane cannot be planned.
#[derive(Debug, thiserror::Error, Explain)]
pub enum GuestSpawnError {
    /// The agent of a read-only lane has no question.
    #[error("the agent needs a question")]
    #[exit(Usage)]
    #[hint("for example: git proq spawn claude --mode answer \"where is the tax computed?\"")]
    NoQuestion,
    /// The agent in the main checkout has no prompt.
    #[error("the agent needs a prompt")]
    #[exit(Usage)]
    #[hint("for example: git proq spawn --in-place claude \"fix the typos\"")]
    NoPrompt,
}

/// Guest lane that would be created. Serializes to the output of a dry run.
#[derive(Debug)]
pub struct GuestSpawnPlan<'a> {
    /// The planned lane.
    pub lane: GuestLanePlan<'a>,
    /// The command to start in the lane.
    pub command: AgentCommand,
    /// Purpose of the lane.
    pub purpose: LanePurpose,
    /// Files that are copied for the agent.
    pub attachments: &'a [PathBuf],
}

/// Guest lane in which an agent was started. Serializes to the output of `git proq spawn`.
#[derive(Debug)]
pub struct GuestSpawnOutcome {
    /// The lane after the start.
    pub lane: AnyLane,
    /// The started command.
    pub command: AgentCommand,
}

/// Plans a guest lane. Warns of what the user should know before the agent starts.
///
/// # Errors
/// Fails without a prompt, when the agent is not found or cannot do what is requested, the revision does not
/// exist, the main checkout cannot be used, or the caller may not start such an agent.
pub fn plan<'a>(project: &Project, request: &'a GuestSpawnRequest) -> Result<GuestSpawnPlan<'a>, Error> {
    let purpose = request.purpose;
    let options = RunOptions { purpose: Some(purpose), ..request.options.clone() };
    let text = request.prompt.as_deref();
    let command = request.program.agent_command(project, text.unwrap_or_default(), &request.dir, &options)?;
    let prompt = text.map(Into::into).or(request.program.command_line().map(Into::into));
    let (Some(command), Some(prompt)) =
        (command, prompt.filter(|prompt: &Cow<'_, str>| !prompt.trim().is_empty()))
    else {
        return Err(match purpose.is_read_only() {
            true => GuestSpawnError::NoQuestion,
            false => GuestSpawnError::NoPrompt,
        }
        .into());
    };
    let location = match request.isolated {
        true => ReadLocation::Detached(request.base.as_deref()),
        false => ReadLocation::MainCheckout,
    };
    let (name, agent) = (request.name.clone(), command.agent.clone());
    let lane =
        read_only::plan_guest_lane(project, GuestLaneRequest { name, prompt, agent, purpose, location })?;
    let checks = match purpose.is_read_only() {
        true => Vec::new(),
        false => stop_gate::merge_checks(project, &lane.target.rev_name, &[])?,
    };
    let command = command.with_checks(checks);
    refuse_or_warn_before_start(project, request.calling_lane.as_deref(), [&command])?;
    Ok(GuestSpawnPlan { lane, command, purpose, attachments: &request.attachments })
}

impl GuestSpawnPlan<'_> {
    /// Creates the lane and starts its agent.
    ///
    /// # Errors
    /// Fails when the name has been taken since, a hook refuses, or the agent cannot be started. An in-place
    /// lane whose run was refused is removed again.
    pub fn execute(self, project: &Project) -> Result<GuestSpawnOutcome, Error> {
        // No lane is created whose agent could not be started.
        project.git_proq_path()?;
        let (lane, lock) = read_only::create_guest_lane(project, &self.lane, self.attachments)?;
        project.register_repository();
        match start_supervisor::launch(project, &lane, lock, &self.command) {
            Ok(lane) => Ok(GuestSpawnOutcome { lane, command: self.command }),
            Err(e) => {
                if matches!(&e, agent::Error::Lane(_))
                    && lane.works_in_place()
                    && let Err(e) = read_only::forget_unstarted_lane(project, &lane)
                {
                    project.listener.warn(format!("lane '{}' is left: {e}", lane.name));
                }
                Err(e.into())
            }
        }
    }
}

/// JSON form of a guest lane and its run.
#[derive(Debug, Serialize)]
pub struct GuestReport<'a> {
    #[serde(flatten)]
    start: StartReport<'a>,
    mode: LanePurpose,
    #[serde(skip_serializing_if = "Option::is_none")]
    permission: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<String>,
    dry_run: bool,
}

impl<'a> GuestReport<'a> {
    /// Describes a lane in which `command` was started. `state` is the lane's state for display, and `answer`
    /// that of the run if it has ended.
    pub fn of_lane(
        lane: &'a AnyLane,
        command: Option<&AgentCommand>,
        state: LaneState,
        answer: Option<String>,
    ) -> GuestReport<'a> {
        GuestReport {
            start: StartReport::of_lane(lane, command, state),
            mode: lane.purpose().unwrap_or(LanePurpose::Answer),
            permission: command.and_then(AgentCommand::permission_level),
            detail: lane.detail.as_deref(),
            answer,
            dry_run: false,
        }
    }
}

impl Serialize for GuestSpawnPlan<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let target = &self.lane.target;
        GuestReport {
            start: StartReport {
                lane: &self.lane.name,
                path: &target.dir,
                base: &target.rev_name,
                start_commit: target.commit.to_string(),
                agent: Some(&self.command.agent),
                command: Some(self.command.display_command_line()),
                runnable_commands: self.command.runnable_commands_text(),
                state: LaneState::Idle,
            },
            mode: self.purpose,
            permission: self.command.permission_level(),
            detail: None,
            answer: None,
            dry_run: true,
        }
        .serialize(serializer)
    }
}

impl Serialize for GuestSpawnOutcome {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        GuestReport::of_lane(&self.lane, Some(&self.command), self.lane.state(), None).serialize(serializer)
    }
}

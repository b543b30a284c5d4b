//! Start of a further run in an existing lane.

use std::path::PathBuf;

use proq_base::explain::Explain;
use proq_base::lane_name::LaneName;
use proq_base::regular_file;
use proq_store::base::run_number::RunNumber;
use proq_store::records::lane::AnyLane;
use proq_store::records::lane_state::LaneState;
use serde::{Serialize, Serializer};

use super::launch_checks::refuse_or_warn_before_start;
use crate::agent;
use crate::agent::command::agent_command::{AgentCommand, RunOptions};
use crate::agent::command::conversation;
use crate::agent::hook_events::stop_gate;
use crate::agent::launch::task_loop_start::LoopStart;
use crate::agent::launch::{start_supervisor, task_loop_start};
use crate::agent::task_loop::loop_status;
use crate::agent::task_loop::loop_status::LoopStatus;
use crate::lane::Project;
use crate::lane::messages::attached_files::MessageFiles;
use crate::ops::error::Error;
use crate::ops::refusal::refuse_changed_lane;

/// Request for a further run in a lane. Without a prompt, a lane that works at a task folder continues with
/// it, and any other lane runs its task again.
#[derive(Debug)]
pub struct RunRequest {
    /// The lane as it is on record.
    pub lane: AnyLane,
    /// Profile name of the agent; that of the lane for a task folder if none is given.
    pub agent: Option<String>,
    /// Prompt of the agent.
    pub prompt: Option<String>,
    /// Absolute paths of the files to attach to the prompt.
    pub attachments: Vec<PathBuf>,
    /// Options of the run.
    pub options: RunOptions,
    /// Folder from which the caller names programs.
    pub dir: PathBuf,
    /// Lane in which the caller works, if any.
    pub calling_lane: Option<String>,
}

/// Reason why a run cannot be planned.
#[derive(Debug, thiserror::Error, Explain)]
pub enum RunError {
    /// A task folder was to be continued in a tmux window.
    #[error("cannot use --tmux: the steps of a task folder do not run in a window")]
    #[exit(Usage)]
    #[hint("leave --tmux out")]
    TaskFolderInWindow,
}

/// Run that would be started. Serializes to the output of a dry run.
#[derive(Debug)]
pub struct RunPlan<'a> {
    /// The lane at the time of planning.
    pub lane: AnyLane,
    /// The command to start.
    pub command: AgentCommand,
    /// Task loop that the run continues; none for a run with a prompt or the lane's task.
    pub task_loop: Option<LoopStatus>,
    /// Whether the command replaces the one that the task loop had.
    replaces_command: bool,
    request: &'a RunRequest,
}

/// Run that was started. Serializes to the output of `git proq run`.
#[derive(Debug)]
pub struct RunOutcome {
    /// The lane after the start.
    pub lane: AnyLane,
    /// The started command.
    pub command: AgentCommand,
    /// Number of the run; of the last one if all steps were done.
    run: RunNumber,
    /// Whether no run was started, since all steps of the task folder were done.
    pub already_done: bool,
}

/// Plans a run. Warns of what the user should know before the agent starts.
///
/// # Errors
/// Fails when an agent runs in the lane, the agent is not found or cannot do what is requested, the lane has
/// no task folder to continue with, or the caller may not start such an agent.
pub fn plan<'a>(project: &Project, request: &'a RunRequest) -> Result<RunPlan<'a>, Error> {
    let lane = &request.lane;
    project.require_idle(lane)?;
    let layout = project.store.layout();
    let is_resumed =
        request.prompt.is_none() && (request.agent.is_none() || layout.task_loop_record(&lane.name).exists());
    let (command, task_loop, replaces_command) = if is_resumed {
        let (command, status) = plan_resumed_loop(project, request)?;
        let replaces = request.agent.is_some() || !request.options.has_no_agent_options();
        (command, Some(status), replaces)
    } else {
        let text = request.prompt.clone().unwrap_or_else(|| {
            regular_file::read_store_text(layout.task_prompt(&lane.name)).unwrap_or_default()
        });
        let options = RunOptions { purpose: lane.purpose(), ..request.options.clone() };
        let agent = request.agent.as_deref().unwrap_or_default();
        (request.agent_command(project, agent, &text, &options)?, None, false)
    };
    let command = command.with_checks(stop_gate::lane_checks(project, lane)?);
    refuse_or_warn_before_start(project, request.calling_lane.as_deref(), [&command])?;
    Ok(RunPlan { lane: lane.clone(), command, task_loop, replaces_command, request })
}

/// Returns the command that continues the lane's task loop, and how far the loop is.
fn plan_resumed_loop(project: &Project, request: &RunRequest) -> Result<(AgentCommand, LoopStatus), Error> {
    let RunRequest { lane, agent, options, .. } = request;
    if options.in_window {
        return Err(RunError::TaskFolderInWindow.into());
    }
    let no_task_loop = || match agent {
        None if !options.agent_command.is_empty() => {
            agent::Error::command_in_lane_error(&lane.name, &options.agent_command)
        }
        _ => agent::Error::TaskIsNoFolder { lane: lane.name.clone() },
    };
    let status = loop_status::read_loop_status(&project.store.layout().lane(&lane.name), lane)?
        .ok_or_else(no_task_loop)?;
    let agent_command = match agent {
        Some(_) => options.agent_command.clone(),
        None => conversation::find_user_agent_command(&project.store, lane)?,
    };
    let agent = agent.as_ref().or(lane.agent.as_ref()).ok_or_else(no_task_loop)?;
    let options = RunOptions { agent_command, ..options.clone() };
    Ok((request.agent_command(project, agent, &lane.title, &options)?, status))
}

impl RunRequest {
    fn agent_command(
        &self,
        project: &Project,
        agent: &str,
        prompt: &str,
        options: &RunOptions,
    ) -> Result<AgentCommand, agent::Error> {
        AgentCommand::from_profile(project, agent, prompt, &self.dir, options)
            .map_err(|e| e.into_command_in_lane(&self.lane.name, &self.options.agent_command))
    }
}

impl RunPlan<'_> {
    /// Starts the run.
    ///
    /// # Errors
    /// Fails when an agent runs in the lane, its conflict is being resolved, it has changed since the plan was
    /// made, or the agent cannot be started.
    pub fn execute(self, project: &Project) -> Result<RunOutcome, Error> {
        let (lane, lock) = project.lock_any_idle_lane(&self.lane.name)?;
        conversation::refuse_while_resolving(project, &lane)?;
        refuse_changed_lane(&self.lane, &lane)?;
        let (command, run) = (self.command, lane.last_run.next());
        if self.task_loop.is_some() {
            let new_command = Some(&command).filter(|_| self.replaces_command);
            return Ok(match task_loop_start::resume_task_loop(project, &lane, lock, new_command)? {
                LoopStart::Running(lane) => RunOutcome { lane, command, run, already_done: false },
                LoopStart::Finished(lane) => {
                    RunOutcome { run: lane.last_run, lane, command, already_done: true }
                }
            });
        }
        let copies = MessageFiles::copy(&project.store, &lane.name, &self.request.attachments)?;
        let prompt = self.request.prompt.as_ref().map(|prompt| copies.append_to(prompt)).transpose()?;
        let lane = start_supervisor::launch_with_prompt(project, &lane, lock, &command, prompt.as_deref())?;
        copies.retain();
        Ok(RunOutcome { lane, command, run, already_done: false })
    }
}

/// JSON form of a run.
#[derive(Serialize)]
struct RunReport<'a> {
    lane: &'a LaneName,
    agent: &'a str,
    command: String,
    /// Commands that the agent may run without a request, as text.
    #[serde(rename = "may_run", skip_serializing_if = "Option::is_none")]
    runnable_commands: Option<String>,
    #[serde(rename = "attempt")]
    run: RunNumber,
    state: LaneState,
    dry_run: bool,
}

impl<'a> RunReport<'a> {
    fn new(lane: &'a AnyLane, command: &'a AgentCommand, run: RunNumber) -> RunReport<'a> {
        RunReport {
            lane: &lane.name,
            agent: &command.agent,
            command: command.display_command_line(),
            runnable_commands: command.runnable_commands_text(),
            run,
            state: lane.state(),
            dry_run: false,
        }
    }
}

impl Serialize for RunPlan<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let report = RunReport::new(&self.lane, &self.command, self.lane.last_run.next());
        RunReport { dry_run: true, ..report }.serialize(serializer)
    }
}

impl Serialize for RunOutcome {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        RunReport::new(&self.lane, &self.command, self.run).serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::TestRepository;

    /// Simulates a run of another process between the plan and its execution.
    #[test]
    fn refuses_lane_that_had_a_run_since_the_plan() {
        let repository = TestRepository::new();
        let project = &repository.project;
        let request = RunRequest {
            lane: repository.create_lane("x", None).into_any(),
            agent: Some("cat".to_owned()),
            prompt: Some("do it".to_owned()),
            attachments: Vec::new(),
            options: RunOptions::default(),
            dir: repository.top.clone(),
            calling_lane: None,
        };
        let run_plan = plan(project, &request).unwrap();
        assert_eq!(serde_json::to_value(&run_plan).unwrap()["dry_run"], true);
        let name = &request.lane.name;
        project.update_lane(name, |record| record.last_run = record.last_run.next()).unwrap();
        let error = run_plan.execute(project).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("lane '{name}' has changed since the plan was computed; nothing was changed")
        );
        assert!(!project.store.layout().run_record(name, RunNumber::first()).exists());
    }
}

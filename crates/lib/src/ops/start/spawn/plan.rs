//! Plan of a spawn: the lanes that would be created, and the commands that would be started in them.

use std::path::{Path, PathBuf};

use proq_base::lane_name::LaneName;
use proq_git::status::scope::Scope;
use proq_plan::task_folders::SingleTask;

use super::overlap_warnings::warn_of_overlapping_lanes;
use super::request::{LaneProgram, RequestedLanes, SpawnRequest, SpawnRequestError};
use super::uncommitted::UncommittedCheck;
use crate::agent::command::agent_command::AgentCommand;
use crate::agent::hook_events::stop_gate;
use crate::agent::launch::folder_task::FolderTask;
use crate::lane;
use crate::lane::Project;
use crate::lane::creation::create::{LanePlan, NewLane};
use crate::lane::creation::{create, create_many};
use crate::lane::inspection::base;
use crate::ops::error::Error;
use crate::ops::start::launch_checks::refuse_or_warn_before_start;

/// Maximum number of numbered names that are tried if the name of a task folder's lane is taken.
const MAX_NUMBERED_LANE_NAMES: u32 = 1000;

/// Lanes that would be created. Serializes to the output of a dry run.
#[derive(Debug)]
pub struct SpawnPlan<'a> {
    /// The planned lanes, in order; more than one only in a group of attempts.
    pub lanes: Vec<LanePlan<'a>>,
    /// The command to start in each of the lanes; none for a lane that stays empty.
    pub commands: Vec<Option<AgentCommand>>,
    /// The task folder that the only lane is for.
    pub folder_task: Option<FolderTask>,
    /// Files that are copied for the agents.
    pub attachments: &'a [PathBuf],
    /// Check for uncommitted changes that the lanes will lack.
    pub uncommitted: UncommittedCheck,
    /// Request for each lane, without the name and the group of an attempt.
    pub(super) new_lane: NewLane<'a>,
}

/// Plans the requested lanes. Warns of what the user should know before the agents start.
///
/// # Errors
/// [`SpawnRequestError`]; fails when a program is not found or cannot do what is requested, the base does not
/// exist, a name is taken, or the caller may not start such an agent.
pub fn plan<'a>(project: &Project, request: &'a SpawnRequest) -> Result<SpawnPlan<'a>, Error> {
    let (checks, scope) = request.checks_and_scope()?;
    let mut commands = request.agent_commands(project)?;
    let folder_task = request.load_folder_task(project, &commands)?;
    let base = base::resolve(project, request.base.as_deref(), request.onto.as_deref())?;
    if commands.iter().any(Option::is_some) {
        let run_checks = stop_gate::merge_checks(project, &base.branch, &checks)?;
        for command in commands.iter_mut().flatten() {
            *command = command.clone().with_checks(run_checks.clone());
        }
    }
    let current_worktree = project.repo.current_worktree().or(project.repo.main_worktree());
    let new_lane = NewLane {
        name: request.name.clone(),
        prompt: request.task_prompt(),
        name_hint: request.command_line().map(Into::into),
        agent: commands.first().cloned().flatten().map(|command| command.agent),
        carry_from: current_worktree.filter(|_| request.carry).map(Path::to_owned),
        checks,
        scope,
        sparse: request.sparse,
        auto_merge: request.auto_merge,
        set_up: request.set_up,
        issue: request.issue.clone(),
        ..NewLane::new(base)
    };
    let refuse_or_warn =
        || refuse_or_warn_before_start(project, request.calling_lane.as_deref(), commands.iter().flatten());
    let lanes = match &request.lanes {
        RequestedLanes::Attempts(_) => {
            refuse_or_warn()?;
            let lanes = create_many::plan_attempts(project, &new_lane, &agent_names(&commands))?;
            lanes.first().into_iter().for_each(|first| warn_of_overlapping_lanes(project, first));
            lanes
        }
        single => {
            let lane = match single {
                RequestedLanes::TaskFolder { task, .. } => plan_folder_lane(project, &new_lane, task)?,
                _ => create::plan_lane(project, new_lane.clone())?,
            };
            warn_of_overlapping_lanes(project, &lane);
            refuse_or_warn()?;
            vec![lane]
        }
    };
    Ok(SpawnPlan {
        lanes,
        commands,
        folder_task,
        attachments: &request.attachments,
        uncommitted: UncommittedCheck::new(current_worktree, request.carry),
        new_lane,
    })
}

impl SpawnPlan<'_> {
    /// Returns whether the lanes are attempts at one task.
    pub fn is_group(&self) -> bool {
        self.lanes.iter().any(|lane| lane.group().is_some())
    }

    /// Returns the agents of the lanes, in order.
    pub(super) fn agent_names(&self) -> Vec<Option<String>> {
        agent_names(&self.commands)
    }
}

fn agent_names(commands: &[Option<AgentCommand>]) -> Vec<Option<String>> {
    commands.iter().map(|command| command.as_ref().map(|command| command.agent.clone())).collect()
}

impl SpawnRequest {
    /// Returns the programs of the lanes, in order.
    fn programs(&self) -> Vec<LaneProgram> {
        match &self.lanes {
            RequestedLanes::Single(program) => vec![program.clone()],
            RequestedLanes::Attempts(programs) => programs.clone(),
            RequestedLanes::TaskFolder { agent, .. } => vec![LaneProgram::Agent(agent.clone())],
        }
    }

    /// Returns the prompt of the lanes' task.
    fn task_prompt(&self) -> Option<&str> {
        match &self.lanes {
            RequestedLanes::TaskFolder { task, .. } => Some(&task.task.prompt),
            _ => self.prompt.as_deref(),
        }
    }

    /// Returns the user's command line, after which lanes without a prompt are named.
    fn command_line(&self) -> Option<String> {
        self.programs().first().and_then(LaneProgram::command_line)
    }

    /// Returns the checks and the scope of the lanes, with those of a task folder.
    ///
    /// # Errors
    /// [`SpawnRequestError`]; fails when the scope is not a list of globs.
    fn checks_and_scope(&self) -> Result<(Vec<String>, Vec<String>), Error> {
        let (mut checks, mut scope) = (self.checks.clone(), self.scope.clone());
        if let RequestedLanes::TaskFolder { task, .. } = &self.lanes {
            checks.extend(task.task.checks.iter().cloned());
            scope.extend(task.task.scope.iter().cloned());
        }
        if checks.iter().any(|line| line.trim().is_empty()) {
            return Err(SpawnRequestError::BlankCheck.into());
        }
        if self.sparse && scope.is_empty() {
            return Err(SpawnRequestError::SparseWithoutScope.into());
        }
        Scope::parse(&scope)?;
        Ok((checks, scope))
    }

    /// Returns the commands to start in the lanes, in order.
    fn agent_commands(&self, project: &Project) -> Result<Vec<Option<AgentCommand>>, Error> {
        let prompt = match &self.lanes {
            // Each step has a prompt of its own.
            RequestedLanes::TaskFolder { task, .. } => &task.task.title,
            _ => self.prompt.as_deref().unwrap_or_default(),
        };
        let to_command =
            |program: LaneProgram| Ok(program.agent_command(project, prompt, &self.dir, &self.options)?);
        self.programs().into_iter().map(to_command).collect()
    }

    /// Loads the task folder, if the lane is for one.
    fn load_folder_task(
        &self,
        project: &Project,
        commands: &[Option<AgentCommand>],
    ) -> Result<Option<FolderTask>, Error> {
        let RequestedLanes::TaskFolder { task, reviewer, .. } = &self.lanes else { return Ok(None) };
        let SingleTask { task, path, relative_path, .. } = task.as_ref();
        let level = task.review_level.unwrap_or_default();
        let folder_task =
            FolderTask::load(&project.settings, path, relative_path, &task.title, level, reviewer.clone())?;
        commands.iter().flatten().try_for_each(|command| folder_task.check_reviewer(project, command))?;
        Ok(Some(folder_task))
    }
}

/// Plans the lane of a task folder. Without a given name, the lane is named after the folder, with a number
/// if that name is taken.
fn plan_folder_lane<'a>(
    project: &Project,
    new_lane: &NewLane<'a>,
    task: &SingleTask,
) -> Result<LanePlan<'a>, lane::Error> {
    if new_lane.name.is_some() {
        return create::plan_lane(project, new_lane.clone());
    }
    let folder_name = task.relative_path.rsplit('/').next().unwrap_or(&task.relative_path);
    let preferred = LaneName::from_title(&folder_name.replace('_', "-"));
    let mut number = 1;
    loop {
        let name = Some(preferred.numbered(number));
        match create::plan_lane(project, NewLane { name, ..new_lane.clone() }) {
            Err(e) if e.is_taken() && number < MAX_NUMBERED_LANE_NAMES => number += 1,
            plan => return plan,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_blank_check_and_sparse_lane_without_scope() {
        let refusal = |request: SpawnRequest| request.checks_and_scope().unwrap_err();
        let error = refusal(SpawnRequest { checks: vec![" ".to_owned()], ..SpawnRequest::default() });
        assert_eq!((error.to_string().as_str(), error.exit_code()), ("--check names no command", 2));
        let error = refusal(SpawnRequest { sparse: true, ..SpawnRequest::default() });
        let text = "cannot use --sparse: there is no --scope";
        assert_eq!((error.to_string().as_str(), error.exit_code()), (text, 2));
    }
}

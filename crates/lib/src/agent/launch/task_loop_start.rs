//! Start and continuation of a task loop in a lane.

use std::path::Path;

use proq_base::fail_points;
use proq_base::run_class::RunClass;
use proq_store::base::id::new_id;
use proq_store::base::record::Record;
use proq_store::locks::lock::LockGuard;
use proq_store::records::batched::RunTask;
use proq_store::records::lane::AnyLane;
use proq_store::records::lane_state::RunState;
use proq_store::records::run::RunRecord;
use proq_store::records::task_loop::{StepRecord, TaskLoopRecord};

use super::folder_task::FolderTask;
use super::launch_spec::PromptSource;
use super::prepare_run::prepare_run;
use super::run_spec::RunSpec;
use super::start_supervisor::start_supervisor;
use crate::agent::Error;
use crate::agent::command::agent_command::AgentCommand;
use crate::agent::task_loop::active_task::{ActiveTask, FinishedRun};
use crate::agent::task_loop::loop_planner::NextAction;
use crate::agent::task_loop::task_folder::{CommitExclusions, LaneTaskFolder};
use crate::lane::Project;
use crate::run::lane_costs;

/// Starts the work at a folder task under a supervisor, in a lane in which nothing runs, and returns when the
/// first agent runs. `command` is how the work is done, and `lock` the lane's run lock.
///
/// All callers that run such tasks start here. The caller creates the lane as for any other task, with the
/// text of PROMPT.md as its prompt. The supervisor then continues from run to run until the task is done,
/// fails, or is stopped. The result is the lane's state and detail, as for any run;
/// [`crate::agent::task_loop::loop_status::read_loop_status()`] returns the progress. To stop it gracefully, see
/// [`crate::agent::control::stop::stop_after_wrap_up()`].
///
/// Uncommitted files of the task that the lane already has were left by an attempt whose work was reverted.
/// They are moved to the folder of the last run, and the task starts with the files of `task`.
///
/// # Errors
/// As [`crate::agent::launch::start_supervisor::launch()`], and [`Error::InvalidTaskFolder`]: then the lane is unchanged and has no
/// run.
pub fn launch_task_loop(
    project: &Project,
    lane: &AnyLane,
    lock: LockGuard,
    command: &AgentCommand,
    task: &FolderTask,
) -> Result<AnyLane, Error> {
    let worktree_lane = project.lane(&lane.name)?;
    let folder = LaneTaskFolder::new(&worktree_lane.path, &task.folder);
    let exclusions = folder.detect_exclusions(&project.repo)?;
    let record = new_loop_record(project, lane, command, task, exclusions)?;
    let mut active = ActiveTask::with_record(project, lane, record)?;
    // After a crash from here on, the lane's record contains this task, so that the copied files never count
    // as uncommitted work.
    active.save()?;
    fail_points::hit("packet.noted");
    folder.exclude_from_commits(&project.repo, exclusions)?;
    if exclusions.exclude_folder || exclusions.exclude_status {
        let (layout, leftovers_id) = (project.store.layout(), new_id());
        let saved_path =
            |file: &Path| layout.run_former_task_file(&lane.name, lane.last_run, &leftovers_id, file);
        folder.move_leftovers_away(&task.files, exclusions.exclude_folder, &saved_path)?;
        fail_points::hit("packet.cleared");
    }
    if exclusions.exclude_folder {
        folder.write_missing_files(&task.files)?;
    } else if exclusions.exclude_status {
        folder.write_missing_status(&task.files)?;
    }
    active.prepare_folder()?;
    let status = active.status()?;
    let record = active.record_mut();
    (record.boxes_ticked, record.boxes_total) = (status.boxes_ticked(), status.boxes_total());
    let done_steps = status.steps.iter().filter(|step| step.is_done());
    record.steps = done_steps
        .map(|step| StepRecord { number: step.number, done_before: true, ..StepRecord::default() })
        .collect();
    active.save()?;
    match start_next_run(project, lane, lock, &mut active)? {
        LoopStart::Running(lane) | LoopStart::Finished(lane) => Ok(lane),
    }
}

/// Creates the record of a task loop that is about to start.
fn new_loop_record(
    project: &Project,
    lane: &AnyLane,
    command: &AgentCommand,
    task: &FolderTask,
    exclusions: CommitExclusions,
) -> Result<TaskLoopRecord, Error> {
    let spent = lane_costs::total_costs(&project.store, lane)?;
    let tip = lane
        .branch()
        .map(|branch| project.repo.branch_tip(branch))
        .transpose()?
        .flatten()
        .unwrap_or(lane.start);
    Ok(TaskLoopRecord {
        folder: task.folder.clone(),
        title: task.title.clone(),
        agent: command.agent.clone(),
        agent_command: command.user_agent_command(),
        permission: command.permission_level(),
        model: command.model.clone(),
        max_turns: command.max_turns,
        allow: command.allow_flags().to_vec(),
        batch: task.batch_task.clone(),
        extra_prompt: task.extra_prompt.clone(),
        review_level: task.review_level,
        reviewer: task.reviewer.clone(),
        exclude_folder: exclusions.exclude_folder,
        exclude_status: exclusions.exclude_status,
        conversation: None,
        iterations: 0,
        idle_iterations: 0,
        last_counted_run: lane.last_run,
        start: tip,
        last_tip: tip,
        boxes_ticked: 0,
        boxes_total: 0,
        limits: command.limits,
        duration_before_loop: spent.duration,
        cost_before_loop: spent.cost.map(|cost| cost.amount).unwrap_or_default(),
        last_review: None,
        steps: Vec::new(),
    })
}

/// Continues a lane's task folder as [`resume_task_loop`] does, as another attempt at a batch task.
///
/// # Errors
/// As [`resume_task_loop`].
pub(crate) fn resume_as_batch_attempt(
    project: &Project,
    lane: &AnyLane,
    lock: LockGuard,
    new_command: Option<&AgentCommand>,
    batch_task: RunTask,
) -> Result<LoopStart, Error> {
    let no_task_loop = || Error::TaskIsNoFolder { lane: lane.name.clone() };
    let mut active = ActiveTask::find(project, lane)?.ok_or_else(no_task_loop)?;
    active.record_mut().batch = Some(batch_task);
    active.save()?;
    resume_task_loop(project, lane, lock, new_command)
}

/// Result of starting or resuming a task loop.
pub enum LoopStart {
    /// A run was started. Holds the lane.
    Running(AnyLane),
    /// No run was started, since all steps were done. Holds the lane, whose state is now done.
    Finished(AnyLane),
}

/// Continues a lane's task folder where it stopped, as [`launch_task_loop`] started it: steps that are done
/// are not repeated. `new_command` replaces the agent and its options, if given. `lock` is the lane's run
/// lock.
///
/// # Errors
/// As [`launch_task_loop`]; [`Error::TaskIsNoFolder`] for a lane without such a task,
/// [`Error::TaskLoopStopped`] when it cannot continue.
pub fn resume_task_loop(
    project: &Project,
    lane: &AnyLane,
    lock: LockGuard,
    new_command: Option<&AgentCommand>,
) -> Result<LoopStart, Error> {
    let no_task_loop = || Error::TaskIsNoFolder { lane: lane.name.clone() };
    let mut active = ActiveTask::find(project, lane)?.ok_or_else(no_task_loop)?;
    active.prepare_folder()?;
    let run = RunRecord::load_if_exists(&project.store.layout().run_record(&lane.name, lane.last_run))?;
    if let Some(run) = run.filter(|run| run.ended.is_some()) {
        let class = run.class.unwrap_or(RunClass::Crashed);
        let answer = run.summary.answer.clone();
        // A crash of the run's supervisor is no failure of the reviewer.
        let finished = FinishedRun {
            class,
            detail: run.detail.as_deref(),
            answer: answer.as_deref(),
            missing_verdict_is_failure: class == RunClass::Done,
        };
        if let Some(reason) = active.record_run(&run, finished)? {
            return Err(Error::TaskLoopStopped { lane: lane.name.clone(), reason });
        }
    }
    let spent = lane_costs::total_costs(&project.store, lane)?;
    let record = active.record_mut();
    record.idle_iterations = 0;
    if let Some(command) = new_command {
        (record.agent, record.agent_command) = (command.agent.clone(), command.user_agent_command());
        (record.permission, record.model, record.max_turns) =
            (command.permission_level(), command.model.clone(), command.max_turns);
        record.allow = command.allow_flags().to_vec();
        record.limits = command.limits;
    }
    // The limits apply to what is used from now on.
    record.duration_before_loop = spent.duration;
    record.cost_before_loop = spent.cost.map(|cost| cost.amount).unwrap_or_default();
    active.save()?;
    start_next_run(project, lane, lock, &mut active)
}

/// Starts the next run under a new supervisor. If the task is done, sets the lane's state to done instead.
fn start_next_run(
    project: &Project,
    lane: &AnyLane,
    lock: LockGuard,
    active: &mut ActiveTask<'_>,
) -> Result<LoopStart, Error> {
    match active.next_action()? {
        NextAction::Run { phase, step } => {
            let (command, prompt) = active.build_step_command(project, lane, phase, step)?;
            Ok(LoopStart::Running(start_supervisor(
                project,
                lane,
                lock,
                &command,
                PromptSource::Text(&prompt),
            )?))
        }
        NextAction::Done => {
            let detail = active.describe_progress()?;
            let lane = project.update_lane(&lane.name, |record| {
                record.set_run(RunState::Done);
                record.detail = Some(detail);
            })?;
            drop(lock);
            Ok(LoopStart::Finished(lane))
        }
        NextAction::Fail(reason) => Err(Error::TaskLoopStopped { lane: lane.name.clone(), reason }),
    }
}

/// Prepares the next run of a task loop. Called by the supervisor, which starts the run in its own process.
pub(crate) fn prepare_next_step(project: &Project, lane: &AnyLane) -> Result<RunSpec, Error> {
    let loop_finished = |reason: String| Error::TaskLoopStopped { lane: lane.name.clone(), reason };
    let mut active =
        ActiveTask::find(project, lane)?.ok_or_else(|| loop_finished("its record is missing".to_owned()))?;
    match active.next_action()? {
        NextAction::Run { phase, step } => {
            let (command, prompt) = active.build_step_command(project, lane, phase, step)?;
            prepare_run(project, lane, &command, PromptSource::Text(&prompt))
        }
        NextAction::Done => Err(loop_finished("all steps are done".to_owned())),
        NextAction::Fail(reason) => Err(loop_finished(reason)),
    }
}

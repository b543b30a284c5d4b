//! Loop over a task folder: its steps, one run after the other, each in a new conversation.

mod active_task;
mod loop_planner;
mod loop_status;
mod review;
mod review_verdict;
mod status;
mod step_prompt;
mod task_folder;

pub(crate) use active_task::{
    ActiveTask, FinishedRun, completes_iteration, has_task_loop, save_state_before_run,
};
pub(crate) use loop_planner::NextAction;
pub(crate) use loop_status::{LoopStatus, read_status};
pub(crate) use status::TaskProgress;
pub(crate) use step_prompt::{StepPrompt, describe_step_run};
pub(crate) use task_folder::{CommitExclusions, LaneTaskFolder, PROMPT_FILE, TaskFile, read_task_files};

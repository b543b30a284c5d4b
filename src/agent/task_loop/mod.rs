//! Loop over a task folder: its steps, one run after the other, each in a new conversation.

mod active_task;
mod loop_planner;
mod loop_status;
mod review;
mod review_verdict;
mod run_command;
mod start;
mod status;
mod step_prompt;
mod task_folder;

pub(crate) use active_task::{ActiveTask, FinishedRun, completes_iteration};
pub(crate) use loop_planner::NextAction;
pub(crate) use loop_status::{LoopStatus, read_status};
pub(crate) use start::{
    FolderTask, LoopStart, describe_step_run, has_task_loop, launch_task_loop, prepare_next_step,
    reload_folder_task, resume_as_batch_attempt, resume_task_loop, save_state_before_run,
};
pub(crate) use status::TaskProgress;

//! Loop over a task folder: its steps, one run after the other, each in a new conversation.

pub(crate) mod active_task;
pub(crate) mod loop_planner;
pub(crate) mod loop_status;
pub(crate) mod review;
pub(crate) mod review_verdict;
pub(crate) mod status;
pub(crate) mod step_prompt;
pub(crate) mod task_folder;

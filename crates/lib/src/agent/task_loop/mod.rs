//! Loop over a task folder: its steps, one run after the other, each in a new conversation.

pub mod active_task;
pub mod loop_planner;
pub mod loop_status;
pub mod review;
pub mod review_verdict;
pub mod step_prompt;
pub mod task_folder;

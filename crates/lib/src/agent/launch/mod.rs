//! Preparation of a run, and the start of its supervisor.

pub mod folder_task;
pub mod launch_spec;
pub mod launcher;
pub mod new_run_record;
pub mod overseer;
pub mod prepare_run;
pub mod prompt_marker;
pub mod run_spec;
pub mod start_supervisor;
pub mod step_command;
pub mod task_loop_start;

//! Preparation of a run, and the start of its supervisor.

pub(crate) mod folder_task;
pub(crate) mod launch_spec;
pub(crate) mod launcher;
pub(crate) mod new_run_record;
pub(crate) mod overseer;
pub(crate) mod prepare_run;
pub(crate) mod run_spec;
pub(crate) mod start_supervisor;
pub(crate) mod step_command;
pub(crate) mod task_loop_start;

//! Starting and stopping programs other than git: agents, checks, and git-proq itself.

mod command_builder;
mod error;
mod exec_target;
mod identity;
mod inherited_fds;
mod limited_process;
mod run_async;
mod run_captured;
mod signals;
mod strays;
mod wake;

pub(crate) use command_builder::{AsyncChild, CommandBuilder, inherited_vars};
pub(crate) use error::Error;
pub(crate) use exec_target::ExecTarget;
pub(crate) use identity::{
    has_process_exited, is_ancestor_process, is_process_running, is_same_process, start_time_of,
};
pub use limited_process::ExitOutcome;
pub(crate) use limited_process::LimitedProcess;
pub(crate) use run_async::CapturedOutput;
pub(crate) use run_captured::{CaptureOptions, CaptureResult};
pub(crate) use signals::{
    exit_by_signal, is_group_alive, start_session, stop_group, stop_lock_holders, terminate_group,
    terminate_process,
};
pub(crate) use strays::{
    RUN_CONTEXT_VARS, RUN_MARK_VAR, adopt_orphans, stop_marked_processes, stop_stray_processes,
};
pub(crate) use wake::{register_wake_pipe, wake};

/// Finds a program as a shell would: on `PATH`, or at a path relative to `dir`.
pub(crate) fn find_executable(program: &str, dir: &std::path::Path) -> Result<std::path::PathBuf, Error> {
    which::which_in(program, std::env::var_os("PATH"), dir)
        .map_err(|_| Error::NotFound { program: program.to_owned() })
}

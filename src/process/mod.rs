//! Starting and stopping programs other than git: agents, checks, and git-proq itself.

pub(crate) mod command_builder;
pub(crate) mod error;
pub(crate) mod exec_target;
pub(crate) mod find_executable;
pub(crate) mod identity;
pub(crate) mod inherited_fds;
pub(crate) mod limited_process;
pub(crate) mod run_async;
pub(crate) mod run_captured;
pub(crate) mod signals;
pub(crate) mod strays;
pub(crate) mod wake;

pub(crate) use error::Error;
pub(crate) use find_executable::find_executable;
pub(crate) use wake::wake;

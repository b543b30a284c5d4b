//! Starting and stopping programs other than git: agents, checks, and git-proq itself.

pub mod closed_reader;
pub mod command_builder;
pub mod error;
pub mod exec_target;
pub mod find_executable;
pub mod identity;
pub mod inherited_fds;
pub mod limited_process;
pub mod run_async;
pub mod run_captured;
pub mod signals;
pub mod strays;
pub mod wake;

pub use error::Error;
pub use find_executable::find_executable;
pub use wake::wake;

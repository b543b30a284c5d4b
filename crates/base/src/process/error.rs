//! Errors of starting and stopping other programs.

use crate::explain::Explain;

/// Error of starting or stopping a program.
#[derive(Debug, thiserror::Error, Explain)]
pub enum Error {
    /// The program does not exist.
    #[error("cannot start '{program}': there is no such program on PATH")]
    #[hint("list installed agents: git proq agents")]
    NotFound {
        /// Name or path of the program.
        program: String,
    },
    /// The program exists but cannot be started.
    #[error("cannot start '{program}'")]
    #[hint("check its interpreter: head -n 1 \"$(command -v {program})\"")]
    NotStarted {
        /// Path of the program.
        program: String,
        /// I/O error of the start.
        #[source]
        source: std::io::Error,
    },
    /// A signal could not be sent.
    #[error("cannot signal process {pid}")]
    NotSignaled {
        /// Process id.
        pid: u32,
        /// Error of the system call.
        #[source]
        source: std::io::Error,
    },
}

//! Errors of starting and stopping other programs.

use crate::explain::Explain;

/// Error of starting or stopping a program.
#[derive(Debug, thiserror::Error, Explain)]
pub enum Error {
    /// The program does not exist.
    #[error("'{program}' was not found: no file of that name on PATH that can be executed")]
    #[hint("see which agents are installed: git proq agents")]
    #[hint("or give a command: git proq spawn -n NAME -- CMD ARGS…")]
    NotFound {
        /// Name or path of the program.
        program: String,
    },
    /// The program exists but cannot be started.
    #[error("'{program}' could not be started")]
    #[hint("see that it is executable and its interpreter exists")]
    NotStarted {
        /// Path of the program.
        program: String,
        /// I/O error of the start.
        #[source]
        source: std::io::Error,
    },
    /// A signal could not be sent.
    #[error("process {pid} could not be signaled")]
    NotSignaled {
        /// Process id.
        pid: u32,
        /// Error of the system call.
        #[source]
        source: std::io::Error,
    },
}

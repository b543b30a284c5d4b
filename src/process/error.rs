//! Owns what can go wrong with other programs.

use std::borrow::Cow;

use crate::explain::Explain;

/// An error from starting or ending a program.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No such program.
    #[error("'{program}' was not found: no file of that name on PATH that can be executed")]
    NotFound {
        /// What was looked for.
        program: String,
    },
    /// It is there and cannot be started.
    #[error("'{program}' could not be started")]
    Start {
        /// The program.
        program: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A signal could not be sent.
    #[error("process {pid} could not be signalled")]
    Signal {
        /// The process.
        pid: u32,
        /// Why.
        #[source]
        source: std::io::Error,
    },
}

impl Explain for Error {
    fn hints(&self) -> Vec<Cow<'static, str>> {
        match self {
            Error::NotFound { .. } => vec![
                "see which agents are installed: git proq agents".into(),
                "or give a command: git proq spawn -n NAME -- CMD ARGS…".into(),
            ],
            Error::Start { .. } => {
                vec!["see that it is executable and its interpreter exists".into()]
            }
            Error::Signal { .. } => Vec::new(),
        }
    }
}

//! Errors of plans and batches.

use std::borrow::Cow;

use super::{BatchError, PlanError};
use crate::explain::{Exit, Explain};

/// The reason why a plan cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An error in the source of a plan.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// An error of git.
    #[error(transparent)]
    Git(#[from] crate::git::Error),
    /// An error of a batch.
    #[error(transparent)]
    Batch(#[from] BatchError),
    /// An error of the store.
    #[error(transparent)]
    Store(#[from] crate::store::Error),
    /// An error of a lane.
    #[error(transparent)]
    Lane(#[from] crate::lane::Error),
    /// An error of an agent.
    #[error(transparent)]
    Agent(#[from] crate::agent::Error),
    /// An error of a landing.
    #[error(transparent)]
    Merge(#[from] crate::merge::Error),
    /// An error of a preview.
    #[error(transparent)]
    Preview(#[from] crate::preview::Error),
    /// An error of a child process.
    #[error(transparent)]
    Process(#[from] crate::process::Error),
}

impl Error {
    /// Returns the error that this one wraps.
    fn wrapped_error(&self) -> &dyn Explain {
        match self {
            Error::Plan(error) => error,
            Error::Git(error) => error,
            Error::Batch(error) => error,
            Error::Store(error) => error,
            Error::Lane(error) => error,
            Error::Agent(error) => error,
            Error::Merge(error) => error,
            Error::Preview(error) => error,
            Error::Process(error) => error,
        }
    }
}

impl Explain for Error {
    fn hints(&self) -> Vec<Cow<'static, str>> {
        self.wrapped_error().hints()
    }

    fn exit(&self) -> Exit {
        self.wrapped_error().exit()
    }
}

//! Random histories: the user, lanes and git-proq work on one repository in any order, and a model predicts
//! the outcome of each step.

mod generate;
mod landings;
mod model;
mod objects;
mod observe;
mod oracle;
mod preview;
mod runner;
mod shrink;
mod step;
mod test_bench;
mod undo;
mod worktree;

pub(crate) use generate::generate_history;
pub(crate) use runner::{FORBIDDEN_OUTPUT, run_history};
pub(crate) use shrink::shrink;
pub(crate) use test_bench::{CommandCounts, TestBench};

/// Error of the harness itself, which ends the run. A mismatch between git-proq and the model is not an
/// error.
pub(crate) type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Returns an error with this message.
fn fail<T>(message: impl Into<String>) -> Outcome<T> {
    Err(message.into().into())
}

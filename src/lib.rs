//! `git-proq`: several coding agents on one repository at once, without losing work.
//!
//! The program is a thin layer over this library. [`Proq`] does the same work for other programs:
//!
//! ```no_run
//! use git_proq::{Proq, Spawn};
//!
//! let proq = Proq::open(".")?;
//! let lane = proq.spawn(&Spawn::agent("claude", "implement payments"))?;
//! proq.wait(&lane.name)?;
//! let report = proq.merge(&[lane.name])?;
//! println!("{:?}", report.lanes);
//! # Ok::<(), git_proq::Error>(())
//! ```

mod agent;
mod cli;
mod config;
mod copy;
mod event;
mod explain;
mod facade;
mod fault;
mod git;
mod harmless;
mod health;
mod interrupt;
mod lane;
mod markdown;
mod merge;
mod note;
mod preview;
#[doc(hidden)]
pub mod probe;
mod process;
mod regular_file;
mod store;
mod swarm;

pub use facade::{Error, Lane, Proq, Spawn};
pub use git::{Oid, RepoPath};
pub use merge::{Check, Checks, Outcome, Report, TaskChecks, Verdict};
pub use process::Ended;
pub use store::records::{LaneState, Strategy};

/// Runs the program with the arguments it was started with, and returns its exit code.
#[must_use]
pub fn main() -> std::process::ExitCode {
    cli::main()
}

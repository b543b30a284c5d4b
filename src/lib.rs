//! `git-proq`: run several coding agents on one repository at the same time, without losing work.
//!
//! The program is a thin layer over this library. [`Proq`] offers the same operations to other programs:
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
mod diagnostics;
mod event;
mod explain;
mod facade;
mod fail_points;
mod git;
mod health;
mod interrupt;
mod lane;
mod markdown;
mod merge;
mod preview;
#[doc(hidden)]
pub mod probe;
mod process;
mod regular_file;
mod run_class;
mod store;
mod swarm;
mod terminal_text;
mod usage;

pub use facade::{Error, Lane, Proq, Spawn};
pub use git::{Oid, RepoPath};
pub use merge::{CheckFailure, CheckSummary, LandingReport, LaneOutcome, TaskChecks, Verdict};
pub use process::ExitOutcome;
pub use store::records::{LaneState, MergeStrategy};

/// Runs the program with its command-line arguments and returns its exit code.
#[must_use]
pub fn main() -> std::process::ExitCode {
    cli::main()
}

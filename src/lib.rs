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
mod lane_name;
mod markdown;
mod merge;
mod preview;
#[doc(hidden)]
pub mod probe;
mod process;
mod regular_file;
mod run;
mod run_class;
mod session;
mod snapshot;
mod store;
mod swarm;
mod terminal_text;
mod undo;
mod usage;

use crate::cli::app::program;
pub use crate::git::base::oid::Oid;
pub use crate::git::base::path::RepoPath;
pub use crate::merge::types::outcome::{
    CheckFailure, CheckSummary, LandingReport, LaneOutcome, TaskChecks, Verdict,
};
pub use crate::process::limited_process::ExitOutcome;
pub use crate::store::records::lane::MergeStrategy;
pub use crate::store::records::lane_state::LaneState;
pub use facade::{Error, Lane, Proq, Spawn};

/// Runs the program with its command-line arguments and returns its exit code.
#[must_use]
pub fn main() -> std::process::ExitCode {
    program::main()
}

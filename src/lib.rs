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

mod cli;

use crate::cli::app::program;
pub use proq_base::lane_name::{InvalidLaneName, LaneName};
pub use proq_base::process::limited_process::ExitOutcome;
pub use proq_git::base::oid::{CommitId, Oid, TreeId};
pub use proq_git::base::path::RepoPath;
pub use proq_lib::facade::{Error, Lane, Proq, Spawn};
pub use proq_lib::merge::types::outcome::{
    CheckFailure, CheckSummary, LandingReport, LaneOutcome, TaskChecks, Verdict,
};
#[doc(hidden)]
pub use proq_lib::probe;
pub use proq_store::records::lane::MergeStrategy;
pub use proq_store::records::lane_state::LaneState;

/// Runs the program with its command-line arguments and returns its exit code.
#[must_use]
pub fn main() -> std::process::ExitCode {
    program::main()
}

//! Errors of what is shown.

use proq_base::explain::Explain;
use proq_base::lane_name::LaneName;
use proq_store::base::run_number::RunNumber;

/// Reason why something cannot be shown.
#[derive(Debug, thiserror::Error, Explain)]
pub enum BoardError {
    /// The lane has no run with this number.
    #[error(
        "lane '{lane}' has no run {}",
        if *run == RunNumber::NONE { "yet".to_owned() } else { run.to_string() }
    )]
    #[hint("list its runs: git proq show {lane}")]
    NoSuchRun {
        /// Name of the lane.
        lane: LaneName,
        /// The number as it was given; 0 for the latest run of a lane that has none.
        run: RunNumber,
    },
    /// No automatic merge has followed a run of the lane.
    #[error("lane '{lane}' has no automatic merge")]
    #[hint("merge it: git proq merge {lane}")]
    NoAutoMerge {
        /// Name of the lane.
        lane: LaneName,
    },
    /// No set-up command has run in the lane.
    #[error("lane '{lane}' ran no lane.setup command")]
    #[hint("list the settings: git proq config list")]
    NoSetUpRun {
        /// Name of the lane.
        lane: LaneName,
    },
    /// No check of the lane has failed.
    #[error("lane '{lane}' has no failed check")]
    #[hint("show the lane: git proq show {lane}")]
    NoFailedCheck {
        /// Name of the lane.
        lane: LaneName,
    },
}

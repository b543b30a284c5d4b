//! Plain types of the lower crates that programs name to call the library and to show what it returns.

pub use proq_base::lane_name::LaneName;
pub use proq_git::base::head::RefMove;
pub use proq_git::program::command::PrintChunk;
pub use proq_git::snapshots::restore_forecast::RestoreOutcome;
pub use proq_git::status::diff::FileLineCounts;
pub use proq_git::status::patch::PatchSelection;
pub use proq_git::status::worktree_status::WorktreeStatus;
pub use proq_git::{CommitId, RepoPath};
pub use proq_store::base::batch_id::BatchId;
pub use proq_store::base::clock::{Moment, now};
pub use proq_store::base::id::new_id;
pub use proq_store::base::operation_number::OperationNumber;
pub use proq_store::base::run_number::RunNumber;
pub use proq_store::locks::lock::WaitLimit;
pub use proq_store::records::agent::{Activity, ReportRecord};
pub use proq_store::records::conflict::ResolutionRecord;
pub use proq_store::records::lane::{AnyLane, LanePurpose, LaneRecord, MergeStrategy};
pub use proq_store::records::lane_state::{LandingState, LaneState, LaneStatus, RunState};
pub use proq_store::records::message::MessageRecord;
pub use proq_store::records::run::{RunLimits, RunRecord, RunSummary};
pub use proq_store::records::step_run::StepPhase;

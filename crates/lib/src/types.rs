//! Plain types of the lower crates that programs name to call the library and to show what it returns.

pub use crate::agent::command::agent_command::RunOptions;
pub use crate::agent::control::wait::{WaitUntil, WaitedLane};
pub use crate::lane::inspection::list::LaneView;
pub use crate::lane::worktree::set_up::commands::SetUpLevel;
pub use crate::merge::types::options::{LandingOptions, StackOrder};
pub use crate::merge::types::outcome::{
    BaseForecast, CheckFailure, CheckStatus, CheckSummary, LandingPlan, LandingReport, LaneForecast,
    LaneOutcome, PlannedLane, PushReport, TaskChecks, Verdict,
};
pub use crate::merge::types::resolver::Allowance;
pub use crate::operation::undo_plan::UndoTarget;
pub use crate::swarm::batch::record::BatchRecord;
pub use crate::swarm::landing::batch_records::BatchRecords;
pub use crate::swarm::status::progress::{BatchProgress, LaneProgress, TaskCounts, TaskProgress};
pub use proq_base::diagnostics::{Listener, Note};
pub use proq_base::explain::Exit;
pub use proq_base::interrupt::{CancellationScope, CancellationToken};
pub use proq_base::lane_name::{InvalidLaneName, LaneName};
pub use proq_base::money::NanoDollars;
pub use proq_base::process::limited_process::ExitOutcome;
pub use proq_git::base::error::list_paths;
pub use proq_git::base::head::RefMove;
pub use proq_git::base::oid::{Oid, TreeId};
pub use proq_git::merge::forecast::PathConflict;
pub use proq_git::merge::text_merge::LineRange;
pub use proq_git::program::command::PrintChunk;
pub use proq_git::repository::settings::SettingsFile;
pub use proq_git::snapshots::restore_forecast::RestoreOutcome;
pub use proq_git::status::diff::{DiffStat, FileLineCounts};
pub use proq_git::status::patch::PatchSelection;
pub use proq_git::status::worktree_status::WorktreeStatus;
pub use proq_git::{CommitId, RepoPath};
pub use proq_plan::plan_format::PlanFormat;
pub use proq_plan::schedule::options::{
    BatchOptions, LandingFailurePolicy, LandingMode, LaneAssignment, TaskFailurePolicy,
};
pub use proq_store::base::batch_id::BatchId;
pub use proq_store::base::clock::{Moment, now};
pub use proq_store::base::id::new_id;
pub use proq_store::base::operation_number::OperationNumber;
pub use proq_store::base::run_number::RunNumber;
pub use proq_store::locks::lock::WaitLimit;
pub use proq_store::operations::origin::{MCP_ORIGIN, ORIGIN_VARIABLE};
pub use proq_store::records::agent::{Activity, OverseerRecord, ReportRecord};
pub use proq_store::records::approval::{ApprovalsRecord, ApprovedCommand};
pub use proq_store::records::conflict::ResolutionRecord;
pub use proq_store::records::lane::{AnyLane, LanePurpose, LaneRecord, MergeStrategy};
pub use proq_store::records::lane_state::{LandingState, LaneState, LaneStatus, RunState};
pub use proq_store::records::message::MessageRecord;
pub use proq_store::records::pull_request::{
    IssueLink, PullRequest, PullRequestState, PullRequestStatus, RemoteChecks,
};
pub use proq_store::records::run::{RunLimits, RunRecord, RunSummary};
pub use proq_store::records::step_run::StepPhase;

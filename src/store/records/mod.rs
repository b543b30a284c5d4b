//! Definitions of all records on disk.

mod agent;
mod approval;
mod baseline;
mod batched;
mod check;
mod conflict;
mod draft;
mod git_guard;
mod lane;
mod lane_state;
mod message;
mod ports;
mod preview;
mod run;
mod snapshot;
mod step;
mod step_run;
mod task_loop;
mod trash;

pub(crate) use crate::run_class::RunClass;
pub(crate) use crate::usage::{Cost, SessionTotals, Tokens};
pub(crate) use agent::{Activity, ActivityRecord, OverseerRecord, ReportRecord};
pub(crate) use approval::{ApprovalsRecord, ApprovedCommand};
pub(crate) use baseline::{
    BaselineFile, BaselineLane, BaselineWorktree, CheckoutBaseline, DirtyFile, WorktreeBaselineRecord,
};
pub(crate) use batched::{BatchBranches, BatchLane, RunTask};
pub(crate) use check::{CheckWorktreeRecord, FailedCheckRecord, VerifyCacheRecord};
pub(crate) use conflict::{ConflictRecord, ConflictStage, ConflictedPath, ResolutionRecord};
pub(crate) use draft::{DraftApproval, DraftRecord, ProposalsRecord, ProposedNeed, RunCosts};
pub(crate) use git_guard::{GitGuardRecord, GuardedSettings, SettingsFile, WithheldHooks};
pub(crate) use lane::{
    AnyLane, AutoMergeRefusal, GuestLane, LandingInfo, LaneKind, LaneRecord, LaneWorktree,
};
pub use lane::{LanePurpose, MergeStrategy};
pub use lane_state::LaneState;
pub(crate) use message::{DeliveredRecord, MessageRecord};
pub(crate) use ports::{PORTS_PER_LANE as PORT_COUNT, Ports, SetUpRecord};
pub(crate) use preview::PreviewRecord;
pub(crate) use run::{RunLimits, RunRecord, RunSummary, SupervisorProcess, TmuxWindow};
pub(crate) use snapshot::{AutomaticInfo, SnapshotRecord};
pub(crate) use step::{PreRestoreState, Step};
pub(crate) use step_run::{StepPhase, StepRun};
pub(crate) use task_loop::{LastReview, ReviewState, ReviewVerdict, StepRecord, TaskLoopRecord};
pub(crate) use trash::{ReusedTrashRecord, TrashRecord};

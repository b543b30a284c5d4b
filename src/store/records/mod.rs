//! Definitions of all records on disk.

mod activity;
mod approval;
mod batched;
mod check;
mod checkout_baseline;
mod conflict;
mod draft;
mod git_guard;
mod lane;
mod lane_state;
mod message;
mod overseer;
mod ports;
mod preview;
mod report;
mod resolution;
mod run;
mod set_up;
mod snapshot;
mod step;
mod task_loop;
mod trash;
mod worktree_baseline;

pub(crate) use crate::usage::{Cost, SessionTotals, Tokens};
pub(crate) use activity::{Activity, ActivityRecord};
pub(crate) use approval::{ApprovalsRecord, ApprovedCommand};
pub(crate) use batched::{BatchBranches, BatchLane, RunTask};
pub(crate) use check::{CheckWorktreeRecord, FailedCheckRecord, VerifyCacheRecord};
pub(crate) use checkout_baseline::{CheckoutBaseline, DirtyFile};
pub(crate) use conflict::{ConflictRecord, ConflictStage};
pub(crate) use draft::{DraftApproval, DraftRecord, ProposalsRecord, ProposedNeed, RunCosts};
pub(crate) use git_guard::{GitGuardRecord, GuardedSettings, SettingsFile, WithheldHooks};
pub(crate) use lane::{
    AnyLane, AutoMergeRefusal, GuestLane, LandingInfo, LaneKind, LaneRecord, LaneWorktree,
};
pub use lane::{LanePurpose, MergeStrategy};
pub use lane_state::LaneState;
pub(crate) use message::{DeliveredRecord, MessageRecord};
pub(crate) use overseer::OverseerRecord;
pub(crate) use ports::{PORTS_PER_LANE as PORT_COUNT, Ports};
pub(crate) use preview::PreviewRecord;
pub(crate) use report::ReportRecord;
pub(crate) use resolution::{ConflictedPath, ResolutionRecord};
pub(crate) use run::{RunClass, RunLimits, RunRecord, RunSummary, SupervisorProcess, TmuxWindow};
pub(crate) use set_up::SetUpRecord;
pub(crate) use snapshot::{AutomaticInfo, SnapshotRecord};
pub(crate) use step::{PreRestoreState, Step};
pub(crate) use task_loop::{
    LastReview, ReviewState, ReviewVerdict, StepPhase, StepRecord, StepRun, TaskLoopRecord,
};
pub(crate) use trash::{ReusedTrashRecord, TrashRecord};
pub(crate) use worktree_baseline::{BaselineFile, BaselineLane, BaselineWorktree, WorktreeBaselineRecord};

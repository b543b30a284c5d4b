//! Landing of lanes: which lanes may land, how git-proq stacks them in memory, checks the result and moves
//! the base in one step. Conflicts are captured and leave the base untouched.

mod apply;
mod branch_move;
mod candidate;
mod check_commands;
mod check_environment;
mod check_runs;
mod check_worktree;
mod checked_stack;
mod commit_hooks;
mod compare;
mod conflict;
mod conflict_regions;
mod culprit_search;
mod dry_verify;
mod eligibility;
mod error;
mod failed_check;
mod forecast;
mod git_options;
mod group_landing;
mod landing;
mod landing_proof;
mod lane_conflicts;
mod lane_examination;
mod lane_refusal;
mod lane_stack;
mod local_changes;
mod message;
mod note_commit;
mod options;
mod order;
mod outcome;
mod overlap;
mod parts;
mod prepared_stack;
mod push;
mod queue_turn;
mod resolution_check;
mod resolve;
mod resolve_agent;
mod resolve_error;
mod resolve_prompt;
mod resolver;
mod stack_order;
mod stop;
mod sure_landing;
mod uncommitted_work;
mod verification;
mod verifier;
mod verify_cache;

pub(crate) use candidate::LanePart;
pub(crate) use compare::{AttemptSummary, CheckSource, Comparison, compare_attempts};
pub(crate) use error::Error;
pub(crate) use forecast::{
    ComparedLane, Forecast, ForecastPair, ForecastRequest, PairResult as Meeting, forecast_lanes,
};
pub(crate) use landing::land_lanes;
pub(crate) use note_commit::NoteCommit;
pub(crate) use options::{LandingOptions, PushMode, StackOrder, landing_bases};
pub use outcome::{CheckFailure, CheckSummary, LandingReport, LaneOutcome, PushReport, TaskChecks, Verdict};
pub(crate) use outcome::{CheckStatus, LandingPlan, PlannedLane};
pub(crate) use overlap::{report_overlaps, report_overlaps_of_lane};
pub(crate) use parts::{PartsRequest, land_parts};
pub use resolve::ResolvedConflict;
pub(crate) use resolve::{
    ResolutionStart, abort_resolution, continue_resolution, load_conflict, open_for_user,
};
pub(crate) use resolve_agent::{load_resolution, require_agent_approved, resolve_by_agent, resume_by_agent};
pub use resolve_error::ResolveError;
pub(crate) use resolver::{Allowance, Resolver};
pub(crate) use sure_landing::is_sure_to_land;
pub(crate) use verification::{VerifyRequest, VerifyResult, verify_command};

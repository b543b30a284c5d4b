//! Plans of dependent tasks and the batches that run them: plan sources and formats, dependencies, file
//! overlaps, and scheduling.

mod batch;
mod dependency_graph;
mod done_marks;
mod draft_error;
pub(crate) mod drafts;
mod file_replacement;
mod lane_sharing;
mod plan;
mod plan_commands;
mod plan_diff;
mod plan_error;
mod plan_format;
mod plan_marks;
mod plan_source;
pub(crate) mod planner;
mod proposed_needs;
mod roadmap;
mod run;
mod schedule;
mod simulation;
mod source_file;
mod source_node;
mod stories;
mod table_schema;
mod task_folders;
mod toml_plan;
mod yaml;

pub(crate) use batch::{
    Batch, BatchError, BatchRecord, BatchTask, ControlRequestKind, CriteriaReport, Error, EventEntry, Ledger,
    LogLine, LogTail, NewBatch, TaskDefaults, batch_tasks, create_batch, find_batch, is_running as is_run,
    list_batches as batches, schedule_phases,
};
pub(crate) use dependency_graph::{CriticalPath, DependencyGraph};
pub(crate) use draft_error::DraftError;
pub(crate) use lane_sharing::{FileOverlap, LaneSharing};
pub(crate) use plan::{Group, Phase, PhaseOrder, Plan, PlanTask, Progress, Size, Task};
pub(crate) use plan_commands::{collect_plan_commands, criterion_command};
pub(crate) use plan_diff::{PlanChange, diff_plans};
pub(crate) use plan_error::{PlanError, SourceLocation};
pub(crate) use plan_format::PlanFormat;
pub(crate) use plan_marks::PlanMarks;
pub(crate) use plan_source::{LoadedPlan, PlanRequest, ProposedEdge, read_plan};
pub(crate) use proposed_needs::{apply_approved, with_proposals};
pub(crate) use run::{
    BUDGET_SPENT, BatchHistory, BatchProgress, FINISHED_PHRASE, HistoryNote, LandingEvent, LaneProgress,
    LogSummary, Obstacle, TaskAttempt, TaskProgress, UnlandedBatch, batch_of_landing_lane,
    clean_up as clean_up_batch, first_dependent_batch, forecast_landing_lane, has_undone_landings,
    landing_hint, list_unlanded_batches, mark_landed, open_landing_lane, read_task_folder,
    refuse_if_built_on, remove_landing_lane, require_base, require_criteria_met,
    resume_scheduler as resume_batch, run as run_batch, start_scheduler as start_batch,
    submit_requests as submit_batch_requests, uncommitted_marks,
};
pub(crate) use schedule::{
    Action, BatchOptions, BatchOutcome, FailureReason, LandingFailurePolicy, LandingMode, LaneAssignment,
    PauseReason, ScheduleEvent, State, TaskFailurePolicy, TaskOutcome, TaskRunEnd,
};
pub(crate) use simulation::{Pace, Simulation};
pub(crate) use task_folders::{SingleTask, TaskLayout, read_single_task};
pub(crate) use toml_plan::{TEMPLATE, plan_schema, plan_to_toml};

//! Execution of a batch: the process around the scheduler, which carries out the scheduler's actions and
//! reports the results.
//!
//! [`runner::Runner`] is a loop over the events that it receives. Each event goes to the log first, then to
//! the scheduler, and then the actions are carried out in their order. Long work is done by threads, which
//! report with a message: one waits for each run's lock, one lands, and one per conflict watches the agent
//! that resolves it. A kill at any moment therefore leaves either a written event or nothing. An action that
//! was started is found again by what it left: a lane by the batch and number in its record, a run by task
//! and attempt, a landing by its landing record.

mod attempt_runs;
mod batch_cleanup;
mod batch_events;
mod batch_history;
mod batch_landing;
mod conflict_resolver;
mod control_requests;
mod criteria_verification;
mod initial_checks;
mod landed_marks;
mod landing_thread;
mod lane_set_up;
mod lanes;
mod log_summary;
mod manual_repairs;
mod progress;
mod run_capacity;
mod runner;
mod runner_event;
mod scheduler_process;
mod task_claims;
mod task_folders;
mod task_landing;
mod task_runs;
mod undone_landings;

pub(crate) use batch_cleanup::clean_up;
pub(crate) use batch_history::{
    BatchHistory, HistoryNote, LandingEvent, Obstacle, TaskAttempt, attempts_from_log,
};
pub(crate) use batch_landing::{
    FINISHED_PHRASE, UnlandedBatch, batch_of_landing_lane, first_dependent_batch, forecast_landing_lane,
    landing_hint, list_unlanded_batches, open_landing_lane, refuse_if_built_on, remove_landing_lane,
    require_base, require_criteria_met,
};
pub(crate) use control_requests::submit_requests;
pub(crate) use landed_marks::{mark_landed, uncommitted_marks};
pub(crate) use log_summary::LogSummary;
pub(crate) use progress::{BUDGET_SPENT, BatchProgress, LaneProgress, TaskProgress};
pub(crate) use runner::run;
pub(crate) use scheduler_process::{resume_scheduler, start_scheduler};
pub(crate) use task_folders::read_task_folder;
pub(crate) use undone_landings::has_undone_landings;

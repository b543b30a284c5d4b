//! Execution of a batch: the process around the scheduler, which carries out the scheduler's actions and
//! reports the results.
//!
//! [`runner::Runner`] is a loop over the events that it receives. Each event goes to the log first, then to
//! the scheduler, and then the actions are carried out in their order. Long work is done by threads, which
//! report with a message: one waits for each run's lock, one lands, and one per conflict watches the agent
//! that resolves it. A kill at any moment therefore leaves either a written event or nothing. An action that
//! was started is found again by what it left: a lane by the batch and number in its record, a run by task
//! and attempt, a landing by its landing record.

pub(crate) mod attempt_runs;
pub(crate) mod batch_events;
pub(crate) mod conflict_resolver;
pub(crate) mod control_requests;
pub(crate) mod criteria_verification;
pub(crate) mod initial_checks;
pub(crate) mod landing_thread;
pub(crate) mod lane_set_up;
pub(crate) mod lanes;
pub(crate) mod run_capacity;
pub(crate) mod runner;
pub(crate) mod runner_event;
pub(crate) mod scheduler_process;
pub(crate) mod task_claims;
pub(crate) mod task_folders;
pub(crate) mod task_landing;
pub(crate) mod task_runs;

//! Execution of a batch: the process around the scheduler, which carries out the scheduler's actions and
//! reports the results.
//!
//! `runner::Runner` is a loop over the events that it receives. Each event goes to the log first, then to
//! the scheduler, and then the actions are carried out in their order. Long work is done by threads, which
//! report with a message: one waits for each run's lock, one lands, and one per conflict watches the agent
//! that resolves it. A kill at any moment therefore leaves either a written event or nothing. An action that
//! was started is found again by what it left: a lane by the batch and number in its record, a run by task
//! and attempt, a landing by its landing record.

pub mod attempt_runs;
pub mod batch_events;
pub mod conflict_resolver;
pub mod control_requests;
pub mod criteria_verification;
pub mod initial_checks;
pub mod landing_thread;
pub mod lane_set_up;
pub mod lanes;
pub mod run_capacity;
pub mod runner;
pub mod runner_event;
pub mod scheduler_process;
pub mod task_claims;
pub mod task_folders;
pub mod task_landing;
pub mod task_runs;

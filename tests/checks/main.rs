//! Checks of landings, the stop gate, forecasts, and merges beside those of git.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod base_failures;
mod check_isolation;
mod check_set_up;
mod exact_merge;
mod forecast;
mod landing_checks;
mod matrix;
mod overlap;
mod stop_gate;
mod task_checks;
mod verify;
mod verify_cache;
mod verify_many;

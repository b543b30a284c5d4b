//! Runs: supervisors, limits, logs, read-only runs, runs in the main checkout, and task loops.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod already_done;
mod budget;
mod followers;
mod in_place;
mod in_place_concurrency;
#[cfg(target_os = "linux")]
#[cfg(debug_assertions)]
mod in_place_crashes;
mod in_place_edge_cases;
mod isolated_runs;
mod logs;
mod read_only_lane_removal;
mod read_only_runs;
mod run_display;
mod run_limits;
mod runs;
mod stop;
mod supervise;
mod supervisor_memory;
mod task_loop;
mod task_loop_killed;
mod task_loop_reviews;
mod wait;

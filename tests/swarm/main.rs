//! Plans and batches: formats, planning agents, scheduling, control, and reports.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod batch_landing;
mod deps;
mod deps_agent;
mod plan;
mod plan_ai;
mod plan_ai_failures;
mod plan_end_to_end;
mod plan_folders;
mod plan_roadmap;
mod plan_status_marks;
mod plan_stories;
mod report;
mod settings_changed;
mod swarm;
mod swarm_commands;
mod swarm_control;
mod swarm_criteria;
mod swarm_folders;
mod swarm_kills;
mod swarm_leftovers;
mod swarm_limits;
mod swarm_modes;
mod swarm_pre_warm;
mod swarm_refusals;
mod swarm_undone;

//! Commands for plans and batches: plan, deps, swarm, report, status.

pub(crate) mod batch;
pub(crate) mod batch_event_lines;
pub(crate) mod batch_view;
pub(crate) mod control;
pub(crate) mod deps;
pub(crate) mod follow_batch;
pub(crate) mod plan;
pub(crate) mod plan_args;
pub(crate) mod plan_text;
pub(crate) mod report_batch;
pub(crate) mod report_page;
pub(crate) mod report_text;
pub(crate) mod status;
pub(crate) mod swarm;
pub(crate) mod swarm_args;
pub(crate) mod text_parts;

//! Use cases of plans and batches, each as a request, a plan and an outcome, like those of [`crate::ops`].

pub mod approve;
pub mod batch_lookup;
pub mod control;
pub mod conversation;
pub mod dependencies;
pub mod draft_approval;
pub mod draft_plans;
pub mod draft_view;
mod earlier_batches;
pub mod find_needs;
pub mod follow;
pub mod land_batch;
pub mod named_plan;
pub mod plan_file;
pub mod plan_output;
pub mod plan_view;
pub mod resume;
pub mod start;

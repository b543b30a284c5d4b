//! Stacks of lanes applied on top of the base, their order and conflicts.

pub mod apply;
pub mod commit_hooks;
pub mod conflict;
pub mod git_options;
pub mod lane_conflicts;
pub mod lane_stack;
pub mod message;
pub mod message_template;
pub mod order;
pub mod stack_order;

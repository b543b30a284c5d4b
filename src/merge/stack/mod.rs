//! Stacks of lanes applied on top of the base, their order and conflicts.

pub(crate) mod apply;
pub(crate) mod commit_hooks;
pub(crate) mod conflict;
pub(crate) mod git_options;
pub(crate) mod lane_conflicts;
pub(crate) mod lane_stack;
pub(crate) mod message;
pub(crate) mod order;
pub(crate) mod stack_order;

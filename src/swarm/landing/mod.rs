//! Landing of a batch's tasks, and marks in plan files for what landed.

pub(crate) mod batch_cleanup;
pub(crate) mod batch_landing;
pub(crate) mod file_replacement;
pub(crate) mod landed_marks;
pub(crate) mod plan_marks;

//! Landing of a batch's tasks, and marks in plan files for what landed.

pub mod batch_cleanup;
pub mod batch_landing;
pub mod batch_records;
pub mod file_replacement;
pub mod landed_marks;
pub mod plan_marks;

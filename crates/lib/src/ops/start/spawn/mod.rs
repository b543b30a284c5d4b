//! Creation of lanes in which agents or commands are started: one lane, attempts at one task, or a task folder.

pub mod execution;
pub mod overlap_warnings;
pub mod plan;
pub mod report;
pub mod request;
pub mod uncommitted;

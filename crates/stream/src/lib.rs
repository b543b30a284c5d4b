//! Agents' output: one parser per dialect, one type of event, and the summary of a run. This module has no
//! I/O and no clock.

pub mod base;
pub mod dialect;
pub mod live_reporting;
pub mod reader;
pub mod summary;
#[cfg(test)]
mod tests;

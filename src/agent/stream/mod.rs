//! Agents' output: one parser per dialect, one type of event, and the summary of a run. This module has no
//! I/O and no clock.

pub(crate) mod base;
pub(crate) mod dialect;
pub(crate) mod live_reporting;
pub(crate) mod reader;
pub(crate) mod summary;
#[cfg(test)]
mod tests;

//! Forecasts: which lanes would merge into their base, and which lanes conflict with each other.

pub mod cache;
pub mod changed_lines;
pub mod compute;
pub mod disjoint;
pub mod lanes;
pub mod report;

//! Forecasts: which lanes would merge into their base, and which lanes conflict with each other.

pub(crate) mod cache;
pub(crate) mod compute;
pub(crate) mod disjoint;
pub(crate) mod lanes;
pub(crate) mod report;

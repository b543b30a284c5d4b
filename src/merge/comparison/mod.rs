//! Forecast of conflicts between lanes, their overlaps, and comparison of attempts.

pub(crate) mod compare;
pub(crate) mod forecast;
pub(crate) mod overlap;

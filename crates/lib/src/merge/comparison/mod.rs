//! Forecast of conflicts between lanes, their overlaps, and comparison of attempts.

pub mod compare;
pub mod forecast;
pub mod overlap;

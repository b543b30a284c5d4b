//! Forecasts: which lanes would merge into their base, and which lanes conflict with each other.

mod cache;
mod compute;
mod disjoint;
mod lanes;
mod report;

pub(crate) use compute::{ForecastRequest, forecast_lanes};
pub(crate) use report::{ComparedLane, Forecast, ForecastPair, PairResult, SkippedLane};

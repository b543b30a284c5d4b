//! Owns forecasts: which lanes would merge into their base, and which of them would get along with each other.

mod answer;
mod apart;
mod cache;
mod lanes;
mod look;

pub(crate) use answer::{Compared, Forecast, LeftOut, Pair, Result};
pub(crate) use look::{Ask, forecast};

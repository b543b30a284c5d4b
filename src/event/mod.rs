//! Owns the event log: one numbered JSON line for everything that happens, for hooks, notifications and dashboards.

mod log;

pub(crate) use log::{Event, Log, Name};

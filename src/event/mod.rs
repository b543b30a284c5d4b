//! Owns the event log: one numbered JSON line for everything that happens, for hooks, notifications and dashboards; and
//! which commands of a repository's the user has approved.

mod approval;
mod log;
mod reader;

pub(crate) use approval::{Approvals, Command};
pub(crate) use log::{Event, Log, Name, last_number};
pub(crate) use reader::Reader;

//! Event log, with one numbered JSON line for every event. Also delivery of events to hooks and notifiers,
//! and approval of a repository's commands.

pub mod approval;
pub mod cursor;
pub mod dispatch;
pub mod hook;
pub mod log;
pub mod notify;
pub mod program_info;
pub mod reader;
pub mod sink;
pub mod terminal;
pub mod trigger;
pub mod webhook;
pub mod withheld_hooks;

//! Event log, with one numbered JSON line for every event. Also delivery of events to hooks and notifiers,
//! and approval of a repository's commands.

pub(crate) mod approval;
pub(crate) mod cursor;
pub(crate) mod dispatch;
pub(crate) mod hook;
pub(crate) mod log;
pub(crate) mod notify;
pub(crate) mod program_info;
pub(crate) mod reader;
pub(crate) mod sink;
pub(crate) mod terminal;
pub(crate) mod trigger;
pub(crate) mod webhook;
pub(crate) mod withheld_hooks;

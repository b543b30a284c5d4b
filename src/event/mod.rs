//! Event log, with one numbered JSON line for every event. Also delivery of events to hooks and notifiers,
//! and approval of a repository's commands.

mod approval;
mod cursor;
mod dispatch;
mod hook;
mod log;
mod notify;
mod program_info;
mod reader;
mod sink;
mod terminal;
mod trigger;
mod webhook;
mod withheld_hooks;

pub(crate) use approval::{Approvals, ShellCommand};
use cursor::DispatchCursor;
pub(crate) use dispatch::{OpenedRepo, dispatch};
pub(crate) use hook::{Hook, HookContext, log as log_hook, run as run_hook};
pub(crate) use log::{Certainty, Event, EventLog, EventName, last_event_number};
pub(crate) use notify::settings_without_program;
pub(crate) use program_info::{are_hooks_disabled, set_program_info};
pub(crate) use reader::EventReader;
pub(crate) use sink::Hooks;
pub(crate) use terminal::terminal_sequences;
pub(crate) use trigger::{has_hook, is_due, is_hook_event, start_dispatcher};
pub(crate) use withheld_hooks::{user_hook_lines, withhold_hooks};

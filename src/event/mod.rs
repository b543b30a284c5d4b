//! Owns the event log: one numbered JSON line for everything that happens; handing it out to hooks and notifiers; and which
//! commands of a repository's the user has approved.

mod approval;
mod cursor;
mod dispatch;
mod held;
mod hook;
mod log;
mod notify;
mod post;
mod reader;
mod terminal;
mod trigger;

pub(crate) use approval::{Approvals, Command};
use cursor::Cursor;
pub(crate) use dispatch::{Current, Hooks, dispatch};
pub(crate) use held::{hold_hooks, own_hook_lines};
pub(crate) use hook::{About, Hook, log as log_hook, run as run_hook};
pub(crate) use log::{Certainty, Event, Log, Name, last_number};
pub(crate) use notify::without_program;
pub(crate) use reader::Reader;
pub(crate) use terminal::signal;
pub(crate) use trigger::{has_hook, has_hooks, is_due, no_hooks, set_program, wake};

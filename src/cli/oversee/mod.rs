//! The `git proq supervise` command: one agent in the user's terminal that supervises all lanes.

mod command;
mod initial_prompt;

pub(crate) use command::Oversee;
pub(super) use command::run;

//! Owns `git proq supervise`: one agent, in the person's terminal, that looks after all lanes.

mod command;
mod overview;

pub(crate) use command::Oversee;
pub(super) use command::run;

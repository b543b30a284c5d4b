//! The `git proq supervise` command: one agent in the user's terminal that supervises all lanes.

pub(crate) mod command;

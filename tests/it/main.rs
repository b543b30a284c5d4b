//! Owns the tests through the real program: one file per command, all in one binary.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod agent_end;
mod agent_start;
mod carry;
mod cleanup;
mod config;
mod discard;
mod events;
mod guard;
mod list;
mod logs;
mod show;
mod spawn;
mod stop;
mod support;

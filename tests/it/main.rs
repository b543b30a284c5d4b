//! Owns the tests through the real program: one file per command, all in one binary.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod agent_end;
mod agent_start;
mod bad_git;
mod bad_input;
mod carry;
mod cleanup;
mod concurrency;
mod config;
mod discard;
mod discovery;
mod events;
mod guard;
mod list;
mod logs;
mod show;
mod spawn;
mod stop;
mod support;

//! `git-proq`: several coding agents on one repository at once, without losing work.

mod agent;
mod config;
mod event;
mod explain;
mod git;
mod interrupt;
mod lane;
mod merge;
mod note;
mod preview;
mod process;
mod store;

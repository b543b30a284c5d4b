//! `git-proq`: several coding agents on one repository at once, without losing work.

mod config;
mod event;
mod explain;
mod git;
mod interrupt;
mod note;
mod process;
mod store;

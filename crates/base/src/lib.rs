//! Foundation of all crates of git-proq: errors with hints, settings, processes, untrusted text.

extern crate self as proq_base;

pub mod config;
pub mod copy;
pub mod diagnostics;
pub mod explain;
pub mod fail_points;
pub mod full_disk;
pub mod hint;
pub mod interrupt;
pub mod lane_name;
pub mod markdown;
pub mod money;
pub mod process;
pub mod regular_file;
pub mod run_class;
pub mod terminal_text;
pub mod time_form;
pub mod trace;
pub mod usage;

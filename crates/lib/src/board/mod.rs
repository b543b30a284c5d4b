//! Model of the output about lanes, their changes, landings and batches: tables and JSON are made from it.

pub mod agents;
pub mod attention;
pub mod attention_reader;
pub mod batch_hints;
pub mod batches;
pub mod cost;
pub mod diff;
pub mod error;
pub mod landing;
pub mod lane_faults;
pub mod logs;
pub mod lookup;
pub mod matrix;
pub mod next_steps;
pub mod pager;
pub mod queue;
pub mod repositories;
pub mod rows;
pub mod settings;
pub mod status;
pub mod task;

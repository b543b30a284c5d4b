//! Owns plans of dependent tasks: where they are read from, what depends on what, and which of them get in each other's way.

mod error;
mod graph;
mod node;
mod plan;
mod shape;
mod sharing;
mod source;
mod toml_plan;

pub(crate) use error::{Error, Place};
pub(crate) use graph::{Graph, Route};
pub(crate) use plan::{Group, Order, Phase, Plan, Progress, Size, Spot, Task};
pub(crate) use sharing::{Met, Sharing};
pub(crate) use source::{Asked, Format, Found, read};
pub(crate) use toml_plan::{TEMPLATE, schema, written};

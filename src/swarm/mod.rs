//! Owns plans of dependent tasks: where they are read from, what depends on what, and which of them get in each other's way; and what a batch of them decides.

mod error;
mod folders;
mod graph;
mod node;
mod plan;
mod roadmap;
#[cfg_attr(not(test), expect(dead_code, unused_imports, reason = "nothing runs a batch yet; the tests do"))]
mod schedule;
mod shape;
mod sharing;
mod source;
mod stories;
mod toml_plan;
mod yaml;

pub(crate) use error::{Error, Place};
pub(crate) use folders::{Home, Single, single};
pub(crate) use graph::{Graph, Route};
pub(crate) use plan::{Group, Order, Phase, Plan, Progress, Size, Spot, Task};
pub(crate) use sharing::{Met, Sharing};
pub(crate) use source::{Asked, Format, Found, read};
pub(crate) use toml_plan::{TEMPLATE, schema, written};

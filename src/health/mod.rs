//! Owns looking over a repository for what is lost, wrong or worth knowing, and repairing what is provably safe.

mod batches;
mod checkouts;
mod conflicts;
mod disk;
mod examine;
mod finding;
mod lanes;
mod leftovers;
mod objects;
mod operations;
mod pool;
mod preview;
mod program;
mod repair;
mod scene;
mod settings;
mod snaps;
mod strays;
mod trash;

pub(crate) use examine::{Checked, Report, examine};
pub(crate) use finding::{Finding, Severity};

//! Health examination of a repository (`git proq doctor`): finds what is lost, wrong or worth knowing, and
//! repairs what is provably safe to repair.

mod batches;
mod check_context;
mod conflicts;
mod disk;
mod examine;
mod finding;
mod git_program;
mod lanes;
mod leftovers;
mod main_checkout;
mod objects;
mod operations;
mod pool;
mod preview;
mod repair;
mod settings;
mod snapshots;
mod trash;
mod unrecorded;

pub(crate) use examine::{CheckedItems, Report, examine};
pub(crate) use finding::{Finding, Severity};

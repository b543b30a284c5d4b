//! Health examination of a repository (`git proq doctor`): finds what is lost, wrong or worth knowing, and
//! repairs what is provably safe to repair.

pub mod batches;
pub mod check_context;
pub mod conflicts;
pub mod disk;
pub mod examine;
pub mod finding;
pub mod git_program;
pub mod lanes;
pub mod leftovers;
pub mod main_checkout;
pub mod objects;
pub mod operations;
pub mod pool;
pub mod preview;
pub mod repair;
pub mod settings;
pub mod snapshots;
pub mod trash;
pub mod unrecorded;

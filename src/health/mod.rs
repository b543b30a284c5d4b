//! Health examination of a repository (`git proq doctor`): finds what is lost, wrong or worth knowing, and
//! repairs what is provably safe to repair.

pub(crate) mod batches;
pub(crate) mod check_context;
pub(crate) mod conflicts;
pub(crate) mod disk;
pub(crate) mod examine;
pub(crate) mod finding;
pub(crate) mod git_program;
pub(crate) mod lanes;
pub(crate) mod leftovers;
pub(crate) mod main_checkout;
pub(crate) mod objects;
pub(crate) mod operations;
pub(crate) mod pool;
pub(crate) mod preview;
pub(crate) mod repair;
pub(crate) mod settings;
pub(crate) mod snapshots;
pub(crate) mod trash;
pub(crate) mod unrecorded;

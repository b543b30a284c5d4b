//! Commands that land lanes: merge, pick, resolve, queue, auto-merge.

pub(crate) mod landing;
pub(crate) mod landing_args;
pub(crate) mod landing_outcomes;
pub(crate) mod merge;
pub(crate) mod merge_args;
pub(crate) mod merge_batch;
pub(crate) mod pick;
pub(crate) mod pull_request;
pub(crate) mod pull_request_args;
pub(crate) mod queue;
pub(crate) mod resolve;
pub(crate) mod unlanded_batches;

//! Commands that create, start, stop and remove lanes.

pub(crate) mod attach;
pub(crate) mod attempts;
pub(crate) mod cleanup;
pub(crate) mod discard;
pub(crate) mod edit;
pub(crate) mod lane_removal;
pub(crate) mod new_lane;
pub(crate) mod read_only_run;
pub(crate) mod redispatch;
pub(crate) mod run;
pub(crate) mod send;
pub(crate) mod spawn;
pub(crate) mod spawn_args;
pub(crate) mod spawn_request;
pub(crate) mod stop;
pub(crate) mod task_folder;
pub(crate) mod wait;

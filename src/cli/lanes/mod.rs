//! Commands that create, start, stop and remove lanes.

pub(crate) mod attach;
pub(crate) mod cleanup;
pub(crate) mod discard;
pub(crate) mod edit;
pub(crate) mod lane_removal;
pub(crate) mod open;
pub(crate) mod read_only_run;
pub(crate) mod redispatch;
pub(crate) mod rename;
pub(crate) mod run;
pub(crate) mod send;
pub(crate) mod spawn;
pub(crate) mod spawn_args;
pub(crate) mod stop;
pub(crate) mod wait;

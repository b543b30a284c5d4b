//! Output of runs while they last and when they end.

pub(crate) mod follow_run;
pub(crate) mod guest_lane_output;
pub(crate) mod lane_bars;
pub(crate) mod lane_output;
pub(crate) mod log_view;
pub(crate) mod pull_request_view;
pub(crate) mod run_end;
pub(crate) mod wait_view;

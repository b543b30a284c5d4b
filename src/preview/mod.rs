//! Preview of a lane in the main checkout, with the user's own changes parked until the preview ends.

mod enter;
mod error;
mod leave;
mod main_checkout;
mod plan;
mod refresh;
mod remove_lane;

pub(crate) use enter::{EnterResult, enter_preview};
pub(crate) use error::Error;
pub(crate) use leave::{LeaveResult, leave_preview, leave_preview_of};
pub(crate) use main_checkout::{PreviewStatus, preview_status};
pub(crate) use plan::{PreviewAction, plan_preview};
pub(crate) use refresh::{RefreshResult, refresh_if_lane_advanced, refresh_preview};
pub(crate) use remove_lane::{RemoveResult, remove_previewed_lane};

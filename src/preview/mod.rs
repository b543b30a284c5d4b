//! Preview of a lane in the main checkout, with the user's own changes parked until the preview ends.

pub(crate) mod enter;
pub(crate) mod error;
pub(crate) mod leave;
pub(crate) mod main_checkout;
pub(crate) mod plan;
pub(crate) mod refresh;
pub(crate) mod remove_lane;

pub(crate) use error::Error;

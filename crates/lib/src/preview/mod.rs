//! Preview of a lane in the main checkout, with the user's own changes parked until the preview ends.

pub mod enter;
pub mod error;
pub mod leave;
pub mod main_checkout;
pub mod plan;
pub mod refresh;
pub mod remove_lane;

pub use error::Error;

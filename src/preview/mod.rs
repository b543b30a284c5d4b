//! Owns showing a lane in the main checkout, with the user's own changes kept safe meanwhile.

mod desk;
mod enter;
mod error;
mod leave;
mod plan;
mod refresh;
mod retire;

pub(crate) use desk::{Showing, showing};
pub(crate) use enter::{Entered, enter};
pub(crate) use error::Error;
pub(crate) use leave::{Back, back, leave_for};
pub(crate) use plan::{Goal, plan};
pub(crate) use refresh::{Refreshed, keep_up, refresh};
pub(crate) use retire::{Retired, retire};

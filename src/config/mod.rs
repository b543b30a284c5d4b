//! Owns settings: the table of keys, and where each value comes from.

mod checkouts;
mod form;
mod key;
mod layers;
mod notices;
mod pool;
mod set_up;
mod settings;

pub(crate) use checkouts::{Checkouts, INSIDE, Submodules};
pub(crate) use form::{Form, PORTS_OF_A_LANE, dollars, nano_dollars, time};
pub(crate) use key::{KEYS, Key};
pub(crate) use layers::{Error, Layers, Origin};
pub(crate) use notices::{Desktop, Notify, Room, masked};
pub(crate) use pool::Pool;
pub(crate) use set_up::SetUp;
pub(crate) use settings::{Autocommit, Settings, Uncommitted};

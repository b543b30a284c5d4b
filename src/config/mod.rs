//! Owns settings: the table of keys, and where each value comes from.

mod key;
mod layers;
mod settings;

pub(crate) use key::{KEYS, Key, nano_dollars, time};
pub(crate) use layers::{Error, Layers, Origin};
pub(crate) use settings::{Autocommit, Settings, Uncommitted};

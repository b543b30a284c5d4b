//! Configuration: the table of settings, and the layers that each value can come from.

pub(crate) mod key;
pub(crate) mod keys;
pub(crate) mod lane_checkout;
pub(crate) mod layers;
pub(crate) mod notifications;
pub(crate) mod pool;
pub(crate) mod set_up;
pub(crate) mod settings;
pub(crate) mod value_format;

pub(crate) use layers::Error;

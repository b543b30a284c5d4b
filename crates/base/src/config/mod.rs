//! Configuration: the table of settings, and the layers that each value can come from.

pub mod key;
pub mod keys;
pub mod lane_checkout;
pub mod layers;
pub mod notifications;
pub mod pool;
pub mod set_up;
pub mod settings;
pub mod value_format;

pub use layers::Error;

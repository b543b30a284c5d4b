//! Configuration: the table of settings, and the layers that each value can come from.

pub mod choices;
mod conversion;
pub mod key;
pub mod keys;
pub mod lane_location;
pub mod layers;
pub mod settings;
mod table;
mod toml_values;
pub mod value_format;

pub use layers::Error;

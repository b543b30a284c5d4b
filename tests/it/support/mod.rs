//! Owns what every test stands on: a sandbox of its own, a repository in it, and what the program answered.

mod image;
mod output;
mod sandbox;
pub mod scenes;
mod state;

pub use image::Image;
pub use output::Output;
pub use sandbox::Sandbox;
pub use state::{State, names};

//! Owns what every test stands on: a sandbox of its own, a repository in it, and what the program answered.

mod image;
mod output;
mod sandbox;

pub use image::Image;
pub use output::Output;
pub use sandbox::Sandbox;

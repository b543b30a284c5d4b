//! Owns what every test stands on: a sandbox of its own, a repository in it, and what the program answered.

mod output;
mod sandbox;

pub use output::Output;
pub use sandbox::Sandbox;

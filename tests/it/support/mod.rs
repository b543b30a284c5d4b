//! Owns what every test stands on: a sandbox of its own, a repository in it, and what the program answered.

mod happenings;
mod image;
mod output;
pub mod patience;
mod sandbox;
pub mod scenes;
#[cfg(debug_assertions)]
mod standing;
mod state;

pub use image::Image;
pub use output::Output;
pub use sandbox::Sandbox;
pub use state::{State, names};

/// What random tests start from: `PROQ_TEST_SEED`, a number or `random`.
pub fn seed() -> u64 {
    match std::env::var("PROQ_TEST_SEED").as_deref() {
        Ok("random") => {
            std::time::UNIX_EPOCH.elapsed().map_or(1, |d| u64::from(d.subsec_nanos()) + d.as_secs())
        }
        Ok(text) => text.parse().unwrap(),
        // The same in every run, so that a red one is about the change at hand.
        Err(_) => 2_026,
    }
}

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
mod watchdog;

pub use image::Image;
pub use output::Output;
pub use sandbox::Sandbox;
pub use state::{State, names};

/// Runs a command on a terminal, prints what it wrote there, and ends as it did: a script for `python3 -c`.
pub const ON_TERMINAL: &str = "import os, pty, sys
pid, fd = pty.fork()
if pid == 0: os.execvp(sys.argv[1], sys.argv[1:])
while True:
    try: part = os.read(fd, 1000)
    except OSError: break
    if not part: break
    os.write(1, part)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))";

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

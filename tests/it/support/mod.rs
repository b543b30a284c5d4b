//! Test kit: sandbox with a repository, captured output, states to compare, and waiting with a limit.

mod event_log;
pub mod fixtures;
mod output;
mod repo_state;
mod sandbox;
#[cfg(debug_assertions)]
mod stopped_process;
pub mod waiting;
mod watchdog;
mod worktree_state;

pub use output::Output;
pub use repo_state::{RepoState, file_names};
pub use sandbox::Sandbox;
pub use worktree_state::WorktreeState;

/// Script for `python3 -c`: runs a command on a pseudo-terminal, prints what it wrote, and exits with its
/// code.
pub const PTY_SCRIPT: &str = "import os, pty, sys
pid, fd = pty.fork()
if pid == 0: os.execvp(sys.argv[1], sys.argv[1:])
while True:
    try: part = os.read(fd, 1000)
    except OSError: break
    if not part: break
    os.write(1, part)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))";

/// Returns the seed of random tests: `PROQ_TEST_SEED`, a number or `random`, or a fixed number.
pub fn random_seed() -> u64 {
    match std::env::var("PROQ_TEST_SEED").as_deref() {
        Ok("random") => {
            std::time::UNIX_EPOCH.elapsed().map_or(1, |d| u64::from(d.subsec_nanos()) + d.as_secs())
        }
        Ok(text) => text.parse().unwrap(),
        // The same in every run, so that a failure is due to the change under test.
        Err(_) => 2_026,
    }
}

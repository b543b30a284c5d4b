//! Test kit: sandbox with a repository, captured output, states to compare, and waiting with a limit.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

mod account;
pub mod checkouts;
pub mod claude;
pub mod conflict;
mod event_log;
pub mod faults;
pub mod fixtures;
pub mod forge;
mod hints;
#[cfg(target_os = "linux")]
pub mod opens;
mod output;
pub mod plans;
mod repo_state;
pub mod runs;
mod sandbox;
pub mod snapshots;
#[cfg(debug_assertions)]
mod stopped_process;
pub mod tmux;
pub mod waiting;
mod watchdog;
mod worktree_state;

pub use output::Output;
pub use repo_state::{RepoState, file_names, without_run_and_landing};
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

/// Returns the program under test, which cargo builds beside the folder of the test programs.
pub fn program() -> &'static Path {
    static PROGRAM: LazyLock<PathBuf> = LazyLock::new(|| {
        let test_program = std::env::current_exe().unwrap();
        let program = test_program.ancestors().nth(2).unwrap().join("git-proq");
        assert!(program.is_file(), "{} is not built", program.display());
        program
    });
    &PROGRAM
}

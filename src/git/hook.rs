//! Owns running the repository's own hooks where a plain git command would have run them.

use std::path::Path;

use super::{Error, Repo};

/// Runs one hook of the repository in a worktree, if it has it.
///
/// # Errors
/// When the hook itself failed; what it said is in the error.
pub(crate) fn run_hook(repo: &Repo, dir: &Path, name: &str, args: &[&str]) -> Result<(), Error> {
    repo.git_in(dir)
        .args(["hook", "run", "--ignore-missing", name, "--"])
        .args(args)
        .changes()
        .run()
        .map(drop)
}

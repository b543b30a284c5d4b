//! Owns running the repository's own hooks where a plain git command would have run them.

use std::path::Path;

use super::{Error, Repo};

/// Runs one hook of the repository in a worktree, if it has it.
///
/// # Errors
/// When the hook itself failed; what it said is in the error.
pub(crate) fn run_hook(repo: &Repo, dir: &Path, name: &str, args: &[&str]) -> Result<(), Error> {
    if !repo.may_have_hook(dir, name) {
        return Ok(());
    }
    repo.git_in(dir).args(["hook", "run", "--ignore-missing", name, "--"]).args(args).changes().run_beside()
}

impl Repo {
    /// Whether git could find a hook for a worktree: a file of that name in its folder, or hooks configured by section.
    pub(crate) fn may_have_hook(&self, dir: &Path, name: &str) -> bool {
        let config = self.gix.config_snapshot();
        let folder = match config.trusted_path("core.hooksPath") {
            Ok(Some(path)) => dir.join(path),
            Ok(None) => self.common_dir().join("hooks"),
            Err(_) => return true,
        };
        // A worktree's own settings are git's to read.
        let own_settings = config.boolean("extensions.worktreeConfig") == Some(true);
        own_settings
            || folder.join(name).exists()
            || config.sections_by_name("hook").is_some_and(|mut all| all.next().is_some())
    }
}

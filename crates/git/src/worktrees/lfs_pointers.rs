//! Worktrees in which git-lfs files remain pointer files, as the repository stores them.

use std::path::Path;

use crate::{Error, Repo};

/// Setting that enables a separate configuration for each worktree.
const WORKTREE_CONFIG_KEY: &str = "extensions.worktreeConfig";

impl Repo {
    /// Configures the worktree at `dir`, which has no files yet, so that git-lfs files stay pointers for
    /// every git that works there. Returns the reason if that is not possible; then nothing was changed. The
    /// caller holds the lock of the worktrees.
    ///
    /// # Errors
    /// Fails if a setting cannot be written.
    pub fn keep_lfs_pointers(&self, dir: &Path) -> Result<Option<&'static str>, Error> {
        let effective = |key: &str| self.effective_setting(dir, key);
        let (process, smudge) = (effective("filter.lfs.process"), effective("filter.lfs.smudge"));
        if process.is_none() && smudge.is_none() {
            // No filter replaces the pointers.
            return Ok(None);
        }
        if effective(WORKTREE_CONFIG_KEY).as_deref() != Some("true") {
            // With worktree configuration enabled, these settings would apply to all worktrees unless they
            // are moved.
            if effective("core.bare").as_deref() == Some("true") || effective("core.worktree").is_some() {
                return Ok(Some(
                    "its repository is bare or has core.worktree, and no extensions.worktreeConfig (see git help worktree)",
                ));
            }
            self.git().args(["config", "--local", WORKTREE_CONFIG_KEY, "true"]).mutating().run()?;
        }
        for (key, value) in [("filter.lfs.process", process), ("filter.lfs.smudge", smudge)] {
            if let Some(value) = value.filter(|value| !value.is_empty()) {
                let value = with_skip_flag(&value);
                self.git_in(dir).args(["config", "--worktree", key, &value]).mutating().run()?;
            }
        }
        Ok(None)
    }

    fn effective_setting(&self, dir: &Path, key: &str) -> Option<String> {
        let output = self.git_in(dir).args(["config", "--get", key]).accept_exit_codes(&[1]).run().ok()?;
        (output.code == 0).then(|| output.trimmed_stdout())
    }
}

/// Adds `--skip` to a git-lfs command, so that it leaves pointers unchanged, as `git lfs install
/// --skip-smudge` writes it.
fn with_skip_flag(command: &str) -> String {
    const SKIP_FLAG: &str = " --skip";
    if command.split_whitespace().any(|word| word == SKIP_FLAG.trim_start()) {
        return command.to_owned();
    }
    let insert_at = command.find(" -- ").or_else(|| command.find(" %f")).unwrap_or(command.trim_end().len());
    format!("{}{SKIP_FLAG}{}", &command[..insert_at], &command[insert_at..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adds_skip_flag_as_git_lfs_does() {
        for (given, expected) in [
            ("git-lfs smudge -- %f", "git-lfs smudge --skip -- %f"),
            ("git-lfs smudge %f", "git-lfs smudge --skip %f"),
            ("git-lfs filter-process", "git-lfs filter-process --skip"),
            ("git-lfs filter-process --skip", "git-lfs filter-process --skip"),
            ("git-lfs smudge --skip -- %f", "git-lfs smudge --skip -- %f"),
        ] {
            assert_eq!(with_skip_flag(given), expected);
        }
    }
}

//! Owns worktrees in which large files of git-lfs stay what the repository has of them: pointers.

use std::path::Path;

use super::{Error, Repo};

/// The setting that lets worktrees have settings of their own.
const OWN_SETTINGS: &str = "extensions.worktreeConfig";

impl Repo {
    /// Has files of git-lfs stay pointers in the worktree at `dir`, which has no files yet, for whichever git works there. Why that
    /// cannot be, if it cannot: then nothing was done. The caller holds the worktrees' lock.
    ///
    /// # Errors
    /// When a setting cannot be written.
    pub(crate) fn keep_pointers(&self, dir: &Path) -> Result<Option<&'static str>, Error> {
        let set = |key: &str| self.setting_at(dir, key);
        let (process, smudge) = (set("filter.lfs.process"), set("filter.lfs.smudge"));
        if process.is_none() && smudge.is_none() {
            // No filter makes anything else of them.
            return Ok(None);
        }
        if set(OWN_SETTINGS).as_deref() != Some("true") {
            // These would count for all worktrees from then on, unless they are moved.
            if set("core.bare").as_deref() == Some("true") || set("core.worktree").is_some() {
                return Ok(Some(
                    "its repository is bare or has core.worktree, and no extensions.worktreeConfig (see git help worktree)",
                ));
            }
            self.git().args(["config", "--local", OWN_SETTINGS, "true"]).changes().run()?;
        }
        for (key, value) in [("filter.lfs.process", process), ("filter.lfs.smudge", smudge)] {
            if let Some(value) = value.filter(|value| !value.is_empty()) {
                let value = skipping(&value);
                self.git_in(dir).args(["config", "--worktree", key, &value]).changes().run()?;
            }
        }
        Ok(None)
    }

    fn setting_at(&self, dir: &Path, key: &str) -> Option<String> {
        let asked = self.git_in(dir).args(["config", "--get", key]).accept(&[1]).run().ok()?;
        (asked.code == 0).then(|| asked.line())
    }
}

/// A command of git-lfs that leaves pointers alone, as `git lfs install --skip-smudge` writes it.
fn skipping(command: &str) -> String {
    const SKIP: &str = " --skip";
    if command.split_whitespace().any(|word| word == SKIP.trim_start()) {
        return command.to_owned();
    }
    let at = command.find(" -- ").or_else(|| command.find(" %f")).unwrap_or(command.trim_end().len());
    format!("{}{SKIP}{}", &command[..at], &command[at..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_those_that_git_lfs_writes_itself() {
        for (given, made) in [
            ("git-lfs smudge -- %f", "git-lfs smudge --skip -- %f"),
            ("git-lfs smudge %f", "git-lfs smudge --skip %f"),
            ("git-lfs filter-process", "git-lfs filter-process --skip"),
            ("git-lfs filter-process --skip", "git-lfs filter-process --skip"),
            ("git-lfs smudge --skip -- %f", "git-lfs smudge --skip -- %f"),
        ] {
            assert_eq!(skipping(given), made);
        }
    }
}

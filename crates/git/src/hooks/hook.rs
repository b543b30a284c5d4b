//! Runs the repository's own hooks where a plain git command would have run them.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::program::command::Command;
use crate::{CommitId, Error, Repo, TreeId};

/// Options that disable the repository's hooks, which are intended for users' checkouts.
pub(crate) const NO_HOOKS_OPTIONS: [&str; 2] = ["-c", "core.hooksPath=/dev/null"];

/// Environment variable that names the running hook, for the commands that the hook starts.
const RUNNING_HOOK_VARIABLE: &str = "PROQ_GIT_HOOK";

/// Hook that git runs between a merge and its commit message.
const PRE_MERGE_HOOK: &str = "pre-merge-commit";

/// Runs one hook of the repository in a worktree, if it exists.
///
/// # Errors
/// Fails if the hook failed; the error contains its output.
pub fn run_hook(repo: &Repo, dir: &Path, name: &str, args: &[&str]) -> Result<(), Error> {
    if !repo.may_have_hook(dir, name) {
        return Ok(());
    }
    let call = repo.git_in(dir).env(RUNNING_HOOK_VARIABLE, name);
    call.args(["hook", "run", "--ignore-missing", name, "--"]).args(args).mutating().run_forwarding_output()
}

impl Repo {
    /// Returns the hook folder of the main checkout, if git has a hook to run there before a merge commit.
    /// Hooks in a lane do not count. Does not start git where nothing indicates a hook.
    ///
    /// # Errors
    /// Fails if git cannot report its hook folder.
    pub fn pre_merge_hook_folder(&self) -> Result<Option<PathBuf>, Error> {
        if !self.may_have_hook(self.command_dir(), PRE_MERGE_HOOK) {
            return Ok(None);
        }
        let folder = self
            .command_dir()
            .join(self.git().args(["rev-parse", "--git-path", "hooks"]).run()?.trimmed_stdout());
        let mode = folder.join(PRE_MERGE_HOOK).metadata().map(|m| m.permissions().mode());
        let has_hook = mode.is_ok_and(|mode| mode & 0o111 != 0) || has_hook_config_sections(&self.gix);
        Ok(has_hook.then_some(folder))
    }

    /// Runs the pre-merge hook in a worktree whose HEAD is the merge target, and whose index and files are
    /// the merge result. The hook gets the environment that `git merge` gives it: the index, no editor, and
    /// the merged branch. Returns the tree of the index after the hook, which is what git commits.
    ///
    /// # Errors
    /// Fails if the hook failed, or left an index that cannot be written as a tree.
    pub fn run_pre_merge_hook(
        &self,
        dir: &Path,
        hook_folder: &Path,
        (tip, branch): (CommitId, &str),
    ) -> Result<TreeId, Error> {
        let mut hooks_path_setting = std::ffi::OsString::from("core.hooksPath=");
        hooks_path_setting.push(hook_folder);
        let git_dir = self.worktree_git_dir(dir)?;
        self.git_in(dir)
            .arg("-c")
            .arg(hooks_path_setting)
            .args(["hook", "run", "--ignore-missing", PRE_MERGE_HOOK])
            .use_index(&git_dir.join("index"))
            .env(RUNNING_HOOK_VARIABLE, PRE_MERGE_HOOK)
            .env("GIT_EDITOR", ":")
            .env("GIT_REFLOG_ACTION", format!("merge {branch}"))
            .env(&format!("GITHEAD_{tip}"), branch)
            .mutating()
            .run_forwarding_output()?;
        // The hook may have left a `.git` that points to another index.
        self.hookless_git_with_git_dir(dir, &git_dir).mutating().durable().run_write_tree()
    }

    /// Creates a git command that uses the folder `dir` as worktree and `admin` as git directory, without
    /// hooks. Settings and the folder's `.git` file, which a command may have changed, do not matter.
    pub(crate) fn hookless_git_with_git_dir(&self, dir: &Path, admin: &Path) -> Command {
        self.git_in(dir).env("GIT_DIR", admin).env("GIT_WORK_TREE", dir).args(NO_HOOKS_OPTIONS)
    }

    /// Returns whether git could find a hook for a worktree: a file with its name in the hook folder, or
    /// hooks configured in sections.
    pub fn may_have_hook(&self, dir: &Path, name: &str) -> bool {
        self.may_have_hook_by(&self.gix, dir, name)
    }

    /// Does what [`Repo::may_have_hook`] does, by the settings with which the worktree was opened as `local`.
    pub(crate) fn may_have_hook_by(&self, local: &gix::Repository, dir: &Path, name: &str) -> bool {
        let config = local.config_snapshot();
        let folder = match config.trusted_path("core.hooksPath") {
            Ok(Some(path)) => dir.join(path),
            Ok(None) => self.common_dir().join("hooks"),
            Err(_) => return true,
        };
        // Only git reads a worktree's own configuration.
        let has_worktree_config = config.boolean("extensions.worktreeConfig") == Some(true);
        has_worktree_config || folder.join(name).exists() || has_hook_config_sections(local)
    }
}

/// Returns whether hooks are configured in `hook` sections, as newer versions of git allow.
fn has_hook_config_sections(gix: &gix::Repository) -> bool {
    gix.config_snapshot().sections_by_name("hook").is_some_and(|mut all| all.next().is_some())
}

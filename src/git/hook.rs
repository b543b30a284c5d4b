//! Owns running the repository's own hooks where a plain git command would have run them.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::{Error, Oid, Repo};

/// The variable that names the hook that runs, for commands that it starts.
const HOOK: &str = "PROQ_GIT_HOOK";

/// What git runs between a merge and its message.
const BEFORE_MERGE: &str = "pre-merge-commit";

/// Runs one hook of the repository in a worktree, if it has it.
///
/// # Errors
/// When the hook itself failed; what it said is in the error.
pub(crate) fn run_hook(repo: &Repo, dir: &Path, name: &str, args: &[&str]) -> Result<(), Error> {
    if !repo.may_have_hook(dir, name) {
        return Ok(());
    }
    let call = repo.git_in(dir).env(HOOK, name);
    call.args(["hook", "run", "--ignore-missing", name, "--"]).args(args).changes().run_beside()
}

impl Repo {
    /// The folder of the repository's hooks if there is one in it that git runs before the message of a merge. It is the one
    /// that the main checkout has, whatever a lane brings along. Where nothing hints at one, no git is started.
    ///
    /// # Errors
    /// When git cannot say where its hooks are.
    pub(crate) fn hook_before_merge(&self) -> Result<Option<PathBuf>, Error> {
        if !self.may_have_hook(self.home(), BEFORE_MERGE) {
            return Ok(None);
        }
        let folder = self.home().join(self.git().args(["rev-parse", "--git-path", "hooks"]).run()?.line());
        let mode = folder.join(BEFORE_MERGE).metadata().map(|m| m.permissions().mode());
        let there = mode.is_ok_and(|mode| mode & 0o111 != 0) || self.has_hook_settings();
        Ok(there.then_some(folder))
    }

    /// Runs that hook in a worktree whose HEAD is what is merged into, and whose index and files are the merge, with what `git
    /// merge` gives it: its index, no editor, and what it is a merge of. Returns the tree of the index as the hook leaves it,
    /// which is what git commits.
    ///
    /// # Errors
    /// When the hook failed, or left an index that is no tree.
    pub(crate) fn run_hook_before_merge(
        &self,
        dir: &Path,
        hooks: &Path,
        (tip, branch): (Oid, &str),
    ) -> Result<Oid, Error> {
        let mut path = std::ffi::OsString::from("core.hooksPath=");
        path.push(hooks);
        let git_dir = self.git_dir_of(dir)?;
        self.git_in(dir)
            .arg("-c")
            .arg(path)
            .args(["hook", "run", "--ignore-missing", BEFORE_MERGE])
            .index(&git_dir.join("index"))
            .env(HOOK, BEFORE_MERGE)
            .env("GIT_EDITOR", ":")
            .env("GIT_REFLOG_ACTION", format!("merge {branch}"))
            .env(&format!("GITHEAD_{tip}"), branch)
            .changes()
            .run_beside()?;
        // The hook may have left a `.git` that names another index.
        self.git_bound(dir, &git_dir).arg("write-tree").changes().durable().run_for_id()
    }

    /// Whether hooks are configured by section, as newer gits have it.
    fn has_hook_settings(&self) -> bool {
        self.gix.config_snapshot().sections_by_name("hook").is_some_and(|mut all| all.next().is_some())
    }

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
        own_settings || folder.join(name).exists() || self.has_hook_settings()
    }
}

//! Call of a git guard's hook by git: the run's guard, the repository and the arguments.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use proq_git::hooks::hook_repo::HookRepo;
use proq_store::base::record::Record;
use proq_store::paths::layout::Layout;
use proq_store::records::git_guard::GitGuardRecord;

/// Call of a hook shim by git in place of the repository's own hook, with the run's guard and the repository.
pub(super) struct HookCall<'a> {
    pub(super) guard_dir: PathBuf,
    pub(super) record: GitGuardRecord,
    pub(super) repo: HookRepo,
    pub(super) args: &'a [OsString],
}

impl HookCall<'_> {
    /// Loads the hook's record and repository; none where git runs in a different repository than the run's.
    pub(super) fn load<'a>(dir: &Path, shim: &Path, args: &'a [OsString]) -> Option<HookCall<'a>> {
        let (guard_dir, common_dir) = Layout::git_guard_of_hook(shim)?;
        let repo = HookRepo::detect(dir)?;
        if repo.common_dir != common_dir.canonicalize().ok()? {
            return None;
        }
        let record = GitGuardRecord::load_if_exists(&Layout::git_guard_record(&guard_dir)).ok().flatten()?;
        Some(HookCall { guard_dir, record, repo, args })
    }

    /// Returns whether git runs outside the run's own worktree. The main checkout counts as outside for a run
    /// without a branch, which may write nothing there.
    pub(super) fn is_outside_own_worktree(&self) -> bool {
        let is_guest = self.record.branch.is_none() && self.repo.git_dir == self.repo.common_dir;
        is_guest || self.repo.git_dir != self.record.git_dir
    }

    /// Returns whether the hook is called for a prepared ref transaction: git holds the locks of the refs,
    /// and the hook may refuse.
    pub(super) fn is_prepared_transaction(&self) -> bool {
        self.args.first().is_some_and(|step| step == "prepared")
    }

    /// Returns whether the repository had a hook of this name when the run started. Detecting it again would
    /// start git each time.
    pub(super) fn has_repository_hook(&self, name: &str) -> bool {
        self.record.repository_hooks.iter().any(|hook_name| hook_name == name)
    }
}

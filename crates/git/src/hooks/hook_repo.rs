//! Repository that a hook runs for, and the hooks in the repository's own hook folder.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::program::command::Program;
use crate::repository::git_dir::{git_dir_at, shared_git_dir};
use crate::repository::head_file::read_head;
use crate::repository::open_operation::AUTOSTASH_FILES;
use crate::{Error, Repo};

/// Git setting that names the hook folder.
const HOOKS_PATH_SETTING: &str = "core.hooksPath";

/// Git directories of the repository that a hook runs for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookRepo {
    /// Git directory of the worktree.
    pub git_dir: PathBuf,
    /// Git directory that all worktrees share.
    pub common_dir: PathBuf,
}

impl HookRepo {
    /// Finds the repository of a hook that was started in `dir`: git sets `GIT_DIR`, or starts the hook at
    /// the repository's top.
    pub fn detect(dir: &Path) -> Option<HookRepo> {
        let git_dir = match std::env::var_os("GIT_DIR") {
            Some(named) => dir.join(named),
            None => dir.ancestors().find_map(git_dir_at)?,
        };
        let git_dir = git_dir.canonicalize().ok()?;
        let common_dir = shared_git_dir(&git_dir)?;
        Some(HookRepo { git_dir, common_dir })
    }

    /// Returns whether a push from `dir` to `destination`, a path or a file URL, goes to this repository.
    pub fn is_push_target(&self, dir: &Path, destination: &OsStr) -> bool {
        let path = destination.as_bytes().strip_prefix(b"file://").unwrap_or(destination.as_bytes());
        // Git accepts the name of a bare repository without its ending.
        let candidates = [path.to_owned(), [path, b".git"].concat()];
        let git_dir = candidates.iter().find_map(|path| git_dir_at(&dir.join(OsStr::from_bytes(path))));
        let common_dir = git_dir.and_then(|git_dir| shared_git_dir(&git_dir.canonicalize().ok()?));
        common_dir.is_some_and(|shared_dir| shared_dir == self.common_dir)
    }

    /// Returns the content of HEAD without the line end.
    pub fn head_content(&self) -> Option<String> {
        read_head(&self.git_dir).ok()
    }

    /// Returns whether git is removing a loose ref whose value `id` is in `packed-refs` already. To delete
    /// the ref itself, git would hold the lock on that file.
    pub fn is_ref_prune(&self, name: &[u8], id: &[u8]) -> bool {
        let packed_refs = self.common_dir.join("packed-refs");
        let line = [id, b" ", name].concat();
        !packed_refs.with_extension("lock").exists()
            && std::fs::read(&packed_refs).is_ok_and(|text| text.split(|b| *b == b'\n').any(|l| l == line))
    }

    /// Returns whether git is restoring an autostash of a rebase or a merge, and `id` is its commit.
    pub fn is_autostash(&self, id: &[u8]) -> bool {
        AUTOSTASH_FILES
            .iter()
            .any(|name| std::fs::read(self.git_dir.join(name)).is_ok_and(|text| text.trim_ascii_end() == id))
    }
}

/// Returns the repository's own hook with this name, as git would start it from `dir`; `None` if git would
/// run none.
///
/// # Errors
/// Fails if git cannot report its hook folder.
pub fn find_repo_hook(dir: &Path, name: &str) -> Result<Option<PathBuf>, Error> {
    let is_incomplete = |hook_repo: &HookRepo| {
        ["refs", "objects"].iter().any(|folder| !hook_repo.common_dir.join(folder).exists())
            || hook_repo.git_dir.join("HEAD").symlink_metadata().is_err()
    };
    if let Some(hook_repo) = HookRepo::detect(dir).filter(is_incomplete) {
        // `git init` writes HEAD as it writes any ref, before there is a repository that git could query.
        let path = hook_repo.common_dir.join("hooks").join(name);
        return Ok(is_runnable(&path).then_some(path));
    }
    let mut call = Program::find()?.command_in(dir);
    for variable in ["GIT_DIR", "GIT_COMMON_DIR", "GIT_WORK_TREE"] {
        if let Some(value) = std::env::var_os(variable) {
            call = call.env(variable, value);
        }
    }
    let mut path = call.args(["rev-parse", "--git-path"]).arg(format!("hooks/{name}")).run()?.stdout;
    path.pop_if(|last| *last == b'\n');
    let path = PathBuf::from(OsString::from_vec(path));
    // The environment may name the git guard's folder as the repository's hook folder.
    let is_guard = crate::program::injected_config::is_guard_path(&path);
    Ok((!is_guard && is_runnable(&dir.join(&path))).then_some(path))
}

/// Returns whether git would run a file as a hook.
fn is_runnable(path: &Path) -> bool {
    path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

impl Repo {
    /// Returns the names of the repository's hooks for a worktree. A hook folder relative to the worktree may
    /// not exist yet (husky's is created by the first `npm install`), so the main checkout's hooks count too.
    ///
    /// # Errors
    /// Fails if git cannot report its hook folder.
    pub fn hook_names(&self, dir: &Path) -> Result<Vec<String>, Error> {
        let mut names = Vec::new();
        for top in [Some(dir), self.main_worktree()].into_iter().flatten() {
            for entry in std::fs::read_dir(self.hook_folder(top)?).into_iter().flatten().flatten() {
                let name = entry.file_name().into_string().unwrap_or_default();
                let is_name = name.bytes().all(|b| b.is_ascii_lowercase() || b == b'-');
                if is_name && (name.contains('-') || name == "update") && is_runnable(&entry.path()) {
                    names.push(name);
                }
            }
        }
        names.sort_unstable();
        names.dedup();
        Ok(names)
    }

    /// Returns the folder in which git finds the hooks of a worktree.
    ///
    /// # Errors
    /// Fails if git cannot report it.
    pub fn hook_folder(&self, top: &Path) -> Result<PathBuf, Error> {
        let is_default = self.gix.config_snapshot().string(HOOKS_PATH_SETTING).is_none();
        if is_default && self.setting_bool("extensions.worktreeConfig") != Some(true) {
            return Ok(self.common_dir().join("hooks"));
        }
        let mut path = self.git_in(top).args(["rev-parse", "--git-path", "hooks"]).run()?.stdout;
        path.pop_if(|last| *last == b'\n');
        Ok(top.join(OsString::from_vec(path)))
    }
}

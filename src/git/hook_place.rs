//! Owns what a hook sees of the repository it is run for: which one that is, and which hook stands in its own folder.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::head_file::{has_head, read_head};
use super::open_op::AUTOSTASHES;
use super::{Error, Program, Repo};

/// The setting that says where hooks are.
const HOOKS_PATH: &str = "core.hooksPath";

/// The git directories that a hook is run for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HookPlace {
    /// The worktree's own.
    pub(crate) git_dir: PathBuf,
    /// The one that all worktrees share.
    pub(crate) common_dir: PathBuf,
}

impl HookPlace {
    /// Where a hook that was started in `dir` is: git names the repository in `GIT_DIR`, or has gone to its top.
    pub(crate) fn of(dir: &Path) -> Option<HookPlace> {
        let git_dir = match std::env::var_os("GIT_DIR") {
            Some(named) => dir.join(named),
            None => dir.ancestors().find_map(git_dir_in)?,
        };
        let git_dir = git_dir.canonicalize().ok()?;
        let common_dir = common_of(&git_dir)?;
        Some(HookPlace { git_dir, common_dir })
    }

    /// Whether this is where a push from `dir` to `to` goes, which is a path, or a URL of one.
    pub(crate) fn is_at(&self, dir: &Path, to: &OsStr) -> bool {
        let path = to.as_bytes().strip_prefix(b"file://").unwrap_or(to.as_bytes());
        // Git leaves out the ending of a bare repository's name.
        let named = [path.to_owned(), [path, b".git"].concat()];
        let git_dir = named.iter().find_map(|path| git_dir_in(&dir.join(OsStr::from_bytes(path))));
        let common = git_dir.and_then(|git_dir| common_of(&git_dir.canonicalize().ok()?));
        common.is_some_and(|common| common == self.common_dir)
    }

    /// What its HEAD says, without the line's end.
    pub(crate) fn head(&self) -> Option<String> {
        read_head(&self.git_dir).ok()
    }

    /// Whether git takes a loose ref away whose value `id` is in `packed-refs` by now. Deleting it for good would hold the lock
    /// on that file.
    pub(crate) fn is_prune(&self, name: &[u8], id: &[u8]) -> bool {
        let packed = self.common_dir.join("packed-refs");
        let line = [id, b" ", name].concat();
        !packed.with_extension("lock").exists()
            && std::fs::read(&packed).is_ok_and(|text| text.split(|b| *b == b'\n').any(|l| l == line))
    }

    /// Whether git is putting back what it had set aside itself for a rebase or a merge, and this is the commit of it.
    pub(crate) fn is_autostash(&self, id: &[u8]) -> bool {
        AUTOSTASHES
            .iter()
            .any(|name| std::fs::read(self.git_dir.join(name)).is_ok_and(|text| text.trim_ascii_end() == id))
    }
}

/// The git directory that all worktrees share, for that of one of them.
fn common_of(git_dir: &Path) -> Option<PathBuf> {
    match std::fs::read(git_dir.join("commondir")) {
        Ok(text) => git_dir.join(OsStr::from_bytes(text.trim_ascii_end())).canonicalize().ok(),
        Err(_) => Some(git_dir.to_owned()),
    }
}

/// The git directory that a worktree whose top is `dir` leads to, or `dir` where it is one itself.
pub(super) fn git_dir_in(dir: &Path) -> Option<PathBuf> {
    let link = dir.join(".git");
    if link.is_dir() {
        return Some(link);
    }
    if let Ok(text) = std::fs::read(&link) {
        let target = text.strip_prefix(b"gitdir: ")?;
        return Some(dir.join(OsStr::from_bytes(target.trim_ascii_end())));
    }
    (has_head(dir) && dir.join("objects").is_dir()).then(|| dir.to_owned())
}

/// The hook of this name that the repository has itself, as git would start it from `dir`; none where git would run none.
///
/// # Errors
/// When git cannot say where its hooks are.
pub(crate) fn own_hook(dir: &Path, name: &str) -> Result<Option<PathBuf>, Error> {
    let half_made = |place: &HookPlace| {
        ["refs", "objects"].iter().any(|part| !place.common_dir.join(part).exists())
            || place.git_dir.join("HEAD").symlink_metadata().is_err()
    };
    if let Some(place) = HookPlace::of(dir).filter(half_made) {
        // `git init` writes HEAD as a ref like any other, when there is no repository yet that could be asked.
        let path = place.common_dir.join("hooks").join(name);
        return Ok(is_runnable(&path).then_some(path));
    }
    let mut call = Program::find()?.in_dir(dir);
    for variable in ["GIT_DIR", "GIT_COMMON_DIR", "GIT_WORK_TREE"] {
        if let Some(value) = std::env::var_os(variable) {
            call = call.env(variable, value);
        }
    }
    let mut path = call.args(["rev-parse", "--git-path"]).arg(format!("hooks/{name}")).run()?.stdout;
    path.pop_if(|last| *last == b'\n');
    let path = PathBuf::from(OsString::from_vec(path));
    // Somebody may have made the folder by environment the repository's own.
    let ours = super::injected::is_fence(&path);
    Ok((!ours && is_runnable(&dir.join(&path))).then_some(path))
}

/// Whether git would run this file as a hook.
fn is_runnable(path: &Path) -> bool {
    path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

impl Repo {
    /// The hooks that the repository has for a worktree. A folder that is named relative to the worktree's top may not be
    /// there yet (husky's comes with the first `npm install`), so that of the main checkout counts too.
    ///
    /// # Errors
    /// When git cannot say where its hooks are.
    pub(crate) fn hook_names(&self, dir: &Path) -> Result<Vec<String>, Error> {
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

    /// The folder in which git looks for the hooks of a worktree.
    ///
    /// # Errors
    /// When git cannot say.
    pub(crate) fn hook_folder(&self, top: &Path) -> Result<PathBuf, Error> {
        let plain = self.gix.config_snapshot().string(HOOKS_PATH).is_none();
        if plain && self.setting_bool("extensions.worktreeConfig") != Some(true) {
            return Ok(self.common_dir().join("hooks"));
        }
        let mut path = self.git_in(top).args(["rev-parse", "--git-path", "hooks"]).run()?.stdout;
        path.pop_if(|last| *last == b'\n');
        Ok(top.join(OsString::from_vec(path)))
    }
}

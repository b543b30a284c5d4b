//! Owns finding the folder of a linked worktree that is not where a record has it, and whose worktree a folder is.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Repo, RepoPath};

/// How many folders from the main checkout upwards are looked into for a worktree that was moved, and how deep.
const ABOVE: usize = 4;
const DEPTH: usize = 4;

/// What a linked worktree is known by, wherever it lies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WorktreeId {
    /// What git calls it. Once it is gone, another one may be called so.
    name: String,
    /// When it was made.
    made: String,
}

impl Repo {
    /// Whether the folder at `path` is gone, or is no linked worktree of this repository any more. One whose repository was moved since,
    /// so that its `.git` leads nowhere, is one still.
    pub(crate) fn is_no_worktree(&self, path: &Path) -> bool {
        let is_ours = |admin: &Path| admin.parent() == Some(&self.common_dir().join("worktrees"));
        self.git_dir_of(path).map_or(true, |admin| admin.exists() != is_ours(&admin))
    }

    /// The folder that git has on record for the worktree `id` of a branch, where `path` is no worktree of this repository any more:
    /// `git worktree move` and `git worktree repair` write to git's record only.
    pub(crate) fn moved_worktree(&self, path: &Path, id: &str, branch: &str) -> Option<PathBuf> {
        if self.is_linked(path) {
            return None;
        }
        let admin = self.admin_dir(id)?;
        self.recorded_place(&admin).filter(|top| top != path && self.was_on(top, &admin, branch))
    }

    /// What the linked worktree at `path` is known by; none where that is no worktree of this repository, or its main one, or its name is
    /// no text.
    pub(crate) fn worktree_id(&self, path: &Path) -> Option<WorktreeId> {
        let admin = self.git_dir_of(path).ok()?;
        let is_linked = admin.parent() == Some(&self.common_dir().join("worktrees"));
        let name = admin.file_name().filter(|_| is_linked)?.to_str()?.to_owned();
        Some(WorktreeId { name, made: made(&admin)? })
    }

    /// Git's admin folder of a worktree, where it has that still.
    pub(crate) fn admin_dir_by(&self, id: &WorktreeId) -> Option<PathBuf> {
        self.admin_dir(&id.name).filter(|admin| made(admin).as_ref() == Some(&id.made))
    }

    /// The folder of a worktree that lay at `old`: where git has it on record, or, after a move that git does not know of, beside that, or
    /// where this process is. None where it is in none of these places.
    pub(crate) fn place_of(&self, id: &WorktreeId, old: &Path) -> Option<PathBuf> {
        let admin = self.admin_dir_by(id)?;
        // Where the whole repository was moved, it leads nowhere until it is repaired.
        if self.git_dir_of(old).is_ok_and(|named| Repo::may_name(&named, &admin)) {
            return Some(old.to_owned());
        }
        let beside = old.parent().and_then(|all| all.read_dir().ok()).into_iter().flatten().flatten();
        let here = std::env::current_dir().ok();
        let here = here.iter().flat_map(|dir| dir.ancestors().map(Path::to_owned));
        let is_there = |top: &PathBuf| top.is_dir() && self.names(top, &admin);
        self.recorded_place(&admin)
            .or_else(|| here.chain(beside.map(|entry| entry.path())).find(is_there))
            .and_then(|top| top.canonicalize().ok())
    }

    /// The folder that git has on record for an admin folder, where that says so too.
    fn recorded_place(&self, admin: &Path) -> Option<PathBuf> {
        let top = recorded_link(admin)?.parent()?.canonicalize().ok()?;
        self.names(&top, admin).then_some(top)
    }

    /// Whether HEAD of a worktree is on a branch, or has left it there: somebody may have made another worktree of the same name.
    fn was_on(&self, top: &Path, admin: &Path, branch: &str) -> bool {
        let read = |name: &str| std::fs::read_to_string(admin.join(name)).unwrap_or_default();
        let rebased = ["rebase-merge/head-name", "rebase-apply/head-name"];
        self.head_branch(top, admin).ok().flatten().as_deref() == Some(branch)
            || read("logs/HEAD").contains(&format!("moving from {branch} to "))
            || rebased.iter().any(|name| read(name).trim_end().strip_prefix("refs/heads/") == Some(branch))
    }

    /// Whether the folder at `path` and git's record of a worktree there name each other.
    pub(crate) fn is_in_place(&self, path: &Path) -> bool {
        let is_folder = path.symlink_metadata().is_ok_and(|meta| meta.is_dir());
        is_folder
            && self
                .admin_dir_of(path)
                .is_some_and(|admin| self.is_own_worktree(path) && self.names(path, &admin))
    }

    /// The other repository whose worktree the folder at `path` is, and which has it on record: `(git directory, admin folder)`.
    pub(crate) fn other_owner(&self, path: &Path) -> Option<(PathBuf, PathBuf)> {
        let admin = self.git_dir_of(path).ok()?.canonicalize().ok()?;
        let common = admin.parent().filter(|all| all.ends_with("worktrees"))?.parent()?;
        let is_other = common != self.common_dir() && recorded_link(&admin)? == path.join(".git");
        is_other.then(|| (common.to_owned(), admin.clone()))
    }

    /// The folder of a worktree that lay at `old`, where it would be had it been moved or copied with the repository: its `.git`
    /// names what `is_wanted` wants.
    pub(crate) fn moved_along(&self, old: &Path, is_wanted: impl Fn(&Path) -> bool) -> Option<PathBuf> {
        let parts: Vec<_> = old.components().collect();
        for above in self.home().ancestors().take(ABOVE) {
            for end in (1..parts.len()).rev().take(DEPTH) {
                let folder = above.join(parts[end..].iter().collect::<PathBuf>());
                if folder != old && self.git_dir_of(&folder).is_ok_and(|admin| is_wanted(&admin)) {
                    return Some(folder);
                }
            }
        }
        None
    }

    /// Whether a `.git` file that names `admin` may be of the worktree whose own admin folder is `own`, and that was moved.
    pub(crate) fn may_name(admin: &Path, own: &Path) -> bool {
        let is_of_it = admin.file_name() == own.file_name()
            && admin.parent().is_some_and(|all| all.ends_with("worktrees"));
        is_of_it && (!admin.exists() || admin == own)
    }

    /// Git's admin folder for the worktree `id`, where there is one.
    pub(crate) fn admin_dir(&self, id: &str) -> Option<PathBuf> {
        let admin = self.common_dir().join("worktrees").join(id);
        (!id.is_empty() && !id.contains('/') && admin.is_dir()).then_some(admin)
    }

    /// Whether the `.git` of a folder names a worktree of this repository that it has no record of.
    pub(crate) fn was_own(&self, path: &Path) -> bool {
        let all = self.common_dir().join("worktrees");
        self.git_dir_of(path).is_ok_and(|admin| admin.parent() == Some(&all) && !admin.exists())
    }

    /// Whether a folder, not a link to one, says that it is a worktree of this repository.
    fn is_linked(&self, path: &Path) -> bool {
        let all = self.common_dir().join("worktrees");
        let own = self.git_dir_of(path).is_ok_and(|dir| dir.parent() == Some(&all) && dir.is_dir());
        own && path.symlink_metadata().is_ok_and(|meta| meta.is_dir())
    }

    /// Whether the `.git` of a folder names this admin folder.
    fn names(&self, top: &Path, admin: &Path) -> bool {
        let real = |path: &Path| path.canonicalize().ok();
        self.git_dir_of(top)
            .is_ok_and(|dir| dir == admin || (real(&dir).is_some() && real(&dir) == real(admin)))
    }
}

/// When an admin folder was made, as text: git writes this file then, and never again.
fn made(admin: &Path) -> Option<String> {
    let meta = admin.join("commondir").metadata().ok()?;
    Some(format!("{}.{:09}", meta.mtime(), meta.mtime_nsec()))
}

/// The `.git` file that an admin folder names.
fn recorded_link(admin: &Path) -> Option<PathBuf> {
    let text = std::fs::read(admin.join("gitdir")).ok()?;
    Some(RepoPath::new(text.trim_ascii_end()).under(admin))
}

//! Rename of a linked worktree: of its folder, of git's record of where it is, and of the branch that its HEAD
//! names.

use std::fs::File;
use std::io::{ErrorKind, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use proq_base::fail_points;

use crate::base::head::BRANCH_PREFIX;
use crate::references::locked_branch::HEAD_LOCK_LINK_FILE;
use crate::references::new_branch::RefLock;
use crate::references::ref_transaction;
use crate::{Error, Repo};

/// Worktree that is renamed.
#[derive(Debug, Clone, Copy)]
pub struct WorktreeRename<'a> {
    /// Name of git's admin folder of the worktree, which stays.
    pub id: &'a str,
    /// Old top folder.
    pub from: &'a Path,
    /// New top folder, in the same parent folder. It may be the old one.
    pub to: &'a Path,
    /// Branch that HEAD names, without `refs/heads/`.
    pub old_branch: &'a str,
    /// Branch that HEAD names afterwards. It is at the same commit.
    pub new_branch: &'a str,
}

/// Reason why git does not move a worktree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Immovable {
    /// It has repositories of submodules, whose settings name its folder.
    Submodules,
    /// The user has locked it.
    Locked,
}

/// Returns why git would not move the worktree with this admin folder; none if it would.
pub fn immovable_reason(admin: &Path) -> Option<Immovable> {
    let has = |name: &str| admin.join(name).exists();
    let locked = || has("locked").then_some(Immovable::Locked);
    has("modules").then_some(Immovable::Submodules).or_else(locked)
}

impl Repo {
    /// Renames a worktree: the folder first, then git's record of it, then HEAD. `scratch` is the folder of the step for temporary files.
    ///
    /// # Errors
    /// Fails if HEAD is locked or on another branch, and if a file cannot be written or renamed. A failure or a
    /// kill after the folder was renamed leaves a rename that [`Repo::recover_worktree_rename`] completes.
    pub fn rename_worktree(&self, rename: &WorktreeRename<'_>, scratch: &Path) -> Result<(), Error> {
        let WorktreeRename { id, from, to, old_branch, new_branch } = *rename;
        let admin = self.admin_dir(id).ok_or_else(|| missing(from))?;
        if self.head_branch(from, &admin)?.as_deref() != Some(old_branch) {
            let reason = format!("HEAD of {} is not on it", from.display());
            return Err(Error::RefNotMoved { ref_name: old_branch.to_owned(), reason });
        }
        let mark = scratch.join(HEAD_LOCK_LINK_FILE);
        let lock = match self.is_reftable() {
            true => None,
            false => Some(RefLock::acquire_linked(admin.join("HEAD.lock"), &mark).ok_or_else(|| {
                let reason = format!("{} exists", admin.join("HEAD.lock").display());
                Error::RefNotMoved { ref_name: "HEAD".to_owned(), reason }
            })?),
        };
        fail_points::hit("rename.locked");
        if from != to {
            std::fs::rename(from, to).map_err(Error::io("rename", from))?;
            fail_points::hit("rename.moved");
            record_new_folder(&admin, rename, scratch)?;
            fail_points::hit("rename.recorded");
        }
        match lock {
            Some(lock) => {
                lock.write_symbolic(new_branch, &admin.join("HEAD")).map_err(Error::io("write", &admin))
            }
            None => self.set_symbolic_head(to, new_branch),
        }
    }

    /// Completes a rename that a killed process began, or removes what it left. Returns whether the worktree has
    /// been renamed.
    ///
    /// # Errors
    /// Fails if a file cannot be written or removed.
    pub fn recover_worktree_rename(
        &self,
        rename: &WorktreeRename<'_>,
        scratch: &Path,
    ) -> Result<bool, Error> {
        let WorktreeRename { id, from, to, old_branch, new_branch } = *rename;
        let Some(admin) = self.admin_dir(id) else { return Ok(false) };
        ref_transaction::release_head_lock(&admin, scratch)?;
        // Another program may have made the old folder again, which is then no worktree.
        let is_worktree = |path: &Path| path.join(".git").symlink_metadata().is_ok();
        if from != to {
            if !is_worktree(to) || is_worktree(from) {
                return Ok(false);
            }
            record_new_folder(&admin, rename, scratch)?;
        }
        let head = self.head_branch(to, &admin)?;
        if from != to && head.as_deref() == Some(old_branch) {
            return self.rename_worktree(&WorktreeRename { from: to, ..*rename }, scratch).map(|()| true);
        }
        Ok(from != to || head.as_deref() == Some(new_branch))
    }

    /// Makes HEAD of a worktree name a branch, by git itself.
    fn set_symbolic_head(&self, dir: &Path, branch: &str) -> Result<(), Error> {
        let name = format!("{BRANCH_PREFIX}{branch}");
        self.git_in(dir).args(["symbolic-ref", "HEAD", &name]).mutating().run().map(drop)
    }
}

/// Returns the error for a worktree that git does not have where it is expected.
fn missing(dir: &Path) -> Error {
    Error::io("find git's record of", dir)(ErrorKind::NotFound.into())
}

/// Writes the new folder of a worktree to git's record of it, in the form that the record has: absolute or
/// relative. Does nothing if the record has it already.
fn record_new_folder(admin: &Path, rename: &WorktreeRename<'_>, scratch: &Path) -> Result<(), Error> {
    let file = admin.join("gitdir");
    let text = std::fs::read(&file).map_err(Error::io("read", &file))?;
    let tail = |dir: &Path| [b"/", dir.file_name().unwrap_or_default().as_bytes(), b"/.git"].concat();
    let recorded = text.trim_ascii_end();
    if recorded.ends_with(&tail(rename.to)) {
        return Ok(());
    }
    let parent = recorded.strip_suffix(&tail(rename.from)[..]).ok_or_else(|| missing(rename.from))?;
    let new_text = [parent, &tail(rename.to), b"\n"].concat();
    let draft = scratch.join("gitdir");
    let write = || {
        let mut file = File::create(&draft)?;
        file.write_all(&new_text)?;
        file.sync_all()
    };
    write().map_err(Error::io("write", &draft))?;
    std::fs::rename(&draft, &file).map_err(Error::io("write", &file))
}

//! Misplaced worktrees: how to find a linked worktree that is not at its recorded path, and which repository
//! a worktree belongs to.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::{Error, Repo, RepoPath};

/// Limits of the search for a moved worktree: ancestors of the main checkout tried, and trailing components
/// of the old path tried below each.
const MAX_ANCESTORS_SEARCHED: usize = 4;
const MAX_TRAILING_COMPONENTS: usize = 4;

/// Identity of one linked worktree of a repository, independent of its path, and different from a later
/// worktree of the same name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorktreeId {
    /// Name of the worktree's admin folder below `worktrees` in the git directory. git reuses the name once
    /// the worktree is removed.
    name: String,
    /// Text of the file `proq-id` in the admin folder; no other worktree has the same text.
    token: String,
}

/// Name of the file in a worktree's admin folder that contains its token.
const TOKEN_FILE: &str = "proq-id";

impl Repo {
    /// Returns whether the folder at `path` is missing or is no longer a linked worktree of this repository.
    /// A worktree whose `.git` leads nowhere because the repository was moved still counts as one.
    ///
    /// # Errors
    /// Fails if the `.git` file cannot be read.
    pub fn is_worktree_missing(&self, path: &Path) -> Result<bool, Error> {
        match self.worktree_git_dir(path) {
            Ok(admin) if admin.exists() => Ok(!self.is_admin_path(&admin)),
            Ok(admin) => Ok(self.is_admin_path(&admin)),
            Err(Error::Io { source, .. }) if means_no_worktree(&source) => Ok(true),
            Err(e) => Err(e),
        }
    }

    /// Returns whether `path` is the path of an admin folder of this repository, whether or not the folder
    /// exists.
    fn is_admin_path(&self, path: &Path) -> bool {
        path.parent() == Some(&self.common_dir().join("worktrees"))
    }

    /// Returns the folder that git has recorded for the worktree `id` of a branch, if `path` is no longer a
    /// worktree of this repository: `git worktree move` and `git worktree repair` write only git's own
    /// record.
    pub fn recorded_new_location(&self, path: &Path, id: &str, branch: &str) -> Option<PathBuf> {
        if self.is_linked_worktree(path) {
            return None;
        }
        let admin = self.admin_dir(id)?;
        self.recorded_worktree_path(&admin)
            .filter(|top| top != path && self.was_on_branch(top, &admin, branch))
    }

    /// Returns the identity of the linked worktree at `path`, and writes a token for it if it has none.
    /// Returns `None` for the main worktree, a worktree of another repository, a name that is not UTF-8, or
    /// an admin folder that cannot be written to.
    pub fn worktree_id(&self, path: &Path) -> Option<WorktreeId> {
        let admin = self.worktree_git_dir(path).ok().filter(|admin| self.is_admin_path(admin))?;
        let name = admin.file_name()?.to_str()?.to_owned();
        let token =
            read_token(&admin).or_else(|| write_token(&admin).ok().and_then(|()| read_token(&admin)))?;
        Some(WorktreeId { name, token })
    }

    /// Returns git's admin folder of a worktree, if it still exists and contains the worktree's token.
    pub fn find_admin_dir(&self, id: &WorktreeId) -> Option<PathBuf> {
        self.admin_dir(&id.name).filter(|admin| read_token(admin).as_ref() == Some(&id.token))
    }

    /// Returns the folder of a worktree that used to be at `old_path`. That is the folder git has recorded.
    /// After a move that git does not know of, it is the only matching folder among the siblings of
    /// `old_path` and the ancestors of the current directory. Returns `None` if no folder or more than one
    /// matches.
    pub fn locate_worktree(&self, id: &WorktreeId, old_path: &Path) -> Option<PathBuf> {
        let admin = self.find_admin_dir(id)?;
        // If the entire repository was moved, the link leads nowhere until it is repaired.
        if self.worktree_git_dir(old_path).is_ok_and(|named| Repo::may_link_to_admin(&named, &admin)) {
            return Some(old_path.to_owned());
        }
        self.recorded_worktree_path(&admin).or_else(|| {
            let siblings =
                old_path.parent().and_then(|parent| parent.read_dir().ok()).into_iter().flatten().flatten();
            let current_dir = std::env::current_dir().ok();
            let ancestors_of_cwd = current_dir.iter().flat_map(|dir| dir.ancestors().map(Path::to_owned));
            let candidates = ancestors_of_cwd.chain(siblings.map(|entry| entry.path()));
            let found: BTreeSet<PathBuf> = candidates
                .filter(|top| top.is_dir() && self.links_to_admin(top, &admin))
                .filter_map(|top| top.canonicalize().ok())
                .collect();
            found.iter().next().filter(|_| found.len() == 1).cloned()
        })
    }

    /// Returns the folder that git has recorded for an admin folder, if that folder links back to it.
    fn recorded_worktree_path(&self, admin: &Path) -> Option<PathBuf> {
        let top = recorded_git_file(admin)?.parent()?.canonicalize().ok()?;
        self.links_to_admin(&top, admin).then_some(top)
    }

    /// Returns whether HEAD of a worktree is on `branch`, or left the branch in this worktree: another
    /// worktree of the same name may have been created since.
    fn was_on_branch(&self, top: &Path, admin: &Path, branch: &str) -> bool {
        let read = |name: &str| std::fs::read_to_string(admin.join(name)).unwrap_or_default();
        let rebase_head_files = ["rebase-merge/head-name", "rebase-apply/head-name"];
        self.head_branch(top, admin).ok().flatten().as_deref() == Some(branch)
            || read("logs/HEAD").contains(&format!("moving from {branch} to "))
            || rebase_head_files
                .iter()
                .any(|name| read(name).trim_end().strip_prefix("refs/heads/") == Some(branch))
    }

    /// Returns whether the folder at `path` and git's record of a worktree there refer to each other.
    pub fn is_linked_both_ways(&self, path: &Path) -> bool {
        let is_folder = path.symlink_metadata().is_ok_and(|meta| meta.is_dir());
        is_folder
            && self
                .worktree_admin_dir(path)
                .is_some_and(|admin| self.is_registered_worktree(path) && self.links_to_admin(path, &admin))
    }

    /// Returns `(git directory, admin folder)` of another repository if the folder at `path` is a worktree
    /// that it has recorded.
    pub fn other_repo_of_worktree(&self, path: &Path) -> Option<(PathBuf, PathBuf)> {
        let admin = self.worktree_git_dir(path).ok()?.canonicalize().ok()?;
        let common = admin.parent().filter(|parent| parent.ends_with("worktrees"))?.parent()?;
        let is_other = common != self.common_dir() && recorded_git_file(&admin)? == path.join(".git");
        is_other.then(|| (common.to_owned(), admin.clone()))
    }

    /// Returns the folder where a worktree from `old_path` would be if it had been moved or copied together
    /// with the repository: its `.git` names an admin folder for which `is_wanted` holds.
    pub fn find_moved_with_repo(
        &self,
        old_path: &Path,
        is_wanted: impl Fn(&Path) -> bool,
    ) -> Option<PathBuf> {
        let parts: Vec<_> = old_path.components().collect();
        for ancestor in self.command_dir().ancestors().take(MAX_ANCESTORS_SEARCHED) {
            for first_kept in (1..parts.len()).rev().take(MAX_TRAILING_COMPONENTS) {
                let folder = ancestor.join(parts[first_kept..].iter().collect::<PathBuf>());
                if folder != old_path && self.worktree_git_dir(&folder).is_ok_and(|admin| is_wanted(&admin)) {
                    return Some(folder);
                }
            }
        }
        None
    }

    /// Returns whether a `.git` file that names `named_admin` may belong to a moved worktree whose admin
    /// folder is `actual_admin`: both have the same id, and no other folder is at the named place.
    pub fn may_link_to_admin(named_admin: &Path, actual_admin: &Path) -> bool {
        let has_same_name = named_admin.file_name() == actual_admin.file_name()
            && named_admin.parent().is_some_and(|parent| parent.ends_with("worktrees"));
        has_same_name && (!named_admin.exists() || named_admin == actual_admin)
    }

    /// Returns git's admin folder of the worktree `id`, if it exists.
    pub fn admin_dir(&self, id: &str) -> Option<PathBuf> {
        let admin = self.common_dir().join("worktrees").join(id);
        (!id.is_empty() && !id.contains('/') && admin.is_dir()).then_some(admin)
    }

    /// Returns whether the `.git` of a folder names an admin folder of this repository that does not exist.
    pub fn links_to_missing_admin(&self, path: &Path) -> bool {
        self.worktree_git_dir(path).is_ok_and(|admin| self.is_admin_path(&admin) && !admin.exists())
    }

    /// Returns whether `path` is a folder (not a symbolic link to one) whose `.git` names an admin folder of
    /// this repository.
    fn is_linked_worktree(&self, path: &Path) -> bool {
        let has_admin_dir =
            self.worktree_git_dir(path).is_ok_and(|admin| self.is_admin_path(&admin) && admin.is_dir());
        has_admin_dir && path.symlink_metadata().is_ok_and(|meta| meta.is_dir())
    }

    /// Returns whether the `.git` of the folder `top` names the admin folder `admin`.
    fn links_to_admin(&self, top: &Path, admin: &Path) -> bool {
        let canonical = |path: &Path| path.canonicalize().ok();
        self.worktree_git_dir(top).is_ok_and(|dir| {
            dir == admin || (canonical(&dir).is_some() && canonical(&dir) == canonical(admin))
        })
    }
}

/// Returns whether an error of reading `.git` means that the file is missing or is not the `.git` file of a
/// worktree.
fn means_no_worktree(e: &std::io::Error) -> bool {
    use ErrorKind::{FileTooLarge, InvalidInput, IsADirectory, NotADirectory, NotFound};
    matches!(e.kind(), FileTooLarge | InvalidInput | IsADirectory | NotADirectory | NotFound)
        || Errno::from_io_error(e) == Some(Errno::LOOP)
}

/// Reads the token of an admin folder; `None` if the file is missing or empty.
fn read_token(admin: &Path) -> Option<String> {
    let text = proq_base::regular_file::read_store_text(admin.join(TOKEN_FILE)).ok()?;
    Some(text.trim_end().to_owned()).filter(|token| !token.is_empty())
}

/// Writes a token for an admin folder, durably, because a journal will refer to it. If two processes write at
/// once, the first token counts.
fn write_token(admin: &Path) -> std::io::Result<()> {
    let (temp_path, token_path) =
        (admin.join(format!("{TOKEN_FILE}.{}", std::process::id())), admin.join(TOKEN_FILE));
    let mut file = File::create(&temp_path)?;
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let written =
        writeln!(file, "{}-{}", since_epoch.as_nanos(), std::process::id()).and_then(|()| file.sync_all());
    // A kill or a power cut may have left an empty token file.
    let placed = written.and_then(|()| match std::fs::hard_link(&temp_path, &token_path) {
        Ok(()) => Ok(()),
        Err(_) if read_token(admin).is_some() => Ok(()),
        Err(_) => std::fs::rename(&temp_path, &token_path),
    });
    drop(std::fs::remove_file(&temp_path));
    placed.and_then(|()| File::open(admin)?.sync_all())
}

/// Returns the path of the `.git` file that an admin folder names in its `gitdir` file.
fn recorded_git_file(admin: &Path) -> Option<PathBuf> {
    let text = std::fs::read(admin.join("gitdir")).ok()?;
    Some(RepoPath::new(text.trim_ascii_end()).to_fs_path(admin))
}

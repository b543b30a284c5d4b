//! Owns finding the folder of a linked worktree that is not where a record has it, and whose worktree a folder is.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::{Error, Repo, RepoPath};

/// How many folders from the main checkout upwards are looked into for a worktree that was moved, and how deep.
const ABOVE: usize = 4;
const DEPTH: usize = 4;

/// Tells one linked worktree of a repository from all others, wherever its folder is, and from later ones that get its name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WorktreeId {
    /// The name of its folder below `worktrees` in the git directory. Git gives it again once the worktree is removed.
    name: String,
    /// The text in the file `proq-id` of that folder; no other worktree has the same.
    token: String,
}

/// The name in a worktree's admin folder of the file with its token.
const TOKEN: &str = "proq-id";

impl Repo {
    /// Whether the folder at `path` is gone, or is no linked worktree of this repository any more. One whose `.git` leads nowhere, because
    /// its repository was moved since, is one still.
    ///
    /// # Errors
    /// When that cannot be read.
    pub(crate) fn is_no_worktree(&self, path: &Path) -> Result<bool, Error> {
        match self.git_dir_of(path) {
            Ok(admin) if admin.exists() => Ok(!self.is_admin(&admin)),
            Ok(admin) => Ok(self.is_admin(&admin)),
            Err(Error::Io { source, .. }) if is_other(&source) => Ok(true),
            Err(e) => Err(e),
        }
    }

    /// Whether a path is that of an admin folder in this repository, be it there or not.
    fn is_admin(&self, path: &Path) -> bool {
        path.parent() == Some(&self.common_dir().join("worktrees"))
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

    /// Identifies the linked worktree at `path`, which gets a token if it has none. None where that is no worktree of this repository, or its main one,
    /// its name is no text, or its admin folder cannot be written to.
    pub(crate) fn worktree_id(&self, path: &Path) -> Option<WorktreeId> {
        let admin = self.git_dir_of(path).ok().filter(|admin| self.is_admin(admin))?;
        let name = admin.file_name()?.to_str()?.to_owned();
        let token = token(&admin).or_else(|| give_token(&admin).ok().and_then(|()| token(&admin)))?;
        Some(WorktreeId { name, token })
    }

    /// Git's admin folder of a worktree, where it has that still.
    pub(crate) fn admin_dir_by(&self, id: &WorktreeId) -> Option<PathBuf> {
        self.admin_dir(&id.name).filter(|admin| token(admin).as_ref() == Some(&id.token))
    }

    /// The folder of a worktree that lay at `old`: where git has it on record, or, after a move that git does not know of, the one place
    /// where it is beside that, or above where this process is. None where it is in none of these, or in several.
    pub(crate) fn place_of(&self, id: &WorktreeId, old: &Path) -> Option<PathBuf> {
        let admin = self.admin_dir_by(id)?;
        // Where the whole repository was moved, it leads nowhere until it is repaired.
        if self.git_dir_of(old).is_ok_and(|named| Repo::may_name(&named, &admin)) {
            return Some(old.to_owned());
        }
        self.recorded_place(&admin).or_else(|| {
            let beside = old.parent().and_then(|all| all.read_dir().ok()).into_iter().flatten().flatten();
            let here = std::env::current_dir().ok();
            let above = here.iter().flat_map(|dir| dir.ancestors().map(Path::to_owned));
            let all = above.chain(beside.map(|entry| entry.path()));
            let found: BTreeSet<PathBuf> = all
                .filter(|top| top.is_dir() && self.names(top, &admin))
                .filter_map(|top| top.canonicalize().ok())
                .collect();
            found.iter().next().filter(|_| found.len() == 1).cloned()
        })
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
        self.git_dir_of(path).is_ok_and(|admin| self.is_admin(&admin) && !admin.exists())
    }

    /// Whether a folder, not a link to one, says that it is a worktree of this repository.
    fn is_linked(&self, path: &Path) -> bool {
        let own = self.git_dir_of(path).is_ok_and(|admin| self.is_admin(&admin) && admin.is_dir());
        own && path.symlink_metadata().is_ok_and(|meta| meta.is_dir())
    }

    /// Whether the `.git` of a folder names this admin folder.
    fn names(&self, top: &Path, admin: &Path) -> bool {
        let real = |path: &Path| path.canonicalize().ok();
        self.git_dir_of(top)
            .is_ok_and(|dir| dir == admin || (real(&dir).is_some() && real(&dir) == real(admin)))
    }
}

/// Whether a `.git` that cannot be read for that reason is not there, or is something else than the file of a worktree.
fn is_other(e: &std::io::Error) -> bool {
    use ErrorKind::{FileTooLarge, InvalidInput, IsADirectory, NotADirectory, NotFound};
    matches!(e.kind(), FileTooLarge | InvalidInput | IsADirectory | NotADirectory | NotFound)
        || Errno::from_io_error(e) == Some(Errno::LOOP)
}

/// The token of an admin folder.
fn token(admin: &Path) -> Option<String> {
    let text = crate::regular_file::record_text(admin.join(TOKEN)).ok()?;
    Some(text.trim_end().to_owned()).filter(|token| !token.is_empty())
}

/// Gives an admin folder a token, durably, as a journal will name it. Of two who do that at once the first one's counts.
fn give_token(admin: &Path) -> std::io::Result<()> {
    let (draft, place) = (admin.join(format!("{TOKEN}.{}", std::process::id())), admin.join(TOKEN));
    let mut file = File::create(&draft)?;
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let written =
        writeln!(file, "{}-{}", since.as_nanos(), std::process::id()).and_then(|()| file.sync_all());
    // A kill or a power cut may have left one that is empty.
    let placed = written.and_then(|()| match std::fs::hard_link(&draft, &place) {
        Ok(()) => Ok(()),
        Err(_) if token(admin).is_some() => Ok(()),
        Err(_) => std::fs::rename(&draft, &place),
    });
    drop(std::fs::remove_file(&draft));
    placed.and_then(|()| File::open(admin)?.sync_all())
}

/// The `.git` file that an admin folder names.
fn recorded_link(admin: &Path) -> Option<PathBuf> {
    let text = std::fs::read(admin.join("gitdir")).ok()?;
    Some(RepoPath::new(text.trim_ascii_end()).under(admin))
}

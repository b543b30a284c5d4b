//! Diagnosis of a lane whose folder is not the worktree that its record names, with the command that fixes
//! it.

use std::path::{Path, PathBuf};

use proq_base::explain::shell_quote_path;
use proq_git::Repo;
use proq_store::base::file_access;
use proq_store::records::lane::LaneRecord;

use crate::lane::Project;

/// Reason why a lane's folder is not its worktree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LaneFolderFault {
    /// The folder was moved with the repository to this path, and git does not know.
    MovedWithRepo(PathBuf),
    /// The folder is absent, and git has a record of it. It may have been moved with the repository, or its
    /// disk may be absent.
    Absent,
    /// The folder is a worktree of another repository, of which this one is a copy.
    Foreign {
        /// Other repository.
        other_repo: PathBuf,
        /// Folder of the lane's worktree that was copied along with this repository, and git's admin folder
        /// of it here; none when one of the two is missing.
        copied_worktree: Option<(PathBuf, PathBuf)>,
    },
    /// Another kind of file is at the folder's path.
    NotAFolder(&'static str),
    /// Git has no record of the folder. The value is whether its `.git` names this repository.
    Unrecorded(bool),
    /// The folder's `.git` is missing or names something else. The value is whether the folder is an
    /// independent repository.
    Unlinked(bool),
    /// Git's record of the worktree names another folder.
    RecordMismatch,
    /// This user may not read the folder, because of the permissions of the contained path.
    Unreadable(PathBuf),
}

impl LaneFolderFault {
    /// Describes the fault, in words that follow "lane 'x' was kept:".
    pub fn describe(&self, lane: &LaneRecord) -> String {
        let path = lane.path.display();
        match self {
            LaneFolderFault::MovedWithRepo(to) => {
                format!("its folder was moved with the repository to {}", to.display())
            }
            LaneFolderFault::Absent => format!(
                "its folder is not at {path}; it may have been moved with the repository, or be on a disk that is not mounted"
            ),
            LaneFolderFault::Foreign { other_repo: repo, .. } => {
                format!("{path} is a worktree of another repository, {}", repo.display())
            }
            LaneFolderFault::NotAFolder(file_kind) => format!("{path} is {file_kind}, not a folder"),
            LaneFolderFault::Unrecorded(true) => {
                format!("git no longer has a record of {path} as a worktree")
            }
            LaneFolderFault::Unrecorded(false) => {
                format!("git does not list {path} as a worktree; move it away if it is yours")
            }
            LaneFolderFault::Unlinked(_) => {
                format!("{path} is no longer a worktree: its .git is missing or another")
            }
            LaneFolderFault::RecordMismatch => format!("{path} and git's record of it name different places"),
            LaneFolderFault::Unreadable(folder) => {
                format!("its folder cannot be read: {} may not be opened by you", folder.display())
            }
        }
    }

    /// Returns whether this fault forbids removing the lane even with force, because its folder would be left
    /// behind or belongs to another user or repository.
    pub(crate) fn forbids_removal(&self) -> bool {
        matches!(
            self,
            LaneFolderFault::MovedWithRepo(_)
                | LaneFolderFault::Unrecorded(false)
                | LaneFolderFault::RecordMismatch
                | LaneFolderFault::Unreadable(_)
        )
    }

    /// Returns the command that fixes the fault, if there is one.
    pub fn fix_command(&self, repo: &Repo, lane: &LaneRecord) -> Option<String> {
        Some(match self {
            LaneFolderFault::MovedWithRepo(to) => repair_command(repo, lane, to),
            LaneFolderFault::Absent => return None,
            LaneFolderFault::Foreign { copied_worktree: Some((folder, admin)), .. } => {
                link_command(folder, admin)
            }
            LaneFolderFault::Foreign { copied_worktree: None, .. } => {
                format!("git proq discard --force {}", lane.name)
            }
            LaneFolderFault::NotAFolder(_) | LaneFolderFault::Unrecorded(_) => recreate_command(repo, lane),
            LaneFolderFault::Unlinked(true) => {
                let dot_git = lane.path.join(".git");
                format!(
                    "mv {} {} && {}",
                    shell_quote_path(&dot_git),
                    shell_quote_path(&free_sibling_path(&dot_git)),
                    relink_command(repo, lane)
                )
            }
            LaneFolderFault::Unlinked(false) => relink_command(repo, lane),
            LaneFolderFault::RecordMismatch => repair_command(repo, lane, &lane.path),
            LaneFolderFault::Unreadable(folder) => format!("chmod u+rwX {}", shell_quote_path(folder)),
        })
    }
}

/// Returns the fault of a lane's folder, or `None` if the folder is the lane's worktree or was clearly
/// deleted.
pub fn find_folder_fault(project: &Project, lane: &LaneRecord) -> Option<LaneFolderFault> {
    let repo = &project.repo;
    let (path, id) = (&lane.path, lane.kind.worktree_id.as_str());
    // A file at the folder's path is a different fault.
    if let Some(unreadable) =
        file_access::first_inaccessible(path).filter(|closed| closed != path || path.is_dir())
    {
        return Some(LaneFolderFault::Unreadable(unreadable));
    }
    if repo.is_linked_both_ways(path) {
        return None;
    }
    match path.symlink_metadata() {
        Err(_) => {
            // Unless a record of git's names this folder, a worktree found elsewhere is another one.
            let admin_dir = repo.worktree_admin_dir(path)?;
            let moved_to =
                repo.find_moved_with_repo(path, |admin| Repo::may_link_to_admin(admin, &admin_dir));
            let absent = || may_have_moved(project, lane).then_some(LaneFolderFault::Absent);
            return moved_to.map(LaneFolderFault::MovedWithRepo).or_else(absent);
        }
        Ok(meta) if meta.is_symlink() => return Some(LaneFolderFault::NotAFolder("a symbolic link")),
        Ok(meta) if !meta.is_dir() => return Some(LaneFolderFault::NotAFolder("a file")),
        Ok(_) => {}
    }
    // A folder in the main checkout belongs to this repository, even if another repository has it on record.
    let is_in_main_checkout = repo.main_worktree().is_some_and(|main| path.starts_with(main));
    if let Some((common, other_admin)) = repo.other_repo_of_worktree(path).filter(|_| !is_in_main_checkout) {
        let copy = repo
            .find_moved_with_repo(path, |admin| admin.canonicalize().is_ok_and(|admin| admin == other_admin));
        let repo_shown = common.parent().filter(|_| common.ends_with(".git")).unwrap_or(&common).to_owned();
        return Some(LaneFolderFault::Foreign {
            other_repo: repo_shown,
            copied_worktree: copy.zip(repo.admin_dir(id)),
        });
    }
    let is_recorded = repo.worktree_admin_dir(path).is_some();
    let dot_git = path.join(".git").symlink_metadata().ok();
    Some(match dot_git {
        _ if repo.links_to_missing_admin(path) && repo.admin_dir(id).is_none() => {
            LaneFolderFault::Unrecorded(true)
        }
        Some(dot_git) if dot_git.is_dir() && is_recorded => LaneFolderFault::Unlinked(true),
        Some(_) if repo.is_registered_worktree(path) && (is_recorded || repo.admin_dir(id).is_some()) => {
            LaneFolderFault::RecordMismatch
        }
        _ if is_recorded => LaneFolderFault::Unlinked(false),
        _ => LaneFolderFault::Unrecorded(false),
    })
}

/// Returns whether an absent folder may exist elsewhere unchanged. That is impossible for a folder in the
/// main checkout, which would have moved along with it. It is also impossible for a folder at the configured
/// location of new lanes if its parent folder exists.
fn may_have_moved(project: &Project, lane: &LaneRecord) -> bool {
    let path = &lane.path;
    if project.repo.main_worktree().is_some_and(|main| path.starts_with(main)) {
        return false;
    }
    let current_path = project.location().ok().map(|location| location.worktree_path(&lane.name));
    !(current_path.as_ref() == Some(path) && path.parent().is_some_and(Path::exists))
}

/// Returns the command that makes git's record of a worktree name `folder`.
fn repair_command(repo: &Repo, lane: &LaneRecord, folder: &Path) -> String {
    let git_command = format!("git worktree repair {}", shell_quote_path(folder));
    admin_dir_in_copy(repo, lane).map_or(git_command, |admin| link_command(folder, &admin))
}

/// Returns the command that makes a worktree's folder name git's record of it. The command does not name the
/// folder, because git would first search there for the record and fail.
fn relink_command(repo: &Repo, lane: &LaneRecord) -> String {
    let git_command = || "git worktree repair".to_owned();
    admin_dir_in_copy(repo, lane).map_or_else(git_command, |admin| link_command(&lane.path, &admin))
}

/// Returns the admin folder of a lane if git has worktrees of another repository on record, as in a copied
/// repository. `git worktree repair` would take those over.
fn admin_dir_in_copy(repo: &Repo, lane: &LaneRecord) -> Option<PathBuf> {
    let registrations = repo.worktree_registrations();
    let is_copy =
        registrations.iter().any(|registration| repo.other_repo_of_worktree(&registration.path).is_some());
    repo.admin_dir(&lane.kind.worktree_id).filter(|_| is_copy)
}

/// Returns the shell command line that writes the two files by which a worktree folder and its admin folder
/// find each other. `git worktree repair` would take over worktrees of other repositories, too.
fn link_command(folder: &Path, admin: &Path) -> String {
    let dot_git = folder.join(".git");
    format!(
        "echo {} > {} && echo {} > {}",
        shell_quote_path(Path::new(&format!("gitdir: {}", admin.display()))),
        shell_quote_path(&dot_git),
        shell_quote_path(&dot_git),
        shell_quote_path(&admin.join("gitdir"))
    )
}

/// Returns the command that moves the file at a lane's folder path away and recreates the worktree, if its
/// branch exists.
fn recreate_command(repo: &Repo, lane: &LaneRecord) -> String {
    let (path, branch) = (shell_quote_path(&lane.path), &lane.kind.branch);
    let move_away = format!("mv {path} {}", shell_quote_path(&free_sibling_path(&lane.path)));
    match repo.branch_tip(branch) {
        Ok(Some(_)) => format!("{move_away} && git worktree add -f {path} {branch}"),
        _ => move_away,
    }
}

/// Returns a free path next to `path`.
fn free_sibling_path(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let mut candidate = path.with_file_name(format!("{name}.old"));
    let mut number = 2;
    while candidate.symlink_metadata().is_ok() {
        candidate = path.with_file_name(format!("{name}.old{number}"));
        number += 1;
    }
    candidate
}

//! Owns what is wrong with a lane's folder that is not the worktree that its record names, and the command that helps.

use std::path::{Path, PathBuf};

use super::Project;
use crate::explain::quoted_path;
use crate::git::Repo;
use crate::store;
use crate::store::records::LaneRecord;

/// How the folder of a lane is not its worktree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Misplaced {
    /// It was moved with the repository, and git does not know.
    Along(PathBuf),
    /// It is absent, and git has a record of it: it may have been moved with the repository, or its disk may be absent.
    Absent,
    /// It is a worktree of another repository, of which this one is a copy.
    Foreign {
        /// The other repository.
        repo: PathBuf,
        /// The folder of the copied worktree, and the admin folder that belongs to it.
        copy: Option<(PathBuf, PathBuf)>,
    },
    /// Something that is no folder has its place.
    NoFolder(&'static str),
    /// Git has no record of it; whether its `.git` names this repository.
    Unrecorded(bool),
    /// Its `.git` is gone or names something else; whether it is a repository of its own.
    Unlinked(bool),
    /// Git's record of it names another folder.
    Crossed,
    /// This user may not read it, because of this folder.
    Closed(PathBuf),
}

impl Misplaced {
    /// What is wrong, in words that follow "lane 'x' was kept:".
    pub(crate) fn in_words(&self, lane: &LaneRecord) -> String {
        let path = lane.path.display();
        match self {
            Misplaced::Along(to) => format!("its folder was moved with the repository to {}", to.display()),
            Misplaced::Absent => format!(
                "its folder is not at {path}; it may have been moved with the repository, or lie on a disk that is not there"
            ),
            Misplaced::Foreign { repo, .. } => {
                format!("{path} is a worktree of another repository, {}", repo.display())
            }
            Misplaced::NoFolder(what) => format!("{path} is {what}, not a folder"),
            Misplaced::Unrecorded(true) => format!("git has no record of {path} as a worktree any more"),
            Misplaced::Unrecorded(false) => {
                format!("git does not list {path} as a worktree; move it away if it is yours")
            }
            Misplaced::Unlinked(_) => format!("{path} is no worktree any more: its .git is gone or another"),
            Misplaced::Crossed => format!("{path} and git's record of it name different places"),
            Misplaced::Closed(folder) => {
                format!("its folder cannot be read: {} may not be opened by you", folder.display())
            }
        }
    }

    /// Whether the lane stays, also with force: its folder would be left behind, or is somebody else's.
    pub(super) fn is_veto(&self) -> bool {
        matches!(
            self,
            Misplaced::Along(_) | Misplaced::Unrecorded(false) | Misplaced::Crossed | Misplaced::Closed(_)
        )
    }

    /// The command that helps, if there is one.
    pub(crate) fn help(&self, project: &Project, lane: &LaneRecord) -> Option<String> {
        Some(match self {
            Misplaced::Along(to) => repair(project, lane, to),
            Misplaced::Absent => return None,
            Misplaced::Foreign { copy: Some((folder, admin)), .. } => link(folder, admin),
            Misplaced::Foreign { copy: None, .. } => format!("git proq discard --force {}", lane.name),
            Misplaced::NoFolder(_) | Misplaced::Unrecorded(_) => anew(project, lane),
            Misplaced::Unlinked(true) => {
                let own = lane.path.join(".git");
                format!("mv {} {} && {}", quoted_path(&own), quoted_path(&aside(&own)), relink(project, lane))
            }
            Misplaced::Unlinked(false) => relink(project, lane),
            Misplaced::Crossed => repair(project, lane, &lane.path),
            Misplaced::Closed(folder) => format!("chmod u+rwX {}", quoted_path(folder)),
        })
    }
}

/// What is wrong with the folder of a lane; none where it is the lane's worktree, or plainly gone.
pub(crate) fn misplaced(project: &Project, lane: &LaneRecord) -> Option<Misplaced> {
    let repo = &project.repo;
    let (path, id) = (&lane.path, lane.place.worktree_id.as_str());
    // A file has another fault.
    if let Some(closed) = store::closed(path).filter(|closed| closed != path || path.is_dir()) {
        return Some(Misplaced::Closed(closed));
    }
    if repo.is_in_place(path) {
        return None;
    }
    match path.symlink_metadata() {
        Err(_) => {
            // Without a record of git's that names this folder, whatever lies elsewhere is another worktree.
            let own = repo.admin_dir_of(path)?;
            let along = repo.moved_along(path, |admin| Repo::may_name(admin, &own));
            let absent = || may_be_elsewhere(project, lane).then_some(Misplaced::Absent);
            return along.map(Misplaced::Along).or_else(absent);
        }
        Ok(meta) if meta.is_symlink() => return Some(Misplaced::NoFolder("a symbolic link")),
        Ok(meta) if !meta.is_dir() => return Some(Misplaced::NoFolder("a file")),
        Ok(_) => {}
    }
    // What lies in the main checkout is this repository's, whoever has it on record as well.
    let is_inside = repo.main_worktree().is_some_and(|main| path.starts_with(main));
    if let Some((common, theirs)) = repo.other_owner(path).filter(|_| !is_inside) {
        let copy = repo.moved_along(path, |admin| admin.canonicalize().is_ok_and(|admin| admin == theirs));
        let repo_shown = common.parent().filter(|_| common.ends_with(".git")).unwrap_or(&common).to_owned();
        return Some(Misplaced::Foreign { repo: repo_shown, copy: copy.zip(repo.admin_dir(id)) });
    }
    let is_recorded = repo.admin_dir_of(path).is_some();
    let git = path.join(".git").symlink_metadata().ok();
    Some(match git {
        _ if repo.was_own(path) && repo.admin_dir(id).is_none() => Misplaced::Unrecorded(true),
        Some(git) if git.is_dir() && is_recorded => Misplaced::Unlinked(true),
        Some(_) if repo.is_own_worktree(path) && (is_recorded || repo.admin_dir(id).is_some()) => {
            Misplaced::Crossed
        }
        _ if is_recorded => Misplaced::Unlinked(false),
        _ => Misplaced::Unrecorded(false),
    })
}

/// Whether a folder that is absent may be elsewhere as it was. One in the main checkout would have come along with it, and one where
/// a lane of this name lies today is absent for certain when the folder around it is there.
fn may_be_elsewhere(project: &Project, lane: &LaneRecord) -> bool {
    let path = &lane.path;
    if project.repo.main_worktree().is_some_and(|main| path.starts_with(main)) {
        return false;
    }
    let name = super::Name::parse(&lane.name).ok();
    let today = name.zip(project.location().ok()).map(|(name, location)| location.place_of(&name));
    !(today.as_ref() == Some(path) && path.parent().is_some_and(Path::exists))
}

/// The command that has git's record of a worktree name this folder.
fn repair(project: &Project, lane: &LaneRecord, folder: &Path) -> String {
    let ours = format!("git worktree repair {}", quoted_path(folder));
    in_a_copy(project, lane).map_or(ours, |admin| link(folder, &admin))
}

/// The command that has the folder of a worktree name git's record of it. With the folder's name, git would look for the record there
/// first, and fail.
fn relink(project: &Project, lane: &LaneRecord) -> String {
    let ours = || "git worktree repair".to_owned();
    in_a_copy(project, lane).map_or_else(ours, |admin| link(&lane.path, &admin))
}

/// The admin folder of a lane, where git has worktrees of another repository on record, as in a copy: `git worktree repair` would
/// take those over.
fn in_a_copy(project: &Project, lane: &LaneRecord) -> Option<PathBuf> {
    let registrations = project.repo.registrations();
    let is_copy = registrations.iter().any(|found| project.repo.other_owner(&found.path).is_some());
    project.repo.admin_dir(&lane.place.worktree_id).filter(|_| is_copy)
}

/// The command that writes into a folder and into an admin folder that they belong together.
fn link(folder: &Path, admin: &Path) -> String {
    let git = folder.join(".git");
    format!(
        "echo {} > {} && echo {} > {}",
        quoted_path(Path::new(&format!("gitdir: {}", admin.display()))),
        quoted_path(&git),
        quoted_path(&git),
        quoted_path(&admin.join("gitdir"))
    )
}

/// The command that moves what is in the place of a lane's folder aside and makes the folder anew, where its branch is there.
fn anew(project: &Project, lane: &LaneRecord) -> String {
    let (path, branch) = (quoted_path(&lane.path), &lane.place.branch);
    let away = format!("mv {path} {}", quoted_path(&aside(&lane.path)));
    match project.repo.branch_tip(branch) {
        Ok(Some(_)) => format!("{away} && git worktree add -f {path} {branch}"),
        _ => away,
    }
}

/// A name beside `path` that nothing has.
fn aside(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let mut old = path.with_file_name(format!("{name}.old"));
    let mut number = 2;
    while old.symlink_metadata().is_ok() {
        old = path.with_file_name(format!("{name}.old{number}"));
        number += 1;
    }
    old
}

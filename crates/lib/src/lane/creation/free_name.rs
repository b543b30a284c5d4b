//! Choice of a name for a new lane that no lane, branch or folder has.

use proq_base::explain::shell_quote;
use proq_base::hint;
use proq_base::lane_name::LaneName;
use proq_git::Repo;
use proq_git::base::error_hints::broken_ref_removal_command;
use proq_store::locks::lock::{LockGuard, LockName};

use crate::lane::{Error, Project};

/// Number of suffixes tried for a name made from a prompt before giving up.
pub const MAX_NAMES_TRIED: u32 = 1000;

/// Returns the requested name, which has to be free, or one made from `name_source`.
pub(crate) fn choose_name(
    project: &Project,
    requested: Option<&LaneName>,
    name_source: &str,
) -> Result<LaneName, Error> {
    let Some(name) = requested else { return find_free_name(project, &LaneName::from_prompt(name_source)) };
    // While a name is locked, what exists under it belongs to a lane that is being created or removed.
    // Another spawn can take the name between two of these checks. So a branch or folder belongs to no lane
    // only if it exists while the name is free afterwards.
    let name_taken = || Error::NameTaken { name: name.clone() };
    let is_held = || project.store.locks().is_held(&LockName::Run(name.clone()));
    if is_held()? {
        return Err(name_taken());
    }
    if let Err(e) = require_free_name(project, name) {
        let is_lane = is_held()? || project.store.layout().lane(name).exists();
        return Err(if is_lane { name_taken() } else { e });
    }
    Ok(name.clone())
}

/// Refuses a name that a lane has, or whose branch or worktree path exists.
pub(crate) fn require_free_name(project: &Project, name: &LaneName) -> Result<(), Error> {
    if project.store.layout().lane(name).exists() {
        return Err(Error::NameTaken { name: name.clone() });
    }
    let branch = project.lane_branch(name);
    let repo = &project.repo;
    // A symbolic ref may lead to a branch that does not exist; then it has no tip.
    if repo.symbolic_target(&branch)?.is_some()
        || repo.branch_tip(&branch)?.is_some()
        || repo.is_broken_branch(&branch)
    {
        return Err(branch_taken_error(&project.repo, branch));
    }
    let path = project.location()?.worktree_path(name);
    if path.symlink_metadata().is_ok() {
        return Err(Error::PathTaken { path });
    }
    Ok(())
}

/// Returns the error for a branch that exists already, with the command that frees its name.
pub(super) fn branch_taken_error(repo: &Repo, branch: String) -> Error {
    let name = format!("refs/heads/{branch}");
    let free_command = if repo.symbolic_target(&branch).is_ok_and(|alias| alias.is_some()) {
        hint!("remove the symbolic ref: git symbolic-ref -d {}", shell_quote(&name))
    } else if repo.is_broken_branch(&branch) {
        hint!("remove its file, which has no commit: {}", broken_ref_removal_command(&name))
    } else {
        hint!(
            "rename the branch: git branch -m {} {}",
            shell_quote(&branch),
            shell_quote(&format!("{}-old", branch.replace('/', "-")))
        )
    };
    Error::BranchTaken { branch, free_command }
}

/// Returns the first free name of `preferred`, `preferred-2`, `preferred-3` and so on whose run lock nobody
/// holds.
///
/// # Errors
/// [`Error::NameTaken`] when all [`MAX_NAMES_TRIED`] names are taken.
fn find_free_name(project: &Project, preferred: &LaneName) -> Result<LaneName, Error> {
    for n in 1..MAX_NAMES_TRIED {
        let name = preferred.numbered(n);
        let is_held = project.store.locks().is_held(&LockName::Run(name.clone()))?;
        if !is_held && require_free_name(project, &name).is_ok() {
            return Ok(name);
        }
    }
    Err(Error::NameTaken { name: preferred.clone() })
}

/// Takes the run lock of a name that was free a moment ago, or of another name where the user requested none.
pub fn lock_name(
    project: &Project,
    name: &LaneName,
    requested: Option<&LaneName>,
    name_source: &str,
) -> Result<(LaneName, LockGuard), Error> {
    let mut name = name.clone();
    for _ in 0..MAX_NAMES_TRIED {
        let held = project.store.locks().try_acquire(&LockName::Run(name.clone()))?;
        let free = require_free_name(project, &name);
        match (held, free, requested) {
            (Some(guard), Ok(()), _) => return Ok((name, guard)),
            (None, _, Some(name)) => return Err(Error::NameTaken { name: name.clone() }),
            (Some(_), Err(e), Some(_)) => return Err(e),
            _ => {}
        }
        name = find_free_name(project, &LaneName::from_prompt(name_source))?;
    }
    Err(Error::NameTaken { name: name.clone() })
}

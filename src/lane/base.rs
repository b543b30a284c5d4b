//! Owns where a lane starts and which branch it lands on.

use super::{Checkout, Error, Project};
use crate::git::{Head, Oid, Repo};
use crate::store::Record;
use crate::store::records::PreviewRecord;

/// Where a lane starts and lands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Base {
    /// The branch it lands on.
    pub(crate) branch: String,
    /// The commit it is cut from.
    pub(crate) start: Oid,
}

/// Works out the base. Without `base` and `onto` it is the current branch; inside a lane that lane's base; while a
/// preview is open the branch it was entered from. A `base` that is no local branch is a starting point only and needs
/// `onto`.
pub(crate) fn resolve(project: &Project, base: Option<&str>, onto: Option<&str>) -> Result<Base, Error> {
    let repo = &project.repo;
    if let Some(onto) = onto {
        let branch = repo.branch_behind(onto.strip_prefix("refs/heads/").unwrap_or(onto));
        let tip = require_branch(project, &branch)?;
        let start = match base {
            Some(base) => repo.require_commit(base)?,
            None => tip,
        };
        return Ok(Base { branch, start });
    }
    let branch = match base {
        Some(base) => {
            let name = base.strip_prefix("refs/heads/").unwrap_or(base);
            if !Repo::is_branch_name(name) || repo.branch_tip(name)?.is_none() {
                repo.require_commit(base)?;
                return Err(Error::NeedsOnto { why: format!("'{base}' is not a branch") });
            }
            repo.branch_behind(name)
        }
        None => current(project)?,
    };
    let start = require_branch(project, &branch)?;
    Ok(Base { branch, start })
}

/// The branch a command acts on when none is named.
pub(crate) fn current(project: &Project) -> Result<String, Error> {
    let repo = &project.repo;
    if let Some(here) = repo.here()
        && let Some(lane) = project.lane_at(here)?
    {
        return Ok(lane.base);
    }
    let look = || -> Result<_, Error> {
        let head = repo.head_name()?;
        let open = PreviewRecord::find(&project.store.layout().preview())?;
        Ok((open.filter(|open| head.as_ref() == Some(&open.branch)), head))
    };
    let (mut shown, mut head) = look()?;
    if let (None, Some(branch), Some(main)) = (&shown, &head, repo.main_worktree())
        && project.is_own_branch(branch)
    {
        // Somebody may be opening or leaving the preview just now: record and HEAD agree once the checkout is free.
        let _lock = Checkout::lock(project, main)?;
        (shown, head) = look()?;
    }
    if let Some(open) = shown {
        return match open.came_from {
            Head::Branch(branch) => Ok(repo.branch_behind(&branch)),
            Head::Detached(oid) => Err(Error::NeedsOnto {
                why: format!("the preview was entered from a detached HEAD ({})", oid.short()),
            }),
        };
    }
    match head {
        None => Err(Error::NeedsOnto { why: "HEAD is detached".to_owned() }),
        Some(branch) if repo.branch_tip(&branch)?.is_none() => Err(Error::Unborn { branch }),
        Some(branch) => Ok(repo.branch_behind(&branch)),
    }
}

fn require_branch(project: &Project, branch: &str) -> Result<Oid, Error> {
    if project.is_own_branch(branch) {
        return Err(Error::OwnBranch { branch: branch.to_owned() });
    }
    if !Repo::is_branch_name(branch) {
        return Err(Error::NoBranch { branch: branch.to_owned() });
    }
    project.repo.branch_tip(branch)?.ok_or_else(|| Error::NoBranch { branch: branch.to_owned() })
}

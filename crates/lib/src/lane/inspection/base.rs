//! Base of a lane: the commit where it starts and the branch on which it lands.

use proq_git::base::head::Head;
use proq_git::{CommitId, Repo};
use proq_store::base::record::Record;
use proq_store::records::preview::PreviewRecord;

use crate::lane::{Error, Project};
use crate::operation::locked_worktree::LockedWorktree;

/// Start commit and target branch of a lane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Base {
    /// The branch on which the lane lands.
    pub branch: String,
    /// The commit from which the lane is created.
    pub start: CommitId,
}

/// Resolves the base of a new lane. Without `base` and `onto`, the base is the current branch; inside a lane,
/// that lane's base; while a preview is open, the branch from which it was entered. A `base` that is not a
/// local branch is only a start commit and needs `onto`.
pub fn resolve(project: &Project, base: Option<&str>, onto: Option<&str>) -> Result<Base, Error> {
    let repo = &project.repo;
    if let Some(onto) = onto {
        let branch = repo.resolve_symbolic_branch(onto.strip_prefix("refs/heads/").unwrap_or(onto));
        let tip = require_base_tip(project, &branch)?;
        let start = match base {
            Some(base) => repo.require_commit(base)?,
            None => tip,
        };
        return Ok(Base { branch, start });
    }
    let branch = match base {
        Some(base) => {
            let name = base.strip_prefix("refs/heads/").unwrap_or(base);
            if !Repo::is_valid_branch_name(name) || repo.branch_tip(name)?.is_none() {
                repo.require_commit(base)?;
                return Err(Error::NeedsOnto { reason: format!("'{base}' is not a branch") });
            }
            repo.resolve_symbolic_branch(name)
        }
        None => default_base(project)?,
    };
    let start = require_base_tip(project, &branch)?;
    Ok(Base { branch, start })
}

/// Returns the branch on which a command acts when the user names none: the base of the lane it runs in, the
/// branch that the open preview was entered from, or else the current branch.
///
/// # Errors
/// [`Error::NeedsOnto`] for a detached HEAD, [`Error::UnbornBranch`].
pub(crate) fn default_base(project: &Project) -> Result<String, Error> {
    let repo = &project.repo;
    // No lane's worktree is the main checkout.
    if let Some(here) = repo.current_worktree().filter(|here| repo.main_worktree() != Some(*here))
        && let Some(lane) = project.owned_lane_at(here)?
    {
        return Ok(lane.base);
    }
    let read_head_and_preview = || -> Result<_, Error> {
        let head = repo.current_head_name()?;
        let open = PreviewRecord::load_if_exists(&project.store.layout().preview_record())?;
        Ok((open.filter(|open| head.as_ref() == Some(&open.branch)), head))
    };
    let (mut preview, mut head) = read_head_and_preview()?;
    if let (None, Some(branch), Some(main)) = (&preview, &head, repo.main_worktree())
        && project.is_managed_branch(branch)
    {
        // Another process may be opening or leaving the preview now: record and HEAD agree once the checkout
        // is free.
        let _lock = LockedWorktree::lock(project, main)?;
        (preview, head) = read_head_and_preview()?;
    }
    if let Some(preview) = preview {
        return match preview.previous_head {
            Head::Branch(branch) => Ok(repo.resolve_symbolic_branch(&branch)),
            Head::Detached(oid) => Err(Error::NeedsOnto {
                reason: format!("the preview was opened from a detached HEAD ({})", oid.short()),
            }),
        };
    }
    match head {
        None => Err(Error::NeedsOnto { reason: "HEAD is detached".to_owned() }),
        Some(branch) if repo.branch_tip(&branch)?.is_none() => Err(Error::UnbornBranch { branch }),
        Some(branch) => Ok(repo.resolve_symbolic_branch(&branch)),
    }
}

/// Returns the tip of a branch that lanes can land on.
///
/// # Errors
/// [`Error::ReservedBranch`] for a branch of git-proq, [`Error::NoOntoBranch`] for a missing one.
fn require_base_tip(project: &Project, branch: &str) -> Result<CommitId, Error> {
    if project.is_managed_branch(branch) {
        return Err(Error::ReservedBranch { branch: branch.to_owned() });
    }
    if !Repo::is_valid_branch_name(branch) {
        return Err(Error::NoOntoBranch { branch: branch.to_owned() });
    }
    project.repo.branch_tip(branch)?.ok_or_else(|| Error::NoOntoBranch { branch: branch.to_owned() })
}

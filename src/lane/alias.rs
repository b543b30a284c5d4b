//! Owns branches that are symbolic refs: what is committed to one, or moves it, changes another branch, where nothing has checked it.

use std::borrow::Cow;

use super::{Error, Project};
use crate::explain::{Explain, word};
use crate::store::records::LaneRecord;

/// A branch that is another name of some other ref.
#[derive(Debug, Clone, thiserror::Error)]
#[error("branch {branch} is a symbolic ref to {to}: nothing is committed to it or moved through it")]
pub struct Alias {
    branch: String,
    to: String,
    /// What it is to be at as a ref of its own.
    at: String,
}

impl Alias {
    /// What is wrong with a lane whose branch it is.
    pub(crate) fn in_words(&self) -> String {
        format!("its branch {} is a symbolic ref to {}", self.branch, self.to)
    }

    /// The command that makes the branch a ref of its own, and leaves the other one where it is.
    pub(crate) fn help(&self) -> String {
        let name = word(&format!("refs/heads/{}", self.branch));
        format!("git update-ref --no-deref {name} {}", word(&self.at))
    }
}

impl Explain for Alias {
    fn is_decision(&self) -> bool {
        true
    }

    fn hints(&self) -> Vec<Cow<'static, str>> {
        vec![format!("make it a branch of its own: {}", self.help()).into()]
    }
}

/// What is wrong with the branch of a lane that is a symbolic ref; none where it is a ref of its own, or gone.
///
/// # Errors
/// When refs cannot be read.
pub(crate) fn alias(project: &Project, lane: &LaneRecord) -> Result<Option<Alias>, Error> {
    let Some(found) = find(project, &lane.place.branch)? else { return Ok(None) };
    let at = last_made(project, lane, &found.to)?.unwrap_or(lane.start);
    Ok(Some(Alias { at: at.to_string(), ..found }))
}

/// A branch that is a symbolic ref.
///
/// # Errors
/// When refs cannot be read.
fn find(project: &Project, branch: &str) -> Result<Option<Alias>, Error> {
    let to = project.repo.alias_of(branch)?;
    Ok(to.map(|to| Alias { branch: branch.to_owned(), at: to.clone(), to }))
}

/// The branch that is moved where `branch` is to be: what a symbolic ref leads to, as with git, but for a branch that git-proq made.
pub(super) fn branch_behind(project: &Project, branch: &str) -> String {
    match project.is_own_branch(branch) {
        true => branch.to_owned(),
        false => project.repo.branch_behind(branch),
    }
}

/// Refuses to move or remove a branch that is a symbolic ref by now.
///
/// # Errors
/// [`Error::Alias`].
pub(super) fn refuse_alias(project: &Project, branch: &str) -> Result<(), Error> {
    find(project, branch)?.map_or(Ok(()), |found| Err(found.into()))
}

/// The last commit that was made in a lane's worktree and is not on the ref that its branch leads to.
fn last_made(project: &Project, lane: &LaneRecord, to: &str) -> Result<Option<crate::git::Oid>, Error> {
    let repo = &project.repo;
    let tip = repo.ref_tip(to)?;
    for step in repo.moves(&lane.path, "HEAD").unwrap_or_default() {
        let is_there = match tip {
            Some(tip) => repo.is_ancestor(step.to, tip)?,
            None => false,
        };
        if step.made() && !is_there {
            return Ok(Some(step.to));
        }
    }
    Ok(None)
}

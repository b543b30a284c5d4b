//! Branches that are symbolic refs: a commit to such a branch, or a move of it, changes another branch, where
//! nothing has checked it.

use proq_git::{CommitId, Repo};
use proq_store::records::lane::LaneRecord;

use crate::errors::symbolic_branch_error::SymbolicBranch;
use crate::lane::{Error, Project};

/// Returns the symbolic ref that a lane's branch is; none when the branch is a direct ref or is missing.
///
/// # Errors
/// Fails when refs cannot be read.
pub(crate) fn find_symbolic_branch(repo: &Repo, lane: &LaneRecord) -> Result<Option<SymbolicBranch>, Error> {
    let Some(symbolic) = read_symbolic_branch(repo, &lane.kind.branch)? else { return Ok(None) };
    let commit = last_own_commit(repo, lane, &symbolic.target)?;
    Ok(Some(SymbolicBranch { reset_to: commit.to_string(), ..symbolic }))
}

/// Reads `branch` as a symbolic ref; none when it is a direct ref or is missing.
///
/// # Errors
/// Fails when refs cannot be read.
fn read_symbolic_branch(repo: &Repo, branch: &str) -> Result<Option<SymbolicBranch>, Error> {
    let target = repo.symbolic_target(branch)?;
    Ok(target.map(|to| SymbolicBranch { branch: branch.to_owned(), reset_to: to.clone(), target: to }))
}

/// Returns the branch to move when `branch` should move: the target of a symbolic ref, as in git, except for
/// a branch that git-proq created.
pub(crate) fn branch_to_move(project: &Project, branch: &str) -> String {
    match project.is_managed_branch(branch) {
        true => branch.to_owned(),
        false => project.repo.resolve_symbolic_branch(branch),
    }
}

/// Refuses to move or remove a branch that has become a symbolic ref.
///
/// # Errors
/// [`Error::SymbolicBranch`].
pub(crate) fn refuse_symbolic_branch(repo: &Repo, branch: &str) -> Result<(), Error> {
    read_symbolic_branch(repo, branch)?.map_or(Ok(()), |symbolic| Err(symbolic.into()))
}

/// Returns the last commit of a lane's own work, or the lane's start. `target` is the ref that the lane's branch
/// points to. It may have commits of others. It may also have the lane's own, as after `git branch -m` when the old
/// name was kept as a symbolic ref: those that the lane created on top of its own commits or of its base.
fn last_own_commit(repo: &Repo, lane: &LaneRecord, target: &str) -> Result<CommitId, Error> {
    let is_on = |tip: Option<CommitId>, commit: CommitId| match tip {
        Some(tip) => repo.is_ancestor(commit, tip),
        None => Ok(false),
    };
    let (target_tip, base_tip) = (repo.ref_tip(target)?, repo.branch_tip(&lane.base)?);
    let mut last_own = lane.start;
    let mut known: Vec<CommitId> = base_tip.into_iter().chain([lane.start]).collect();
    for step in repo.reflog(&lane.path, "HEAD").unwrap_or_default().into_iter().rev() {
        let commit = step.new_id;
        if step.creates_commit()
            && !is_on(base_tip, commit)?
            && (!is_on(target_tip, commit)? || repo.count_ahead_of_all(commit, &known)? == 1)
        {
            known.push(commit);
            last_own = commit;
        }
    }
    Ok(last_own)
}

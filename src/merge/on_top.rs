//! Owns a commit of git-proq's own on top of a branch: what it notes in the repository's files once something has landed.

use super::Error;
use super::land::{self, Landing, Move, Way};
use crate::git::{self, Graft, NewCommit, Oid};
use crate::lane::{self, Operation, Project, operate};
use crate::store::LockName;

/// How often it is tried where the branch moves meanwhile.
const TRIES: u32 = 5;

/// A commit to be made.
pub(crate) struct OnTop<'a> {
    /// The branch.
    pub(crate) onto: &'a str,
    /// The commit's whole message.
    pub(crate) message: &'a str,
    /// What is to be changed in a tree; asked anew where the branch has moved.
    pub(crate) grafts: &'a dyn Fn(Oid) -> Result<Vec<Graft>, git::Error>,
}

impl OnTop<'_> {
    /// Makes the commit and moves the branch to it, with every worktree that is on it, as one operation. None where there is
    /// nothing to change. The repository's own commit hooks are not asked: nobody's work is in it.
    ///
    /// # Errors
    /// As those of a landing: nothing was moved.
    pub(crate) fn commit(&self, project: &Project) -> Result<Option<Oid>, Error> {
        let mut last = None;
        for _ in 0..TRIES {
            let mut made = None;
            let landing = operate(project, "note", |op| self.try_once(op, &mut made))?;
            match landing {
                Landing::Done => return Ok(made),
                Landing::Moved(why) => last = why.or(last),
            }
        }
        Err(Error::Restless { base: self.onto.to_owned(), tries: TRIES, last })
    }

    fn try_once(&self, op: &Operation<'_>, made: &mut Option<Oid>) -> Result<Landing, Error> {
        let (project, repo) = (op.project, &op.project.repo);
        let tip = repo.branch_tip(self.onto)?;
        let from = tip.ok_or_else(|| lane::Error::NoBranch { branch: self.onto.to_owned() })?;
        let before = repo.tree_of(from)?;
        let tree = repo.grafted(before, &(self.grafts)(before)?)?;
        if tree == before {
            return Ok(Landing::Done);
        }
        let to = NewCommit { tree, parents: &[from], message: self.message }.write(repo, None)?;
        let _lock = project.store.locks().take(&LockName::Merge)?;
        if repo.branch_tip(self.onto)? != Some(from) {
            return Ok(Landing::Moved(None));
        }
        op.set_why("git-proq: what has landed is noted");
        let landing = land::advance(op, Move { onto: self.onto, from, to }, Vec::new(), Way::Forward)?;
        *made = (landing == Landing::Done).then_some(to);
        Ok(landing)
    }
}

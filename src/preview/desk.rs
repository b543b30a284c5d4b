//! Owns where the main checkout is: what HEAD says, what the record says, and what to make of the two.

use std::path::Path;

use super::Error;
use super::leave::home_commit;
use crate::fault;
use crate::git::{Head, Oid, WorktreeList};
use crate::lane::{Operation, Project};
use crate::store::Record;
use crate::store::records::{PreviewRecord, Step};

/// What HEAD of the main checkout names, and the commit it is at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Desk {
    /// What HEAD names.
    pub(super) head: Head,
    /// The commit.
    pub(super) commit: Oid,
}

impl Desk {
    /// Looks at the main checkout.
    pub(super) fn look(project: &Project, main: &Path) -> Result<Desk, Error> {
        loop {
            let head = project.repo.main_head();
            let desk = Desk::look_once(project, main, head.clone());
            // Race: a preview that ends meanwhile moves HEAD, and removes its branch then. To who reads HEAD before and the branch
            // after it, that is a branch without a commit.
            if project.repo.main_head() == head {
                return desk;
            }
        }
    }

    fn look_once(project: &Project, main: &Path, head: Option<Head>) -> Result<Desk, Error> {
        let list = WorktreeList::read(&project.repo)?;
        let worktree = list.iter().next().filter(|w| w.path == main).or_else(|| list.at(main));
        let worktree = worktree.ok_or(Error::Unborn)?;
        fault::point("desk.head");
        let Some(commit) = worktree.head(&project.repo)? else {
            let Some(open) = open_preview(project)? else { return Err(Error::Unborn) };
            let now = worktree.branch.clone().unwrap_or_default();
            return Err(Error::Orphan { lane: open.lane, now, preview: open.branch });
        };
        // As HEAD has it: the way back leads to that name, be it a symbolic ref.
        Ok(Desk { head: head.unwrap_or(Head::Detached(commit)), commit })
    }
}

/// How an open preview and the checkout agree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Reality {
    /// The checkout shows the preview's branch.
    Shown,
    /// The checkout is where the preview was entered from: somebody switched back by hand, or entering was cut short.
    Home,
    /// The checkout is somewhere else.
    Elsewhere,
}

/// Compares an open preview with the checkout.
pub(super) fn reality(open: &PreviewRecord, desk: &Desk) -> Reality {
    if desk.head == Head::Branch(open.branch.clone()) {
        Reality::Shown
    } else if desk.head == open.came_from {
        Reality::Home
    } else {
        Reality::Elsewhere
    }
}

/// Refuses a preview that the checkout does not show any more.
pub(super) fn require_shown(project: &Project, open: &PreviewRecord, desk: &Desk) -> Result<(), Error> {
    match reality(open, desk) {
        Reality::Shown => Ok(()),
        Reality::Home | Reality::Elsewhere => Err(by_hand(project, open, desk)),
    }
}

/// The refusal of a preview whose checkout was switched by hand, which names the way back; or where that leads nowhere any more, that
/// of a branch that is gone.
pub(super) fn by_hand(project: &Project, open: &PreviewRecord, desk: &Desk) -> Error {
    let (lane, came_from) = (open.lane.clone(), open.came_from.clone());
    match home_commit(project, open) {
        Ok(_) => Error::ByHand { lane, now: desk.head.to_string(), came_from },
        Err(gone) => gone,
    }
}

/// The preview on record.
pub(super) fn open_preview(project: &Project) -> Result<Option<PreviewRecord>, Error> {
    Ok(PreviewRecord::find(&project.store.layout().preview())?)
}

/// What the main checkout shows, for lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Showing {
    /// The lane.
    pub(crate) lane: String,
    /// What the preview was entered from.
    pub(crate) came_from: String,
    /// Whether changes of the user wait for the way back.
    pub(crate) waiting: bool,
    /// Whether the checkout still shows it.
    pub(crate) shown: bool,
    /// Whether commits were made in it.
    pub(crate) commits: bool,
}

/// Which lane the main checkout shows; none when no preview is open.
pub(crate) fn showing(project: &Project) -> Result<Option<Showing>, Error> {
    let Some(open) = open_preview(project)? else { return Ok(None) };
    let Some(main) = project.repo.main_worktree() else { return Ok(None) };
    let shown = match Desk::look(project, main) {
        Ok(desk) => reality(&open, &desk) == Reality::Shown,
        Err(Error::Orphan { .. }) => false,
        Err(e) => return Err(e),
    };
    let tip = project.repo.branch_tip(&open.branch)?;
    Ok(Some(Showing {
        commits: tip.is_some_and(|tip| tip != open.tip),
        lane: open.lane.clone(),
        came_from: open.came_from.to_string(),
        waiting: open.snapshot.is_some(),
        shown,
    }))
}

/// What was made in the open preview of a lane and is in the lane not yet, one phrase each.
pub(super) fn made_in_preview(project: &Project, lane: &str) -> Result<Vec<String>, Error> {
    let mut out = Vec::new();
    let (Some(open), Some(main)) = (open_preview(project)?, project.repo.main_worktree()) else {
        return Ok(out);
    };
    if open.lane != lane {
        return Ok(out);
    }
    let desk = Desk::look(project, main)?;
    let shown = reality(&open, &desk) == Reality::Shown;
    // Where somebody switched back by hand, its branch still has them.
    let tip = if shown { Some(desk.commit) } else { project.repo.branch_tip(&open.branch)? };
    if tip.is_some_and(|tip| tip != open.tip) {
        out.push("commits made in its preview".to_owned());
    }
    if shown && !crate::git::status(&project.repo, main, true)?.is_clean() {
        out.push("uncommitted edits in its preview".to_owned());
    }
    Ok(out)
}

/// Removes the record of a preview that is over.
pub(super) fn close(op: &Operation<'_>) -> Result<(), Error> {
    Ok(op.remove_record(&op.project.store.layout().preview())?)
}

/// The step that does it.
pub(super) fn close_step(op: &Operation<'_>) -> Result<Step, Error> {
    Ok(op.record_step(&op.project.store.layout().preview(), None)?)
}

/// Runs the repository's post-checkout hook as `git switch` would; a failing one is a warning, the switch is done.
pub(super) fn after_checkout(project: &Project, main: &Path, from: Oid, to: Oid) {
    let args = [from.to_string(), to.to_string()];
    let run = crate::git::run_hook(&project.repo, main, "post-checkout", &[&args[0], &args[1], "1"]);
    if let Err(e) = run {
        project.listener.warn(format!("the repository's post-checkout hook failed: {e}"));
    }
}

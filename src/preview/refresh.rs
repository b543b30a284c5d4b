//! Owns bringing an open preview to where its lane is now.

use super::Error;
use super::desk::{self, Desk, Reality};
use super::enter::tip_of;
use crate::git::{Oid, RefMove};
use crate::lane::{Checkout, Project};
use crate::store::Record;

/// What refreshing did.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub(crate) struct Refreshed {
    /// The lane.
    pub(crate) lane: String,
    /// The commit that was shown.
    pub(crate) from: Oid,
    /// The commit that is shown.
    pub(crate) to: Oid,
    /// Whether changes of the user wait for the way back.
    pub(crate) waiting: bool,
}

/// Moves the preview to its lane's tip. Edits that do not overlap stay as they are; overlapping ones refuse it by name.
pub(crate) fn refresh(project: &Project) -> Result<Refreshed, Error> {
    let main = project.repo.require_main()?.to_owned();
    let checkout = Checkout::lock(project, &main)?;
    let mut open = desk::open_preview(project)?.ok_or(Error::NotOpen)?;
    let desk = Desk::look(project, &main)?;
    if desk::reality(&open, &desk) != Reality::Shown {
        return Err(Error::ByHand { lane: open.lane, now: desk.head.to_string(), came_from: open.came_from });
    }
    let lane = project.lane(&open.lane)?;
    let tip = tip_of(project, &lane)?;
    let done =
        Refreshed { lane: lane.name.clone(), from: desk.commit, to: tip, waiting: open.snapshot.is_some() };
    if tip == desk.commit {
        return Ok(done);
    }
    let own_commits = desk.commit != open.tip && !project.repo.is_ancestor(desk.commit, tip)?;
    if own_commits {
        return Err(Error::Diverged { lane: lane.name });
    }
    let mv = RefMove::Branch(open.branch.clone());
    checkout.transition(desk.commit, tip, &mv, "git-proq: preview refreshed")?;
    open.tip = tip;
    open.save(&project.store.layout().preview())?;
    // Hooks run once no lock is held.
    drop(checkout);
    desk::after_checkout(project, &main, desk.commit, tip);
    Ok(done)
}

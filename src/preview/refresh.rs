//! Owns bringing an open preview to where its lane is now.

use super::Error;
use super::desk::{self, Desk, Reality};
use super::enter::tip_of;
use crate::git::{Oid, RefMove};
use crate::lane::{Project, operate};

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
    operate(project, "preview --refresh", |op| {
        let main = project.repo.require_main()?.to_owned();
        let _checkout = op.checkout(&main)?;
        let mut open = desk::open_preview(project)?.ok_or(Error::NotOpen)?;
        let desk = Desk::look(project, &main)?;
        if desk::reality(&open, &desk) != Reality::Shown {
            let now = desk.head.to_string();
            return Err(Error::ByHand { lane: open.lane, now, came_from: open.came_from });
        }
        let lane = project.lane(&open.lane)?;
        let (from, tip) = (desk.commit, tip_of(project, &lane)?);
        let waiting = open.snapshot.is_some();
        let done = Refreshed { lane: lane.name.clone(), from, to: tip, waiting };
        if tip == from {
            return Ok(done);
        }
        let own_commits = from != open.tip && !project.repo.is_ancestor(from, tip)?;
        if own_commits {
            return Err(Error::Diverged { lane: lane.name });
        }
        open.drops.note_modes(&project.repo, &main, from, tip)?;
        op.transition_back(&main, (from, tip), RefMove::Branch(open.branch.clone()), &open.drops)?;
        open.tip = tip;
        op.save(&open, &project.store.layout().preview())?;
        op.after(move |project| desk::after_checkout(project, &main, from, tip));
        Ok(done)
    })
}

/// Brings the preview of a lane along when the lane has only gone forward, and says whether it did. A preview that is closed,
/// or that of another lane, stays as it is.
///
/// # Errors
/// As for [`refresh`]: nothing is changed then.
pub(crate) fn keep_up(project: &Project, lane: &str) -> Result<bool, Error> {
    let Some(open) = desk::open_preview(project)?.filter(|open| open.lane == lane) else { return Ok(false) };
    let tip = tip_of(project, &project.lane(lane)?)?;
    if tip == open.tip || !project.repo.is_ancestor(open.tip, tip)? {
        return Ok(false);
    }
    Ok(refresh(project)?.to == tip)
}

//! Owns bringing an open preview to where its lane is now.

use super::Error;
use super::desk::{self, Desk};
use super::enter::tip_of;
use crate::git::{Oid, RefMove};
use crate::lane::{Project, operate};
use crate::store::records::PreviewRecord;

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
        desk::require_shown(project, &open, &desk)?;
        let lane = project.lane(&open.lane)?;
        let (from, tip) = (desk.commit, new_tip(project, &open, &desk)?);
        let waiting = open.snapshot.is_some();
        let done = Refreshed { lane: lane.name.clone(), from, to: tip, waiting };
        if tip == from {
            return Ok(done);
        }
        open.drops.note_modes(&project.repo, &main, from, tip)?;
        op.transition_back(&main, (from, tip), RefMove::Branch(open.branch.clone()), &open.drops, &[])?;
        open.tip = tip;
        op.save(&open, &project.store.layout().preview())?;
        op.after(move |project| desk::after_checkout(project, &main, from, tip));
        Ok(done)
    })
}

/// The commit that a preview, which the checkout shows, is to be brought to.
///
/// # Errors
/// When commits were made in the preview that are not in it.
pub(super) fn new_tip(project: &Project, open: &PreviewRecord, desk: &Desk) -> Result<Oid, Error> {
    let lane = project.lane(&open.lane)?;
    let (from, tip) = (desk.commit, tip_of(project, &lane)?);
    if from == open.tip || project.repo.is_ancestor(from, tip)? {
        return Ok(tip);
    }
    match project.repo.is_ancestor(tip, from)? {
        true => Err(Error::Ahead { lane: lane.name }),
        false => Err(Error::Diverged { lane: lane.name }),
    }
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

//! Owns leaving a preview: what was made in it goes to its lane, the user's own changes come back.

use super::Error;
use super::desk::{self, Desk, Reality};
use crate::event;
use crate::git::{self, Head, Oid, RefMove, RepoPath, Restored};
use crate::lane::{self, Checkout, Project, effective_state};
use crate::store::new_id;
use crate::store::records::{PreviewRecord, SnapRecord};

/// What leaving did.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub(crate) struct Back {
    /// The lane that was shown.
    pub(crate) lane: String,
    /// Where the checkout is now.
    pub(crate) to: Head,
    /// How the user's own changes came back; none when there were none.
    pub(crate) restored: Option<Restored>,
    /// The snapshot that still holds them, when they did not.
    pub(crate) snapshot: Option<Oid>,
    /// Edits made during the preview, set aside for the next one, as a commit that `git stash apply` reads.
    pub(crate) edits: Option<Oid>,
}

impl Back {
    /// Says where the user's changes are when they did not come back.
    pub(crate) fn tell_conflict(&self, project: &Project) {
        if let Some(kept) = self.snapshot {
            project.listener.warn(format!(
                "your changes from before the preview conflict with {}; they are kept: git stash apply {}",
                self.to,
                kept.short()
            ));
        }
    }

    /// Paths that kept the user's changes from coming back.
    pub(crate) fn conflicts(&self) -> &[RepoPath] {
        match &self.restored {
            Some(Restored::Conflict(paths)) => paths,
            _ => &[],
        }
    }
}

/// Leaves the open preview.
///
/// # Errors
/// [`Error::NotOpen`], [`Error::ByHand`], [`Error::OriginGone`]: nothing was changed.
pub(crate) fn back(project: &Project) -> Result<Back, Error> {
    let main = project.repo.require_main()?.to_owned();
    let checkout = Checkout::lock(project, &main)?;
    let open = desk::open_preview(project)?.ok_or(Error::NotOpen)?;
    let desk = Desk::look(project, &main)?;
    match desk::reality(&open, &desk) {
        Reality::Shown => {
            let back = leave(project, &checkout, &open, &desk)?;
            // Hooks run once no lock is held.
            drop(checkout);
            let now = Desk::look(project, &main)?;
            desk::after_checkout(project, &main, desk.commit, now.commit);
            Ok(back)
        }
        Reality::Home => finish_at_home(project, &checkout, &open, &desk),
        Reality::Elsewhere => {
            Err(Error::ByHand { lane: open.lane, now: desk.head.to_string(), came_from: open.came_from })
        }
    }
}

/// Leaves the preview if it shows this lane: before the lane lands or goes.
pub(crate) fn leave_for(project: &Project, lane: &str) -> Result<Option<Back>, Error> {
    match desk::open_preview(project)? {
        Some(open) if open.lane == lane => back(project).map(Some),
        _ => Ok(None),
    }
}

fn leave(
    project: &Project,
    checkout: &Checkout<'_>,
    open: &PreviewRecord,
    desk: &Desk,
) -> Result<Back, Error> {
    let home = home_commit(project, open)?;
    let edits = set_edits_aside(project, checkout, open, desk)?;
    let mv = RefMove::Switch { from: desk.head.clone(), to: open.came_from.clone() };
    let why = format!("checkout: moving from {} to {}", open.branch, open.came_from);
    if let Err(e) = checkout.transition(desk.commit, home, &mv, &why) {
        put_edits_back(project, checkout, &open.lane, edits, desk.commit)?;
        return Err(e.into());
    }
    drop_preview_branch(project, open, desk.commit)?;
    let mut back = come_home(project, checkout, open, home)?;
    back.edits = edits.map(|snap| snap.snapshot.commit);
    Ok(back)
}

/// The checkout is where the preview was entered from already: only what waits is brought back.
pub(super) fn finish_at_home(
    project: &Project,
    checkout: &Checkout<'_>,
    open: &PreviewRecord,
    desk: &Desk,
) -> Result<Back, Error> {
    if let Some(tip) = project.repo.branch_tip(&open.branch)? {
        if tip != open.tip {
            carry_commits(project, open, tip)?;
        }
        drop_preview_branch(project, open, tip)?;
    }
    come_home(project, checkout, open, desk.commit)
}

/// The commit that the checkout goes back to: its branch may have moved, by a landing for one.
pub(super) fn home_commit(project: &Project, open: &PreviewRecord) -> Result<Oid, Error> {
    match &open.came_from {
        Head::Detached(id) => Ok(*id),
        Head::Branch(branch) => {
            project.repo.branch_tip(branch)?.ok_or_else(|| Error::OriginGone { branch: branch.clone() })
        }
    }
}

fn come_home(
    project: &Project,
    checkout: &Checkout<'_>,
    open: &PreviewRecord,
    home: Oid,
) -> Result<Back, Error> {
    let mut back = Back {
        lane: open.lane.clone(),
        to: open.came_from.clone(),
        restored: None,
        snapshot: None,
        edits: None,
    };
    // A snapshot that is gone was brought back by somebody who was cut off before closing the preview.
    let snap = match &open.snapshot {
        Some(id) => project.find_snap(id)?,
        None => None,
    };
    if let Some(mut snap) = snap {
        let restored = checkout.restore(&mut snap, home).map_err(in_the_way)?;
        if matches!(restored, Restored::Conflict(_)) {
            back.snapshot = Some(snap.snapshot.commit);
        } else {
            project.drop_snap(&snap)?;
        }
        back.restored = Some(restored);
    }
    checkout.make_folders(&open.empty_dirs);
    desk::close(project)?;
    let lane = project.lane(&open.lane).ok();
    project.tell(
        event::Name::PreviewLeft,
        lane.as_ref(),
        format!("the main checkout shows {} again", open.came_from),
    );
    Ok(back)
}

/// What stands in the way of the user's changes is named as that: the usual advice, to commit or stash it, would be bad
/// while they are elsewhere.
fn in_the_way(e: lane::Error) -> Error {
    match e {
        lane::Error::Git(git::Error::Overlap { paths, .. } | git::Error::Obstructed { paths, .. }) => {
            Error::InTheWay { paths }
        }
        other => other.into(),
    }
}

/// Sends commits made on the preview to the lane, and sets uncommitted edits aside for the lane's next preview.
/// Afterwards the checkout is clean.
pub(super) fn set_edits_aside(
    project: &Project,
    checkout: &Checkout<'_>,
    open: &PreviewRecord,
    desk: &Desk,
) -> Result<Option<SnapRecord>, Error> {
    if desk.commit != open.tip {
        carry_commits(project, open, desk.commit)?;
    }
    let why = format!("edits made in the preview of {}", open.lane);
    let Some(snap) = checkout.snapshot_without(desk.commit, &why, &open.ignored)? else { return Ok(None) };
    let known = project.update_lane(&open.lane, |lane| lane.preview_edits.push(snap.id.clone()));
    if known.is_err() {
        project.listener.warn(format!(
            "lane '{}' is gone; the edits made in its preview are kept: git stash apply {}",
            open.lane,
            snap.snapshot.commit.short()
        ));
    }
    if let Err(e) = checkout.clear(&snap) {
        forget_edits(project, &open.lane, &snap)?;
        return Err(e.into());
    }
    Ok(Some(snap))
}

/// The inverse, when the switch that should have followed was refused.
pub(super) fn put_edits_back(
    project: &Project,
    checkout: &Checkout<'_>,
    lane: &str,
    snap: Option<SnapRecord>,
    commit: Oid,
) -> Result<(), Error> {
    let Some(mut snap) = snap else { return Ok(()) };
    match checkout.restore(&mut snap, commit)? {
        Restored::Exactly | Restored::Merged => forget_edits(project, lane, &snap),
        Restored::Conflict(_) => Ok(()),
    }
}

fn forget_edits(project: &Project, lane: &str, snap: &SnapRecord) -> Result<(), Error> {
    let forget = project.update_lane(lane, |lane| lane.preview_edits.retain(|id| *id != snap.id));
    drop(forget);
    Ok(project.drop_snap(snap)?)
}

/// Commits made on the preview go to the lane when nobody works in it and it has not moved; else they are kept.
fn carry_commits(project: &Project, open: &PreviewRecord, made: Oid) -> Result<(), Error> {
    match try_carry(project, open, made)? {
        Carried::Nothing => return Ok(()),
        Carried::To(lane) => {
            project.listener.step(format!("the commits made in the preview are in lane '{lane}' now"));
            return Ok(());
        }
        Carried::Impossible => {}
    }
    let saved = format!("refs/proq/saved/{}-preview-{}", open.lane, new_id());
    project.repo.create_ref(&saved, made, "git-proq: saved")?;
    project.listener.warn(format!(
        "commits made in the preview could not go to lane '{}'; they are kept as {saved}",
        open.lane
    ));
    Ok(())
}

/// What became of commits made on a preview.
enum Carried {
    /// The lane has them all.
    Nothing,
    /// They are in this lane now.
    To(String),
    /// They cannot go there: somebody works in it, or it has moved.
    Impossible,
}

fn try_carry(project: &Project, open: &PreviewRecord, made: Oid) -> Result<Carried, Error> {
    let Ok(lane) = project.lane(&open.lane) else { return Ok(Carried::Impossible) };
    let (state, _) = effective_state(project, &lane)?;
    let busy = state.is_busy();
    let Some(tip) = project.repo.branch_tip(&lane.branch)? else { return Ok(Carried::Impossible) };
    if project.repo.is_ancestor(made, tip)? {
        // Nothing was made that the lane lacks; the preview may have been set back by hand.
        return Ok(Carried::Nothing);
    }
    if busy || !lane.path.exists() || !project.repo.is_ancestor(tip, made)? {
        return Ok(Carried::Impossible);
    }
    let checkout = Checkout::lock(project, &lane.path)?;
    let mv = RefMove::Branch(lane.branch.clone());
    let moved = checkout.transition(tip, made, &mv, "git-proq: commits made in the preview");
    Ok(if moved.is_ok() { Carried::To(lane.name) } else { Carried::Impossible })
}

/// Takes the hidden branch away; what it led to was carried or kept before.
pub(super) fn drop_preview_branch(project: &Project, open: &PreviewRecord, at: Oid) -> Result<(), Error> {
    let full = format!("refs/heads/{}", open.branch);
    Ok(project.repo.delete_ref(&full, at, "git-proq: preview left")?)
}

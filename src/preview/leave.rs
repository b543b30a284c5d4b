//! Owns leaving a preview: what was made in it goes to its lane, the user's own changes come back.

use std::path::PathBuf;

use super::Error;
use super::desk::{self, Desk, Reality};
use crate::event;
use crate::explain::quoted_path;
use crate::git::{self, Head, LocalState, Oid, RefMove, RepoPath, Restored};
use crate::lane::{self, Checkout, Operation, Project, effective_state, operate};
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
                "your changes from before the preview conflict with {}; they are kept: {} {}",
                self.to,
                lane::way_back(project, self.snapshot, self.conflicts()).command(),
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
    operate(project, "preview --back", |op| leave_if(op, |_| true)?.ok_or(Error::NotOpen))
}

/// Leaves the open preview if it is one that is meant.
fn leave_if(op: &Operation<'_>, is_meant: impl Fn(&PreviewRecord) -> bool) -> Result<Option<Back>, Error> {
    let project = op.project;
    let main = project.repo.require_main()?.to_owned();
    let checkout = op.checkout(&main)?;
    // Read under the lock: somebody else may have left it since, or opened another.
    let Some(open) = desk::open_preview(project)?.filter(is_meant) else { return Ok(None) };
    let desk = Desk::look(project, &main)?;
    match desk::reality(&open, &desk) {
        Reality::Shown => leave(op, &checkout, &open, &desk).map(Some),
        Reality::Home => finish_at_home(op, &checkout, &open, &desk).map(Some),
        Reality::Elsewhere => Err(desk::by_hand(project, &open, &desk)),
    }
}

/// Leaves the preview if it shows this lane: before the lane lands or goes.
pub(crate) fn leave_for(op: &Operation<'_>, lane: &str) -> Result<Option<Back>, Error> {
    let shows = |open: &PreviewRecord| open.lane == lane;
    if desk::open_preview(op.project)?.is_some_and(|open| shows(&open)) {
        leave_if(op, shows)
    } else {
        Ok(None)
    }
}

fn leave(
    op: &Operation<'_>,
    checkout: &Checkout<'_>,
    open: &PreviewRecord,
    desk: &Desk,
) -> Result<Back, Error> {
    let home = home_commit(op.project, open)?;
    refuse_taken(op.project, open)?;
    let edits = set_edits_aside(op, open, desk)?;
    let mv = RefMove::Switch { from: desk.head.clone(), to: open.came_from.clone() };
    let brings = brings(op.project, checkout, open)?;
    op.transition_back(checkout.dir(), (desk.commit, home), mv, &brings, &edits.folders)?;
    drop_preview_branch(op, open, desk.commit)?;
    let mut back = come_home(op, checkout, open, home)?;
    back.edits = edits.kept;
    let (main, from) = (checkout.dir().to_owned(), desk.commit);
    op.after(move |project| desk::after_checkout(project, &main, from, home));
    Ok(back)
}

/// The permission bits that files get which come in the place of the preview's, and the flags of index entries that were there before the
/// preview: those that were set since belong to the preview alone.
pub(super) fn brings(
    project: &Project,
    checkout: &Checkout<'_>,
    open: &PreviewRecord,
) -> Result<LocalState, Error> {
    let before = open.snapshot.as_ref().map(|id| project.kept_index(checkout.dir(), id));
    let flags = match before {
        // Where nothing was flagged, and nothing changed, there is none.
        None => LocalState::default(),
        Some(index) => checkout.flags(Some(&index).filter(|index| index.exists()).map(PathBuf::as_path))?,
    };
    Ok(open.drops.clone().with_flags(flags))
}

/// The checkout is where the preview was entered from already: only what waits is brought back.
pub(super) fn finish_at_home(
    op: &Operation<'_>,
    checkout: &Checkout<'_>,
    open: &PreviewRecord,
    desk: &Desk,
) -> Result<Back, Error> {
    if let Some(tip) = op.project.repo.branch_tip(&open.branch)? {
        if tip != open.tip {
            carry_commits(op, open, tip)?;
        }
        drop_preview_branch(op, open, tip)?;
    }
    come_home(op, checkout, open, desk.commit)
}

/// The commit that the checkout goes back to: its branch may have moved, by a landing for one.
pub(super) fn home_commit(project: &Project, open: &PreviewRecord) -> Result<Oid, Error> {
    match &open.came_from {
        Head::Detached(id) => Ok(*id),
        Head::Branch(branch) => project
            .repo
            .branch_tip(branch)?
            .ok_or_else(|| Error::OriginGone { branch: branch.clone(), commit: open.came_from_commit }),
    }
}

/// Refuses to go back to a branch that is checked out elsewhere by now.
pub(super) fn refuse_taken(project: &Project, open: &PreviewRecord) -> Result<(), Error> {
    match (lane::home_elsewhere(project, open)?, &open.came_from) {
        (Some(dir), Head::Branch(branch)) => Err(Error::OriginTaken { branch: branch.clone(), dir }),
        _ => Ok(()),
    }
}

fn come_home(
    op: &Operation<'_>,
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
    let mut snap = match &open.snapshot {
        Some(id) => op.project.find_snap(id)?,
        None => None,
    };
    warn_without_record(op, open)?;
    if let Some(lost) = snap.take_if(|snap| op.project.is_lost(snap)) {
        warn_lost(op, &lost);
    }
    if let Some(snap) = snap {
        let rest = vec![desk::close_step(op)?];
        let (restored, commit) =
            op.restore_for_good(checkout.dir(), &snap.id, home, rest).map_err(in_the_way)?;
        if matches!(restored, Restored::Conflict(_)) {
            back.snapshot = Some(commit);
        }
        back.restored = Some(restored);
    }
    checkout.make_folders(&open.empty_dirs);
    desk::close(op)?;
    let lane = op.project.lane(&open.lane).ok();
    op.tell(
        event::Name::PreviewLeft,
        lane.as_ref(),
        format!("the main checkout shows {} again", open.came_from),
    );
    Ok(back)
}

/// Says, once the checkout is home, how the user's changes come back where the record of their snapshot is gone.
fn warn_without_record(op: &Operation<'_>, open: &PreviewRecord) -> Result<(), Error> {
    let Some(id) = &open.snapshot else { return Ok(()) };
    let (name, folder) = (SnapRecord::ref_name(id), op.project.store.layout().snapshot(id));
    let said = match op.project.snap_without_record(id)? {
        Some(kept) => format!(
            "the record of your changes from before the preview is gone; bring them back: git stash apply {}; \
             {name} keeps them until you delete it",
            kept.short()
        ),
        None if !folder.join("snap.toml").exists() => {
            let left = match folder.exists() {
                true => format!("; see which files are left: ls -R {}", quoted_path(&folder)),
                false => String::new(),
            };
            format!(
                "your changes from before the preview are gone: somebody deleted their record and {name}{left}"
            )
        }
        None => return Ok(()),
    };
    op.after(move |project| project.listener.warn(said));
    Ok(())
}

/// Says, once the checkout is home, that git has lost the user's changes, and what may be left of them.
fn warn_lost(op: &Operation<'_>, lost: &SnapRecord) {
    let (commit, folder) = (lost.snapshot.commit, op.project.store.layout().snapshot(&lost.id));
    op.after(move |project| {
        project.listener.warn(format!(
            "git has lost your changes from before the preview (commit {}, which no ref kept); see which files are left: ls -R {}",
            commit.short(),
            quoted_path(&folder)
        ));
    });
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

/// What was made in a preview that is left.
pub(super) struct Edits {
    /// The edits that were set aside, as a commit that `git stash apply` reads; none when there were none.
    pub(super) kept: Option<Oid>,
    /// The empty folders, where there was nothing else: they are still there, and go with the preview.
    pub(super) folders: Vec<RepoPath>,
}

/// Sends commits made on the preview to the lane, and sets uncommitted edits aside for the lane's next preview.
/// Afterwards the checkout is clean.
pub(super) fn set_edits_aside(op: &Operation<'_>, open: &PreviewRecord, desk: &Desk) -> Result<Edits, Error> {
    if desk.commit != open.tip {
        carry_commits(op, open, desk.commit)?;
    }
    let main = op.project.repo.require_main()?;
    let why = format!("edits made in the preview of {}", open.lane);
    let known = folders_before(op.project, open)?;
    let checkout = op.checkout(main)?;
    let seen = checkout.seen();
    let Some(snap) = op.snapshot_of_all(main, desk.commit, &why, &open.ignored, &seen)? else {
        // Git knows no empty folders: one that the preview's edits left is no work that a lane would have to be kept for.
        let mut folders = checkout.empty_folders(&seen)?;
        folders.retain(|folder| !known.contains(folder));
        return Ok(Edits { kept: None, folders });
    };
    if op.project.lane(&open.lane).is_ok() {
        op.update_lane(&open.lane, |lane| lane.preview_edits.push(snap.id.clone()))?;
    } else {
        op.project.listener.warn(format!(
            "lane '{}' is gone; the edits made in its preview are kept: git stash apply {}",
            open.lane,
            snap.snapshot.commit.short()
        ));
    }
    op.clear(main, &snap.id)?;
    checkout.remove_folders(&snap.snapshot.empty_dirs, &known);
    Ok(Edits { kept: Some(snap.snapshot.commit), folders: Vec::new() })
}

/// The empty folders that the checkout had before a preview.
fn folders_before(project: &Project, open: &PreviewRecord) -> Result<Vec<RepoPath>, Error> {
    let snap = open.snapshot.as_ref().map(|id| project.find_snap(id)).transpose()?.flatten();
    Ok([open.empty_dirs.clone(), snap.map(|snap| snap.snapshot.empty_dirs).unwrap_or_default()].concat())
}

/// Commits made on the preview go to the lane when nobody works in it and it has not moved; else they are kept.
fn carry_commits(op: &Operation<'_>, open: &PreviewRecord, made: Oid) -> Result<(), Error> {
    match try_carry(op, open, made)? {
        Carried::Nothing => return Ok(()),
        Carried::To(lane) => {
            // They are taken back if the preview cannot be left.
            op.after(move |project| {
                project.listener.step(format!("the commits made in the preview are in lane '{lane}' now"));
            });
            return Ok(());
        }
        Carried::Impossible => {}
    }
    let saved = format!("refs/proq/saved/{}-preview-{}", open.lane, new_id());
    op.anchor(&saved, made)?;
    op.project.listener.warn(format!(
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

fn try_carry(op: &Operation<'_>, open: &PreviewRecord, made: Oid) -> Result<Carried, Error> {
    let project = op.project;
    if let Ok(home) = home_commit(project, open)
        && project.repo.is_ancestor(made, home)?
    {
        // The preview was reset by hand to what the base has anyway.
        return Ok(Carried::Nothing);
    }
    let Ok(lane) = project.lane(&open.lane) else { return Ok(Carried::Impossible) };
    let (state, _) = effective_state(project, &lane)?;
    let busy = state.is_busy();
    let Some(tip) = project.repo.branch_tip(&lane.place.branch)? else { return Ok(Carried::Impossible) };
    if project.repo.is_ancestor(made, tip)? {
        // Nothing was made that the lane lacks; the preview may have been set back by hand.
        return Ok(Carried::Nothing);
    }
    if busy || !lane.path.exists() || !project.repo.is_ancestor(tip, made)? {
        return Ok(Carried::Impossible);
    }
    let carry = || op.transition(&lane.path, tip, made, RefMove::Branch(lane.place.branch.clone()));
    // What failed for once may work now; what is in the way is in the way still.
    match carry().or_else(|e| if e.is_stuck() { Err(e) } else { carry() }) {
        Ok(()) => Ok(Carried::To(lane.name)),
        Err(e) if e.is_stuck() => Err(e.into()),
        Err(_) => Ok(Carried::Impossible),
    }
}

/// Takes the hidden branch away; what it led to was carried or kept before.
pub(super) fn drop_preview_branch(op: &Operation<'_>, open: &PreviewRecord, at: Oid) -> Result<(), Error> {
    Ok(op.delete_ref(&format!("refs/heads/{}", open.branch), at)?)
}

//! Owns saying what a preview would do, without doing it.

use std::collections::HashSet;

use super::desk::{self, Desk, Reality};
use super::enter::tip_of;
use super::leave::{home_commit, refuse_taken};
use super::{Error, refresh};
use crate::git::{self, Dirt, Head, Oid, RepoPath};
use crate::lane::{self, Checkout, Project};
use crate::store::records::PreviewRecord;

/// What is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Goal<'a> {
    /// To show this lane.
    Show(&'a str),
    /// To bring the open preview to where its lane is.
    Refresh,
    /// To leave the open preview.
    Back,
}

/// What would be done.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub(crate) struct Plan {
    /// The lane that would be shown; none on the way back.
    pub(crate) lane: Option<String>,
    /// What the main checkout is on.
    pub(crate) from: String,
    /// What it would be on.
    pub(crate) to: String,
    /// How many tracked files would change.
    pub(crate) changes: usize,
    /// Changes that would be set aside.
    pub(crate) set_aside: Vec<RepoPath>,
    /// Whether the user's own changes wait for the way back.
    pub(crate) waiting: bool,
    /// Whether those changes may conflict on the way back: the base has moved.
    pub(crate) may_conflict: bool,
}

/// Plans showing a lane, or refreshing or leaving the open preview.
///
/// # Errors
/// As those of doing it: what stands in the way is refused here too.
pub(crate) fn plan(project: &Project, goal: Goal<'_>) -> Result<Plan, Error> {
    let main = project.repo.require_main()?.to_owned();
    lane::refuse_beside_in_place(project)?;
    project.repo.require_index(&main)?;
    let checkout = Checkout::lock(project, &main)?;
    let desk = Desk::look(project, &main)?;
    let open = desk::open_preview(project)?;
    let (lane, to, target) = aim(project, goal, open.as_ref(), &desk)?;
    let dirt = git::status(&project.repo, &main, true)?;
    if goal == Goal::Refresh {
        if desk.commit != target {
            checkout.require_free(desk.commit, target)?;
        }
    } else if moves(goal, open.as_ref(), &desk) {
        require_way(&checkout, (desk.commit, target), &dirt, open.as_ref())?;
    }
    let from = match &open {
        Some(open) if desk.head == Head::Branch(open.branch.clone()) => {
            format!("the preview of '{}'", open.lane)
        }
        _ => desk.head.to_string(),
    };
    let set_aside = if goal == Goal::Refresh { Vec::new() } else { dirt.paths() };
    let may_conflict = match &open {
        // Their snapshot keeps that commit.
        Some(open) if goal == Goal::Back && open.snapshot.is_some() => {
            project.repo.tree_of(open.came_from_commit)? != project.repo.tree_of(target)?
        }
        _ => false,
    };
    Ok(Plan {
        lane,
        from,
        to,
        changes: git::tree_changes(&project.repo, desk.commit, target)?.len(),
        set_aside,
        waiting: open.is_some_and(|open| open.snapshot.is_some()),
        may_conflict,
    })
}

/// The lane that would be shown, what the checkout would be on, and the commit of that.
fn aim(
    project: &Project,
    goal: Goal<'_>,
    open: Option<&PreviewRecord>,
    desk: &Desk,
) -> Result<(Option<String>, String, Oid), Error> {
    if let Goal::Show(name) = goal {
        let lane = project.lane(name)?;
        let tip = tip_of(project, &lane)?;
        if let Some(open) = open.filter(|open| desk::reality(open, desk) == Reality::Elsewhere) {
            return Err(desk::by_hand(project, open, desk));
        }
        return Ok((Some(lane.name), lane.place.branch, tip));
    }
    let open = open.ok_or(Error::NotOpen)?;
    if goal == Goal::Refresh {
        desk::require_shown(project, open, desk)?;
        let lane = project.lane(&open.lane)?;
        let tip = refresh::new_tip(project, open, desk)?;
        return Ok((Some(lane.name), lane.place.branch, tip));
    }
    if desk::reality(open, desk) == Reality::Elsewhere {
        return Err(desk::by_hand(project, open, desk));
    }
    if desk::reality(open, desk) == Reality::Shown {
        refuse_taken(project, open)?;
    }
    Ok((None, open.came_from.to_string(), home_commit(project, open)?))
}

/// Whether the checkout goes from where it is to where it is to be in one step. One that was brought home by hand gets its own
/// changes back first.
fn moves(goal: Goal<'_>, open: Option<&PreviewRecord>, desk: &Desk) -> bool {
    let Some(open) = open else { return true };
    let shown = desk::reality(open, desk) == Reality::Shown;
    shown && goal != Goal::Show(&open.lane)
}

/// Refuses what stands in the way once the uncommitted changes are set aside.
fn require_way(
    checkout: &Checkout<'_>,
    (from, to): (Oid, Oid),
    dirt: &Dirt,
    open: Option<&PreviewRecord>,
) -> Result<(), Error> {
    let unmerged = dirt.unmerged();
    if !unmerged.is_empty() {
        return Err(git::Error::Unmerged { dir: checkout.dir().to_owned(), paths: unmerged }.into());
    }
    let stays = |path: &RepoPath| {
        let spared = open.map(|open| open.ignored.as_slice()).unwrap_or_default();
        spared.contains(path) || path.parents().any(|up| spared.contains(&up))
    };
    let loose = dirt.untracked().filter(|entry| !entry.nested && !stays(&entry.path));
    let aside: HashSet<RepoPath> = loose.map(|entry| entry.path.clone()).collect();
    Ok(checkout.require_free_once_clean((from, to), &aside)?)
}

//! Owns saying what a preview would do, without doing it.

use super::Error;
use super::desk::{self, Desk, Reality};
use super::enter::tip_of;
use super::leave::{home_commit, refuse_taken};
use crate::git::{self, RepoPath};
use crate::lane::{self, Project};

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
}

/// Plans showing a lane, or without one refreshing or leaving the open preview.
pub(crate) fn plan(project: &Project, lane: Option<&str>) -> Result<Plan, Error> {
    let main = project.repo.require_main()?.to_owned();
    lane::refuse_beside_in_place(project)?;
    let desk = Desk::look(project, &main)?;
    let open = desk::open_preview(project)?;
    if let Some(open) = &open
        && desk::reality(open, &desk) == Reality::Elsewhere
    {
        let (lane, now, came_from) = (open.lane.clone(), desk.head.to_string(), open.came_from.clone());
        return Err(Error::ByHand { lane, now, came_from });
    }
    let (lane, to, target) = match (lane, &open) {
        (Some(name), _) => {
            let lane = project.lane(name)?;
            let tip = tip_of(project, &lane)?;
            (Some(lane.name.clone()), lane.place.branch, tip)
        }
        (None, Some(open)) => {
            refuse_taken(project, open)?;
            (None, open.came_from.to_string(), home_commit(project, open)?)
        }
        (None, None) => return Err(Error::NotOpen),
    };
    let dirt = git::status(&project.repo, &main, true)?;
    let from = match &open {
        Some(open) if desk.head == git::Head::Branch(open.branch.clone()) => {
            format!("the preview of '{}'", open.lane)
        }
        _ => desk.head.to_string(),
    };
    Ok(Plan {
        lane,
        from,
        to,
        changes: git::tree_changes(&project.repo, desk.commit, target)?.len(),
        set_aside: dirt.paths(),
        waiting: open.is_some_and(|open| open.snapshot.is_some()),
    })
}

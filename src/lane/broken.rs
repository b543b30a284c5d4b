//! Owns refusing to work in a lane whose worktree lacks what git needs to tell what was changed in it.

use std::borrow::Cow;

use super::{Error, Project, misplaced};
use crate::explain::{Exit, Explain};
use crate::git::Missing;
use crate::store::records::AnyLane;

/// A lane in whose worktree nothing can be done.
#[derive(Debug, thiserror::Error)]
#[error("cannot start an agent in lane '{name}': {why}")]
pub struct BrokenLane {
    name: String,
    why: String,
    repair: Option<String>,
}

impl Explain for BrokenLane {
    fn is_decision(&self) -> bool {
        true
    }

    fn hints(&self) -> Vec<Cow<'static, str>> {
        let whole = self.repair.as_ref().map(|command| format!("make it whole: {command}"));
        let remove = format!("or remove it, saving everything first: git proq discard --force {}", self.name);
        whole.into_iter().chain([remove]).map(Cow::from).collect()
    }

    fn exit(&self) -> Exit {
        Exit::Refused
    }
}

/// What the worktree of a lane lacks; none for one without a worktree of its own, and for one whose folder is gone.
///
/// # Errors
/// When its commit cannot be read.
pub(crate) fn missing_in(project: &Project, lane: &AnyLane) -> Result<Option<Missing>, Error> {
    match lane.branch() {
        Some(_) => Ok(project.repo.missing_in(&lane.path)?),
        None => Ok(None),
    }
}

/// Refuses a lane whose worktree is broken, or whose folder is not its worktree.
///
/// # Errors
/// [`Error::Broken`].
pub(crate) fn require_whole(project: &Project, lane: &AnyLane) -> Result<(), Error> {
    let name = lane.name.clone();
    if let Ok(lane) = lane.clone().with_tree()
        && let Some(found) = misplaced(project, &lane)
    {
        return Err(
            BrokenLane { name, why: found.in_words(&lane), repair: found.help(project, &lane) }.into()
        );
    }
    let Some(missing) = missing_in(project, lane)? else { return Ok(()) };
    let repair = missing.repair(&project.repo, &lane.path, lane.branch().unwrap_or_default());
    Err(BrokenLane { name, why: missing.in_words().to_owned(), repair: Some(repair) }.into())
}

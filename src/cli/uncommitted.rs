//! Owns the warning of changes that a new lane does not have.

use std::path::Path;

use super::Session;
use super::spawn::Spawn;
use crate::git;
use crate::lane::{self, Checkout, Project};

/// What may have changes of tracked files that are in no commit.
pub(super) struct Uncommitted<'a> {
    project: &'a Project,
    /// Where.
    here: Option<&'a Path>,
    /// Whether the lane has them too.
    carried: bool,
}

impl<'a> Uncommitted<'a> {
    /// What may be at `here` when a lane is spawned from there.
    pub(super) fn of(project: &'a Project, args: &Spawn, here: Option<&'a Path>) -> Uncommitted<'a> {
        Uncommitted { project, here, carried: args.carry }
    }

    /// Warns of them by name. `unchanged` was seen to have none. It looks at each file here; so it comes when the lane is in use.
    pub(super) fn warn(self, session: &Session, unchanged: Option<&Path>) {
        let Some(here) = self.here.filter(|here| unchanged != Some(here) || self.carried) else { return };
        let found = match self.carried {
            true => hidden(self.project, here).map_err(|e| e.to_string()),
            false => names(self.project, here).map_err(|e| e.to_string()),
        };
        // The lane is there, whatever git says of this place.
        match found {
            Ok(None) => {}
            Ok(Some(names)) if self.carried => session.ui.warn(format!(
                "edits that git status does not show stay where they are (skip-worktree, assume-unchanged): {names}"
            )),
            Ok(Some(names)) => session.ui.warn(format!(
                "the lane starts without your uncommitted changes ({names}); --carry takes them along"
            )),
            Err(e) => session.ui.warn(format!("whether you have uncommitted changes cannot be told: {e}")),
        }
    }
}

/// Changes of tracked files there that git does not show, in words; none where there are none.
fn hidden(project: &Project, here: &Path) -> Result<Option<String>, lane::Error> {
    let hidden = Checkout::lock(project, here)?.edits_not_shown()?;
    Ok((!hidden.is_empty()).then(|| git::names(&hidden)))
}

/// Uncommitted changes of tracked files there, in words; none where there are none.
pub(super) fn names(project: &Project, here: &Path) -> Result<Option<String>, git::Error> {
    let dirt = git::status(&project.repo, here, false)?;
    let mut names = dirt.tracked().map(|e| e.path.to_string());
    let Some(first) = names.next() else { return Ok(None) };
    let rest = names.count();
    Ok(Some(if rest == 0 { first } else { format!("{first} and {rest} more") }))
}

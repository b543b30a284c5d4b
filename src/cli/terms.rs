//! Owns what a lane is made with beside its task, as far as the command line goes: its checks and its scope.

use super::{Failure, Mistake, Session, ui};
use crate::git::{self, Scope};
use crate::lane::{self, Met, Neighbour, Plan, Project};

/// How many lanes are named that are about the same files.
const NAMED: usize = 5;

/// The commands that are to succeed with the lane.
///
/// # Errors
/// [`Mistake::Missing`] when one is blank: whoever gave it takes something for checked that is not.
pub(super) fn checks(given: &[String]) -> Result<Vec<String>, Failure> {
    if given.iter().any(|line| line.trim().is_empty()) {
        let what = "--check names no command";
        let example = "git proq spawn claude \"implement payments\" --check \"make test-payments\"";
        return Err(Mistake::Missing { what, example }.into());
    }
    Ok(given.to_vec())
}

/// The globs of the files that the lane is expected to touch.
///
/// # Errors
/// [`git::Error::Glob`] when one is none.
pub(super) fn scope(given: &[String]) -> Result<Vec<String>, Failure> {
    Scope::read(given)?;
    Ok(given.to_vec())
}

/// Whether the lane's checkout is to be cut to its scope.
///
/// # Errors
/// [`Mistake::Missing`] where there is no scope.
pub(super) fn sparse(asked: bool, scope: &[String]) -> Result<bool, Failure> {
    if asked && scope.is_empty() {
        let what = "--sparse checks out what the scope names, and there is no scope; nothing was made";
        let example = "git proq spawn claude \"implement payments\" --sparse --scope src/pay/";
        return Err(Mistake::Missing { what, example }.into());
    }
    Ok(asked)
}

/// The lines of a plan.
pub(super) fn say(session: &Session, plan: &Plan<'_>) {
    for line in plan.checks() {
        session.ui.answer(format!("  lands if  `{line}` succeeds"));
    }
    for glob in plan.scope() {
        session.ui.answer(format!("  scope     {glob}"));
    }
    if plan.is_sparse() {
        session.ui.answer("  has       only the folders of that, and the files above them");
    }
}

/// Names the lanes that are about the same files. That it could not be found out keeps nobody from making a lane.
pub(super) fn warn_of_neighbours(session: &Session, project: &Project, plan: &Plan<'_>) {
    if plan.scope().is_empty() {
        return;
    }
    let found = Scope::read(plan.scope())
        .map_err(lane::Error::from)
        .and_then(|scope| lane::neighbours(project, plan.base().start, &scope));
    let found = match found {
        Ok(found) => found,
        Err(e) => {
            return session.ui.warn(format!("which lanes are at work in the scope too is not known: {e}"));
        }
    };
    for neighbour in found.iter().take(NAMED) {
        session.ui.warn(format!("{}; they may conflict: git proq matrix", sentence(neighbour)));
    }
    if found.len() > NAMED {
        let more = ui::count(found.len() - NAMED, "more lane");
        session.ui.warn(format!("{more} may conflict with it as well: git proq matrix"));
    }
}

fn sentence(found: &Neighbour) -> String {
    let Neighbour { lane, is_busy, glob, met } = found;
    match met {
        Met::Files(files) => {
            let names = git::names(files);
            let names = if names == *glob { String::new() } else { format!(" ({names})") };
            if *is_busy {
                format!("lane '{lane}' is at work in {glob} too{names}")
            } else {
                format!("lane '{lane}' has work in {glob} that has not landed{names}")
            }
        }
        Met::Scope(theirs) => {
            let what =
                if *is_busy { "is at work with the scope" } else { "has not landed and has the scope" };
            let meets = if theirs == glob { " too".to_owned() } else { format!(", which meets {glob}") };
            format!("lane '{lane}' {what} {theirs}{meets}")
        }
    }
}

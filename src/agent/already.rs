//! Owns whether the task of a run that changed nothing had been done before it: its checks say so, and the files that it names are
//! there.

use super::Error;
use super::gate;
use super::wishes::Wishes;
use crate::git::{self, Scope};
use crate::lane::Project;
use crate::process::Ended;
use crate::store::records::LaneRecord;

/// What was found out.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// It had been done; how that is known.
    Done(&'static str),
    /// Nothing says so; why, where something speaks against it.
    Open(Option<String>),
}

/// Runs the task's checks in the lane, until one fails or somebody wants the run to be stopped. Without checks nobody knows: files
/// that were there before are what most tasks are to change.
pub(super) async fn look(
    project: &Project,
    lane: &LaneRecord,
    attempt: u32,
    wishes: &mut Wishes,
) -> Result<Found, Error> {
    let open = |why: String| Ok(Found::Open(Some(why)));
    if lane.checks.is_empty() {
        return Ok(Found::Open(None));
    }
    if let Some(name) = absent(project, lane)? {
        return open(format!("{name}, which its task names, is not there"));
    }
    for check in &lane.checks {
        let ended = tokio::select! {
            biased;
            () = wishes.any() => return open("stopped before its checks had ended".to_owned()),
            ended = run(project, lane, attempt, check) => ended?,
        };
        if !ended.is_success() {
            return open(format!("`{check}` fails ({ended})"));
        }
    }
    // What they left is nobody's work, and they have looked at something else than what would land.
    let moved = project.repo.branch_tip(&lane.place.branch)? != Some(lane.start);
    if moved || !git::status(&project.repo, &lane.path, true)?.is_clean() {
        return open("its checks changed the lane, so they do not say whether its task was done".to_owned());
    }
    Ok(Found::Done("already: nothing had to be changed, its checks succeed"))
}

/// Runs one check to its end. Whoever stops waiting ends it.
async fn run(project: &Project, lane: &LaneRecord, attempt: u32, check: &str) -> Result<Ended, Error> {
    let log = project.store.layout().gate_log(&lane.name, attempt);
    Ok(gate::begin(project, lane, check, &log)?.ended().await?)
}

/// What the task names and is not there.
fn absent(project: &Project, lane: &LaneRecord) -> Result<Option<String>, Error> {
    if lane.scope.is_empty() {
        return Ok(None);
    }
    let files = git::files_of(&project.repo, lane.start)?;
    Ok(Scope::read(&lane.scope)?.absent_from(&files).map(ToOwned::to_owned))
}

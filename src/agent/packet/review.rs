//! Owns that a review changes nothing: what a lane was like before it, and taking back what was changed all the same.

use std::hash::{DefaultHasher, Hash, Hasher};

use super::super::Error;
use crate::git;
use crate::lane::{self, Project, Traces, put_back};
use crate::store::records::{LaneRecord, RunRecord, Stint};

/// What became of what a reviewer changed.
pub(super) enum Cleared {
    /// It changed nothing.
    Nothing,
    /// It is taken back; where it is kept.
    PutBack(String),
    /// It cannot be taken back, and why.
    Stands(String),
}

/// Notes what the lane is like before a run.
pub(super) fn note_before(project: &Project, lane: &LaneRecord, stint: Stint) -> Result<Stint, Error> {
    if !stint.part.is_review() {
        return Ok(stint);
    }
    let clean = git::status(&project.repo, &lane.path, true)?.is_clean();
    Ok(Stint { clean, traces: Some(print_of(&Traces::of(project, lane)?)), ..stint })
}

/// Takes back what a review changed in its lane.
pub(super) fn clear(
    project: &Project,
    lane: &LaneRecord,
    run: &RunRecord,
    stint: &Stint,
) -> Result<Cleared, Error> {
    let stands = |why: &str| {
        let who = &run.agent;
        Cleared::Stands(format!(
            "while {who} reviewed step {}, something changed in the lane: {why}",
            stint.step
        ))
    };
    if let Some(astray) = lane::follow_head(project, lane)? {
        return Ok(stands(&astray));
    }
    if Some(print_of(&Traces::of(project, lane)?)) == stint.traces {
        return Ok(Cleared::Nothing);
    }
    if !stint.clean {
        return Ok(stands("there was uncommitted work before, so it cannot be told apart"));
    }
    let why = format!("what the review in run {} of lane {} had changed", run.attempt, lane.name);
    match put_back(project, lane, run.tip_before, &why) {
        // Nothing was different after all: its print was made by another version of this program.
        Ok(kept) => Ok(kept.in_words().map_or(Cleared::Nothing, Cleared::PutBack)),
        Err(e) => Ok(stands(&format!("it could not be taken back: {e}"))),
    }
}

fn print_of(traces: &Traces) -> String {
    let mut hasher = DefaultHasher::new();
    format!("{traces:?}").hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

//! Owns keeping a conflict: a record for people and tools, a ref for its objects, the base untouched.

use super::Error;
use super::stack::{Clash, Stack};
use crate::event;
use crate::git::{self, NewCommit};
use crate::lane::Operation;
use crate::store::records::{ConflictRecord, ConflictStage, LaneRecord, LaneState, Step};
use crate::store::{Record, now};

/// The steps that keep the conflict of one lane and put the lane in state `conflict`.
pub(super) fn capture(op: &Operation<'_>, stack: &Stack, clash: &Clash) -> Result<Vec<Step>, Error> {
    let project = op.project;
    let lane = &clash.candidate.lane;
    let repo = &project.repo;
    let path = project.store.layout().conflict(&lane.name);
    let before = ConflictRecord::find(&path)?;
    let keeper = NewCommit {
        tree: clash.merged.tree,
        parents: &[clash.ours, clash.candidate.tip],
        message: &format!("git-proq: conflict of lane {} with {}", lane.name, stack.onto),
    };
    let keeper = keeper.write_as_keeper(repo, None)?;
    let stages = clash.merged.stages.iter().map(|stage| ConflictStage {
        path: stage.path.clone(),
        stage: stage.number,
        mode: format!("{:06o}", stage.side.mode),
        oid: stage.side.oid,
    });
    let record = ConflictRecord {
        lane: lane.name.clone(),
        onto: stack.onto.clone(),
        ours: clash.ours,
        // What the base is at once this is written down.
        base_tip: stack.tip(),
        theirs: clash.candidate.tip,
        tree: clash.merged.tree,
        at: now(),
        attempts: before.map_or(0, |b| b.attempts) + 1,
        paths: clash.merged.paths(),
        messages: clash.merged.messages.clone(),
        stages: stages.collect(),
    };
    let detail = format!("with {} in {}", stack.onto, git::names(&record.paths));
    let (told, of) = (format!("lane '{}' conflicts {detail}", lane.name), LaneState::Conflict);
    let name = ref_name(&lane.name);
    let old = repo.ref_tip(&name)?;
    let mut steps = Vec::new();
    if let Some(old) = old.filter(|old| *old != keeper) {
        op.keep(old)?;
    }
    if old != Some(keeper) {
        steps.push(Step::Ref { name, old, new: Some(keeper) });
    }
    steps.push(op.record_step(&path, Some(record.text(&path)?))?);
    steps.extend(op.lane_step(&lane.name, |record| {
        record.state = of;
        record.detail = Some(detail);
    })?);
    let lane = LaneRecord { state: of, ..lane.clone() };
    op.tell(event::Name::MergeConflict, Some(&lane), told);
    Ok(steps)
}

/// The steps that forget the conflict of a lane that landed.
pub(super) fn forget(op: &Operation<'_>, lane: &str) -> Result<Vec<Step>, Error> {
    let mut steps = Vec::new();
    let name = ref_name(lane);
    if let Some(old) = op.project.repo.ref_tip(&name)? {
        op.keep(old)?;
        steps.push(Step::Ref { name, old: Some(old), new: None });
    }
    let path = op.project.store.layout().conflict(lane);
    if path.exists() {
        steps.push(op.record_step(&path, None)?);
    }
    Ok(steps)
}

fn ref_name(lane: &str) -> String {
    format!("refs/proq/conflict/{lane}")
}

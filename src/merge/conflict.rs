//! Owns keeping a conflict: a record for people and tools, a ref for its objects, the base untouched.

use super::Error;
use super::stack::{Clash, Stack};
use crate::event;
use crate::git::{self, NewCommit};
use crate::lane::Project;
use crate::store::records::{ConflictRecord, ConflictStage, LaneState};
use crate::store::{Record, now};

/// Keeps the conflict of one lane and puts the lane in state `conflict`.
pub(super) fn capture(project: &Project, stack: &Stack, clash: &Clash) -> Result<(), Error> {
    let lane = &clash.candidate.lane;
    let repo = &project.repo;
    let path = project.store.layout().conflict(&lane.name);
    let before = ConflictRecord::find(&path)?;
    let keeper = NewCommit {
        tree: clash.merged.tree,
        parents: &[clash.ours, clash.candidate.tip],
        message: &format!("git-proq: conflict of lane {} with {}", lane.name, stack.onto),
    };
    let keeper = keeper.write_as_keeper(repo)?;
    let name = ref_name(&lane.name);
    let old = repo.ref_tip(&name)?.unwrap_or_else(|| keeper.null());
    repo.swap_ref(&name, keeper, old, "git-proq: conflict captured")?;
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
        base_tip: stack.base,
        theirs: clash.candidate.tip,
        tree: clash.merged.tree,
        at: now(),
        attempts: before.map_or(0, |b| b.attempts) + 1,
        paths: clash.merged.paths(),
        messages: clash.merged.messages.clone(),
        stages: stages.collect(),
    };
    record.save(&path)?;
    let detail = format!("with {} in {}", stack.onto, git::names(&record.paths));
    let lane = project.update_lane(&lane.name, |record| {
        record.state = LaneState::Conflict;
        record.detail = Some(detail.clone());
    })?;
    project.tell(event::Name::MergeConflict, Some(&lane), format!("lane '{}' conflicts {detail}", lane.name));
    Ok(())
}

/// Forgets the conflict of a lane that landed.
pub(super) fn forget(project: &Project, lane: &str) -> Result<(), Error> {
    let name = ref_name(lane);
    if let Some(old) = project.repo.ref_tip(&name)? {
        project.repo.delete_ref(&name, old, "git-proq: conflict resolved")?;
    }
    drop(std::fs::remove_file(project.store.layout().conflict(lane)));
    Ok(())
}

fn ref_name(lane: &str) -> String {
    format!("refs/proq/conflict/{lane}")
}

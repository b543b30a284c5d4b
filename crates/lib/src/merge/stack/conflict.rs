//! Capture of a conflict: a record for users and tools, and a ref that keeps its objects. The base stays
//! untouched.

use proq_base::lane_name::LaneName;
use proq_git::CommitId;
use proq_git::base::error;
use proq_git::history::commit::NewCommit;
use proq_git::merge::tree_merge::TreeMergeOutcome;
use proq_store::base::clock::now;
use proq_store::base::record::Record;
use proq_store::records::conflict::{ConflictRecord, ConflictStage};
use proq_store::records::lane::LaneRecord;
use proq_store::records::lane_state::LandingState;

use super::lane_stack::{Conflict, Stack};
use crate::event::log;
use crate::lane::steps::move_ref::move_ref_step;
use crate::merge::Error;
use crate::operation::journaled_operation::Operation;
use crate::operation::journaled_operation::step::BoxedStep;

/// Returns the record of the conflict of a lane's tip `theirs` with the commit `ours` of the branch `onto`, captured
/// now.
pub(crate) fn new_record(
    lane: &LaneName,
    onto: &str,
    ours: CommitId,
    theirs: CommitId,
    merged: &TreeMergeOutcome,
) -> ConflictRecord {
    let stages = merged.stages.iter().map(|stage| ConflictStage {
        path: stage.path.clone(),
        stage: stage.stage_number,
        mode: format!("{:06o}", stage.side.mode),
        oid: stage.side.oid,
    });
    ConflictRecord {
        lane: lane.clone(),
        onto: onto.to_owned(),
        ours,
        base_tip_after_landing: ours,
        theirs,
        merged_tree: merged.tree,
        captured_at: now(),
        capture_count: 1,
        paths: merged.conflicted_paths(),
        git_messages: merged.messages.clone(),
        stages: stages.collect(),
    }
}

/// Returns the steps that save the conflict of one lane with a stack that lands, as [`record_steps`] does.
pub(crate) fn capture_steps(
    op: &Operation<'_>,
    stack: &Stack,
    conflict: &Conflict,
) -> Result<Vec<BoxedStep>, Error> {
    let Conflict { candidate, ours, merged } = conflict;
    let record = new_record(&candidate.lane.name, &stack.onto, *ours, candidate.tip, merged);
    // Tip of the base once this step is performed.
    let record = ConflictRecord { base_tip_after_landing: stack.tip(), ..record };
    record_steps(op, &candidate.lane, record)
}

/// Returns the steps that save a conflict and put its lane in state `conflict`, and emits the event. All objects
/// that the conflict names must exist.
pub(crate) fn record_steps(
    op: &Operation<'_>,
    lane: &LaneRecord,
    record: ConflictRecord,
) -> Result<Vec<BoxedStep>, Error> {
    let project = op.project;
    let repo = &project.repo;
    let path = project.store.layout().conflict_record(&lane.name);
    let previous = ConflictRecord::load_if_exists(&path)?;
    let new_commit = NewCommit {
        tree: record.merged_tree,
        parents: &[record.ours, record.theirs],
        message: &format!("git-proq: conflict of lane {} with {}", lane.name, record.onto),
    };
    let conflict_commit = new_commit.write_as_proq(repo, None)?;
    let capture_count = previous.map_or(0, |b| b.capture_count) + 1;
    let record = ConflictRecord { capture_count, ..record };
    let detail = format!("with {} in {}", record.onto, error::list_paths(&record.paths));
    let message = format!("lane '{}' conflicts {detail}", lane.name);
    let conflict_ref = ref_name(&lane.name);
    let old_commit = repo.ref_tip(&conflict_ref)?;
    let mut steps = Vec::new();
    if let Some(old) = old_commit.filter(|old| *old != conflict_commit) {
        op.retain_commit(old)?;
    }
    if old_commit != Some(conflict_commit) {
        steps.push(move_ref_step(conflict_ref, old_commit, Some(conflict_commit)));
    }
    steps.push(op.write_record_step(&path, Some(record.to_toml(&path)?))?);
    steps.extend(op.lane_record_step(&lane.name, |record| {
        record.set_landing(LandingState::Conflict);
        record.detail = Some(detail);
    })?);
    let mut lane = lane.clone();
    lane.set_landing(LandingState::Conflict);
    op.emit(log::EventName::MergeConflict, Some(&lane), message);
    Ok(steps)
}

/// Returns the steps that remove the conflict record and the conflict ref of a lane that landed.
pub(crate) fn removal_steps(op: &Operation<'_>, lane: &LaneName) -> Result<Vec<BoxedStep>, Error> {
    let mut steps = Vec::new();
    let name = ref_name(lane);
    if let Some(old) = op.project.repo.ref_tip(&name)? {
        op.retain_commit(old)?;
        steps.push(move_ref_step(name, Some(old), None));
    }
    let path = op.project.store.layout().conflict_record(lane);
    if path.exists() {
        steps.push(op.write_record_step(&path, None)?);
    }
    Ok(steps)
}

/// Start of the full names of refs that keep the conflicts of lanes.
pub(crate) const CONFLICT_REFS: &str = "refs/proq/conflict/";

/// Returns the full name of the ref that keeps a lane's conflict.
pub(crate) fn ref_name(lane: &LaneName) -> String {
    format!("{CONFLICT_REFS}{lane}")
}

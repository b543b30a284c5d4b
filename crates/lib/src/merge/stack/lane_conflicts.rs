//! Conflicts between lanes of a landing that moves no base. The base has no part in them, so git-proq does
//! not record them.

use proq_base::hint;
use proq_base::lane_name::LaneName;
use proq_git::CommitId;
use proq_git::merge::tree_merge;
use proq_git::repository::objects::TempObjectStore;
use proq_store::paths::layout::Layout;

use super::lane_stack::{Conflict, Stack};
use crate::lane::Project;
use crate::merge::Error;
use crate::merge::types::candidate::Candidate;
use crate::merge::types::outcome::{LaneOutcome, Verdict};

/// Lane that merges with its base but conflicts with lanes below it in the stack.
pub(crate) struct LaneConflict {
    conflict: Conflict,
    onto: String,
    /// Names of the lanes that it conflicts with.
    conflicting_lanes: Vec<LaneName>,
}

impl LaneConflict {
    /// Removes the conflicts that are only between lanes from a stack that does not land, and returns them. A
    /// lane that also conflicts with the base stays in the stack: it is merged with the base alone, and that
    /// conflict is recorded.
    pub(crate) fn split_off_lane_conflicts(
        project: &Project,
        stack: &mut Stack,
    ) -> Result<Vec<LaneConflict>, Error> {
        if stack.conflicts.iter().all(|conflict| conflict.ours == stack.base) {
            return Ok(Vec::new());
        }
        let scratch = project.store.layout().create_scratch()?;
        let temp_objects = TempObjectStore::new(&project.repo, &Layout::scratch_objects(scratch.path()))?;
        let conflicts_with = |ours: CommitId, tip: CommitId| {
            tree_merge::would_conflict(&project.repo, ours, tip, scratch.path(), &temp_objects)
        };
        let (mut lane_conflicts, mut base_conflicts) = (Vec::new(), Vec::new());
        for conflict in std::mem::take(&mut stack.conflicts) {
            let tip = conflict.candidate.tip;
            if conflict.ours == stack.base {
                base_conflicts.push(conflict);
            } else if conflicts_with(stack.base, tip)? {
                let merged = tree_merge::merge_commits(&project.repo, stack.base, tip, scratch.path(), None)?;
                base_conflicts.push(Conflict { ours: stack.base, merged, ..conflict });
            } else {
                let position = stack.applied_lanes.iter().position(|step| step.commit == conflict.ours);
                let below = &stack.applied_lanes[..position.map_or(stack.applied_lanes.len(), |top| top + 1)];
                let name = |candidate: &Candidate| candidate.lane.name.clone();
                let candidates_below = below.iter().map(|step| &step.candidate);
                let mut conflicting_lanes = Vec::new();
                for candidate in candidates_below.clone() {
                    if conflicts_with(candidate.tip, tip)? {
                        conflicting_lanes.push(name(candidate));
                    }
                }
                if conflicting_lanes.is_empty() {
                    conflicting_lanes = candidates_below.map(name).collect();
                }
                lane_conflicts.push(LaneConflict { conflict, onto: stack.onto.clone(), conflicting_lanes });
            }
        }
        stack.conflicts = base_conflicts;
        Ok(lane_conflicts)
    }

    /// Returns the name of the lane that conflicts with the lanes below it.
    pub fn lane(&self) -> &LaneName {
        &self.conflict.candidate.lane.name
    }

    /// Returns the names of the lanes below that the lane conflicts with, quoted, for a sentence.
    pub(crate) fn describe_conflicting_lanes(&self) -> String {
        format!("'{}'", self.conflicting_lanes.join("', '"))
    }

    /// Returns the lane's entry in the report of the landing.
    pub fn outcome(&self) -> LaneOutcome {
        let lane_args = self.conflicting_lanes.join(" ");
        LaneOutcome {
            conflicted_files: self.conflict.merged.conflicted_paths(),
            conflicting_lanes: self.conflicting_lanes.clone(),
            message: self.conflict.merged.messages.first().cloned(),
            hints: vec![hint!(
                "merge {} without it: git proq merge {lane_args}",
                self.conflicting_lanes.join(", ")
            )],
            ..LaneOutcome::new(self.lane(), &self.onto, Verdict::Conflict)
        }
    }
}

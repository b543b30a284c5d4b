//! Stack of lanes on a base, built in memory. Lanes are applied one after the other without a checkout, and
//! conflicting lanes are left out.

use std::collections::BTreeSet;

use proq_git::merge::tree_merge::TreeMergeOutcome;
use proq_git::{CommitId, CommitWithTree, TreeId};
use proq_store::records::lane::MergeStrategy;

use super::apply;
use super::apply::{ApplyOutcome, StackContext};
use crate::merge::Error;
use crate::merge::types::candidate::Candidate;
use crate::merge::types::outcome::{LaneOutcome, Verdict};
use crate::project::repository_file;

/// Lane that was applied to the stack.
#[derive(Debug, Clone)]
pub(crate) struct AppliedLane {
    /// Lane with the tip that was applied.
    pub candidate: Candidate,
    /// Topmost commit of the stack once the lane is applied; it contains all of the lane.
    pub commit: CommitId,
    /// Tree of the commit.
    pub tree: TreeId,
}

/// Lane that conflicts with the stack below it.
#[derive(Debug, Clone)]
pub struct Conflict {
    /// Lane with the tip that was applied.
    pub candidate: Candidate,
    /// Commit that the lane was merged into.
    pub ours: CommitId,
    /// Merge with its conflicts.
    pub merged: TreeMergeOutcome,
}

/// Lanes on top of a base, in memory.
#[derive(Debug, Clone)]
pub struct Stack {
    /// Branch that the lanes land on.
    pub onto: String,
    /// Strategy by which the lanes land.
    pub strategy: MergeStrategy,
    /// Tip of the branch when the stack was built.
    pub base: CommitId,
    /// Applied lanes, bottom first.
    pub(crate) applied_lanes: Vec<AppliedLane>,
    /// Lanes that conflict with the stack and were left out of it.
    pub conflicts: Vec<Conflict>,
    /// Outcomes of lanes that are neither applied nor in conflict: already landed or refused.
    pub(crate) decided: Vec<LaneOutcome>,
}

impl Stack {
    /// Returns the topmost commit of the stack; the base if no lane is applied.
    pub fn tip(&self) -> CommitId {
        self.applied_lanes.last().map_or(self.base, |step| step.commit)
    }

    /// Applies the candidates, one after the other, on top of `base`. A part whose required parts are missing
    /// is left out.
    pub fn build(
        context: StackContext<'_>,
        base: CommitId,
        candidates: &[Candidate],
    ) -> Result<Stack, Error> {
        let onto = context.onto;
        let mut stack = Stack {
            onto: onto.to_owned(),
            strategy: context.strategy,
            base,
            applied_lanes: Vec::new(),
            conflicts: Vec::new(),
            decided: Vec::new(),
        };
        let mut tree = context.project.repo.tree_of(base)?;
        let mut included_parts = BTreeSet::new();
        for candidate in candidates {
            proq_base::interrupt::require_no_signal()?;
            if candidate
                .part
                .as_ref()
                .is_some_and(|part| part.required_parts.iter().any(|key| !included_parts.contains(key)))
            {
                continue;
            }
            let (ours, candidate, part) = (stack.tip(), candidate.clone(), candidate.part_key());
            let applied = apply::apply_lane(context, CommitWithTree { commit: ours, tree }, &candidate)?;
            match refuse_invalid_settings(context, tree, applied, &candidate)? {
                ApplyOutcome::Applied(applied) => {
                    tree = applied.tree;
                    included_parts.extend(part);
                    stack.applied_lanes.push(AppliedLane { candidate, commit: applied.commit, tree });
                }
                ApplyOutcome::AlreadyApplied => {
                    included_parts.extend(part);
                    let outcome = LaneOutcome::new(&candidate.lane.name, onto, Verdict::AlreadyLanded);
                    stack.decided.push(LaneOutcome { part_key: part, ..outcome });
                }
                ApplyOutcome::Conflict(merged) => stack.conflicts.push(Conflict { candidate, ours, merged }),
                ApplyOutcome::Refused(reason, hints) => {
                    let outcome = LaneOutcome::refused(&candidate.lane.name, onto, reason);
                    stack.decided.push(LaneOutcome { hints, is_permanent: true, part_key: part, ..outcome });
                }
                ApplyOutcome::Vetoed(reason, hint) => {
                    let outcome = LaneOutcome::refused(&candidate.lane.name, onto, reason);
                    let hints = vec![hint(&candidate.lane.name)];
                    stack.decided.push(LaneOutcome { hints, part_key: part, ..outcome });
                }
            }
        }
        Ok(stack)
    }
}

/// Refuses a lane whose `proq.toml` is new and not valid: on the base, it would stop most commands.
/// `below` is the tree of the stack below the lane.
fn refuse_invalid_settings(
    context: StackContext<'_>,
    below: TreeId,
    outcome: ApplyOutcome,
    candidate: &Candidate,
) -> Result<ApplyOutcome, Error> {
    let ApplyOutcome::Applied(applied) = &outcome else { return Ok(outcome) };
    let (repo, temp_objects) = (&context.project.repo, context.temp_objects);
    match repository_file::new_settings_error(repo, below, applied.tree, temp_objects)? {
        None => Ok(outcome),
        Some(error) => {
            let (reason, hint) =
                repository_file::invalid_settings_refusal(&candidate.lane.kind.branch, &error);
            Ok(ApplyOutcome::Refused(reason, vec![hint]))
        }
    }
}

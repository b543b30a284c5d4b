//! Proof on disk that a part of a lane has landed.

use proq_base::lane_name::LaneName;
use proq_git::CommitId;
use proq_store::base::clock::{Moment, now};
use proq_store::base::record::Record;
use serde::{Deserialize, Serialize};

use crate::merge::Error;
use crate::merge::stack::lane_stack::{AppliedLane, Stack};
use crate::merge::types::candidate::LanePart;
use crate::operation::journaled_operation::Operation;
use crate::operation::journaled_operation::step::BoxedStep;

/// Proof that a part has landed. The step that lands the part writes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LandingProof {
    pub lane: LaneName,
    /// Branch that the part landed on.
    pub onto: String,
    /// Commit before the part's first one.
    pub from: CommitId,
    /// Last commit of the part.
    pub to: CommitId,
    /// Commit with which all of the part was on the branch.
    pub commit: CommitId,
    /// Time of the landing.
    pub at: Moment,
}

impl Record for LandingProof {
    const FORMAT: u32 = 1;
}

/// Returns the step that writes the proof of a landed part.
pub(crate) fn proof_step(
    op: &Operation<'_>,
    stack: &Stack,
    step: &AppliedLane,
    part: &LanePart,
) -> Result<BoxedStep, Error> {
    let proof = LandingProof {
        lane: part.lane.clone(),
        onto: stack.onto.clone(),
        from: part.commit_before,
        to: part.last_commit,
        commit: step.commit,
        at: now(),
    };
    Ok(op.write_record_step(&part.proof_path, Some(proof.to_toml(&part.proof_path)?))?)
}

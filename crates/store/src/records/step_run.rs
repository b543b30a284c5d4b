//! Step of a task folder that a run executes, and its phase.

use serde::{Deserialize, Serialize};

/// Phase of a task folder's step that one run executes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StepPhase {
    /// Plan a step.
    Plan,
    /// Execute a step.
    Work,
    /// Review the plan of a step.
    PlanReview,
    /// Review the work on a step.
    CodeReview,
}

impl StepPhase {
    /// Returns whether the run is a review.
    pub fn is_review(self) -> bool {
        matches!(self, StepPhase::PlanReview | StepPhase::CodeReview)
    }

    /// Returns the subject of a review, or the result of another run, as a word.
    pub fn subject(self) -> &'static str {
        match self {
            StepPhase::Plan | StepPhase::PlanReview => "plan",
            StepPhase::Work | StepPhase::CodeReview => "code",
        }
    }
}

/// Step and phase of a task folder that a run executes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepRun {
    /// Part of the step that the run executes: its plan, its work, or a review of one of them.
    #[serde(rename = "part")]
    pub phase: StepPhase,
    /// Number of the step.
    pub step: u32,
    /// Number of the iteration, from 1; for a review, that of the iteration before it.
    pub iteration: u32,
    /// Whether the lane had no uncommitted changes before the run.
    #[serde(default)]
    #[serde(rename = "clean")]
    pub was_clean: bool,
    /// Fingerprint of the lane before a review.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "traces")]
    pub fingerprint_before_review: Option<String>,
}

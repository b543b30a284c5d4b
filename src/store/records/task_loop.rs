//! Record of a task loop: how the steps of a task folder are executed, and their progress.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::batched::RunTask;
use super::run::RunLimits;
use super::step_run::StepPhase;
use crate::git::Oid;
use crate::store::base::record::Record;

/// State of a review.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ReviewState {
    /// No plan or work exists yet that could be reviewed.
    #[default]
    #[serde(rename = "open")]
    Pending,
    /// A review is due.
    Due,
    /// The work must be revised.
    Revise,
    /// The work is approved.
    Approved,
    /// The task continued without an approval.
    #[serde(rename = "went-on")]
    Overridden,
    /// The reviewer failed, so no review exists.
    Failed,
}

impl ReviewState {
    /// Returns whether the review is finished.
    pub(crate) fn is_finished(self) -> bool {
        matches!(self, ReviewState::Approved | ReviewState::Overridden | ReviewState::Failed)
    }
}

/// Verdict of a reviewer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ReviewVerdict {
    /// The work is approved.
    Approve,
    /// The work must be revised.
    Revise,
}

impl fmt::Display for ReviewVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            ReviewVerdict::Approve => "approve",
            ReviewVerdict::Revise => "revise",
        })
    }
}

/// State of one step of a task folder.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StepRecord {
    /// Number of the step.
    pub(crate) number: u32,
    /// Whether the step was done before the task started.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) done_before: bool,
    /// Tip of the lane when the step was started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "from")]
    pub(crate) start_tip: Option<Oid>,
    /// State of the review of the step's plan.
    #[serde(default)]
    #[serde(rename = "plan")]
    pub(crate) plan_review: ReviewState,
    /// State of the review of the step's work.
    #[serde(default)]
    #[serde(rename = "code")]
    pub(crate) code_review: ReviewState,
    /// Number of revisions of the step.
    #[serde(default)]
    pub(crate) revisions: u32,
    /// Number of reviews of the step's plan.
    #[serde(default)]
    #[serde(rename = "plan_reviews")]
    pub(crate) plan_review_count: u32,
    /// Number of reviews of the step's work.
    #[serde(default)]
    #[serde(rename = "code_reviews")]
    pub(crate) code_review_count: u32,
    /// Number of consecutive failures of the reviewer.
    #[serde(default)]
    #[serde(rename = "failures")]
    pub(crate) reviewer_failures: u32,
    /// Reason of the reviewer's last failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "failed")]
    pub(crate) reviewer_error: Option<String>,
}

/// Last review of a task loop that had a verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LastReview {
    /// Phase of the review: plan review or code review.
    #[serde(rename = "part")]
    pub(crate) phase: StepPhase,
    /// Number of the reviewed step.
    pub(crate) step: u32,
    /// Number of the reviewing run.
    pub(crate) run: u32,
    #[serde(rename = "judgement")]
    pub(crate) verdict: ReviewVerdict,
}

/// Configuration and progress of a task folder that a lane executes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TaskLoopRecord {
    /// Task folder, relative to the top of the worktree.
    pub(crate) folder: String,
    /// Title of the task.
    pub(crate) title: String,
    /// Agent that executes the task.
    pub(crate) agent: String,
    /// Command of the agent, where its profile has none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[serde(rename = "own")]
    pub(crate) agent_command: Vec<String>,
    /// Permission level of the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) permission: Option<String>,
    /// Requested model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) model: Option<String>,
    /// Maximum number of turns in one run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) max_turns: Option<u32>,
    /// Task of a batch that the task folder is executed for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) batch: Option<RunTask>,
    /// Additional text in the prompts of the task's runs.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[serde(rename = "more")]
    pub(crate) extra_prompt: String,
    /// Review level: 0 reviews nothing, 1 plans, 2 plans and work.
    #[serde(rename = "level")]
    pub(crate) review_level: u8,
    /// Agent that reviews; none for the agent that executes the task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reviewer: Option<String>,
    /// Whether the entire folder must not be committed, because the base has none of it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[serde(rename = "copied")]
    pub(crate) exclude_folder: bool,
    /// Whether STATUS.md and the reviews must not be committed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[serde(rename = "hidden")]
    pub(crate) exclude_status: bool,
    /// First run of the task loop; all later runs belong to its conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "talk")]
    pub(crate) conversation: Option<u32>,
    /// Tip of the lane when the task loop was started.
    pub(crate) start: Oid,
    /// Number of finished iterations.
    #[serde(default)]
    pub(crate) iterations: u32,
    /// Number of consecutive iterations without progress.
    #[serde(default)]
    #[serde(rename = "idle")]
    pub(crate) idle_iterations: u32,
    /// Number of the last run whose result this record includes.
    #[serde(default)]
    #[serde(rename = "taken")]
    pub(crate) last_counted_run: u32,
    /// Tip of the lane after the last counted run.
    #[serde(rename = "tip")]
    pub(crate) last_tip: Oid,
    /// Number of ticked boxes after the last counted run.
    #[serde(default)]
    #[serde(rename = "done")]
    pub(crate) boxes_ticked: usize,
    /// Total number of boxes after the last counted run.
    #[serde(default)]
    #[serde(rename = "of")]
    pub(crate) boxes_total: usize,
    /// Limits for all runs together.
    #[serde(default)]
    pub(crate) limits: RunLimits,
    /// Duration in seconds of the lane's runs before the task loop, which do not count towards its limits.
    #[serde(default)]
    pub(crate) seconds_before: u64,
    /// Cost in 1e-9 USD of the lane's runs before the task loop, which do not count towards its limits.
    #[serde(default)]
    pub(crate) cost_before: u64,
    /// Last review with a verdict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) last_review: Option<LastReview>,
    /// States of the steps that are known so far.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) steps: Vec<StepRecord>,
}

impl TaskLoopRecord {
    /// Returns the state of a step, if it is known.
    pub(crate) fn step(&self, number: u32) -> Option<&StepRecord> {
        self.steps.iter().find(|step| step.number == number)
    }

    /// Returns the state of a step for a change. A step that is not known is added.
    pub(crate) fn step_mut(&mut self, number: u32) -> &mut StepRecord {
        let index = self.steps.iter().position(|step| step.number == number).unwrap_or_else(|| {
            self.steps.push(StepRecord { number, ..StepRecord::default() });
            self.steps.len() - 1
        });
        &mut self.steps[index]
    }
}

impl Record for TaskLoopRecord {
    const FORMAT: u32 = 1;
}

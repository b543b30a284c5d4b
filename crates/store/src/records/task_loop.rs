//! Record of a task loop: how the steps of a task folder are executed, and their progress.

use std::fmt;
use std::time::Duration;

use proq_base::money::NanoDollars;
use proq_git::CommitId;
use serde::{Deserialize, Serialize};

use super::batched::RunTask;
use super::run::RunLimits;
use super::step_run::StepPhase;
use crate::base::record::Record;
use crate::base::run_number::RunNumber;

/// State of a review.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReviewState {
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
    pub fn is_finished(self) -> bool {
        matches!(self, ReviewState::Approved | ReviewState::Overridden | ReviewState::Failed)
    }
}

/// Verdict of a reviewer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReviewVerdict {
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
pub struct StepRecord {
    /// Number of the step.
    pub number: u32,
    /// Whether the step was done before the task started.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub done_before: bool,
    /// Tip of the lane when the step was started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "from")]
    pub start_tip: Option<CommitId>,
    /// State of the review of the step's plan.
    #[serde(default)]
    #[serde(rename = "plan")]
    pub plan_review: ReviewState,
    /// State of the review of the step's work.
    #[serde(default)]
    #[serde(rename = "code")]
    pub code_review: ReviewState,
    /// Number of revisions of the step.
    #[serde(default)]
    pub revisions: u32,
    /// Number of reviews of the step's plan.
    #[serde(default)]
    #[serde(rename = "plan_reviews")]
    pub plan_review_count: u32,
    /// Number of reviews of the step's work.
    #[serde(default)]
    #[serde(rename = "code_reviews")]
    pub code_review_count: u32,
    /// Number of consecutive failures of the reviewer.
    #[serde(default)]
    #[serde(rename = "failures")]
    pub reviewer_failures: u32,
    /// Reason of the reviewer's last failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "failed")]
    pub reviewer_error: Option<String>,
}

/// Last review of a task loop that had a verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastReview {
    /// Phase of the review: plan review or code review.
    #[serde(rename = "part")]
    pub phase: StepPhase,
    /// Number of the reviewed step.
    pub step: u32,
    /// Number of the reviewing run.
    pub run: RunNumber,
    /// Verdict of the reviewer: approve or revise.
    #[serde(rename = "judgement")]
    pub verdict: ReviewVerdict,
}

/// Configuration and progress of a task folder that a lane executes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskLoopRecord {
    /// Task folder, relative to the top of the worktree.
    pub folder: String,
    /// Title of the task.
    pub title: String,
    /// Agent that executes the task.
    pub agent: String,
    /// Command of the agent, where its profile has none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[serde(rename = "own")]
    pub agent_command: Vec<String>,
    /// Permission level of the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permission: Option<String>,
    /// Requested model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Patterns of commands that were given for the runs, beside those of the settings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<String>,
    /// Maximum number of turns in one run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_turns: Option<u32>,
    /// Task of a batch that the task folder is executed for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch: Option<RunTask>,
    /// Additional text in the prompts of the task's runs.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[serde(rename = "more")]
    pub extra_prompt: String,
    /// Review level: 0 reviews nothing, 1 plans, 2 plans and work.
    #[serde(rename = "level")]
    pub review_level: u8,
    /// Agent that reviews; none for the agent that executes the task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reviewer: Option<String>,
    /// Whether the entire folder must not be committed, because the base has none of it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[serde(rename = "copied")]
    pub exclude_folder: bool,
    /// Whether STATUS.md and the reviews must not be committed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[serde(rename = "hidden")]
    pub exclude_status: bool,
    /// First run of the task loop; all later runs belong to its conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "talk")]
    pub conversation: Option<RunNumber>,
    /// Tip of the lane when the task loop was started.
    pub start: CommitId,
    /// Number of finished iterations.
    #[serde(default)]
    pub iterations: u32,
    /// Number of consecutive iterations without progress.
    #[serde(default)]
    #[serde(rename = "idle")]
    pub idle_iterations: u32,
    /// Number of the last run whose result this record includes.
    #[serde(default)]
    #[serde(rename = "taken")]
    pub last_counted_run: RunNumber,
    /// Tip of the lane after the last counted run.
    #[serde(rename = "tip")]
    pub last_tip: CommitId,
    /// Number of ticked boxes after the last counted run.
    #[serde(default)]
    #[serde(rename = "done")]
    pub boxes_ticked: usize,
    /// Total number of boxes after the last counted run.
    #[serde(default)]
    #[serde(rename = "of")]
    pub boxes_total: usize,
    /// Limits for all runs together.
    #[serde(default)]
    pub limits: RunLimits,
    /// Duration of the lane's runs before the task loop, which do not count towards its limits.
    #[serde(default, with = "proq_base::time_form::seconds")]
    #[serde(rename = "seconds_before")]
    pub duration_before_loop: Duration,
    /// Cost of the lane's runs before the task loop, which do not count towards its limits.
    #[serde(rename = "cost_before", default)]
    pub cost_before_loop: NanoDollars,
    /// Last review with a verdict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_review: Option<LastReview>,
    /// States of the steps that are known so far.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<StepRecord>,
}

impl TaskLoopRecord {
    /// Returns the state of a step, if it is known.
    pub fn step(&self, number: u32) -> Option<&StepRecord> {
        self.steps.iter().find(|step| step.number == number)
    }

    /// Returns the state of a step for a change. A step that is not known is added.
    pub fn step_mut(&mut self, number: u32) -> &mut StepRecord {
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

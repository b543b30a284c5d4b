//! Record of a plan draft, a plan that an agent wrote and that was not run yet: its goal, its state and its
//! approval.

use std::time::Duration;

use proq_base::lane_name::LaneName;
use proq_base::usage::{Cost, Tokens};
use serde::{Deserialize, Serialize};

use crate::base::clock::Moment;
use crate::base::record::Record;
use crate::base::run_number::RunNumber;

/// Accumulated usage of multiple runs: those that wrote a plan, or those of a lane.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunCosts {
    /// Number of agent runs.
    pub runs: u32,
    /// Total duration.
    #[serde(rename = "seconds", with = "proq_base::time_form::seconds")]
    pub duration: Duration,
    /// Tokens used; none when no agent reported them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<Tokens>,
    /// Cost, as far as it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
}

impl RunCosts {
    /// Returns the sum of two usages.
    pub fn plus(self, other: RunCosts) -> RunCosts {
        let sum_tokens = |first: Option<Tokens>, second: Option<Tokens>| match (first, second) {
            (Some(one), Some(two)) => Some(one.plus(two)),
            (one, two) => one.or(two),
        };
        let cost = match (self.cost, other.cost) {
            (Some(one), Some(two)) => Some(one.plus(two)),
            (one, two) => one.or(two),
        };
        RunCosts {
            runs: self.runs.saturating_add(other.runs),
            duration: self.duration.saturating_add(other.duration),
            tokens: sum_tokens(self.tokens, other.tokens),
            cost,
        }
    }
}

/// Approval of a plan by a user who has read it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DraftApproval {
    /// Hash of the approved plan.
    #[serde(rename = "plan")]
    pub plan_hash: String,
    /// Time of the approval.
    pub at: Moment,
}

/// Draft of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DraftRecord {
    /// Name of the draft, and of the lane with the conversation of its agent.
    pub name: String,
    /// Goal of the plan.
    pub goal: String,
    /// File that the plan was derived from, as the user named it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "from")]
    pub source_file: Option<String>,
    /// Agent that writes the plan.
    pub agent: String,
    /// Model of the agent, if one was requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Creation time of the draft's lane. Another lane may have the same name later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "lane")]
    pub lane_created: Option<Moment>,
    /// Session of the conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Feedback that the user gave on the draft's plans, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub feedback: Vec<String>,
    /// Last run of the lane whose answer was read.
    #[serde(default)]
    #[serde(rename = "read")]
    pub last_read_run: RunNumber,
    /// Number of the file with the draft's current plan; none without a plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "plan")]
    pub plan_number: Option<u64>,
    /// Reason why the agent's last answer is not a valid plan; none if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "wrong")]
    pub invalid_answer_reason: Option<String>,
    /// Approval of the plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "approved")]
    pub approval: Option<DraftApproval>,
    /// Number of the last change, counted over all drafts: a draft that was changed later has a higher
    /// number.
    #[serde(rename = "turn")]
    pub change_number: u64,
    /// Creation time of the draft.
    pub created: Moment,
    /// Time of the last change.
    pub updated: Moment,
    /// Usage of the runs of the draft's current lane.
    #[serde(default)]
    pub costs: RunCosts,
    /// Usage of the runs of former lanes, which were removed.
    #[serde(default)]
    pub past_costs: RunCosts,
}

impl Record for DraftRecord {
    const FORMAT: u32 = 1;
}

/// Dependency that an agent proposes to add.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProposedNeed {
    /// Full name of the task that should wait.
    pub task: String,
    /// Full name of the task that it should wait for.
    pub needs: String,
    /// Reason, as the agent wrote it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[serde(rename = "because")]
    pub reason: String,
}

/// Dependencies between tasks that an agent proposes to add.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProposalsRecord {
    /// Agent that proposes the dependencies.
    pub agent: String,
    /// Lane in which the agent was prompted; none once its answer was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lane: Option<LaneName>,
    /// Creation time of the lane in which the agent was prompted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "asked")]
    pub lane_created: Option<Moment>,
    /// Whether the agent's answer was read.
    #[serde(default)]
    #[serde(rename = "answered")]
    pub is_answer_read: bool,
    /// Whether the user has approved the proposals.
    #[serde(default)]
    #[serde(rename = "approved")]
    pub is_approved: bool,
    /// Time of the last change of the proposals.
    #[serde(rename = "at")]
    pub changed_at: Moment,
    /// Proposed dependencies.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<ProposedNeed>,
    /// Usage of the run in which the agent proposed the dependencies.
    #[serde(default)]
    pub costs: RunCosts,
}

impl Record for ProposalsRecord {
    const FORMAT: u32 = 1;
}

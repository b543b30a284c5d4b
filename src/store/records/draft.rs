//! Owns the form of a plan that an agent made and nobody has run: what was asked for, what came of it, who approved it.

use serde::{Deserialize, Serialize};

use super::{Cost, Tokens};
use crate::store::{Moment, Record};

/// What runs took together: those that made a plan, or those of a lane.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Costs {
    /// How many runs of an agent.
    pub(crate) runs: u32,
    /// How long they took.
    pub(crate) seconds: u64,
    /// What they used; none when no agent has told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tokens: Option<Tokens>,
    /// What they cost, as far as that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cost: Option<Cost>,
}

impl Costs {
    /// Both together.
    pub(crate) fn plus(self, other: Costs) -> Costs {
        let both = |one: Option<Tokens>, two: Option<Tokens>| match (one, two) {
            (Some(one), Some(two)) => Some(one.plus(two)),
            (one, two) => one.or(two),
        };
        let cost = match (self.cost, other.cost) {
            (Some(one), Some(two)) => Some(one.plus(two)),
            (one, two) => one.or(two),
        };
        Costs {
            runs: self.runs.saturating_add(other.runs),
            seconds: self.seconds.saturating_add(other.seconds),
            tokens: both(self.tokens, other.tokens),
            cost,
        }
    }
}

/// That somebody has read a plan and lets it be run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DraftApproval {
    /// The hash of the plan as it was then.
    pub(crate) plan: String,
    /// When.
    pub(crate) at: Moment,
}

/// A draft.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DraftRecord {
    /// Its name, and that of the lane in which its agent is talked to.
    pub(crate) name: String,
    /// What it is to reach.
    pub(crate) goal: String,
    /// The file that it was made from, as it was named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) from: Option<String>,
    /// Who makes it.
    pub(crate) agent: String,
    /// With which model, if one was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) model: Option<String>,
    /// When the lane was made in which its agent is talked to: another one may have the name later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) lane: Option<Moment>,
    /// The session of that conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) session: Option<String>,
    /// What was said to a plan of it, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) feedback: Vec<String>,
    /// The run of that lane whose answer was read last.
    #[serde(default)]
    pub(crate) read: u32,
    /// The number of its plan's file; none as long as there is no plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) plan: Option<u64>,
    /// Why what was answered last is no plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) wrong: Option<String>,
    /// Who lets it be run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) approved: Option<DraftApproval>,
    /// Counts all changes of drafts: of two, the one changed last has the higher number.
    pub(crate) turn: u64,
    /// When it was begun.
    pub(crate) created: Moment,
    /// When it was changed last.
    pub(crate) updated: Moment,
    /// What the runs of that lane took.
    #[serde(default)]
    pub(crate) costs: Costs,
    /// What those of lanes before it took, which are gone.
    #[serde(default)]
    pub(crate) past_costs: Costs,
}

impl Record for DraftRecord {
    const FORMAT: u32 = 1;
}

/// A dependency that an agent found missing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ProposedNeed {
    /// The full name of the task that is to wait.
    pub(crate) task: String,
    /// The full name of the one that it is to wait for.
    pub(crate) needs: String,
    /// Why, in the agent's words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) because: String,
}

/// What an agent found missing among tasks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ProposalsRecord {
    /// Who.
    pub(crate) agent: String,
    /// The lane in which it was asked, as long as its answer was not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) lane: Option<String>,
    /// When that lane was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) asked: Option<Moment>,
    /// Whether its answer was read.
    #[serde(default)]
    pub(crate) answered: bool,
    /// Whether somebody has approved them.
    #[serde(default)]
    pub(crate) approved: bool,
    /// When it was changed last.
    pub(crate) at: Moment,
    /// What is missing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) needs: Vec<ProposedNeed>,
    /// What was asked and answered took this.
    #[serde(default)]
    pub(crate) costs: Costs,
}

impl Record for ProposalsRecord {
    const FORMAT: u32 = 1;
}

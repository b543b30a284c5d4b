//! Owns the form of the record of a task that is a folder: how its steps are worked at, and how far that has come.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{ForTask, RunLimits};
use crate::git::Oid;
use crate::store::Record;

/// What one run of such a task is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Part {
    /// To write down how a step is to be done.
    Plan,
    /// To do a step.
    Work,
    /// To judge how a step is to be done.
    PlanReview,
    /// To judge what was done of it.
    CodeReview,
}

impl Part {
    /// Whether somebody only judges.
    pub(crate) fn is_review(self) -> bool {
        matches!(self, Part::PlanReview | Part::CodeReview)
    }

    /// What is judged, in a word; of a run that judges nothing, what it makes.
    pub(crate) fn subject(self) -> &'static str {
        match self {
            Part::Plan | Part::PlanReview => "plan",
            Part::Work | Part::CodeReview => "code",
        }
    }
}

/// Which part of such a task a run has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Stint {
    /// What it is for.
    pub(crate) part: Part,
    /// The number of the step.
    pub(crate) step: u32,
    /// Which iteration it is, from 1; of a review, the one before it.
    pub(crate) iteration: u32,
    /// Whether nothing was uncommitted in the lane before it.
    #[serde(default)]
    pub(crate) clean: bool,
    /// What the lane was like before a review of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) traces: Option<String>,
}

/// How far the review of something has come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Review {
    /// There is nothing to look at yet.
    #[default]
    Open,
    /// Somebody is to look at it.
    Due,
    /// It is to be done anew.
    Revise,
    /// It is good.
    Approved,
    /// It went on although it was not found good.
    WentOn,
    /// Nobody has judged it: the reviewer failed.
    Failed,
}

impl Review {
    /// Whether nothing more comes of it.
    pub(crate) fn is_over(self) -> bool {
        matches!(self, Review::Approved | Review::WentOn | Review::Failed)
    }
}

/// What a reviewer came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Judgement {
    /// It is good.
    Approve,
    /// It is to be done anew.
    Revise,
}

impl fmt::Display for Judgement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Judgement::Approve => "approve",
            Judgement::Revise => "revise",
        })
    }
}

/// What is known of one step.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StepRecord {
    /// Its number.
    pub(crate) number: u32,
    /// Whether it was done before anybody began.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) done_before: bool,
    /// The lane's tip when it was begun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) from: Option<Oid>,
    /// How far the review of its plan is.
    #[serde(default)]
    pub(crate) plan: Review,
    /// How far that of what was done is.
    #[serde(default)]
    pub(crate) code: Review,
    /// How often something of it had to be done anew.
    #[serde(default)]
    pub(crate) revisions: u32,
    /// How many reviews of its plan there were.
    #[serde(default)]
    pub(crate) plan_reviews: u32,
    /// How many of what was done.
    #[serde(default)]
    pub(crate) code_reviews: u32,
    /// How often in a row the reviewer failed.
    #[serde(default)]
    pub(crate) failures: u32,
    /// Why it failed last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) failed: Option<String>,
}

/// The last review that came to something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LastReview {
    /// What it was of.
    pub(crate) part: Part,
    /// Of which step.
    pub(crate) step: u32,
    /// The run that it was.
    pub(crate) run: u32,
    /// What it came to.
    pub(crate) judgement: Judgement,
}

/// How a lane's task is worked at that is a folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PacketRecord {
    /// The folder, from the top of the worktree.
    pub(crate) folder: String,
    /// What the task is about.
    pub(crate) title: String,
    /// Who does it.
    pub(crate) agent: String,
    /// The command of such an agent, where it has none of its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) own: Vec<String>,
    /// What the agent may do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) permission: Option<String>,
    /// The model that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) model: Option<String>,
    /// How many turns one run may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) max_turns: Option<u32>,
    /// The task of a batch that it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) batch: Option<ForTask>,
    /// What those who work at it are told besides.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) more: String,
    /// How closely it is looked at: 0 not at all, 1 plans, 2 plans and what was done.
    pub(crate) level: u8,
    /// Who looks; without anybody, the same agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reviewer: Option<String>,
    /// Whether the whole folder is not to be committed, because the base has none of it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) copied: bool,
    /// Whether STATUS.md and the reviews are not to be committed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) hidden: bool,
    /// The run that began it, to whose conversation all others belong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) talk: Option<u32>,
    /// The lane's tip when it was begun.
    pub(crate) start: Oid,
    /// How many iterations have ended.
    #[serde(default)]
    pub(crate) iterations: u32,
    /// Of how many in a row nothing came.
    #[serde(default)]
    pub(crate) idle: u32,
    /// The last run that is taken into account.
    #[serde(default)]
    pub(crate) taken: u32,
    /// The lane's tip then.
    pub(crate) tip: Oid,
    /// How many boxes were ticked then.
    #[serde(default)]
    pub(crate) done: usize,
    /// How many boxes there were then.
    #[serde(default)]
    pub(crate) of: usize,
    /// What all runs together may take.
    #[serde(default)]
    pub(crate) limits: RunLimits,
    /// For how many seconds the lane's runs had run before those that count.
    #[serde(default)]
    pub(crate) seconds_before: u64,
    /// What they had cost, in 1e-9 USD.
    #[serde(default)]
    pub(crate) cost_before: u64,
    /// The last review that came to something.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) last_review: Option<LastReview>,
    /// The steps that are known of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) steps: Vec<StepRecord>,
}

impl PacketRecord {
    /// What is known of a step.
    pub(crate) fn step(&self, number: u32) -> Option<&StepRecord> {
        self.steps.iter().find(|step| step.number == number)
    }

    /// The same, to be changed; it is known from now on.
    pub(crate) fn step_mut(&mut self, number: u32) -> &mut StepRecord {
        let at = self.steps.iter().position(|step| step.number == number).unwrap_or_else(|| {
            self.steps.push(StepRecord { number, ..StepRecord::default() });
            self.steps.len() - 1
        });
        &mut self.steps[at]
    }
}

impl Record for PacketRecord {
    const FORMAT: u32 = 1;
}

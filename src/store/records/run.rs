//! Owns the form of a run's record.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{ForTask, LaneState, Stint};
use crate::git::Oid;
use crate::store::{Moment, Record};

/// How a run ended, finer than the state that it leaves its lane in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum RunClass {
    /// It ended well.
    Done,
    /// It said that it failed, or its exit code did.
    Failed,
    /// The service would not serve it for now.
    RateLimited,
    /// The service could not be reached, broke off, or had an error of its own.
    Unavailable,
    /// What it had to read was too long, or its tokens are used up.
    TokenLimit,
    /// The service does not know it.
    Auth,
    /// It took as many turns as were allowed.
    MaxTurns,
    /// It cost more than was allowed.
    Budget,
    /// What it needed was not permitted.
    Refused,
    /// What its model had to keep in mind became too much.
    ContextFull,
    /// It died, or gave up without its last word.
    Crashed,
    /// Somebody or something else ended it before its last word.
    Interrupted,
    /// Nothing came of it for too long.
    Stalled,
    /// It took longer than was allowed.
    Timeout,
    /// It said the same over and over.
    Runaway,
    /// It ended well, and so often without any progress at its task that the task was given up.
    GivenUp,
    /// Somebody stopped it.
    Stopped,
}

impl fmt::Display for RunClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            RunClass::Done => "done",
            RunClass::Failed => "failed",
            RunClass::RateLimited => "rate-limited",
            RunClass::Unavailable => "unavailable",
            RunClass::TokenLimit => "token-limit",
            RunClass::Auth => "auth",
            RunClass::MaxTurns => "max-turns",
            RunClass::Budget => "budget",
            RunClass::Refused => "refused",
            RunClass::ContextFull => "context-full",
            RunClass::Crashed => "crashed",
            RunClass::Interrupted => "interrupted",
            RunClass::Stalled => "stalled",
            RunClass::Timeout => "timeout",
            RunClass::Runaway => "runaway",
            RunClass::GivenUp => "given-up",
            RunClass::Stopped => "stopped",
        })
    }
}

/// Tokens, with the same meaning whatever the agent. `input`, `cached_input`, `cache_write` and `output` do not overlap:
/// together they are all that was paid for.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Tokens {
    /// Sent, neither read from a cache nor written to one.
    pub(crate) input: u64,
    /// Sent and found in a cache.
    pub(crate) cached_input: u64,
    /// Sent and written to a cache.
    pub(crate) cache_write: u64,
    /// Generated, thoughts included.
    pub(crate) output: u64,
    /// The part of `output` that was thought and not said, where the agent tells it.
    pub(crate) reasoning: u64,
}

impl Tokens {
    /// Both together.
    pub(crate) fn plus(self, other: Tokens) -> Tokens {
        Tokens {
            input: self.input.saturating_add(other.input),
            cached_input: self.cached_input.saturating_add(other.cached_input),
            cache_write: self.cache_write.saturating_add(other.cache_write),
            output: self.output.saturating_add(other.output),
            reasoning: self.reasoning.saturating_add(other.reasoning),
        }
    }
}

/// Money, in billionths of a US dollar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Cost {
    /// How much.
    pub(crate) nanos: u64,
    /// Whether it was made from tokens and a table of prices, and not said by the agent.
    #[serde(default)]
    pub(crate) estimated: bool,
}

impl Cost {
    /// Both together.
    pub(crate) fn plus(self, other: Cost) -> Cost {
        let estimated = self.estimated || other.estimated;
        Cost { nanos: self.nanos.saturating_add(other.nanos), estimated }
    }
}

/// What is known of a session before a run goes on with it: its counters as the agent counts them.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct SessionTotals {
    /// The session.
    pub(crate) session: Option<String>,
    /// Its tokens, of all runs.
    pub(crate) tokens: Tokens,
    /// Its cost in billionths of a US dollar, of all runs, as the agent says it.
    pub(crate) cost_nanos: Option<u64>,
    /// How many tokens its model's context holds.
    pub(crate) context_size: Option<u64>,
    /// Whether it went on in a window since these counters were read, so that they are too low by an unknown amount.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_behind: bool,
}

/// What a run may take, where it is limited.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RunLimits {
    /// How many seconds it may last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) time: Option<u64>,
    /// For how many seconds nothing may come of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) stall: Option<u64>,
    /// What it may cost, in 1e-9 USD.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) budget: Option<u64>,
}

/// The process that watches a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Supervisor {
    /// Its number.
    pub(crate) pid: u32,
    /// What tells it from a later process of the same number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) birth: Option<String>,
}

/// A window of tmux that a run is in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Window {
    /// The pane, as its server calls it.
    pub(crate) pane: String,
    /// The server's socket.
    pub(crate) socket: String,
}

/// What an agent said of itself in a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Account {
    /// The conversation, by which it can be gone on with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) session: Option<String>,
    /// The model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) model: Option<String>,
    /// What it used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tokens: Option<Tokens>,
    /// What it cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) cost: Option<Cost>,
    /// How often its model was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) turns: Option<u64>,
    /// How often it used a tool.
    #[serde(default)]
    pub(crate) tool_calls: u64,
    /// The tool that it used last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) last_tool: Option<String>,
    /// How much of what it can keep in mind is full, in percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) context: Option<u8>,
    /// Its last words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) answer: Option<String>,
}

impl Account {
    /// With what an earlier run used: tokens, money, turns and calls of tools. All else is this run's.
    pub(crate) fn with(self, earlier: &Account) -> Account {
        let both = |a: Option<u64>, b: Option<u64>| a.zip(b).map(|(a, b)| a.saturating_add(b)).or(a).or(b);
        let (tokens, cost) = (self.tokens.zip(earlier.tokens), self.cost.zip(earlier.cost));
        Account {
            tokens: tokens.map(|(a, b)| a.plus(b)).or(self.tokens).or(earlier.tokens),
            cost: cost.map(|(a, b)| a.plus(b)).or(self.cost).or(earlier.cost),
            turns: both(self.turns, earlier.turns),
            tool_calls: self.tool_calls.saturating_add(earlier.tool_calls),
            ..self
        }
    }
}

/// One execution of an agent in a lane.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RunRecord {
    /// Its number in the lane, from 1.
    pub(crate) attempt: u32,
    /// The profile's name.
    pub(crate) agent: String,
    /// The command as it is started, the prompt left out where it is passed as a file.
    pub(crate) command: Vec<String>,
    /// Whether what it is told is its standard input.
    pub(crate) prompt_on_stdin: bool,
    /// Whether that input stays open, and takes one prompt after the other.
    #[serde(default)]
    pub(crate) prompts_follow: bool,
    /// What its output is written in: the name of a dialect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) dialect: Option<String>,
    /// What the agent may do: the name of a permission level.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) permission: Option<String>,
    /// The model that it was asked to use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) model: Option<String>,
    /// The agent's session, as it was chosen before; the agent's own output says which it really is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) session: Option<String>,
    /// Whether it goes on in an earlier session.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) resumed: bool,
    /// Whether a person sits in front of it, who can be asked for consent.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) interactive: bool,
    /// Where it can be looked at, when it is in a window of tmux.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) window: Option<Window>,
    /// Whether processes that it leaves behind outside of its process group are left alone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) keeps_strays: bool,
    /// How many turns it was to take at most, where the agent can be told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) max_turns: Option<u32>,
    /// Whether it was told something of its own in place of the lane's task; that is in a file beside this record.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) said: bool,
    /// The run that began the conversation that this one goes on with, or the task that it takes up again in a new one. None
    /// when it begins one itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) talk: Option<u32>,
    /// The messages of the lane's inbox that are in what it is told. They are told once it has started.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) tells: Vec<String>,
    /// How often it was told more while it lasted, in the same process; that is in a folder beside this record.
    #[serde(default, skip_serializing_if = "is_nought")]
    pub(crate) told: u32,
    /// The command that the user named for an agent that has none of its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) own: Vec<String>,
    /// Whether it resolves a conflict, in a worktree of its own and with a prompt of its own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) resolves: bool,
    /// The lane's tip before.
    pub(crate) tip_before: Oid,
    /// When it started.
    pub(crate) started: Moment,
    /// What marks the processes of this run, as the variable `PROQ_RUN`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) mark: Option<String>,
    /// The agent's process, which is also its process group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) pid: Option<u32>,
    /// What tells that process from a later one of the same number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) birth: Option<String>,
    /// Who watches it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) supervisor: Option<Supervisor>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ended: Option<Moment>,
    /// How it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) outcome: Option<LaneState>,
    /// The same, finer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) class: Option<RunClass>,
    /// Why, in a line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) detail: Option<String>,
    /// The agent's exit code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) exit_code: Option<i32>,
    /// The signal that ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) signal: Option<i32>,
    /// The lane's tip after.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tip_after: Option<Oid>,
    /// How many processes it had left running that had to be found and ended.
    #[serde(default)]
    pub(crate) strays: usize,
    /// What the agent said of itself.
    #[serde(default)]
    pub(crate) account: Account,
    /// The counters of its session, for the next run of that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) totals: Option<SessionTotals>,
    /// What it may take.
    #[serde(default)]
    pub(crate) limits: RunLimits,
    /// What of its budget the tries before it had used up, in 1e-9 USD.
    #[serde(default, skip_serializing_if = "is_nought")]
    pub(crate) spent_before: u64,
    /// The task of a batch that it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) batch: Option<ForTask>,
    /// Which part it has in a task that is a folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) stint: Option<Stint>,
}

fn is_nought<N: Default + PartialEq>(n: &N) -> bool {
    *n == N::default()
}

impl RunRecord {
    /// What it may cost still when it starts, in 1e-9 USD.
    pub(crate) fn budget_left(&self) -> Option<u64> {
        self.limits.budget.map(|budget| budget.saturating_sub(self.spent_before))
    }

    /// The conversation that it belongs to, by the run that began it. Further tries, and what goes on because a context was
    /// full, belong to the one that they are for: whoever sent something there means them too.
    pub(crate) fn talk(&self) -> u32 {
        self.talk.unwrap_or(self.attempt)
    }

    /// What it has cost and what it might, where that was all, in 1e-9 USD.
    pub(crate) fn overspent(&self) -> Option<(u64, u64)> {
        let (cost, budget) = (self.account.cost?.nanos, self.budget_left()?);
        (cost >= budget).then_some((cost, budget))
    }

    /// Whether it only judges what others do there: nobody has anything to tell it.
    pub(crate) fn is_review(&self) -> bool {
        self.stint.as_ref().is_some_and(|stint| stint.part.is_review())
    }
}

impl Record for RunRecord {
    const FORMAT: u32 = 1;
}

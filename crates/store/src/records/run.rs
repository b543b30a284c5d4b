//! Record of a run.

use std::time::Duration;

use proq_base::money::NanoDollars;
use proq_base::run_class::RunClass;
use proq_base::usage::{Cost, SessionTotals, Tokens};
use proq_git::CommitId;
use serde::{Deserialize, Serialize};

use super::batched::RunTask;
use super::lane_state::RunState;
use super::step_run::StepRun;
use crate::base::clock::Moment;
use crate::base::record::Record;
use crate::base::run_number::RunNumber;

/// Limits of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunLimits {
    /// Maximum duration of the run; none for no limit.
    #[serde(
        rename = "time",
        default,
        with = "proq_base::time_form::seconds::option",
        skip_serializing_if = "Option::is_none"
    )]
    pub max_duration: Option<Duration>,
    /// Maximum time without progress; none for no limit.
    #[serde(
        rename = "stall",
        default,
        with = "proq_base::time_form::seconds::option",
        skip_serializing_if = "Option::is_none"
    )]
    pub max_stall: Option<Duration>,
    /// Maximum cost of the run; none for no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<NanoDollars>,
}

/// Process that supervises a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SupervisorProcess {
    /// Process id.
    pub pid: u32,
    /// Start time of the supervisor process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "birth")]
    pub start_time: Option<String>,
}

/// Tmux window that shows a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TmuxWindow {
    /// Pane id, as the tmux server names it.
    pub pane: String,
    /// Socket of the tmux server.
    pub socket: String,
}

/// Summary of a run as its agent reported it: session, usage and final message.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunSummary {
    /// Session id, by which the conversation can be resumed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Model that the agent used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Tokens used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<Tokens>,
    /// Cost of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
    /// Number of requests to the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turns: Option<u64>,
    /// Number of tool calls.
    #[serde(default)]
    pub tool_calls: u64,
    /// Number of tool calls that were denied.
    #[serde(default, skip_serializing_if = "is_default")]
    pub denied: u64,
    /// Shell commands of the first denied calls, each once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub denied_commands: Vec<String>,
    /// Tool that the agent used last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_tool: Option<String>,
    /// Shell command that the agent ran with that tool; none for other tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_command: Option<String>,
    /// Used part of the model's context, in percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "context")]
    pub context_percent: Option<u8>,
    /// Final message of the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
}

impl RunSummary {
    /// Returns this summary with the tokens, cost, turns, tool calls and denied calls of an earlier run added.
    /// All other values are those of this run.
    pub fn plus_usage_of(self, earlier: &RunSummary) -> RunSummary {
        let sum = |a: Option<u64>, b: Option<u64>| a.zip(b).map(|(a, b)| a.saturating_add(b)).or(a).or(b);
        let (tokens, cost) = (self.tokens.zip(earlier.tokens), self.cost.zip(earlier.cost));
        RunSummary {
            tokens: tokens.map(|(a, b)| a.plus(b)).or(self.tokens).or(earlier.tokens),
            cost: cost.map(|(a, b)| a.plus(b)).or(self.cost).or(earlier.cost),
            turns: sum(self.turns, earlier.turns),
            tool_calls: self.tool_calls.saturating_add(earlier.tool_calls),
            denied: self.denied.saturating_add(earlier.denied),
            ..self
        }
    }
}

/// One execution of an agent in a lane.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunRecord {
    /// Number of the run in its lane, from 1.
    #[serde(rename = "attempt")]
    pub number: RunNumber,
    /// Name of the agent's profile.
    pub agent: String,
    /// Command that was started, without the prompt where that is passed as a file.
    pub command: Vec<String>,
    /// Whether the prompt is passed on standard input.
    pub prompt_on_stdin: bool,
    /// Whether standard input stays open and accepts more prompts.
    #[serde(default)]
    #[serde(rename = "prompts_follow")]
    pub accepts_more_prompts: bool,
    /// Name of the dialect of the agent's output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dialect: Option<String>,
    /// Permission level of the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permission: Option<String>,
    /// Requested model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Patterns of commands that were given for the run, beside those of the settings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<String>,
    /// Session id that was chosen before the start. The agent's output names the actual session.
    #[serde(rename = "session", default, skip_serializing_if = "Option::is_none")]
    pub chosen_session: Option<String>,
    /// Whether the run resumes an earlier session.
    #[serde(rename = "resumed", default, skip_serializing_if = "std::ops::Not::not")]
    pub resumes_session: bool,
    /// Whether the user attends the run and can approve actions.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interactive: bool,
    /// Tmux window of the run, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<TmuxWindow>,
    /// Whether git-proq does not terminate processes that the agent leaves behind outside of its process
    /// group.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keeps_strays: bool,
    /// Maximum number of turns, where the agent supports a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_turns: Option<u32>,
    /// Whether the run was given a separate prompt instead of the lane's task. The prompt is in a file next
    /// to this record.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[serde(rename = "said")]
    pub has_prompt_override: bool,
    /// First run of the conversation that this run continues, or of the task that it resumes in a new
    /// conversation. None when it starts a conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "talk")]
    pub conversation: Option<RunNumber>,
    /// Messages from the lane's inbox that are part of the prompt. They count as delivered once the run has
    /// started.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[serde(rename = "tells")]
    pub prompt_message_ids: Vec<String>,
    /// Number of deliveries of messages to the running process. The messages are in a folder next to this
    /// record.
    #[serde(default, skip_serializing_if = "is_default")]
    #[serde(rename = "told")]
    pub delivery_count: u32,
    /// Command that the user named for an agent whose profile has none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[serde(rename = "own")]
    pub agent_command: Vec<String>,
    /// Whether the run resolves a conflict, with a separate worktree and prompt.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[serde(rename = "resolves")]
    pub resolves_conflict: bool,
    /// Tip of the lane before the run.
    pub tip_before: CommitId,
    /// Time at which the run started.
    pub started: Moment,
    /// Process mark of the run: value of the environment variable `PROQ_RUN` of all its processes.
    #[serde(rename = "mark", default, skip_serializing_if = "Option::is_none")]
    pub process_mark: Option<String>,
    /// Process id of the agent, which is also the id of its process group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// Start time of the agent's process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "birth")]
    pub start_time: Option<String>,
    /// Process that supervises the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub supervisor: Option<SupervisorProcess>,
    /// Time at which the run ended; none until then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Moment>,
    /// State in which the run ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<RunState>,
    /// Detailed result of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<RunClass>,
    /// Reason for the result, in one line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// Exit code of the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Signal that terminated the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// Tip of the lane after the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tip_after: Option<CommitId>,
    /// Number of processes that the run left running and that git-proq terminated.
    #[serde(rename = "strays", default)]
    pub stopped_strays: usize,
    /// Summary of the run as its agent reported it.
    #[serde(default)]
    #[serde(rename = "account")]
    pub summary: RunSummary,
    /// Counters of the session, for the next run that continues it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "totals")]
    pub session_totals: Option<SessionTotals>,
    /// Limits of the run.
    #[serde(default)]
    pub limits: RunLimits,
    /// Part of the budget that earlier attempts have used.
    #[serde(default, skip_serializing_if = "is_default")]
    #[serde(rename = "spent_before")]
    pub budget_spent_before: NanoDollars,
    /// Batch task that the run is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch: Option<RunTask>,
    /// Step and phase of a task folder that the run executes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "stint")]
    pub step_run: Option<StepRun>,
}

/// Returns whether a number is zero, so that the record leaves it out.
fn is_default<N: Default + PartialEq>(n: &N) -> bool {
    *n == N::default()
}

impl RunRecord {
    /// Returns the budget that is left when the run starts; none without a budget.
    pub fn budget_left_at_start(&self) -> Option<NanoDollars> {
        self.limits.budget.map(|budget| budget.saturating_sub(self.budget_spent_before))
    }

    /// Returns the conversation of the run, by the number of its first run. A repeated run, or one that
    /// continues after a full context, belongs to the conversation of the run it replaces. A message to that
    /// conversation therefore reaches it too.
    pub fn conversation_number(&self) -> RunNumber {
        self.conversation.unwrap_or(self.number)
    }

    /// Returns the cost of the run and the budget that was left at its start, if the cost has reached it.
    pub fn exceeded_budget(&self) -> Option<(NanoDollars, NanoDollars)> {
        let (cost, budget) = (self.summary.cost?.amount, self.budget_left_at_start()?);
        (cost >= budget).then_some((cost, budget))
    }

    /// Returns whether the run is a review, which receives no messages from the user.
    pub fn is_review(&self) -> bool {
        self.step_run.as_ref().is_some_and(|stint| stint.phase.is_review())
    }
}

impl Record for RunRecord {
    const FORMAT: u32 = 1;
}

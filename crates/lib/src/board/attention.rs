//! Attention: the lanes and batches that wait for a person, each with the reason. It is a pure function of
//! records and events, and ends with the state that caused it, never because it was shown.

#[cfg(test)]
mod tests;

use std::fmt;

use proq_base::explain::shell_quote;
use proq_base::hint;
use proq_base::hint::Hint;
use proq_base::lane_name::LaneName;
use proq_base::run_class::RunClass;
use proq_base::terminal_text::escape_line;
use proq_git::RepoPath;
use proq_git::base::error;
use proq_store::base::batch_id::BatchId;
use proq_store::base::clock::Moment;
use proq_store::records::agent::{Activity, ActivityRecord, ReportRecord};
use proq_store::records::check::FailedCheckRecord;
use proq_store::records::conflict::ConflictRecord;
use proq_store::records::lane_state::LaneState;
use proq_store::records::run::RunRecord;
use serde::Serialize;

use crate::event::log::{Certainty, Event, EventName};
use crate::lane::inspection::list::LaneView;

/// Part of a budget, in percent, from which on it is nearly spent.
const NEARLY_SPENT_PERCENT: u64 = 80;

/// What helps with a lane: a purpose as an imperative, and a command of git-proq to which the lane's name is added.
#[derive(Debug, Clone, Copy)]
struct Step<'a>(&'a str, &'a str);

/// Purpose and command of a lane that only its details explain.
const SHOW_STEP: Step<'static> = Step("show what happened", "show");
/// Purpose and command of a lane in conflict with its base.
const RESOLVE_STEP: Step<'static> = Step("resolve the conflict", "resolve");

/// Kind of a case that needs a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum AttentionKind {
    /// The agent waits for an approval, or for an answer to a question at its start.
    NeedsApproval,
    /// The lane conflicts with its base.
    Conflict,
    /// A check failed with the lane.
    CheckFailed,
    /// The lane's automatic merge was refused.
    Refused,
    /// A usage limit ended the run or delays it.
    Limit,
    /// The run failed.
    Failed,
    /// The run made no progress for too long.
    Stalled,
    /// A process of the agent lives on without a supervisor.
    Orphaned,
    /// The run certainly changed something outside of its lane.
    Escape,
    /// The run has nearly spent its budget.
    Budget,
    /// A message waits, and no run will take it.
    Message,
    /// The agent reported steps that only a person can do.
    HumanSteps,
    /// The lane would conflict with another one.
    Overlap,
    /// A batch is paused.
    BatchPaused,
    /// A task of a batch failed too often and waits for an explicit retry.
    SetAside,
    /// A batch has ended, and its work is not on its base.
    BatchUnlanded,
    /// Commands of the repository are not approved.
    Commands,
}

/// One case that needs a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Attention {
    /// Kind of the case.
    pub kind: AttentionKind,
    /// Time of the record or event that shows the case; none where nothing has a time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Moment>,
    /// Reason, in one line.
    pub why: String,
    /// What the command does, as an imperative.
    #[serde(skip)]
    pub purpose: String,
    /// The command that helps.
    pub command: String,
}

impl Attention {
    /// Creates a case from a step, which is a purpose and its command: `land it: git proq merge`; none from another
    /// text.
    pub(crate) fn from_step(kind: AttentionKind, why: &str, step: &str) -> Option<Attention> {
        let (purpose, command) = step.split_once(": ")?;
        let (purpose, command) = (purpose.to_owned(), command.to_owned());
        Some(Attention { kind, since: None, why: escape_line(why), purpose, command })
    }

    /// Returns the command with its purpose, as a hint.
    #[must_use]
    pub fn step(&self) -> Hint {
        hint!("{}: {}", self.purpose, self.command)
    }
}

/// Facts about a lane that decide whether it needs a person.
#[derive(Debug)]
pub struct LaneFacts<'a> {
    /// The lane with its displayed state.
    pub view: &'a LaneView,
    /// Whether the scheduler of the lane's batch runs, which deals with failures by itself.
    pub is_scheduled: bool,
    /// Last activity of the agent in the last run.
    pub activity: Option<ActivityRecord>,
    /// The last run, with its usage so far.
    pub last_run: Option<RunRecord>,
    /// Captured conflict of the lane.
    pub conflict: Option<ConflictRecord>,
    /// Check that the lane failed.
    pub failed_check: Option<FailedCheckRecord>,
    /// Last report of the agent.
    pub report: Option<ReportRecord>,
    /// Paths in which the lane's commits would conflict with its base.
    pub base_conflict: Vec<RepoPath>,
    /// Lanes that the lane's commits would conflict with.
    pub overlaps: Vec<LaneName>,
    /// Recent events of any lane, oldest first.
    pub events: &'a [Event],
}

impl LaneFacts<'_> {
    /// Returns what needs a person in the lane, most urgent first. Empty for a lane that is closed; a lane that
    /// changed nothing can only have changed something elsewhere.
    #[must_use]
    pub fn attention(&self) -> Vec<Attention> {
        match self.view.state() {
            state if state.is_closed() => Vec::new(),
            LaneState::NoChange => self.escape().into_iter().collect(),
            _ => [
                self.approval(),
                self.obstacle(),
                self.refusal(),
                self.run_end(),
                self.escape(),
                self.budget(),
                self.message(),
                self.human_steps(),
                self.overlap(),
            ]
            .into_iter()
            .flatten()
            .collect(),
        }
    }

    /// Creates a case of the lane, and the command of its step.
    fn case(
        &self,
        kind: AttentionKind,
        since: Moment,
        why: impl fmt::Display,
        Step(purpose, verb): Step<'_>,
    ) -> Attention {
        let (command, flags) = verb
            .split_once(' ')
            .map_or((verb, String::new()), |(command, flags)| (command, format!(" {flags}")));
        let command = format!("git proq {command} {}{flags}", self.view.lane.name);
        let (why, purpose) = (escape_line(&why.to_string()), purpose.to_owned());
        Attention { kind, since: Some(since), why, purpose, command }
    }

    fn state_since(&self) -> Moment {
        self.view.lane.state_changed_at
    }

    fn detail_or(&self, default: &str) -> String {
        self.view.detail.clone().unwrap_or_else(|| default.to_owned())
    }

    fn approval(&self) -> Option<Attention> {
        let record = self.activity.as_ref()?;
        let is_waiting =
            self.view.activity == Some(Activity::NeedsApproval) && record.activity == Activity::NeedsApproval;
        let why = record.waits_for.clone().unwrap_or_else(|| "the agent waits for an approval".to_owned());
        is_waiting.then(|| {
            self.case(AttentionKind::NeedsApproval, record.since, why, Step("answer the agent", "open"))
        })
    }

    fn obstacle(&self) -> Option<Attention> {
        if self.is_scheduled {
            return None;
        }
        match self.view.state() {
            LaneState::Conflict => {
                let conflict = self.conflict.as_ref();
                let since = conflict.map_or(self.state_since(), |conflict| conflict.captured_at);
                let why = conflict.map_or_else(
                    || self.detail_or("it conflicts with its base"),
                    |conflict| {
                        let paths: Vec<String> = conflict.paths.iter().map(ToString::to_string).collect();
                        format!("conflict with {} in {}", conflict.onto, paths.join(", "))
                    },
                );
                Some(self.case(AttentionKind::Conflict, since, why, RESOLVE_STEP))
            }
            LaneState::CheckFailed => {
                let check = self.failed_check.as_ref();
                let since = check.map_or(self.state_since(), |check| check.failed_at);
                let why = check.map_or_else(
                    || self.detail_or("a check failed"),
                    |check| format!("`{}` failed on {}: {}", check.command, check.onto, check.exit_text),
                );
                Some(self.case(
                    AttentionKind::CheckFailed,
                    since,
                    why,
                    Step("show its output", "logs --checks"),
                ))
            }
            state if state.is_busy() || self.base_conflict.is_empty() => None,
            _ => {
                let paths = error::list_paths(&self.base_conflict);
                let why = format!("it would conflict with {} in {paths}", self.view.lane.base);
                Some(self.case(AttentionKind::Conflict, self.state_since(), why, RESOLVE_STEP))
            }
        }
    }

    /// A conflict or a failed check is an obstacle of its own, and not refused besides.
    fn refusal(&self) -> Option<Attention> {
        let lane = &self.view.lane;
        let refused = lane.auto_merge_refusal.as_ref()?;
        let step = Step("see whether it can land", "merge --dry-run");
        (lane.auto_merge && self.view.state() == LaneState::Done)
            .then(|| self.case(AttentionKind::Refused, refused.refused_at, &refused.refusal_reason, step))
    }

    /// Returns the case of the end of the last run: a failure, or a limit after which it is retried.
    fn run_end(&self) -> Option<Attention> {
        let state = self.view.state();
        let ended_run = self.last_run.as_ref().and_then(|run| Some((run, run.ended?)));
        let limited_run = ended_run
            .filter(|(run, _)| matches!(run.class, Some(RunClass::RateLimited | RunClass::TokenLimit)));
        let since = ended_run.map_or(self.state_since(), |(_, ended)| ended);
        match (state, limited_run) {
            (LaneState::Orphaned, _) => Some(self.case(
                AttentionKind::Orphaned,
                self.state_since(),
                self.detail_or("its agent is running without a supervisor"),
                Step("stop it", "stop"),
            )),
            (LaneState::Failed | LaneState::Stalled, _) if self.is_scheduled => None,
            (LaneState::Failed | LaneState::Running, Some((run, _))) => {
                let class = run.class.map(|class| class.to_string()).unwrap_or_default();
                let why = self.view.detail.clone().or_else(|| run.detail.clone()).unwrap_or(class);
                let step = if state.is_busy() {
                    Step("show its log", "logs")
                } else {
                    Step("continue it", "send continue")
                };
                Some(self.case(AttentionKind::Limit, since, why, step))
            }
            (LaneState::Failed, None) => {
                Some(self.case(AttentionKind::Failed, since, self.detail_or("its run failed"), SHOW_STEP))
            }
            (LaneState::Stalled, _) => {
                let why = self.detail_or("its run made no progress for too long");
                Some(self.case(AttentionKind::Stalled, since, why, SHOW_STEP))
            }
            _ => None,
        }
    }

    /// The last certain escape of the last run.
    fn escape(&self) -> Option<Attention> {
        let began = self.last_run.as_ref()?.started;
        let is_escape = |event: &&Event| {
            event.name == EventName::LaneEscape
                && event.certainty == Some(Certainty::Certain)
                && event.at >= began
                && event.lane.as_deref() == Some(self.view.lane.name.as_str())
        };
        let event = self.events.iter().rfind(is_escape)?;
        Some(Attention {
            kind: AttentionKind::Escape,
            since: Some(event.at),
            why: event.message.clone(),
            purpose: "show these events".to_owned(),
            command: format!("git proq events --since {}", event.n.saturating_sub(1)),
        })
    }

    fn budget(&self) -> Option<Attention> {
        let run = self.last_run.as_ref().filter(|run| run.ended.is_none() && self.view.state().is_busy())?;
        let (cost, budget) = (run.summary.cost?.amount, run.budget_left_at_start()?);
        let is_nearly_spent =
            u128::from(cost.nanos()) * 100 >= u128::from(budget.nanos()) * u128::from(NEARLY_SPENT_PERCENT);
        let (spent, limit) = (cost.to_dollars(), budget.to_dollars());
        let why = format!("its run has cost ${spent:.2} of ${limit:.2}");
        is_nearly_spent.then(|| {
            self.case(
                AttentionKind::Budget,
                run.started,
                why,
                Step("stop it once it has finished up", "stop --wrap-up"),
            )
        })
    }

    fn message(&self) -> Option<Attention> {
        let count = self.view.pending_messages;
        let why = if count == 1 { "1 message waits".to_owned() } else { format!("{count} messages wait") };
        let is_stuck = count > 0 && !self.view.state().is_busy();
        is_stuck
            .then(|| self.case(AttentionKind::Message, self.state_since(), why, Step("deliver it", "send")))
    }

    fn human_steps(&self) -> Option<Attention> {
        let report = self.report.as_ref().filter(|report| report.run == self.view.lane.last_run)?;
        let why = report.human_steps.join("; ");
        (!why.is_empty()).then(|| self.case(AttentionKind::HumanSteps, report.at, why, SHOW_STEP))
    }

    fn overlap(&self) -> Option<Attention> {
        let name = self.view.lane.name.as_str();
        let others: Vec<&str> = self.overlaps.iter().map(LaneName::as_str).collect();
        let is_of_pair = |event: &&Event| {
            let both = (event.lane.as_deref(), event.other.as_deref());
            event.name == EventName::LaneOverlap
                && others.iter().any(|o| both == (Some(name), Some(*o)) || both == (Some(*o), Some(name)))
        };
        let since = self.events.iter().rfind(is_of_pair).map_or(self.state_since(), |event| event.at);
        let verb = format!("matrix {}", others.join(" "));
        let why = format!("it would conflict with {}", others.join(", "));
        let purpose = format!("show its conflict with {}", others.join(", "));
        (!others.is_empty()).then(|| self.case(AttentionKind::Overlap, since, why, Step(&purpose, &verb)))
    }
}

/// Facts about a batch that decide whether it needs a person.
#[derive(Debug)]
pub struct BatchFacts<'a> {
    /// Id of the batch.
    pub id: &'a BatchId,
    /// Whether the batch is paused and nothing of it is under way.
    pub is_paused: bool,
    /// Names of the tasks that are set aside.
    pub set_aside: Vec<&'a str>,
    /// Time of the last line of the batch's log.
    pub since: Option<Moment>,
}

impl BatchFacts<'_> {
    /// Returns what needs a person in the batch.
    #[must_use]
    pub fn attention(&self) -> Vec<Attention> {
        let (id, since) = (self.id, self.since);
        let paused = self.is_paused.then(|| Attention {
            kind: AttentionKind::BatchPaused,
            since,
            why: format!("batch {id} is paused"),
            purpose: "resume it".to_owned(),
            command: format!("git proq batch resume {id}"),
        });
        let set_aside = self.set_aside.iter().map(|task| Attention {
            kind: AttentionKind::SetAside,
            since,
            why: escape_line(&format!("{task} of batch {id} failed too often")),
            purpose: "try it again".to_owned(),
            command: format!("git proq batch resume {id} --retry {}", shell_quote(task)),
        });
        paused.into_iter().chain(set_aside).collect()
    }
}

/// Returns what a person has to do about `count` commands of the repository that are not approved.
#[must_use]
pub fn of_commands(count: usize) -> Option<Attention> {
    let why = match count {
        1 => "1 command is not approved".to_owned(),
        _ => format!("{count} commands are not approved"),
    };
    (count > 0).then(|| Attention {
        kind: AttentionKind::Commands,
        since: None,
        why,
        purpose: "read and approve them".to_owned(),
        command: "git proq approve".to_owned(),
    })
}

//! Errors of making a plan with an agent, and of finding missing dependencies with one.

use std::path::PathBuf;

use proq_base::explain::{Explain, shell_quote_path};
use proq_base::lane_name::LaneName;
use proq_git as git;
use proq_store as store;

use crate::{agent, lane};

/// The reason why an agent's plan does not exist or cannot be used.
#[derive(Debug, thiserror::Error, Explain)]
pub enum DraftError {
    /// No draft has the given name.
    #[error("there is no draft '{name}'")]
    #[hint("list drafts: git proq plan --drafts")]
    UnknownDraft {
        /// The name that was given.
        name: String,
    },
    /// The project has no drafts.
    #[error("there is no draft")]
    #[exit(Usage)]
    #[hint("create one: git proq plan --ai \"payments by card\"")]
    NoDrafts,
    /// No draft was named, and there is more than one.
    #[error("there are several drafts; name one: {}", names.join(", "))]
    #[exit(Usage)]
    #[hint(
        "the latest one: git proq plan {}",
        names.first().map_or("", String::as_str)
    )]
    AmbiguousDraft {
        /// The names of the drafts, the one changed last first.
        names: Vec<String>,
    },
    /// The draft has no plan yet.
    #[error("draft '{name}' has no plan yet{}", why.as_ref().map(|why| format!(": {why}")).unwrap_or_default())]
    #[hint("give it feedback: git proq plan --feedback \"split it into smaller tasks\" {name}")]
    #[hint("show the answer: git proq show {name}")]
    NoPlan {
        /// The name of the draft.
        name: String,
        /// The reason why it has no plan, if known.
        why: Option<String>,
    },
    /// The plan of the draft changed after it was shown for approval.
    #[error("cannot approve draft '{name}': it has changed since you were shown it")]
    #[hint("show it: git proq plan {name}")]
    ChangedSinceShown {
        /// The name of the draft.
        name: String,
    },
    /// The agent of the draft is still running.
    #[error("cannot change draft '{name}': its agent is running")]
    #[hint("wait for the agent: git proq wait {name}")]
    #[hint("or stop it: git proq stop {name}")]
    AgentRunning {
        /// The name of the draft.
        name: String,
    },
    /// No installed agent supports a read-only run.
    #[error("cannot make a plan: no agent with a read-only mode is installed")]
    #[hint("install one of: {}", supported.join(", "))]
    #[hint("list the agents: git proq agents")]
    NoAgent {
        /// The agents that support it.
        supported: Vec<String>,
    },
    /// The agent gave no answer in the required form.
    #[error("{agent} did not produce {expected}: {reason}")]
    #[exit(Agent)]
    #[hint(if let Some(file) = answer_file, "read its answer: cat {}", shell_quote_path(file))]
    #[hint(
        if *is_draft,
        "give it feedback: git proq plan --feedback \"follow the format\" {lane}"
    )]
    #[hint(else, "read its log: git proq logs {lane}")]
    InvalidAnswer {
        /// The name of the agent.
        agent: String,
        /// The kind of answer that was expected.
        expected: &'static str,
        /// The defect of the last answer, or the reason why there is none.
        reason: String,
        /// The lane in which the agent ran.
        lane: LaneName,
        /// The file with the last answer.
        answer_file: Option<PathBuf>,
        /// Whether the answer belongs to a draft, which accepts feedback.
        is_draft: bool,
    },
    /// An approval is needed, and there is no terminal to request it on.
    #[error("cannot ask whether {question}: not a terminal; nothing was approved")]
    #[hint("approve it as it is: {approve_command}")]
    ApprovalRequired {
        /// The question to approve, as a clause after "whether".
        question: String,
        /// The command that approves it.
        approve_command: String,
    },
    /// An error of a plan or its tasks.
    #[error(transparent)]
    Plan(#[from] proq_plan::plan_error::PlanError),
    /// An error of an agent's run.
    #[error(transparent)]
    Agent(#[from] agent::Error),
    /// An error of the lane in which the agent runs.
    #[error(transparent)]
    Lane(#[from] lane::Error),
    /// An error of the store.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// An error of the repository.
    #[error(transparent)]
    Git(#[from] git::Error),
}

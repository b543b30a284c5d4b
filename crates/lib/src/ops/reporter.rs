//! Reporter of a use case: questions to the user, and progress.

use std::path::Path;

use proq_base::interrupt::{CancellationScope, CancellationToken};
use proq_base::lane_name::LaneName;
use proq_store::base::batch_id::BatchId;
use proq_store::base::clock::Moment;
use proq_store::base::operation_number::OperationNumber;
use proq_store::records::conflict::ResolutionRecord;
use proq_store::records::lane::AnyLane;

use super::error::Error;
use super::lane_removal::LaneRemoval;
use crate::agent::control::wait::WaitedLane;
use crate::event::approval::ShellCommand;
use crate::lane::context::expiry_item::ExpiredGroup;
use crate::merge::types::outcome::LandingPlan;
use crate::preview::leave::LeaveResult;

/// A decision that only the user can make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Question<'a> {
    /// Whether to end the idle session of a lane that is done, and land the lane.
    EndSession {
        /// Name of the lane.
        lane: &'a LaneName,
        /// State of the session, in words.
        detail: &'a str,
    },
    /// Whether to undo an operation that another terminal or another program started.
    UndoOfOtherTerminal {
        /// Number of the operation.
        number: OperationNumber,
        /// Command line by which it was started.
        command: &'a str,
    },
    /// Whether to run a plan. The caller has started the command for it, so yes may be the default.
    RunPlan,
    /// Whether to continue an unfinished batch of the same plan instead of starting another one. Yes may be the
    /// default.
    ResumeBatch {
        /// Id of the unfinished batch.
        batch: &'a BatchId,
        /// State of the batch in a word.
        state: &'a str,
    },
    /// Whether a plan that an agent wrote may be run.
    ApproveDraft {
        /// Name of the draft.
        name: &'a str,
    },
    /// Whether dependencies that an agent found missing are used from now on.
    UseProposedNeeds {
        /// The agent that found them.
        agent: &'a str,
        /// The number of dependencies with its noun: `1 dependency`, `2 dependencies`.
        needs: &'a str,
    },
}

/// Something that a caller may show while a use case runs.
#[derive(Debug, Clone, Copy)]
pub enum Progress<'a> {
    /// The lanes that a landing will try, before the first ref moves.
    Landing(&'a LandingPlan),
    /// A question that needs an answer before the use case is executed.
    ConfirmationNeeded(Question<'a>),
    /// A lane whose removal was decided: it is or would be removed, or is retained with an error.
    Removal(&'a LaneRemoval),
    /// The preview that was left because its lane is being removed.
    PreviewLeft(&'a LeaveResult),
    /// A worktree without a lane record that is or would be removed.
    UnrecordedWorktree {
        /// Top folder of the worktree.
        path: &'a Path,
        /// Whether it has been removed.
        is_removed: bool,
    },
    /// The reason why a worktree without a lane record is retained.
    UnrecordedRetained(&'a Error),
    /// A lane whose agent was stopped, as it is now.
    AgentStopped(&'a AnyLane),
    /// The reason why an agent was not stopped.
    StopFailed(&'a Error),
    /// A lane whose run was waited for and has ended.
    RunEnded(&'a WaitedLane),
    /// Expired items of one kind that are or would be deleted.
    Expired(&'a ExpiredGroup),
    /// A batch is about to be created. It runs for hours, so problems of the repository are best shown now.
    StartingBatch,
    /// A draft was approved without a question, as the caller wanted.
    DraftApproved {
        /// Name of the draft.
        name: &'a str,
    },
    /// An agent writes a new draft, or changes one.
    DraftRequested {
        /// Name of the draft.
        name: &'a str,
        /// The agent.
        agent: &'a str,
        /// Whether the draft is new.
        is_new: bool,
    },
    /// An agent searches for missing dependencies.
    SearchingNeeds {
        /// The agent.
        agent: &'a str,
        /// Lane in which it runs.
        lane: &'a LaneName,
    },
    /// The answer of an earlier search for missing dependencies is used.
    NeedsKnown {
        /// The agent that answered.
        agent: &'a str,
        /// Time of the answer.
        at: Moment,
    },
    /// An agent gave an answer that cannot be used, and is prompted again.
    AnswerRejected {
        /// The agent.
        agent: &'a str,
        /// What was expected, such as "a plan".
        expected: &'a str,
        /// Flaw of the answer, or the reason why there is none.
        reason: &'a str,
        /// Whether the agent answered at all.
        has_answer: bool,
    },
    /// A conflict is open in a worktree, for the user to resolve it on this terminal.
    ResolutionOpen {
        /// Record of the open resolution.
        resolution: &'a ResolutionRecord,
        /// Whether a shell opens next, not a merge tool.
        in_shell: bool,
    },
}

/// Caller of a use case: a command, a server or another program. Warnings and waits go to the listener of
/// the project instead.
///
/// Every method has a default for callers without a user: nothing is shown, no question is put, and what
/// needs the user's consent is refused by the use case.
pub trait Reporter {
    /// Shows progress.
    fn progress(&self, _progress: Progress<'_>) {}

    /// Returns whether the user can answer questions.
    fn can_prompt_user(&self) -> bool {
        false
    }

    /// Prompts the user, and returns whether the answer is yes.
    fn confirm(&self, _question: Question<'_>) -> bool {
        false
    }

    /// Shows commands that come with the repository, and prompts the user whether those that are not approved
    /// may run from now on. Called only if [`Reporter::can_prompt_user`].
    fn approve(&self, _commands: &[ShellCommand]) -> bool {
        false
    }

    /// Returns the token by which the caller cancels a use case while it runs, from another thread; by default
    /// there is none. The use case ends with the effect of Ctrl-C on the command: between two steps or in a
    /// wait, with nothing left half-done, and an error that names the cancellation and, where something landed
    /// before, what stays. Checks, set-up commands and agents that it runs are ended; git and its hooks are
    /// awaited. Use cases without a reporter look at no token: among others `edit`, `preview`, `send`, `pause`,
    /// `resume` and `abort`.
    fn cancellation(&self) -> Option<&CancellationToken> {
        None
    }
}

impl dyn Reporter + '_ {
    /// Puts what this thread does until the scope is dropped under the caller's token, if there is one.
    pub(crate) fn enter_cancellation(&self) -> Option<CancellationScope> {
        self.cancellation().map(CancellationToken::enter)
    }
}

/// A closure shows progress for a caller without a user.
impl<F: Fn(Progress<'_>)> Reporter for F {
    fn progress(&self, progress: Progress<'_>) {
        self(progress);
    }
}

/// Reporter without a user and without output.
#[derive(Debug, Clone, Copy, Default)]
pub struct SilentReporter;

impl Reporter for SilentReporter {}

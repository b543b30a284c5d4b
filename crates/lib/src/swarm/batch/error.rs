//! Errors of commands on plans and batches, with their hints and exit codes.

use std::path::PathBuf;

use proq_base::explain::Explain;
use proq_plan::plan_error::PlanError;
use proq_plan::schedule::workload::WorkloadError;
use proq_store::base::batch_id::BatchId;
use proq_store::base::operation_number::OperationNumber;

/// The reason why git-proq cannot run a command on a batch.
#[derive(Debug, thiserror::Error, Explain)]
pub enum BatchError {
    /// No batch has the given name, or more than one batch matches it.
    #[error("there is no batch '{name}'{}", known_ids_suffix(known))]
    #[hint("see all: git proq status --all")]
    UnknownBatch {
        /// The name or prefix that was given.
        name: String,
        /// The ids of all batches.
        known: Vec<BatchId>,
    },
    /// A batch of the same plan has finished, but its tasks are only on the batch's own branch.
    #[error("batch {id} of this plan is over, and what it has done is not on {base} yet; nothing was begun")]
    #[hint("{hint}")]
    #[hint("try again what failed in it: git proq resume {id} --retry ID")]
    #[hint("do all of the plan once more: git proq swarm PLAN --new")]
    PreviousBatchUnlanded {
        /// The finished batch.
        id: BatchId,
        /// The base branch of the finished batch.
        base: String,
        /// The hint for landing the finished batch.
        hint: String,
    },
    /// No batch was named, and the repository has none.
    #[error("there is no batch yet")]
    #[hint("begin one: git proq swarm PLAN")]
    NoBatches,
    /// No batch was named, and not exactly one is open.
    #[error("{}", if open.is_empty() { "no batch is open".to_owned() } else { format!("several batches are open: {}", open.join(", ")) })]
    #[exit(Usage)]
    #[hint(if let Some(first) = open.first(), "say which: git proq {command} {first}")]
    #[hint(else, "begin one: git proq swarm PLAN")]
    #[hint(if open.is_empty(), "see those that are over: git proq status --all")]
    AmbiguousBatch {
        /// The ids of the open batches.
        open: Vec<BatchId>,
        /// The command that was typed.
        command: &'static str,
    },
    /// The tasks on record cannot be scheduled, because their file was edited.
    #[error("the tasks of batch {id} cannot be read: {flaw}")]
    #[hint("look at it: git proq status {id} --json")]
    InvalidTasks {
        /// The id of the batch.
        id: BatchId,
        /// The defect in the tasks.
        flaw: WorkloadError,
    },
    /// The batch has no task of the given name.
    #[error("batch {id} has no task '{name}'")]
    #[hint("see its tasks: git proq status {id}")]
    UnknownTask {
        /// The id of the batch.
        id: BatchId,
        /// The task name that was given.
        name: String,
    },
    /// The plan has no task of the given name.
    #[error("this plan has no task '{name}'; nothing was begun")]
    #[hint("see its tasks: git proq plan {plan}")]
    UnknownPlanTask {
        /// The task name that was given.
        name: String,
        /// The plan, as it was named.
        plan: String,
    },
    /// git-proq could not start a scheduler for the batch.
    #[error("nobody goes on with batch {id}: {reason}")]
    #[hint("try again: git proq resume {id}")]
    SchedulerNotStarted {
        /// The id of the batch.
        id: BatchId,
        /// The reason why the scheduler did not start.
        reason: String,
    },
    /// The scheduler of the batch did not answer a control request in time.
    #[error(
        "the scheduler of batch {id} has not answered in {seconds} s; what you want is written down for it"
    )]
    #[exit(Locked)]
    #[hint("see how far it is: git proq status {id}")]
    SchedulerTimeout {
        /// The id of the batch.
        id: BatchId,
        /// The seconds that git-proq waited.
        seconds: u64,
    },
    /// A batch of the requested plan has not finished.
    #[error("batch {id} of this plan is not over ({state}); nothing was begun")]
    #[hint("go on with it: git proq resume {id}")]
    #[hint("or begin another one beside it: git proq swarm --new …")]
    PlanBatchUnfinished {
        /// The id of the unfinished batch.
        id: BatchId,
        /// The state of the unfinished batch.
        state: String,
    },
    /// Neither a task, its plan nor the command line names an agent.
    #[error("nothing says who is to do task '{task}'; nothing was begun")]
    #[hint("name an agent for such tasks: git proq swarm --agent claude …")]
    NoAgent {
        /// The name of the task.
        task: String,
    },
    /// All tasks of the plan are done already.
    #[error("all tasks of this plan are done; nothing was begun")]
    #[hint("see them: git proq plan {plan}")]
    AllDone {
        /// The plan, as it was named.
        plan: String,
    },
    /// A plan that came with a repository has commands that the user has not approved.
    #[error("{} asks for commands that you have not approved: {}; nothing was begun", path.display(), commands.join("; "))]
    #[hint("read them and let them run: git proq approve{approve_args}")]
    UnapprovedCommands {
        /// The file of the plan.
        path: PathBuf,
        /// The command lines that need approval.
        commands: Vec<String>,
        /// The arguments that make `git proq approve` name the plan.
        approve_args: String,
    },
    /// git-proq cannot determine the base branch of a new batch.
    #[error("{reason}, so it is not clear which branch the batch is for; nothing was begun")]
    #[exit(Usage)]
    #[hint("name it: git proq swarm --base BRANCH …")]
    UnknownBase {
        /// The reason why the branch is unknown.
        reason: String,
    },
    /// The main checkout has uncommitted changes, which no lane would contain.
    #[error("your uncommitted changes would be in no lane: {files}; nothing was begun")]
    #[hint("commit them first: git commit -a")]
    #[hint("or begin without them: git proq swarm --ignore-dirty …")]
    UncommittedChanges {
        /// The changed files, as one text.
        files: String,
    },
    /// The batch is still running, so the command has to wait.
    #[error("batch {id} goes on{}; nothing was changed", if *agents { ": agents are at work in its lanes" } else { "" })]
    #[hint(if *agents, "end that first: git proq abort {id}")]
    #[hint(else, "have it end what it is at: git proq pause {id}")]
    #[hint(if !agents, "or stop it: git proq abort {id}")]
    StillRunning {
        /// The id of the batch.
        id: BatchId,
        /// Whether only agents are still running, without a scheduler.
        agents: bool,
    },
    /// The batch was cleaned up.
    #[error("batch {id} was cleaned up: its lanes and its branch are gone")]
    #[hint("see what is kept of removed lanes: git proq list --all")]
    CleanedUp {
        /// The id of the batch.
        id: BatchId,
    },
    /// The batch has no commits to land.
    #[error("{reason}; nothing was moved")]
    #[hint("see how far it is: git proq status")]
    NothingToLand {
        /// The reason why nothing can land.
        reason: String,
    },
    /// The batch is strict, and not all of its criteria are known to be met.
    #[error("batch {id} is strict, and {reason}; nothing was moved")]
    #[hint("see what is not met: git proq status {id}")]
    #[hint("or land it all the same: git proq merge --batch {id} --force")]
    CriteriaNotMet {
        /// The id of the batch.
        id: BatchId,
        /// The reason why the criteria do not count as met.
        reason: String,
    },
    /// An unfinished batch builds on the landings to undo.
    #[error("that landed tasks of batch {id}, which {}; nothing was changed", if *runs { "goes on" } else { "is not over" })]
    #[hint(if *runs, "end that first: git proq abort {id}")]
    #[hint(else, "go on with it: git proq resume {id}")]
    #[hint(
        if !runs && let Some(command) = force_command,
        "or take it back all the same; the tasks land again when it goes on: {command}"
    )]
    BatchBuildsOn {
        /// The id of the batch.
        id: BatchId,
        /// Whether a scheduler is running the batch.
        runs: bool,
        /// The command that undoes the landings in spite of the batch; none where there is no such command.
        force_command: Option<String>,
    },
    /// An unfinished batch landed tasks after the operation to undo.
    #[error(
        "cannot undo operation {operation} by itself: batch {id} {}, and landed tasks after it; nothing was changed",
        if *runs { "goes on" } else { "is not over" }
    )]
    #[hint("see what it saved, to bring that back by hand: git proq op show {operation}")]
    #[hint(
        if !runs,
        "or take back all since, with what the batch landed: git proq op restore {} --force",
        operation.previous()
    )]
    LandedSince {
        /// The id of the operation.
        operation: OperationNumber,
        /// The id of the batch.
        id: BatchId,
        /// Whether a scheduler is running the batch.
        runs: bool,
    },
    /// The batch to clean up has landed tasks on its own branch that the base does not have.
    #[error("batch {id} has landed {} that {base} does not have; nothing was changed", tasks(*count))]
    #[hint("{hint}")]
    #[hint("or let go of them, kept under refs/proq/saved/: git proq cleanup --batch {id} --force")]
    TasksNotLanded {
        /// The id of the batch.
        id: BatchId,
        /// The number of tasks that the base lacks.
        count: usize,
        /// The base branch of the batch.
        base: String,
        /// The hint for landing the tasks on the base.
        hint: String,
    },
    /// The base branch of the batch no longer exists.
    #[error("'{base}', which batch {id} is for, is gone; nothing was moved")]
    #[hint("{hint}")]
    BaseMissing {
        /// The id of the batch.
        id: BatchId,
        /// The missing branch.
        base: String,
        /// The hint for landing the batch on another branch.
        hint: String,
    },
    /// The batch's own branch no longer exists.
    #[error(
        "the branch of batch {id} is gone: {branch}{}; nothing was moved",
        tip.as_ref().map_or_else(String::new, |tip| format!(", which was at {tip}"))
    )]
    #[hint(if let Some(tip) = tip, "bring it back: git branch {branch} {tip}")]
    #[hint(else, "see how far it is: git proq status {id}")]
    BranchMissing {
        /// The id of the batch.
        id: BatchId,
        /// The missing branch.
        branch: String,
        /// The commit that the branch pointed at, if it is known and still in the repository.
        tip: Option<String>,
    },
    /// Lanes of the batch to clean up have work that exists nowhere else.
    #[error("batch {id} is kept, because of {}; nothing was removed", lanes.join(", "))]
    #[hint("go on with it: git proq resume {id}")]
    #[hint("or let go of them, saved as by any removal: git proq cleanup --batch {id} --force")]
    LanesHaveWork {
        /// The id of the batch.
        id: BatchId,
        /// The lanes, each with a description of its unsaved work.
        lanes: Vec<String>,
    },
}

/// Returns a number of tasks in words: `1 task`, `3 tasks`.
fn tasks(count: usize) -> String {
    if count == 1 { "1 task".to_owned() } else { format!("{count} tasks") }
}

/// Returns the clause that lists the known ids; empty if there are none.
fn known_ids_suffix(known: &[BatchId]) -> String {
    if known.is_empty() { String::new() } else { format!("; there are {}", known.join(", ")) }
}

/// The reason why a command on a plan or batch fails.
#[derive(Debug, thiserror::Error, Explain)]
pub enum Error {
    /// An error in the source of a plan.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// An error of git.
    #[error(transparent)]
    Git(#[from] proq_git::Error),
    /// An error of a batch.
    #[error(transparent)]
    Batch(#[from] BatchError),
    /// An error of the store.
    #[error(transparent)]
    Store(#[from] proq_store::Error),
    /// An error of a lane.
    #[error(transparent)]
    Lane(#[from] crate::lane::Error),
    /// An error of an agent.
    #[error(transparent)]
    Agent(#[from] crate::agent::Error),
    /// An error of a landing.
    #[error(transparent)]
    Merge(#[from] crate::merge::Error),
    /// An error of a preview.
    #[error(transparent)]
    Preview(#[from] crate::preview::Error),
    /// An error of a child process.
    #[error(transparent)]
    Process(#[from] proq_base::process::Error),
}

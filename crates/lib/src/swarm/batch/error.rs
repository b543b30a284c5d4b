//! Errors of commands on plans and batches, with their hints and exit codes.

use std::path::PathBuf;

use proq_base::explain::{Explain, list_lines};
use proq_base::hint::Hint;
use proq_plan::plan_error::PlanError;
use proq_plan::schedule::workload::WorkloadError;
use proq_store::base::batch_id::BatchId;
use proq_store::base::operation_number::OperationNumber;

/// The reason why git-proq cannot run a command on a batch.
#[derive(Debug, thiserror::Error, Explain)]
pub enum BatchError {
    /// No batch has the given name, or more than one batch matches it.
    #[error("there is no batch '{name}'{}", known_ids_suffix(known))]
    #[hint("list batches: git proq batch status --all")]
    UnknownBatch {
        /// The name or prefix that was given.
        name: String,
        /// The ids of all batches.
        known: Vec<BatchId>,
    },
    /// A batch of the same plan has finished, but its tasks are only on the batch's own branch.
    #[error(
        "cannot run this plan: batch {id} of it has ended and is not merged into {base}; nothing was started"
    )]
    #[hint(with = [hint.clone()])]
    #[hint("or show its tasks: git proq batch status {id}")]
    PreviousBatchUnlanded {
        /// The finished batch.
        id: BatchId,
        /// The base branch of the finished batch.
        base: String,
        /// The hint for landing the finished batch.
        hint: Hint,
    },
    /// No batch was named, and the repository has none.
    #[error("there is no batch yet")]
    #[hint("create a plan to run: git proq plan --init")]
    NoBatches,
    /// No batch was named, and none is running.
    #[error("no batch is running")]
    #[hint("list ended batches: git proq batch status --all")]
    NoOpenBatch,
    /// No batch was named, and several are open.
    #[error("several batches are running: {}", open.join(", "))]
    #[exit(Usage)]
    #[hint(if let Some(first) = open.first(), "name one: git proq {command} {first}")]
    AmbiguousBatch {
        /// The ids of the open batches.
        open: Vec<BatchId>,
        /// The command that was typed.
        command: &'static str,
    },
    /// The tasks on record cannot be scheduled, because their file was edited.
    #[error("cannot read the tasks of batch {id}: {flaw}")]
    #[hint("see them: cat \"$(git rev-parse --git-common-dir)/proq/batches/{id}/tasks.json\"")]
    InvalidTasks {
        /// The id of the batch.
        id: BatchId,
        /// The defect in the tasks.
        flaw: WorkloadError,
    },
    /// The batch has no task of the given name.
    #[error("batch {id} has no task '{name}'")]
    #[hint("list its tasks: git proq batch status {id}")]
    UnknownTask {
        /// The id of the batch.
        id: BatchId,
        /// The task name that was given.
        name: String,
    },
    /// The plan has no task of the given name.
    #[error("this plan has no task '{name}'")]
    #[hint("list its tasks: git proq plan {plan}")]
    UnknownPlanTask {
        /// The task name that was given.
        name: String,
        /// The plan, as it was named.
        plan: String,
    },
    /// git-proq could not start a scheduler for the batch.
    #[error("cannot start the scheduler of batch {id}: {reason}")]
    #[hint("try again: git proq batch resume {id}")]
    SchedulerNotStarted {
        /// The id of the batch.
        id: BatchId,
        /// The reason why the scheduler did not start.
        reason: String,
    },
    /// The scheduler of the batch did not answer a control request in time.
    #[error("the scheduler of batch {id} has not answered in {seconds} s; your request is queued")]
    #[exit(Locked)]
    #[hint("show its progress: git proq batch status {id}")]
    SchedulerTimeout {
        /// The id of the batch.
        id: BatchId,
        /// The seconds that git-proq waited.
        seconds: u64,
    },
    /// A batch of the requested plan has not finished.
    #[error("cannot run this plan: batch {id} of it has not ended ({state}); nothing was started")]
    #[hint("resume it: git proq batch resume {id}")]
    #[hint("or add --new to start another batch beside it")]
    PlanBatchUnfinished {
        /// The id of the unfinished batch.
        id: BatchId,
        /// The state of the unfinished batch.
        state: String,
    },
    /// Neither a task, its plan nor the command line names an agent.
    #[error("cannot start task '{task}': it has no agent; nothing was started")]
    #[hint("add --agent claude, or another of: git proq agents")]
    NoAgent {
        /// The name of the task.
        task: String,
    },
    /// All tasks of the plan are done already.
    #[error("cannot run this plan: all of its tasks are done")]
    #[hint("list them: git proq plan {plan}")]
    AllDone {
        /// The plan, as it was named.
        plan: String,
    },
    /// A plan that came with a repository has commands that the user has not approved.
    #[error("cannot run the plan: you have not approved these commands of {}:{}", path.display(), list_lines(commands))]
    #[hint("read and approve them: git proq approve {approve_args}")]
    UnapprovedCommands {
        /// The file of the plan.
        path: PathBuf,
        /// The command lines that need approval.
        commands: Vec<String>,
        /// The arguments that make `git proq approve` name the plan.
        approve_args: String,
    },
    /// git-proq cannot determine the base branch of a new batch.
    #[error("{reason}, so the base branch of the batch is unknown; nothing was started")]
    #[hint("name the branch with --base; list branches: git branch")]
    UnknownBase {
        /// The reason why the branch is unknown.
        reason: String,
    },
    /// The main checkout has uncommitted changes, which no lane would contain.
    #[error(
        "cannot start the batch: its lanes would lack your uncommitted changes to {files}; nothing was started"
    )]
    #[hint("commit them: git add --all && git commit")]
    #[hint("or add --ignore-dirty to start without them")]
    UncommittedChanges {
        /// The changed files, as one text.
        files: String,
    },
    /// The batch is still running, so the command has to wait.
    #[error("cannot change batch {id}: {}", if *agents { "agents are running in its lanes" } else { "it is running" })]
    #[hint(if *agents, "stop them: git proq batch abort {id}")]
    #[hint(else, "let its running tasks end: git proq batch pause {id}")]
    #[hint(if !agents, "or stop them: git proq batch abort {id}")]
    StillRunning {
        /// The id of the batch.
        id: BatchId,
        /// Whether only agents are still running, without a scheduler.
        agents: bool,
    },
    /// The batch was cleaned up.
    #[error("batch {id} was cleaned up: its lanes and its branch no longer exist")]
    #[hint("list removed lanes: git proq list --all")]
    CleanedUp {
        /// The id of the batch.
        id: BatchId,
    },
    /// The batch has no commits to land.
    #[error("{reason}; nothing was changed")]
    #[hint("show the progress: git proq batch status")]
    NothingToLand {
        /// The reason why nothing can land.
        reason: String,
    },
    /// The batch is strict, and not all of its criteria are known to be met.
    #[error("cannot merge batch {id}, which is strict: {reason}; nothing was changed")]
    #[hint("list the criteria: git proq batch status {id}")]
    #[hint("or merge it anyway: git proq merge --batch {id} --force")]
    CriteriaNotMet {
        /// The id of the batch.
        id: BatchId,
        /// The reason why the criteria do not count as met.
        reason: String,
    },
    /// An unfinished batch builds on the landings to undo.
    #[error("cannot undo that: it merged tasks of batch {id}, which {}; nothing was changed", if *runs { "is running" } else { "has not ended" })]
    #[hint(if *runs, "stop the batch: git proq batch abort {id}")]
    #[hint(else, "resume it: git proq batch resume {id}")]
    #[hint(
        if !runs && let Some(command) = force_command,
        "or undo anyway; the tasks are merged again when the batch resumes: {command}"
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
        "cannot undo only operation {operation}: batch {id} {} and has merged tasks after it; nothing was changed",
        if *runs { "is running" } else { "has not ended" }
    )]
    #[hint("show what it saved: git proq op show {operation}")]
    #[hint(
        if !runs,
        "or undo everything since, with the merged tasks: git proq op restore {} --force",
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
    #[error("cannot clean up batch {id}: {base} lacks {} of it; nothing was changed", tasks(*count))]
    #[hint(with = [hint.clone()])]
    #[hint("or drop them, saved under refs/proq/saved/: git proq cleanup --batch {id} --force")]
    TasksNotLanded {
        /// The id of the batch.
        id: BatchId,
        /// The number of tasks that the base lacks.
        count: usize,
        /// The base branch of the batch.
        base: String,
        /// The hint for landing the tasks on the base.
        hint: Hint,
    },
    /// The base branch of the batch no longer exists.
    #[error("cannot merge batch {id}: its base '{base}' no longer exists")]
    #[hint(with = [hint.clone()])]
    BaseMissing {
        /// The id of the batch.
        id: BatchId,
        /// The missing branch.
        base: String,
        /// The hint for landing the batch on another branch.
        hint: Hint,
    },
    /// The batch's own branch no longer exists.
    #[error(
        "cannot merge batch {id}: its branch no longer exists: {branch}{}; nothing was changed",
        tip.as_ref().map_or_else(String::new, |tip| format!(", which was at {tip}"))
    )]
    #[hint(if let Some(tip) = tip, "create it again: git branch {branch} {tip}")]
    #[hint(else, "show its progress: git proq batch status {id}")]
    BranchMissing {
        /// The id of the batch.
        id: BatchId,
        /// The missing branch.
        branch: String,
        /// The commit that the branch pointed at, if it is known and still in the repository.
        tip: Option<String>,
    },
    /// Lanes of the batch to clean up have work that exists nowhere else.
    #[error("cannot clean up batch {id}: these lanes have work: {}; nothing was removed", lanes.join(", "))]
    #[hint("resume it: git proq batch resume {id}")]
    #[hint("or delete them; their work is saved: git proq cleanup --batch {id} --force")]
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
    if known.is_empty() { String::new() } else { format!("; existing: {}", known.join(", ")) }
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

//! Arguments of `git proq swarm`.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use clap_complete::engine::ArgValueCompleter;

use crate::cli::arguments::candidates::{installed_agent_names, user_branch_names};
use crate::cli::arguments::plan_source::PlanSource;

/// Run a plan of dependent tasks, each in a lane
///
/// Each task is done by an agent in a lane of its own, as soon as what it needs has landed; tasks that are about the same files
/// share a lane, one after the other. What is done lands on the branch of this batch, `proq/batch-ID`, where the tasks that
/// need it start from; `git proq merge --batch ID` lands all of it on the base then, in one verified step. A task that conflicts
/// is given to an agent; one that fails is tried again, and what needs it is skipped.
///
/// The work goes on without this command and without this terminal: `git proq status` shows how far it is, `git proq pause`, `resume` and
/// `abort` are heard from anywhere, and `resume` also goes on with a batch whose process was killed. In its view, Ctrl-C asks
/// whether to pause, and a second one aborts.
///
/// Exits with 4 when a task failed, 3 when one conflicts, 1 when it was paused or aborted.
///
/// Examples:
///     git proq swarm plan.toml
///     git proq swarm auth billing --agent claude --max-parallel 4
///     git proq swarm ROADMAP.md --milestone 0.3 --waves --detach
///     git proq swarm plan.toml --auto-merge --on-task-failure stop-all --budget 20
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
pub(crate) struct Swarm {
    #[command(flatten)]
    pub(crate) source: PlanSource,
    /// Who does tasks that name no agent [default: swarm.agent]
    #[arg(long, value_name = "AGENT", add = ArgValueCompleter::new(installed_agent_names))]
    pub(crate) agent: Option<String>,
    /// The model of tasks that name none [default: agent.model]
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// The branch that all of it is for; the current one without it
    #[arg(long, value_name = "BRANCH", add = ArgValueCompleter::new(user_branch_names))]
    pub(crate) base: Option<String>,
    /// How many lanes may be at work at the same time [default: swarm.max_parallel]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) max_parallel: Option<u16>,
    /// Land what can be done at the same time together, and then go on
    #[arg(long, conflicts_with_all = ["phases", "one_lane"])]
    pub(crate) waves: bool,
    /// Land a phase together, and then go on with the next
    #[arg(long, conflicts_with = "one_lane")]
    pub(crate) phases: bool,
    /// Do the whole plan in one lane, one task after the other, and land it once
    #[arg(long)]
    pub(crate) one_lane: bool,
    /// Which lane a task goes to with --waves and --phases; otherwise most tasks get a lane of their own
    /// [default: swarm.strategy]
    #[arg(long, value_name = "HOW", value_parser = ["affinity-first", "round-robin", "load-balanced"])]
    pub(crate) strategy: Option<String>,
    /// Land tasks on the base itself as they are done, and not on a branch of the batch
    #[arg(long)]
    pub(crate) auto_merge: bool,
    /// When a task fails: skip what needs it, start nothing more, or stop all [default: swarm.on_task_failure]
    #[arg(long, value_name = "WHAT", value_parser = ["skip-dependents", "stop-wave", "stop-all"])]
    pub(crate) on_task_failure: Option<String>,
    /// When a task cannot land: pause or abort [default: swarm.on_merge_failure]
    #[arg(long, value_name = "WHAT", value_parser = ["pause", "abort"])]
    pub(crate) on_merge_failure: Option<String>,
    /// Pause once it has cost this many US dollars [default: swarm.budget]
    #[arg(long, value_name = "USD")]
    pub(crate) budget: Option<String>,
    /// Count it as failed, with exit code 4, unless all criteria of the plan are met in the end; `merge --batch` refuses it then
    /// [default: swarm.strict]
    #[arg(long)]
    pub(crate) strict: bool,
    /// Try this task again, however often it has failed; may be given again
    #[arg(long, value_name = "ID")]
    pub(crate) retry: Vec<String>,
    /// Begin a batch beside one of the same plan that is not over
    #[arg(long)]
    pub(crate) new: bool,
    /// Begin though changes that are not committed would be in no lane
    #[arg(long)]
    pub(crate) ignore_dirty: bool,
    /// Return once it has begun
    #[arg(long)]
    pub(crate) detach: bool,
    /// Keep FILE up to date with how far it is, in JSON
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) progress_file: Option<PathBuf>,
    /// Begin without asking
    #[arg(long, short)]
    pub(crate) yes: bool,
    /// Say what would be run, and run nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

//! Arguments of `git proq swarm`.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use clap_complete::engine::ArgValueCompleter;

use crate::cli::arguments::candidates::{installed_agent_names, user_branch_names};
use crate::cli::arguments::plan_source::PlanSource;

/// Run a plan of dependent tasks, each in a lane
///
/// An agent works on each task in a lane of its own, as soon as the tasks that it needs have landed; tasks
/// that touch the same files share a lane, one after another. Finished tasks land on the branch of the
/// batch, `proq/batch-ID`, from which dependent tasks start. `git proq merge --batch ID` then merges all of
/// it into the base, in one verified step. A task that conflicts is given to an agent; a task that fails is
/// retried, and tasks that need it are skipped.
///
/// The batch continues without this command and this terminal: `git proq status` shows its progress, and
/// `git proq batch pause`, `resume` and `abort` work from anywhere. `resume` also continues a batch whose
/// process was killed. In the live view, Ctrl-C asks whether to pause, and a second Ctrl-C aborts.
///
/// Exits with 4 if a task failed, 3 if one conflicts, 1 if the batch was paused or aborted.
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
    /// Agent for tasks that name none
    ///
    /// [default: swarm.agent]
    #[arg(long, value_name = "AGENT", add = ArgValueCompleter::new(installed_agent_names))]
    pub(crate) agent: Option<String>,
    /// Model for tasks that name none
    ///
    /// [default: agent.model]
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// Branch to work for [default: current branch]
    #[arg(long, value_name = "BRANCH", add = ArgValueCompleter::new(user_branch_names))]
    pub(crate) base: Option<String>,
    /// Maximum number of running lanes
    ///
    /// [default: swarm.max_parallel]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) max_parallel: Option<u16>,
    /// Land each wave of tasks together
    ///
    /// The next wave starts from it.
    #[arg(long, conflicts_with_all = ["phases", "one_lane"])]
    pub(crate) waves: bool,
    /// Land each phase of the plan together
    ///
    /// The next phase starts from it.
    #[arg(long, conflicts_with = "one_lane")]
    pub(crate) phases: bool,
    /// Run the whole plan in one lane, and land it once
    #[arg(long)]
    pub(crate) one_lane: bool,
    /// How to assign tasks to lanes [default: swarm.strategy]
    ///
    /// Only with --waves and --phases; otherwise most tasks have a lane of their own. `affinity-first`: with tasks that
    /// touch the same files; `round-robin`: the next in turn; `load-balanced`: the one with the least work.
    #[arg(long, hide_short_help = true, value_name = "HOW", hide_possible_values = true, value_parser = ["affinity-first", "round-robin", "load-balanced"])]
    pub(crate) strategy: Option<String>,
    /// Land tasks on the base, not on a batch branch
    #[arg(long)]
    pub(crate) auto_merge: bool,
    /// What to do if a task fails
    ///
    /// [default: swarm.on_task_failure] Skip the tasks that need it (skip-dependents), start nothing more (stop-wave), or stop everything (stop-all).
    #[arg(long, value_name = "WHAT", hide_possible_values = true, value_parser = ["skip-dependents", "stop-wave", "stop-all"])]
    pub(crate) on_task_failure: Option<String>,
    /// If a task cannot land: pause or abort [default: swarm.on_merge_failure]
    #[arg(long, hide_short_help = true, value_name = "WHAT", hide_possible_values = true, value_parser = ["pause", "abort"])]
    pub(crate) on_merge_failure: Option<String>,
    /// Pause once the batch has cost USD
    ///
    /// [default: swarm.budget]
    #[arg(long, value_name = "USD")]
    pub(crate) budget: Option<String>,
    /// Fail unless all criteria of the plan are met
    ///
    /// The batch then exits with 4, and `merge --batch` refuses it. [default: swarm.strict]
    #[arg(long)]
    pub(crate) strict: bool,
    /// Retry a failed task [can be repeated]
    ///
    /// However often it failed.
    #[arg(long, value_name = "ID")]
    pub(crate) retry: Vec<String>,
    /// Start a batch beside an open one of the same plan
    #[arg(long, hide_short_help = true)]
    pub(crate) new: bool,
    /// Start although lanes would lack your uncommitted changes
    #[arg(long, hide_short_help = true)]
    pub(crate) ignore_dirty: bool,
    /// Return once the batch has started
    #[arg(long)]
    pub(crate) detach: bool,
    /// Keep FILE up to date with the progress, as JSON
    #[arg(long, hide_short_help = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) progress_file: Option<PathBuf>,
    /// Start without asking
    #[arg(long, short)]
    pub(crate) yes: bool,
    /// Show what would be done, without doing it
    #[arg(long)]
    pub(crate) dry_run: bool,
}

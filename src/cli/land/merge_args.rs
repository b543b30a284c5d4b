//! Arguments of `git proq merge`, with which other commands land lanes too.

use std::path::Path;

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use proq_lib::merge::types::options::{LandingOptions, StackOrder};
use proq_lib::ops::land::merge::MergeRequest;

use super::landing_args::LandingArgs;
use crate::cli::arguments::candidates::{batch_ids, owned_lane_names, user_branch_names};

/// Land lanes on the branch they were cut from
///
/// Merges in memory: no checkout is touched before everything is decided, and then only files that change. Lanes are tried
/// in the order in which most of them land; one that conflicts is put aside with its conflict kept. Landed lanes are
/// cleaned up.
///
/// With verify.commands or --verify, what will land is checked first, in a worktree of its own. A lane with which a
/// check fails that succeeds without it is put aside, and the others land. So is one with which a check of its own fails
/// (`git proq spawn --check`); those of the lanes that land together are run last, whatever --verify says.
///
/// A lane whose agent runs is refused. With --stop its agent is stopped first, as `git proq stop` does it, when the landing's
/// turn has come, and the lane's commits land; what is left uncommitted counts as in any other lane (merge.uncommitted). A
/// lane that was stopped before lands with --stop too when it is named; --all takes those that this landing stops.
///
/// An agent in a window of tmux whose turn has ended may leave a lane that is done: there are commits, and nothing is uncommitted. On a
/// terminal you are asked whether to end its session; elsewhere --stop does.
///
/// Of several attempts at one task --all takes none; `git proq pick` lands one.
///
/// Landings queue up, first come, first served; `git proq queue` shows them.
///
/// With merge.push or --push, the base is pushed then. A push that is refused leaves the landing as it is.
///
/// Exits with 4 when checks failed, 3 when a conflict was captured, 1 when a lane or the push was refused.
///
/// Examples:
///     git proq merge payments
///     git proq merge --all
///     git proq merge --all --verify 'make test'
///     git proq merge --all --dry-run
///     git proq merge payments --stop
///     git proq merge --all --conflict-agent claude --conflict-retries 1
#[derive(Debug, Clone, Default, Args)]
#[command(verbatim_doc_comment)]
#[command(group = clap::ArgGroup::new("which").args(["lanes", "all", "batch"]))]
#[command(
    override_usage = "git proq merge [OPTIONS] [LANE]...\n       git proq merge [OPTIONS] --all\n       git proq merge [OPTIONS] --batch BATCH"
)]
pub(crate) struct Merge {
    /// The lanes [default: the lane of the current folder]
    #[arg(value_name = "LANE", add = ArgValueCompleter::new(owned_lane_names))]
    pub(crate) lanes: Vec<String>,
    /// Every lane that is done
    #[arg(long, conflicts_with_all = ["message", "edit"])]
    pub(crate) all: bool,
    /// All that has landed on the branch of a batch so far, in one step; it lands through a lane of its own, `swarm-BATCH`
    #[arg(long, value_name = "BATCH", conflicts_with = "edit", add = ArgValueCompleter::new(batch_ids))]
    pub(crate) batch: Option<String>,
    /// In which order: best (most of them land), given, fewest-files, oldest
    #[arg(long, value_name = "ORDER", default_value = "best", hide_default_value = true,
          value_parser = ["best", "given", "fewest-files", "oldest"])]
    pub(crate) order: String,
    /// Land all of them or none
    #[arg(long, conflicts_with = "conflict_agent")]
    pub(crate) atomic: bool,
    /// Land on BRANCH instead of each lane's own base
    #[arg(long, value_name = "BRANCH", add = ArgValueCompleter::new(user_branch_names))]
    pub(crate) onto: Option<String>,
    /// Also lanes that failed, were stopped, or bring conflict markers or submodule commits that no remote has, when named; a strict
    /// batch also where not all of its criteria are met
    #[arg(long, short, conflicts_with = "all")]
    pub(crate) force: bool,
    /// Also lanes that delete more than half of the files of their base, where that has at least ten
    #[arg(long)]
    pub(crate) allow_deletions: bool,
    /// Stop the agents that still run in these lanes first, and land what they have committed
    #[arg(long)]
    pub(crate) stop: bool,
    /// How they land
    #[command(flatten)]
    pub(crate) landing_flags: LandingArgs,
    /// Say what would land and what would conflict, and land nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Land them as `spawn --auto-merge` does. Started by a supervisor, with the lane's lock, or by another landing
    #[arg(long, hide = true, value_name = "WHY", value_parser = ["run-ended", "retry"])]
    pub(crate) auto: Option<String>,
    /// Land only what the plan with this fingerprint has shown. Passed by the MCP server
    #[arg(long, hide = true, value_name = "TOKEN", conflicts_with_all = ["dry_run", "batch", "auto"])]
    pub(crate) plan_token: Option<String>,
}

impl Merge {
    /// Returns the request for this landing, by a command that was started in `dir`.
    pub(crate) fn request(&self, dir: &Path) -> MergeRequest {
        let request = self.landing_flags.request(dir);
        let options = LandingOptions {
            all: self.all,
            onto: self.onto.clone(),
            force: self.force,
            allow_deletions: self.allow_deletions,
            order: StackOrder::from_name(&self.order).unwrap_or_default(),
            atomic: self.atomic,
            ..request.options
        };
        MergeRequest { lanes: self.lanes.clone(), stop: self.stop, options, ..request }
    }
}

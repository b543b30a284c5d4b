//! Arguments of `git proq merge`, with which other commands land lanes too.

use std::path::Path;

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use proq_lib::merge::types::options::{LandingOptions, StackOrder};
use proq_lib::ops::land::merge::MergeRequest;

use super::landing_args::LandingArgs;
use super::pull_request_args::PullRequestArgs;
use crate::cli::arguments::candidates::{batch_ids, owned_lane_names, user_branch_names};

/// Merge lanes into their base branch
///
/// Merges are computed in memory: no checkout is touched before everything is decided, and then only files
/// that change. Lanes are tried in the order in which most of them merge. A lane that conflicts is skipped,
/// and its conflict is kept for `git proq resolve`. Merged lanes are deleted. `git proq land` is an alias.
///
/// With verify.commands or --check, the result is checked first, in a worktree of its own. A lane with
/// which a check fails that passes without it is skipped, and the others merge. So is a lane whose own
/// check fails (`git proq spawn --check`); those checks run last, with or without --check.
///
/// A lane whose agent runs is refused. With --stop, its agent is stopped first, as by `git proq stop`, when
/// the merge reaches the front of the queue, and the lane's commits merge; uncommitted changes are treated
/// as in any other lane (merge.uncommitted). With --stop, a named lane that was stopped before merges too;
/// --all takes only lanes that this merge stops.
///
/// An agent in a tmux window whose turn has ended may leave a lane that is done: it has commits and nothing
/// uncommitted. On a terminal, git-proq asks whether to end its session; elsewhere use --stop.
///
/// --all takes no lane of several attempts at one task; `git proq pick` merges one of them.
///
/// Merges wait in a queue, first come, first served; `git proq queue` shows it. With merge.push or --push,
/// the base is pushed afterwards. A refused push does not undo the merge.
///
/// With --pr, nothing is merged: the lane's branch is pushed, by force only after git-proq itself rewrote
/// it, and gh or glab opens a pull request, or updates the open one. Title and body come from the lane's
/// title, its task and the agent's report; -m replaces them. The checks are those of the forge. `git proq
/// show` shows its state, and `git proq cleanup` removes the lane once the request was merged there.
///
/// With --batch, everything that has landed on the branch of the batch so far merges in one step, through a
/// lane of its own, `swarm-BATCH`.
///
/// Exits with 4 if checks failed, 3 if a conflict was kept, 1 if a lane or the push was refused.
///
/// Examples:
///     git proq merge payments
///     git proq merge --all --dry-run
///     git proq merge --all --check 'make test'
///     git proq merge --all
///     git proq merge payments --stop
///     git proq merge payments --pr --draft
///     git proq merge --all --conflict-agent claude --conflict-retries 1
#[derive(Debug, Clone, Default, Args)]
#[command(verbatim_doc_comment, alias = "land")]
#[command(group = clap::ArgGroup::new("which").args(["lanes", "all", "batch"]))]
#[command(
    override_usage = "git proq merge [OPTIONS] [LANE]...\n       git proq merge [OPTIONS] --all\n       git proq merge [OPTIONS] --batch BATCH\n       git proq merge [OPTIONS] --pr [LANE]"
)]
pub(crate) struct Merge {
    /// Lane name [default: lane of the current folder]
    #[arg(value_name = "LANE", add = ArgValueCompleter::new(owned_lane_names))]
    pub(crate) lanes: Vec<String>,
    /// Merge every lane that is done
    #[arg(long, conflicts_with_all = ["message", "edit"])]
    pub(crate) all: bool,
    /// Merge everything on the branch of a batch
    #[arg(long, value_name = "BATCH", conflicts_with = "edit", add = ArgValueCompleter::new(batch_ids))]
    pub(crate) batch: Option<String>,
    /// Merge order: best, given, fewest-files or oldest
    ///
    /// `best` maximizes the number of lanes that merge cleanly.
    #[arg(long, hide_short_help = true, value_name = "ORDER", default_value = "best", hide_default_value = true, hide_possible_values = true,
          value_parser = ["best", "given", "fewest-files", "oldest"])]
    pub(crate) order: String,
    /// Merge all of them or none
    #[arg(long, conflicts_with = "conflict_agent")]
    pub(crate) atomic: bool,
    /// Merge into BRANCH instead of each lane's base
    #[arg(long, value_name = "BRANCH", add = ArgValueCompleter::new(user_branch_names))]
    pub(crate) onto: Option<String>,
    /// Merge named lanes that failed or were stopped
    ///
    /// Also lanes that contain conflict markers or submodule commits that no remote has, and a strict batch whose
    /// criteria are not all met.
    #[arg(long, short_alias = 'f', conflicts_with = "all")]
    pub(crate) force: bool,
    /// Allow lanes that delete more than half of all files
    ///
    /// Of a base that has at least ten.
    #[arg(long, hide_short_help = true)]
    pub(crate) allow_deletions: bool,
    /// Stop running agents of these lanes first
    #[arg(long)]
    pub(crate) stop: bool,
    /// How they land
    #[command(flatten)]
    pub(crate) landing_flags: LandingArgs,
    /// Pull request instead of a merge
    #[command(flatten)]
    pub(crate) pull_request: PullRequestArgs,
    /// Show what would be done, without doing it
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Merge as `spawn --auto-merge` does; started by a supervisor or by another merge
    #[arg(long, hide = true, value_name = "WHY", value_parser = ["run-ended", "retry"])]
    pub(crate) auto: Option<String>,
    /// Merge only what the plan with this fingerprint showed; passed by the MCP server
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

//! Arguments of `git proq merge --pr`.

use clap::Args;

/// Arguments of `merge --pr`.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct PullRequestArgs {
    /// Push the lane and open a pull request instead of merging
    ///
    /// Or update the one that is open. By gh or glab (merge.pr_command).
    #[arg(long, conflicts_with_all = ["all", "batch", "atomic", "order", "strategy", "squash", "rebase",
          "edit", "signoff", "no_verify", "conflict_agent", "no_conflict_agent", "conflict_retries", "push",
          "no_push", "autostash", "no_autostash", "no_cleanup", "check", "no_checks", "ignore_base_failures", "jobs", "lock_timeout",
          "auto", "plan_token"])]
    pub(crate) pr: bool,
    /// Open the pull request as a draft
    #[arg(long, hide_short_help = true, requires = "pr")]
    pub(crate) draft: bool,
    /// Add a label to the pull request [can be repeated]
    #[arg(long, hide_short_help = true, value_name = "NAME", requires = "pr")]
    pub(crate) label: Vec<String>,
}

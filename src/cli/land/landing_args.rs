//! Shared clap arguments of the commands that land lanes.

use std::io::IsTerminal;
use std::num::ParseIntError;
use std::path::Path;
use std::time::Duration;

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use proq_lib::merge::types::options::LandingOptions;
use proq_lib::ops::land::merge::conflict_agent::ConflictAgentChoice;
use proq_lib::ops::land::merge::{MergeRequest, PushChoice};
use proq_lib::types::{MergeStrategy, WaitLimit};

use crate::cli::arguments::candidates::installed_agent_names;
use crate::cli::terminal::ui;

/// How lanes land.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct LandingArgs {
    /// How to merge: merge, rebase or squash
    ///
    /// [default: merge.strategy]
    #[arg(long, value_name = "HOW", hide_possible_values = true, value_parser = ["merge", "rebase", "squash"])]
    pub(crate) strategy: Option<String>,
    /// Land each lane as one commit
    ///
    /// The same as --strategy squash.
    #[arg(long, conflicts_with_all = ["strategy", "rebase"])]
    pub(crate) squash: bool,
    /// Land each lane commit by commit
    ///
    /// The same as --strategy rebase.
    #[arg(long, conflicts_with = "strategy")]
    pub(crate) rebase: bool,
    /// Commit message of the landing, for one lane
    ///
    /// [default: merge.message]
    #[arg(long, short, value_name = "MSG")]
    pub(crate) message: Option<String>,
    /// Edit the commit messages in your editor
    #[arg(long, conflicts_with = "message")]
    pub(crate) edit: bool,
    /// Add your Signed-off-by trailer
    ///
    /// [default: merge.signoff]
    #[arg(long)]
    pub(crate) signoff: bool,
    /// Skip git's pre-merge-commit and commit-msg hooks
    #[arg(long, hide_short_help = true)]
    pub(crate) no_verify: bool,
    /// Let AGENT resolve conflicts
    ///
    /// [default: merge.conflict_agent]
    #[arg(long, value_name = "AGENT", add = ArgValueCompleter::new(installed_agent_names))]
    pub(crate) conflict_agent: Option<String>,
    /// Do not use a conflict agent (overrides merge.conflict_agent)
    #[arg(long, hide_short_help = true, conflicts_with_all = ["conflict_agent", "conflict_retries"])]
    pub(crate) no_conflict_agent: bool,
    /// Attempts after a refused resolution [default: merge.conflict_retries]
    #[arg(long, hide_short_help = true, value_name = "N")]
    pub(crate) conflict_retries: Option<u32>,
    /// Push each base that changed, as `git push` would
    #[arg(long, conflicts_with = "no_push")]
    pub(crate) push: bool,
    /// Do not push (overrides merge.push)
    #[arg(long, hide_short_help = true)]
    pub(crate) no_push: bool,
    /// Save your changes that are in the way, and restore them after the merge
    ///
    /// Uncommitted changes in a checkout of the base, as with `git merge --autostash`. Where they conflict with
    /// what was merged, they stay in a snapshot, and the exit code is 3. [default: merge.autostash]
    #[arg(long, hide_short_help = true, conflicts_with = "no_autostash")]
    pub(crate) autostash: bool,
    /// Do not save changes that are in the way (overrides merge.autostash)
    #[arg(long, hide_short_help = true)]
    pub(crate) no_autostash: bool,
    /// Keep lanes after merging
    #[arg(long)]
    pub(crate) no_cleanup: bool,
    /// Command that must pass [can be repeated]
    ///
    /// A line for the shell, which runs on the result of the merge.
    #[arg(long, alias = "verify", value_name = "CMD", value_hint = clap::ValueHint::CommandString)]
    pub(crate) check: Vec<String>,
    /// Merge without running any checks
    #[arg(long, conflicts_with = "check")]
    pub(crate) no_checks: bool,
    /// Merge although a check fails on the base too, without that check [default: verify.base_failures]
    #[arg(long, hide_short_help = true, conflicts_with = "no_checks")]
    pub(crate) ignore_base_failures: bool,
    /// Run up to N checks in parallel
    #[arg(long, hide_short_help = true, short, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) jobs: Option<u16>,
    /// Give up after waiting SECONDS in the merge queue
    #[arg(long, hide_short_help = true, value_name = "SECONDS", value_parser = parse_seconds)]
    pub(crate) lock_timeout: Option<Duration>,
}

impl LandingArgs {
    /// Returns the request for a landing of no lanes with these flags, by a command that was started in `dir`.
    pub(crate) fn request(&self, dir: &Path) -> MergeRequest {
        let conflict_agent = match self.conflict_agent.as_deref() {
            Some("") => ConflictAgentChoice::Nobody,
            None if self.no_conflict_agent => ConflictAgentChoice::Nobody,
            None => ConflictAgentChoice::Setting,
            Some(agent) => ConflictAgentChoice::Agent(agent.to_owned()),
        };
        let push = match (self.push, self.no_push) {
            (_, true) => PushChoice::Keep,
            (true, _) => PushChoice::Push,
            _ => PushChoice::Setting,
        };
        let options = LandingOptions {
            strategy: match (self.squash, self.rebase) {
                (true, _) => Some(MergeStrategy::Squash),
                (_, true) => Some(MergeStrategy::Rebase),
                _ => self.strategy.as_deref().and_then(MergeStrategy::from_name),
            },
            signoff: self.signoff,
            skip_hooks: self.no_verify,
            keep_lanes: self.no_cleanup,
            autostash: match (self.autostash, self.no_autostash) {
                (_, true) => Some(false),
                (true, _) => Some(true),
                _ => None,
            },
            extra_checks: self.check.clone(),
            no_checks: self.no_checks,
            ignore_base_failures: self.ignore_base_failures,
            jobs: self.jobs.map(usize::from),
            queue_wait: lock_wait_limit(self.lock_timeout),
            ..LandingOptions::default()
        };
        MergeRequest {
            message: self.message.clone(),
            conflict_agent,
            conflict_retries: self.conflict_retries,
            current_dir: dir.to_owned(),
            push,
            may_push_prompt: std::io::stdin().is_terminal() && ui::stderr_is_terminal(),
            options,
            ..MergeRequest::default()
        }
    }
}

/// Converts `--lock-timeout` to a limit. Without it a landing waits for its turn forever.
fn lock_wait_limit(limit: Option<Duration>) -> WaitLimit {
    match limit {
        None => WaitLimit::Forever,
        Some(Duration::ZERO) => WaitLimit::NoWait,
        Some(limit) => WaitLimit::AtMost(limit),
    }
}

/// Parses a whole number of seconds.
fn parse_seconds(text: &str) -> Result<Duration, ParseIntError> {
    text.parse().map(Duration::from_secs)
}

//! Arguments of `git proq plan`.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use clap_complete::engine::ArgValueCompleter;
use proq_base::config::settings::SwarmSettings;
use proq_lib::swarm::ops::plan_view::simulated_options;
use proq_plan::schedule::options::BatchOptions;

use crate::cli::arguments::candidates::installed_agent_names;
use crate::cli::arguments::plan_source::PlanSource;

/// Show or generate a plan of tasks
///
/// Shows the waves in which the tasks can run, which tasks share a lane because they touch the same files,
/// how many lanes run at a time, and the critical path. Nothing runs and nothing changes. Scopes that are
/// patterns are compared by the files of HEAD.
///
/// Task folders are tasks/AREA/ID-NAME/PROMPT.md (`swarm.tasks`, `swarm.areas`): `all` means all of them,
/// the name of an area those of the area, and a path one folder or one PROMPT.md. Of a Markdown roadmap,
/// one milestone is read: a heading with items such as `- [ ] this` below it; items marked `- [x]` are
/// done, and headings below the milestone are groups. --init writes a TOML plan that explains itself,
/// --schema prints its JSON schema, and --toml converts any other plan.
///
/// With --ai, an agent writes the plan. It reads the current commit in a temporary worktree and changes
/// nothing. The plan is shown and kept as a draft. --feedback revises it as often as you like, in the same
/// conversation if the agent supports that, and -o writes it as a TOML plan. A draft must be approved
/// before it runs, and again after each change. Without DRAFT, the only draft is meant.
///
/// Dependencies that `git proq deps --agent` found and you approved are used, and marked.
///
/// Examples:
///     git proq plan plan.toml
///     git proq plan --init
///     git proq plan --ai "payments by card" --from ROADMAP.md
///     git proq plan --feedback "the migration goes first" -o plan.toml
///     git proq plan auth billing
///     git proq plan ROADMAP.md --milestone 0.3
///     git proq plan plan.toml --json | jq '.waves'
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
#[command(
    override_usage = "git proq plan [OPTIONS] SOURCE...\n       git proq plan --ai GOAL [--from FILE] [--agent AGENT] [-o FILE]\n       git proq plan --feedback TEXT [-o FILE] [DRAFT]\n       git proq plan --approve [DRAFT]\n       git proq plan -o FILE [DRAFT|SOURCE]\n       git proq plan --drafts"
)]
pub(crate) struct PlanArgs {
    #[command(flatten)]
    pub(crate) source: PlanSource,
    /// Maximum number of running lanes
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) max_parallel: u16,
    /// Print the plan as TOML
    #[arg(long, conflicts_with = "init")]
    pub(crate) toml: bool,
    /// Write a plan to start from ('-' prints it)
    #[arg(
        long,
        value_name = "FILE",
        num_args = 0..=1,
        default_missing_value = "plan.toml",
        conflicts_with = "sources",
        value_hint = ValueHint::FilePath
    )]
    pub(crate) init: Option<String>,
    /// Print the JSON schema of a TOML plan, for editors
    #[arg(long, hide_short_help = true, conflicts_with_all = ["sources", "init", "toml"])]
    pub(crate) schema: bool,
    /// Plans by agents
    #[command(flatten)]
    pub(crate) draft_args: DraftArgs,
}

impl PlanArgs {
    /// Returns the batch options with which the plan is simulated, from the settings and `--max-parallel`.
    pub(crate) fn batch_options(&self, settings: &SwarmSettings) -> BatchOptions {
        simulated_options(settings, usize::from(self.max_parallel))
    }
}

/// What is asked of an agent, or done with what it made.
#[derive(Debug, Args)]
#[command(next_help_heading = "Plans by agents")]
pub(crate) struct DraftArgs {
    /// Let an agent write a plan for GOAL
    #[arg(
        long,
        value_name = "GOAL",
        conflicts_with_all = ["sources", "format", "milestone", "init", "schema", "toml"]
    )]
    pub(crate) ai: Option<String>,
    /// With --ai, a file to follow: a roadmap, notes, an issue
    #[arg(long, value_name = "FILE", requires = "ai", value_hint = ValueHint::FilePath)]
    pub(crate) from: Option<PathBuf>,
    /// With --ai, the agent [default: an installed one]
    ///
    /// It must be an agent that can be kept from changing files.
    #[arg(long, value_name = "AGENT", requires = "ai", add = ArgValueCompleter::new(installed_agent_names))]
    pub(crate) agent: Option<String>,
    /// With --ai, the model to use
    #[arg(long, value_name = "MODEL", requires = "ai")]
    pub(crate) model: Option<String>,
    /// Show what would be done, without doing it
    #[arg(long, requires = "ai")]
    pub(crate) dry_run: bool,
    /// Let the agent revise DRAFT by TEXT
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true,
          conflicts_with_all = ["ai", "format", "milestone", "init", "schema", "toml"])]
    pub(crate) feedback: Option<String>,
    /// Write the plan to FILE, as TOML
    #[arg(long, short = 'o', value_name = "FILE", conflicts_with_all = ["init", "schema", "toml"],
          value_hint = ValueHint::FilePath)]
    pub(crate) save: Option<PathBuf>,
    /// With -o, replace an existing FILE (its content is kept)
    #[arg(long, requires = "save")]
    pub(crate) force: bool,
    /// Allow DRAFT to run, after you have read it
    #[arg(long, conflicts_with_all = ["ai", "feedback", "save", "format", "milestone", "init", "schema", "toml"])]
    pub(crate) approve: bool,
    /// With --approve, do not ask
    #[arg(long, short, requires = "approve")]
    pub(crate) yes: bool,
    /// List drafts, last changed first
    #[arg(long, conflicts_with_all = ["ai", "feedback", "save", "approve", "sources", "init", "schema", "toml"])]
    pub(crate) drafts: bool,
}

impl DraftArgs {
    /// Returns whether the flags request more than showing a plan.
    pub(crate) fn requests_draft_action(&self) -> bool {
        self.ai.is_some() || self.feedback.is_some() || self.save.is_some() || self.approve || self.drafts
    }
}

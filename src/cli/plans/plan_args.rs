//! Arguments of `git proq plan`.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use clap_complete::engine::ArgValueCompleter;
use proq_base::config::settings::SwarmSettings;
use proq_lib::swarm::ops::plan_view::simulated_options;
use proq_plan::schedule::options::BatchOptions;

use crate::cli::arguments::candidates::installed_agent_names;
use crate::cli::arguments::plan_source::PlanSource;

/// Show what a plan of tasks comes to, or have an agent make one
///
/// Shown is in which waves the tasks can be done, which of them are about the same files and so share a lane, one after the
/// other, how many lanes that makes at a time, and which way through takes longest. Nothing is run and nothing is changed.
/// Scopes that are patterns are compared by the files of HEAD.
///
/// Task folders lie at tasks/AREA/ID-NAME/PROMPT.md (`swarm.tasks`, `swarm.areas`): `all` names them all, an area's name those
/// of that area, and a path a folder or a single PROMPT.md. Of a roadmap in Markdown one milestone is read, a heading with
/// items like `- [ ] this` below it; those of `- [x]` are done, and headings below it make groups. A plan in TOML is described by the file that --init writes, and by --schema. --toml writes any other plan as one.
///
/// With --ai an agent makes the plan: it looks at the commit that is checked out, in a worktree that goes afterwards, and
/// changes nothing. What it came to is shown, and kept as a draft that --feedback changes as often as you like, in the same
/// conversation where the agent can go on in it. -o writes it as a plan in TOML. A draft is not run before you approve it;
/// one that changes has to be approved again. Without DRAFT, the only one is meant.
///
/// Dependencies that `git proq deps --agent` found missing, and that you have approved, are used; they are marked.
///
/// Examples:
///     git proq plan --init
///     git proq plan plan.toml
///     git proq plan auth billing
///     git proq plan ROADMAP.md --milestone 0.3
///     git proq plan plan.toml --json | jq '.waves'
///     git proq plan --ai "payments by card" --from ROADMAP.md
///     git proq plan --feedback "the migration goes first" -o plan.toml
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
#[command(
    override_usage = "git proq plan [OPTIONS] SOURCE...\n       git proq plan --ai GOAL [--from FILE] [--agent AGENT] [-o FILE]\n       git proq plan --feedback TEXT [-o FILE] [DRAFT]\n       git proq plan --approve [DRAFT]\n       git proq plan -o FILE [DRAFT|SOURCE]\n       git proq plan --drafts"
)]
pub(crate) struct PlanArgs {
    #[command(flatten)]
    pub(crate) source: PlanSource,
    /// How many lanes may be at work at the same time
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) max_parallel: u16,
    /// Print it as a plan in TOML
    #[arg(long, conflicts_with = "init")]
    pub(crate) toml: bool,
    /// Write a plan to begin with; `-` prints it
    #[arg(
        long,
        value_name = "FILE",
        num_args = 0..=1,
        default_missing_value = "plan.toml",
        conflicts_with = "sources",
        value_hint = ValueHint::FilePath
    )]
    pub(crate) init: Option<String>,
    /// Print the JSON schema of a plan in TOML, for editors
    #[arg(long, conflicts_with_all = ["sources", "init", "toml"])]
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
    /// Have an agent make a plan for GOAL
    #[arg(
        long,
        value_name = "GOAL",
        conflicts_with_all = ["sources", "format", "milestone", "init", "schema", "toml"]
    )]
    pub(crate) ai: Option<String>,
    /// With --ai, a file that the plan is to follow: a roadmap, notes, an issue
    #[arg(long, value_name = "FILE", requires = "ai", value_hint = ValueHint::FilePath)]
    pub(crate) from: Option<PathBuf>,
    /// With --ai, the agent; without it, the first that is installed and can be kept from changing things
    #[arg(long, value_name = "AGENT", requires = "ai", add = ArgValueCompleter::new(installed_agent_names))]
    pub(crate) agent: Option<String>,
    /// With --ai, the model that it is asked to use
    #[arg(long, value_name = "MODEL", requires = "ai")]
    pub(crate) model: Option<String>,
    /// With --ai, say what would be started and what it would be told, and start nothing
    #[arg(long, requires = "ai")]
    pub(crate) dry_run: bool,
    /// Have the agent change DRAFT as TEXT says
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true,
          conflicts_with_all = ["ai", "format", "milestone", "init", "schema", "toml"])]
    pub(crate) feedback: Option<String>,
    /// Write the plan to FILE, in TOML
    #[arg(long, short = 'o', value_name = "FILE", conflicts_with_all = ["init", "schema", "toml"],
          value_hint = ValueHint::FilePath)]
    pub(crate) save: Option<PathBuf>,
    /// With -o, replace FILE if it is there; what was in it is kept
    #[arg(long, requires = "save")]
    pub(crate) force: bool,
    /// Let DRAFT be run, once you have read it
    #[arg(long, conflicts_with_all = ["ai", "feedback", "save", "format", "milestone", "init", "schema", "toml"])]
    pub(crate) approve: bool,
    /// With --approve, without a question
    #[arg(long, short, requires = "approve")]
    pub(crate) yes: bool,
    /// List the drafts, the one changed last first
    #[arg(long, conflicts_with_all = ["ai", "feedback", "save", "approve", "sources", "init", "schema", "toml"])]
    pub(crate) drafts: bool,
}

impl DraftArgs {
    /// Returns whether the flags request more than showing a plan.
    pub(crate) fn requests_draft_action(&self) -> bool {
        self.ai.is_some() || self.feedback.is_some() || self.save.is_some() || self.approve || self.drafts
    }
}

//! Plan sources on the command line, and the warnings that every command prints on reading one.

use clap::{Args, ValueEnum, ValueHint};
use proq_base::explain::shell_quote;
use proq_base::terminal_text;
use proq_lib::lane::Project;
use proq_lib::swarm::planner::draft_error::DraftError;
use proq_lib::swarm::planner::{draft_session, drafts, proposed_needs};
use proq_plan::plan_format::PlanFormat;
use proq_plan::plan_source;
use proq_plan::plan_source::{LoadedPlan, PlanRequest};
use proq_plan::task_folders::layout::TaskLayout;
use proq_store::Store;

use crate::cli::invocation::context::CommandContext;
use crate::cli::invocation::failure::Failure;
use crate::cli::invocation::usage_error::UsageError;

/// Where a plan is.
#[derive(Debug, Args)]
pub(crate) struct PlanSource {
    /// A plan in TOML, a roadmap in Markdown, stories in YAML, task folders (`all`, areas, folders, one PROMPT.md), or a draft
    #[arg(value_name = "SOURCE", value_hint = ValueHint::AnyPath)]
    sources: Vec<String>,
    /// What it is written in, where its name does not tell
    #[arg(long, value_name = "FORM")]
    format: Option<FormatArg>,
    /// The milestone of a roadmap; without it, the first with something to do
    #[arg(long, value_name = "TITLE")]
    milestone: Option<String>,
}

/// The forms by the words for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FormatArg {
    /// A plan in TOML
    Toml,
    /// A folder for each task
    Folders,
    /// A roadmap in Markdown
    Roadmap,
    /// Stories in YAML
    Stories,
}

impl PlanSource {
    /// Creates a plan source from names given to a flag of another command, such as `git proq approve
    /// --plan`. No milestone is selected.
    pub(crate) fn from_names(sources: &[String], format: Option<FormatArg>) -> PlanSource {
        PlanSource { sources: sources.to_vec(), format, milestone: None }
    }

    /// Reads the plan and prints its warnings. Approved dependencies that an agent found missing are added.
    pub(crate) fn read_plan(
        &self,
        context: &CommandContext,
        project: &Project,
        example: &'static str,
    ) -> Result<LoadedPlan, Failure> {
        Ok(proposed_needs::add_approved_needs(
            project,
            self.read_without_proposals(context, project, example)?,
        )?)
    }

    /// Reads the plan and prints its warnings, without dependencies that an agent found missing.
    pub(crate) fn read_without_proposals(
        &self,
        context: &CommandContext,
        project: &Project,
        example: &'static str,
    ) -> Result<LoadedPlan, Failure> {
        if self.sources.is_empty() {
            return Err(UsageError::MissingArgument { problem: "no plan was named", example }.into());
        }
        let loaded = self.read_silently(context, project)?;
        context.ui.warn_each(&loaded.plan.source_notes);
        Ok(loaded)
    }

    /// Reads the plan without printing warnings, for a second read. Dependencies that an agent found missing
    /// are not added.
    pub(crate) fn read_silently(
        &self,
        context: &CommandContext,
        project: &Project,
    ) -> Result<LoadedPlan, Failure> {
        let format = self.format.map(|form| match form {
            FormatArg::Toml => PlanFormat::Toml,
            FormatArg::Folders => PlanFormat::Folders,
            FormatArg::Roadmap => PlanFormat::Roadmap,
            FormatArg::Stories => PlanFormat::Stories,
        });
        let repo = &project.repo;
        let worktree = repo.current_worktree().unwrap_or(repo.command_dir());
        let worktree = std::fs::canonicalize(worktree).unwrap_or_else(|_| worktree.to_owned());
        let settings = &project.settings;
        let task_layout = TaskLayout {
            top: &worktree,
            tasks_dir: &settings.swarm.tasks_folder,
            areas: &settings.swarm.areas,
        };
        let milestone = self.milestone.as_deref();
        Ok(plan_source::read_plan(&PlanRequest {
            base_dir: &context.dir,
            sources: &self.sources,
            format,
            milestone,
            layout: task_layout,
        })?)
    }

    /// Reads a plan to show it. The source may also be the name of a draft that is not approved.
    pub(crate) fn read_plan_or_draft(
        &self,
        context: &CommandContext,
        project: &Project,
        example: &'static str,
    ) -> Result<LoadedPlan, Failure> {
        let Some(name) = self.draft_name(context, &project.store) else {
            return self.read_plan(context, project, example);
        };
        let (draft, _) = draft_session::refresh_draft(project, name)?;
        let draft_plan = draft.plan.ok_or_else(|| DraftError::NoPlan {
            name: name.to_owned(),
            why: draft.record.invalid_answer_reason.as_deref().map(terminal_text::escape_line),
        })?;
        Ok(proposed_needs::add_approved_needs(project, draft_plan.loaded)?)
    }

    /// Returns the name of the draft that the source means; none where the source is a file or has a format.
    pub(crate) fn draft_name(&self, context: &CommandContext, store: &Store) -> Option<&str> {
        let [name] = self.sources.as_slice() else { return None };
        let names_other_source = self.format.is_some() || context.dir.join(name).exists();
        (!names_other_source && drafts::draft_exists(store, name)).then_some(name)
    }

    /// Returns the arguments with which `git proq approve` reads the same plan.
    pub(crate) fn approve_args(&self) -> String {
        let sources = self.sources.iter().map(|source| format!(" --plan {}", shell_quote(source)));
        let format_value = self.format.as_ref().and_then(ValueEnum::to_possible_value);
        sources.chain(format_value.map(|form| format!(" --format {}", form.get_name()))).collect()
    }

    /// Returns the milestone that was given.
    pub(crate) fn milestone(&self) -> Option<&str> {
        self.milestone.as_deref()
    }

    /// Returns the sources as they were given.
    pub(crate) fn source_names(&self) -> &[String] {
        &self.sources
    }
}

//! Plan sources on the command line.

use std::path::Path;

use clap::{Args, ValueEnum, ValueHint};
use proq_lib::swarm::ops::named_plan::NamedPlan;
use proq_plan::plan_format::PlanFormat;

use crate::cli::invocation::context::CommandContext;
use crate::cli::invocation::usage_error::UsageError;

/// Where a plan is.
#[derive(Debug, Args)]
pub(crate) struct PlanSource {
    /// Plan: a file (TOML, Markdown, YAML), task folders, or a draft
    ///
    /// Task folders are `all`, names of areas, folders, or one PROMPT.md.
    #[arg(value_name = "SOURCE", value_hint = ValueHint::AnyPath)]
    sources: Vec<String>,
    /// Plan format: toml, folders, roadmap or stories
    #[arg(long, value_name = "FORM", hide_possible_values = true)]
    format: Option<FormatArg>,
    /// Milestone of a roadmap [default: first open one]
    #[arg(long, value_name = "TITLE")]
    milestone: Option<String>,
}

/// The forms by the words for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FormatArg {
    /// Plan in TOML
    Toml,
    /// One folder per task
    Folders,
    /// Roadmap in Markdown
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

    /// Returns the plan that was named, with paths relative to the folder `dir`.
    pub(crate) fn named_plan(&self, dir: &Path) -> NamedPlan {
        NamedPlan {
            sources: self.sources.clone(),
            format: self.format.map(|form| match form {
                FormatArg::Toml => PlanFormat::Toml,
                FormatArg::Folders => PlanFormat::Folders,
                FormatArg::Roadmap => PlanFormat::Roadmap,
                FormatArg::Stories => PlanFormat::Stories,
            }),
            milestone: self.milestone.clone(),
            dir: dir.to_owned(),
        }
    }

    /// Returns the plan that was named. `example` is a complete command line, for the hint.
    ///
    /// # Errors
    /// [`UsageError::MissingArgument`] if none was named.
    pub(crate) fn required_plan(
        &self,
        context: &CommandContext,
        example: &'static str,
    ) -> Result<NamedPlan, UsageError> {
        match self.sources.is_empty() {
            true => Err(UsageError::MissingArgument { problem: "no plan given", example }),
            false => Ok(self.named_plan(&context.dir)),
        }
    }
}

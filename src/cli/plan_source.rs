//! Owns naming a plan on the command line, and what every command that reads one says of it.

use clap::{Args, ValueEnum, ValueHint};

use super::{Failure, Mistake, Session};
use crate::lane::Project;
use crate::swarm::{self, Asked, Format, Found, Home};

/// Where a plan is.
#[derive(Debug, Args)]
pub(crate) struct PlanSource {
    /// A plan in TOML, a roadmap in Markdown, stories in YAML, or task folders: `all`, areas, folders, one PROMPT.md
    #[arg(value_name = "SOURCE", value_hint = ValueHint::AnyPath)]
    sources: Vec<String>,
    /// What it is written in, where its name does not tell
    #[arg(long, value_name = "FORM")]
    format: Option<Form>,
    /// The milestone of a roadmap; without it, the first with something to do
    #[arg(long, value_name = "TITLE")]
    milestone: Option<String>,
}

/// The forms by the words for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Form {
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
    /// Reads the plan, and says what is odd about it.
    pub(super) fn read(
        &self,
        session: &Session,
        project: &Project,
        example: &'static str,
    ) -> Result<Found, Failure> {
        if self.sources.is_empty() {
            return Err(Mistake::Missing { what: "no plan was named", example }.into());
        }
        let format = self.format.map(|form| match form {
            Form::Toml => Format::Toml,
            Form::Folders => Format::Folders,
            Form::Roadmap => Format::Roadmap,
            Form::Stories => Format::Stories,
        });
        let repo = &project.repo;
        let top = repo.here().unwrap_or(repo.home());
        let top = std::fs::canonicalize(top).unwrap_or_else(|_| top.to_owned());
        let settings = &project.settings;
        let home = Home { top: &top, tasks: &settings.tasks, areas: &settings.areas };
        let milestone = self.milestone.as_deref();
        let found =
            swarm::read(&Asked { dir: &session.dir, sources: &self.sources, format, milestone, home })?;
        for remark in &found.plan.remarks {
            session.ui.warn(remark.to_string());
        }
        Ok(found)
    }

    /// The milestone that was named.
    pub(super) fn milestone(&self) -> Option<&str> {
        self.milestone.as_deref()
    }

    /// The sources, as they were named.
    pub(super) fn names(&self) -> &[String] {
        &self.sources
    }
}

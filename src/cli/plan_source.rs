//! Owns naming a plan on the command line, and what every command that reads one says of it.

use clap::{Args, ValueEnum, ValueHint};

use super::{Failure, Mistake, Session};
use crate::explain::word;
use crate::harmless;
use crate::lane::Project;
use crate::swarm::{self, Asked, DraftError, Format, Found, Home, drafts, planner};

/// Where a plan is.
#[derive(Debug, Args)]
pub(crate) struct PlanSource {
    /// A plan in TOML, a roadmap in Markdown, stories in YAML, task folders (`all`, areas, folders, one PROMPT.md), or a draft
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
pub(crate) enum Form {
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
    /// A plan that something else than this command's own arguments names.
    pub(super) fn named(sources: &[String], format: Option<Form>) -> PlanSource {
        PlanSource { sources: sources.to_vec(), format, milestone: None }
    }

    /// Reads the plan, and says what is odd about it. Dependencies that an agent found missing, and a person approved, are in it.
    pub(super) fn read(
        &self,
        session: &Session,
        project: &Project,
        example: &'static str,
    ) -> Result<Found, Failure> {
        Ok(swarm::apply(project, self.read_as_it_stands(session, project, example)?)?)
    }

    /// The same without those.
    pub(super) fn read_as_it_stands(
        &self,
        session: &Session,
        project: &Project,
        example: &'static str,
    ) -> Result<Found, Failure> {
        if self.sources.is_empty() {
            return Err(Mistake::Missing { what: "no plan was named", example }.into());
        }
        let found = self.read_without_a_word(session, project)?;
        session.ui.warn_of(&found.plan.remarks);
        Ok(found)
    }

    /// The same once more: what is odd about it was said before.
    pub(super) fn read_without_a_word(&self, session: &Session, project: &Project) -> Result<Found, Failure> {
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
        let home = Home { top: &top, tasks: &settings.swarm.tasks, areas: &settings.swarm.areas };
        let milestone = self.milestone.as_deref();
        Ok(swarm::read(&Asked { dir: &session.dir, sources: &self.sources, format, milestone, home })?)
    }

    /// The same for looking, where it may also be the name of a draft that nobody has approved.
    pub(super) fn read_or_draft(
        &self,
        session: &Session,
        project: &Project,
        example: &'static str,
    ) -> Result<Found, Failure> {
        let Some(name) = self.draft(session, project) else { return self.read(session, project, example) };
        let (draft, _) = planner::catch_up(project, name)?;
        let drafted = draft.plan.ok_or_else(|| DraftError::NoPlan {
            name: name.to_owned(),
            why: draft.record.wrong.as_deref().map(harmless::line),
        })?;
        Ok(swarm::apply(project, drafted.found)?)
    }

    /// The draft that is meant, where nothing else is called so.
    pub(super) fn draft(&self, session: &Session, project: &Project) -> Option<&str> {
        let [name] = self.sources.as_slice() else { return None };
        let is_other = self.format.is_some() || session.dir.join(name).exists();
        (!is_other && drafts::exists(project, name)).then_some(name)
    }

    /// The arguments with which `git proq approve` reads the same plan.
    pub(super) fn to_approve(&self) -> String {
        let sources = self.sources.iter().map(|source| format!(" --plan {}", word(source)));
        let form = self.format.as_ref().and_then(ValueEnum::to_possible_value);
        sources.chain(form.map(|form| format!(" --format {}", form.get_name()))).collect()
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

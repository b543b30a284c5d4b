//! A plan as a person names it, and its reading.

use std::path::PathBuf;

use proq_base::explain::shell_quote;
use proq_base::terminal_text;
use proq_plan::plan_format::PlanFormat;
use proq_plan::plan_source;
use proq_plan::plan_source::{LoadedPlan, PlanRequest};
use proq_plan::task_folders::layout::TaskLayout;
use proq_store::Store;

use crate::lane::Project;
use crate::ops::error::Error;
use crate::swarm::planner::draft_error::DraftError;
use crate::swarm::planner::{draft_session, drafts, proposed_needs};

/// Maximum number of remarks about one source that are warnings; the others are only counted.
const MAX_SOURCE_WARNINGS: usize = 20;

/// Sources of a plan, or the name of a draft.
#[derive(Debug, Clone, Default)]
pub struct NamedPlan {
    /// Files, folders and areas of one plan, or the name of one draft.
    pub sources: Vec<String>,
    /// Format of the sources; none to detect it.
    pub format: Option<PlanFormat>,
    /// Milestone of a roadmap; none for the first that is open.
    pub milestone: Option<String>,
    /// Folder from which relative paths are resolved.
    pub dir: PathBuf,
}

impl NamedPlan {
    /// Reads the plan with the missing dependencies that an agent found and the user approved. Warns of what
    /// the reader has remarked.
    ///
    /// # Errors
    /// Fails when there is no such plan or it is invalid.
    pub fn read(&self, project: &Project) -> Result<LoadedPlan, Error> {
        Ok(proposed_needs::add_approved_needs(project, self.read_without_proposals(project)?)?)
    }

    /// Reads the plan as its sources state it. Warns of what the reader has remarked.
    ///
    /// # Errors
    /// Fails when there is no such plan or it is invalid.
    pub fn read_without_proposals(&self, project: &Project) -> Result<LoadedPlan, Error> {
        let loaded = self.read_silently(project)?;
        let notes = &loaded.plan.source_notes;
        notes.iter().take(MAX_SOURCE_WARNINGS).for_each(|note| project.listener.warn(note.to_string()));
        if notes.len() > MAX_SOURCE_WARNINGS {
            project.listener.warn(format!("and {} more like these", notes.len() - MAX_SOURCE_WARNINGS));
        }
        Ok(loaded)
    }

    /// Reads the plan as its sources state it, without warnings, for a second read.
    ///
    /// # Errors
    /// Fails when there is no such plan or it is invalid.
    pub fn read_silently(&self, project: &Project) -> Result<LoadedPlan, Error> {
        let repo = &project.repo;
        let worktree = repo.current_worktree().unwrap_or(repo.command_dir());
        let worktree = std::fs::canonicalize(worktree).unwrap_or_else(|_| worktree.to_owned());
        Ok(plan_source::read_plan(&PlanRequest {
            base_dir: &self.dir,
            sources: &self.sources,
            format: self.format,
            milestone: self.milestone.as_deref(),
            layout: TaskLayout {
                top: &worktree,
                tasks_dir: &project.settings.swarm.tasks_folder,
                areas: &project.settings.swarm.areas,
            },
        })?)
    }

    /// Reads the plan; if the source is the name of a draft, its plan, approved or not.
    ///
    /// # Errors
    /// As [`NamedPlan::read`]; [`DraftError::NoPlan`] for a draft without a plan.
    pub fn read_or_draft(&self, project: &Project) -> Result<LoadedPlan, Error> {
        let Some(name) = self.draft_name(&project.store) else { return self.read(project) };
        let draft = draft_session::refresh_draft(project, name)?.draft;
        let draft_plan = draft.plan.ok_or_else(|| DraftError::NoPlan {
            name: name.to_owned(),
            why: draft.record.invalid_answer_reason.as_deref().map(terminal_text::escape_line),
        })?;
        Ok(proposed_needs::add_approved_needs(project, draft_plan.loaded)?)
    }

    /// Returns the name of the draft that the source means; none where the source is a file or has a format.
    pub fn draft_name(&self, store: &Store) -> Option<&str> {
        let [name] = self.sources.as_slice() else { return None };
        let names_other_source = self.format.is_some() || self.dir.join(name).exists();
        (!names_other_source && drafts::draft_exists(store, name)).then_some(name)
    }

    /// Returns the arguments with which `git proq approve` reads the same plan, each after a space.
    pub fn approve_args(&self) -> String {
        let sources = self.sources.iter().map(|source| format!(" --plan {}", shell_quote(source)));
        sources.chain(self.format.map(|format| format!(" --format {}", format.name()))).collect()
    }

    /// Returns the sources in one line, for messages.
    pub(super) fn display_name(&self) -> String {
        terminal_text::escape_line(&self.sources.join(" "))
    }
}

//! Checks that a batch's work must pass to land: those that the user had configured when the scheduler
//! started. An agent of the batch could otherwise change what its own work has to pass.

use std::path::Path;

use proq_base::config::layers::Layers;
use proq_base::config::settings::Settings;
use proq_base::diagnostics::Listener;
use proq_store::records::git_guard::SettingsFile;

use crate::lane::Project;

/// The user's own checks at the start of a scheduler, and the state of the main checkout's `proq.toml` then.
#[derive(Debug, Clone)]
pub(super) struct InitialChecks {
    layers: Layers,
    settings_file: SettingsFile,
}

impl InitialChecks {
    /// Captures the checks as they are configured in `project` now.
    ///
    /// # Errors
    /// Fails when the commit of the main checkout cannot be read.
    pub(super) fn capture(project: &Project) -> Result<InitialChecks, crate::lane::Error> {
        Ok(InitialChecks {
            layers: project.layers.clone(),
            settings_file: project.settings_file_state(&project.layers)?,
        })
    }

    /// Opens the repository that contains `dir` for landings that pass these checks and those of the branch.
    ///
    /// # Errors
    /// Describes why no work may land now. Either the repository cannot be opened, or `proq.toml` in the main
    /// checkout was edited after the scheduler started. An edit that was reverted without a commit counts,
    /// too.
    pub(super) fn open_project(&self, dir: &Path) -> Result<Project, String> {
        let to_text = |e: crate::lane::Error| e.to_string();
        let mut project = Project::open(dir, Listener::silent()).map_err(to_text)?;
        let current_file = project.settings_file_state(&project.layers).map_err(to_text)?;
        if !project.is_same_settings_file(&self.settings_file, &current_file).map_err(to_text)? {
            return Err(
                "proq.toml in the main checkout has changed since the batch started: restore it, or use the new one: git proq batch abort, then git proq batch resume"
                    .into(),
            );
        }
        project.layers = project.layers.with_user_checks_from(&self.layers);
        project.settings = Settings::from_layers(&project.layers);
        Ok(project)
    }
}

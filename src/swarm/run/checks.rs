//! Owns the checks that a batch lands by: those that the user had set when its scheduler began. An agent of the batch may change
//! what its work would have to pass.

use std::path::Path;

use crate::config::{Layers, Settings};
use crate::lane::Project;
use crate::note::Listener;
use crate::store::records::SettingsFile;

/// The user's own checks at one time, and the main checkout's `proq.toml` of then.
#[derive(Debug, Clone)]
pub(super) struct ChecksThen {
    layers: Layers,
    file: SettingsFile,
}

impl ChecksThen {
    /// As they are in `project`.
    ///
    /// # Errors
    /// When the commit of the main checkout cannot be read.
    pub(super) fn of(project: &Project) -> Result<ChecksThen, crate::lane::Error> {
        Ok(ChecksThen { layers: project.layers.clone(), file: project.settings_file(&project.layers)? })
    }

    /// Opens the repository that `dir` lies in for landings that pass these checks, and those of the branch.
    ///
    /// # Errors
    /// Why nothing may land now, in words: it cannot be opened, or `proq.toml` was edited since, or an edit of it taken away, and not
    /// committed.
    pub(super) fn open(&self, dir: &Path) -> Result<Project, String> {
        let words = |e: crate::lane::Error| e.to_string();
        let mut project = Project::open(dir, Listener::silent()).map_err(words)?;
        let file = project.settings_file(&project.layers).map_err(words)?;
        if !project.is_same_settings_file(&self.file, &file).map_err(words)? {
            return Err(
                "proq.toml in the main checkout is not what it was when the batch began: commit it as it was, put it back, or have it count by git proq abort and git proq resume"
                    .into(),
            );
        }
        project.layers = project.layers.with_own_checks_of(&self.layers);
        project.settings = Settings::from_layers(&project.layers);
        Ok(project)
    }
}

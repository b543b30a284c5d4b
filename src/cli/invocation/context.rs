//! Context of one command: start folder, output options, and opening of the repository.

use std::path::{Path, PathBuf};

use proq_base::diagnostics::Listener;
use proq_base::explain::Exit;
use proq_lib::lane::{Project, recovery};
use serde::Serialize;

use super::failure::Failure;
use crate::cli::terminal::ui;
use crate::cli::terminal::ui::Ui;

/// Number of parent folders up to which a path is shown relative to the start folder.
const MAX_PARENTS_SHOWN: usize = 2;

/// Result of a command: the exit code, or the failure to report.
pub(crate) type CommandResult = Result<Exit, Failure>;

/// Context of a command, unrelated to an agent's session: the start folder and the output options.
pub(crate) struct CommandContext {
    /// The folder that the command was started in, or the one given with `-C`.
    pub(crate) dir: PathBuf,
    /// Output of the command.
    pub(crate) ui: Ui,
}

impl CommandContext {
    /// Returns a path as it is shown: relative to the start folder if it is near, below `~` or absolute otherwise.
    pub(crate) fn display_path(&self, path: &Path) -> String {
        let dir = self.dir.canonicalize().unwrap_or_else(|_| self.dir.clone());
        let home = || path.strip_prefix(std::env::home_dir()?).ok().map(Path::to_owned);
        let up = dir.ancestors().take(MAX_PARENTS_SHOWN + 1).enumerate();
        let mut relative = up.filter_map(|(n, parent)| {
            let below = path.strip_prefix(parent).ok().filter(|_| parent.parent().is_some())?;
            Some(Path::new(&"../".repeat(n)).join(below))
        });
        match (relative.next(), home()) {
            (Some(near), _) if near.as_os_str().is_empty() => ".".to_owned(),
            (Some(near), _) => near.display().to_string(),
            (None, Some(below)) => format!("~/{}", below.display()),
            (None, None) => path.display().to_string(),
        }
    }

    /// Opens the repository for reading. Recovers what crashed processes left behind first; a failed recovery
    /// is only a warning.
    pub(crate) fn project(&self) -> Result<Project, Failure> {
        let project = Project::open(&self.dir, self.ui.listener())?;
        apply_color_settings(&project);
        recovery::recover_before_reading(&project);
        Ok(project)
    }

    /// Opens the repository for reading, as [`CommandContext::project`] does, but an invalid value of a setting is
    /// only a warning, and nothing is recovered then.
    pub(crate) fn project_to_read(&self) -> Result<Project, Failure> {
        let project = Project::open_to_read(&self.dir, self.ui.listener())?;
        apply_color_settings(&project);
        if project.layers.ignored_values().is_empty() {
            recovery::recover_before_reading(&project);
        }
        Ok(project)
    }

    /// Opens the repository for a command that restores or stops something, and so has to work whatever
    /// `proq.toml` contains: an invalid one is only a warning. Otherwise as [`CommandContext::project_for_write`].
    pub(crate) fn project_to_recover(&self) -> Result<Project, Failure> {
        proq_base::interrupt::defer_signals();
        let project = Project::open_to_recover(&self.dir, self.ui.listener())?;
        ui::apply_color_setting(project.repo.setting_text("color.ui").as_deref());
        Ok(project)
    }

    /// Opens the repository for changes. Ctrl-C is deferred to safe points. The command fails if what crashed
    /// processes left behind cannot be recovered.
    pub(crate) fn project_for_write(&self) -> Result<Project, Failure> {
        proq_base::interrupt::defer_signals();
        let project = Project::open_recovered(&self.dir, self.ui.listener())?;
        apply_color_settings(&project);
        Ok(project)
    }

    /// Applies the color settings of the repository that the command was started in, for a command that works without
    /// one.
    pub(crate) fn apply_color_settings(&self) {
        if let Ok(project) = Project::open_to_read(&self.dir, Listener::silent()) {
            apply_color_settings(&project);
        }
    }

    /// Prints the result of a successful command: as JSON with `--json`, otherwise by `print_text`.
    pub(crate) fn show<T: Serialize>(&self, result: T, print_text: impl FnOnce(&Self, T)) -> CommandResult {
        match self.ui.json {
            true => self.ui.print_json(result),
            false => print_text(self, result),
        }
        Ok(Exit::Success)
    }
}

/// Applies git's settings about colors: `color.proq`, as git's own commands have one each, or else `color.ui`.
fn apply_color_settings(project: &Project) {
    let setting = |key| project.repo.setting_text(key);
    ui::apply_color_setting(setting("color.proq").or_else(|| setting("color.ui")).as_deref());
}

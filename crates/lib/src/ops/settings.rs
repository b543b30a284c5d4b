//! Changes of settings in git's configuration.

use proq_base::config::key::Key;
use proq_base::config::value_format::ValueFormat;
use proq_base::explain::{Explain, shell_quote};
use proq_git::repository::settings::SettingsFile;
use serde::Serialize;

use super::error::Error;
use crate::lane::Project;

/// Reason why a setting cannot be changed.
#[derive(Debug, thiserror::Error, Explain)]
pub enum SettingError {
    /// No setting has that name.
    #[error("there is no setting '{name}'")]
    #[exit(Usage)]
    #[hint(if let Some(similar) = similar, "did you mean {similar}? see what it does: git proq config describe {similar}")]
    #[hint("see all settings: git proq config list")]
    Unknown {
        /// The given name.
        name: String,
        /// A setting with a similar name.
        similar: Option<&'static str>,
    },
    /// The value does not have the setting's format.
    #[error("cannot set {key} to '{value}': it takes {format}")]
    #[exit(Usage)]
    #[hint("see what it does: git proq config describe {key}")]
    InvalidValue {
        /// Name of the setting.
        key: String,
        /// The given value.
        value: String,
        /// Description of the accepted format.
        format: String,
    },
    /// The file has no value for the setting.
    #[error("cannot unset {key}: it is not set with git config {option}")]
    #[hint("see where its value comes from: git proq config describe {key}")]
    NotSet {
        /// Name of the setting.
        key: String,
        /// Option of `git config` that selects the file.
        option: &'static str,
    },
}

/// Setting to change.
#[derive(Debug, Clone)]
pub struct SettingRequest {
    /// Name of the setting, or `hook.EVENT`.
    pub key: String,
    /// New values; several only for a list. None removes the setting from the file.
    pub values: Vec<String>,
    /// File to change.
    pub file: SettingsFile,
}

/// Change of a setting; it serializes to the JSON output.
#[derive(Debug, Serialize)]
pub struct SettingChange {
    /// Name of the setting.
    pub key: String,
    /// Key in git's configuration.
    pub git_key: String,
    /// Effective value before; a list has an item a line.
    pub before: String,
    /// Effective value afterwards; a list has an item a line.
    pub value: String,
    /// Source of the effective value afterwards, such as `git config` or `$PROQ_MERGE_STRATEGY`.
    pub origin: String,
    /// Whether nothing was changed.
    pub dry_run: bool,
    #[serde(skip)]
    written_value: String,
    #[serde(skip)]
    request: SettingRequest,
}

/// A setting or the commands of a hook, by name.
pub(crate) struct NamedSetting {
    key: Option<&'static Key>,
    /// Name of the setting.
    pub(crate) name: String,
}

impl NamedSetting {
    /// Finds a setting by the name that a user gave.
    ///
    /// # Errors
    /// [`SettingError::Unknown`].
    pub(crate) fn find(name: &str) -> Result<NamedSetting, SettingError> {
        let name = name.strip_prefix("proq.").unwrap_or(name);
        let key = Key::find(name);
        let is_hook =
            name.strip_prefix("hook.").is_some_and(|event| event.contains('.') || event.starts_with("pre-"));
        match key {
            Some(key) => Ok(NamedSetting { key: Some(key), name: key.name.to_owned() }),
            None if is_hook => Ok(NamedSetting { key: None, name: name.to_owned() }),
            None => {
                let similar = Key::closest_match(name).map(|key| key.name);
                Err(SettingError::Unknown { name: name.to_owned(), similar })
            }
        }
    }

    fn format(&self) -> ValueFormat {
        self.key.map_or(ValueFormat::Commands, |key| key.format)
    }

    fn git_key(&self) -> String {
        format!("proq.{}", self.key.map_or_else(|| self.name.clone(), Key::git_name))
    }

    /// Returns the effective value and its source.
    fn current(&self, project: &Project) -> (String, String) {
        if let Some(key) = self.key {
            let (value, origin) = project.layers.get(key);
            return (key.display_value(value), origin.to_string());
        }
        let hook = self.name.strip_prefix("hook.").and_then(|event| project.layers.hook_commands(event));
        hook.map_or_else(Default::default, |(value, origin)| (value.clone(), origin.to_string()))
    }

    /// Refuses values that the setting does not take.
    fn check(&self, values: &[String]) -> Result<(), SettingError> {
        let is_list =
            matches!(self.format(), ValueFormat::Commands | ValueFormat::AreaFolders | ValueFormat::Patterns);
        let invalid = |value: String| SettingError::InvalidValue {
            key: self.name.clone(),
            value,
            format: self.format().describe(),
        };
        if values.len() > 1 && !is_list {
            return Err(invalid(values.join(" ")));
        }
        match values.iter().find(|value| !self.format().accepts(value)) {
            Some(value) => Err(invalid(value.clone())),
            None => Ok(()),
        }
    }
}

/// Opens a file of git's settings in the user's editor on the terminal.
///
/// # Errors
/// Fails if git or the editor fails.
pub fn edit(project: &Project, file: SettingsFile) -> Result<(), Error> {
    Ok(project.repo.edit_settings(file)?)
}

/// Checks a change of a setting, and makes none.
///
/// # Errors
/// [`SettingError`].
pub fn plan(project: &Project, request: SettingRequest) -> Result<SettingChange, Error> {
    let setting = NamedSetting::find(&request.key)?;
    setting.check(&request.values)?;
    let git_key = setting.git_key();
    if request.values.is_empty() && !project.repo.has_setting_in(request.file, &git_key)? {
        return Err(SettingError::NotSet { key: setting.name, option: request.file.option() }.into());
    }
    let (before, origin) = setting.current(project);
    let value = request.values.join("\n");
    let key = setting.name;
    let written_value = value.clone();
    Ok(SettingChange { key, git_key, before, value, origin, dry_run: true, written_value, request })
}

impl SettingChange {
    /// Writes the change to git's configuration. `reopen` opens the repository again, to read the value that counts
    /// afterwards.
    ///
    /// # Errors
    /// Fails if git cannot write its configuration.
    pub fn execute(
        self,
        project: &Project,
        reopen: impl FnOnce() -> Result<Project, crate::lane::Error>,
    ) -> Result<SettingChange, Error> {
        project.repo.write_setting(self.request.file, &self.git_key, &self.request.values)?;
        let (value, origin) = NamedSetting::find(&self.key)?.current(&reopen()?);
        Ok(SettingChange { value, origin, dry_run: false, ..self })
    }

    /// Returns whether the setting was or would be removed from the file.
    #[must_use]
    pub fn is_removal(&self) -> bool {
        self.request.values.is_empty()
    }

    /// Returns whether the written value does not count, because a stronger layer has another one.
    #[must_use]
    pub fn is_overridden(&self) -> bool {
        !self.dry_run && !self.is_removal() && self.origin != "git config"
    }

    /// Returns the value that was or would be written; a list has an item a line.
    #[must_use]
    pub fn written_value(&self) -> &str {
        &self.written_value
    }

    /// Returns the command of git that makes the same change.
    #[must_use]
    pub fn git_command(&self) -> String {
        let option = self.request.file.option();
        match self.request.values.first() {
            None => format!("git config {option} --unset-all {}", self.git_key),
            Some(value) => format!("git config {option} {} {}", self.git_key, shell_quote(value)),
        }
    }
}

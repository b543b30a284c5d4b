//! Changes of settings in git's configuration.

use std::path::Path;

use proq_base::config::key::Key;
use proq_base::config::layers::{Layers, Origin};
use proq_base::config::value_format::ValueFormat;
use proq_base::explain::{Explain, shell_quote};
use proq_git as git;
use proq_git::Repo;
use proq_git::repository::settings::{GlobalSettings, SettingsFile};
use serde::Serialize;

use super::error::Error;
use crate::agent::profiles::allow_pattern::AllowPattern;
use crate::event::trigger::is_hook_event;
use crate::lane::Project;

/// Setting with the patterns of the commands that agents may run.
const ALLOW_SETTING: &str = "agent.allow";

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
        similar: Option<String>,
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
    /// A value of `agent.allow` is not a pattern of commands.
    #[error("cannot set {ALLOW_SETTING} to '{pattern}': {reason}")]
    #[exit(Usage)]
    #[hint("see what it does: git proq config describe {ALLOW_SETTING}")]
    InvalidPattern {
        /// The given value.
        pattern: String,
        /// Reason why it is not a pattern, as the end of a sentence.
        reason: String,
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
    /// What overrides the written value, so that it has no effect here: a variable, or a file of git's
    /// configuration; none if the value counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overridden_by: Option<String>,
    /// Other files of git's configuration whose items a list has as well, separated by commas; none if the value is
    /// the one that was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extended_by: Option<String>,
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
                let similar = Key::closest_match(name).map(|key| key.name.to_owned());
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
        let hook = self.hook_event().and_then(|event| project.layers.hook_commands(event));
        hook.map_or_else(Default::default, |(value, origin)| (value.clone(), origin.to_string()))
    }

    /// Returns the effective value as its layer has it; empty for a hook without commands.
    fn raw_value<'l>(&self, layers: &'l Layers) -> &'l str {
        match (self.key, self.hook_event()) {
            (Some(key), _) => layers.get(key).0,
            (None, event) => {
                event.and_then(|event| layers.hook_commands(event)).map_or("", |(value, _)| value)
            }
        }
    }

    fn hook_event(&self) -> Option<&str> {
        self.name.strip_prefix("hook.").filter(|_| self.key.is_none())
    }

    /// Refuses values that the setting does not take, and any value of a hook of an event that does not exist.
    fn check(&self, values: &[String]) -> Result<(), SettingError> {
        if let Some(event) = self.hook_event().filter(|event| !values.is_empty() && !is_hook_event(event)) {
            let folded = event.to_lowercase();
            let similar = is_hook_event(&folded).then(|| format!("hook.{folded}"));
            return Err(SettingError::Unknown { name: self.name.clone(), similar });
        }
        let allow_patterns = values.iter().filter(|_| self.name == ALLOW_SETTING).flat_map(|v| v.lines());
        for pattern in allow_patterns.filter(|line| !line.trim().is_empty()) {
            if let Err(reason) = AllowPattern::parse(pattern) {
                return Err(SettingError::InvalidPattern { pattern: pattern.to_owned(), reason });
            }
        }
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
pub fn plan(project: &Project, request: &SettingRequest) -> Result<SettingChange, Error> {
    let setting = NamedSetting::find(&request.key)?;
    let is_set = |git_key: &str| Ok(project.repo.has_setting_in(request.file, git_key)?);
    let (before, origin) = setting.current(project);
    SettingChange::plan(setting, before, origin, &is_set, request)
}

/// Returns whether a folder is in no repository: only the user's own settings can be changed there.
#[must_use]
pub fn is_outside_repository(dir: &Path) -> bool {
    matches!(Repo::discover(dir), Err(git::Error::NoRepository { .. }))
}

/// Opens the user's file of git's settings in the user's editor, from a folder in no repository.
///
/// # Errors
/// Fails if git or the editor fails.
pub fn edit_outside_repository(dir: &Path) -> Result<(), Error> {
    Ok(GlobalSettings::find(dir)?.edit()?)
}

/// Changes a setting in the user's file of git's settings, from a folder in no repository.
///
/// # Errors
/// [`SettingError`], and errors of git.
pub fn change_outside_repository(
    dir: &Path,
    request: &SettingRequest,
    dry_run: bool,
) -> Result<SettingChange, Error> {
    let (setting, global) = (NamedSetting::find(&request.key)?, GlobalSettings::find(dir)?);
    let before = global.values(&setting.git_key())?.join("\n");
    let default = setting.key.map_or("", |key| key.default).to_owned();
    let is_set = |_: &str| Ok(!before.is_empty());
    let shown = if before.is_empty() { default.clone() } else { before.clone() };
    let mut change = SettingChange::plan(setting, shown, "git config".to_owned(), &is_set, request)?;
    if !dry_run {
        global.write(&change.git_key, &request.values)?;
        change.dry_run = false;
    }
    if change.is_removal() {
        (change.value, change.origin) = (default, Origin::Default.to_string());
    }
    Ok(change)
}

impl SettingChange {
    /// Checks a change of a setting with its effective value and that value's source. `is_set` returns whether the
    /// file has a value for a key of git.
    fn plan(
        setting: NamedSetting,
        before: String,
        origin: String,
        is_set: &dyn Fn(&str) -> Result<bool, Error>,
        request: &SettingRequest,
    ) -> Result<SettingChange, Error> {
        setting.check(&request.values)?;
        let git_key = setting.git_key();
        if request.values.is_empty() && !is_set(&git_key)? {
            return Err(SettingError::NotSet { key: setting.name, option: request.file.option() }.into());
        }
        let value = request.values.join("\n");
        Ok(SettingChange {
            key: setting.name,
            git_key,
            before,
            written_value: value.clone(),
            value,
            origin,
            overridden_by: None,
            extended_by: None,
            dry_run: true,
            request: request.clone(),
        })
    }

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
        let (setting, project) = (NamedSetting::find(&self.key)?, reopen()?);
        let (value, origin) = setting.current(&project);
        let overridden_by = match origin.as_str() {
            _ if self.is_removal() => None,
            "git config" if self.is_effective(setting.raw_value(&project.layers)) => None,
            "git config" => project.repo.setting_origin(&self.git_key)?,
            other => Some(other.to_owned()),
        };
        let is_extended = overridden_by.is_none()
            && !self.is_removal()
            && setting.raw_value(&project.layers) != self.counting_value();
        let others = match is_extended {
            true => project.repo.other_list_origins(self.request.file, &self.git_key)?,
            false => Vec::new(),
        };
        let extended_by = (!others.is_empty()).then(|| others.join(", "));
        Ok(SettingChange { value, origin, overridden_by, extended_by, dry_run: false, ..self })
    }

    /// Returns whether the written values are in the effective one. A list also has the items of other files.
    fn is_effective(&self, effective: &str) -> bool {
        let written = self.counting_value();
        effective == written
            || effective.starts_with(&format!("{written}\n"))
            || effective.ends_with(&format!("\n{written}"))
            || effective.contains(&format!("\n{written}\n"))
    }

    /// Returns the written value as far as it counts: an empty item restarts a list.
    fn counting_value(&self) -> &str {
        let value = self.written_value.as_str();
        value.rfind("\n\n").map(|at| &value[at + 2..]).or_else(|| value.strip_prefix('\n')).unwrap_or(value)
    }

    /// Returns whether the setting was or would be removed from the file.
    #[must_use]
    pub fn is_removal(&self) -> bool {
        self.request.values.is_empty()
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

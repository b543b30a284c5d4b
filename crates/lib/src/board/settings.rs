//! The settings and their values, as `git proq config list` shows them.

use proq_base::config::key::Key;
use proq_base::config::keys::KEYS;
use proq_base::config::layers::Origin;
use proq_base::config::value_format::ValueFormat;
use serde::Serialize;

use crate::lane::Project;
use crate::lane::inspection::landing_checks::default_base_layers;
use crate::ops::error::Error;
use crate::ops::settings::{NamedSetting, SettingError};

/// All settings. It serializes to the JSON output.
#[derive(Debug, Serialize)]
pub struct SettingList {
    /// The settings, by name.
    pub settings: Vec<SettingRow>,
}

/// A setting, in the form of the JSON output.
#[derive(Debug, Serialize)]
pub struct SettingRow {
    /// Name of the setting.
    pub key: String,
    /// Current value; a list has an item a line.
    pub value: String,
    /// Source of the value.
    pub origin: String,
    /// Value that applies when the setting is not set.
    pub default: &'static str,
    /// Format of the setting's values, as text.
    pub form: String,
    /// Whether the repository's `proq.toml` may set it.
    #[serde(rename = "by_repository")]
    pub settable_by_repository: bool,
    /// What the setting does, in one sentence.
    pub about: String,
}

impl SettingRow {
    /// Returns the names of the setting in git's configuration and in the environment; none for a hook, which has no
    /// variable.
    #[must_use]
    pub fn other_names(&self) -> Option<(String, String)> {
        let key = Key::find(&self.key)?;
        Some((format!("proq.{}", key.git_name()), key.env_var_name()))
    }
}

impl SettingList {
    /// Keeps only the settings whose values do not come from the built-in defaults.
    pub fn retain_changed(&mut self) {
        self.settings.retain(|row| row.origin != Origin::Default.to_string());
    }

    /// Returns the setting with this name, as the user gave it.
    ///
    /// # Errors
    /// [`SettingError::Unknown`].
    pub fn find(self, name: &str) -> Result<SettingRow, SettingError> {
        let wanted = NamedSetting::find(name)?.name;
        let row = self.settings.into_iter().find(|row| row.key == wanted);
        row.ok_or(SettingError::Unknown { name: wanted, similar: None })
    }

    /// Reads the settings of a repository, with the checks of the default base branch.
    ///
    /// # Errors
    /// Fails when the `proq.toml` of the branch cannot be read or is invalid.
    pub fn load(project: &Project) -> Result<SettingList, Error> {
        let layers = default_base_layers(project)?;
        let keys = KEYS.iter().map(|key| {
            let (value, origin) = layers.get(key);
            SettingRow {
                key: key.name.to_owned(),
                value: key.display_value(value),
                origin: origin.to_string(),
                default: key.default,
                form: key.format.describe(),
                settable_by_repository: key.settable_by_repository,
                about: key.summary.to_owned(),
            }
        });
        let hooks = layers.hook_events().filter_map(|event| {
            let (value, origin) = layers.hook_commands(event)?;
            Some(SettingRow {
                key: format!("hook.{event}"),
                value: value.clone(),
                origin: origin.to_string(),
                default: "",
                form: ValueFormat::Commands.describe(),
                settable_by_repository: true,
                about: format!("what is run at {event}"),
            })
        });
        let mut settings: Vec<SettingRow> = keys.chain(hooks).collect();
        settings.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(SettingList { settings })
    }
}

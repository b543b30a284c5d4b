//! The settings and their values, as `git proq config list` shows them.

use proq_base::config::keys::KEYS;
use proq_base::config::value_format::ValueFormat;
use serde::Serialize;

use crate::lane::Project;
use crate::lane::inspection::landing_checks::default_base_layers;
use crate::ops::error::Error;

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
    default: &'static str,
    /// Format of the setting's values, as text.
    form: String,
    /// Whether the repository's `proq.toml` may set it.
    #[serde(rename = "by_repository")]
    settable_by_repository: bool,
    /// What the setting does, in one sentence.
    pub about: String,
}

impl SettingList {
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

//! Lookup of settings by name.

use super::KEYS;
use crate::config::key::Key;
use crate::config::value_format::ValueFormat;
use crate::config::value_format::mask_url;
use crate::explain::closest_match_above;

/// Minimum similarity (0 to 1) at which a setting is suggested for an unknown name. It is high because many
/// settings have similar names.
const MIN_SIMILARITY: f64 = 0.85;

impl Key {
    /// Finds a setting by name. Ignores `-`, `_` and case, since git's own keys cannot contain `_`.
    pub fn find(name: &str) -> Option<&'static Key> {
        // git-proq itself uses exact names, some hundred times before any command starts.
        KEYS.iter().find(|k| k.name == name).or_else(|| {
            let normalize = |text: &str| text.replace(['-', '_'], "").to_lowercase();
            let normalized = normalize(name);
            KEYS.iter().find(|k| normalize(k.name) == normalized)
        })
    }

    /// Returns the setting with the most similar name, for a suggestion about an unknown name.
    pub fn closest_match(name: &str) -> Option<&'static Key> {
        let (group, short_name) = name.split_once('.')?;
        let group_names = || KEYS.iter().filter_map(|k| k.name.strip_prefix(group)?.strip_prefix('.'));
        match group_names().next() {
            Some(_) => Key::find(&format!(
                "{group}.{}",
                closest_match_above(MIN_SIMILARITY, short_name, group_names())?
            )),
            None => Key::find(closest_match_above(MIN_SIMILARITY, name, KEYS.iter().map(|k| k.name))?),
        }
    }

    /// Returns a value as it may be displayed: a secret URL is masked.
    pub fn display_value(&self, value: &str) -> String {
        if self.format == ValueFormat::SecretUrl { mask_url(value) } else { value.to_owned() }
    }
}

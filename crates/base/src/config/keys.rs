//! All settings, sorted by name, and their lookup by name.

use std::sync::LazyLock;

use super::key::Key;
use super::settings::KEY_GROUPS;
use super::value_format::{ValueFormat, mask_url};
use crate::explain::closest_match_above;

/// All settings, sorted by name.
pub static KEYS: LazyLock<Vec<Key>> = LazyLock::new(|| {
    let mut keys = KEY_GROUPS.concat();
    keys.sort_by_key(|key| key.name);
    keys
});

/// Minimum similarity (0 to 1) at which a setting is suggested for an unknown name. It is high because many
/// settings have similar names.
const MIN_SIMILARITY: f64 = 0.85;

impl Key {
    /// Finds a setting by name. Ignores `-`, `_` and case, since git's own keys cannot contain `_`.
    pub fn find(name: &str) -> Option<&'static Key> {
        // Most names are exact.
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

#[cfg(test)]
mod tests;

//! Agent profiles: the built-in ones, merged with those in the user's own configuration.

use std::collections::BTreeMap;
use std::path::Path;

use proq_base::config::layers::Layers;
use proq_base::explain::closest_match;
use proq_stream::base::price::{Price, Prices};
use serde::Deserialize;
use toml::{Table, Value};

use super::profile::Profile;
use crate::agent::Error;

/// TOML text of the built-in profiles.
const BUILT_IN_PROFILES: &str = include_str!("profiles.toml");

/// Name of the table of profiles in the configuration.
const PROFILES_TABLE: &str = "agents";

/// Name of the table of prices in the configuration.
const PRICES_TABLE: &str = "prices";

/// Maximum length of a chain of profiles that follow each other by `like`.
const MAX_LIKE_DEPTH: usize = 8;

/// Loads every known profile by name: the built-in ones, changed and extended by `[agents.NAME]` in the
/// user's own file.
///
/// # Errors
/// [`Error::InvalidProfile`] with the file and the key that is invalid.
pub fn load_profiles(layers: &Layers) -> Result<BTreeMap<String, Profile>, Error> {
    let built_in = parse_built_in_profiles();
    let Some((user_table, path)) = layers.user_table(PROFILES_TABLE) else {
        return parse_profiles(&built_in, Path::new(""));
    };
    let names: Vec<&String> = built_in.keys().chain(user_table.keys()).collect();
    let mut all = Table::new();
    for name in names {
        all.insert(
            name.clone(),
            Value::Table(resolve_profile_table(&built_in, user_table, name, path, MAX_LIKE_DEPTH)?),
        );
    }
    parse_profiles(&all, path)
}

/// Returns the profile of an agent: a known one, or the default one for any other program.
pub(crate) fn find_profile(layers: &Layers, agent: &str) -> Result<Profile, Error> {
    Ok(load_profiles(layers)?.remove(agent).unwrap_or_else(|| Profile::from_program(agent)))
}

/// Returns the known agent whose name is similar to `word`, if there is one.
pub(crate) fn similar_agent(layers: &Layers, word: &str) -> Option<String> {
    let profiles = load_profiles(layers).ok()?;
    let other_names = profiles.keys().map(String::as_str).filter(|name| *name != word);
    closest_match(word, other_names).map(str::to_owned)
}

/// Loads the user's table of prices, `[prices]`: US dollars per million tokens, by model.
///
/// # Errors
/// [`Error::InvalidProfile`] with the file and the entry that is invalid.
pub(crate) fn load_prices(layers: &Layers) -> Result<Prices, Error> {
    let Some((user_table, path)) = layers.user_table(PRICES_TABLE) else { return Ok(Prices::default()) };
    let entries = user_table.iter().map(|(model, entry)| {
        let price = match entry {
            Value::String(text) => text.parse::<Price>(),
            other => Price::deserialize(other.clone()).map_err(|e| e.to_string().trim().replace('\n', " ")),
        };
        let key = || format!("{PRICES_TABLE}.\"{model}\"");
        price.map(|price| (model.clone(), price)).map_err(|reason| profile_error(path, key(), reason))
    });
    entries.collect()
}

/// Parses the built-in profiles. An invalid built-in file is a bug that the tests find.
fn parse_built_in_profiles() -> Table {
    toml::from_str(BUILT_IN_PROFILES).unwrap_or_default()
}

fn profile_error(path: &Path, key: String, reason: impl Into<String>) -> Error {
    Error::InvalidProfile { path: path.to_owned(), key, reason: reason.into() }
}

/// Returns the table of one profile: the user's entries on top of the profile that their `like` names, or
/// else of the built-in profile of the same name.
fn resolve_profile_table(
    built_in: &Table,
    user_table: &Table,
    name: &str,
    path: &Path,
    depth: usize,
) -> Result<Table, Error> {
    let key = || format!("{PROFILES_TABLE}.{name}");
    let built_in_entry = built_in.get(name).and_then(Value::as_table);
    let user_entry = match user_table.get(name) {
        None => {
            return built_in_entry
                .cloned()
                .ok_or_else(|| profile_error(path, key(), "there is no such agent"));
        }
        Some(Value::Table(user_entry)) => user_entry,
        Some(_) => return Err(profile_error(path, key(), "it is no table")),
    };
    let mut user_entry = user_entry.clone();
    let mut base = match user_entry.remove("like") {
        None => built_in_entry.cloned().unwrap_or_default(),
        Some(Value::String(like)) if depth > 0 && like != name => {
            let is_known = built_in.contains_key(&like) || user_table.contains_key(&like);
            if !is_known {
                return Err(profile_error(
                    path,
                    format!("{}.like", key()),
                    format!("there is no agent '{like}'"),
                ));
            }
            let mut base = resolve_profile_table(built_in, user_table, &like, path, depth - 1)?;
            // The entry `tried` is about the other profile only.
            base.remove("tried");
            base
        }
        Some(like) => {
            return Err(profile_error(
                path,
                format!("{}.like", key()),
                format!("it cannot be based on {like}"),
            ));
        }
    };
    if user_entry.contains_key("program") {
        // It would install another program.
        base.remove("install");
    }
    Ok(merge_tables(base, user_entry))
}

/// Merges `changes` into `base`. Tables are merged; any other value is replaced.
fn merge_tables(mut base: Table, changes: Table) -> Table {
    for (key, value) in changes {
        let value = match (base.remove(&key), value) {
            (Some(Value::Table(base_value)), Value::Table(changed_value)) => {
                Value::Table(merge_tables(base_value, changed_value))
            }
            (_, value) => value,
        };
        base.insert(key, value);
    }
    base
}

fn parse_profiles(all: &Table, path: &Path) -> Result<BTreeMap<String, Profile>, Error> {
    let mut out = BTreeMap::new();
    for (name, table) in all {
        let profile = Profile::deserialize(table.clone()).map_err(|e| {
            profile_error(path, format!("{PROFILES_TABLE}.{name}"), e.to_string().trim().replace('\n', " "))
        })?;
        if let Some((key, reason)) = profile.validation_error() {
            return Err(profile_error(path, format!("{PROFILES_TABLE}.{name}.{key}"), reason));
        }
        out.insert(name.clone(), profile.without_unsupported_features());
    }
    Ok(out)
}

#[cfg(test)]
mod tests;

//! Owns the list of profiles: those that come with the program, and what the user's own configuration makes of them.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use toml::{Table, Value};

use super::Error;
use super::profile::Profile;
use super::stream::{Price, Prices};
use crate::config::Layers;

/// The profiles that come with the program.
const BUILT_IN: &str = include_str!("profiles.toml");

/// The user's table of profiles.
const TABLE: &str = "agents";

/// The user's table of prices.
const PRICES: &str = "prices";

/// How many profiles may follow each other by `like`.
const LIKE: usize = 8;

/// Every known profile by name: the built-in ones, changed and added to by `[agents.NAME]` in the user's own file.
///
/// # Errors
/// [`Error::Profile`] with the file and the key that is wrong.
pub(crate) fn profiles(layers: &Layers) -> Result<BTreeMap<String, Profile>, Error> {
    let built_in = built_in();
    let Some((own, path)) = layers.table(TABLE) else { return read_all(&built_in, Path::new("")) };
    let names: Vec<&String> = built_in.keys().chain(own.keys()).collect();
    let mut all = Table::new();
    for name in names {
        all.insert(name.clone(), Value::Table(merged(&built_in, own, name, path, LIKE)?));
    }
    read_all(&all, path)
}

/// The profile of an agent: a known one, or that of any other program.
pub(super) fn profile_of(layers: &Layers, agent: &str) -> Result<Profile, Error> {
    Ok(profiles(layers)?.remove(agent).unwrap_or_else(|| Profile::of_unknown(agent)))
}

/// The user's table of prices, `[prices]`: US dollars a million tokens, by model.
///
/// # Errors
/// [`Error::Profile`] with the file and the entry that is wrong.
pub(super) fn prices(layers: &Layers) -> Result<Prices, Error> {
    let Some((own, path)) = layers.table(PRICES) else { return Ok(Prices::default()) };
    let entries = own.iter().map(|(model, entry)| {
        let price = match entry {
            Value::String(text) => text.parse::<Price>(),
            other => Price::deserialize(other.clone()).map_err(|e| e.to_string().trim().replace('\n', " ")),
        };
        let key = || format!("{PRICES}.\"{model}\"");
        price.map(|price| (model.clone(), price)).map_err(|why| wrong(path, key(), why))
    });
    entries.collect()
}

/// A broken built-in file is a bug that the tests find.
fn built_in() -> Table {
    toml::from_str(BUILT_IN).unwrap_or_default()
}

fn wrong(path: &Path, key: String, why: impl Into<String>) -> Error {
    Error::Profile { path: path.to_owned(), key, why: why.into() }
}

/// The table of one name, with the user's own entries put over what it is like.
fn merged(built_in: &Table, own: &Table, name: &str, path: &Path, depth: usize) -> Result<Table, Error> {
    let key = || format!("{TABLE}.{name}");
    let below = built_in.get(name).and_then(Value::as_table);
    let mine = match own.get(name) {
        None => return below.cloned().ok_or_else(|| wrong(path, key(), "there is no such agent")),
        Some(Value::Table(mine)) => mine,
        Some(_) => return Err(wrong(path, key(), "it is no table")),
    };
    let mut mine = mine.clone();
    let base = match mine.remove("like") {
        None => below.cloned().unwrap_or_default(),
        Some(Value::String(like)) if depth > 0 && like != name => {
            let known = built_in.contains_key(&like) || own.contains_key(&like);
            if !known {
                return Err(wrong(path, format!("{}.like", key()), format!("there is no agent '{like}'")));
            }
            let mut base = merged(built_in, own, &like, path, depth - 1)?;
            // What it is and where it was tried is said of the other one.
            base.remove("tried");
            base
        }
        Some(like) => {
            return Err(wrong(path, format!("{}.like", key()), format!("it cannot be like {like}")));
        }
    };
    Ok(over(base, mine))
}

/// Tables go together, everything else is replaced.
fn over(mut base: Table, mine: Table) -> Table {
    for (key, value) in mine {
        let value = match (base.remove(&key), value) {
            (Some(Value::Table(below)), Value::Table(above)) => Value::Table(over(below, above)),
            (_, value) => value,
        };
        base.insert(key, value);
    }
    base
}

fn read_all(all: &Table, path: &Path) -> Result<BTreeMap<String, Profile>, Error> {
    let mut out = BTreeMap::new();
    for (name, table) in all {
        let profile = Profile::deserialize(table.clone())
            .map_err(|e| wrong(path, format!("{TABLE}.{name}"), e.to_string().trim().replace('\n', " ")))?;
        if let Some((key, why)) = profile.fault() {
            return Err(wrong(path, format!("{TABLE}.{name}.{key}"), why));
        }
        out.insert(name.clone(), profile.without_what_cannot_be());
    }
    Ok(out)
}

#[cfg(test)]
mod tests;

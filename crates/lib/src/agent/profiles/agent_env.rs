//! Environment variables of an agent, as its profile defines them.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::Path;

use super::profile::{EnvFile, Profile};
use super::template::PlaceholderValues;
use crate::agent::Error;
use crate::agent::profiles::profile::permission::Permission;

/// Name and value of an environment variable.
pub(crate) type EnvVar = (String, OsString);

/// Returns the variables of a profile and of a permission level. A variable whose placeholder has no value is
/// left out.
pub(crate) fn profile_env(profile: &Profile, level: Permission, values: &PlaceholderValues) -> Vec<EnvVar> {
    let no_level_env = BTreeMap::new();
    let level_env = profile.permission.level_settings(level).map_or(&no_level_env, |level| &level.env);
    let env_defaults = profile.env_default.iter().filter(|(key, _)| user_env_value(key).is_none());
    let mut out = expand_env(env_defaults.chain(&profile.env).chain(level_env), values);
    out.extend(merged_json_env(&profile.env_json, values));
    out
}

/// Returns the variables that an agent gets only in a window.
pub(crate) fn window_env(profile: &Profile, values: &PlaceholderValues) -> Vec<EnvVar> {
    expand_env(profile.window.env_default.iter().filter(|(key, _)| user_env_value(key).is_none()), values)
}

/// Expands the placeholders in variables. A variable whose placeholder has no value is left out.
pub(crate) fn expand_env<'a>(
    variables: impl IntoIterator<Item = (&'a String, &'a String)>,
    values: &PlaceholderValues,
) -> Vec<EnvVar> {
    let expand = |(key, text): (&String, &String)| Some((key.clone(), values.expand(text.as_ref())?));
    variables.into_iter().filter_map(expand).collect()
}

/// Expands variables that each hold a JSON object, and merges each one over the user's object of the same
/// name. For each, another variable saves the user's value.
pub(crate) fn merged_json_env(
    variables: &BTreeMap<String, String>,
    values: &PlaceholderValues,
) -> Vec<EnvVar> {
    let merge_with_user = |(key, ours): EnvVar| {
        let user_text = user_env_value(&key);
        let merged = user_text.as_deref().and_then(|base| merge_json_text(base, &ours)).unwrap_or(ours);
        [saved_user_var(&key, user_text), (key, merged)]
    };
    expand_env(variables, values).into_iter().flat_map(merge_with_user).collect()
}

/// Returns each variable that names git-proq's JSON file `file`, set to `path`. For each, another variable
/// saves the user's value.
pub(crate) fn file_env(variables: &BTreeMap<String, EnvFile>, file: &str, path: &Path) -> Vec<EnvVar> {
    let matching = variables.iter().filter(|(_, env_file)| env_file.file_key == file);
    matching
        .flat_map(|(key, _)| [saved_user_var(key, user_env_value(key)), (key.clone(), path.into())])
        .collect()
}

/// Returns the text for git-proq's JSON file `file`: `ours`, merged over the file that the user's variable
/// names, or over the first fallback path that exists.
///
/// # Errors
/// Returns [`Error::CannotMergeUserFile`] when the user's file cannot be read or is no JSON object, because its
/// settings would be lost.
pub(crate) fn merged_file_text(
    variables: &BTreeMap<String, EnvFile>,
    file: &str,
    ours: OsString,
) -> Result<OsString, Error> {
    let mut text = ours;
    for (key, env_file) in variables.iter().filter(|(_, candidate)| candidate.file_key == file) {
        let base_path = user_env_value(key).or_else(|| {
            let fallback = env_file.fallback_paths.iter().find(|path| Path::new(path).exists());
            fallback.map(OsString::from)
        });
        let Some(path) = base_path else { continue };
        let merge_failed = |reason: String| Error::CannotMergeUserFile {
            key: key.clone(),
            path: path.clone().into(),
            reason,
        };
        match std::fs::read(&path) {
            Ok(bytes) => {
                let base_text = String::from_utf8_lossy(&bytes).into_owned();
                let not_an_object = || merge_failed("it is no JSON object".to_owned());
                text = merge_json_text(OsStr::new(&base_text), &text).ok_or_else(not_an_object)?;
            }
            // The agent would not find the file either.
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
            Err(e) => return Err(merge_failed(e.to_string())),
        }
    }
    Ok(text)
}

/// Returns the name of the variable that saves the user's value of `key` for the processes of a run.
fn saved_user_key(key: &str) -> String {
    format!("PROQ_USERS_{key}")
}

/// Returns the user's value of an environment variable, also where this process belongs to a run of git-proq;
/// none when it is unset or empty.
fn user_env_value(key: &str) -> Option<OsString> {
    let value = std::env::var_os(saved_user_key(key)).or_else(|| std::env::var_os(key));
    value.filter(|text| !text.is_empty())
}

/// Returns the variable that saves the user's value of `key`, empty without a value.
fn saved_user_var(key: &str, value: Option<OsString>) -> EnvVar {
    (saved_user_key(key), value.unwrap_or_default())
}

/// Merges the JSON object `ours` over `base`. Returns `None` when either is not a JSON object.
fn merge_json_text(base: &OsStr, ours: &OsStr) -> Option<OsString> {
    let parse_object =
        |text: &OsStr| serde_json::from_str(text.to_str()?).ok().filter(serde_json::Value::is_object);
    Some(merge_json(parse_object(base)?, parse_object(ours)?).to_string().into())
}

/// Merges two JSON values: objects by key, lists one after the other; any other value of `overlay` replaces
/// the one in `base`.
fn merge_json(base: serde_json::Value, overlay: serde_json::Value) -> serde_json::Value {
    use serde_json::Value::{Array, Object};
    match (base, overlay) {
        (Object(mut base), Object(overlay)) => {
            for (key, value) in overlay {
                let value = match base.remove(&key) {
                    Some(base_value) => merge_json(base_value, value),
                    None => value,
                };
                base.insert(key, value);
            }
            Object(base)
        }
        (Array(base), Array(overlay)) => Array(base.into_iter().chain(overlay).collect()),
        (_, overlay) => overlay,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_user_json_in_merged_variable() {
        let base = OsStr::new(r#"{"provider":{"x":1},"instructions":["mine.md"],"share":"auto"}"#);
        let ours = OsStr::new(r#"{"instructions":["rules.md"],"share":"off","mcp":{"proq":{}}}"#);
        let merged: serde_json::Value =
            serde_json::from_str(merge_json_text(base, ours).unwrap().to_str().unwrap()).unwrap();
        assert_eq!(merged["provider"]["x"], 1);
        assert_eq!(merged["instructions"], serde_json::json!(["mine.md", "rules.md"]));
        assert_eq!(merged["share"], "off");
        assert_eq!(merge_json_text(OsStr::new("no json"), ours), None);
        assert_eq!(merge_json_text(OsStr::new("[]"), ours), None);
    }
}

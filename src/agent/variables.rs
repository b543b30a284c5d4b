//! Owns the variables that an agent is started with, as its profile has them.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::Path;

use super::Error;
use super::profile::{EnvFile, Permission, Profile};
use super::template::Values;

/// A variable's name and its value.
pub(crate) type Variable = (String, OsString);

/// The variables of a profile and of a permission level. One that lacks a value is left out.
pub(super) fn of_level(profile: &Profile, level: Permission, values: &Values) -> Vec<Variable> {
    let none = BTreeMap::new();
    let by_level = profile.permission.of(level).map_or(&none, |level| &level.env);
    let absent = profile.env_default.iter().filter(|(key, _)| of_user(key).is_none());
    let mut out = filled(absent.chain(&profile.env).chain(by_level), values);
    out.extend(of_json(&profile.env_json, values));
    out
}

/// Those that an agent has in a window only.
pub(super) fn of_window(profile: &Profile, values: &Values) -> Vec<Variable> {
    filled(profile.window.env_default.iter().filter(|(key, _)| of_user(key).is_none()), values)
}

/// Variables with their placeholders filled in. One that lacks a value is left out.
pub(super) fn filled<'a>(
    variables: impl IntoIterator<Item = (&'a String, &'a String)>,
    values: &Values,
) -> Vec<Variable> {
    let fill = |(key, text): (&String, &String)| Some((key.clone(), values.fill(text.as_ref())?));
    variables.into_iter().filter_map(fill).collect()
}

/// The same for those that hold a JSON object each: what the user's environment has in one stays in it.
pub(super) fn of_json(variables: &BTreeMap<String, String>, values: &Values) -> Vec<Variable> {
    let join = |(key, ours): Variable| {
        let there = of_user(&key);
        let both = there.as_deref().and_then(|there| joined(there, &ours)).unwrap_or(ours);
        [kept_for_user(&key, there), (key, both)]
    };
    filled(variables, values).into_iter().flat_map(join).collect()
}

/// The same for those that name a file of ours with a JSON object. `path` is where that file is.
pub(super) fn of_files(variables: &BTreeMap<String, EnvFile>, file: &str, path: &Path) -> Vec<Variable> {
    let ours = variables.iter().filter(|(_, named)| named.file == file);
    ours.flat_map(|(key, _)| [kept_for_user(key, of_user(key)), (key.clone(), path.into())]).collect()
}

/// What a file of ours is to say that variables name: what the user's own file, or that of the machine, says stays in it.
///
/// # Errors
/// [`Error::NotJoined`] when that file is there and cannot be read, or is no JSON: it would be lost.
pub(super) fn file_text(
    variables: &BTreeMap<String, EnvFile>,
    file: &str,
    ours: OsString,
) -> Result<OsString, Error> {
    let mut text = ours;
    for (key, named) in variables.iter().filter(|(_, named)| named.file == file) {
        let there = of_user(key).or_else(|| {
            let there = named.otherwise.iter().find(|path| Path::new(path).exists());
            there.map(OsString::from)
        });
        let Some(path) = there else { continue };
        let not_joined = |why: String| Error::NotJoined { key: key.clone(), path: path.clone().into(), why };
        match std::fs::read(&path) {
            Ok(bytes) => {
                let below = String::from_utf8_lossy(&bytes).into_owned();
                let no_json = || not_joined("it is no JSON object".to_owned());
                text = joined(OsStr::new(&below), &text).ok_or_else(no_json)?;
            }
            // The agent would find nothing there either.
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
            Err(e) => return Err(not_joined(e.to_string())),
        }
    }
    Ok(text)
}

/// How a run's processes find what a variable was before it became ours.
fn name_for_user(key: &str) -> String {
    format!("PROQ_USERS_{key}")
}

/// What the user has in a variable, also where this process belongs to a run of ours.
fn of_user(key: &str) -> Option<OsString> {
    let there = std::env::var_os(name_for_user(key)).or_else(|| std::env::var_os(key));
    there.filter(|text| !text.is_empty())
}

fn kept_for_user(key: &str, there: Option<OsString>) -> Variable {
    (name_for_user(key), there.unwrap_or_default())
}

/// A JSON object put over the one that is there; none when one of them is none.
fn joined(there: &OsStr, ours: &OsStr) -> Option<OsString> {
    let read = |text: &OsStr| serde_json::from_str(text.to_str()?).ok().filter(serde_json::Value::is_object);
    Some(over(read(there)?, read(ours)?).to_string().into())
}

/// Objects go together, lists follow each other, everything else is replaced.
fn over(below: serde_json::Value, above: serde_json::Value) -> serde_json::Value {
    use serde_json::Value::{Array, Object};
    match (below, above) {
        (Object(mut below), Object(above)) => {
            for (key, value) in above {
                let value = match below.remove(&key) {
                    Some(under) => over(under, value),
                    None => value,
                };
                below.insert(key, value);
            }
            Object(below)
        }
        (Array(below), Array(above)) => Array(below.into_iter().chain(above).collect()),
        (_, above) => above,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_environment_has_in_a_json_variable_stays() {
        let there = OsStr::new(r#"{"provider":{"x":1},"instructions":["mine.md"],"share":"auto"}"#);
        let ours = OsStr::new(r#"{"instructions":["rules.md"],"share":"off","mcp":{"proq":{}}}"#);
        let both: serde_json::Value =
            serde_json::from_str(joined(there, ours).unwrap().to_str().unwrap()).unwrap();
        assert_eq!(both["provider"]["x"], 1);
        assert_eq!(both["instructions"], serde_json::json!(["mine.md", "rules.md"]));
        assert_eq!(both["share"], "off");
        assert_eq!(joined(OsStr::new("no json"), ours), None);
        assert_eq!(joined(OsStr::new("[]"), ours), None);
    }
}

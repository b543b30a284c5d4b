//! Owns the variables that an agent is started with, as its profile has them.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

use super::profile::{Permission, Profile};
use super::template::Values;

/// A variable's name and its value.
pub(crate) type Variable = (String, OsString);

/// The variables of a profile and of a permission level. One that lacks a value is left out.
pub(super) fn of_level(profile: &Profile, level: Permission, values: &Values) -> Vec<Variable> {
    let none = BTreeMap::new();
    let by_level = profile.permission.of(level).map_or(&none, |level| &level.env);
    let absent = profile.env_default.iter().filter(|(key, _)| std::env::var_os(key).is_none());
    let mut out = filled(absent.chain(&profile.env).chain(by_level), values);
    out.extend(of_json(&profile.env_json, values));
    out
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
        let there = std::env::var(&key).ok();
        let both = joined(there.as_deref(), &ours);
        (key, both)
    };
    filled(variables, values).into_iter().map(join).collect()
}

/// A JSON object put over the one that is there. What is there and is none is left to its owner to correct.
fn joined(there: Option<&str>, ours: &OsStr) -> OsString {
    let read = |text: &str| serde_json::from_str::<serde_json::Value>(text).ok();
    let (Some(there), Some(ours_read)) = (there.and_then(read), ours.to_str().and_then(read)) else {
        return ours.to_owned();
    };
    over(there, ours_read).to_string().into()
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
        let there = r#"{"provider":{"x":1},"instructions":["mine.md"],"share":"auto"}"#;
        let ours = OsStr::new(r#"{"instructions":["rules.md"],"share":"off","mcp":{"proq":{}}}"#);
        let both: serde_json::Value =
            serde_json::from_str(joined(Some(there), ours).to_str().unwrap()).unwrap();
        assert_eq!(both["provider"]["x"], 1);
        assert_eq!(both["instructions"], serde_json::json!(["mine.md", "rules.md"]));
        assert_eq!(both["share"], "off");
        assert_eq!(joined(Some("no json"), ours), ours);
        assert_eq!(joined(None, ours), ours);
    }
}

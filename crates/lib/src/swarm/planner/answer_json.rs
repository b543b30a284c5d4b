//! Plans and dependencies parsed from JSON that an agent wrote: each value gets its JSON path as the location
//! that errors name.

use std::sync::Arc;

use proq_base::explain::Explain;
use proq_base::terminal_text;
use proq_plan::plan::first_line;
use proq_plan::plan_error::{PlanError, SourceLocation};
use proq_plan::plan_format::PlanFormat;
use proq_plan::plan_source::LoadedPlan;
use proq_plan::source_node::{NodeValue, SourceNode, TableEntry};
use proq_plan::toml_plan;
use serde_json::Value as Json;

use super::json_extract::find_json;

/// Maximum number of characters of a key in a location.
const MAX_KEY_CHARS: usize = 40;

/// Length in bytes beyond which a path is not extended.
const MAX_PATH_BYTES: usize = 200;

/// List keys that agents often write in the plural, each with the singular that the plan format has.
const PLURAL_KEYS: &[(&str, &str)] = &[("phases", "phase"), ("groups", "group"), ("tasks", "task")];

/// Keys of which every plan has at least one.
const PLAN_KEYS: &[&str] = &["phase", "group", "task"];

/// Returns the last valid plan in an agent's answer.
///
/// # Errors
/// Describes the problem, for the agent and for the user, with the last piece of JSON that resembles a plan,
/// or else with the last piece.
pub fn parse_plan(text: &str) -> Result<LoadedPlan, String> {
    let mut rejection: Option<(bool, String)> = None;
    for piece in find_json(text).into_iter().rev() {
        let (is_plan_like, reason) = match piece.value {
            Ok(json) => {
                let root = to_node(unwrap_plan(json), "$");
                let has_plan_key = PLAN_KEYS.iter().any(|sign| root.get(sign).is_some());
                match build_loaded_plan(&with_format_version(root)) {
                    Ok(found) => return Ok(found),
                    Err(error) => (has_plan_key, describe_error(&error)),
                }
            }
            Err(cause) => (true, format!("this is not JSON: {cause}")),
        };
        if rejection.as_ref().is_none_or(|(was_plan_like, _)| is_plan_like && !was_plan_like) {
            rejection = Some((is_plan_like, reason));
        }
    }
    Err(rejection.map_or_else(|| "it has no JSON".to_owned(), |(_, message)| message))
}

/// Builds a draft's plan and its dependency graph from a node.
fn build_loaded_plan(root: &SourceNode) -> Result<LoadedPlan, PlanError> {
    LoadedPlan::from_plan(PlanFormat::Draft, toml_plan::plan_from_node(root)?, || "it".to_owned())
}

/// Describes an error and its first hint in one line.
fn describe_error(error: &PlanError) -> String {
    let hint = error.hints().first().map(|hint| format!(" ({hint})")).unwrap_or_default();
    terminal_text::escape_line(&format!("{error}{hint}"))
}

/// Returns the content of an object whose only key is `plan`; other values are returned unchanged.
fn unwrap_plan(json: Json) -> Json {
    match json {
        Json::Object(mut map) if map.len() == 1 && map.get("plan").is_some_and(Json::is_object) => {
            map.remove("plan").unwrap_or_default()
        }
        other => other,
    }
}

/// Adds the format version, which agents are not required to write.
fn with_format_version(mut root: SourceNode) -> SourceNode {
    if root.get("format").is_none()
        && let NodeValue::Table(entries) = &mut root.value
    {
        let location = root.location.clone();
        let node = SourceNode { location: location.clone(), value: NodeValue::Integer(1) };
        entries.push(TableEntry { key: "format".to_owned(), location, node });
    }
    root
}

/// Converts a JSON value at a path to a node. Blank values are left out, because agents write every key that
/// the prompt names.
fn to_node(json: Json, path: &str) -> SourceNode {
    let location = json_location(path);
    let value = match json {
        Json::Null => NodeValue::Other("nothing"),
        Json::Bool(truth) => NodeValue::Bool(truth),
        Json::Number(number) => number.as_i64().map_or(NodeValue::Other("such a number"), NodeValue::Integer),
        Json::String(text) => NodeValue::Text(text),
        Json::Array(items) => {
            let item = |(n, item)| to_node(item, &child_path(path, &format!("[{n}]")));
            NodeValue::List(items.into_iter().enumerate().map(item).collect())
        }
        Json::Object(map) => {
            let has_key = |key: &str| map.contains_key(key);
            let plural_keys: Vec<&(&str, &str)> = PLURAL_KEYS
                .iter()
                .filter(|(plural, singular)| has_key(plural) && !has_key(singular))
                .collect();
            let singular_key = |key: String| {
                plural_keys
                    .iter()
                    .find(|(plural, _)| *plural == key)
                    .map_or(key, |(_, singular)| (*singular).to_owned())
            };
            let entries = map.into_iter().filter(|(_, value)| !is_blank(value)).map(|(name, value)| {
                let path = child_path(path, &format!(".{}", truncate_key(&name)));
                TableEntry {
                    key: singular_key(name),
                    location: self::json_location(&path),
                    node: to_node(value, &path),
                }
            });
            NodeValue::Table(entries.collect())
        }
    };
    SourceNode { location, value }
}

/// Returns the path of a child. A path longer than the maximum is not extended: no value of a plan lies that
/// deep.
fn child_path(path: &str, segment: &str) -> String {
    if path.len() > MAX_PATH_BYTES { path.to_owned() } else { format!("{path}{segment}") }
}

/// Returns whether a value is null or a text without characters other than spaces.
fn is_blank(value: &Json) -> bool {
    value.is_null() || value.as_str().is_some_and(|text| text.trim().is_empty())
}

/// Returns a key for a location, escaped and cut to [`MAX_KEY_CHARS`].
fn truncate_key(key: &str) -> String {
    terminal_text::escape_line(&key.chars().take(MAX_KEY_CHARS).collect::<String>())
}

/// Returns the location of a JSON path; it has no line and no column.
fn json_location(path: &str) -> SourceLocation {
    SourceLocation { file: Arc::from(path), line: 0, column: 0 }
}

/// A dependency as an agent wrote it, not checked against the plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RawNeed {
    /// Name of the task that has to wait.
    pub waiting_task: String,
    /// Name of the task that has to be done before.
    pub needed_task: String,
    /// Reason for the dependency, in one line; may be empty.
    pub reason: String,
}

/// Returns the last list of dependencies in an agent's answer. An empty list counts only where there is no
/// other.
///
/// # Errors
/// Describes the problem with the candidate list, for the agent and for the user.
pub(crate) fn parse_needs(text: &str) -> Result<Vec<RawNeed>, String> {
    let (mut has_empty_list, mut rejection) = (false, None);
    for piece in find_json(text).into_iter().rev() {
        let list = piece.value.map_err(|cause| format!("this is not JSON: {cause}")).and_then(need_list);
        match list {
            Ok(list) if list.is_empty() => has_empty_list = true,
            Ok(list) => return Ok(list),
            Err(reason) => rejection = rejection.or(Some(reason)),
        }
    }
    match (has_empty_list, rejection) {
        (true, _) => Ok(Vec::new()),
        (false, Some(reason)) => Err(reason),
        (false, None) => Err("it has no JSON".to_owned()),
    }
}

/// Parses a list of dependencies, or an object whose only value is such a list.
fn need_list(json: Json) -> Result<Vec<RawNeed>, String> {
    let items = match json {
        Json::Array(items) => items,
        // An object whose only value is the list.
        Json::Object(map) if map.len() == 1 => match map.into_iter().next() {
            Some((_, Json::Array(items))) => items,
            _ => return Err("$ is no list".to_owned()),
        },
        _ => return Err("$ is no list".to_owned()),
    };
    items.iter().enumerate().map(|(n, item)| parse_need(n, item)).collect()
}

/// Parses the dependency at `index` of a list.
fn parse_need(index: usize, item: &Json) -> Result<RawNeed, String> {
    let text =
        |key: &str| item.get(key).and_then(Json::as_str).map(str::trim).filter(|text| !text.is_empty());
    let required = |key: &'static str| {
        text(key)
            .map(ToOwned::to_owned)
            .ok_or_else(|| format!("$[{index}] has no text '{key}', the ID of a task"))
    };
    let reason = first_line(text("because").unwrap_or_default());
    Ok(RawNeed { waiting_task: required("task")?, needed_task: required("needs")?, reason })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn plan_error(text: &str) -> String {
        parse_plan(text).unwrap_err()
    }

    #[test]
    fn uses_last_valid_plan() {
        let plan = |id: &str| format!("{{\"task\": [{{\"id\": \"{id}\", \"title\": \"T\"}}]}}");
        let answer = format!("First {}, then\n```json\n{}\n```\nLike {{\"id\": 1}}.", plan("a"), plan("b"));
        let found = parse_plan(&answer).unwrap();
        let ids: Vec<&str> = found.plan.tasks().map(|spot| spot.task.id.as_str()).collect();
        assert_eq!(ids, ["b"]);
        assert_eq!(found.plan.tasks().next().unwrap().task.location.to_string(), "$.task[0].id");
    }

    #[test]
    fn accepts_plural_and_empty_keys() {
        let text = r#"{"plan": {"summary": "", "phases": [{"title": "One", "groups": [{"theme": null, "tasks": [
            {"id": "a", "title": "A", "needs": [], "size": "S"}, {"id": "b", "title": "B", "needs": ["a"]}]}]}]}}"#;
        let found = parse_plan(text).unwrap();
        assert_eq!(found.plan.phases[0].title, "One");
        assert_eq!(found.graph.needs(1), [0]);
    }

    #[test]
    fn reports_errors_with_path_and_hint() {
        let error_for = |tasks: &str| plan_error(&format!("{{\"task\": [{tasks}]}}"));
        for (tasks, expected) in [
            (
                r#"{"id": "a", "titel": "A"}"#,
                "$.task[0].titel: a task has no 'titel' (did you mean 'title'?)",
            ),
            (
                r#"{"id": "a\nb", "title": "A"}"#,
                r"$.task[0].id: 'id' of a task is 'a\nb' (expected up to 64 letters, digits, '.', '_' and '-', the first a letter or a digit)",
            ),
            (
                r#"{"id": "a", "title": "A", "needs": ["c"]}, {"id": "b", "title": "B"}"#,
                "$.task[0].needs[0]: task 'a' needs 'c', which is not a task of this plan (add a task 'c', or remove it from the needs of 'a')",
            ),
            (
                r#"{"id": "a", "title": "A", "needs": ["b"]}, {"id": "b", "title": "B", "needs": ["a"]}"#,
                "$.task[0].needs[0]: these tasks depend on each other: a -> b -> a (one of them has to come first: for example, let 'b' not need 'a')",
            ),
        ] {
            assert_eq!(error_for(tasks), expected);
        }
        assert_eq!(
            error_for(""),
            "there is no task in it (show an example of a plan: git proq plan --init -)"
        );
        assert_eq!(plan_error("Sorry, no."), "it has no JSON");
        assert!(plan_error("{\"task\": [{]}").starts_with("this is not JSON: its brackets do not match"));
    }

    #[test]
    fn bounds_locations_of_deep_json() {
        let text = format!("{}1{}", "{\"a key of some length, to be told\":[".repeat(30), "]}".repeat(30));
        assert!(plan_error(&text).len() < 1000, "{}", plan_error(&text));
    }

    #[test]
    fn falls_back_to_empty_need_list() {
        let need = RawNeed { waiting_task: "a".into(), needed_task: "b".into(), reason: "why".into() };
        let one = r#"[{"task": "a", "needs": "b", "because": "why\nso"}]"#;
        assert_eq!(parse_needs(&format!("a[0] is {one} and not []")).unwrap(), std::slice::from_ref(&need));
        assert_eq!(parse_needs(&format!("{{\"missing\": {one}}}")).unwrap(), [need]);
        assert_eq!(parse_needs("None: [] (or [0]?)").unwrap(), []);
        assert_eq!(
            parse_needs("[{\"task\": \"a\"}]").unwrap_err(),
            "$[0] has no text 'needs', the ID of a task"
        );
        assert_eq!(parse_needs("nothing").unwrap_err(), "it has no JSON");
    }
}

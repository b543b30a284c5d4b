//! Owns making a plan of JSON that an agent wrote: each value gets the place in it that an error names.

use std::sync::Arc;

use serde_json::Value as Json;

use super::super::node::{Entry, Node, Value};
use super::super::plan::line;
use super::super::source::Found;
use super::super::{Error, Format, Place, toml_plan};
use super::lenient::pieces;
use crate::explain::Explain;
use crate::harmless;

/// So much of a key stands in a place.
const KEY: usize = 40;

/// No path is much longer.
const LONGEST_PATH: usize = 200;

/// Lists that are called by one of what is in them, and how agents call them too.
const PLURALS: &[(&str, &str)] = &[("phases", "phase"), ("groups", "group"), ("tasks", "task")];

/// Keys of which a plan has at least one.
const SIGNS: &[&str] = &["phase", "group", "task"];

/// The last plan in what an agent said.
///
/// # Errors
/// What is wrong with it, for the agent and for people: with the last piece of JSON that looks like a plan, or with the last of all.
pub(crate) fn plan_in(text: &str) -> Result<Found, String> {
    let mut wrong: Option<(bool, String)> = None;
    for piece in pieces(text).into_iter().rev() {
        let (is_like, why) = match piece.value {
            Ok(json) => {
                let top = node_of(unwrapped(json), "$");
                let is_like = SIGNS.iter().any(|sign| top.get(sign).is_some());
                match found_of(&with_format(top)) {
                    Ok(found) => return Ok(found),
                    Err(e) => (is_like, told(&e)),
                }
            }
            Err(why) => (true, format!("this is no JSON: {why}")),
        };
        if wrong.as_ref().is_none_or(|(former, _)| is_like && !former) {
            wrong = Some((is_like, why));
        }
    }
    Err(wrong.map_or_else(|| "there is no JSON in it".to_owned(), |(_, why)| why))
}

fn found_of(top: &Node) -> Result<Found, Error> {
    Found::of(Format::Draft, toml_plan::plan_of(top)?, || "it".to_owned())
}

/// An error with what helps, in a line.
fn told(error: &Error) -> String {
    let hint = error.hints().first().map(|hint| format!(" ({hint})")).unwrap_or_default();
    harmless::line(&format!("{error}{hint}"))
}

/// What is in a table that only says that it is a plan.
fn unwrapped(json: Json) -> Json {
    match json {
        Json::Object(mut map) if map.len() == 1 && map.get("plan").is_some_and(Json::is_object) => {
            map.remove("plan").unwrap_or_default()
        }
        other => other,
    }
}

/// The same with the version of the form, which no agent is asked for.
fn with_format(mut top: Node) -> Node {
    if top.get("format").is_none()
        && let Value::Table(entries) = &mut top.value
    {
        let place = top.place.clone();
        let node = Node { place: place.clone(), value: Value::Whole(1) };
        entries.push(Entry { key: "format".to_owned(), place, node });
    }
    top
}

/// A value at a path. What says nothing is left out: agents write all keys that they were told of.
fn node_of(json: Json, path: &str) -> Node {
    let place = place(path);
    let value = match json {
        Json::Null => Value::Other("nothing"),
        Json::Bool(truth) => Value::Truth(truth),
        Json::Number(number) => number.as_i64().map_or(Value::Other("such a number"), Value::Whole),
        Json::String(text) => Value::Text(text),
        Json::Array(items) => {
            let item = |(n, item)| node_of(item, &below(path, &format!("[{n}]")));
            Value::List(items.into_iter().enumerate().map(item).collect())
        }
        Json::Object(map) => {
            let has = |key: &str| map.contains_key(key);
            let renamed: Vec<&(&str, &str)> =
                PLURALS.iter().filter(|(many, one)| has(many) && !has(one)).collect();
            let key = |key: String| {
                renamed.iter().find(|(many, _)| *many == key).map_or(key, |(_, one)| (*one).to_owned())
            };
            let entries = map.into_iter().filter(|(_, value)| !is_nothing(value)).map(|(name, value)| {
                let path = below(path, &format!(".{}", short(&name)));
                Entry { key: key(name), place: self::place(&path), node: node_of(value, &path) }
            });
            Value::Table(entries.collect())
        }
    };
    Node { place, value }
}

/// The path of what is in something. Nothing that a plan has lies as deep as the longest.
fn below(path: &str, step: &str) -> String {
    if path.len() > LONGEST_PATH { path.to_owned() } else { format!("{path}{step}") }
}

fn is_nothing(value: &Json) -> bool {
    value.is_null() || value.as_str().is_some_and(|text| text.trim().is_empty())
}

fn short(key: &str) -> String {
    harmless::line(&key.chars().take(KEY).collect::<String>())
}

fn place(path: &str) -> Place {
    Place { file: Arc::from(path), line: 0, column: 0 }
}

/// A dependency as an agent wrote it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Said {
    /// The task that is to wait.
    pub(crate) task: String,
    /// The one that it is to wait for.
    pub(crate) needs: String,
    /// Why.
    pub(crate) because: String,
}

/// The last list of dependencies in what an agent said. An empty one counts where there is no other.
///
/// # Errors
/// What is wrong with what looks like one, for the agent and for people.
pub(crate) fn needs_in(text: &str) -> Result<Vec<Said>, String> {
    let (mut empty, mut wrong) = (false, None);
    for piece in pieces(text).into_iter().rev() {
        let list = piece.value.map_err(|why| format!("this is no JSON: {why}")).and_then(list_in);
        match list {
            Ok(list) if list.is_empty() => empty = true,
            Ok(list) => return Ok(list),
            Err(why) => wrong = wrong.or(Some(why)),
        }
    }
    match (empty, wrong) {
        (true, _) => Ok(Vec::new()),
        (false, Some(why)) => Err(why),
        (false, None) => Err("there is no JSON in it".to_owned()),
    }
}

fn list_in(json: Json) -> Result<Vec<Said>, String> {
    let items = match json {
        Json::Array(items) => items,
        // A table with nothing but the list in it.
        Json::Object(map) if map.len() == 1 => match map.into_iter().next() {
            Some((_, Json::Array(items))) => items,
            _ => return Err("$ is no list".to_owned()),
        },
        _ => return Err("$ is no list".to_owned()),
    };
    items.iter().enumerate().map(|(n, item)| said_in(n, item)).collect()
}

fn said_in(n: usize, item: &Json) -> Result<Said, String> {
    let text =
        |key: &str| item.get(key).and_then(Json::as_str).map(str::trim).filter(|text| !text.is_empty());
    let wanted = |key: &'static str| {
        text(key)
            .map(ToOwned::to_owned)
            .ok_or_else(|| format!("$[{n}] has no text '{key}', the ID of a task"))
    };
    let because = line(text("because").unwrap_or_default());
    Ok(Said { task: wanted("task")?, needs: wanted("needs")?, because })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn wrong(text: &str) -> String {
        plan_in(text).unwrap_err()
    }

    #[test]
    fn the_last_plan_that_is_one_counts() {
        let plan = |id: &str| format!("{{\"task\": [{{\"id\": \"{id}\", \"title\": \"T\"}}]}}");
        let said = format!("First {}, then\n```json\n{}\n```\nLike {{\"id\": 1}}.", plan("a"), plan("b"));
        let found = plan_in(&said).unwrap();
        let ids: Vec<&str> = found.plan.spots().map(|spot| spot.task.id.as_str()).collect();
        assert_eq!(ids, ["b"]);
        assert_eq!(found.plan.spots().next().unwrap().task.from.to_string(), "$.task[0].id");
    }

    #[test]
    fn keys_may_be_called_by_their_plurals_and_hold_nothing() {
        let text = r#"{"plan": {"summary": "", "phases": [{"title": "One", "groups": [{"theme": null, "tasks": [
            {"id": "a", "title": "A", "needs": [], "size": "S"}, {"id": "b", "title": "B", "needs": ["a"]}]}]}]}}"#;
        let found = plan_in(text).unwrap();
        assert_eq!(found.plan.phases[0].title, "One");
        assert_eq!(found.graph.needs(1), [0]);
    }

    #[test]
    fn a_mistake_is_told_with_its_path_and_what_helps() {
        let of = |tasks: &str| wrong(&format!("{{\"task\": [{tasks}]}}"));
        for (tasks, said) in [
            (
                r#"{"id": "a", "titel": "A"}"#,
                "$.task[0].titel: a task has no 'titel' (did you mean 'title'?)",
            ),
            (
                r#"{"id": "a\nb", "title": "A"}"#,
                r"$.task[0].id: 'id' of a task is 'a\nb' (it takes up to 64 letters, digits, '.', '_' and '-', the first a letter or a digit)",
            ),
            (
                r#"{"id": "a", "title": "A", "needs": ["c"]}, {"id": "b", "title": "B"}"#,
                "$.task[0].needs[0]: task 'a' needs 'c', which is no task of this plan (add a task with the ID 'c', or take it out of what 'a' needs)",
            ),
            (
                r#"{"id": "a", "title": "A", "needs": ["b"]}, {"id": "b", "title": "B", "needs": ["a"]}"#,
                "$.task[0].needs[0]: these tasks need each other: a -> b -> a (one of them has to go first: for example, let 'b' not need 'a')",
            ),
        ] {
            assert_eq!(of(tasks), said);
        }
        assert_eq!(of(""), "there is no task in it (see what a plan looks like: git proq plan --init -)");
        assert_eq!(wrong("Sorry, no."), "there is no JSON in it");
        assert!(wrong("{\"task\": [{]}").starts_with("this is no JSON: its brackets do not match"));
    }

    #[test]
    fn what_no_plan_is_that_deep_makes_no_long_places() {
        let text = format!("{}1{}", "{\"a key of some length, to be told\":[".repeat(30), "]}".repeat(30));
        assert!(wrong(&text).len() < 1000, "{}", wrong(&text));
    }

    #[test]
    fn dependencies_are_a_list_and_an_empty_one_counts_where_there_is_no_other() {
        let said = Said { task: "a".into(), needs: "b".into(), because: "why".into() };
        let one = r#"[{"task": "a", "needs": "b", "because": "why\nso"}]"#;
        assert_eq!(needs_in(&format!("a[0] is {one} and not []")).unwrap(), std::slice::from_ref(&said));
        assert_eq!(needs_in(&format!("{{\"missing\": {one}}}")).unwrap(), [said]);
        assert_eq!(needs_in("None: [] (or [0]?)").unwrap(), []);
        assert_eq!(
            needs_in("[{\"task\": \"a\"}]").unwrap_err(),
            "$[0] has no text 'needs', the ID of a task"
        );
        assert_eq!(needs_in("nothing").unwrap_err(), "there is no JSON in it");
    }
}

//! Owns plans that are lists of stories in YAML, as several tools write them.

use std::sync::Arc;

use super::node::{Entry, Node, Value};
use super::plan::{Need, line};
use super::shape::{NAME, is_name};
use super::{Error, Group, Place, Plan, Progress, Task, yaml};
use crate::explain::nearest;
use crate::harmless;

/// What the list is called.
const LISTS: &[&str] = &["stories", "userStories", "user_stories"];
/// What the plan is about.
const SUMMARY: &[&str] = &["summary", "project", "title", "name"];
const DESCRIPTION: &[&str] = &["description", "story"];
const NEEDS: &[&str] = &["dependsOn", "depends_on", "dependencies"];
const CRITERIA: &[&str] = &["acceptanceCriteria", "acceptance_criteria", "acceptance", "criteria"];

/// Words for a story that is done, and for one that is not.
const DONE: &[&str] = &["done", "complete", "completed", "merged", "closed", "passed"];
const OPEN: &[&str] = &[
    "todo",
    "to-do",
    "open",
    "new",
    "draft",
    "backlog",
    "pending",
    "planned",
    "ready",
    "approved",
    "in-progress",
    "doing",
    "started",
    "review",
    "in-review",
    "blocked",
];

/// Reads stories.
///
/// # Errors
/// The first mistake in them.
pub(super) fn read(file: &Arc<str>, text: &str) -> Result<Plan, Error> {
    let top = top(file, text)?;
    let summary = match &top.value {
        Value::Table(_) => first(&top, SUMMARY).and_then(|entry| entry.node.as_text()),
        _ => None,
    };
    let tasks = items(&top)?.iter().map(story).collect::<Result<Vec<_>, _>>()?;
    let groups = vec![Group { tasks, ..Group::default() }];
    Ok(Plan { summary: summary.map(line).unwrap_or_default(), ..Plan::of_groups(groups) })
}

/// The entry of each story, in the file's order.
///
/// # Errors
/// When there are no stories in it.
pub(super) fn nodes(file: &Arc<str>, text: &str) -> Result<Vec<Node>, Error> {
    items(&top(file, text)?).map(<[Node]>::to_vec)
}

/// Whether a status is that of a story that is done.
pub(super) fn is_done_word(word: &str) -> bool {
    DONE.contains(&plain(word).as_str())
}

fn plain(word: &str) -> String {
    word.trim().to_lowercase().replace(['_', ' '], "-")
}

fn top(file: &Arc<str>, text: &str) -> Result<Node, Error> {
    yaml::read(file, text)?.ok_or_else(|| Error::Empty { name: file.to_string() })
}

/// The list of stories.
fn items(top: &Node) -> Result<&[Node], Error> {
    let list = match &top.value {
        Value::List(_) => top,
        Value::Table(_) => list_of(top)?,
        other => {
            let what = format!("stories are a list, and this is {}", other.kind());
            return Err(Error::wrong(&top.place, what, "begin with 'stories:' and '- id: …' below it"));
        }
    };
    let Value::List(items) = &list.value else {
        let what = format!("stories are a list, and this is {}", list.value.kind());
        return Err(Error::wrong(&list.place, what, "begin each with '- id: …'"));
    };
    Ok(items)
}

fn list_of(top: &Node) -> Result<&Node, Error> {
    if let Some(entry) = first(top, LISTS) {
        return Ok(&entry.node);
    }
    let Value::Table(entries) = &top.value else { return Ok(top) };
    let keys = || entries.iter().map(|entry| entry.key.as_str());
    let near = keys().find_map(|key| nearest(key, LISTS.iter().copied()).map(|list| (key, list)));
    let fix = match near {
        Some((key, list)) => format!("did you mean '{list}' by '{}'?", harmless::line(key)),
        None => "write them below 'stories:', each as '- id: …'".to_owned(),
    };
    Err(Error::wrong(&top.place, "there is no list of stories in it", fix))
}

fn story(node: &Node) -> Result<Task, Error> {
    let Value::Table(_) = node.value else {
        let what = format!("a story is a table, and this is {}", node.value.kind());
        return Err(Error::wrong(
            &node.place,
            what,
            "write it with keys: id, title, status, dependsOn, acceptanceCriteria",
        ));
    };
    let (id, place) = word(node, "id")?;
    if !is_name(&id) {
        let what = format!("'{}' cannot be the ID of a story", harmless::line(&id));
        let fix =
            format!("it takes up to {NAME} letters, digits, '.', '_' and '-', the first a letter or a digit");
        return Err(Error::wrong(&place, what, fix));
    }
    let (title, _) = word(node, "title")?;
    let mut task = Task::new(id, title.trim().to_owned(), place);
    task.needs = needs(node)?;
    let criteria = texts(node, CRITERIA)?;
    task.done = is_done(node)?;
    task.progress = progress(node);
    let mut prompt = title;
    if let Some(entry) = first(node, DESCRIPTION) {
        let Some(text) = entry.node.as_text() else { return Err(no_text(entry, "a text")) };
        prompt = format!("{prompt}\n\n{}", text.trim_end());
    }
    if !criteria.is_empty() {
        let lines: Vec<String> = criteria.iter().map(|(text, _)| format!("- {text}")).collect();
        prompt = format!("{prompt}\n\nIt is done when:\n{}", lines.join("\n"));
    }
    task.prompt = prompt;
    Ok(task)
}

/// A short text that has to be there; a number counts as its digits.
fn word(node: &Node, key: &'static str) -> Result<(String, Place), Error> {
    let missing = || Error::wrong(&node.place, format!("a story without '{key}'"), format!("add '{key}: …'"));
    let value = node.get(key).ok_or_else(missing)?;
    match &value.value {
        Value::Text(text) if !text.trim().is_empty() => Ok((text.clone(), value.place.clone())),
        Value::Whole(number) => Ok((number.to_string(), value.place.clone())),
        Value::Text(_) | Value::Other("nothing") => Err(missing()),
        other => {
            let what = format!("'{key}' of a story is {}", other.kind());
            Err(Error::wrong(&value.place, what, "it takes a text"))
        }
    }
}

fn needs(node: &Node) -> Result<Vec<Need>, Error> {
    let mut out = Vec::new();
    for (name, place) in texts(node, NEEDS)? {
        let name = name.trim().to_owned();
        if !is_name(&name) {
            let what = format!("'{}' cannot be the ID of a story", harmless::line(&name));
            return Err(Error::wrong(&place, what, "name another story by its ID, as in [US-1, US-2]"));
        }
        out.push(Need { name, place });
    }
    Ok(out)
}

/// A text, or a list of them.
fn texts(node: &Node, keys: &[&str]) -> Result<Vec<(String, Place)>, Error> {
    let Some(entry) = first(node, keys) else { return Ok(Vec::new()) };
    let items = match &entry.node.value {
        Value::Other("nothing") => return Ok(Vec::new()),
        Value::List(items) => items.as_slice(),
        _ => std::slice::from_ref(&entry.node),
    };
    let text = |item: &Node| match &item.value {
        Value::Text(text) => Ok((text.trim_end().to_owned(), item.place.clone())),
        Value::Whole(number) => Ok((number.to_string(), item.place.clone())),
        _ => Err(no_text(&Entry { node: item.clone(), ..entry.clone() }, "a text or a list of texts")),
    };
    items.iter().map(text).collect()
}

fn no_text(entry: &Entry, takes: &str) -> Error {
    let what = format!("'{}' of a story is {}", entry.key, entry.node.value.kind());
    Error::wrong(&entry.node.place, what, format!("it takes {takes}"))
}

/// Whether it is done: by its status, or by `passes`.
fn is_done(node: &Node) -> Result<bool, Error> {
    let passes = matches!(node.get("passes").map(|node| &node.value), Some(Value::Truth(true)));
    let Some(status) = node.get("status") else { return Ok(passes) };
    let word = match &status.value {
        Value::Text(word) => word,
        Value::Other("nothing") => return Ok(passes),
        other => {
            let what = format!("'status' of a story is {}", other.kind());
            return Err(Error::wrong(&status.place, what, "it takes a word, as in done or todo"));
        }
    };
    let plain = plain(word);
    if is_done_word(word) {
        return Ok(true);
    }
    if OPEN.contains(&plain.as_str()) {
        return Ok(passes);
    }
    let what = format!("there is no status '{}'", harmless::line(word));
    let fix = match nearest(&plain, DONE.iter().chain(OPEN).copied()) {
        Some(near) => format!("did you mean '{near}'?"),
        None => format!("done is: {}; to be done is: {}", DONE.join(", "), OPEN.join(", ")),
    };
    Err(Error::wrong(&status.place, what, fix))
}

/// How many of its tasks are done, where it lists some with boxes of their own.
fn progress(node: &Node) -> Option<Progress> {
    let items = node.list("tasks");
    let done = |item: &Node| match item.get("done").map(|node| &node.value) {
        Some(Value::Truth(done)) => Some(*done),
        _ => None,
    };
    let boxes: Vec<bool> = items.iter().filter_map(done).collect();
    (!boxes.is_empty()).then(|| Progress { done: boxes.iter().filter(|b| **b).count(), of: boxes.len() })
}

/// The first of these keys that is there.
fn first<'n>(node: &'n Node, keys: &[&str]) -> Option<&'n Entry> {
    let Value::Table(entries) = &node.value else { return None };
    keys.iter().find_map(|key| entries.iter().find(|entry| entry.key == *key))
}

#[cfg(test)]
mod tests;

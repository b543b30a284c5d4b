//! Plans that are lists of stories in YAML, in the variants that common tools write.

use std::sync::Arc;

use proq_base::explain::closest_match;
use proq_base::terminal_text;

use super::plan::{BoxProgress, Group, Need, Plan, Task, first_line, is_task_or_area_name};
use super::plan_error::{PlanError, SourceLocation};
use super::source_node::{NodeValue, SourceNode, TableEntry};
use super::table_schema::ValueKind;
use super::yaml;

/// Keys of the list of stories.
const STORY_LIST_KEYS: &[&str] = &["stories", "userStories", "user_stories"];
/// Keys of the plan's summary.
const SUMMARY_KEYS: &[&str] = &["summary", "project", "title", "name"];
/// Keys of a story's description.
const DESCRIPTION_KEYS: &[&str] = &["description", "story"];
/// Keys of the IDs of stories that a story depends on.
const NEEDS_KEYS: &[&str] = &["dependsOn", "depends_on", "dependencies"];
/// Keys of a story's acceptance criteria.
const CRITERIA_KEYS: &[&str] = &["acceptanceCriteria", "acceptance_criteria", "acceptance", "criteria"];

/// Status words of a story that is done. [`OPEN_STATUSES`] has those of a story that is not.
const DONE_STATUSES: &[&str] = &["done", "complete", "completed", "merged", "closed", "passed"];
const OPEN_STATUSES: &[&str] = &[
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

/// Reads a list of stories as a plan.
///
/// # Errors
/// Fails with the first error in the file.
pub fn read(file: &Arc<str>, text: &str) -> Result<Plan, PlanError> {
    let root = parse_root(file, text)?;
    let summary = first_entry(&root, SUMMARY_KEYS).and_then(|entry| entry.node.as_text());
    let tasks = story_items(&root)?.iter().map(read_story).collect::<Result<Vec<_>, _>>()?;
    let groups = vec![Group { tasks, ..Group::default() }];
    Ok(Plan { summary: summary.map(first_line).unwrap_or_default(), ..Plan::from_groups(groups) })
}

/// Returns the node of each story, in the file's order.
///
/// # Errors
/// Fails if there is no list of stories.
pub(crate) fn story_nodes(file: &Arc<str>, text: &str) -> Result<Vec<SourceNode>, PlanError> {
    story_items(&parse_root(file, text)?).map(<[SourceNode]>::to_vec)
}

/// Returns whether a status means that the story is done.
pub(crate) fn is_done_status(status: &str) -> bool {
    DONE_STATUSES.contains(&normalize_status(status).as_str())
}

/// Returns a status word in lower case, with dashes for spaces and underscores.
fn normalize_status(status: &str) -> String {
    status.trim().to_lowercase().replace(['_', ' '], "-")
}

/// Parses the file's only document. Fails for an empty file.
fn parse_root(file: &Arc<str>, text: &str) -> Result<SourceNode, PlanError> {
    yaml::read(file, text)?.ok_or_else(|| PlanError::NoTasks { source_name: file.to_string() })
}

/// Returns the nodes of the list of stories.
fn story_items(root: &SourceNode) -> Result<&[SourceNode], PlanError> {
    let (list, hint) = match &root.value {
        NodeValue::Table(entries) => (find_story_list(root, entries)?, "begin each with '- id: …'"),
        _ => (root, "begin with 'stories:' and '- id: …' below it"),
    };
    let NodeValue::List(items) = &list.value else {
        let message = format!("stories are a list, and this is {}", list.value.describe_kind());
        return Err(PlanError::invalid(&list.location, message, hint));
    };
    Ok(items)
}

/// Returns the list of stories in a table with these entries.
fn find_story_list<'n>(root: &'n SourceNode, entries: &[TableEntry]) -> Result<&'n SourceNode, PlanError> {
    if let Some(entry) = first_entry(root, STORY_LIST_KEYS) {
        return Ok(&entry.node);
    }
    let keys = || entries.iter().map(|entry| entry.key.as_str());
    let suggestion =
        keys().find_map(|key| closest_match(key, STORY_LIST_KEYS.iter().copied()).map(|list| (key, list)));
    let hint = match suggestion {
        Some((key, list)) => format!("did you mean '{list}' by '{}'?", terminal_text::escape_line(key)),
        None => "write them below 'stories:', each as '- id: …'".to_owned(),
    };
    Err(PlanError::invalid(&root.location, "there is no list of stories in it", hint))
}

/// Reads a story as a task. Its prompt has the title, the description and the acceptance criteria.
fn read_story(node: &SourceNode) -> Result<Task, PlanError> {
    node.table_entries("a story", "id, title, status, dependsOn, acceptanceCriteria")?;
    let (id, location) = required_text(node, "id")?;
    require_valid_id(&id, &location, &format!("expected {}", ValueKind::Name.describe()))?;
    let (title, _) = required_text(node, "title")?;
    let mut task = Task::new(id, title.trim().to_owned(), location);
    task.needs = read_needs(node)?;
    let criteria = text_list(node, CRITERIA_KEYS)?;
    task.done = is_done(node)?;
    task.progress = read_progress(node);
    let mut prompt = title;
    if let Some(entry) = first_entry(node, DESCRIPTION_KEYS) {
        let Some(text) = entry.node.as_text() else {
            return Err(kind_error(&entry.key, &entry.node, "a text"));
        };
        prompt = format!("{prompt}\n\n{}", text.trim_end());
    }
    if !criteria.is_empty() {
        let lines: Vec<String> = criteria.iter().map(|(text, _)| format!("- {text}")).collect();
        prompt = format!("{prompt}\n\nIt is done when:\n{}", lines.join("\n"));
    }
    task.prompt = prompt;
    Ok(task)
}

/// Returns a required short text. A number counts as its digits.
fn required_text(node: &SourceNode, key: &'static str) -> Result<(String, SourceLocation), PlanError> {
    let missing =
        || PlanError::invalid(&node.location, format!("a story without '{key}'"), format!("add '{key}: …'"));
    let value = node.get(key).ok_or_else(missing)?;
    match &value.value {
        NodeValue::Text(text) if !text.trim().is_empty() => Ok((text.clone(), value.location.clone())),
        NodeValue::Integer(number) => Ok((number.to_string(), value.location.clone())),
        NodeValue::Text(_) | NodeValue::Other("nothing") => Err(missing()),
        _ => Err(kind_error(key, value, "a text")),
    }
}

/// Fails with `hint` if a text is no valid ID.
fn require_valid_id(id: &str, location: &SourceLocation, hint: &str) -> Result<(), PlanError> {
    if is_task_or_area_name(id) {
        return Ok(());
    }
    let message = format!("'{}' cannot be the ID of a story", terminal_text::escape_line(id));
    Err(PlanError::invalid(location, message, hint))
}

/// Reads the IDs of the stories that a story depends on.
fn read_needs(node: &SourceNode) -> Result<Vec<Need>, PlanError> {
    let mut out = Vec::new();
    for (name, location) in text_list(node, NEEDS_KEYS)? {
        let name = name.trim().to_owned();
        require_valid_id(&name, &location, "name another story by its ID, as in [US-1, US-2]")?;
        out.push(Need { name, location });
    }
    Ok(out)
}

/// Returns the texts of the first of these keys that is present: a list of texts, or one text.
fn text_list(node: &SourceNode, keys: &[&str]) -> Result<Vec<(String, SourceLocation)>, PlanError> {
    let Some(entry) = first_entry(node, keys) else { return Ok(Vec::new()) };
    let items = match &entry.node.value {
        NodeValue::Other("nothing") => return Ok(Vec::new()),
        NodeValue::List(items) => items.as_slice(),
        _ => std::slice::from_ref(&entry.node),
    };
    let to_text = |item: &SourceNode| match &item.value {
        NodeValue::Text(text) => Ok((text.trim_end().to_owned(), item.location.clone())),
        NodeValue::Integer(number) => Ok((number.to_string(), item.location.clone())),
        _ => Err(kind_error(&entry.key, item, "a text or a list of texts")),
    };
    items.iter().map(to_text).collect()
}

/// Returns the error for a value of a kind that its key does not take.
fn kind_error(key: &str, value: &SourceNode, expected: &str) -> PlanError {
    let message = format!("'{key}' of a story is {}", value.value.describe_kind());
    PlanError::invalid(&value.location, message, format!("expected {expected}"))
}

/// Returns whether a story is done, according to `status` or `passes`.
fn is_done(node: &SourceNode) -> Result<bool, PlanError> {
    let passes = matches!(node.get("passes").map(|node| &node.value), Some(NodeValue::Bool(true)));
    let Some(status) = node.get("status") else { return Ok(passes) };
    let status_word = match &status.value {
        NodeValue::Text(word) => word,
        NodeValue::Other("nothing") => return Ok(passes),
        _ => return Err(kind_error("status", status, "a word, as in done or todo")),
    };
    let normalized = normalize_status(status_word);
    if is_done_status(status_word) {
        return Ok(true);
    }
    if OPEN_STATUSES.contains(&normalized.as_str()) {
        return Ok(passes);
    }
    let message = format!("there is no status '{}'", terminal_text::escape_line(status_word));
    let hint = match closest_match(&normalized, DONE_STATUSES.iter().chain(OPEN_STATUSES).copied()) {
        Some(suggestion) => format!("did you mean '{suggestion}'?"),
        None => format!("done is: {}; to be done is: {}", DONE_STATUSES.join(", "), OPEN_STATUSES.join(", ")),
    };
    Err(PlanError::invalid(&status.location, message, hint))
}

/// Counts the done tasks of a story that lists tasks with a `done` key.
fn read_progress(node: &SourceNode) -> Option<BoxProgress> {
    let items = node.get_list("tasks");
    let done_flag = |item: &SourceNode| match item.get("done").map(|node| &node.value) {
        Some(NodeValue::Bool(done)) => Some(*done),
        _ => None,
    };
    let done_flags: Vec<bool> = items.iter().filter_map(done_flag).collect();
    (!done_flags.is_empty())
        .then(|| BoxProgress { done: done_flags.iter().filter(|b| **b).count(), total: done_flags.len() })
}

/// Returns the entry of the first of these keys that is present.
fn first_entry<'n>(node: &'n SourceNode, keys: &[&str]) -> Option<&'n TableEntry> {
    let NodeValue::Table(entries) = &node.value else { return None };
    keys.iter().find_map(|key| entries.iter().find(|entry| entry.key == *key))
}

#[cfg(test)]
mod tests;

//! Owns plans in TOML, the form of git-proq's own: what may be in one, reading, writing, and the one to begin with.

mod write;

use std::sync::Arc;

use serde_json::Value as Json;
use toml::de::{DeTable, DeValue};

use super::node::{Entry, Node, Places, Value};
use super::plan::Need;
use super::shape::{Field, Form, Shape};
use super::{Error, Group, Order, Phase, Plan, Size, Task};
use crate::harmless;

pub(crate) use write::written;

/// The plan that `git proq plan --init` writes.
pub(crate) const TEMPLATE: &str = include_str!("template.toml");

/// The version of the form.
const FORMAT: i64 = 1;

const fn field(key: &'static str, form: Form, about: &'static str) -> Field {
    Field { key, form, required: false, about }
}

const fn required(key: &'static str, form: Form, about: &'static str) -> Field {
    Field { key, form, required: true, about }
}

/// The keys of a list of groups, or of tasks.
const GROUPS: Field = field("group", Form::Tables(&GROUP), "groups of tasks");
const TASKS: Field = field("task", Form::Tables(&TASK), "tasks");

static PLAN: Shape = Shape {
    what: "a plan",
    name: "plan",
    fields: &[
        required("format", Form::Exactly(FORMAT), "the version of this form"),
        field("summary", Form::Line, "what the plan is about"),
        field("warnings", Form::Lines, "what to know before it is run"),
        field(
            "criteria",
            Form::Lines,
            "what has to be true once all of it is done; `$ COMMAND` is one that has to succeed",
        ),
        field("agent", Form::Word, "the agent of tasks that name none"),
        field("model", Form::Word, "the model of tasks that name none"),
        field("phase", Form::Tables(&PHASE), "phases; each begins when the one before is over"),
        GROUPS,
        TASKS,
    ],
    apart: &["phase", "group", "task"],
    open: false,
};

static PHASE: Shape = Shape {
    what: "a phase",
    name: "phase",
    fields: &[
        field("title", Form::Line, "what it is called"),
        field(
            "order",
            Form::OneOf(&["parallel", "serial"]),
            "whether its tasks go at the same time, as far as they do not need each other, or one after the other",
        ),
        GROUPS,
        TASKS,
    ],
    apart: &["group", "task"],
    open: false,
};

static GROUP: Shape = Shape {
    what: "a group",
    name: "group",
    fields: &[
        field("theme", Form::Line, "what its tasks have in common"),
        field("rationale", Form::Text, "why they are a group"),
        field("agent", Form::Word, "the agent of its tasks that name none"),
        field("model", Form::Word, "the model of its tasks that name none"),
        field("prompt", Form::Text, "what each of its agents is told besides the task"),
        TASKS,
    ],
    apart: &[],
    open: false,
};

static TASK: Shape = Shape {
    what: "a task",
    name: "task",
    fields: &[
        required("id", Form::Name, "its name, by which others need it"),
        field("area", Form::Name, "where it belongs; IDs have to differ within an area only"),
        required("title", Form::Line, "what it is about"),
        field("prompt", Form::Text, "what the agent is told; the title where it is left out"),
        field("needs", Form::Needs, "the tasks that have to be done before: ID, or area/ID"),
        field(
            "scope",
            Form::Globs,
            "files that it is about: tasks that have some in common go one after the other",
        ),
        field("size", Form::OneOf(Size::WORDS), "how much work it is: S, M (which most are) or L"),
        field("agent", Form::Word, "who is to do it"),
        field("model", Form::Word, "with which model"),
        field("checks", Form::Lines, "shell commands that succeed when it is done"),
        field("done", Form::Truth, "true when it has been done before"),
    ],
    apart: &[],
    open: false,
};

/// The JSON schema of a plan, for editors.
pub(crate) fn schema() -> Json {
    let mut below = serde_json::Map::new();
    let mut out = PLAN.schema(&mut below);
    out["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
    out["title"] = "a plan for git proq".into();
    out["$defs"] = below.into();
    out
}

/// A plan in JSON as an agent is told of it: the same keys, without those that are the user's own to choose.
pub(super) fn outline() -> String {
    PLAN.outline(&["format", "agent", "model", "done"])
}

/// Reads a plan.
///
/// # Errors
/// The first mistake in it.
pub(super) fn read(file: &Arc<str>, text: &str) -> Result<Plan, Error> {
    plan_of(&top(file, text)?)
}

/// The plan that a table describes, whatever it was written in.
///
/// # Errors
/// The first mistake in it.
pub(super) fn plan_of(top: &Node) -> Result<Plan, Error> {
    PLAN.check(top)?;
    let line = |key| top.text(key).map(ToOwned::to_owned);
    Ok(Plan {
        summary: line("summary").unwrap_or_default(),
        warnings: top.texts("warnings"),
        criteria: top.texts("criteria"),
        agent: line("agent"),
        model: line("model"),
        phases: phases(top).into_iter().map(phase).collect(),
        remarks: Vec::new(),
    })
}

/// The entry of each task, in the plan's order.
///
/// # Errors
/// The first mistake in the plan.
pub(super) fn nodes(file: &Arc<str>, text: &str) -> Result<Vec<Node>, Error> {
    let top = top(file, text)?;
    PLAN.check(&top)?;
    let groups = phases(&top).into_iter().flat_map(|phase| match phase.list("group") {
        [] => std::slice::from_ref(phase),
        groups => groups,
    });
    Ok(groups.flat_map(|group| group.list("task")).cloned().collect())
}

/// The file as it is written.
fn top(file: &Arc<str>, text: &str) -> Result<Node, Error> {
    let places = Places::new(file, text);
    let table = DeTable::parse(text).map_err(|error| {
        let place = places.place(error.span().map_or(0, |span| span.start));
        let what = harmless::line(&error.message().trim().replace('\n', ", "));
        Error::wrong(&place, what, "this is where it stops being TOML: https://toml.io")
    })?;
    Ok(Node { place: places.place(0), value: table_of(table.get_ref(), &places) })
}

/// The entries of the phases; a plan without any is one.
fn phases(top: &Node) -> Vec<&Node> {
    if top.get("phase").is_some() { top.list("phase").iter().collect() } else { vec![top] }
}

/// A phase.
fn phase(node: &Node) -> Phase {
    let groups = match node.list("group") {
        // A key of the plan's own is no group's.
        [] => vec![Group { tasks: node.list("task").iter().map(task).collect(), ..Group::default() }],
        groups => groups.iter().map(group).collect(),
    };
    let order = if node.text("order") == Some("serial") { Order::Serial } else { Order::Parallel };
    Phase { title: node.text("title").unwrap_or_default().to_owned(), order, groups }
}

fn group(node: &Node) -> Group {
    let text = |key| node.text(key).map(ToOwned::to_owned);
    Group {
        theme: text("theme").unwrap_or_default(),
        rationale: text("rationale").unwrap_or_default(),
        agent: text("agent"),
        model: text("model"),
        prompt: text("prompt").unwrap_or_default(),
        tasks: node.list("task").iter().map(task).collect(),
    }
}

fn task(node: &Node) -> Task {
    let text = |key| node.text(key).map(ToOwned::to_owned);
    // An error about a task is best shown where its name stands.
    let place = node.get("id").map_or(&node.place, |id| &id.place);
    let title = text("title").unwrap_or_default();
    let needs = node
        .list("needs")
        .iter()
        .filter_map(|need| Some(Need { name: need.as_text()?.trim().to_owned(), place: need.place.clone() }));
    Task {
        area: text("area"),
        prompt: text("prompt").unwrap_or_else(|| title.clone()),
        needs: needs.collect(),
        scope: node.texts("scope"),
        size: node.text("size").and_then(Size::of).unwrap_or_default(),
        agent: text("agent"),
        model: text("model"),
        checks: node.texts("checks"),
        done: matches!(node.get("done").map(|done| &done.value), Some(Value::Truth(true))),
        ..Task::new(text("id").unwrap_or_default(), title, place.clone())
    }
}

/// A table in the order of the file.
fn table_of(table: &DeTable<'_>, places: &Places<'_>) -> Value {
    let mut entries: Vec<(usize, Entry)> = Vec::new();
    for (key, value) in table {
        let at = key.span().start;
        let node = node_of(value.get_ref(), value.span().start, places);
        let key = key.get_ref().clone().into_owned();
        entries.push((at, Entry { key, place: places.place(at), node }));
    }
    entries.sort_by_key(|(at, _)| *at);
    Value::Table(entries.into_iter().map(|(_, entry)| entry).collect())
}

fn node_of(value: &DeValue<'_>, at: usize, places: &Places<'_>) -> Node {
    let value = match value {
        DeValue::String(text) => Value::Text(text.clone().into_owned()),
        DeValue::Integer(number) => match i64::from_str_radix(number.as_str(), number.radix()) {
            Ok(number) => Value::Whole(number),
            Err(_) => Value::Other("a number that is too large"),
        },
        DeValue::Boolean(truth) => Value::Truth(*truth),
        DeValue::Array(items) => {
            Value::List(items.iter().map(|item| node_of(item.get_ref(), item.span().start, places)).collect())
        }
        DeValue::Table(table) => table_of(table, places),
        DeValue::Float(_) => Value::Other("a number with a point"),
        DeValue::Datetime(_) => Value::Other("a date"),
    };
    Node { place: places.place(at), value }
}

#[cfg(test)]
mod tests;

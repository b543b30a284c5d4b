//! Plans in TOML, git-proq's native format: schema, reader, writer and template.

pub mod write;

use std::sync::Arc;

use proq_base::terminal_text;
use serde_json::Value as Json;
use toml::de::{DeTable, DeValue};

use super::plan::{Group, Need, Phase, PhaseOrder, Plan, Size, Task};
use super::plan_error::PlanError;
use super::source_node::{NodeValue, SourceNode, TableEntry, TextLocator};
use super::table_schema::{TableField, TableSchema, ValueKind};
use write::FORMAT_VERSION;

/// The template that `git proq plan --init` writes.
pub const PLAN_TEMPLATE: &str = include_str!("template.toml");

/// Creates the schema of a key that a table may have.
const fn optional_key(key: &'static str, kind: ValueKind, description: &'static str) -> TableField {
    TableField { key, kind, required: false, description }
}

/// Creates the schema of a key that a table must have.
const fn required_key(key: &'static str, kind: ValueKind, description: &'static str) -> TableField {
    TableField { key, kind, required: true, description }
}

/// Key of a list of groups. [`TASKS_FIELD`] is that of a list of tasks.
const GROUPS_FIELD: TableField =
    optional_key("group", ValueKind::TableList(&GROUP_SCHEMA), "groups of tasks");
const TASKS_FIELD: TableField = optional_key("task", ValueKind::TableList(&TASK_SCHEMA), "tasks");

static PLAN_SCHEMA: TableSchema = TableSchema {
    noun: "a plan",
    fields: &[
        required_key("format", ValueKind::ExactInteger(FORMAT_VERSION), "version of this format"),
        optional_key("summary", ValueKind::Line, "summary of the plan"),
        optional_key("warnings", ValueKind::LineList, "what the user should know before the plan runs"),
        optional_key(
            "criteria",
            ValueKind::LineList,
            "what must be true once the whole plan is done; `$ COMMAND` is a command that must succeed",
        ),
        optional_key("agent", ValueKind::Word, "agent of tasks without an agent"),
        optional_key("model", ValueKind::Word, "model of tasks without a model"),
        optional_key(
            "phase",
            ValueKind::TableList(&PHASE_SCHEMA),
            "phases; each starts when the previous one is finished",
        ),
        GROUPS_FIELD,
        TASKS_FIELD,
    ],
    exclusive_keys: &["phase", "group", "task"],
};

static PHASE_SCHEMA: TableSchema = TableSchema {
    noun: "a phase",
    fields: &[
        optional_key("title", ValueKind::Line, "title of the phase"),
        optional_key(
            "order",
            ValueKind::OneOf(&["parallel", "serial"]),
            "whether its tasks run in parallel, as far as their needs allow, or one after another",
        ),
        GROUPS_FIELD,
        TASKS_FIELD,
    ],
    exclusive_keys: &["group", "task"],
};

static GROUP_SCHEMA: TableSchema = TableSchema {
    noun: "a group",
    fields: &[
        optional_key("theme", ValueKind::Line, "what the tasks of the group have in common"),
        optional_key("rationale", ValueKind::Text, "why these tasks form a group"),
        optional_key("agent", ValueKind::Word, "agent of the group's tasks without an agent"),
        optional_key("model", ValueKind::Word, "model of the group's tasks without a model"),
        optional_key("prompt", ValueKind::Text, "text added to the prompt of each task of the group"),
        TASKS_FIELD,
    ],
    exclusive_keys: &[],
};

static TASK_SCHEMA: TableSchema = TableSchema {
    noun: "a task",
    fields: &[
        required_key("id", ValueKind::Name, "name of the task, used in the needs of other tasks"),
        optional_key("area", ValueKind::Name, "area of the task; IDs must be unique within an area only"),
        required_key("title", ValueKind::Line, "title of the task"),
        optional_key("prompt", ValueKind::Text, "prompt for the agent; default: the title"),
        optional_key("needs", ValueKind::NeedList, "tasks that must be done first: ID, or area/ID"),
        optional_key(
            "scope",
            ValueKind::GlobList,
            "globs of the files that the task changes; tasks whose scopes overlap run one after another",
        ),
        optional_key("size", ValueKind::OneOf(Size::NAMES), "amount of work: S, M (most tasks) or L"),
        optional_key("agent", ValueKind::Word, "agent that does the task"),
        optional_key("model", ValueKind::Word, "model of the agent"),
        optional_key("checks", ValueKind::LineList, "shell commands that succeed once the task is done"),
        optional_key("done", ValueKind::Bool, "true if the task is done already"),
    ],
    exclusive_keys: &[],
};

/// Returns the JSON schema of a plan, for editors.
pub fn plan_schema() -> Json {
    let mut definitions = serde_json::Map::new();
    let mut out = PLAN_SCHEMA.json_schema(&mut definitions);
    out["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
    out["title"] = "a plan for git proq".into();
    out["$defs"] = definitions.into();
    out
}

/// Returns the outline of a plan in JSON for the prompt of a planning agent. It omits the keys that only the
/// user chooses.
pub fn json_outline() -> String {
    PLAN_SCHEMA.outline(&["format", "agent", "model", "done"], 0)
}

/// Reads a plan.
///
/// # Errors
/// Fails with the first error in the file.
pub fn read(file: &Arc<str>, text: &str) -> Result<Plan, PlanError> {
    plan_from_node(&parse_root(file, text)?)
}

/// Builds the plan that a table describes, in whichever syntax it was written.
///
/// # Errors
/// Fails with the first error in the table.
pub fn plan_from_node(root: &SourceNode) -> Result<Plan, PlanError> {
    PLAN_SCHEMA.validate(root)?;
    Ok(Plan {
        summary: root.owned_text("summary").unwrap_or_default(),
        warnings: root.get_texts("warnings"),
        criteria: root.get_texts("criteria"),
        agent: root.owned_text("agent"),
        model: root.owned_text("model"),
        phases: phase_nodes(root).into_iter().map(read_phase).collect(),
        source_notes: Vec::new(),
    })
}

/// Returns the node of each task, in the plan's order.
///
/// # Errors
/// Fails with the first error in the plan.
pub(crate) fn task_nodes(file: &Arc<str>, text: &str) -> Result<Vec<SourceNode>, PlanError> {
    let root = parse_root(file, text)?;
    PLAN_SCHEMA.validate(&root)?;
    let groups = phase_nodes(&root).into_iter().flat_map(|phase| match phase.get_list("group") {
        [] => std::slice::from_ref(phase),
        groups => groups,
    });
    Ok(groups.flat_map(|group| group.get_list("task")).cloned().collect())
}

/// Parses a TOML file into nodes with locations.
fn parse_root(file: &Arc<str>, text: &str) -> Result<SourceNode, PlanError> {
    let locator = TextLocator::new(file, text);
    let table = DeTable::parse(text).map_err(|error| {
        let location = locator.locate(error.span().map_or(0, |span| span.start));
        let message = terminal_text::escape_line(&error.message().trim().replace('\n', ", "));
        PlanError::invalid(&location, message, "this is where it stops being TOML: https://toml.io")
    })?;
    Ok(SourceNode { location: locator.locate(0), value: table_value(table.get_ref(), &locator) })
}

/// Returns the nodes of the phases. A plan without phases is itself the only phase.
fn phase_nodes(root: &SourceNode) -> Vec<&SourceNode> {
    if root.get("phase").is_some() { root.get_list("phase").iter().collect() } else { vec![root] }
}

/// Reads a phase from its table.
fn read_phase(node: &SourceNode) -> Phase {
    let groups = match node.get_list("group") {
        // Without groups, keys such as `agent` belong to the plan, not to the implicit group.
        [] => {
            vec![Group { tasks: node.get_list("task").iter().map(read_task).collect(), ..Group::default() }]
        }
        groups => groups.iter().map(read_group).collect(),
    };
    let order =
        if node.get_text("order") == Some("serial") { PhaseOrder::Serial } else { PhaseOrder::Parallel };
    Phase { title: node.owned_text("title").unwrap_or_default(), order, groups }
}

/// Reads a group from its validated table.
fn read_group(node: &SourceNode) -> Group {
    Group {
        theme: node.owned_text("theme").unwrap_or_default(),
        rationale: node.owned_text("rationale").unwrap_or_default(),
        agent: node.owned_text("agent"),
        model: node.owned_text("model"),
        prompt: node.owned_text("prompt").unwrap_or_default(),
        tasks: node.get_list("task").iter().map(read_task).collect(),
    }
}

/// Reads a task from its validated table.
fn read_task(node: &SourceNode) -> Task {
    // An error about a task points to its ID.
    let location = node.get("id").map_or(&node.location, |id| &id.location);
    let title = node.owned_text("title").unwrap_or_default();
    let needs = node.get_list("needs").iter().filter_map(|need| {
        Some(Need { name: need.as_text()?.trim().to_owned(), location: need.location.clone() })
    });
    Task {
        area: node.owned_text("area"),
        prompt: node.owned_text("prompt").unwrap_or_else(|| title.clone()),
        needs: needs.collect(),
        scope: node.get_texts("scope"),
        size: node.get_text("size").and_then(Size::parse).unwrap_or_default(),
        agent: node.owned_text("agent"),
        model: node.owned_text("model"),
        checks: node.get_texts("checks"),
        done: matches!(node.get("done").map(|done| &done.value), Some(NodeValue::Bool(true))),
        ..Task::new(node.owned_text("id").unwrap_or_default(), title, location.clone())
    }
}

/// Converts a TOML table to a value, with its entries in the order of the file.
fn table_value(table: &DeTable<'_>, locator: &TextLocator<'_>) -> NodeValue {
    let mut entries: Vec<(usize, TableEntry)> = Vec::new();
    for (key, value) in table {
        let offset = key.span().start;
        let node = value_node(value.get_ref(), value.span().start, locator);
        let key = key.get_ref().clone().into_owned();
        entries.push((offset, TableEntry { key, location: locator.locate(offset), node }));
    }
    entries.sort_by_key(|(at, _)| *at);
    NodeValue::Table(entries.into_iter().map(|(_, entry)| entry).collect())
}

/// Converts a TOML value that starts at byte `offset` to a node.
fn value_node(value: &DeValue<'_>, offset: usize, locator: &TextLocator<'_>) -> SourceNode {
    let value = match value {
        DeValue::String(text) => NodeValue::Text(text.clone().into_owned()),
        DeValue::Integer(number) => match i64::from_str_radix(number.as_str(), number.radix()) {
            Ok(number) => NodeValue::Integer(number),
            Err(_) => NodeValue::Other("a number that is too large"),
        },
        DeValue::Boolean(flag) => NodeValue::Bool(*flag),
        DeValue::Array(items) => NodeValue::List(
            items.iter().map(|item| value_node(item.get_ref(), item.span().start, locator)).collect(),
        ),
        DeValue::Table(table) => table_value(table, locator),
        DeValue::Float(_) => NodeValue::Other("a number with a point"),
        DeValue::Datetime(_) => NodeValue::Other("a date"),
    };
    SourceNode { location: locator.locate(offset), value }
}

#[cfg(test)]
mod tests;

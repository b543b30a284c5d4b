//! Schema of the tables of a plan: one description serves for validation and for the JSON schema that editors
//! use. Types derived with serde and schemars would be longer: their errors do not name what a key takes,
//! their properties are not in declared order, and values with locations come from three syntaxes.

use proq_base::explain::closest_match;
use proq_base::terminal_text;
use proq_git as git;
use proq_git::status::scope;
use serde_json::{Value as Json, json};

use super::plan::{MAX_LINE_CHARS, MAX_NAME_LEN, is_task_or_area_name};
use super::plan_error::PlanError;
use super::source_node::{NodeValue, SourceNode, TableEntry};

/// Keys that other tools use, and the key of a plan that has the same meaning.
const KEY_ALIASES: &[(&str, &str)] = &[
    ("dependencies", "needs"),
    ("depends_on", "needs"),
    ("dependson", "needs"),
    ("description", "prompt"),
    ("files", "scope"),
    ("name", "title"),
    ("success", "criteria"),
];

/// Schema of a table.
#[derive(Debug)]
pub(crate) struct TableSchema {
    /// Noun phrase for the table, as in "a task". The noun is the name of the definition in the JSON schema.
    pub noun: &'static str,
    /// Keys of the table, in the order of the JSON schema.
    pub fields: &'static [TableField],
    /// Mutually exclusive keys.
    pub(crate) exclusive_keys: &'static [&'static str],
}

/// One key of a table, with the kind of its value.
#[derive(Debug)]
pub(crate) struct TableField {
    pub key: &'static str,
    pub kind: ValueKind,
    /// Whether the table must have the key.
    pub required: bool,
    /// Description for the JSON schema and the outline.
    pub description: &'static str,
}

/// Kind of value that a key takes.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ValueKind {
    /// A text of one line.
    Line,
    /// Any text.
    Text,
    /// The name of a task or an area.
    Name,
    /// One word that does not begin with `-`, so that it is no command-line option.
    Word,
    /// A list of texts of one line.
    LineList,
    /// A list of tasks, each `ID` or `area/ID`.
    NeedList,
    /// A list of globs.
    GlobList,
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// True or false.
    Bool,
    /// Exactly this number.
    ExactInteger(i64),
    /// A list of tables.
    TableList(&'static TableSchema),
}

impl ValueKind {
    /// Describes the accepted values in plain text.
    pub(crate) fn describe(self) -> String {
        match self {
            ValueKind::Line => "a text of one line".to_owned(),
            ValueKind::Text => "a text".to_owned(),
            ValueKind::Name => {
                format!(
                    "up to {MAX_NAME_LEN} letters, digits, '.', '_' and '-', the first a letter or a digit"
                )
            }
            ValueKind::Word => "one word that does not begin with '-'".to_owned(),
            ValueKind::LineList => "a list of texts of one line, as in [\"one\", \"two\"]".to_owned(),
            ValueKind::NeedList => "a list of tasks, as in [\"ID\", \"area/ID\"]".to_owned(),
            ValueKind::GlobList => "a list of globs, as in [\"src/pay/\", \"*.md\"]".to_owned(),
            ValueKind::OneOf(words) => format!("one of: {}", words.join(", ")),
            ValueKind::Bool => "true or false".to_owned(),
            ValueKind::ExactInteger(number) => format!("the number {number}"),
            ValueKind::TableList(table) => format!("a list of tables, each {}", table.noun),
        }
    }
}

impl ValueKind {
    /// Returns a sample value in JSON.
    fn json_sample(self) -> String {
        match self {
            ValueKind::Line | ValueKind::Word => "\"one line\"".to_owned(),
            ValueKind::Text => "\"text\"".to_owned(),
            ValueKind::Name => "\"NAME-1\"".to_owned(),
            ValueKind::LineList => "[\"one line\"]".to_owned(),
            ValueKind::NeedList => "[\"NAME-2\"]".to_owned(),
            ValueKind::GlobList => "[\"src/pay/\", \"*.md\"]".to_owned(),
            ValueKind::OneOf(words) => {
                words.iter().map(|w| format!("\"{w}\"")).collect::<Vec<_>>().join(" | ")
            }
            ValueKind::Bool => "true | false".to_owned(),
            ValueKind::ExactInteger(number) => number.to_string(),
            ValueKind::TableList(_) => "[]".to_owned(),
        }
    }
}

impl TableSchema {
    /// Validates a node against this schema.
    ///
    /// # Errors
    /// Fails with the first violation, in the order of the file.
    pub fn validate(&'static self, node: &SourceNode) -> Result<(), PlanError> {
        let entries = node.table_entries(self.noun, &self.key_list())?;
        for (index, entry) in entries.iter().enumerate() {
            let Some(field) = self.fields.iter().find(|field| field.key == entry.key) else {
                return Err(self.unknown_key_error(entry));
            };
            validate_value(self, field, &entry.node)?;
            let is_conflicting = |other: &&TableEntry| self.are_exclusive(&other.key, field.key);
            if let Some(conflicting) = entries[..index].iter().find(is_conflicting) {
                let message = format!("{} has '{}' or '{}', not both", self.noun, conflicting.key, field.key);
                let hint = format!("move all below '{}'", self.exclusive_keys.first().unwrap_or(&""));
                return Err(PlanError::invalid(&entry.location, message, hint));
            }
        }
        let is_missing = |field: &&TableField| field.required && !entries.iter().any(|e| e.key == field.key);
        match self.fields.iter().find(is_missing) {
            None => Ok(()),
            Some(field) => {
                let message = format!("{} without '{}'", self.noun, field.key);
                let hint = format!("add '{}': {}", field.key, field.kind.describe());
                Err(PlanError::invalid(&node.location, message, hint))
            }
        }
    }

    /// Returns whether two keys are different and mutually exclusive.
    fn are_exclusive(&self, first: &str, second: &str) -> bool {
        first != second && self.exclusive_keys.contains(&first) && self.exclusive_keys.contains(&second)
    }

    /// Returns the keys of the table, joined by commas.
    fn key_list(&self) -> String {
        self.fields.iter().map(|field| field.key).collect::<Vec<_>>().join(", ")
    }

    /// Returns the error for a key that the table does not have, with the most similar key.
    fn unknown_key_error(&self, entry: &TableEntry) -> PlanError {
        let message = format!("{} has no '{}'", self.noun, terminal_text::escape_line(&entry.key));
        let known_keys = || self.fields.iter().map(|field| field.key);
        let lower_key = entry.key.to_lowercase();
        let alias =
            KEY_ALIASES.iter().find(|(word, key)| *word == lower_key && known_keys().any(|k| k == *key));
        let hint = match alias.map(|(_, key)| *key).or_else(|| closest_match(&entry.key, known_keys())) {
            Some(suggestion) => format!("did you mean '{suggestion}'?"),
            None => format!("known: {}", self.key_list()),
        };
        PlanError::invalid(&entry.location, message, hint)
    }

    /// Returns the JSON schema of the table. Adds the schemas of nested tables to `definitions`, by name.
    pub fn json_schema(&'static self, definitions: &mut serde_json::Map<String, Json>) -> Json {
        let mut properties = serde_json::Map::new();
        for field in self.fields {
            let mut property = kind_schema(field.kind, definitions);
            property["description"] = field.description.into();
            properties.insert(field.key.to_owned(), property);
        }
        let required: Vec<&str> = self.fields.iter().filter(|f| f.required).map(|f| f.key).collect();
        let mut out = json!({
            "type": "object", "description": self.noun, "additionalProperties": false,
            "properties": properties, "required": required,
        });
        if !self.exclusive_keys.is_empty() {
            let pairs: Vec<Json> = (0..self.exclusive_keys.len())
                .flat_map(|first| (first + 1..self.exclusive_keys.len()).map(move |second| (first, second)))
                .map(|(first, second)| json!({ "required": [self.exclusive_keys[first], self.exclusive_keys[second]] }))
                .collect();
            out["not"] = json!({ "anyOf": pairs });
        }
        out
    }

    /// Returns an outline of the table in JSON, with each key and its description on one line. Omits
    /// `omitted_keys`. Of mutually exclusive keys, only the first is shown. `depth` is the number of levels
    /// by which all lines but the first are indented.
    pub(crate) fn outline(&self, omitted_keys: &[&str], depth: usize) -> String {
        let is_shown = |field: &&TableField| {
            let is_other_alternative = self.exclusive_keys.iter().skip(1).any(|key| *key == field.key);
            !is_other_alternative && !omitted_keys.contains(&field.key)
        };
        let pad = "  ".repeat(depth);
        let mut out = "{\n".to_owned();
        for field in self.fields.iter().filter(is_shown) {
            let required_prefix = if field.required { "required; " } else { "" };
            let note = format!("// {required_prefix}{}", field.description);
            out.push_str(&match field.kind {
                ValueKind::TableList(nested) => {
                    let nested = nested.outline(omitted_keys, depth + 2);
                    format!("{pad}  \"{}\": [ {note}\n{pad}    {nested}\n{pad}  ],\n", field.key)
                }
                kind => format!("{pad}  \"{}\": {}, {note}\n", field.key, kind.json_sample()),
            });
        }
        out + &pad + "}"
    }
}

/// Returns the JSON schema of a kind of value. Adds the schemas of nested tables to `definitions`, by name.
fn kind_schema(kind: ValueKind, definitions: &mut serde_json::Map<String, Json>) -> Json {
    let line_schema = || json!({ "type": "string", "minLength": 1, "maxLength": MAX_LINE_CHARS });
    let name = format!("[A-Za-z0-9][A-Za-z0-9._-]{{0,{}}}", MAX_NAME_LEN - 1);
    match kind {
        ValueKind::Line => line_schema(),
        ValueKind::Text => json!({ "type": "string", "minLength": 1 }),
        ValueKind::Name => json!({ "type": "string", "pattern": format!("^{name}$") }),
        ValueKind::Word => json!({ "type": "string", "pattern": r"^[^-\s]\S*$" }),
        ValueKind::LineList | ValueKind::GlobList => json!({ "type": "array", "items": line_schema() }),
        ValueKind::NeedList => {
            json!({ "type": "array", "items": { "type": "string", "pattern": format!("^({name}/)?{name}$") } })
        }
        ValueKind::OneOf(words) => json!({ "enum": words }),
        ValueKind::Bool => json!({ "type": "boolean" }),
        ValueKind::ExactInteger(number) => json!({ "const": number }),
        ValueKind::TableList(table) => {
            let name = table.noun.trim_start_matches("a ");
            let schema = table.json_schema(definitions);
            definitions.insert(name.to_owned(), schema);
            json!({ "type": "array", "items": { "$ref": format!("#/$defs/{name}") } })
        }
    }
}

/// Validates the value of a field.
fn validate_value(table: &TableSchema, field: &TableField, node: &SourceNode) -> Result<(), PlanError> {
    let invalid = |node: &SourceNode, reason: &str| {
        let message = format!("'{}' of {} is {reason}", field.key, table.noun);
        Err(PlanError::invalid(&node.location, message, format!("expected {}", field.kind.describe())))
    };
    match (field.kind, &node.value) {
        (ValueKind::Bool, NodeValue::Bool(_)) => Ok(()),
        (ValueKind::ExactInteger(number), NodeValue::Integer(n)) if *n == number => Ok(()),
        (ValueKind::ExactInteger(_), NodeValue::Integer(n)) => invalid(node, &n.to_string()),
        (ValueKind::TableList(nested), NodeValue::List(items)) => {
            items.iter().try_for_each(|item| nested.validate(item))
        }
        (ValueKind::LineList | ValueKind::NeedList | ValueKind::GlobList, NodeValue::List(items)) => {
            items.iter().try_for_each(|item| match (&item.value, field.kind) {
                (NodeValue::Text(text), kind) => match text_problem(kind, text) {
                    Some(reason) => invalid(item, &reason),
                    None => Ok(()),
                },
                (other, _) => invalid(item, &format!("a list with {} in it", other.describe_kind())),
            })
        }
        (
            ValueKind::Line | ValueKind::Text | ValueKind::Name | ValueKind::Word | ValueKind::OneOf(_),
            NodeValue::Text(text),
        ) => match text_problem(field.kind, text) {
            Some(reason) => invalid(node, &reason),
            None => Ok(()),
        },
        (_, value) => invalid(node, value.describe_kind()),
    }
}

/// Describes why a text is invalid. None when it is valid.
fn text_problem(kind: ValueKind, text: &str) -> Option<String> {
    if text.trim().is_empty() {
        return Some("empty".to_owned());
    }
    if text.contains('\0') {
        return Some("a text with a NUL in it".to_owned());
    }
    if matches!(kind, ValueKind::Text) {
        return None;
    }
    if text.chars().count() > MAX_LINE_CHARS {
        return Some(format!("longer than {MAX_LINE_CHARS} characters"));
    }
    let quoted = || format!("'{}'", terminal_text::escape_line(text));
    match kind {
        ValueKind::Line | ValueKind::LineList => {
            text.contains(['\n', '\r']).then(|| "more than one line".to_owned())
        }
        ValueKind::Name => (!is_task_or_area_name(text)).then(quoted),
        ValueKind::NeedList => {
            (!text.trim().split_once('/').map_or(is_task_or_area_name(text.trim()), |(area, id)| {
                is_task_or_area_name(area) && is_task_or_area_name(id)
            }))
            .then(quoted)
        }
        ValueKind::Word => {
            let is_forbidden = |c: char| c.is_control() || c.is_whitespace();
            (text.starts_with('-') || text.contains(is_forbidden)).then(quoted)
        }
        ValueKind::OneOf(words) => (!words.contains(&text)).then(quoted),
        ValueKind::GlobList => match scope::Scope::parse(&[text.to_owned()]) {
            Err(git::Error::InvalidGlob { reason: why, .. }) => {
                Some(format!("{}, and no glob: {why}", quoted()))
            }
            _ => None,
        },
        ValueKind::Text | ValueKind::Bool | ValueKind::ExactInteger(_) | ValueKind::TableList(_) => None,
    }
}

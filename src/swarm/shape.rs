//! Owns what a table of a plan may hold: one description for reading it, and for the schema that editors use.

use serde_json::{Value as Json, json};

use super::Error;
use super::node::{Entry, Node, Value};
use crate::explain::nearest;
use crate::{git, harmless};

/// The longest text that is shown in a line.
pub(super) const LINE: usize = 300;
/// The longest name of a task or an area.
pub(super) const NAME: usize = 64;

/// What other tools call what is called otherwise here.
const ALSO: &[(&str, &str)] = &[
    ("dependencies", "needs"),
    ("depends_on", "needs"),
    ("dependson", "needs"),
    ("description", "prompt"),
    ("files", "scope"),
    ("name", "title"),
    ("success", "criteria"),
];

/// What a table may hold.
#[derive(Debug)]
pub(super) struct Shape {
    /// What it describes, as in "a task".
    pub(super) what: &'static str,
    /// Its name in the schema.
    pub(super) name: &'static str,
    pub(super) fields: &'static [Field],
    /// Keys of which at most one may be there.
    pub(super) apart: &'static [&'static str],
    /// Whether keys that nobody knows are passed over.
    pub(super) open: bool,
}

/// One key.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) key: &'static str,
    pub(super) form: Form,
    pub(super) required: bool,
    pub(super) about: &'static str,
}

/// What a value may be.
#[derive(Debug, Clone, Copy)]
pub(super) enum Form {
    /// One line.
    Line,
    /// Any text.
    Text,
    /// A name of a task or an area.
    Name,
    /// A word that is no option.
    Word,
    /// A list of lines.
    Lines,
    /// A list of tasks, `ID` or `area/ID`.
    Needs,
    /// A list of globs.
    Globs,
    OneOf(&'static [&'static str]),
    Truth,
    /// This number.
    Exactly(i64),
    /// A list of tables.
    Tables(&'static Shape),
}

impl Form {
    /// What it takes, in words.
    fn describe(self) -> String {
        match self {
            Form::Line => "a text of one line".to_owned(),
            Form::Text => "a text".to_owned(),
            Form::Name => {
                format!("up to {NAME} letters, digits, '.', '_' and '-', the first a letter or a digit")
            }
            Form::Word => "one word that does not begin with '-'".to_owned(),
            Form::Lines => "a list of texts of one line, as in [\"one\", \"two\"]".to_owned(),
            Form::Needs => "a list of tasks, as in [\"ID\", \"area/ID\"]".to_owned(),
            Form::Globs => "a list of globs, as in [\"src/pay/\", \"*.md\"]".to_owned(),
            Form::OneOf(words) => format!("one of: {}", words.join(", ")),
            Form::Truth => "true or false".to_owned(),
            Form::Exactly(number) => format!("the number {number}"),
            Form::Tables(shape) => format!("a list of tables, each {}", shape.what),
        }
    }
}

impl Form {
    /// What it looks like in JSON.
    fn sample(self) -> String {
        match self {
            Form::Line | Form::Word => "\"one line\"".to_owned(),
            Form::Text => "\"text\"".to_owned(),
            Form::Name => "\"NAME-1\"".to_owned(),
            Form::Lines => "[\"one line\"]".to_owned(),
            Form::Needs => "[\"NAME-2\"]".to_owned(),
            Form::Globs => "[\"src/pay/\", \"*.md\"]".to_owned(),
            Form::OneOf(words) => words.iter().map(|w| format!("\"{w}\"")).collect::<Vec<_>>().join(" | "),
            Form::Truth => "true | false".to_owned(),
            Form::Exactly(number) => number.to_string(),
            Form::Tables(_) => "[]".to_owned(),
        }
    }
}

impl Shape {
    /// Whether a node is as this says.
    ///
    /// # Errors
    /// The first thing that is not, in the order of the file.
    pub(super) fn check(&'static self, node: &Node) -> Result<(), Error> {
        let Value::Table(entries) = &node.value else {
            let what = format!("{} is a table, and this is {}", self.what, node.value.kind());
            return Err(Error::wrong(&node.place, what, format!("write it with keys: {}", self.keys())));
        };
        let mut seen: Vec<&Entry> = Vec::new();
        for entry in entries {
            let Some(field) = self.fields.iter().find(|field| field.key == entry.key) else {
                if self.open {
                    continue;
                }
                return Err(self.unknown(entry));
            };
            check(self, field, &entry.node)?;
            if let Some(other) = seen.iter().find(|other| self.are_apart(&other.key, field.key)) {
                let what = format!("{} has '{}' or '{}', not both", self.what, other.key, field.key);
                let fix = format!("move all below '{}'", self.apart.first().unwrap_or(&""));
                return Err(Error::wrong(&entry.place, what, fix));
            }
            seen.push(entry);
        }
        let missing = |field: &&Field| field.required && !entries.iter().any(|e| e.key == field.key);
        match self.fields.iter().find(missing) {
            None => Ok(()),
            Some(field) => {
                let what = format!("{} without '{}'", self.what, field.key);
                let fix = format!("add '{}': {}", field.key, field.form.describe());
                Err(Error::wrong(&node.place, what, fix))
            }
        }
    }

    fn are_apart(&self, one: &str, other: &str) -> bool {
        one != other && self.apart.contains(&one) && self.apart.contains(&other)
    }

    fn keys(&self) -> String {
        self.fields.iter().map(|field| field.key).collect::<Vec<_>>().join(", ")
    }

    fn unknown(&self, entry: &Entry) -> Error {
        let what = format!("{} has no '{}'", self.what, harmless::line(&entry.key));
        let known = || self.fields.iter().map(|field| field.key);
        let other = entry.key.to_lowercase();
        let same = ALSO.iter().find(|(word, key)| *word == other && known().any(|k| k == *key));
        let fix = match same.map(|(_, key)| *key).or_else(|| nearest(&entry.key, known())) {
            Some(near) => format!("did you mean '{near}'?"),
            None => format!("what there is: {}", self.keys()),
        };
        Error::wrong(&entry.place, what, fix)
    }

    /// The schema of such a table, and of those below it by name.
    pub(super) fn schema(&'static self, below: &mut serde_json::Map<String, Json>) -> Json {
        let mut properties = serde_json::Map::new();
        for field in self.fields {
            let mut one = match field.form {
                Form::Tables(shape) => {
                    if !below.contains_key(shape.name) {
                        let schema = shape.schema(below);
                        below.insert(shape.name.to_owned(), schema);
                    }
                    json!({ "type": "array", "items": { "$ref": format!("#/$defs/{}", shape.name) } })
                }
                form => schema_of(form),
            };
            one["description"] = field.about.into();
            properties.insert(field.key.to_owned(), one);
        }
        let required: Vec<&str> = self.fields.iter().filter(|f| f.required).map(|f| f.key).collect();
        let mut out = json!({
            "type": "object", "description": self.what, "additionalProperties": self.open,
            "properties": properties, "required": required,
        });
        if !self.apart.is_empty() {
            let pairs: Vec<Json> = (0..self.apart.len())
                .flat_map(|one| (one + 1..self.apart.len()).map(move |two| (one, two)))
                .map(|(one, two)| json!({ "required": [self.apart[one], self.apart[two]] }))
                .collect();
            out["not"] = json!({ "anyOf": pairs });
        }
        out
    }
}

impl Shape {
    /// What such a table looks like in JSON, a key with its meaning on each line, without keys of these names. Of keys of which
    /// at most one may be there, the first is shown.
    pub(super) fn outline(&'static self, without: &[&str]) -> String {
        let mut out = String::new();
        self.outline_into(without, 0, &mut out);
        out
    }

    fn outline_into(&'static self, without: &[&str], depth: usize, out: &mut String) {
        let pad = "  ".repeat(depth + 1);
        let first = self.apart.iter().find(|key| self.fields.iter().any(|field| field.key == **key));
        let is_shown = |field: &&Field| {
            let beside = self.apart.contains(&field.key) && first != Some(&field.key);
            !beside && !without.contains(&field.key)
        };
        out.push_str("{\n");
        for field in self.fields.iter().filter(is_shown) {
            let needed = if field.required { "required; " } else { "" };
            let note = format!("// {needed}{}", field.about);
            match field.form {
                Form::Tables(below) => {
                    out.push_str(&format!("{pad}\"{}\": [ {note}\n{pad}  ", field.key));
                    below.outline_into(without, depth + 2, out);
                    out.push_str(&format!("\n{pad}],\n"));
                }
                form => out.push_str(&format!("{pad}\"{}\": {}, {note}\n", field.key, form.sample())),
            }
        }
        out.push_str(&format!("{}}}", "  ".repeat(depth)));
    }
}

fn schema_of(form: Form) -> Json {
    let line = || json!({ "type": "string", "minLength": 1, "maxLength": LINE });
    let name = format!("[A-Za-z0-9][A-Za-z0-9._-]{{0,{}}}", NAME - 1);
    match form {
        Form::Line => line(),
        Form::Text => json!({ "type": "string", "minLength": 1 }),
        Form::Name => json!({ "type": "string", "pattern": format!("^{name}$") }),
        Form::Word => json!({ "type": "string", "pattern": r"^[^-\s]\S*$" }),
        Form::Lines | Form::Globs => json!({ "type": "array", "items": line() }),
        Form::Needs => {
            json!({ "type": "array", "items": { "type": "string", "pattern": format!("^({name}/)?{name}$") } })
        }
        Form::OneOf(words) => json!({ "enum": words }),
        Form::Truth => json!({ "type": "boolean" }),
        Form::Exactly(number) => json!({ "const": number }),
        Form::Tables(_) => Json::Null,
    }
}

/// Whether a value has its field's form.
fn check(shape: &Shape, field: &Field, node: &Node) -> Result<(), Error> {
    let wrong = |node: &Node, why: &str| {
        let what = format!("'{}' of {} is {why}", field.key, shape.what);
        Err(Error::wrong(&node.place, what, format!("it takes {}", field.form.describe())))
    };
    match (field.form, &node.value) {
        (Form::Truth, Value::Truth(_)) => Ok(()),
        (Form::Exactly(number), Value::Whole(n)) if *n == number => Ok(()),
        (Form::Exactly(_), Value::Whole(n)) => wrong(node, &n.to_string()),
        (Form::Tables(below), Value::List(items)) => items.iter().try_for_each(|item| below.check(item)),
        (Form::Lines | Form::Needs | Form::Globs, Value::List(items)) => {
            items.iter().try_for_each(|item| match (&item.value, field.form) {
                (Value::Text(text), form) => match bad_text(form, text) {
                    Some(why) => wrong(item, &why),
                    None => Ok(()),
                },
                (other, _) => wrong(item, &format!("a list with {} in it", other.kind())),
            })
        }
        (Form::Line | Form::Text | Form::Name | Form::Word | Form::OneOf(_), Value::Text(text)) => {
            match bad_text(field.form, text) {
                Some(why) => wrong(node, &why),
                None => Ok(()),
            }
        }
        (_, value) => wrong(node, value.kind()),
    }
}

/// What is wrong with a text, in words.
fn bad_text(form: Form, text: &str) -> Option<String> {
    if text.trim().is_empty() {
        return Some("empty".to_owned());
    }
    if text.contains('\0') {
        return Some("a text with a NUL in it".to_owned());
    }
    if matches!(form, Form::Text) {
        return None;
    }
    if text.chars().count() > LINE {
        return Some(format!("longer than {LINE} characters"));
    }
    let shown = || format!("'{}'", harmless::line(text));
    match form {
        Form::Line | Form::Lines => text.contains(['\n', '\r']).then(|| "more than one line".to_owned()),
        Form::Name => (!is_name(text)).then(shown),
        Form::Needs => (!text
            .trim()
            .split_once('/')
            .map_or(is_name(text.trim()), |(area, id)| is_name(area) && is_name(id)))
        .then(shown),
        Form::Word => {
            let bad = |c: char| c.is_control() || c.is_whitespace();
            (text.starts_with('-') || text.contains(bad)).then(shown)
        }
        Form::OneOf(words) => (!words.contains(&text)).then(shown),
        Form::Globs => match git::Scope::read(&[text.to_owned()]) {
            Err(git::Error::Glob { why, .. }) => Some(format!("{}, and no glob: {why}", shown())),
            _ => None,
        },
        Form::Text | Form::Truth | Form::Exactly(_) | Form::Tables(_) => None,
    }
}

/// Whether a task or an area can be called that.
pub(super) fn is_name(text: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    text.len() <= NAME && text.starts_with(|c: char| c.is_ascii_alphanumeric()) && text.chars().all(fits)
}

//! The schema of the outputs in JSON: made from what the commands print in the states below.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use proq_test_kit::claude::sandbox_with_claude;
use proq_test_kit::plans::repo_with_plan;
use proq_test_kit::{Sandbox, fixtures};
use serde_json::{Map, Value, json};

/// The command that regenerates the schema.
const REGENERATE_COMMAND: &str = "PROQ_TEST_WRITE_SCHEMA=1 cargo test --test interface json_schema";

/// Commands without an output in JSON, or with one that depends on a terminal or on another program.
const WITHOUT_SCHEMA: &[&str] =
    &["completions", "help", "man", "mcp", "schema", "shell-init", "supervise", "demo"];

/// Returns the type of a value as JSON Schema names it.
fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Form of all values that were seen at one place.
#[derive(Debug, Default)]
struct Shape {
    types: BTreeSet<&'static str>,
    object_count: usize,
    /// Forms of the keys of the objects, with the number of objects that have each.
    keys: BTreeMap<String, (usize, Shape)>,
    items: Option<Box<Shape>>,
}

impl Shape {
    fn add(&mut self, value: &Value) {
        self.types.insert(type_name(value));
        match value {
            Value::Array(values) => {
                for value in values {
                    self.items.get_or_insert_default().add(value);
                }
            }
            Value::Object(values) => {
                self.object_count += 1;
                for (key, value) in values {
                    let (count, shape) = self.keys.entry(key.clone()).or_default();
                    *count += 1;
                    shape.add(value);
                }
            }
            _ => {}
        }
    }

    fn to_schema(&self) -> Value {
        let mut types = self.types.clone();
        if types.contains("number") {
            types.remove("integer");
        }
        let mut schema = Map::new();
        let types: Vec<_> = types.into_iter().collect();
        schema.insert("type".into(), if let [one] = types[..] { json!(one) } else { json!(types) });
        if self.object_count > 0 {
            let properties: Map<_, _> =
                self.keys.iter().map(|(key, (_, shape))| (key.clone(), shape.to_schema())).collect();
            let required: Vec<_> = self
                .keys
                .iter()
                .filter(|(_, (count, _))| *count == self.object_count)
                .map(|(key, _)| key)
                .collect();
            schema.insert("properties".into(), properties.into());
            schema.insert("required".into(), json!(required));
        }
        if let Some(items) = &self.items {
            schema.insert("items".into(), items.to_schema());
        }
        schema.into()
    }
}

/// Outputs that were seen, each with its command.
#[derive(Default)]
struct Outputs(Vec<(String, Value)>);

impl Outputs {
    /// Runs commands in a sandbox, one after the other; the words before `|` are the name of the command.
    #[track_caller]
    fn run(&mut self, sandbox: &Sandbox, commands: &[&str]) {
        for command in commands {
            let (name, rest) = command.split_once('|').unwrap_or((command, ""));
            let args: Vec<&str> = name.split(' ').chain(rest.split_whitespace()).collect();
            let out = sandbox.proq(&[&["--json"], &args[..]].concat());
            let value: Value = serde_json::from_str(&out.stdout)
                .unwrap_or_else(|e| panic!("{command}: {e}: {}", out.to_text()));
            assert!(value["schema"] == 1 && value["error"].is_null(), "{command}: {}", out.to_text());
            self.0.push((name.to_owned(), value));
        }
    }

    fn to_schema(&self) -> Value {
        let mut shapes: BTreeMap<&str, Shape> = BTreeMap::new();
        self.0.iter().for_each(|(name, value)| shapes.entry(name).or_default().add(value));
        let schemas: Map<_, _> =
            shapes.iter().map(|(name, shape)| ((*name).to_owned(), shape.to_schema())).collect();
        json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": "Output of git-proq with --json, by command",
            "$defs": schemas,
        })
    }
}

/// Commands in a repository with lanes, of which one conflicts. The words before `|` are the name of the command.
const LANE_COMMANDS: &[&str] = &[
    "list|--all",
    "show|ran",
    "diff|one",
    "diff|one --stat",
    "logs|ran",
    "events",
    "status",
    "statusline",
    "matrix",
    "compare|pay",
    "queue",
    "open|one --path",
    "version",
    "agents",
    "doctor",
    "config list",
    "config get|merge.strategy",
    "config describe|merge.strategy",
    "setup|--dry-run",
    "hooks",
    "preview|one",
    "preview",
    "preview|--back",
    "preview|one --dry-run",
    "snap list",
    "edit|one --title One",
    "merge|--all --dry-run",
    "merge|clash two",
    "show|clash",
    "list",
    "status",
    "matrix",
    "resolve|clash --dry-run",
    "pick|pay-1 --dry-run",
    "pick|pay-1",
    "undo|--dry-run",
    "undo",
    "redo",
    "op log",
    "op show|1",
    "rename|one --dry-run first",
    "rename|one first",
    "discard|--dry-run first",
    "cleanup|--dry-run",
    "discard|--force first",
    "cleanup",
    "gc|--dry-run",
    "gc",
    "sync|ran",
    "wait|ran",
    "stop|--all --dry-run",
    "spawn|--empty -n fresh",
    "spawn|--wait -n again -- true",
    "spawn|--wait -n bad -- false",
    "wait|bad",
    "show|bad",
    "spawn|--wait -n killed -- killed",
    "show|killed",
    "list|--all",
    "events",
    "approve|--list",
    "task read|-C .proq-worktrees/ran",
];

/// Commands with an agent whose conversations can be continued. The words before `|` are the name of the command.
const AGENT_COMMANDS: &[&str] = &[
    "spawn|claude fix-it -n told --dry-run",
    "spawn|claude fix-it -n told --wait",
    "show|told",
    "logs|told",
    "send|told more --wait",
    "run|told --wait claude more",
    "redispatch|told --dry-run",
    "list",
    "events",
    "wait|told",
    "agents",
];

/// Commands in a repository with a plan of two tasks. The words before `|` are the name of the command.
const PLAN_COMMANDS: &[&str] = &[
    "plan|plan.toml",
    "deps|plan.toml",
    "swarm|plan.toml --dry-run",
    "swarm|plan.toml --yes",
    "batch status",
    "batch report",
    "list",
    "status",
    "batch land|20260102-030405 --dry-run",
];

/// Collects the outputs of all commands.
fn collect_outputs() -> Outputs {
    let mut outputs = Outputs::default();
    let lanes = fixtures::conflicting_lane();
    lanes.run_lane("ran", "echo ran > ran.txt");
    let _ = lanes.proq(&["spawn", "--empty", "-n", "pay", "--count", "2"]).ok();
    lanes.commit_in_lane("pay-1", "echo 1 > pay.txt");
    lanes.commit_in_lane("pay-2", "echo 2 > pay.txt");
    lanes.program("killed", "kill -KILL $$");
    outputs.run(&lanes, LANE_COMMANDS);
    let agent = sandbox_with_claude("begin; well");
    // An agent that is slow to exit after its result is otherwise ended by a signal.
    agent.git(&["config", "proq.agent.linger", "600"]);
    outputs.run(&agent, AGENT_COMMANDS);
    let error = lanes.proq(&["--json", "show", "nobody"]).json();
    outputs.0.push(("error".to_owned(), error));
    let plan = repo_with_plan(
        "format = 1\nagent = \"worker\"\n[[task]]\nid = \"x\"\ntitle = \"X\"\n\
         [[task]]\nid = \"y\"\ntitle = \"Y\"\nneeds = [\"x\"]\n",
    );
    plan.commit_all("the plan");
    outputs.run(&plan, PLAN_COMMANDS);
    let in_the_way = fixtures::changes_in_the_way();
    outputs.run(&in_the_way, &["merge|one --autostash --dry-run"]);
    in_the_way.sh("sed -i 1s/.*/mine/ long.txt");
    outputs.run(&in_the_way, &["merge|one --autostash"]);
    outputs
}

/// Returns what is wrong with a value by its schema, with the place of each problem.
fn problems(place: &str, schema: &Value, value: &Value) -> Vec<String> {
    let types = &schema["type"];
    let is_type =
        |name: &str| types == name || types.as_array().is_some_and(|all| all.contains(&json!(name)));
    let is_allowed = type_name(value) == "integer" && is_type("number") || is_type(type_name(value));
    if !is_allowed {
        return vec![format!("{place}: {} instead of {types}", type_name(value))];
    }
    match value {
        Value::Array(items) => {
            items.iter().flat_map(|item| problems(&format!("{place}[]"), &schema["items"], item)).collect()
        }
        Value::Object(keys) => {
            let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
            let missing = required.filter(|key| !keys.contains_key(*key));
            let missing = missing.map(|key| format!("{place}.{key}: missing"));
            missing
                .chain(keys.iter().flat_map(|(key, value)| {
                    let place = format!("{place}.{key}");
                    match schema["properties"].get(key) {
                        Some(schema) => problems(&place, schema, value),
                        None => vec![format!("{place}: unknown")],
                    }
                }))
                .collect()
        }
        _ => Vec::new(),
    }
}

#[test]
fn outputs_have_the_form_of_their_schema() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("schema/output.schema.json");
    let outputs = collect_outputs();
    if std::env::var_os("PROQ_TEST_WRITE_SCHEMA").is_some() {
        std::fs::write(&path, format!("{:#}\n", outputs.to_schema())).unwrap();
    }
    let schema: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    let found = |(name, value): &(String, Value)| problems(name, &schema["$defs"][name], value);
    let found: Vec<String> = outputs.0.iter().flat_map(found).collect();
    assert!(found.is_empty(), "{found:#?}; run\n  {REGENERATE_COMMAND}");
    let names: BTreeSet<&String> = outputs.0.iter().map(|(name, _)| name).collect();
    assert_eq!(names, schema["$defs"].as_object().unwrap().keys().collect());
}

#[test]
fn unknown_missing_and_other_values_are_problems() {
    let schema = Outputs(vec![("x".into(), json!({"a": [{"b": 1.5}], "c": null}))]).to_schema();
    let found = |value: Value| problems("x", &schema["$defs"]["x"], &value);
    assert_eq!(found(json!({"a": [{"b": 2}], "c": null})), [""; 0]);
    assert_eq!(found(json!({"a": [{"b": "2"}], "c": null})), ["x.a[].b: string instead of \"number\""]);
    assert_eq!(found(json!({"a": [], "d": 1})), ["x.c: missing", "x.d: unknown"]);
}

#[test]
fn every_command_has_a_schema_that_it_prints() {
    let sandbox = Sandbox::empty();
    let all = sandbox.proq(&["schema"]).ok();
    let all: Value = serde_json::from_str(&all).unwrap();
    let schemas = all["$defs"].as_object().unwrap();
    let help = sandbox.proq(&["help", "--all"]).ok();
    let commands = help
        .lines()
        .skip_while(|line| !line.starts_with("Lanes"))
        .take_while(|line| !line.contains("Options of"));
    for command in commands.filter_map(|line| line.strip_prefix("  ")?.split_whitespace().next()) {
        let has_schema = schemas.keys().any(|name| name.split(' ').next() == Some(command));
        assert_eq!(has_schema, !WITHOUT_SCHEMA.contains(&command), "{command}");
    }
    let one: Value = serde_json::from_str(&sandbox.proq(&["schema", "op", "log"]).ok()).unwrap();
    assert_eq!(one, schemas["op log"]);
    assert!(sandbox.proq(&["schema", "lst"]).fails(2).contains("git proq schema list"));
}

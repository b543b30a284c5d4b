//! The `git proq schema` command, and the schema of all `--json` outputs.

use clap::Args;
use proq_base::explain::{Exit, closest_match};
use serde_json::{Map, Value};

use crate::cli::invocation::context::{CommandContext, CommandResult};
use crate::cli::invocation::usage_error::UsageError;
use crate::cli::terminal::page;

/// Schema of every output, made from what the commands print.
const OUTPUT_SCHEMA: &str = include_str!("../../../schema/output.schema.json");

/// Print the JSON Schema of what a command prints with --json
///
/// Without COMMAND, prints the schemas of all commands, by name. Keys that are not `required` are left out where
/// they have nothing to say. New keys may be added; the present ones keep their meaning.
///
/// Examples:
///     git proq schema list
///     git proq schema op log
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Schema {
    /// Command, such as `list` or `op log`
    #[arg(value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

pub(crate) fn run(context: &CommandContext, args: &Schema) -> CommandResult {
    let schemas = output_schemas();
    let name = args.command.join(" ");
    let unknown = || {
        let similar = closest_match(&name, schemas.keys().map(String::as_str)).map(ToOwned::to_owned);
        UsageError::NoSchema { name: name.clone(), similar }
    };
    let schema = match name.as_str() {
        "" => serde_json::from_str(OUTPUT_SCHEMA).unwrap_or_default(),
        name => schemas.get(name).cloned().ok_or_else(unknown)?,
    };
    page::begin();
    context.ui.print_text(&format!("{schema:#}\n"));
    Ok(Exit::Success)
}

/// Returns the schema of each command's output, by the command's name.
pub(super) fn output_schemas() -> Map<String, Value> {
    let mut all: Value = serde_json::from_str(OUTPUT_SCHEMA).unwrap_or_default();
    match all["$defs"].take() {
        Value::Object(schemas) => schemas,
        _ => Map::new(),
    }
}

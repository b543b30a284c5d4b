//! The `git proq plan` command.

pub(crate) mod draft_commands;
pub(crate) mod draft_conversation;
pub(crate) mod draft_list;
pub(crate) mod json_output;
pub(crate) mod plan_file;
pub(crate) mod tree;

use proq_base::explain::Exit;
use proq_base::terminal_text;
use proq_plan::plan_format::PlanFormat;
use proq_plan::toml_plan;
use proq_plan::toml_plan::write;

use super::plan_args::PlanArgs;
use super::plan_text::render;
use super::plan_view::compute_view;
use crate::cli::invocation::context::{CommandContext, CommandResult};
use crate::cli::invocation::usage_error::UsageError;

pub(crate) fn run(context: &CommandContext, args: &PlanArgs) -> CommandResult {
    if args.schema {
        context.ui.print_line(serde_json::to_string_pretty(&toml_plan::plan_schema()).unwrap_or_default());
        return Ok(Exit::Success);
    }
    if let Some(file) = &args.init {
        return write_template(context, file);
    }
    if args.draft_args.requests_draft_action() {
        return draft_commands::run(context, args);
    }
    let project = context.project()?;
    let loaded = args.source.read_plan_or_draft(context, &project, "git proq plan plan.toml")?;
    if args.toml {
        context.ui.print_text(&write::plan_to_toml(&loaded.plan));
        return Ok(Exit::Success);
    }
    if let (PlanFormat::Draft, [name]) = (loaded.format, args.source.source_names()) {
        return draft_conversation::show_saved_draft(context, &project, args, name);
    }
    let view = compute_view(
        &project,
        &loaded,
        args.source.source_names(),
        &args.batch_options(&project.settings.swarm),
    )?;
    if context.ui.json {
        context.ui.print_ordered_json(json_output::build_output(&view));
    } else {
        context.ui.print_line(render(&view, usize::MAX));
    }
    Ok(Exit::Success)
}

/// Writes a template plan to a new file, or prints it for `-`. An existing file is refused.
fn write_template(context: &CommandContext, file: &str) -> CommandResult {
    if file == "-" {
        context.ui.print_text(toml_plan::PLAN_TEMPLATE);
        return Ok(Exit::Success);
    }
    let path = context.dir.join(file);
    plan_file::create_new_file(&path, toml_plan::PLAN_TEMPLATE).map_err(|source| match source.kind() {
        std::io::ErrorKind::AlreadyExists => UsageError::InitFileExists { path: path.clone() },
        _ => UsageError::Unwritable { path: path.clone(), source },
    })?;
    if context.ui.json {
        context.ui.print_json(serde_json::json!({ "path": proq_store::paths::path_form::to_text(&path) }));
    } else {
        context.ui.print_line(format!("wrote {}", terminal_text::escape_line(file)));
        context.ui.hint(format!("see what it comes to: git proq plan {}", terminal_text::escape_line(file)));
    }
    Ok(Exit::Success)
}

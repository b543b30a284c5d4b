//! The `git proq plan` command.

pub(crate) mod drafts;
pub(crate) mod tree;

use proq_base::explain::Exit;
use proq_base::hint;
use proq_base::terminal_text;
use proq_lib::swarm::ops::plan_file;
use proq_lib::swarm::ops::plan_view::PlanView;
use proq_plan::plan_format::PlanFormat;
use proq_plan::toml_plan;
use proq_plan::toml_plan::write;

use super::plan_args::PlanArgs;
use super::plan_text::render;
use crate::cli::invocation::context::{CommandContext, CommandResult};

pub(crate) fn run(context: &CommandContext, args: &PlanArgs) -> CommandResult {
    if args.schema {
        context
            .ui
            .print_verbatim(serde_json::to_string_pretty(&toml_plan::plan_schema()).unwrap_or_default());
        return Ok(Exit::Success);
    }
    if let Some(file) = &args.init {
        return write_template(context, file);
    }
    if args.draft_args.requests_draft_action() {
        return drafts::run(context, args);
    }
    let project = context.project()?;
    let named = args.source.required_plan(context, "git proq plan plan.toml")?;
    let loaded = named.read_or_draft(&project)?;
    if args.toml {
        context.ui.print_text(&write::plan_to_toml(&loaded.plan));
        return Ok(Exit::Success);
    }
    let options = args.batch_options(&project.settings.swarm);
    if let (PlanFormat::Draft, [name]) = (loaded.format, &*named.sources) {
        return drafts::show_saved_draft(context, &project, name, &options);
    }
    let view = PlanView::compute(&project, loaded, named.sources, &options)?;
    if context.ui.json {
        context.ui.print_ordered_json(view);
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
    let path = plan_file::write_template(&context.dir.join(file))?;
    context.show(serde_json::json!({ "path": path }), |context, _| {
        let file = terminal_text::escape_line(file);
        context.ui.print_line(format!("wrote {file}"));
        context.ui.hint(hint!("show it: git proq plan {file}"));
    })
}

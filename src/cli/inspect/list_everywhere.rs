//! The `git proq list --everywhere` command: the lanes of every repository in which the user has created one.

use std::path::Path;

use proq_base::explain::Exit;
use proq_lib::board::repositories::{KnownRepositories, open_repository};
use proq_lib::board::rows::load_list::{ListRequest, load_list};

use super::first_steps::first_lane_hint;
use super::lane_list::table::render_list;
use crate::cli::invocation::context::{CommandContext, CommandResult};
use crate::cli::invocation::failure;
use crate::cli::invocation::failure::Failure;
use crate::cli::terminal::table::output_width;

pub(crate) fn run(context: &CommandContext, request: ListRequest<'_>) -> CommandResult {
    context.apply_color_settings();
    let known = KnownRepositories::load()?;
    if let Some(e) = &known.prune_error {
        context.ui.warn(format!("cannot write the list of repositories: {e}"));
    }
    if context.ui.json {
        let (output, exit) = known.list_lanes(request);
        context.ui.print_json(output);
        return Ok(exit);
    }
    let (mut exit, mut gap) = (Exit::Success, "");
    for git_dir in &known.git_dirs {
        if let Err(failure) = print_repository(context, git_dir, request, gap) {
            exit = failure.0.exit();
            failure::print_failure(&failure, false);
        }
        gap = "\n";
    }
    if known.git_dirs.is_empty() {
        context.ui.status("no repository with lanes is known yet");
        context.ui.hint(first_lane_hint());
    }
    Ok(exit)
}

/// Prints the lanes of one repository, after `gap`.
fn print_repository(
    context: &CommandContext,
    git_dir: &Path,
    request: ListRequest<'_>,
    gap: &str,
) -> Result<(), Failure> {
    let project = open_repository(git_dir)?;
    let lane_list = load_list(&project, request, &mut |_| {})?;
    context.ui.print_line(format!("{gap}{}", console::style(project.repo.command_dir().display()).bold()));
    let is_empty = lane_list.views.is_empty() && lane_list.stored.past_lanes.is_empty();
    context.ui.print_line(if is_empty {
        "no lanes".to_owned()
    } else {
        render_list(&lane_list.as_partial(), output_width()).into_text()
    });
    Ok(())
}

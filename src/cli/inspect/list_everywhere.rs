//! The `git proq list --everywhere` command: the lanes of every repository in which the user has created one.

use std::path::Path;

use proq_base::explain::Exit;
use proq_lib::board::repositories::{EverywhereOutput, KnownRepositories, RepositoryRow, open_repository};
use proq_lib::board::rows::list_output::to_output;
use proq_lib::board::rows::load_list::{ListRequest, load_list};

use super::lane_list::table::render_table;
use crate::cli::invocation::context::{CommandContext, CommandResult};
use crate::cli::invocation::failure;
use crate::cli::invocation::failure::Failure;

pub(crate) fn run(context: &CommandContext, all: bool) -> CommandResult {
    let known = KnownRepositories::load()?;
    if let Some(e) = known.prune_error {
        context.ui.warn(format!("the list of repositories was not written: {e}"));
    }
    let present = known.git_dirs;
    let request = ListRequest { include_removed: all, include_usage: false };
    let mut rows = Vec::new();
    let mut exit = Exit::Success;
    for (n, git_dir) in present.iter().enumerate() {
        match list_repository(context, git_dir, request, n == 0) {
            Ok(row) => rows.push(row),
            Err(failure) => {
                exit = failure.0.exit();
                let error = Some(failure.0.to_string());
                if !context.ui.json {
                    failure::print_failure(&failure, false);
                }
                rows.push(RepositoryRow { path: git_dir.clone(), list: None, error });
            }
        }
    }
    if context.ui.json {
        context.ui.print_json(EverywhereOutput { repositories: rows });
    } else if present.is_empty() {
        context.ui.status("no repository with lanes is known; each is from its next lane on");
        context.ui.hint("git proq spawn claude \"what to do\"");
    }
    Ok(exit)
}

/// Reads the lanes of one repository, and prints them at once unless the output is JSON.
fn list_repository(
    context: &CommandContext,
    git_dir: &Path,
    request: ListRequest,
    is_first: bool,
) -> Result<RepositoryRow, Failure> {
    let project = open_repository(git_dir)?;
    let path = project.repo.command_dir().to_owned();
    let lane_list = load_list(&project, request, &mut |_| {})?;
    if context.ui.json {
        return Ok(RepositoryRow { path, list: Some(to_output(&project, &lane_list)), error: None });
    }
    if !is_first {
        context.ui.print_line("");
    }
    context.ui.print_line(console::style(path.display()).bold().to_string());
    let is_empty = lane_list.views.is_empty() && lane_list.stored.past_lanes.is_empty();
    context.ui.print_line(if is_empty { "no lanes".to_owned() } else { render_table(&lane_list) });
    Ok(RepositoryRow { path, list: None, error: None })
}

//! The `git proq list` command, and the overview that `git proq` prints without a command.

use clap::Args;
use proq_base::explain::Exit;
use proq_base::lane_name::LaneName;
use proq_lib::board::lane_faults::lane_faults;
use proq_lib::board::next_steps::next_steps;
use proq_lib::board::rows::lane_list::LaneList;
use proq_lib::board::rows::list_output::to_output;
use proq_lib::board::rows::load_list::{ListRequest, load_list};
use proq_lib::lane::Project;
use proq_lib::lane::inspection::list::LaneView;
use proq_lib::lane::messages::inbox;
use proq_lib::types::LaneState;

use super::list_everywhere;
use crate::cli::inspect::lane_list::painter::ListPainter;
use crate::cli::inspect::lane_list::table::{lane_table_lines, render_table};
use crate::cli::invocation::context::{CommandContext, CommandResult};
use crate::cli::land::unlanded_batches::{print_batch_steps, print_unlanded_batches};
use crate::cli::terminal::ui;

/// List lanes
///
/// Columns: COMMITS: `+` commits that the base lacks, `-` commits that the lane lacks; `answer` or `plan`
/// for a lane without anything to merge. CHANGES: uncommitted files. CONFLICTS, if there are any: what the
/// commits would conflict with, as far as that is quick to compute; `git proq matrix` shows all of it.
///
/// Marks: `*` the lane that the main checkout shows; `…` still being computed; `3/7` ticked boxes of a task
/// folder; `1 queued` a message is waiting for the agent. Attempts at one task stand together. `git proq
/// ls` is an alias.
///
/// Examples:
///     git proq list
///     git proq list --everywhere
///     git proq list --json | jq '.lanes[] | select(.state == "done") | .name'
#[derive(Debug, Args)]
#[command(verbatim_doc_comment, alias = "ls")]
pub(crate) struct List {
    /// Include removed lanes
    #[arg(long, short)]
    pub(crate) all: bool,
    /// Also show tool calls, context usage, and cost
    #[arg(long, short)]
    pub(crate) wide: bool,
    /// List lanes of all repositories
    #[arg(long)]
    pub(crate) everywhere: bool,
}

/// Text of the overview of a repository without lanes, after its first sentence.
const NO_LANES: &str = "A lane is a branch and a worktree for one agent.

  git proq spawn claude \"implement payments\"   start an agent in a lane of its own
  git proq spawn -n try -- make test           or any command
  git proq demo                                take the tour
  git proq -h                                  see every command";

pub(crate) fn run(context: &CommandContext, args: &List) -> CommandResult {
    if args.everywhere {
        return list_everywhere::run(context, args.all);
    }
    let request = ListRequest { include_removed: args.all, include_usage: args.wide };
    load_and_show(context, request, |project, lane_list| {
        if lane_list.views.is_empty() && lane_list.stored.past_lanes.is_empty() {
            // An unreadable record has caused a warning already.
            let is_empty = !project.has_lane_records();
            if is_empty {
                let has_past_lanes = !project.all_past_lanes().is_empty();
                context.ui.status(if has_past_lanes { "no lanes" } else { "no lanes yet" });
            }
            if is_empty && lane_list.unlanded_batches.is_empty() {
                context.ui.hint("git proq spawn claude \"what to do\"");
            }
        } else {
            context.ui.print_line(render_table(lane_list));
        }
        print_notes(context, project, lane_list);
        print_batch_steps(context, project, &lane_list.unlanded_batches);
    })
}

/// Prints the lanes and the possible next steps, for `git proq` without a command.
pub(crate) fn print_overview(context: &CommandContext) -> CommandResult {
    load_and_show(context, ListRequest::default(), |project, lane_list| {
        if lane_list.views.is_empty() && lane_list.unlanded_batches.is_empty() {
            return print_no_lanes(context, project);
        }
        if !lane_list.views.is_empty() {
            context.ui.print_line(render_table(lane_list));
        }
        print_notes(context, project, lane_list);
        for step in next_steps(project, lane_list) {
            context.ui.hint(step);
        }
    })
}

/// Prints what a lane is and how to create one. Also mentions lanes that were removed, and what is missing
/// for the first lane.
fn print_no_lanes(context: &CommandContext, project: &Project) {
    let past_lanes = project.all_past_lanes();
    let landed_count = past_lanes.iter().filter(|(_, lane)| lane.landed.is_some()).count();
    let heading = if past_lanes.is_empty() { "No lanes yet." } else { "No lanes." };
    context.ui.print_line(format!("{heading} {NO_LANES}"));
    if landed_count > 0 {
        let landed = ui::pluralize(landed_count, "lane");
        context.ui.hint(format!("see {landed} that landed: git proq list --all"));
    }
    let branch = project.repo.current_head_name().ok().flatten();
    if branch.is_some_and(|branch| project.repo.branch_tip(&branch).is_ok_and(|tip| tip.is_none())) {
        context.ui.hint("make a commit to start lanes from: git commit --allow-empty -m 'Start'");
    }
}

/// Loads a list, painted on a terminal while it loads, and prints it as JSON or by `print_text`.
fn load_and_show(
    context: &CommandContext,
    request: ListRequest,
    print_text: impl FnOnce(&Project, &LaneList),
) -> CommandResult {
    let project = context.project_to_read()?;
    let mut painter = ListPainter::for_terminal(context.ui);
    let lane_list = load_list(&project, request, &mut |partial| {
        if let Some(painter) = &mut painter {
            painter.paint_if_due(|| lane_table_lines(&partial));
        }
    })?;
    drop(painter);
    match context.ui.json {
        true => context.ui.print_json(to_output(&project, &lane_list)),
        false => print_text(&project, &lane_list),
    }
    Ok(Exit::Success)
}

/// Prints what the table cannot show: the open preview, lanes with a missing branch or worktree, and
/// leftovers of a crash.
fn print_notes(context: &CommandContext, project: &Project, lane_list: &LaneList) {
    let ui = context.ui;
    if let Some(preview) = &lane_list.stored.preview {
        let (lane, back) = (&preview.lane, "git proq preview --back");
        let waiting = if preview.has_parked_changes { "; your own changes wait" } else { "" };
        match preview.is_shown {
            true => ui.status(format!("the main checkout shows '{lane}'{waiting}: {back}")),
            false => ui.warn(format!("the preview of '{lane}' was left by hand{waiting}: {back}")),
        }
    }
    for view in lane_list.views.iter().filter(|v| v.pending_messages > 0 && !v.state().is_busy()) {
        ui.status(inbox::pending_text(&view.lane.name, view.pending_messages));
    }
    for (name, detail) in lane_list.views.iter().filter_map(uncommitted_work) {
        ui.warn(format!("lane '{name}': {detail}"));
    }
    for fault in lane_faults(project, &lane_list.views) {
        ui.warn(fault);
    }
    print_unlanded_batches(context, &lane_list.unlanded_batches);
    for path in &lane_list.unrecorded_worktrees {
        let path = path.strip_prefix(project.repo.command_dir()).unwrap_or(path);
        ui.warn(format!("{} belongs to no lane on record: git proq cleanup", path.display()));
    }
}

/// Returns a finished lane whose work could not be committed, with the reason.
fn uncommitted_work(view: &LaneView) -> Option<(&LaneName, &str)> {
    let is_dirty = view.dirty.as_ref().is_some_and(|dirty| !dirty.is_clean());
    let reason = view.detail.as_deref().filter(|_| is_dirty && view.status.state() == LaneState::Done)?;
    Some((&view.lane.name, reason))
}

//! The `git proq list` command, and the overview that `git proq` prints without a command.

use clap::Args;
use proq_base::explain::{Exit, shell_quote_path};
use proq_base::lane_name::LaneName;
use proq_lib::board::rows::lane_conflicts::LaneConflicts;
use proq_lib::board::rows::lane_list::{LaneList, missing_parts};
use proq_lib::board::rows::list_output::to_output;
use proq_lib::board::rows::load_list::{self, ListRequest};
use proq_lib::lane::Project;
use proq_lib::lane::context::misplaced::LaneFolderFault;
use proq_lib::lane::context::{head_ownership, misplaced};
use proq_lib::lane::inspection::evidence;
use proq_lib::lane::inspection::list::LaneView;
use proq_lib::lane::messages::inbox;
use proq_lib::lane::removal::remove_lane;
use proq_lib::merge::land::sure_landing;
use proq_lib::snapshot::snap_view;
use proq_lib::types::{LaneRecord, LaneState, WorktreeStatus};

use super::list_everywhere;
use crate::cli::inspect::lane_list::painter::ListPainter;
use crate::cli::inspect::lane_list::table::{lane_table_lines, render_table};
use crate::cli::invocation::context::{CommandContext, CommandResult};
use crate::cli::invocation::failure::Failure;
use crate::cli::land::unlanded_batches::print_unlanded_batches;
use crate::cli::terminal::ui;

/// List the lanes
///
/// COMMITS: + what the lane has that its base lacks, - the reverse; `answer` or `plan` where there is nothing to land. CHANGES: uncommitted files. CONFLICTS, if there are any:
/// what the commits would conflict with, as far as that is quick to find out; `git proq matrix` tells all. A '*' marks the
/// lane that the main checkout shows. A '…' is filled in while you look. '3/7': so many boxes of a task folder are ticked. '1 to tell': a message waits for its agent. Attempts at one task stand together, in the order of their numbers.
///
/// Examples:
///     git proq list
///     git proq list --everywhere
///     git proq list --json | jq '.lanes[] | select(.state == "done") | .name'
#[derive(Debug, Args)]
#[command(verbatim_doc_comment, visible_alias = "ls")]
pub(crate) struct List {
    /// Removed lanes too
    #[arg(long, short)]
    pub(crate) all: bool,
    /// Also what the agents used in all their runs: tool calls, the last tool, how full their context is, what they cost
    #[arg(long, short)]
    pub(crate) wide: bool,
    /// The lanes of every repository in which you have made one, from anywhere
    #[arg(long)]
    pub(crate) everywhere: bool,
}

pub(crate) fn run(context: &CommandContext, args: &List) -> CommandResult {
    if args.everywhere {
        return list_everywhere::run(context, args.all);
    }
    let project = context.project()?;
    let request = ListRequest { include_removed: args.all, include_usage: args.wide };
    let lane_list = load_and_paint(context, &project, request)?;
    if context.ui.json {
        context.ui.print_json(to_output(&project, &lane_list));
        return Ok(Exit::Success);
    }
    if lane_list.views.is_empty() && lane_list.stored.past_lanes.is_empty() {
        // An unreadable record has caused a warning already.
        let is_empty = !project.has_lane_records();
        if is_empty {
            context.ui.status("no lanes yet");
        }
        if is_empty && lane_list.unlanded_batches.is_empty() {
            context.ui.hint("git proq spawn claude \"what to do\"");
        }
    } else {
        context.ui.print_line(render_table(&lane_list));
    }
    print_notes(context, &project, &lane_list);
    Ok(Exit::Success)
}

/// Loads a list, and paints it on a terminal while it loads.
fn load_and_paint(
    context: &CommandContext,
    project: &Project,
    request: ListRequest,
) -> Result<LaneList, Failure> {
    let mut painter = ListPainter::for_terminal(context.ui);
    load_list::load_list(project, request, &mut |partial| {
        if let Some(painter) = &mut painter {
            painter.paint_if_due(|| lane_table_lines(&partial));
        }
    })
}

/// Prints the lanes and the possible next steps, for `git proq` without a command.
pub(crate) fn print_overview(context: &CommandContext) -> CommandResult {
    let project = context.project()?;
    let lane_list = load_and_paint(context, &project, ListRequest::default())?;
    if context.ui.json {
        context.ui.print_json(to_output(&project, &lane_list));
        return Ok(Exit::Success);
    }
    if lane_list.views.is_empty() && !lane_list.unlanded_batches.is_empty() {
        print_notes(context, &project, &lane_list);
        return Ok(Exit::Success);
    }
    if lane_list.views.is_empty() {
        context.ui.print_line("No lanes yet. A lane is a branch and a worktree for one agent.");
        context.ui.print_line("");
        context.ui.print_line(
            "  git proq spawn claude \"implement payments\"   start an agent in a lane of its own",
        );
        context.ui.print_line("  git proq spawn -n try -- make test           or any command");
        context.ui.print_line("  git proq demo                                take the tour");
        context.ui.print_line("  git proq -h                                  see every command");
        return Ok(Exit::Success);
    }
    context.ui.print_line(render_table(&lane_list));
    print_notes(context, &project, &lane_list);
    for line in next_step_hints(&project, &lane_list) {
        context.ui.hint(line);
    }
    Ok(Exit::Success)
}

/// Prints what the table cannot show: the open preview, lanes with a missing branch or worktree, and
/// leftovers of a crash.
fn print_notes(context: &CommandContext, project: &Project, lane_list: &LaneList) {
    if let Some(preview) = &lane_list.stored.preview {
        let waiting = if preview.has_parked_changes { "; your own changes wait" } else { "" };
        if preview.is_shown {
            context.ui.status(format!(
                "the main checkout shows '{}'{waiting}: git proq preview --back",
                preview.lane
            ));
        } else {
            context.ui.warn(format!(
                "the preview of '{}' was left by hand{waiting}: git proq preview --back",
                preview.lane
            ));
        }
    }
    for view in lane_list.views.iter().filter(|v| v.pending_messages > 0 && !v.state().is_busy()) {
        context.ui.status(inbox::pending_text(&view.lane.name, view.pending_messages));
    }
    warn_of_broken_lanes(context, project, lane_list);
    print_unlanded_batches(context, project, &lane_list.unlanded_batches);
    for path in &lane_list.unrecorded_worktrees {
        let path = path.strip_prefix(project.repo.command_dir()).unwrap_or(path);
        context.ui.warn(format!("{} belongs to no lane on record: git proq cleanup", path.display()));
    }
}

/// Warns of lanes whose branch or worktree is missing or moved, each with the command that repairs the lane.
fn warn_of_broken_lanes(context: &CommandContext, project: &Project, lane_list: &LaneList) {
    let found = lane_list.views.iter().filter_map(|view| view.lane.clone().into_owned_lane().ok());
    let found =
        found.filter_map(|lane| misplaced::find_folder_fault(project, &lane).map(|found| (lane, found)));
    let misplaced: Vec<(LaneRecord, LaneFolderFault)> = found.collect();
    for (lane, found) in &misplaced {
        let help =
            found.fix_command(&project.repo, lane).map(|command| format!(": {command}")).unwrap_or_default();
        context.ui.warn(format!("lane '{}': {}{help}", lane.name, found.describe(lane)));
    }
    let is_not_misplaced = |view: &&LaneView| misplaced.iter().all(|(lane, _)| lane.name != view.lane.name);
    for view in lane_list.views.iter().filter(is_not_misplaced).filter(|v| !missing_parts(v).is_empty()) {
        let (name, missing_text) = (&view.lane.name, missing_parts(view).join(" and no "));
        let Ok(lane) = view.lane.clone().into_owned_lane() else { continue };
        let has_work = view.tip.is_some() && view.distance.is_none_or(|distance| distance.ahead > 0);
        // Cleanup retains commits that are not on the base. They exist, so a new worktree restores the lane.
        let branch = &lane.kind.branch;
        let is_lost = evidence::lost_commit(project, &lane).ok().flatten().is_some();
        let recreate_command =
            head_ownership::recreate_branch_command(project, &lane).filter(|_| view.tip.is_none() && is_lost);
        let move_command = snap_view::restore_folder_command(project, &lane);
        let help = match recreate_command {
            _ if move_command.is_some() => move_command.unwrap_or_default(),
            _ if has_work => format!("git worktree add -f {} {branch}", shell_quote_path(&lane.path)),
            Some(command) => command,
            None => remove_lane::removal_command(project, &lane),
        };
        context.ui.warn(format!("lane '{name}' has no {missing_text} any more: {help}"));
    }
    for view in &lane_list.views {
        let Some((defect, branch)) = view.worktree_defect.zip(view.lane.branch()) else { continue };
        let repair = defect.repair_command(&project.repo, &view.lane.path, branch);
        context.ui.warn(format!("lane '{}': {}: {repair}", view.lane.name, defect.describe()));
    }
}

/// Returns whether `git proq merge --all` is known to land exactly `lanes`. All their work must be committed,
/// none may conflict with its base or with another of them, and nothing else may block the landing.
fn is_sure_all_land(project: &Project, lane_list: &LaneList, lanes: &[&LaneName]) -> bool {
    let may_also_land = |view: &LaneView| {
        let is_ready = matches!(view.state(), LaneState::Idle | LaneState::Conflict | LaneState::CheckFailed);
        is_ready && view.distance.is_some_and(|distance| distance.ahead > 0)
    };
    if lane_list.views.iter().any(may_also_land) {
        return false;
    }
    let all_ready = lanes.iter().all(|name| {
        let view = lane_list.views.iter().find(|view| view.lane.name == **name);
        let is_ready = view.is_some_and(|view| {
            view.dirty.as_ref().is_some_and(WorktreeStatus::is_clean)
                && view.distance.is_some_and(|distance| distance.ahead > 0)
                && view.lane.batch.is_none()
        });
        let conflicts = LaneConflicts::from_forecast(lane_list.forecast.as_ref(), name);
        is_ready && conflicts.is_some_and(|conflicts| conflicts.is_compatible_with(lanes))
    });
    let records = || -> Vec<LaneRecord> {
        let named = lane_list.views.iter().filter(|view| lanes.contains(&&view.lane.name));
        named.filter_map(|view| view.lane.clone().into_owned_lane().ok()).collect()
    };
    all_ready && sure_landing::is_sure_to_land(project, &records())
}

/// Returns hints on what to do next with the lanes, each with a command.
fn next_step_hints(project: &Project, lane_list: &LaneList) -> Vec<String> {
    let lanes_in_states = |wanted: &[LaneState]| -> Vec<&LaneName> {
        let is_match = |v: &&LaneView| {
            wanted.contains(&v.state()) && missing_parts(v).is_empty() && v.worktree_defect.is_none()
        };
        lane_list.views.iter().filter(is_match).map(|v| &v.lane.name).collect()
    };
    let mut out = Vec::new();
    if let Some(first) = lanes_in_states(&[LaneState::Running, LaneState::Starting]).first() {
        out.push(format!("git proq logs -f {first} follows an agent at work"));
    }
    let is_rival = |v: &&LaneView| {
        v.lane.group.is_some()
            && lane_list.views.iter().filter(|other| other.lane.group == v.lane.group).count() > 1
    };
    let rivals: Vec<&LaneView> = lane_list.views.iter().filter(is_rival).collect();
    let has_answer = |v: &&LaneView| v.state() == LaneState::Done && v.lane.is_read_only();
    if let Some(view) = lane_list.views.iter().find(has_answer) {
        out.push(format!("git proq show {} prints what it came to", view.lane.name));
    }
    let has_branch =
        |name: &&LaneName| lane_list.views.iter().any(|v| v.lane.name == **name && v.lane.branch().is_some());
    let mut done = lanes_in_states(&[LaneState::Done]);
    done.retain(|name| rivals.iter().all(|v| v.lane.name != **name) && has_branch(name));
    if let Some(first) = done.first() {
        out.push(format!("git proq preview {first} shows it in your checkout"));
        let count = ui::pluralize(done.len(), "lane");
        let are = if done.len() == 1 { "is" } else { "are" };
        out.push(match is_sure_all_land(project, lane_list, &done) {
            true => format!("git proq merge --all lands {count}"),
            false => format!("{count} {are} done: git proq merge --all --dry-run shows what would land"),
        });
    }
    let is_finished = |v: &&&LaneView| !v.state().is_busy();
    if let Some(group) = rivals.iter().find(is_finished).and_then(|v| v.lane.group.as_ref()) {
        out.push(format!("git proq compare {group} shows attempts side by side"));
    }
    let failed_states = [
        LaneState::Failed,
        LaneState::Stalled,
        LaneState::Conflict,
        LaneState::CheckFailed,
        LaneState::Orphaned,
    ];
    if let Some(first) = lanes_in_states(&failed_states).first() {
        out.push(format!("git proq show {first} tells what went wrong"));
    }
    if !lanes_in_states(&[LaneState::Landed]).is_empty() {
        out.push("git proq cleanup tidies up what landed".to_owned());
    }
    out
}

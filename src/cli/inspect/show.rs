//! `git proq show`: prints everything about one lane.

pub(crate) mod runs;

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use proq_base::explain::Exit;
use proq_base::hint;
use proq_base::hint::Hint;
use proq_base::terminal_text;
use proq_lib::agent::task_loop::loop_status::{LoopStatus, ReviewSummary};
use proq_lib::board::attention::Attention;
use proq_lib::board::attention_reader::AttentionReader;
use proq_lib::board::lookup::find_lane_or_task_lane;
use proq_lib::board::rows::auto_merge_outlook::auto_merge_outlook;
use proq_lib::board::rows::lane_details::{LaneDetails, ShownLane};
use proq_lib::board::rows::show_output::ShowOutput;
use proq_lib::lane::Project;
use proq_lib::lane::inspection::idle_lane::IDLE_DETAIL;
use proq_lib::lane::inspection::list::LaneView;
use proq_lib::lane::state::state_records::StateRecords;
use proq_lib::types::{AnyLane, DiffStat, FileLineCounts, LaneState};

use super::{agent_report, show_prompt};
use crate::cli::arguments::candidates::any_lane_names;
use crate::cli::invocation::caller;
use crate::cli::invocation::context::{CommandContext, CommandResult};
use crate::cli::runs::{guest_lane_output, pull_request_view, run_end};
use crate::cli::terminal::ui::Ui;
use crate::cli::terminal::{page, ui};
use runs::print_runs;

/// Maximum number of files that are listed.
const MAX_FILES_NAMED: usize = 10;
/// Maximum number of next steps that are suggested.
const MAX_HINTS: usize = 2;

/// Show details of a lane
///
/// A removed lane is called NAME@N, as in `git proq list --all`.
///
/// Examples:
///     git proq show payments
///     git proq show payments --prompt
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Show {
    /// Lane name, or NAME@N for a removed lane [default: lane of the current folder]
    #[arg(value_name = "LANE", add = ArgValueCompleter::new(any_lane_names))]
    pub(crate) lane: Option<String>,
    /// Print the full prompt of the last run
    #[arg(long)]
    pub(crate) prompt: bool,
}

pub(crate) fn run(context: &CommandContext, args: &Show) -> CommandResult {
    let project = context.project_to_read()?;
    let name = caller::lane_or_current(&project, args.lane.as_ref())?;
    page::begin();
    if args.prompt {
        let (lane, dir) = find_lane_or_task_lane(&project, &name)?;
        return show_prompt::print_prompt(context, &lane, &dir);
    }
    if let Ok(lane) = project.find_any_lane(&name) {
        pull_request_view::refresh(context, &project, &[lane]);
    }
    let ShownLane { lane, view, details } = ShownLane::load(&project, &name)?;
    if context.ui.json {
        context.ui.print_json(ShowOutput::new(&project, lane, view.as_ref(), details));
    } else {
        print_lane(context, &project, &lane, view.as_ref(), &details);
    }
    Ok(Exit::Success)
}

fn print_lane(
    context: &CommandContext,
    project: &Project,
    lane: &AnyLane,
    view: Option<&LaneView>,
    details: &LaneDetails,
) {
    let ui = context.ui;
    let state = view.map_or(lane.state(), LaneView::state);
    let detail = view.map_or(lane.detail.as_deref(), |v| v.detail.as_deref());
    ui.print_field("lane", shown_name(lane, details));
    if lane.name != lane.title.as_str() && !is_title_in_task(lane, details) {
        ui.print_field("title", &lane.title);
    }
    if let Some(in_batch) = &lane.batch {
        let (batch, task) = (&in_batch.batch, &in_batch.task);
        ui.print_field("batch", format!("{batch}, for {task}: git proq batch status {batch}"));
    }
    if let Some(group) = &lane.group {
        ui.print_field("group", format!("{group}: git proq compare {group}"));
    }
    let detail_suffix = detail.map(|d| format!(" ({d})")).unwrap_or_default();
    ui.print_field("state", format!("{}{detail_suffix}", ui::styled_state(state)));
    print_branch_and_worktree(context, project, lane, view);
    if let Some(files) = details.changed_files.as_deref().filter(|files| !files.is_empty()) {
        print_changed_files(ui, files);
    }
    if let Some(landed) = &lane.landed {
        let (onto, commit) = (&landed.onto, landed.commit.short());
        ui.print_field("landed", format!("on {onto} as {commit}, {}", ui::age(landed.landed_at)));
    }
    print_pull_request(ui, lane, details);
    print_auto_merge(context, project, lane, state, details);
    if details.landed_by_hand {
        ui.print_field("landed", format!("by hand: {} has the same changes in other commits", lane.base));
    }
    if let Some(task_loop) = &details.task_loop {
        print_steps(ui, task_loop);
    }
    let activity = StateRecords::new(project.store.layout(), lane).last_activity();
    print_runs(ui, details, state.is_busy() || detail == Some(IDLE_DETAIL), activity, detail);
    if let Some(run) = details.runs.last() {
        ui.print_field("log", context.display_path(&details.log_path(run)));
        if run.resolves_conflict {
            ui.print_field("prompt", context.display_path(&details.prompt_path(run)));
        }
    }
    if let Some(ports) = lane.ports {
        ui.print_field("ports", format!("{}-{}", ports.first, ports.last()));
    }
    print_obstacles(context, lane, details);
    if let Some(report) = &details.report {
        agent_report::print_report(context, report);
    }
    print_task_and_answer(context, lane, details);
    if let Some(view) = view {
        print_next_steps(context, project, view, details);
    }
}

/// Returns the name of a lane; that of a removed one is its name in the history, which its record folder has.
fn shown_name(lane: &AnyLane, details: &LaneDetails) -> String {
    let folder = details.record_dir.file_name().map(|name| name.to_string_lossy().into_owned());
    folder.unwrap_or_else(|| lane.name.to_string())
}

/// Prints the pull request of a lane with its last known state, if it has one.
fn print_pull_request(ui: Ui, lane: &AnyLane, details: &LaneDetails) {
    if let Some(request) = &lane.pull_request {
        let status = details.pull_request_status.as_ref();
        ui.print_field("request", pull_request_view::long_text(request, status));
        ui.print_field("", &request.url);
    }
}

/// Prints when a lane with automatic merge lands, or why it does not, and how to read the log of its landing.
fn print_auto_merge(
    context: &CommandContext,
    project: &Project,
    lane: &AnyLane,
    state: LaneState,
    details: &LaneDetails,
) {
    let outlook = lane.auto_merge.then(|| auto_merge_outlook(project, lane, state, details));
    let landing_run = details.runs.iter().rev().find(|run| details.landing_log(run).exists());
    let log = landing_run
        .map(|run| format!("git proq logs {} --merge --run {}", shown_name(lane, details), run.number));
    for (n, text) in outlook.into_iter().chain(log).enumerate() {
        context.ui.print_field(if n == 0 { "auto-merge" } else { "" }, text);
    }
}

/// Prints at most two commands that help with the lane or are the next step with it.
fn print_next_steps(context: &CommandContext, project: &Project, view: &LaneView, details: &LaneDetails) {
    let name = &view.lane.name;
    if let Some(run) = details.runs.last() {
        run_end::hint_at_denied_calls(context, project, name, run);
    }
    let cases = AttentionReader::new(project).of_single_lane(view);
    let helps = |case: &&Attention| !case.command.starts_with("git proq show ");
    let mut steps: Vec<Hint> = cases.iter().filter(helps).map(Attention::step).collect();
    let can_land = view.lane.branch().is_some() && view.distance.is_some_and(|distance| distance.ahead > 0);
    match view.state() {
        LaneState::Running | LaneState::Starting => {
            steps.push(hint!("follow the agent: git proq logs -f {name}"));
        }
        LaneState::Done if can_land => steps.extend([
            hint!("try it in your checkout: git proq preview {name}"),
            hint!("see whether it can land: git proq merge {name} --dry-run"),
        ]),
        LaneState::Done if view.lane.is_read_only() => {
            steps.push(hint!("delete it once you have read it: git proq discard {name}"));
        }
        LaneState::Failed | LaneState::Stalled | LaneState::Stopped if !details.runs.is_empty() => {
            steps.push(hint!("show its output: git proq logs {name}"));
            steps.push(hint!("restart its task from {}: git proq redispatch {name}", view.lane.base));
        }
        LaneState::Landed => steps.push(hint!("remove landed lanes: git proq cleanup")),
        _ => {}
    }
    steps.dedup_by(|a, b| a.split(": ").last() == b.split(": ").last());
    steps.iter().take(MAX_HINTS).for_each(|step| context.ui.hint(step));
}

/// Prints how many lines the commits of a lane change, and in which files.
fn print_changed_files(ui: Ui, files: &[FileLineCounts]) {
    ui.print_field("commits", DiffStat::of_files(files));
    let width = |file: &FileLineCounts| console::measure_text_width(&file_lines_text(file));
    let column_width = files.iter().map(width).max().unwrap_or_default();
    for file in files.iter().take(MAX_FILES_NAMED) {
        let lines = file_lines_text(file);
        let pad = column_width - console::measure_text_width(&lines);
        ui.print_field("", format!("{:pad$}{lines}  {}", "", file.path));
    }
    if let Some(more) = files.len().checked_sub(MAX_FILES_NAMED).filter(|more| *more > 0) {
        ui.print_field("", format!("and {}", ui::pluralize(more, "more file")));
    }
}

fn file_lines_text(file: &FileLineCounts) -> String {
    match (file.added, file.removed) {
        (Some(added), Some(removed)) => ui::changed_lines(added, removed),
        _ => "binary".to_owned(),
    }
}

/// Returns whether the text of the task, which is printed too, begins with the title.
fn is_title_in_task(lane: &AnyLane, details: &LaneDetails) -> bool {
    let title = lane.title.trim_end_matches('…');
    details.task_text.trim().starts_with(title) && details.task_text.trim() != lane.title
}

/// Prints the lane's branch and base, checks, scope, worktree and uncommitted changes.
fn print_branch_and_worktree(
    context: &CommandContext,
    project: &Project,
    lane: &AnyLane,
    view: Option<&LaneView>,
) {
    let ui = context.ui;
    if lane.works_in_place() {
        ui.print_field("mode", "in-place: works in the main checkout, nothing to land");
        ui.print_field("works on", guest_lane_output::base_and_start_text(lane));
    } else if let Some(purpose) = lane.purpose() {
        ui.print_field("mode", format!("{purpose}: reads only, nothing to land"));
        ui.print_field("reads", guest_lane_output::base_and_start_text(lane));
    } else {
        ui.print_field("branch", branch_text(project, lane, view));
        ui.print_field("base", format!("{}, from {}", lane.base, lane.start.short()));
    }
    for check in &lane.checks {
        ui.print_field("check", format!("`{check}` must pass"));
    }
    lane.scope.iter().for_each(|glob| ui.print_field("scope", glob));
    let Some(view) = view else { return };
    let (key, suffix) = match lane.purpose() {
        None => ("worktree", if view.is_folder_missing { " (gone)" } else { "" }),
        Some(_) => ("in", if lane.is_detached() { ", while it runs" } else { "" }),
    };
    ui.print_field(key, format!("{}{suffix}", context.display_path(&lane.path)));
    match lane.branch().and_then(|_| project.repo.sparse_patterns(&lane.path)).as_deref() {
        Some([]) => ui.print_field("checkout", "sparse: the files of the top folder"),
        Some(patterns) => ui.print_field("checkout", format!("sparse: {}", patterns.join(", "))),
        None => {}
    }
    if let Some(dirty) = view.dirty.as_ref().filter(|d| !d.is_clean()) {
        let files = ui::pluralize(dirty.entries.len(), "file");
        ui.print_field("changes", format!("{files} uncommitted"));
        dirty.paths().iter().take(MAX_FILES_NAMED).for_each(|path| ui.print_field("", path));
    }
}

/// Prints the progress and the last review of a task that is a folder.
fn print_steps(ui: Ui, task_loop: &LoopStatus) {
    let LoopStatus { folder, boxes_ticked, boxes_total, iterations, .. } = task_loop;
    let review_suffix = match (&task_loop.reviewer, task_loop.review_level) {
        (None, _) => String::new(),
        (Some(reviewer), 1) => format!("; {reviewer} reviews plans"),
        (Some(reviewer), _) => format!("; {reviewer} reviews plans and code"),
    };
    ui.print_field("task", format!("{}{review_suffix}", terminal_text::escape_line(folder)));
    let step_suffix = task_loop.step.as_ref().map(|step| format!(", at {step}")).unwrap_or_default();
    let iterations = ui::pluralize(iterations, "iteration");
    ui.print_field("boxes", format!("{boxes_ticked} of {boxes_total}{step_suffix}, after {iterations}"));
    if let Some(ReviewSummary { subject, step, verdict, run, .. }) = &task_loop.review {
        ui.print_field("review", format!("the {subject} of step {step}: {verdict}, in run {run}"));
    }
}

/// Prints the conflict or failed check that keeps a lane from landing, and the worktree of an open
/// resolution.
fn print_obstacles(context: &CommandContext, lane: &AnyLane, details: &LaneDetails) {
    let ui = context.ui;
    if let Some(conflict) = &details.conflict {
        let files = ui::pluralize(conflict.paths.len(), "file");
        ui.print_field("conflict", format!("with {} in {files}", conflict.onto));
        conflict.git_messages.iter().for_each(|message| ui.print_field("", message));
    }
    if let Some(check) = &details.failed_check {
        let own_prefix = if check.command_lane.as_ref() == Some(&check.lane) { "its own " } else { "" };
        let (command, onto, end) = (&check.command, &check.onto, &check.exit_text);
        ui.print_field("check", format!("{own_prefix}`{command}` failed with this lane on {onto}: {end}"));
        ui.print_field("", format!("git proq logs {} --checks", lane.name));
    }
    if let Some(resolution) = &details.open_resolution {
        ui.print_field("resolving", format!("in {}", context.display_path(&resolution.worktree_path)));
    }
}

/// Maximum length of a task whose lines are wrapped at words, in bytes; a longer one is left to the terminal.
const MAX_WRAPPED_TASK_LEN: usize = 64 << 10;

/// Prints the text of the task, and the last answer or plan of a lane that has nothing to land.
fn print_task_and_answer(context: &CommandContext, lane: &AnyLane, details: &LaneDetails) {
    let task = details.task_text.trim();
    if !task.is_empty() && task != lane.title {
        context.ui.print_line("");
        if task.len() <= MAX_WRAPPED_TASK_LEN {
            task.lines().for_each(|line| context.ui.print_wrapped(line));
        } else {
            context.ui.print_line(task);
        }
    }
    if let (Some((text, _)), Some(purpose)) = (&details.last_answer, lane.purpose()) {
        context.ui.print_line(format!("\n{}\n", console::style(purpose).dim()));
        guest_lane_output::print_agent_text(context, text);
    }
}

/// Formats the lane's branch with its tip, the tip's subject, and the commits ahead and behind; only the name
/// of the branch for a removed lane.
fn branch_text(project: &Project, lane: &AnyLane, view: Option<&LaneView>) -> String {
    let name = lane.branch().unwrap_or_default();
    let Some(view) = view else { return name.to_owned() };
    let Some(tip) = view.tip else { return format!("{name} (gone)") };
    let subject = project.repo.commit_subject(tip).unwrap_or_default();
    let distance =
        view.distance.map(|d| format!(", {} ahead, {} behind", d.ahead, d.behind)).unwrap_or_default();
    format!("{name} at {} \"{subject}\"{distance}", tip.short())
}

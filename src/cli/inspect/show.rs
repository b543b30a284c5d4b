//! `git proq show`: prints everything about one lane.

pub(crate) mod runs;

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use proq_base::explain::Exit;
use proq_base::terminal_text;
use proq_lib::agent::task_loop::loop_status::LoopStatus;
use proq_lib::board::lookup::find_lane_or_task_lane;
use proq_lib::board::rows::auto_merge_outlook::AutoMergeOutlook;
use proq_lib::board::rows::lane_details::{LaneDetails, ShownLane};
use proq_lib::board::rows::show_output::ShowOutput;
use proq_lib::lane::Project;
use proq_lib::lane::inspection::idle_lane::IDLE_DETAIL;
use proq_lib::lane::inspection::list::LaneView;
use proq_lib::lane::state::state_records::StateRecords;
use proq_lib::types::{AnyLane, LaneState};

use super::{agent_report, show_prompt};
use crate::cli::arguments::candidates::any_lane_names;
use crate::cli::invocation::context::{CommandContext, CommandResult};
use crate::cli::runs::guest_lane_output;
use crate::cli::terminal::ui;
use runs::print_runs;

/// Show all about one lane
///
/// A removed lane is called NAME@N, as `git proq list --all` shows it.
///
/// Examples:
///     git proq show payments
///     git proq show payments --prompt
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Show {
    /// The lane, or NAME@N for a removed one
    #[arg(value_name = "LANE", add = ArgValueCompleter::new(any_lane_names))]
    pub(crate) lane: String,
    /// Print what its last run was told, and nothing else
    #[arg(long)]
    pub(crate) prompt: bool,
}

pub(crate) fn run(context: &CommandContext, args: &Show) -> CommandResult {
    let project = context.project()?;
    if args.prompt {
        let (lane, dir) = find_lane_or_task_lane(&project, &args.lane)?;
        return show_prompt::print_prompt(context, &lane, &dir);
    }
    let ShownLane { lane, view, details } = ShownLane::load(&project, &args.lane)?;
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
    let print_field = |key: &str, value: &str| {
        context.ui.print_line(format!("{} {value}", console::style(format!("{key:<10}")).dim()));
    };
    let state = view.map_or(lane.state(), LaneView::state);
    let detail = view.map_or(lane.detail.as_deref(), |v| v.detail.as_deref());
    // A removed lane is listed under its name in the history, which is the name of its record folder.
    let past_name = details.record_dir.file_name().map(|n| n.to_string_lossy().into_owned());
    print_field("lane", past_name.as_deref().unwrap_or(lane.name.as_str()));
    if lane.name != lane.title.as_str() {
        print_field("title", &lane.title);
    }
    if let Some(batch_task) = &lane.batch {
        print_field("batch", &format!("{}, for {}: git proq status {0}", batch_task.batch, batch_task.task));
    }
    if let Some(group) = &lane.group {
        print_field("group", &format!("{group}: git proq compare {group}"));
    }
    print_field(
        "state",
        &format!("{}{}", ui::styled_state(state), detail.map(|d| format!(" ({d})")).unwrap_or_default()),
    );
    print_branch_and_worktree(&print_field, project, lane, view);
    if let Some(landed) = &lane.landed {
        print_field(
            "landed",
            &format!("on {} as {}, {}", landed.onto, landed.commit.short(), landed.landed_at),
        );
    }
    for (n, text) in auto_merge_lines(project, lane, state, details, past_name.as_deref()).iter().enumerate()
    {
        print_field(if n == 0 { "by itself" } else { "" }, text);
    }
    if details.landed_by_hand {
        print_field("landed", &format!("by hand: {} has the same changes in other commits", lane.base));
    }
    if let Some(task_loop) = &details.task_loop {
        print_steps(&print_field, task_loop);
    }
    let activity = StateRecords::new(project.store.layout(), lane).last_activity();
    print_runs(&print_field, details, state.is_busy() || detail == Some(IDLE_DETAIL), activity);
    print_last_run_files(&print_field, details);
    print_obstacles(&print_field, lane, details);
    if let Some(report) = &details.report {
        agent_report::print_report(context, report);
    }
    print_task_and_answer(context, lane, details);
}

/// Prints the lane's branch and base, ports, checks, scope, worktree and uncommitted changes.
fn print_branch_and_worktree(
    print_field: &dyn Fn(&str, &str),
    project: &Project,
    lane: &AnyLane,
    view: Option<&LaneView>,
) {
    if lane.works_in_place() {
        print_field("mode", "in-place: it works in the main checkout, there is nothing to land");
        print_field("works on", &guest_lane_output::base_and_start_text(lane));
    } else if let Some(purpose) = lane.purpose() {
        print_field("mode", &format!("{purpose}: it only looks, there is nothing to land"));
        print_field("looks at", &guest_lane_output::base_and_start_text(lane));
    } else {
        print_field("branch", &branch_text(project, lane, view));
        print_field("base", &format!("{}, from {}", lane.base, lane.start.short()));
    }
    if let Some(ports) = lane.ports {
        print_field("ports", &format!("{}-{}", ports.first, ports.last()));
    }
    for check in &lane.checks {
        print_field("lands if", &format!("`{check}` succeeds"));
    }
    for glob in &lane.scope {
        print_field("scope", glob);
    }
    if let Some(view) = view {
        let (key, suffix) = match lane.purpose() {
            None => ("worktree", if view.is_folder_missing { " (gone)" } else { "" }),
            Some(_) => ("in", if lane.is_detached() { ", while it runs" } else { "" }),
        };
        print_field(key, &format!("{}{suffix}", lane.path.display()));
        let sparse_patterns = lane.branch().and_then(|_| project.repo.sparse_patterns(&lane.path));
        match sparse_patterns.as_deref() {
            Some([]) => print_field("checkout", "a part: the files at its top"),
            Some(patterns) => print_field("checkout", &format!("a part: {}", patterns.join(", "))),
            None => {}
        }
    }
    if let Some(dirty) = view.and_then(|v| v.dirty.as_ref()).filter(|d| !d.is_clean()) {
        print_field("changes", &format!("{} uncommitted", ui::pluralize(dirty.entries.len(), "file")));
        for path in dirty.paths().iter().take(10) {
            print_field("", &path.to_string());
        }
    }
}

/// Prints the progress and the last review of a task that is a folder.
fn print_steps(print_field: &dyn Fn(&str, &str), task_loop: &LoopStatus) {
    let review_suffix = match (&task_loop.reviewer, task_loop.review_level) {
        (None, _) => String::new(),
        (Some(reviewer), 1) => format!("; {reviewer} reviews plans"),
        (Some(reviewer), _) => format!("; {reviewer} reviews plans and code"),
    };
    print_field("task", &format!("{}{review_suffix}", terminal_text::escape_line(&task_loop.folder)));
    let step_suffix = task_loop.step.as_ref().map(|step| format!(", at {step}")).unwrap_or_default();
    let iterations = ui::pluralize(usize::try_from(task_loop.iterations).unwrap_or(usize::MAX), "iteration");
    print_field(
        "boxes",
        &format!("{} of {}{step_suffix}, after {iterations}", task_loop.boxes_ticked, task_loop.boxes_total),
    );
    if let Some(last_review) = &task_loop.review {
        print_field(
            "review",
            &format!(
                "the {} of step {}: {}, in run {}",
                last_review.subject, last_review.step, last_review.verdict, last_review.run
            ),
        );
    }
}

/// Prints the log file of the last run, and its prompt file if the run resolves a conflict.
fn print_last_run_files(print_field: &dyn Fn(&str, &str), details: &LaneDetails) {
    if let Some(run) = details.runs.last() {
        print_field("log", &details.log_path(run).display().to_string());
        if run.resolves_conflict {
            print_field("prompt", &details.prompt_path(run).display().to_string());
        }
    }
}

/// Prints the conflict or failed check that keeps a lane from landing, and the worktree of an open
/// resolution.
fn print_obstacles(print_field: &dyn Fn(&str, &str), lane: &AnyLane, details: &LaneDetails) {
    if let Some(conflict) = &details.conflict {
        print_field(
            "conflict",
            &format!("with {} in {}", conflict.onto, ui::pluralize(conflict.paths.len(), "file")),
        );
        for message in &conflict.git_messages {
            print_field("", message);
        }
    }
    if let Some(check) = &details.failed_check {
        let own_prefix = if check.command_lane.as_ref() == Some(&check.lane) { "its own " } else { "" };
        print_field(
            "check",
            &format!("{own_prefix}`{}` failed with it on {}: {}", check.command, check.onto, check.exit_text),
        );
        print_field("", &format!("git proq logs {} --check", lane.name));
    }
    if let Some(resolution) = &details.open_resolution {
        print_field("laid out", &format!("in {}", resolution.worktree_path.display()));
    }
}

/// Prints the text of the task, and the last answer or plan of a lane that has nothing to land.
fn print_task_and_answer(context: &CommandContext, lane: &AnyLane, details: &LaneDetails) {
    let task = details.task_text.trim();
    if !task.is_empty() {
        context.ui.print_line("");
        context.ui.print_line(task);
    }
    if let (Some((text, _)), Some(purpose)) = (&details.last_answer, lane.purpose()) {
        context.ui.print_line("");
        context.ui.print_line(console::style(format!("its {purpose}")).dim().to_string());
        context.ui.print_line("");
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

/// Describes when an auto-merge lane lands, and names the command that prints the log of its last landing.
fn auto_merge_lines(
    project: &Project,
    lane: &AnyLane,
    state: LaneState,
    details: &LaneDetails,
    past_name: Option<&str>,
) -> Vec<String> {
    let mut out = Vec::new();
    if lane.auto_merge {
        out.push(auto_merge_outlook(project, lane, state, details));
    }
    if let Some(run) = details.runs.iter().rev().find(|run| details.landing_log(run).exists()) {
        out.push(format!(
            "git proq logs {} --merge --run {}",
            past_name.unwrap_or(lane.name.as_str()),
            run.number
        ));
    }
    out
}

/// Describes when an auto-merge lane lands; or why it does not, and the command that helps.
fn auto_merge_outlook(project: &Project, lane: &AnyLane, state: LaneState, details: &LaneDetails) -> String {
    let (name, base) = (&lane.name, &lane.base);
    let force_merge_hint =
        |run_outcome: &str| format!("no: its run {run_outcome}; git proq merge {name} --force lands it");
    match state {
        LaneState::Idle | LaneState::Starting | LaneState::Running => {
            format!("lands on {base} when its run is done")
        }
        LaneState::Orphaned => {
            format!("no: a process of its agent lives on; git proq stop {name} ends it")
        }
        LaneState::Done => auto_merge_outlook_when_done(project, lane, details),
        LaneState::Landed => "it landed".to_owned(),
        LaneState::Conflict => format!("no: it conflicts; git proq resolve {name} shows what helps"),
        LaneState::CheckFailed => {
            format!("no: a check failed with it; git proq merge {name} tries again")
        }
        LaneState::Failed => force_merge_hint("failed"),
        LaneState::Stalled => force_merge_hint("stalled"),
        LaneState::Stopped => force_merge_hint("was stopped"),
        LaneState::NoChange => "no: it changed nothing".to_owned(),
        LaneState::Discarded => "no: it was discarded".to_owned(),
    }
}

/// Describes when an auto-merge lane lands whose run is done; or why its landing was refused.
fn auto_merge_outlook_when_done(project: &Project, lane: &AnyLane, details: &LaneDetails) -> String {
    let (name, base) = (&lane.name, &lane.base);
    let retry_text = format!("tried again after the next landing on {base}");
    match AutoMergeOutlook::read(project, lane) {
        AutoMergeOutlook::Landing => format!("is landing on {base}: git proq queue"),
        AutoMergeOutlook::Blocked(reason) => format!("refused: {reason}"),
        AutoMergeOutlook::Refused(reason) if !details.pending_messages.is_empty() => {
            format!("refused: {reason}")
        }
        AutoMergeOutlook::Refused(reason) => format!("refused: {reason}; {retry_text}"),
        AutoMergeOutlook::Interrupted => {
            format!("its landing was cut short; {retry_text}; git proq merge {name} lands it now")
        }
    }
}

//! The `git proq list` command, and the overview that `git proq` prints without a command.

use std::time::Duration;

use clap::Args;
use clap_complete::engine::{ArgValueCandidates, ArgValueCompleter, CompletionCandidate};
use proq_base::explain::Exit;
use proq_base::interrupt;
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
use proq_lib::watch::subject::Subject;
use proq_lib::watch::watcher::{Watch, WatchOutcome};

use super::first_steps::{first_commit_hint, first_hint, hint_at_landed_lanes, is_without_commits};
use super::list_everywhere;
use crate::cli::arguments::candidates::{any_lane_and_group_names, installed_agent_names};
use crate::cli::inspect::lane_list::footer;
use crate::cli::inspect::lane_list::painter::ListPainter;
use crate::cli::inspect::lane_list::table::render_list;
use crate::cli::invocation::context::{CommandContext, CommandResult};
use crate::cli::land::unlanded_batches::{print_batch_steps, print_unlanded_batches};
use crate::cli::runs::pull_request_view;
use crate::cli::terminal::table::output_width;
use crate::cli::terminal::{page, reader, table};

/// List lanes
///
/// LINES: added and removed lines of the lane's commits; `?` where they are not counted in time: `--wide` counts them.
/// COMMITS: ↑ ahead of the base, ↓ behind it; `answer` or `plan` if there is nothing to merge. CHANGES: uncommitted
/// files. CONFLICTS: what the commits would conflict with, as far as that is known quickly; `git proq matrix` shows
/// all. REQUEST: pull request and its state when it was last read; ✓ ✗ … are its checks. UPDATED: last output of a running agent, else the last change of the state. `*` marks the lane that the main
/// checkout shows. `…` is still being computed. `3/7`: ticked boxes of a task folder. `1 queued`: a message is
/// waiting for the agent. On a narrow terminal the less important columns are hidden.
///
/// Examples:
///     git proq list
///     git proq list --state running --watch
///     git proq list --everywhere
///     git proq list --json | jq '.lanes[] | select(.state == "done") | .name'
#[derive(Debug, Args)]
#[command(verbatim_doc_comment, alias = "ls")]
pub(crate) struct List {
    /// Lanes or groups to list
    #[arg(value_name = "LANE", conflicts_with = "everywhere", add = ArgValueCompleter::new(any_lane_and_group_names))]
    pub(crate) lanes: Vec<String>,
    /// Include removed lanes
    #[arg(long, short)]
    pub(crate) all: bool,
    /// Also show tool calls, context usage, and cost
    #[arg(long, short)]
    pub(crate) wide: bool,
    /// Read the state of pull requests again, from GitHub or GitLab; --wide does so too
    #[arg(long, hide_short_help = true, conflicts_with_all = ["everywhere", "watch"])]
    pub(crate) pr: bool,
    /// List lanes of all repositories
    #[arg(long)]
    pub(crate) everywhere: bool,
    /// List only lanes in this state [can be repeated]
    #[arg(long, value_name = "STATE", value_parser = parse_state, add = ArgValueCandidates::new(state_candidates))]
    pub(crate) state: Vec<LaneState>,
    /// List only lanes of this agent
    #[arg(long, value_name = "NAME", add = ArgValueCompleter::new(installed_agent_names))]
    pub(crate) agent: Option<String>,
    /// Keep running and update on changes; with --json, print one object per line
    #[arg(long, conflicts_with = "everywhere")]
    pub(crate) watch: bool,
}

impl List {
    fn request(&self) -> ListRequest<'_> {
        ListRequest {
            include_removed: self.all,
            include_usage: self.wide,
            names: &self.lanes,
            agent: self.agent.as_deref(),
            states: &self.state,
        }
    }

    fn is_filtered(&self) -> bool {
        !self.lanes.is_empty() || self.agent.is_some() || !self.state.is_empty()
    }
}

/// Parses the name of a state.
fn parse_state(name: &str) -> Result<LaneState, String> {
    let names = || LaneState::IN_DISPLAY_ORDER.map(|state| state.to_string()).join(", ");
    let found = LaneState::IN_DISPLAY_ORDER.into_iter().find(|state| state.to_string() == name);
    found.ok_or_else(|| format!("the states are {}", names()))
}

/// Returns the names of the states for completion.
fn state_candidates() -> Vec<CompletionCandidate> {
    LaneState::IN_DISPLAY_ORDER.iter().map(|state| CompletionCandidate::new(state.to_string())).collect()
}

/// Shortest pause between two lists with `--watch`.
const MIN_REFRESH_INTERVAL: Duration = Duration::from_millis(500);
/// Interval at which a painted list shows new ages; nothing is read for that.
const AGE_REFRESH_INTERVAL: Duration = Duration::from_secs(5);

/// Text of the overview of a repository without lanes, after its first sentence.
const NO_LANES: &str = "A lane is a branch and a worktree for one agent.

  git proq spawn claude \"implement payments\"   start an agent in a lane of its own
  git proq spawn -n try -- make test           or any command
  git proq demo                                take the tour
  git proq -h                                  see every command";

pub(crate) fn run(context: &CommandContext, args: &List) -> CommandResult {
    if args.everywhere {
        return list_everywhere::run(context, args.request());
    }
    if args.watch {
        return watch(context, args);
    }
    if args.pr || args.wide {
        let project = context.project_to_read()?;
        pull_request_view::refresh(context, &project, &project.all_lanes()?);
    }
    load_and_show(context, args.request(), |project, lane_list| {
        let is_empty = lane_list.views.is_empty() && lane_list.stored.past_lanes.is_empty();
        if is_empty && args.is_filtered() {
            context.ui.status("no lane matches");
        } else if is_empty {
            // An unreadable record has caused a warning already.
            let is_empty = !project.has_lane_records();
            if is_empty {
                let has_past_lanes = !project.all_past_lanes().is_empty();
                context.ui.status(if has_past_lanes { "no lanes" } else { "no lanes yet" });
            }
            if is_empty && lane_list.unlanded_batches.is_empty() {
                context.ui.hint(first_hint(project));
                hint_at_landed_lanes(context, project);
            }
        } else {
            context.ui.print_line(list_text(project, lane_list, args.is_filtered()));
        }
        print_notes(context, project, lane_list);
        print_batch_steps(context, project, &lane_list.unlanded_batches);
    })
}

/// Returns the table; on a terminal with its footer.
fn list_text(project: &Project, lane_list: &LaneList, is_filtered: bool) -> String {
    let width = output_width();
    let rendered = render_list(&lane_list.as_partial(), width);
    let footer = width.map(|width| {
        let text = footer::footer(project, lane_list, &rendered, is_filtered);
        console::style(format!("\n{}", table::wrap_hanging(&text, width.saturating_sub(1), 0)))
            .dim()
            .to_string()
    });
    rendered.lines.into_iter().chain(footer).collect::<Vec<_>>().join("\n")
}

/// Shows the list again whenever something has changed, until Ctrl-C.
fn watch(context: &CommandContext, args: &List) -> CommandResult {
    let project = context.project_to_read()?;
    interrupt::defer_signals();
    reader::exit_with_reader();
    let (mut watch, mut last_output) = (Watch::new(&project)?, None);
    watch.add(Subject::Lanes);
    watch.add(Subject::Refs);
    let mut painter = ListPainter::for_terminal(context.ui);
    loop {
        for lane in project.all_lanes()?.into_iter().filter(|lane| lane.branch().is_some()) {
            watch.add(Subject::Worktree(lane.path));
        }
        let lane_list = load_list(&project, args.request(), &mut |_| {});
        if !interrupt::has_no_signal() {
            return Ok(Exit::Signal(interrupt::received_signal()));
        }
        let lane_list = lane_list?;
        let show = |painter: &mut Option<ListPainter>| {
            let text = list_text(&project, &lane_list, args.is_filtered());
            match painter {
                Some(painter) => painter.paint(&text.lines().map(str::to_owned).collect::<Vec<_>>()),
                None if context.ui.json => context.ui.print_json_line(to_output(&project, &lane_list)),
                None => context.ui.print_line(format!("{text}\n")),
            }
        };
        let output = serde_json::to_value(to_output(&project, &lane_list)).ok();
        if painter.is_some() || output != last_output {
            show(&mut painter);
            last_output = output;
        }
        watch.pause(MIN_REFRESH_INTERVAL)?;
        loop {
            match watch.wait(painter.is_some().then_some(AGE_REFRESH_INTERVAL))? {
                WatchOutcome::Signal => {
                    drop(painter);
                    show(&mut None);
                    return Ok(Exit::Signal(interrupt::received_signal()));
                }
                WatchOutcome::TimedOut => show(&mut painter),
                WatchOutcome::Changed { .. } => break,
            }
        }
    }
}

/// Prints the lanes and the possible next steps, for `git proq` without a command.
pub(crate) fn print_overview(context: &CommandContext) -> CommandResult {
    load_and_show(context, ListRequest::default(), |project, lane_list| {
        if lane_list.views.is_empty() && lane_list.unlanded_batches.is_empty() {
            return print_no_lanes(context, project);
        }
        if !lane_list.views.is_empty() {
            context.ui.print_line(list_text(project, lane_list, false));
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
    let heading = if project.all_past_lanes().is_empty() { "No lanes yet." } else { "No lanes." };
    context.ui.print_line(format!("{heading} {NO_LANES}"));
    hint_at_landed_lanes(context, project);
    if is_without_commits(project) {
        context.ui.hint(first_commit_hint());
    }
}

/// Loads a list, painted on a terminal while it loads, and prints it as JSON or by `print_text`.
fn load_and_show(
    context: &CommandContext,
    request: ListRequest<'_>,
    print_text: impl FnOnce(&Project, &LaneList),
) -> CommandResult {
    let project = context.project_to_read()?;
    page::begin();
    let mut painter = ListPainter::for_terminal(context.ui);
    let lane_list = load_list(&project, request, &mut |partial| {
        if let Some(painter) = &mut painter {
            painter.paint_if_due(|| render_list(&partial, output_width()).lines);
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
            false => ui.warn(format!("the preview of '{lane}' was left with git{waiting}: {back}")),
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

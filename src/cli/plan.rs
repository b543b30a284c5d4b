//! The `git proq plan` command.

mod draft_args;
mod draft_conversation;
mod draft_list;
mod json_output;
mod plan_file;
mod tree;

use std::fmt::Write as _;

use clap::{Args, ValueHint};
use console::style;

use super::plan_source::PlanSource;
use super::{CommandContext, CommandResult, UsageError, table, ui};
use crate::explain::Exit;
use crate::git::{self, RepoPath};
use crate::lane::Project;
use crate::swarm::{
    self, BatchOptions, DependencyGraph, LandingMode, LaneAssignment, LaneSharing, LoadedPlan, Pace,
    PhaseOrder, Plan, PlanFormat, PlanTask, Simulation,
};
use crate::terminal_text;

/// Show what a plan of tasks comes to, or have an agent make one
///
/// Shown is in which waves the tasks can be done, which of them are about the same files and so share a lane, one after the
/// other, how many lanes that makes at a time, and which way through takes longest. Nothing is run and nothing is changed.
/// Scopes that are patterns are compared by the files of HEAD.
///
/// Task folders lie at tasks/AREA/ID-NAME/PROMPT.md (`swarm.tasks`, `swarm.areas`): `all` names them all, an area's name those
/// of that area, and a path a folder or a single PROMPT.md. Of a roadmap in Markdown one milestone is read, a heading with
/// items like `- [ ] this` below it; those of `- [x]` are done, and headings below it make groups. A plan in TOML is described by the file that --init writes, and by --schema. --toml writes any other plan as one.
///
/// With --ai an agent makes the plan: it looks at the commit that is checked out, in a worktree that goes afterwards, and
/// changes nothing. What it came to is shown, and kept as a draft that --feedback changes as often as you like, in the same
/// conversation where the agent can go on in it. -o writes it as a plan in TOML. A draft is not run before you approve it;
/// one that changes has to be approved again. Without DRAFT, the only one is meant.
///
/// Dependencies that `git proq deps --agent` found missing, and that you have approved, are used; they are marked.
///
/// Examples:
///     git proq plan --init
///     git proq plan plan.toml
///     git proq plan auth billing
///     git proq plan ROADMAP.md --milestone 0.3
///     git proq plan plan.toml --json | jq '.waves'
///     git proq plan --ai "payments by card" --from ROADMAP.md
///     git proq plan --feedback "the migration goes first" -o plan.toml
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
#[command(
    override_usage = "git proq plan [OPTIONS] SOURCE...\n       git proq plan --ai GOAL [--from FILE] [--agent AGENT] [-o FILE]\n       git proq plan --feedback TEXT [-o FILE] [DRAFT]\n       git proq plan --approve [DRAFT]\n       git proq plan -o FILE [DRAFT|SOURCE]\n       git proq plan --drafts"
)]
pub(crate) struct PlanArgs {
    #[command(flatten)]
    source: PlanSource,
    /// How many lanes may be at work at the same time
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..))]
    max_parallel: u16,
    /// Print it as a plan in TOML
    #[arg(long, conflicts_with = "init")]
    toml: bool,
    /// Write a plan to begin with; `-` prints it
    #[arg(
        long,
        value_name = "FILE",
        num_args = 0..=1,
        default_missing_value = "plan.toml",
        conflicts_with = "sources",
        value_hint = ValueHint::FilePath
    )]
    init: Option<String>,
    /// Print the JSON schema of a plan in TOML, for editors
    #[arg(long, conflicts_with_all = ["sources", "init", "toml"])]
    schema: bool,
    /// Plans by agents
    #[command(flatten)]
    draft_args: draft_args::DraftArgs,
}

/// A plan with everything that is computed from it: waves, shared lanes, critical path and simulation.
pub(super) struct PlanView<'p> {
    loaded: &'p LoadedPlan,
    tasks: Vec<PlanTask<'p>>,
    waves: Vec<Vec<usize>>,
    sharing: LaneSharing,
    critical_path: swarm::CriticalPath,
    max_parallel: usize,
    simulation: Option<Simulation>,
    pace: Option<Pace>,
    sources: &'p [String],
}

pub(super) fn run(session: &CommandContext, args: &PlanArgs) -> CommandResult {
    if args.schema {
        session.ui.print_line(serde_json::to_string_pretty(&swarm::plan_schema()).unwrap_or_default());
        return Ok(Exit::Success);
    }
    if let Some(file) = &args.init {
        return write_template(session, file);
    }
    if args.draft_args.is_requested() {
        return draft_args::run(session, args);
    }
    let project = session.project()?;
    let loaded = args.source.read_plan_or_draft(session, &project, "git proq plan plan.toml")?;
    if args.toml {
        session.ui.print_text(&swarm::plan_to_toml(&loaded.plan));
        return Ok(Exit::Success);
    }
    if let (PlanFormat::Draft, [name]) = (loaded.format, args.source.source_names()) {
        return draft_conversation::show_saved_draft(session, &project, args, name);
    }
    let view = compute_view(&project, &loaded, args.source.source_names(), &batch_options(&project, args))?;
    if session.ui.json {
        session.ui.print_long_json(json_output::build_output(&view));
    } else {
        session.ui.print_line(render(&view, usize::MAX));
    }
    Ok(Exit::Success)
}

/// Computes the view of a plan.
pub(super) fn compute_view<'p>(
    project: &Project,
    loaded: &'p LoadedPlan,
    sources: &'p [String],
    options: &BatchOptions,
) -> Result<PlanView<'p>, swarm::Error> {
    let sharing = LaneSharing::from_plan(&loaded.plan, || head_files(project))?;
    Ok(PlanView {
        tasks: loaded.plan.tasks().collect(),
        simulation: Simulation::run(&loaded.plan, &loaded.graph, sharing.shared_lanes(), options),
        pace: Pace::from_history(project),
        sharing,
        critical_path: loaded.graph.critical_path(&loaded.plan),
        max_parallel: options.max_parallel,
        sources,
        waves: loaded.graph.waves(),
        loaded,
    })
}

/// Returns the batch options with which the plan is simulated, from the settings and `--max-parallel`.
pub(super) fn batch_options(project: &Project, args: &PlanArgs) -> BatchOptions {
    let settings = &project.settings.swarm;
    BatchOptions {
        mode: LandingMode::from_setting(&settings.mode),
        lane_assignment: LaneAssignment::from_setting(&settings.strategy),
        max_parallel: usize::from(args.max_parallel),
        ..BatchOptions::default()
    }
}

/// Returns the files of HEAD; none before the first commit.
fn head_files(project: &Project) -> Result<Vec<RepoPath>, git::Error> {
    let worktree = project.repo.current_worktree().unwrap_or(project.repo.command_dir());
    let head = project.repo.head_commit(worktree)?;
    head.map_or_else(|| Ok(Vec::new()), |head| git::tree_paths(&project.repo, head))
}

/// Writes a template plan to a new file, or prints it for `-`. An existing file is refused.
fn write_template(session: &CommandContext, file: &str) -> CommandResult {
    if file == "-" {
        session.ui.print_text(swarm::TEMPLATE);
        return Ok(Exit::Success);
    }
    let path = session.dir.join(file);
    plan_file::create_file(&path, swarm::TEMPLATE).map_err(|source| match source.kind() {
        std::io::ErrorKind::AlreadyExists => UsageError::InitFileExists { path: path.clone() },
        _ => UsageError::Unwritable { path: path.clone(), source },
    })?;
    if session.ui.json {
        session.ui.print_json(serde_json::json!({ "path": crate::store::path_form::to_text(&path) }));
    } else {
        session.ui.print_line(format!("wrote {}", terminal_text::escape_line(file)));
        session.ui.hint(format!("see what it comes to: git proq plan {}", terminal_text::escape_line(file)));
    }
    Ok(Exit::Success)
}

impl PlanView<'_> {
    /// Returns the tasks of each lane that more than one task shares.
    pub(super) fn shared_lanes(&self) -> Vec<Vec<usize>> {
        self.sharing.shared_lanes()
    }

    fn plan(&self) -> &Plan {
        &self.loaded.plan
    }

    fn graph(&self) -> &DependencyGraph {
        &self.loaded.graph
    }

    fn task_name(&self, task: usize) -> String {
        self.tasks[task].task.name()
    }

    fn task_names(&self, tasks: &[usize]) -> Vec<String> {
        tasks.iter().map(|task| self.task_name(*task)).collect()
    }

    /// Returns the wave of each task, counted from 1; none for a task that is done.
    fn waves_by_task(&self) -> Vec<Option<usize>> {
        let mut out = vec![None; self.tasks.len()];
        for (n, wave) in self.waves.iter().enumerate() {
            for task in wave {
                out[*task] = Some(n + 1);
            }
        }
        out
    }

    /// Returns the lane of a task in the simulation, counted from 1.
    fn simulated_lane(&self, task: usize) -> Option<usize> {
        self.simulation.as_ref().and_then(|simulated| simulated.lanes[task])
    }

    /// Returns the maximum number of lanes that are active at the same time.
    fn max_active_lanes(&self) -> usize {
        self.sharing.max_concurrent_lanes(&self.waves).min(self.max_parallel)
    }

    /// Returns the summed weight of the tasks that are not done.
    fn open_weight(&self) -> usize {
        let open_tasks = self.tasks.iter().filter(|entry| !entry.task.done);
        open_tasks.map(|entry| entry.task.size.weight()).sum()
    }
}

/// Renders the plan as text for the user, with its first `max_tasks` tasks.
pub(super) fn render(view: &PlanView<'_>, max_tasks: usize) -> String {
    let plan = view.plan();
    let mut out = String::new();
    let title = if plan.summary.is_empty() { "A plan" } else { &plan.summary };
    let _ = writeln!(out, "{}", style(terminal_text::escape_line(title)).bold());
    let done = view.tasks.iter().filter(|entry| entry.task.done).count();
    let _ = writeln!(
        out,
        "{} ({}): {}, {done} done, {}",
        terminal_text::escape_line(&view.sources.join(" ")),
        view.loaded.format,
        ui::pluralize(view.tasks.len(), "task"),
        ui::pluralize(view.waves.len(), "wave"),
    );
    push_list(&mut out, "Before it is run:", &plan.warnings);
    let phase_list = phase_lines(view);
    push_list(&mut out, if plan.phases.len() > 1 { "Phases:" } else { "Groups:" }, &phase_list);
    let _ = writeln!(out, "\n{}\n", task_table(view, max_tasks));
    if view.tasks.len() > max_tasks {
        let _ = writeln!(out, "and {} more; --dry-run lists all\n", view.tasks.len() - max_tasks);
    }
    let _ = writeln!(out, "{}", lanes_text(view));
    push_shared_lanes(&mut out, view);
    if !view.critical_path.tasks.is_empty() {
        let path_text = view.task_names(&view.critical_path.tasks).join(" -> ");
        let _ = writeln!(
            out,
            "Longest way: {path_text} ({} of {} by size)",
            view.critical_path.weight,
            view.open_weight()
        );
    }
    out.push_str(&time_text(view));
    push_list(&mut out, "By an agent, and approved:", &proposed_lines(view));
    push_list(&mut out, "In the end:", &plan.criteria);
    out.trim_end().to_owned()
}

/// Appends which tasks share a lane, and the scopes that overlap.
fn push_shared_lanes(out: &mut String, view: &PlanView<'_>) {
    for lane in view.sharing.shared_lanes() {
        let _ = writeln!(out, "One lane for {}, one after the other:", view.task_names(&lane).join(", "));
        for overlap in
            view.sharing.overlaps.iter().filter(|overlap| view.sharing.lane_root(overlap.tasks[0]) == lane[0])
        {
            let [one, two] = overlap.tasks.map(|task| view.task_name(task));
            let [a, b] = overlap.globs.each_ref().map(|glob| terminal_text::escape_line(glob));
            let globs = if a == b { a } else { format!("{a} and {b}") };
            let _ = writeln!(out, "  {one} and {two} are about {globs}");
        }
    }
}

/// Returns a line for each dependency that an agent found missing.
fn proposed_lines(view: &PlanView<'_>) -> Vec<String> {
    let line = |edge: &swarm::ProposedEdge| {
        let reason_text = if edge.reason.is_empty() { String::new() } else { format!(": {}", edge.reason) };
        format!(
            "{} after {}, says {}{reason_text}",
            view.task_name(edge.task),
            view.task_name(edge.needed),
            edge.agent
        )
    };
    view.loaded.proposed_needs.iter().map(line).collect()
}

fn push_list(out: &mut String, heading: &str, items: &[String]) {
    if !items.is_empty() {
        let _ = writeln!(out, "\n{heading}");
        for item in items {
            let _ = writeln!(out, "  {}", terminal_text::escape_line(item));
        }
    }
}

/// Returns a line for each phase, and for each group with a theme; empty for a plan without both.
fn phase_lines(view: &PlanView<'_>) -> Vec<String> {
    let plan = view.plan();
    let mut out = Vec::new();
    for (n, phase) in plan.phases.iter().enumerate() {
        let is_single = plan.phases.len() == 1;
        let indent = if is_single { "" } else { "  " };
        if !is_single || !phase.title.is_empty() || phase.order == PhaseOrder::Serial {
            let title = if phase.title.is_empty() { String::new() } else { format!(" {}", phase.title) };
            let order = if phase.order == PhaseOrder::Serial { ", one task after the other" } else { "" };
            out.push(format!("{}.{title}{order}", n + 1));
        }
        for group in phase.groups.iter().filter(|group| !group.theme.is_empty()) {
            let ids: Vec<String> = group.tasks.iter().map(swarm::Task::name).collect();
            let rationale =
                if group.rationale.is_empty() { String::new() } else { format!(". {}", group.rationale) };
            out.push(format!("{indent}{}: {}{rationale}", group.theme, ids.join(", ")));
        }
    }
    out
}

/// Formats the number of lanes and the limit that caps it.
fn lanes_text(view: &PlanView<'_>) -> String {
    let (lanes, widest) = (view.max_active_lanes(), view.sharing.max_concurrent_lanes(&view.waves));
    let limit = if widest > lanes { format!(", of {widest} that could be at work") } else { String::new() };
    format!("Lanes: {lanes} at a time{limit} (--max-parallel {})", view.max_parallel)
}

/// Formats the estimated time; empty where the plan cannot be simulated.
fn time_text(view: &PlanView<'_>) -> String {
    let span = view.simulation.as_ref().map_or(0, |simulated| simulated.makespan);
    if span == 0 {
        return String::new();
    }
    let by_size = format!("as long as {} one after the other", ui::pluralize(span, "small task"));
    match view.pace {
        Some(pace) => {
            let about = ui::short_duration(pace.small_tasks_duration(span));
            let runs = ui::pluralize(pace.sample_count, "run");
            format!("Time: about {about}, {by_size}, at the pace of the last {runs} here\n")
        }
        None => format!("Time: {by_size}\n"),
    }
}

/// Renders the table of tasks: first those that are done, then wave by wave.
fn task_table(view: &PlanView<'_>, max_tasks: usize) -> String {
    let waves = view.waves_by_task();
    let mut order: Vec<usize> = (0..view.tasks.len()).collect();
    order.sort_by_key(|task| (waves[*task], *task));
    let rows = order.into_iter().take(max_tasks).map(|position| {
        let entry = view.tasks[position];
        let task = entry.task;
        let needs = view.task_names(view.graph().needs(position));
        let progress = task.progress.map(|p| format!("{}/{}", p.done, p.total));
        vec![
            waves[position].map_or_else(|| "done".to_owned(), |wave| wave.to_string()),
            view.simulated_lane(position).map_or_else(|| "-".to_owned(), |lane| lane.to_string()),
            task.name(),
            task.size.to_string(),
            view.plan().task_agent(entry).map_or_else(|| "-".to_owned(), terminal_text::escape_line),
            progress.unwrap_or_else(|| "-".to_owned()),
            shorten_list(&needs),
            shorten_list(&task.scope),
            terminal_text::escape_line(&task.title),
        ]
    });
    let mut rows: Vec<Vec<String>> = rows.collect();
    let mut head = vec!["WAVE", "LANE", "TASK", "SIZE", "AGENT", "STEPS", "NEEDS", "SCOPE", "TITLE"];
    // A column without any value is dropped, to leave more width for the titles.
    for column in ["STEPS", "AGENT", "NEEDS", "SCOPE"] {
        let index = head.iter().position(|name| *name == column).unwrap_or_default();
        if rows.iter().all(|row| row[index] == "-") {
            head.remove(index);
            for row in &mut rows {
                row.remove(index);
            }
        }
    }
    table::render(&head, rows)
}

/// Formats the first items of a list, and the number of the others.
fn shorten_list(items: &[String]) -> String {
    /// Maximum number of items shown. The others are only counted.
    const MAX_ITEMS_SHOWN: usize = 3;
    let shown: Vec<String> =
        items.iter().take(MAX_ITEMS_SHOWN).map(|item| terminal_text::escape_line(item)).collect();
    match items.len() {
        0 => "-".to_owned(),
        n if n > MAX_ITEMS_SHOWN => format!("{}, +{}", shown.join(", "), n - MAX_ITEMS_SHOWN),
        _ => shown.join(", "),
    }
}

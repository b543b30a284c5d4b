//! Owns `git proq plan`.

mod answer;
mod drafting;
mod listing;
mod making;
mod save;
mod tree;

pub(super) use drafting::agreed;

use std::fmt::Write as _;

use clap::{Args, ValueHint};
use console::style;

use super::plan_source::PlanSource;
use super::{Done, Mistake, Session, table, ui};
use crate::explain::Exit;
use crate::git::{self, RepoPath};
use crate::harmless;
use crate::lane::Project;
use crate::swarm::{
    self, Format, Found, Graph, Mode, Options, Order, Pace, Plan, Rehearsal, Sharing, Spot, Spread,
};

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
    drafting: drafting::Drafting,
}

/// A plan, and all that follows from it.
pub(super) struct Look<'p> {
    found: &'p Found,
    spots: Vec<Spot<'p>>,
    waves: Vec<Vec<usize>>,
    sharing: Sharing,
    longest: swarm::Route,
    max_parallel: usize,
    rehearsal: Option<Rehearsal>,
    pace: Option<Pace>,
    sources: &'p [String],
}

pub(super) fn run(session: &Session, args: &PlanArgs) -> Done {
    if args.schema {
        session.ui.answer(serde_json::to_string_pretty(&swarm::schema()).unwrap_or_default());
        return Ok(Exit::Done);
    }
    if let Some(file) = &args.init {
        return init(session, file);
    }
    if args.drafting.is_asked_for() {
        return drafting::run(session, args);
    }
    let project = session.project()?;
    let found = args.source.read_or_draft(session, &project, "git proq plan plan.toml")?;
    if args.toml {
        session.ui.text(&swarm::written(&found.plan));
        return Ok(Exit::Done);
    }
    if let (Format::Draft, [name]) = (found.format, args.source.names()) {
        return making::show_kept(session, &project, args, name);
    }
    let look = look_at(&project, &found, args.source.names(), &options_of(&project, args))?;
    if session.ui.json {
        session.ui.long_object(answer::of(&look));
    } else {
        session.ui.answer(render(&look, usize::MAX));
    }
    Ok(Exit::Done)
}

/// What follows from a plan.
pub(super) fn look_at<'p>(
    project: &Project,
    found: &'p Found,
    sources: &'p [String],
    options: &Options,
) -> Result<Look<'p>, swarm::Error> {
    let sharing = Sharing::of(&found.plan, || files(project))?;
    Ok(Look {
        spots: found.plan.spots().collect(),
        rehearsal: Rehearsal::of(&found.plan, &found.graph, sharing.shared(), options),
        pace: Pace::of(project),
        sharing,
        longest: found.graph.longest(&found.plan),
        max_parallel: options.max_parallel,
        sources,
        waves: found.graph.waves(),
        found,
    })
}

/// How it would be run, by the settings.
pub(super) fn options_of(project: &Project, args: &PlanArgs) -> Options {
    let settings = &project.settings.swarm;
    Options {
        mode: Mode::named(&settings.mode),
        spread: Spread::named(&settings.strategy),
        max_parallel: usize::from(args.max_parallel),
        ..Options::default()
    }
}

/// The files of HEAD; none before the first commit.
fn files(project: &Project) -> Result<Vec<RepoPath>, swarm::Error> {
    let here = project.repo.here().unwrap_or(project.repo.home());
    let head = project.repo.head_of(here)?;
    Ok(head.map_or_else(|| Ok(Vec::new()), |head| git::files_of(&project.repo, head))?)
}

/// Writes a plan to begin with, where nothing is yet.
fn init(session: &Session, file: &str) -> Done {
    if file == "-" {
        session.ui.text(swarm::TEMPLATE);
        return Ok(Exit::Done);
    }
    let path = session.dir.join(file);
    save::put(&path, swarm::TEMPLATE).map_err(|source| match source.kind() {
        std::io::ErrorKind::AlreadyExists => Mistake::Taken { path: path.clone() },
        _ => Mistake::Unwritable { path: path.clone(), source },
    })?;
    if session.ui.json {
        session.ui.object(serde_json::json!({ "path": crate::store::path_form::text(&path) }));
    } else {
        session.ui.answer(format!("wrote {}", harmless::line(file)));
        session.ui.hint(format!("see what it comes to: git proq plan {}", harmless::line(file)));
    }
    Ok(Exit::Done)
}

impl Look<'_> {
    /// Tasks that share a lane.
    pub(super) fn shared(&self) -> Vec<Vec<usize>> {
        self.sharing.shared()
    }

    fn plan(&self) -> &Plan {
        &self.found.plan
    }

    fn graph(&self) -> &Graph {
        &self.found.graph
    }

    fn name(&self, task: usize) -> String {
        self.spots[task].task.name()
    }

    fn names(&self, tasks: &[usize]) -> Vec<String> {
        tasks.iter().map(|task| self.name(*task)).collect()
    }

    /// The wave of each task, from 1; none for one that is done.
    fn wave_of(&self) -> Vec<Option<usize>> {
        let mut out = vec![None; self.spots.len()];
        for (n, wave) in self.waves.iter().enumerate() {
            for task in wave {
                out[*task] = Some(n + 1);
            }
        }
        out
    }

    /// The lane that a task would be done in, from 1.
    fn lane_of(&self, task: usize) -> Option<usize> {
        self.rehearsal.as_ref().and_then(|played| played.lanes[task])
    }

    /// How many lanes are at work at the same time at most.
    fn lanes(&self) -> usize {
        self.sharing.widest(&self.waves).min(self.max_parallel)
    }

    /// The sizes of what is open, together.
    fn work(&self) -> usize {
        let open = self.spots.iter().filter(|spot| !spot.task.done);
        open.map(|spot| spot.task.size.weight()).sum()
    }
}

/// The plan as a person reads it, with the first `most` of its tasks.
pub(super) fn render(look: &Look<'_>, most: usize) -> String {
    let plan = look.plan();
    let mut out = String::new();
    let title = if plan.summary.is_empty() { "A plan" } else { &plan.summary };
    let _ = writeln!(out, "{}", style(harmless::line(title)).bold());
    let done = look.spots.iter().filter(|spot| spot.task.done).count();
    let _ = writeln!(
        out,
        "{} ({}): {}, {done} done, {}",
        harmless::line(&look.sources.join(" ")),
        look.found.format,
        ui::count(look.spots.len(), "task"),
        ui::count(look.waves.len(), "wave"),
    );
    list(&mut out, "Before it is run:", &plan.warnings);
    let phases = phases(look);
    list(&mut out, if plan.phases.len() > 1 { "Phases:" } else { "Groups:" }, &phases);
    let _ = writeln!(out, "\n{}\n", tasks(look, most));
    if look.spots.len() > most {
        let _ = writeln!(out, "and {} more; --dry-run lists all\n", look.spots.len() - most);
    }
    let _ = writeln!(out, "{}", lanes(look));
    shared(&mut out, look);
    if !look.longest.tasks.is_empty() {
        let way = look.names(&look.longest.tasks).join(" -> ");
        let _ = writeln!(out, "Longest way: {way} ({} of {} by size)", look.longest.weight, look.work());
    }
    out.push_str(&time(look));
    list(&mut out, "By an agent, and approved:", &proposed(look));
    list(&mut out, "In the end:", &plan.criteria);
    out.trim_end().to_owned()
}

/// Which tasks share a lane, and why.
fn shared(out: &mut String, look: &Look<'_>) {
    for lane in look.sharing.shared() {
        let _ = writeln!(out, "One lane for {}, one after the other:", look.names(&lane).join(", "));
        for met in look.sharing.met.iter().filter(|met| look.sharing.lane(met.tasks[0]) == lane[0]) {
            let [one, two] = met.tasks.map(|task| look.name(task));
            let [a, b] = met.globs.each_ref().map(|glob| harmless::line(glob));
            let globs = if a == b { a } else { format!("{a} and {b}") };
            let _ = writeln!(out, "  {one} and {two} are about {globs}");
        }
    }
}

/// What waits for what because an agent found that missing.
fn proposed(look: &Look<'_>) -> Vec<String> {
    let line = |edge: &swarm::Proposed| {
        let because = if edge.because.is_empty() { String::new() } else { format!(": {}", edge.because) };
        format!("{} after {}, says {}{because}", look.name(edge.task), look.name(edge.need), edge.agent)
    };
    look.found.proposed.iter().map(line).collect()
}

fn list(out: &mut String, head: &str, items: &[String]) {
    if !items.is_empty() {
        let _ = writeln!(out, "\n{head}");
        for item in items {
            let _ = writeln!(out, "  {}", harmless::line(item));
        }
    }
}

/// A line for each phase, and each group that says what it is; none where a plan has neither.
fn phases(look: &Look<'_>) -> Vec<String> {
    let plan = look.plan();
    let mut out = Vec::new();
    for (n, phase) in plan.phases.iter().enumerate() {
        let is_one = plan.phases.len() == 1;
        let indent = if is_one { "" } else { "  " };
        if !is_one || !phase.title.is_empty() || phase.order == Order::Serial {
            let title = if phase.title.is_empty() { String::new() } else { format!(" {}", phase.title) };
            let order = if phase.order == Order::Serial { ", one task after the other" } else { "" };
            out.push(format!("{}.{title}{order}", n + 1));
        }
        for group in phase.groups.iter().filter(|group| !group.theme.is_empty()) {
            let ids: Vec<String> = group.tasks.iter().map(swarm::Task::name).collect();
            let why =
                if group.rationale.is_empty() { String::new() } else { format!(". {}", group.rationale) };
            out.push(format!("{indent}{}: {}{why}", group.theme, ids.join(", ")));
        }
    }
    out
}

/// How many lanes, and why not more.
fn lanes(look: &Look<'_>) -> String {
    let (lanes, widest) = (look.lanes(), look.sharing.widest(&look.waves));
    let limit = if widest > lanes { format!(", of {widest} that could be at work") } else { String::new() };
    format!("Lanes: {lanes} at a time{limit} (--max-parallel {})", look.max_parallel)
}

/// How long it takes, as far as that can be said.
fn time(look: &Look<'_>) -> String {
    let span = look.rehearsal.as_ref().map_or(0, |played| played.span);
    if span == 0 {
        return String::new();
    }
    let by_size = format!("as long as {} one after the other", ui::count(span, "small task"));
    match look.pace {
        Some(pace) => {
            let about = ui::span(pace.of_small(span));
            let runs = ui::count(pace.runs, "run");
            format!("Time: about {about}, {by_size}, at the pace of the last {runs} here\n")
        }
        None => format!("Time: {by_size}\n"),
    }
}

/// The tasks, those that are done first, then wave by wave.
fn tasks(look: &Look<'_>, most: usize) -> String {
    let waves = look.wave_of();
    let mut order: Vec<usize> = (0..look.spots.len()).collect();
    order.sort_by_key(|task| (waves[*task], *task));
    let rows = order.into_iter().take(most).map(|at| {
        let spot = look.spots[at];
        let task = spot.task;
        let needs = look.names(look.graph().needs(at));
        let progress = task.progress.map(|p| format!("{}/{}", p.done, p.of));
        vec![
            waves[at].map_or_else(|| "done".to_owned(), |wave| wave.to_string()),
            look.lane_of(at).map_or_else(|| "-".to_owned(), |lane| lane.to_string()),
            task.name(),
            task.size.to_string(),
            look.plan().agent_of(spot).map_or_else(|| "-".to_owned(), harmless::line),
            progress.unwrap_or_else(|| "-".to_owned()),
            short(&needs),
            short(&task.scope),
            harmless::line(&task.title),
        ]
    });
    let mut rows: Vec<Vec<String>> = rows.collect();
    let mut head = vec!["WAVE", "LANE", "TASK", "SIZE", "AGENT", "STEPS", "NEEDS", "SCOPE", "TITLE"];
    // A column in which nothing is anywhere takes room from the titles.
    for column in ["STEPS", "AGENT", "NEEDS", "SCOPE"] {
        let at = head.iter().position(|name| *name == column).unwrap_or_default();
        if rows.iter().all(|row| row[at] == "-") {
            head.remove(at);
            for row in &mut rows {
                row.remove(at);
            }
        }
    }
    table::render(&head, rows)
}

/// The first few of them.
fn short(items: &[String]) -> String {
    /// More than these are counted.
    const SHOWN: usize = 3;
    let shown: Vec<String> = items.iter().take(SHOWN).map(|item| harmless::line(item)).collect();
    match items.len() {
        0 => "-".to_owned(),
        n if n > SHOWN => format!("{}, +{}", shown.join(", "), n - SHOWN),
        _ => shown.join(", "),
    }
}

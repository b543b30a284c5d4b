//! Owns `git proq deps`.

mod missing;

use std::fmt::Write as _;

use clap::Args;
use console::style;
use serde::Serialize;

use super::plan_source::PlanSource;
use super::{Done, Session, ui};
use crate::explain::Exit;
use crate::harmless;
use crate::swarm::{self, Found, Order, Proposed, Spot};

/// Show what waits for what in a plan
///
/// Below each task stand those that need it. One that needs others too says so, and what waits for a task is shown once. In a
/// phase whose tasks go one after the other, each waits for the one before it.
///
/// With --agent an agent looks for dependencies that nobody has written down. It looks at the commit that is checked out, in a
/// worktree that goes afterwards. What it found is checked, shown and, once you agree, used by `git proq deps` and `git proq plan`
/// for these tasks, marked with * and its name, for as long as what the tasks say stays as it is; your files are left alone.
/// What is known is not asked for again without --refresh, and --forget ends that.
///
/// Examples:
///     git proq deps plan.toml
///     git proq deps all --agent claude
///     git proq deps plan.toml --dot | dot -Tsvg > plan.svg
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Deps {
    #[command(flatten)]
    source: PlanSource,
    /// Print a graph for Graphviz
    #[arg(long, conflicts_with = "json")]
    dot: bool,
    /// What an agent is asked
    #[command(flatten)]
    asking: missing::Asking,
}

#[derive(Serialize)]
struct Answer {
    tasks: Vec<Row>,
    edges: Vec<Edge>,
}

#[derive(Serialize)]
struct Row {
    name: String,
    title: String,
    phase: usize,
    done: bool,
}

/// `task` waits for `needs`.
#[derive(Debug, Serialize)]
struct Edge {
    task: String,
    needs: String,
    why: Why,
    /// Who found it missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    because: Option<String>,
    /// Whether a person has agreed to that.
    #[serde(skip_serializing_if = "Option::is_none")]
    approved: Option<bool>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Why {
    /// It says so.
    Needs,
    /// Its phase's tasks go one after the other.
    Order,
    /// An agent found it missing.
    Agent,
}

/// Who waits for whom.
struct Web<'f> {
    found: &'f Found,
    /// Whether what an agent found is used.
    approved: bool,
    spots: Vec<Spot<'f>>,
    /// What each task waits for.
    up: Vec<Vec<(usize, Why)>>,
    /// What waits for each task.
    down: Vec<Vec<usize>>,
}

pub(super) fn run(session: &Session, args: &Deps) -> Done {
    if args.asking.forget {
        return forget(session, args);
    }
    let Some(agent) = &args.asking.agent else {
        let project = session.project()?;
        let found = args.source.read_or_draft(session, &project, "git proq deps plan.toml")?;
        show(session, args, &Web::of(&found, true));
        return Ok(Exit::Done);
    };
    let project = session.project_to_change()?;
    let asked = (&args.source, &args.asking);
    let (found, approved) = missing::find(session, &project, asked, agent)?;
    let is_open = !approved && !found.proposed.is_empty();
    if session.ui.json {
        if is_open && args.asking.yes {
            missing::agree(session, &project, asked, agent)?;
        }
        let approved = approved || args.asking.yes;
        show(session, args, &Web::of(&found, approved));
        // Whether it is used stands in the answer, too.
        return Ok(if is_open && !approved { Exit::Refused } else { Exit::Done });
    }
    if !args.dot {
        let head = if found.proposed.is_empty() { "nothing is missing" } else { "Missing:" };
        session.ui.answer(head);
        for line in missing::list(&found) {
            session.ui.answer(format!("  {line}"));
        }
        session.ui.answer("");
    }
    show(session, args, &Web::of(&found, approved));
    if is_open {
        missing::agree(session, &project, asked, agent)?;
    }
    Ok(Exit::Done)
}

fn show(session: &Session, args: &Deps, web: &Web<'_>) {
    if session.ui.json {
        session.ui.long_object(web.answer());
    } else if args.dot {
        session.ui.answer(web.dot());
    } else {
        session.ui.answer(web.tree());
    }
}

/// Forgets what an agent found missing.
fn forget(session: &Session, args: &Deps) -> Done {
    let project = session.project_to_change()?;
    let found = args.source.read_as_it_stands(session, &project, "git proq deps --forget plan.toml")?;
    let forgotten = swarm::planner::forget(&project, &found.plan)?;
    if session.ui.json {
        session.ui.object(serde_json::json!({ "forgotten": forgotten }));
    } else {
        let said =
            if forgotten { "forgot what an agent found missing" } else { "there was nothing to forget" };
        session.ui.answer(said);
    }
    Ok(Exit::Done)
}

/// In the place of a task: what is left out below another.
const MORE: usize = usize::MAX;

/// How many tasks below one are shown again that were shown above.
const AGAIN: usize = 3;

/// How many others a task comes after are named in its line.
const OTHERS: usize = 8;

/// How far a line is moved in, in bytes; what is deeper is not moved in further.
const DEEPEST: usize = 120;

impl<'f> Web<'f> {
    fn of(found: &'f Found, approved: bool) -> Web<'f> {
        let spots: Vec<Spot<'f>> = found.plan.spots().collect();
        let mut up: Vec<Vec<(usize, Why)>> = Vec::new();
        let mut down = vec![Vec::new(); spots.len()];
        for (at, spot) in spots.iter().enumerate() {
            let by_agent =
                |need: usize| found.proposed.iter().any(|edge| (edge.task, edge.need) == (at, need));
            let why = |need: usize| if by_agent(need) { Why::Agent } else { Why::Needs };
            let mut above: Vec<(usize, Why)> =
                found.graph.needs(at).iter().map(|need| (*need, why(*need))).collect();
            let before = at
                .checked_sub(1)
                .filter(|before| spot.order == Order::Serial && spots[*before].phase == spot.phase);
            above.extend(before.filter(|b| !found.graph.needs(at).contains(b)).map(|b| (b, Why::Order)));
            for (need, _) in &above {
                down[*need].push(at);
            }
            up.push(above);
        }
        Web { found, approved, spots, up, down }
    }

    fn name(&self, task: usize) -> String {
        self.spots[task].task.name()
    }

    fn answer(&self) -> Answer {
        let row = |spot: &Spot<'_>| Row {
            name: spot.task.name(),
            title: spot.task.title.clone(),
            phase: spot.phase + 1,
            done: spot.task.done,
        };
        let edges = self
            .up
            .iter()
            .enumerate()
            .flat_map(|(at, above)| above.iter().map(move |(need, why)| self.edge(at, *need, *why)));
        Answer { tasks: self.spots.iter().map(row).collect(), edges: edges.collect() }
    }

    fn edge(&self, task: usize, need: usize, why: Why) -> Edge {
        let proposed = self.proposed(task, need);
        Edge {
            task: self.name(task),
            needs: self.name(need),
            why,
            agent: proposed.map(|edge| edge.agent.clone()),
            because: proposed.map(|edge| edge.because.clone()).filter(|because| !because.is_empty()),
            approved: proposed.map(|_| self.approved),
        }
    }

    /// What an agent found missing between two tasks.
    fn proposed(&self, task: usize, need: usize) -> Option<&Proposed> {
        self.found.proposed.iter().find(|edge| (edge.task, edge.need) == (task, need))
    }

    /// The task below which each is shown first, in the order of the tree.
    fn first_above(&self) -> Vec<Option<usize>> {
        let mut first = vec![None; self.spots.len()];
        let mut seen = vec![false; self.spots.len()];
        let roots = (0..self.spots.len()).filter(|task| self.up[*task].is_empty());
        let mut left: Vec<(usize, Option<usize>)> = roots.map(|root| (root, None)).collect();
        left.reverse();
        while let Some((task, above)) = left.pop() {
            if !std::mem::replace(&mut seen[task], true) {
                first[task] = above;
                left.extend(self.down[task].iter().rev().map(|next| (*next, Some(task))));
            }
        }
        first
    }

    /// Without recursion: a chain may be as long as the plan.
    fn tree(&self) -> String {
        let mut out = String::new();
        let mut told = vec![false; self.spots.len()];
        let first = self.first_above();
        let roots = (0..self.spots.len()).filter(|task| self.up[*task].is_empty());
        let mut left: Vec<(usize, Option<usize>, String, bool)> = Vec::new();
        left.extend(roots.map(|root| (root, None, String::new(), true)));
        left.reverse();
        while let Some((task, above, indent, is_last)) = left.pop() {
            if task == MORE {
                let _ = writeln!(out, "{indent}└─ … and more that are shown above");
                continue;
            }
            let (branch, more) = match (above, is_last) {
                (None, _) => ("", ""),
                (Some(_), true) => ("└─ ", "   "),
                (Some(_), false) => ("├─ ", "│  "),
            };
            let _ = writeln!(out, "{indent}{branch}{}", self.line(task, above, told[task]));
            if std::mem::replace(&mut told[task], true) {
                continue;
            }
            // Those that are shown elsewhere with all below them are a line each, as long as they are few.
            let mut again = 0;
            let mut few = |next: &usize| {
                let is_first = first[*next] == Some(task);
                again += usize::from(!is_first);
                is_first || again <= AGAIN
            };
            let below: Vec<usize> = self.down[task].iter().copied().filter(|next| few(next)).collect();
            let is_cut = below.len() < self.down[task].len();
            let indent = if indent.len() < DEEPEST { format!("{indent}{more}") } else { indent };
            left.extend(is_cut.then(|| (MORE, Some(task), indent.clone(), true)));
            for (n, next) in below.iter().enumerate().rev() {
                left.push((*next, Some(task), indent.clone(), !is_cut && n + 1 == below.len()));
            }
        }
        out.trim_end().to_owned()
    }

    /// A task in a line of the tree.
    fn line(&self, task: usize, above: Option<usize>, is_told: bool) -> String {
        let spot = &self.spots[task];
        let mut notes = Vec::new();
        if spot.task.done {
            notes.push("done".to_owned());
        }
        let others: Vec<String> = self.up[task]
            .iter()
            .filter(|(need, _)| Some(*need) != above)
            .map(|(need, why)| match why {
                Why::Agent => format!("{}*", self.name(*need)),
                Why::Needs | Why::Order => self.name(*need),
            })
            .collect();
        if let Some(edge) = above.and_then(|above| self.proposed(task, above)) {
            let used = if self.approved { "" } else { ", not used" };
            notes.push(format!("* says {}{used}", harmless::line(&edge.agent)));
        }
        if !others.is_empty() {
            let more = others.len().saturating_sub(OTHERS);
            let more = if more == 0 { String::new() } else { format!(" and {more} more") };
            notes.push(format!("also after {}{more}", others[..others.len().min(OTHERS)].join(", ")));
        }
        if is_told && !self.down[task].is_empty() {
            notes.push(format!("{} below it, see above", ui::count(self.down[task].len(), "task")));
        }
        let notes = if notes.is_empty() { String::new() } else { format!(" ({})", notes.join("; ")) };
        let title = harmless::line(&spot.task.title);
        format!("{} {title}{}", style(spot.task.name()).bold(), style(notes).dim())
    }

    fn dot(&self) -> String {
        let mut out = "digraph plan {\n  rankdir=LR;\n  node [shape=box];\n".to_owned();
        for spot in &self.spots {
            let label = format!("{}\n{}", spot.task.name(), harmless::line(&spot.task.title));
            let done = if spot.task.done { ", style=dashed" } else { "" };
            let _ = writeln!(out, "  {} [label={}{done}];", quoted(&spot.task.name()), quoted(&label));
        }
        for edge in self.answer().edges {
            let order = match edge.why {
                Why::Order => " [style=dotted]",
                Why::Agent => " [style=dashed]",
                Why::Needs => "",
            };
            let _ = writeln!(out, "  {} -> {}{order};", quoted(&edge.needs), quoted(&edge.task));
        }
        out.push('}');
        out
    }
}

/// A string of Graphviz, in which a backslash means something.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
}

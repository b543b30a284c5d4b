//! Owns `git proq list`, and what `git proq` alone shows.

mod paint;
mod table;
mod unlanded;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use serde::Serialize;

use paint::Paint;
use table::{Rows, title};
pub(super) use unlanded::tell as tell_unlanded;

use super::conflicts::Conflicts;
use super::{Done, Session, account, everywhere, ui};
use crate::agent::{self, PacketShown};
use crate::explain::{Exit, quoted_path};
use crate::git::{Dirt, Missing, WorktreeList};
use crate::lane::{self, Misplaced, Partly, Project, View};
use crate::merge::{self, Ask, Forecast};
use crate::preview::{self, Showing};
use crate::store::path_form;
use crate::store::records::{Account, AnyLane, InBatch, LaneRecord, LaneState, Purpose};
use crate::swarm::{self, Unlanded};

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

/// How long a list may take to find out which lanes conflict. What is not known by then is left blank.
const PATIENCE: Duration = Duration::from_millis(150);

/// One lane, for programs.
#[derive(Serialize)]
struct Row {
    name: String,
    title: String,
    state: LaneState,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
    /// What it is for, where it has nothing to land.
    #[serde(skip_serializing_if = "Option::is_none")]
    mode: Option<Purpose>,
    #[serde(skip_serializing_if = "Option::is_none")]
    branch: Option<String>,
    #[serde(with = "path_form")]
    path: PathBuf,
    base: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<String>,
    /// Its place in a batch.
    #[serde(skip_serializing_if = "Option::is_none")]
    batch: Option<InBatch>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tip: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ahead: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    behind: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    uncommitted: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    conflicts: Option<Conflicts>,
    /// What its last run used, when that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    account: Option<Account>,
    /// How far its task is, where that is a folder with steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    task: Option<PacketShown>,
    /// How many messages wait to be told to its agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    waiting: Option<usize>,
    previewed: bool,
    missing: Vec<&'static str>,
    /// Why its worktree is broken.
    #[serde(skip_serializing_if = "Option::is_none")]
    broken: Option<&'static str>,
    created: String,
    updated: String,
}

#[derive(Serialize)]
struct Answer {
    lanes: Vec<Row>,
    #[serde(skip_serializing_if = "Option::is_none")]
    preview: Option<String>,
    unrecorded: Vec<String>,
    /// Batches that nobody runs now, with work that has not landed on their bases.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unlanded_batches: Vec<String>,
}

/// Everything a list shows.
struct Board {
    views: Vec<View>,
    beside: Beside,
    strays: Vec<PathBuf>,
    /// Batches that nobody runs now and whose branches have what their bases lack.
    unlanded: Vec<Unlanded>,
    /// None when it could not be made.
    forecast: Option<Forecast>,
}

/// What a list shows that is known at once.
struct Beside {
    past: Vec<(String, AnyLane)>,
    showing: Option<Showing>,
    /// What the lanes' last runs used, by name; none when nobody asked.
    accounts: Option<BTreeMap<String, Account>>,
    /// How far the tasks are that are folders with steps, by lane.
    tasks: BTreeMap<String, PacketShown>,
}

pub(super) fn run(session: &Session, args: &List) -> Done {
    if args.everywhere {
        return everywhere::run(session, args.all);
    }
    let project = session.project()?;
    let board = look(&project, args.all, args.wide, Paint::on_terminal(session.ui))?;
    if session.ui.json {
        session.ui.object(answer(&board));
        return Ok(Exit::Done);
    }
    if board.views.is_empty() && board.beside.past.is_empty() {
        let layout = project.store.layout();
        // Of a record that cannot be read a warning was given.
        let is_empty = !layout.names_in("lanes").iter().any(|name| layout.has_lane_record(name));
        if is_empty {
            session.ui.say("no lanes yet");
        }
        if is_empty && board.unlanded.is_empty() {
            session.ui.hint("git proq spawn claude \"what to do\"");
        }
    } else {
        session.ui.answer(render(&board));
    }
    remarks(session, &project, &board);
    Ok(Exit::Done)
}

/// What a list of a repository says to programs.
pub(super) fn answer_of(project: &Project, all: bool) -> Result<serde_json::Value, super::Failure> {
    Ok(serde_json::to_value(answer(&look(project, all, false, None)?)).unwrap_or_default())
}

/// A list of a repository as a person reads it; none without a lane.
pub(super) fn table_of(project: &Project, all: bool) -> Result<Option<String>, super::Failure> {
    let board = look(project, all, false, None)?;
    let is_empty = board.views.is_empty() && board.beside.past.is_empty();
    Ok((!is_empty).then(|| render(&board)))
}

/// Each lane in a line for an agent to read, by name.
pub(super) fn briefs(project: &Project) -> Result<Vec<(String, String)>, super::Failure> {
    let board = look(project, false, false, None)?;
    let brief = |view: &View| {
        let View { lane, state, detail, distance, dirt, waiting, .. } = view;
        let mut parts = vec![state.to_string()];
        parts.extend(detail.clone());
        parts.extend(lane.agent.as_ref().map(|agent| format!("agent {agent}")));
        parts.extend(
            lane.purpose().map(|purpose| format!("{}, nothing to land", lane::with_article(purpose))),
        );
        parts.extend(distance.map(|d| format!("{} ahead of {}, {} behind", d.ahead, lane.base, d.behind)));
        let dirty = dirt.as_ref().map_or(0, |dirt| dirt.entries.len());
        parts.extend((dirty > 0).then(|| format!("{} uncommitted", ui::count(dirty, "file"))));
        parts.extend((*waiting > 0).then(|| format!("{} to tell", ui::count(*waiting, "message"))));
        if let Some(found) = Conflicts::of(board.forecast.as_ref(), &lane.name) {
            parts.extend((found.base == Some(true)).then(|| format!("conflicts with {}", lane.base)));
            parts.extend(
                (!found.lanes.is_empty()).then(|| format!("conflicts with {}", found.lanes.join(", "))),
            );
        }
        let title = title(lane);
        let title = if title.is_empty() { title } else { format!(" \"{title}\"") };
        (lane.name.clone(), format!("{}{title}: {}", lane.name, parts.join(", ")))
    };
    Ok(board.views.iter().map(brief).collect())
}

/// `git proq` alone: the lanes, and what can be done next.
pub(super) fn overview(session: &Session) -> Done {
    let project = session.project()?;
    let board = look(&project, false, false, Paint::on_terminal(session.ui))?;
    if session.ui.json {
        session.ui.object(answer(&board));
        return Ok(Exit::Done);
    }
    if board.views.is_empty() && !board.unlanded.is_empty() {
        remarks(session, &project, &board);
        return Ok(Exit::Done);
    }
    if board.views.is_empty() {
        session.ui.answer("No lanes yet. A lane is a branch and a worktree for one agent.");
        session.ui.answer("");
        session
            .ui
            .answer("  git proq spawn claude \"implement payments\"   start an agent in a lane of its own");
        session.ui.answer("  git proq spawn -n try -- make test           or any command");
        session.ui.answer("  git proq demo                                take the tour");
        session.ui.answer("  git proq -h                                  see every command");
        return Ok(Exit::Done);
    }
    session.ui.answer(render(&board));
    remarks(session, &project, &board);
    for line in next_steps(&project, &board) {
        session.ui.hint(line);
    }
    Ok(Exit::Done)
}

/// Looks at everything. What is known so far is painted, where that is wanted.
fn look(project: &Project, all: bool, wide: bool, paint: Option<Paint>) -> Result<Board, super::Failure> {
    let mut lanes = project.every_lane()?;
    lanes.sort_by_cached_key(lane::in_groups);
    let own: Vec<LaneRecord> = lanes.iter().filter_map(|lane| lane.clone().with_tree().ok()).collect();
    let strays = lane::stray_worktrees(project, &own, &WorktreeList::read(&project.repo)?)?;
    let layout = project.store.layout();
    let accounts =
        |lane: &AnyLane| Some((lane.name.clone(), account::of_lane(&layout.lane(&lane.name), lane.attempt)?));
    let task = |lane: &AnyLane| {
        let shown = agent::shown_packet(&layout.lane(&lane.name), lane);
        Some((lane.name.clone(), shown.ok().flatten()?))
    };
    let beside = Beside {
        tasks: lanes.iter().filter_map(task).collect(),
        accounts: wide.then(|| lanes.iter().filter_map(accounts).collect()),
        past: if all { project.every_past_lane() } else { Vec::new() },
        showing: preview::showing(project)?,
    };
    let mut paint = paint;
    let mut tell = |known: &Partly<'_, Option<Forecast>>| {
        if let Some(paint) = &mut paint {
            let forecast = known.other.and_then(Option::as_ref);
            let (views, compared, looked) = (known.views, known.compared, Some(known.looked));
            paint.tell(|| table::lines(&Rows { views, beside: &beside, forecast, compared, looked }));
        }
    };
    // A list without it is a list still.
    let ask = Ask { lanes: own, uncommitted: false, within: Some(PATIENCE), about: None };
    let (views, forecast) =
        lane::views_while(project, lanes, &mut tell, || merge::forecast(project, ask).ok())?;
    if !views.is_empty() {
        lane::have_commit_graph(project);
    }
    let unlanded = swarm::unlanded(project);
    Ok(Board { views, beside, strays, unlanded, forecast })
}

/// The table of all that was found out.
fn render(board: &Board) -> String {
    let Board { views, beside, forecast, .. } = board;
    let (compared, forecast) = (views.len(), forecast.as_ref());
    table::lines(&Rows { views, beside, forecast, compared, looked: None }).join("\n")
}

fn missing(view: &View) -> Vec<&'static str> {
    let mut out = Vec::new();
    if view.folder_gone {
        out.push("worktree");
    }
    if view.tip.is_none() && view.lane.branch().is_some() {
        out.push("branch");
    }
    out
}

fn is_shown(beside: &Beside, name: &str) -> bool {
    beside.showing.as_ref().is_some_and(|s| s.shown && s.lane == name)
}

fn answer(board: &Board) -> Answer {
    let mut lanes: Vec<Row> = board.views.iter().map(|view| row(board, view)).collect();
    for (name, lane) in &board.beside.past {
        lanes.push(Row { name: name.clone(), ..bare_row(lane) });
    }
    Answer {
        lanes,
        preview: board.beside.showing.as_ref().map(|s| s.lane.clone()),
        unrecorded: board.strays.iter().map(|p| path_form::text(p)).collect(),
        unlanded_batches: board.unlanded.iter().map(|open| open.batch.id.clone()).collect(),
    }
}

fn row(board: &Board, view: &View) -> Row {
    Row {
        state: view.state,
        detail: view.detail.clone(),
        tip: view.tip.map(|t| t.to_string()),
        ahead: view.distance.map(|d| d.ahead),
        behind: view.distance.map(|d| d.behind),
        uncommitted: view.dirt.as_ref().map(|d| d.entries.len()),
        conflicts: Conflicts::of(board.forecast.as_ref(), &view.lane.name),
        waiting: Some(view.waiting).filter(|n| *n > 0),
        task: board.beside.tasks.get(&view.lane.name).cloned(),
        account: board.beside.accounts.as_ref().and_then(|all| all.get(&view.lane.name)).cloned(),
        previewed: is_shown(&board.beside, &view.lane.name),
        missing: missing(view),
        broken: view.broken.map(Missing::in_words),
        ..bare_row(&view.lane)
    }
}

fn bare_row(lane: &AnyLane) -> Row {
    Row {
        name: lane.name.clone(),
        title: lane.title.clone(),
        state: lane.state,
        detail: lane.detail.clone(),
        mode: lane.purpose(),
        branch: lane.branch().map(str::to_owned),
        path: lane.path.clone(),
        base: lane.base.clone(),
        agent: lane.agent.clone(),
        group: lane.group.clone(),
        batch: lane.batch.clone(),
        tip: None,
        ahead: None,
        behind: None,
        uncommitted: None,
        conflicts: None,
        account: None,
        task: None,
        waiting: None,
        previewed: false,
        missing: Vec::new(),
        broken: None,
        created: lane.created.to_string(),
        updated: lane.updated.to_string(),
    }
}

/// What a table cannot say: the open preview, lanes that lost something, leftovers of a crash.
fn remarks(session: &Session, project: &Project, board: &Board) {
    if let Some(showing) = &board.beside.showing {
        let waiting = if showing.waiting { "; your own changes wait" } else { "" };
        if showing.shown {
            session
                .ui
                .say(format!("the main checkout shows '{}'{waiting}: git proq preview --back", showing.lane));
        } else {
            session.ui.warn(format!(
                "the preview of '{}' was left by hand{waiting}: git proq preview --back",
                showing.lane
            ));
        }
    }
    for view in board.views.iter().filter(|v| v.waiting > 0 && !v.state.is_busy()) {
        session.ui.say(lane::messages_wait(&view.lane.name, view.waiting));
    }
    lost(session, project, board);
    tell_unlanded(session, project, &board.unlanded);
    for path in &board.strays {
        let path = path.strip_prefix(project.repo.home()).unwrap_or(path);
        session.ui.warn(format!("{} belongs to no lane on record: git proq cleanup", path.display()));
    }
}

/// Warns of lanes whose branch or folder is gone or in another place, each with the command that helps.
fn lost(session: &Session, project: &Project, board: &Board) {
    let found = board.views.iter().filter_map(|view| view.lane.clone().with_tree().ok());
    let found = found.filter_map(|lane| lane::misplaced(project, &lane).map(|found| (lane, found)));
    let misplaced: Vec<(LaneRecord, Misplaced)> = found.collect();
    for (lane, found) in &misplaced {
        let help = found.help(project, lane).map(|command| format!(": {command}")).unwrap_or_default();
        session.ui.warn(format!("lane '{}': {}{help}", lane.name, found.in_words(lane)));
    }
    let in_place = |view: &&View| misplaced.iter().all(|(lane, _)| lane.name != view.lane.name);
    for view in board.views.iter().filter(in_place).filter(|v| !missing(v).is_empty()) {
        let (name, what) = (&view.lane.name, missing(view).join(" and no "));
        let Ok(lane) = view.lane.clone().with_tree() else { continue };
        let has_work = view.tip.is_some() && view.distance.is_none_or(|distance| distance.ahead > 0);
        // Cleanup keeps what is not on the base; its commits are there, so a new folder makes the lane whole.
        let branch = &lane.place.branch;
        let is_lost = lane::lost_commit(project, &lane).ok().flatten().is_some();
        let again = lane::branch_again(project, &lane).filter(|_| view.tip.is_none() && is_lost);
        let back = lane::way_back_to_folder(project, &lane);
        let help = match again {
            _ if back.is_some() => back.unwrap_or_default(),
            _ if has_work => format!("git worktree add -f {} {branch}", quoted_path(&lane.path)),
            Some(again) => again,
            None => lane::command_to_remove(project, &lane),
        };
        session.ui.warn(format!("lane '{name}' has no {what} any more: {help}"));
    }
    for view in &board.views {
        let Some((missing, branch)) = view.broken.zip(view.lane.branch()) else { continue };
        let repair = missing.repair(&project.repo, &view.lane.path, branch);
        session.ui.warn(format!("lane '{}': {}: {repair}", view.lane.name, missing.in_words()));
    }
}

/// Whether a landing of all lanes is known to land these and no others: all that they have is committed, none conflicts with its base
/// or with another of them, and nothing else is in the way.
fn all_land(project: &Project, board: &Board, lanes: &[&str]) -> bool {
    let may_land = |view: &View| {
        let is_ready = matches!(view.state, LaneState::Idle | LaneState::Conflict | LaneState::CheckFailed);
        is_ready && view.distance.is_some_and(|distance| distance.ahead > 0)
    };
    if board.views.iter().any(may_land) {
        return false;
    }
    let all_ready = lanes.iter().all(|name| {
        let view = board.views.iter().find(|view| view.lane.name == **name);
        let ready = view.is_some_and(|view| {
            view.dirt.as_ref().is_some_and(Dirt::is_clean)
                && view.distance.is_some_and(|distance| distance.ahead > 0)
                && view.lane.batch.is_none()
        });
        let found = Conflicts::of(board.forecast.as_ref(), name);
        ready && found.is_some_and(|found| found.get_along(lanes))
    });
    let records = || -> Vec<LaneRecord> {
        let named = board.views.iter().filter(|view| lanes.contains(&view.lane.name.as_str()));
        named.filter_map(|view| view.lane.clone().with_tree().ok()).collect()
    };
    all_ready && merge::is_sure_to_land(project, &records())
}

fn next_steps(project: &Project, board: &Board) -> Vec<String> {
    let named = |wanted: &[LaneState]| -> Vec<&str> {
        let fits = |v: &&View| wanted.contains(&v.state) && missing(v).is_empty() && v.broken.is_none();
        board.views.iter().filter(fits).map(|v| v.lane.name.as_str()).collect()
    };
    let mut out = Vec::new();
    if let Some(first) = named(&[LaneState::Running, LaneState::Starting]).first() {
        out.push(format!("git proq logs -f {first} follows an agent at work"));
    }
    let is_rival = |v: &&View| {
        v.lane.group.is_some()
            && board.views.iter().filter(|other| other.lane.group == v.lane.group).count() > 1
    };
    let rivals: Vec<&View> = board.views.iter().filter(is_rival).collect();
    let said = |v: &&View| v.state == LaneState::Done && v.lane.only_looks();
    if let Some(view) = board.views.iter().find(said) {
        out.push(format!("git proq show {} prints what it came to", view.lane.name));
    }
    let lands = |name: &&str| board.views.iter().any(|v| v.lane.name == **name && v.lane.branch().is_some());
    let mut done = named(&[LaneState::Done]);
    done.retain(|name| rivals.iter().all(|v| v.lane.name != *name) && lands(name));
    if let Some(first) = done.first() {
        out.push(format!("git proq preview {first} shows it in your checkout"));
        let count = ui::count(done.len(), "lane");
        let are = if done.len() == 1 { "is" } else { "are" };
        out.push(match all_land(project, board, &done) {
            true => format!("git proq merge --all lands {count}"),
            false => format!("{count} {are} done: git proq merge --all --dry-run shows what would land"),
        });
    }
    let over = |v: &&&View| !v.state.is_busy();
    if let Some(group) = rivals.iter().find(over).and_then(|v| v.lane.group.as_ref()) {
        out.push(format!("git proq compare {group} shows attempts side by side"));
    }
    let wrong = [
        LaneState::Failed,
        LaneState::Stalled,
        LaneState::Conflict,
        LaneState::CheckFailed,
        LaneState::Orphaned,
    ];
    if let Some(first) = named(&wrong).first() {
        out.push(format!("git proq show {first} tells what went wrong"));
    }
    if !named(&[LaneState::Landed]).is_empty() {
        out.push("git proq cleanup tidies up what landed".to_owned());
    }
    out
}

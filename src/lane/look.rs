//! Owns lanes that only look: making one, which takes a record and nothing in the repository, and letting it go.

use std::path::{Path, PathBuf};

use super::apart::close_apart;
use super::create::{choose_name, hold_name, title_of};
use super::in_place::refuse_in_place;
use super::remove::file_away;
use super::{Error, Name, Operation, Project, Why, effective_state, ports};
use crate::event;
use crate::fault;
use crate::git::{Oid, WorktreeList};
use crate::store::records::{AnyLane, LaneRecord, LaneState, Look, Place, Purpose};
use crate::store::{Guard, LockName, Record, make_private, rename_new, sync_dir, write_atomically};

/// What a lane that only looks is asked for with.
#[derive(Debug, Clone)]
pub(crate) struct NewLook<'a> {
    /// Its name; made from the prompt when none is given.
    pub(crate) name: Option<Name>,
    /// What its agent will be asked.
    pub(crate) prompt: &'a str,
    /// The agent.
    pub(crate) agent: String,
    /// What it is for.
    pub(crate) purpose: Purpose,
    /// Where it looks.
    pub(crate) place: Where<'a>,
}

/// Where somebody looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Where<'a> {
    /// In the main checkout, as it is.
    Main,
    /// In a worktree of its own, at the commit of this name, or at what is checked out where the user stands.
    Apart(Option<&'a str>),
}

/// What is looked at, as it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct View {
    /// The top of the worktree.
    pub(crate) dir: PathBuf,
    /// The branch that is checked out there; `HEAD` where there is none.
    pub(crate) at: String,
    /// The commit.
    pub(crate) start: Oid,
}

/// What will be made.
#[derive(Debug, Clone)]
pub(crate) struct LookPlan<'a> {
    /// Its name, free when this was planned.
    pub(crate) name: Name,
    /// What it looks at.
    pub(crate) view: View,
    asked: NewLook<'a>,
}

/// What there is to look at in the main checkout.
fn main_view(project: &Project) -> Result<View, Error> {
    let repo = &project.repo;
    let dir = repo.require_main()?.to_owned();
    let worktrees = WorktreeList::read(repo)?;
    let branch = worktrees.at(&dir).and_then(|worktree| worktree.branch_behind().cloned());
    let at = shown(project, branch);
    let start = repo.head_of(&dir)?.ok_or_else(|| Error::Unborn { branch: at.clone() })?;
    Ok(View { dir, at, start })
}

/// What there is to look at by this name, or else where the user stands, in a worktree of its own at `dir`.
fn view_apart(project: &Project, dir: PathBuf, rev: Option<&str>) -> Result<View, Error> {
    let repo = &project.repo;
    if let Some(rev) = rev {
        return Ok(View { dir, at: rev.to_owned(), start: repo.require_commit(rev)? });
    }
    let at = shown(project, repo.head_name()?);
    let head = match repo.here() {
        Some(here) => repo.head_of(here)?,
        None => repo.require_commit("HEAD").ok(),
    };
    let start = head.ok_or_else(|| Error::Unborn { branch: at.clone() })?;
    Ok(View { dir, at, start })
}

/// What is checked out, as it is shown. The branch of a preview is hidden everywhere: what it shows is the lane's.
fn shown(project: &Project, branch: Option<String>) -> String {
    match branch {
        None => "HEAD".to_owned(),
        Some(name) => match name.strip_suffix("-preview") {
            Some(branch) if project.is_own_branch(&name) => branch.to_owned(),
            _ => name,
        },
    }
}

/// What a lane that only looks would look at today.
///
/// # Errors
/// When what it looked at is gone.
pub(crate) fn today(project: &Project, lane: &AnyLane) -> Result<View, Error> {
    match lane.looks_apart() {
        true => view_apart(project, lane.path.clone(), Some(&lane.base)),
        false => main_view(project),
    }
}

/// Checks what is asked for and chooses the name, without making anything.
///
/// # Errors
/// When there is nothing to look at, or the name is taken.
pub(crate) fn plan_look<'a>(project: &Project, asked: NewLook<'a>) -> Result<LookPlan<'a>, Error> {
    let name = choose_name(project, asked.name.as_ref(), asked.prompt)?;
    let in_place = asked.purpose == Purpose::InPlace;
    let view = match asked.place {
        Where::Apart(rev) => view_apart(project, project.look_dir(name.as_str()), rev)?,
        Where::Main => main_view(project)?,
    };
    if in_place {
        refuse_in_place(project, name.as_str(), &view.at)?;
    }
    Ok(LookPlan { name, view, asked })
}

/// Makes it, with copies of `files` for its agent to read. It is there as a whole or not at all. Nothing of it is an operation
/// that could be undone: nothing in the repository changes.
///
/// # Errors
/// When the name is taken by now, a file cannot be read, or a hook says no.
pub(crate) fn create_look(
    project: &Project,
    plan: &LookPlan<'_>,
    files: &[PathBuf],
) -> Result<(AnyLane, Guard), Error> {
    project.ask_to_spawn(plan.name.as_str(), &plan.view.at)?;
    let layout = project.store.layout();
    make_private(&layout.lanes())?;
    let asked = &plan.asked;
    let (name, lock) = hold_name(project, &plan.name, asked.name.as_ref(), asked.prompt)?;
    let lane = record(project, &name, plan);
    let scratch = layout.scratch()?;
    let draft = scratch.path().join("lane");
    make_private(&draft)?;
    write_atomically(&draft.join("task.md"), asked.prompt.as_bytes())?;
    super::attach::copy_into(&draft.join("attachments"), files)?;
    lane.save(&draft.join("lane.toml"))?;
    fault::point("look.drafted");
    let place = layout.lane(name.as_str());
    rename_new(&draft, &place).map_err(Error::io("make", &place))?;
    sync_dir(&layout.lanes())?;
    let message = format!("lane '{name}' made for {}", with_article(asked.purpose));
    project.tell(event::Name::LaneCreated, Some(&lane), message);
    Ok((lane, lock))
}

fn record(project: &Project, name: &Name, plan: &LookPlan<'_>) -> AnyLane {
    let asked = &plan.asked;
    let apart = matches!(asked.place, Where::Apart(_));
    let path = if apart { project.look_dir(name.as_str()) } else { plan.view.dir.clone() };
    let place = Place::Look(Look { purpose: asked.purpose, apart });
    let lane = LaneRecord::new(name.as_str(), place, path, plan.view.at.clone(), plan.view.start);
    let title = title_of(asked.prompt).unwrap_or_else(|| name.to_string());
    let port = ports::choose(project, name.as_str());
    LaneRecord { title, agent: Some(asked.agent.clone()), port, ..lane }
}

/// What it is, in a sentence.
pub(crate) fn with_article(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Plan => "a plan",
        Purpose::Answer => "an answer",
        Purpose::InPlace => "work in the main checkout",
    }
}

/// Lets one go. What was asked and said stays in the history, by the name that is returned.
///
/// # Errors
/// [`Error::Kept`] while its agent runs. Then nothing was changed.
pub(crate) fn remove_look(op: &Operation<'_>, lane: &AnyLane, why: Why) -> Result<String, Error> {
    let project = op.project;
    refuse_busy(project, lane)?;
    op.hold(project.store.locks().take(&LockName::Run(lane.name.clone()))?);
    if project.store.locks().is_held(&LockName::Alive(lane.name.clone()))? {
        refuse_busy(project, lane)?;
    }
    // With its lock in these hands, a run that nobody ended would seem to go on.
    let lane = project.settle_dead(project.any_lane(&lane.name)?)?;
    if lane.looks_apart() {
        close_apart(project, &lane)?;
    }
    let past = file_away(op, &lane, why)?;
    let done = if why == Why::Discard { "discarded" } else { "cleaned up" };
    op.tell(event::Name::LaneRemoved, Some(&lane), format!("lane '{}' {done}", lane.name));
    Ok(past)
}

/// Takes one away that has not had a run yet, as if it had never been made.
///
/// # Errors
/// When somebody else has it by now, or its records cannot be removed.
pub(crate) fn forget_look(project: &Project, lane: &AnyLane) -> Result<(), Error> {
    let layout = project.store.layout();
    let _run = project.store.locks().take(&LockName::Run(lane.name.clone()))?;
    let now = AnyLane::find(&layout.lane_record(&lane.name))?;
    if now.is_none_or(|now| !now.is_same_lane(lane) || now.attempt > 0) {
        return Ok(());
    }
    project.tell(event::Name::LaneRemoved, Some(lane), format!("lane '{}' could not begin", lane.name));
    Ok(layout.take_away(&layout.lane(&lane.name))?.finish()?)
}

/// Refuses one whose agent runs: nothing else can be lost of it.
///
/// # Errors
/// [`Error::Kept`].
pub(crate) fn refuse_busy(project: &Project, lane: &AnyLane) -> Result<(), Error> {
    let why = match effective_state(project, lane)?.0 {
        LaneState::Orphaned => "its agent lives on without a supervisor",
        state if state.is_busy() => "its agent is running",
        _ => return Ok(()),
    };
    let (name, why) = (lane.name.clone(), vec![why.to_owned()]);
    Err(Error::Kept { name, why, busy: true, force_helps: true, help: None })
}

/// The last answer in a lane's folder of records, with the number of its run.
///
/// # Errors
/// When it is there and cannot be read.
pub(crate) fn last_answer(dir: &Path, lane: &AnyLane) -> Result<Option<(u32, String)>, Error> {
    for run in (1..=lane.attempt).rev() {
        if let Some(text) = answer_of(dir, run)? {
            return Ok(Some((run, text)));
        }
    }
    Ok(None)
}

/// The answer of one run.
///
/// # Errors
/// As [`last_answer`].
pub(crate) fn answer_of(dir: &Path, run: u32) -> Result<Option<String>, Error> {
    let file = dir.join(crate::store::Layout::run_answer_in_lane(run));
    match crate::regular_file::record(&file) {
        Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(Error::io("read", &file)(e)),
    }
}

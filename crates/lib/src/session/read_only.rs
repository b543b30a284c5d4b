//! Guest lanes, which have no branch of their own: plans, answers and in-place runs. Creating one writes a
//! record and changes nothing in the repository.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use proq_base::fail_points;
use proq_base::lane_name::LaneName;
use proq_git::CommitId;
use proq_git::worktrees::worktree::WorktreeList;
use proq_store::base::atomic::{create_private_dir, rename_no_replace, sync_dir, write as write_atomically};
use proq_store::base::record::Record;
use proq_store::base::run_number::RunNumber;
use proq_store::locks::lock::{LockGuard, LockName};
use proq_store::paths::layout::Layout;
use proq_store::records::lane::{AnyLane, GuestLane, LaneKind, LanePurpose, LaneRecord};
use proq_store::records::lane_state::LaneState;

use super::in_place::require_in_place_possible;
use crate::errors::error::purpose_phrase;
use crate::event::log;
use crate::lane::creation::create::title_from_prompt;
use crate::lane::creation::free_name::{choose_name, lock_name};
use crate::lane::removal::remove_lane::{RemovalReason, move_to_history};
use crate::lane::state::lane_state::effective_state;
use crate::lane::worktree::detached_worktree::close_detached_worktree;
use crate::lane::worktree::ports;
use crate::lane::{Error, Project};
use crate::operation::journaled_operation::Operation;

/// Request for a guest lane.
#[derive(Debug, Clone)]
pub struct GuestLaneRequest<'a> {
    /// Name of the lane, or `None` to derive it from the prompt.
    pub name: Option<LaneName>,
    /// Prompt for the lane's agent.
    pub prompt: Cow<'a, str>,
    /// Agent profile.
    pub agent: String,
    /// Purpose of the lane.
    pub purpose: LanePurpose,
    /// Checkout that the agent reads.
    pub location: ReadLocation<'a>,
}

/// Checkout that a guest lane uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadLocation<'a> {
    /// The main checkout, as it is.
    MainCheckout,
    /// A separate detached worktree, at the named commit, or without a name at the HEAD of the worktree the
    /// command runs in.
    Detached(Option<&'a str>),
}

/// Worktree and commit that the agent reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadTarget {
    /// Top folder of the worktree.
    pub dir: PathBuf,
    /// Name of the revision: the branch that is checked out, `HEAD` where there is none, or the revision the
    /// user gave.
    pub rev_name: String,
    /// Commit of the revision.
    pub commit: CommitId,
}

/// Checked plan to create a guest lane.
#[derive(Debug, Clone)]
pub struct GuestLanePlan<'a> {
    /// Name of the lane, free at the time of planning.
    pub name: LaneName,
    /// Worktree and commit that the agent will read.
    pub target: ReadTarget,
    request: GuestLaneRequest<'a>,
}

/// Returns the main checkout with its current branch and commit.
fn main_checkout_target(project: &Project) -> Result<ReadTarget, Error> {
    let repo = &project.repo;
    let dir = repo.require_main()?.to_owned();
    let worktrees = WorktreeList::read(repo)?;
    let branch = worktrees.with_top_folder(&dir).and_then(|worktree| worktree.target_branch().cloned());
    let rev_name = displayed_branch(project, branch);
    let commit = repo.head_commit(&dir)?.ok_or_else(|| Error::UnbornBranch { branch: rev_name.clone() })?;
    Ok(ReadTarget { dir, rev_name, commit })
}

/// Returns a separate worktree at `dir` with the commit of `rev`, or without `rev` of the HEAD of the
/// worktree the command runs in.
fn detached_target(project: &Project, dir: PathBuf, rev: Option<&str>) -> Result<ReadTarget, Error> {
    let repo = &project.repo;
    if let Some(rev) = rev {
        return Ok(ReadTarget { dir, rev_name: rev.to_owned(), commit: repo.require_commit(rev)? });
    }
    let rev_name = displayed_branch(project, repo.current_head_name()?);
    let head = match repo.current_worktree() {
        Some(here) => repo.head_commit(here)?,
        None => repo.require_commit("HEAD").ok(),
    };
    let commit = head.ok_or_else(|| Error::UnbornBranch { branch: rev_name.clone() })?;
    Ok(ReadTarget { dir, rev_name, commit })
}

/// Returns the displayed name of the checked-out branch. A preview branch is hidden everywhere and displayed
/// as the lane's branch.
fn displayed_branch(project: &Project, branch: Option<String>) -> String {
    match branch {
        None => "HEAD".to_owned(),
        Some(name) => match name.strip_suffix("-preview") {
            Some(branch) if project.is_managed_branch(&name) => branch.to_owned(),
            _ => name,
        },
    }
}

/// Returns the worktree and the commit that the lane's agent would read if its run started now.
///
/// # Errors
/// Fails when the revision that the lane was created for no longer exists.
pub fn current_read_target(project: &Project, lane: &AnyLane) -> Result<ReadTarget, Error> {
    match lane.is_detached() {
        true => detached_target(project, lane.path.clone(), Some(&lane.base)),
        false => main_checkout_target(project),
    }
}

/// Checks a request and chooses the lane's name, without creating anything.
///
/// # Errors
/// Fails when the revision has no commit, or the name is taken.
pub fn plan_guest_lane<'a>(
    project: &Project,
    request: GuestLaneRequest<'a>,
) -> Result<GuestLanePlan<'a>, Error> {
    let name = choose_name(project, request.name.as_ref(), &request.prompt)?;
    let in_place = request.purpose == LanePurpose::InPlace;
    let target = match request.location {
        ReadLocation::Detached(rev) => detached_target(project, project.detached_dir(&name), rev)?,
        ReadLocation::MainCheckout => main_checkout_target(project)?,
    };
    if in_place {
        require_in_place_possible(project, &name, &target.rev_name)?;
    }
    Ok(GuestLanePlan { name, target, request })
}

/// Creates the planned lane, with copies of `files` for its agent to read. The lane appears atomically. Since
/// nothing in the repository changes, there is no operation to undo.
///
/// # Errors
/// Fails when the name has been taken since, a file cannot be read, or a hook refuses.
pub fn create_guest_lane(
    project: &Project,
    plan: &GuestLanePlan<'_>,
    attachments: &[PathBuf],
) -> Result<(AnyLane, LockGuard), Error> {
    project.run_pre_spawn_hooks(&plan.name, &plan.target.rev_name)?;
    let layout = project.store.layout();
    create_private_dir(&layout.lanes())?;
    let request = &plan.request;
    let (name, lock) = lock_name(project, &plan.name, request.name.as_ref(), &request.prompt)?;
    let lane = new_guest_record(project, &name, plan);
    let scratch = layout.create_scratch()?;
    let draft = Layout::scratch_lane(scratch.path());
    create_private_dir(&draft)?;
    write_atomically(&Layout::task_prompt_in(&draft), request.prompt.as_bytes())?;
    crate::lane::messages::attached_files::copy_into(&Layout::attachments_in(&draft), attachments)?;
    lane.save(&Layout::lane_record_in(&draft))?;
    fail_points::hit("look.drafted");
    let lane_dir = layout.lane(&name);
    rename_no_replace(&draft, &lane_dir).map_err(Error::io("create", &lane_dir))?;
    sync_dir(&layout.lanes())?;
    let message = format!("created lane '{name}' for {}", purpose_phrase(request.purpose));
    project.emit(log::EventName::LaneCreated, Some(&lane), message);
    Ok((lane, lock))
}

/// Returns the record of the planned guest lane under the name that it finally gets.
fn new_guest_record(project: &Project, name: &LaneName, plan: &GuestLanePlan<'_>) -> AnyLane {
    let request = &plan.request;
    let is_detached = matches!(request.location, ReadLocation::Detached(_));
    let path = if is_detached { project.detached_dir(name) } else { plan.target.dir.clone() };
    let lane_kind = LaneKind::Guest(GuestLane { purpose: request.purpose, detached: is_detached });
    let lane = LaneRecord::new(name, lane_kind, path, plan.target.rev_name.clone(), plan.target.commit);
    let title = title_from_prompt(&request.prompt).unwrap_or_else(|| name.to_string());
    let port = ports::choose_ports(project, name);
    LaneRecord { title, agent: Some(request.agent.clone()), ports: port, ..lane }
}

/// Removes a guest lane. Its prompts and answers are retained in the history, under the returned name.
///
/// # Errors
/// [`Error::RemovalRefused`] while its agent runs. Nothing was changed then.
pub fn remove_guest_lane(op: &Operation<'_>, lane: &AnyLane, reason: RemovalReason) -> Result<String, Error> {
    let project = op.project;
    require_idle_for_removal(project, lane)?;
    op.hold(project.store.locks().acquire(&LockName::Run(lane.name.clone()))?);
    if project.store.locks().is_held(&LockName::AgentAlive(lane.name.clone()))? {
        require_idle_for_removal(project, lane)?;
    }
    // This process holds the lane's run lock, which would make a crashed run appear to be running.
    let lane = project.close_crashed_run(project.any_lane(&lane.name)?)?;
    if lane.is_detached() {
        close_detached_worktree(project, &lane)?;
    }
    let past_name = move_to_history(op, &lane, reason)?;
    let verb = if reason == RemovalReason::Discard { "discarded" } else { "cleaned up" };
    op.emit(log::EventName::LaneRemoved, Some(&lane), format!("lane '{}' {verb}", lane.name));
    Ok(past_name)
}

/// Removes a lane that has not had a run yet, without a trace in the history.
///
/// # Errors
/// Fails when another process holds the lane, or its records cannot be removed.
pub fn forget_unstarted_lane(project: &Project, lane: &AnyLane) -> Result<(), Error> {
    let layout = project.store.layout();
    let _run = project.store.locks().acquire(&LockName::Run(lane.name.clone()))?;
    let current = AnyLane::load_if_exists(&layout.lane_record(&lane.name))?;
    if current.is_none_or(|now| !now.is_same_lane(lane) || now.last_run != RunNumber::NONE) {
        return Ok(());
    }
    project.emit(log::EventName::LaneRemoved, Some(lane), format!("lane '{}' could not begin", lane.name));
    Ok(layout.begin_deletion(&layout.lane(&lane.name))?.finish()?)
}

/// Refuses a lane whose agent runs. Such a lane has nothing else that could be lost.
///
/// # Errors
/// [`Error::RemovalRefused`].
pub fn require_idle_for_removal(project: &Project, lane: &AnyLane) -> Result<(), Error> {
    let reason = match effective_state(project, lane)?.0 {
        LaneState::Orphaned => "its agent is running without a supervisor",
        state if state.is_busy() => "its agent is running",
        _ => return Ok(()),
    };
    let (name, reasons) = (lane.name.clone(), vec![reason.to_owned()]);
    Err(Error::RemovalRefused { name, reasons, busy: true, force_helps: true, hint: None })
}

/// Returns the last answer in a lane's record folder `dir`, with the number of its run.
///
/// # Errors
/// Fails when an answer exists and cannot be read.
pub fn last_answer(dir: &Path, lane: &AnyLane) -> Result<Option<(RunNumber, String)>, Error> {
    for run in RunNumber::first().through(lane.last_run).rev() {
        if let Some(text) = run_answer(dir, run)? {
            return Ok(Some((run, text)));
        }
    }
    Ok(None)
}

/// Returns the last answer in a lane's record folder `dir`, with the path of the file that contains it.
///
/// # Errors
/// Fails when an answer exists and cannot be read.
pub fn last_answer_file(dir: &Path, lane: &AnyLane) -> Result<Option<(String, PathBuf)>, Error> {
    Ok(last_answer(dir, lane)?.map(|(run, text)| (text, Layout::run_answer_in(dir, run))))
}

/// Returns the answer of one run, if there is one.
///
/// # Errors
/// Fails when the answer exists and cannot be read.
pub fn run_answer(dir: &Path, run: RunNumber) -> Result<Option<String>, Error> {
    let file = Layout::run_answer_in(dir, run);
    match proq_base::regular_file::read_store_file(&file) {
        Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(Error::io("read", &file)(e)),
    }
}

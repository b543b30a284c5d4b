//! Resolution of a conflict: git merges in a separate worktree, git-proq checks the result, and it becomes
//! the lane's new tip.

use std::path::Path;

use proq_base::lane_name::LaneName;
use proq_git::base::error;
use proq_git::base::head::RefMove;
use proq_git::history::commit::NewCommit;
use proq_git::merge::tree_merge;
use proq_git::repository::objects::TempObjectStore;
use proq_git::repository::open_operation::find_open_git_operation;
use proq_git::worktrees::worktree::WorktreeList;
use proq_git::{CommitId, Repo, RepoPath, TreeId};
use proq_store::Store;
use proq_store::base::id::new_id;
use proq_store::base::record::Record;
use proq_store::locks::lock::LockGuard;
use proq_store::paths::layout::Layout;
use proq_store::records::conflict::{ConflictRecord, ResolutionRecord};
use proq_store::records::lane::LaneRecord;
use proq_store::records::lane_state::{LandingState, RunState};
use serde::Serialize;

use super::resolution_check::{ReferenceMerge, ResolutionCheck};
use crate::event::log;
use crate::lane;
use crate::lane::Project;
use crate::lane::inspection::evidence;
use crate::lane::worktree::resolve_worktree;
use crate::lane::worktree::resolve_worktree::ClosedResolution;
use crate::merge::Error;
use crate::merge::stack::conflict;
use crate::merge::types::resolve_error::{Refusal, ResolveError};
use crate::merge::types::resolver::Allowance;
use crate::operation::journaled_operation::Operation;
use crate::operation::locked_worktree::LockedWorktree;
use crate::operation::run_operation::operate;

/// Result of resolving a lane's conflict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ResolvedConflict {
    /// Name of the lane that the conflict is in.
    pub lane: LaneName,
    /// Branch that the lane lands on.
    pub onto: String,
    /// New tip of the lane; none if the conflict no longer existed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<CommitId>,
    /// Name of the agent that resolved it, `hand`, or `git`; none if the conflict no longer existed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(rename = "by")]
    pub resolver: Option<String>,
    /// Files that were in conflict.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<RepoPath>,
}

/// State of a resolution after its start.
#[derive(Debug)]
pub enum ResolutionStart {
    /// The conflict is resolved already, or no longer exists.
    Resolved(ResolvedConflict),
    /// The worktree of the resolution is open, and the conflict must be resolved there.
    Open(Box<ResolutionRecord>),
}

/// Finds the conflict of a lane: the recorded one or else that of its tip with the tip of its base. Records nothing.
///
/// # Errors
/// [`ResolveError::NoConflict`] if the lane has no conflict.
pub fn find_conflict(project: &Project, lane: &LaneRecord) -> Result<ConflictRecord, Error> {
    if let Some(record) = load_conflict(&project.store, &lane.name)? {
        return Ok(record);
    }
    let scratch = project.store.layout().create_scratch()?;
    let temp_objects = TempObjectStore::new(&project.repo, &Layout::scratch_objects(scratch.path()))?;
    merge_with_base(project, lane, scratch.path(), Some(&temp_objects))
}

/// Loads the recorded conflict of a lane; none without one.
fn load_conflict(store: &Store, lane: &LaneName) -> Result<Option<ConflictRecord>, Error> {
    Ok(ConflictRecord::load_if_exists(&store.layout().conflict_record(lane))?)
}

/// Merges a lane's tip into its base's tip, and returns the conflict. Its objects go to `temp_objects`, or the
/// repository.
///
/// # Errors
/// [`ResolveError::NoConflict`] if the merge is clean.
fn merge_with_base(
    project: &Project,
    lane: &LaneRecord,
    scratch: &Path,
    temp_objects: Option<&TempObjectStore>,
) -> Result<ConflictRecord, Error> {
    let (tip, base) = side_tips(&project.repo, lane, &lane.base)?;
    let merged = tree_merge::merge_commits(&project.repo, base, tip, scratch, temp_objects)?;
    match merged.conflicted_paths().is_empty() {
        true => Err(ResolveError::NoConflict { lane: lane.name.clone(), base: lane.base.clone() }.into()),
        false => Ok(conflict::new_record(&lane.name, &lane.base, base, tip, &merged)),
    }
}

/// Opens the conflict of a lane in a worktree for the user. An open resolution is continued.
pub fn open_for_user(project: &Project, name: &LaneName) -> Result<ResolutionStart, Error> {
    let (lane, lock) = project.lock_idle_lane(name)?;
    let tip = project.repo.branch_tip(&lane.kind.branch)?;
    let path = project.store.layout().resolution_record(&lane.name);
    if let Some(resolution) = project.find_resolution(&lane.name)?.filter(|open| Some(open.lane_tip) == tip)
        && project.repo.is_registered_worktree(&resolution.worktree_path)
    {
        let resolution = ResolutionRecord { agent: None, ..resolution };
        operate(project, "resolve", |op| op.save_record(&resolution, &path))?;
        return Ok(ResolutionStart::Open(Box::new(resolution)));
    }
    open_resolution(project, &lane, &lock, None, Vec::new())
}

/// Opens a lane's conflict with the current tips. An earlier resolution is closed and saved. `_lock` is the
/// lane's run lock.
pub(crate) fn open_resolution(
    project: &Project,
    lane: &LaneRecord,
    _lock: &LockGuard,
    agent: Option<&str>,
    refusals: Vec<String>,
) -> Result<ResolutionStart, Error> {
    let recorded = load_conflict(&project.store, &lane.name)?;
    let is_recorded = recorded.is_some();
    let conflict_record = if let Some(record) = recorded {
        record
    } else {
        let scratch = project.store.layout().create_scratch()?;
        merge_with_base(project, lane, scratch.path(), None)?
    };
    let previous = project.find_resolution(&lane.name)?;
    if let (Some(_), Some(old)) = (agent, previous.as_ref().filter(|old| old.agent.is_none())) {
        return Err(
            ResolveError::OpenByHand { lane: lane.name.clone(), dir: old.worktree_path.clone() }.into()
        );
    }
    let sides = side_tips(&project.repo, lane, &conflict_record.onto)?;
    require_updatable(project, lane)?;
    let is_clean = is_clean_merge(project, sides)?;
    let start = operate(project, "resolve", |op| {
        if let Some(old) = &previous {
            drop(resolve_worktree::close_resolution(op, old, &[])?);
        }
        if is_clean {
            return clear_ended_conflict(op, lane, &conflict_record).map(ResolutionStart::Resolved);
        }
        if !is_recorded {
            for step in conflict::record_steps(op, lane, conflict_record.clone())? {
                drop(op.perform(step)?);
            }
        }
        let resolution = resolve_worktree::open_resolution(op, lane, &conflict_record.onto, sides)?;
        let resolution = ResolutionRecord { agent: agent.map(ToOwned::to_owned), refusals, ..resolution };
        op.save_record(&resolution, &project.store.layout().resolution_record(&lane.name))?;
        // The detail stays: runs change it, and a change here would block an undo.
        let lane = op.update_lane(&lane.name, |record| record.set_landing(LandingState::Conflict))?;
        let resolver = agent.unwrap_or("you");
        let message = format!("the conflict of lane '{}' is to be resolved by {resolver}", lane.name);
        op.emit(log::EventName::ResolveStarted, Some(&lane), message);
        Ok::<_, Error>(ResolutionStart::Open(Box::new(resolution)))
    })?;
    let ResolutionStart::Open(resolution) = start else { return Ok(start) };
    // Git's rerere, or a merge driver of the worktree, may have resolved it.
    let (tree, refusals) = check_resolution(project, &resolution, &Allowance::default(), false)?;
    if !refusals.is_empty() {
        return Ok(ResolutionStart::Open(resolution));
    }
    apply_resolution(project, &resolution, tree, "git").map(ResolutionStart::Resolved)
}

/// Returns the tips of the lane's branch and of the branch `onto`.
///
/// # Errors
/// Fails when one of the branches is gone.
fn side_tips(repo: &Repo, lane: &LaneRecord, onto: &str) -> Result<(CommitId, CommitId), Error> {
    let Some(tip) = repo.branch_tip(&lane.kind.branch)? else {
        let reason = format!("its branch {} is missing", lane.kind.branch);
        return Err(ResolveError::LaneNotReady { lane: lane.name.clone(), reason }.into());
    };
    let base = repo.branch_tip(onto)?;
    Ok((tip, base.ok_or_else(|| lane::Error::NoOntoBranch { branch: onto.to_owned() })?))
}

/// Returns whether merging the lane's tip into the base's tip causes no conflict.
fn is_clean_merge(project: &Project, (tip, base): (CommitId, CommitId)) -> Result<bool, Error> {
    let scratch = project.store.layout().create_scratch()?;
    let temp_objects = TempObjectStore::new(&project.repo, &Layout::scratch_objects(scratch.path()))?;
    // The sides are in the order in which a landing merges.
    Ok(!tree_merge::would_conflict(&project.repo, base, tip, scratch.path(), &temp_objects)?)
}

/// Clears the conflict of a lane whose merge is clean by now, as the caller has checked, so that the lane can
/// land.
fn clear_ended_conflict(
    op: &Operation<'_>,
    lane: &LaneRecord,
    record: &ConflictRecord,
) -> Result<ResolvedConflict, Error> {
    clear_conflict(op, &lane.name)?;
    let (lane, onto) = (lane.name.clone(), record.onto.clone());
    Ok(ResolvedConflict { lane, onto, commit: None, resolver: None, files: Vec::new() })
}

/// Removes the record of a lane's conflict, and puts the lane in state `done`.
fn clear_conflict(op: &Operation<'_>, lane: &LaneName) -> Result<(), Error> {
    for step in conflict::removal_steps(op, lane)? {
        drop(op.perform(step)?);
    }
    op.update_lane(lane, |record| {
        record.set_run(RunState::Done);
        record.detail = None;
    })?;
    Ok(())
}

/// Puts the lane in state `conflict`, with the conflict as its detail.
fn set_conflict_state(
    op: &Operation<'_>,
    lane: &LaneRecord,
    conflict_record: &ConflictRecord,
) -> Result<(), Error> {
    op.update_lane(&lane.name, |record| {
        record.set_landing(LandingState::Conflict);
        record.detail =
            Some(format!("with {} in {}", conflict_record.onto, error::list_paths(&conflict_record.paths)));
    })?;
    Ok(())
}

/// Refuses if the lane's worktree could not be updated to a new tip.
fn require_updatable(project: &Project, lane: &LaneRecord) -> Result<(), Error> {
    let refused =
        |why: String| -> Error { ResolveError::LaneNotReady { lane: lane.name.clone(), reason: why }.into() };
    update_blocker(project, lane)?.map_or(Ok(()), |reason| Err(refused(reason)))
}

/// Returns the reason why the lane's worktree could not be updated to a new tip; none if it could.
fn update_blocker(project: &Project, lane: &LaneRecord) -> Result<Option<String>, Error> {
    let evidence = evidence::inspect_worktree(project, lane, &WorktreeList::read(&project.repo)?, None)?;
    if evidence.is_folder_missing {
        return Ok(Some("its folder is missing".to_owned()));
    }
    if let Some(reason) = evidence.broken_reason.or(evidence.registration_mismatch) {
        return Ok(Some(reason));
    }
    if let Some((location, _)) = evidence.detached_work {
        return Ok(Some(format!("its worktree is on {location}")));
    }
    if let Some(operation) = evidence.open_git_operation {
        return Ok(Some(format!("a {operation} is in progress in it")));
    }
    let dirty_paths = evidence.dirty_state.paths();
    Ok((!dirty_paths.is_empty())
        .then(|| format!("it has uncommitted work: {}", error::list_paths(&dirty_paths))))
}

/// Returns the tree of the resolution's worktree, and the reasons to refuse it.
pub(crate) fn check_resolution(
    project: &Project,
    resolution: &ResolutionRecord,
    allowance: &Allowance,
    is_by_agent: bool,
) -> Result<(TreeId, Vec<Refusal>), Error> {
    let repo = &project.repo;
    let refused = |why: &str| Ok((resolution.merged_tree, vec![Refusal::final_because(why.to_owned())]));
    if !repo.is_registered_worktree(&resolution.worktree_path) {
        return refused("its worktree is missing");
    }
    let git_dir = repo.worktree_git_dir(&resolution.worktree_path)?;
    if let Some(operation) = find_open_git_operation(&git_dir).filter(|other| other.command != "merge") {
        return refused(&format!("a {} is in progress in its worktree", operation.command));
    }
    let head = repo.head_commit(&resolution.worktree_path)?.unwrap_or(resolution.lane_tip);
    if head == resolution.lane_tip && repo.merge_head(&resolution.worktree_path)? != Some(resolution.onto_tip)
    {
        return refused("the merge was aborted in its worktree");
    }
    if !repo.is_ancestor(resolution.lane_tip, head)? {
        return refused("the commit in its worktree is no longer based on the lane");
    }
    let worktree_contents =
        match LockedWorktree::lock(project, &resolution.worktree_path)?.write_worktree_tree() {
            Ok(laid) => laid,
            Err(lane::Error::Git(e)) if e.is_git_failure() => return refused(&e.to_string()),
            Err(e) => return Err(e.into()),
        };
    let scratch = project.store.layout().create_scratch()?;
    let reference = ReferenceMerge::compute(repo, resolution, scratch.path())?;
    let resolution_check = ResolutionCheck {
        repo,
        resolution,
        reference: &reference,
        allowance,
        worktree_contents: &worktree_contents,
        is_by_agent,
    };
    Ok((worktree_contents.tree, resolution_check.find_refusals()?))
}

/// Checks an open resolution and, if it is accepted, makes it the lane's new tip.
///
/// # Errors
/// [`ResolveError::Refused`] with all reasons. Nothing was changed then.
pub fn continue_resolution(
    project: &Project,
    name: &LaneName,
    allowance: &Allowance,
) -> Result<ResolvedConflict, Error> {
    let (lane, _lock) = project.lock_idle_lane(name)?;
    let resolution = require_open_resolution(project, &lane.name)?;
    let (tree, refusals) = check_resolution(project, &resolution, allowance, resolution.agent.is_some())?;
    if !refusals.is_empty() {
        return Err(ResolveError::Refused { lane: lane.name, dir: resolution.worktree_path, refusals }.into());
    }
    let resolver =
        resolution.agent.as_ref().map_or_else(|| "hand".to_owned(), |agent| format!("hand, after {agent}"));
    apply_resolution(project, &resolution, tree, &resolver)
}

/// Returns the open resolution of a lane.
///
/// # Errors
/// [`ResolveError::NoConflict`] or [`ResolveError::NotOpen`].
pub(crate) fn require_open_resolution(project: &Project, lane: &LaneName) -> Result<ResolutionRecord, Error> {
    if let Some(resolution) = project.find_resolution(lane)? {
        return Ok(resolution);
    }
    drop(find_conflict(project, &project.lane(lane)?)?);
    Err(ResolveError::NotOpen { lane: lane.clone() }.into())
}

/// Closes an open resolution without applying it; all its contents are saved.
pub fn abort_resolution(
    project: &Project,
    name: &LaneName,
) -> Result<(ResolutionRecord, ClosedResolution), Error> {
    let (lane, _lock) = project.lock_idle_lane(name)?;
    let resolution = require_open_resolution(project, &lane.name)?;
    let closed = close_resolution(project, &lane, &resolution)?;
    Ok((resolution, closed))
}

/// Closes a resolution with all its contents saved. A lane whose conflict is on record is in state `conflict`
/// then.
pub(crate) fn close_resolution(
    project: &Project,
    lane: &LaneRecord,
    resolution: &ResolutionRecord,
) -> Result<ClosedResolution, Error> {
    operate(project, "resolve", |op| {
        let closed = resolve_worktree::close_resolution(op, resolution, &[])?;
        if let Ok(Some(record)) = load_conflict(&project.store, &lane.name) {
            set_conflict_state(op, lane, &record)?;
        }
        Ok(closed)
    })
}

/// Makes a tree the lane's new tip, as a merge of both sides. The caller holds the lane's run lock.
pub(crate) fn apply_resolution(
    project: &Project,
    resolution: &ResolutionRecord,
    tree: TreeId,
    resolver: &str,
) -> Result<ResolvedConflict, Error> {
    operate(project, "resolve", |op| {
        let lane = project.lane(&resolution.lane)?;
        let mut message = merge_message(&lane, resolution);
        if project.settings.messages.trailers {
            message.push_str(&format!("\nProq-Lane: {}\nProq-Resolved-By: {resolver}\n", lane.name));
        }
        let commit =
            NewCommit { tree, parents: &[resolution.lane_tip, resolution.onto_tip], message: &message };
        let commit = commit.write(&project.repo, None)?;
        op.set_reflog_message(format!("git-proq resolve: {} into {}", resolution.onto, lane.kind.branch));
        let result = if let Some(reason) = update_blocker(project, &lane)? {
            Err(reason)
        } else {
            let ref_move = RefMove::Branch(lane.kind.branch.clone());
            op.transition(&lane.path, resolution.lane_tip, commit, ref_move).map_err(|e| e.to_string())
        };
        if let Err(reason) = result {
            let saved_ref = format!("refs/proq/saved/{}-{}", lane.name, new_id());
            op.anchor(&saved_ref, commit)?;
            return Err(ResolveError::NotApplied { lane: lane.name, reason, saved_ref }.into());
        }
        // This is git's own cache: the next merge of the same two sides reuses the resolution.
        if let Err(e) = project.repo.record_resolution(&resolution.worktree_path) {
            project.listener.warn(format!("rerere could not record the resolution: {e}"));
        }
        clear_conflict(op, &lane.name)?;
        drop(resolve_worktree::close_resolution(op, resolution, &[commit])?);
        let event_message = format!(
            "the conflict of lane '{}' with {} is resolved by {resolver}",
            lane.name, resolution.onto
        );
        let mut lane = lane;
        lane.set_run(RunState::Done);
        op.emit(log::EventName::MergeResolved, Some(&lane), event_message);
        Ok(ResolvedConflict {
            lane: lane.name,
            onto: resolution.onto.clone(),
            commit: Some(commit),
            resolver: Some(resolver.to_owned()),
            files: resolution.conflicted_paths(),
        })
    })
}

/// Returns the merge message: it lists the conflicts, as git's own does.
fn merge_message(lane: &LaneRecord, resolution: &ResolutionRecord) -> String {
    let mut text = format!("Merge branch '{}' into {}\n", resolution.onto, lane.kind.branch);
    if !resolution.paths.is_empty() {
        text.push_str("\nConflicts:\n");
        for path in &resolution.paths {
            text.push_str(&format!("\t{}\n", path.path));
        }
    }
    text
}
